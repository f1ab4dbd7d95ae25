//! Counts what the readers emit, and finds out who is in which communicator once all ranks have been read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{COMM_SELF, COMM_WORLD, CollectiveKind, Comm, CommHandle, Op, P2p, Rma};

use crate::description::{CollectiveTotals, Description, KindTotals, Neighbours};

/// The bytes that a call hands to a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedIn {
    /// So much.
    Bytes(u64),
    /// So much for every member of the communicator.
    PerMember(u64),
    /// So much if the caller is this rank of the communicator.
    AtRoot {
        /// The root.
        root: u32,
        /// The bytes.
        bytes: u64,
    },
}

/// How a rank came to a communicator.
enum Made {
    Dup,
    Split { color: Option<i32>, key: i32 },
    Create(Arc<[Rank]>),
    Define(Arc<[Rank]>),
}

struct Creation {
    parent: usize,
    made: Made,
    handle: CommHandle,
}

/// The counts of one rank. Communicators are numbered in the order in which the rank met them: world, self, others.
#[derive(Default)]
pub struct RankTally {
    current: HashMap<CommHandle, usize>,
    creations: Vec<Creation>,
    peers: HashMap<usize, HashSet<u32>>,
    messages: u64,
    bytes: u64,
    collectives: HashMap<(usize, &'static str, Option<u32>), (u64, HandedIn)>,
    kinds: BTreeMap<&'static str, u64>,
    one_sided: BTreeMap<&'static str, CollectiveTotals>,
    /// Windows made, by communicator.
    windows: HashMap<usize, u64>,
}

impl RankTally {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { current: HashMap::from([(COMM_WORLD, 0), (COMM_SELF, 1)]), ..Self::default() }
    }

    fn made(&mut self, parent: CommHandle, new: CommHandle, made: Made) {
        let Some(&parent) = self.current.get(&parent) else { return };
        self.creations.push(Creation { parent, made, handle: new });
        self.current.insert(new, self.creations.len() + 1);
    }

    /// The handle of a communicator whose members are known beforehand: all of them use the same one.
    pub fn definition(&self, number: usize) -> Option<CommHandle> {
        let creation = self.creations.get(number.checked_sub(2)?)?;
        matches!(creation.made, Made::Define(_)).then_some(creation.handle)
    }

    /// Counts an operation.
    pub fn op(&mut self, op: &Op) {
        match op {
            Op::P2p(P2p::Send { to, bytes, comm, .. }) | Op::P2p(P2p::Isend { to, bytes, comm, .. }) => {
                self.messages += 1;
                self.bytes = self.bytes.saturating_add(bytes.0);
                if let Some(&communicator) = self.current.get(comm) {
                    self.peers.entry(communicator).or_default().insert(to.0);
                }
            }
            Op::Rma(Rma::Access { kind, bytes, .. }) => {
                let totals = self.one_sided.entry(kind.name()).or_default();
                totals.calls += 1;
                totals.bytes = totals.bytes.saturating_add(bytes.0);
            }
            Op::Comm(Comm::Dup { comm, new }) => self.made(*comm, *new, Made::Dup),
            Op::Comm(Comm::Split { comm, new, color, key }) => {
                self.made(*comm, *new, Made::Split { color: *color, key: *key });
            }
            Op::Comm(Comm::Create { comm, new, members }) => self.made(*comm, *new, Made::Create(Arc::clone(members))),
            Op::Comm(Comm::Define { new, members }) => self.made(COMM_WORLD, *new, Made::Define(Arc::clone(members))),
            _ => {}
        }
    }

    /// Counts a collective call that iterations can be bounded by.
    pub fn kind(&mut self, kind: CollectiveKind) {
        *self.kinds.entry(kind.name()).or_default() += 1;
    }

    /// Counts a window that the members of a communicator make.
    pub fn window(&mut self, comm: CommHandle) {
        if let Some(&communicator) = self.current.get(&comm) {
            *self.windows.entry(communicator).or_default() += 1;
        }
    }

    /// Counts a collective call on a communicator.
    pub fn collective(&mut self, name: &'static str, comm: CommHandle, handed_in: HandedIn) {
        let Some(&communicator) = self.current.get(&comm) else { return };
        let (root, zero) = match handed_in {
            HandedIn::Bytes(_) => (None, HandedIn::Bytes(0)),
            HandedIn::PerMember(_) => (Some(u32::MAX), HandedIn::PerMember(0)),
            HandedIn::AtRoot { root, .. } => (Some(root), HandedIn::AtRoot { root, bytes: 0 }),
        };
        let (calls, sum) = self.collectives.entry((communicator, name, root)).or_insert((0, zero));
        *calls += 1;
        match (sum, handed_in) {
            (HandedIn::Bytes(sum), HandedIn::Bytes(more))
            | (HandedIn::PerMember(sum), HandedIn::PerMember(more))
            | (HandedIn::AtRoot { bytes: sum, .. }, HandedIn::AtRoot { bytes: more, .. }) => {
                *sum = sum.saturating_add(more)
            }
            _ => unreachable!("invariant: the key tells them apart"),
        }
    }
}

/// A communicator of the whole job: its members, and each member's number for it.
struct Shared {
    members: Arc<[u32]>,
    numbers: Vec<usize>,
}

/// The members of every rank's communicators, by the rank's numbers.
pub struct Memberships {
    /// Of every rank, by its number of the communicator.
    pub known: Vec<HashMap<usize, Arc<[u32]>>>,
    counts: BTreeMap<String, u64>,
}

impl Memberships {
    /// From all that was made by all ranks.
    pub fn find(ranks: &[&RankTally]) -> Self {
        let mut found = Self { known: vec![HashMap::new(); ranks.len()], counts: BTreeMap::new() };
        let children: Vec<HashMap<usize, Vec<usize>>> = ranks.iter().map(|tally| children(tally)).collect();
        let all: Arc<[u32]> = (0..).take(ranks.len()).collect();
        let mut open = vec![Shared { numbers: vec![0; all.len()], members: all }];
        for (rank, (tally, r)) in ranks.iter().zip(0_u32..).enumerate() {
            open.push(Shared { members: [r].into(), numbers: vec![1] });
            for (number, creation) in tally.creations.iter().enumerate() {
                if let Made::Define(members) = &creation.made {
                    found.known[rank].insert(number + 2, members.iter().map(|m| m.0).collect());
                }
            }
        }
        while let Some(shared) = open.pop() {
            for (&member, &number) in shared.members.iter().zip(&shared.numbers) {
                found.known[member as usize].insert(number, Arc::clone(&shared.members));
            }
            for generation in 0.. {
                let nth = |(&member, &number): (&u32, &usize)| {
                    children[member as usize].get(&number).and_then(|made| made.get(generation)).copied()
                };
                let Some(made) = shared.members.iter().zip(&shared.numbers).map(nth).collect::<Option<Vec<_>>>() else {
                    break;
                };
                for (kind, child) in divide(&shared, &made, ranks) {
                    *found.counts.entry(format!("{kind}({})", child.members.len())).or_default() += 1;
                    open.push(child);
                }
            }
        }
        found
    }
}

/// A rank's creations by parent, those that all members of the parent take part in.
fn children(tally: &RankTally) -> HashMap<usize, Vec<usize>> {
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, creation) in tally.creations.iter().enumerate() {
        if !matches!(creation.made, Made::Define(_)) {
            children.entry(creation.parent).or_default().push(number);
        }
    }
    children
}

/// The communicators that one collective creation makes of its parent.
fn divide(parent: &Shared, made: &[usize], ranks: &[&RankTally]) -> Vec<(&'static str, Shared)> {
    let creation = |position: usize| &ranks[parent.members[position] as usize].creations[made[position]].made;
    let child = |positions: &[usize]| Shared {
        members: positions.iter().map(|&p| parent.members[p]).collect(),
        numbers: positions.iter().map(|&p| made[p] + 2).collect(),
    };
    let positions: Vec<usize> = (0..made.len()).collect();
    match creation(0) {
        Made::Dup => vec![("dup", child(&positions))],
        Made::Split { .. } => {
            let mut colors: BTreeMap<i32, Vec<(i32, usize)>> = BTreeMap::new();
            for &position in &positions {
                if let Made::Split { color: Some(color), key } = creation(position) {
                    colors.entry(*color).or_default().push((*key, position));
                }
            }
            let ordered = colors.into_values().map(|mut members| {
                members.sort_unstable();
                members.into_iter().map(|(_, position)| position).collect::<Vec<_>>()
            });
            ordered.map(|positions| ("split", child(&positions))).collect()
        }
        Made::Create(_) => {
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for &position in &positions {
                let Made::Create(members) = creation(position) else { continue };
                let members: Vec<usize> = members.iter().map(|m| m.index()).filter(|&m| m < made.len()).collect();
                if members.contains(&position) && !groups.contains(&members) {
                    groups.push(members);
                }
            }
            groups.iter().map(|positions| ("create", child(positions))).collect()
        }
        Made::Define(_) => Vec::new(),
    }
}

/// Adds the sums over all ranks to a description.
pub fn add_up(ranks: &[RankTally], description: &mut Description) {
    let memberships = Memberships::find(&ranks.iter().collect::<Vec<_>>());
    let mut neighbours: Vec<HashSet<u32>> = vec![HashSet::new(); ranks.len()];
    for (rank, (tally, me)) in ranks.iter().zip(0_u32..).enumerate() {
        description.p2p_messages += tally.messages;
        description.p2p_bytes = description.p2p_bytes.saturating_add(tally.bytes);
        let known = &memberships.known[rank];
        for (&(communicator, name, _), &(calls, handed_in)) in &tally.collectives {
            let members = known.get(&communicator);
            let bytes = match handed_in {
                HandedIn::Bytes(bytes) => bytes,
                HandedIn::PerMember(bytes) => bytes.saturating_mul(members.map_or(0, |m| m.len() as u64)),
                HandedIn::AtRoot { root, bytes } => {
                    let is_root = members.is_some_and(|m| m.get(root as usize) == Some(&me));
                    if is_root { bytes } else { 0 }
                }
            };
            let totals: &mut CollectiveTotals = description.collectives.entry(name.to_owned()).or_default();
            totals.calls += calls;
            totals.bytes = totals.bytes.saturating_add(bytes);
        }
        for (&kind, &calls) in &tally.kinds {
            let totals: &mut KindTotals = description.iteration_collectives.entry(kind.to_owned()).or_default();
            totals.calls += calls;
            totals.ranks += 1;
        }
        for (&kind, operations) in &tally.one_sided {
            let totals: &mut CollectiveTotals = description.one_sided.entry(kind.to_owned()).or_default();
            totals.calls += operations.calls;
            totals.bytes = totals.bytes.saturating_add(operations.bytes);
        }
        for (communicator, &made) in &tally.windows {
            // Every member made it; the first one counts it.
            if let Some(members) = known.get(communicator).filter(|members| members.first() == Some(&me)) {
                *description.windows.entry(format!("create({})", members.len())).or_default() += made;
            }
        }
        for (communicator, peers) in &tally.peers {
            let Some(members) = known.get(communicator) else { continue };
            let partners = peers.iter().filter_map(|&peer| members.get(peer as usize).copied());
            for partner in partners.filter(|&partner| partner != me) {
                neighbours[rank].insert(partner);
                neighbours[partner as usize].insert(me);
            }
        }
    }
    description.neighbours = summary(&neighbours);
    description.communicators.extend(memberships.counts);
}

fn summary(neighbours: &[HashSet<u32>]) -> Neighbours {
    let counts: Vec<u32> = neighbours.iter().map(|n| u32::try_from(n.len()).unwrap_or(u32::MAX)).collect();
    #[allow(clippy::cast_precision_loss, reason = "a mean of ranks")]
    let mean = counts.iter().map(|&n| f64::from(n)).sum::<f64>() / counts.len().max(1) as f64;
    Neighbours { min: counts.iter().copied().min().unwrap_or(0), mean, max: counts.iter().copied().max().unwrap_or(0) }
}
