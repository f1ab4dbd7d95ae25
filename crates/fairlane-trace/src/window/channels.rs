//! The cuts of a part and what crosses them: messages on their way, open receives, collectives; and what a rank's part does about it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fairlane_core::program::{Collective, Op, P2p, RequestId, Source, Tag};

use super::Window;
use super::scan::{Counts, Cut, Handles, Key, Scan};
use crate::error::TraceError;
use crate::tally::{Memberships, RankTally};

/// The common name of a communicator for all ranks: its members, and its handle if all use the same one, else its place among those
/// with these members.
type Identity = (Arc<[u32]>, u64);

/// A rank's communicators by its number of them: their number in the job, and their members.
type Communicators = HashMap<usize, (u32, Arc<[u32]>)>;

/// A channel of the job: communicator, source and destination as ranks of the job, tag.
type Channel = (u32, u32, u32, Tag);

/// Sums of a channel at a cut.
#[derive(Clone, Copy, Default)]
struct Sums {
    sends: u64,
    receives: u64,
    complete: u64,
}

/// All channels of the job.
pub struct Channels {
    communicators: Vec<Communicators>,
    sums: [HashMap<Channel, Sums>; 2],
    /// Destinations of messages for receives whose source or tag the trace does not have: all of theirs are balanced.
    unknown: [HashSet<(u32, u32)>; 2],
    bounded: bool,
}

/// The messages that cross the cuts on a channel, as numbers.
#[derive(Clone, Copy, Default)]
struct Crossing {
    /// Messages that are sent in front of the part and received in it or later.
    under_way: u64,
    /// Those of them that are received in the part.
    arriving: u64,
    /// Receives that are started in front of the part, for messages that are sent in it or later.
    waiting: u64,
    /// Those of them whose message is sent in the part.
    filled: u64,
    /// Sends and receives of the part that are for others beyond its end.
    sends_beyond: u64,
    receives_beyond: u64,
}

impl Channels {
    /// Adds up what the ranks have done, and refuses cuts that are at no instant of the run.
    pub fn of(scans: &[Scan], window: Window) -> Result<Self, TraceError> {
        let mut found = Self {
            communicators: communicators(scans),
            sums: Default::default(),
            unknown: Default::default(),
            bounded: window.to.is_some(),
        };
        for (cut, at) in [(Cut::Begin, 0), (Cut::End, 1)].into_iter().take(if found.bounded { 2 } else { 1 }) {
            for (rank, scan) in (0..).zip(scans) {
                found.add(rank, &scan.counts[at], at);
            }
            found.check_collectives(scans, at).map_err(|problem| window.refuse(cut, problem))?;
            found.check_receives(scans, at).map_err(|problem| window.refuse(cut, problem))?;
            if let Some(rank) = scans.iter().position(|scan| !scan.counts[at].windows.is_empty()) {
                let problem = format!("rank {rank} has a window of one-sided communication there; a cut takes none");
                return Err(window.refuse(cut, problem));
            }
        }
        Ok(found)
    }

    fn add(&mut self, rank: u32, counts: &Counts, at: usize) {
        let mut sums = std::mem::take(&mut self.sums[at]);
        let mut all = |counts: &HashMap<Key, u64>, sent: bool, add: fn(&mut Sums, u64)| {
            for (key, &count) in counts {
                if let Some(channel) = self.channel(rank, *key, sent) {
                    add(sums.entry(channel).or_default(), count);
                }
            }
        };
        all(&counts.sends, true, |sums, count| sums.sends += count);
        all(&counts.receives, false, |sums, count| sums.receives += count);
        all(&counts.complete, false, |sums, count| sums.complete += count);
        self.sums[at] = sums;
    }

    fn channel(&self, rank: u32, (number, other, tag): Key, sent: bool) -> Option<Channel> {
        let (comm, members) = self.communicators[rank as usize].get(&number)?;
        let other = *members.get(other as usize)?;
        Some(if sent { (*comm, rank, other, tag) } else { (*comm, other, rank, tag) })
    }

    fn check_collectives(&self, scans: &[Scan], at: usize) -> Result<(), String> {
        let mut calls: BTreeMap<(u32, bool), HashMap<u32, u64>> = BTreeMap::new();
        let mut members: HashMap<u32, &Arc<[u32]>> = HashMap::new();
        for (rank, scan) in (0_u32..).zip(scans) {
            for (&(number, nonblocking), &count) in &scan.counts[at].collectives {
                if let Some((comm, of)) = self.communicators[rank as usize].get(&number) {
                    members.insert(*comm, of);
                    calls.entry((*comm, nonblocking)).or_default().insert(rank, count);
                }
            }
        }
        for ((comm, _), calls) in &calls {
            let of = |rank: &u32| calls.get(rank).copied().unwrap_or(0);
            let Some(first) = members[comm].first() else { continue };
            if let Some(other) = members[comm].iter().find(|member| of(member) != of(first)) {
                return Err(format!(
                    "the part cannot be cut out there: collective calls in front of the cut on a communicator of {} ranks: \
                     {} of rank {first}, {} of rank {other}; allowed: iterations of a collective of all ranks",
                    members[comm].len(),
                    of(first),
                    of(other)
                ));
            }
        }
        Ok(())
    }

    fn check_receives(&mut self, scans: &[Scan], at: usize) -> Result<(), String> {
        for (rank, scan) in (0_u32..).zip(scans) {
            for (number, unknown) in &scan.counts[at].unknown {
                let Some((comm, _)) = self.communicators[rank as usize].get(number) else { continue };
                let own = || self.sums[at].iter().filter(|((on, _, to, _), _)| (on, *to) == (comm, rank));
                let sent: u64 = own().map(|(_, sums)| sums.sends).sum();
                let received: u64 = own().map(|(_, sums)| sums.receives).sum();
                if sent != received + unknown || own().any(|(_, sums)| sums.receives > sums.sends) {
                    return Err(format!(
                        "the part cannot be cut out there: rank {rank} has receives whose source or tag the trace does \
                         not have, and {sent} messages for {} receives: which ones are on their way is unknown",
                        received + unknown
                    ));
                }
                self.unknown[at].insert((*comm, rank));
            }
        }
        let early = self.sums[at].iter().filter(|((comm, _, to, _), _)| !self.unknown[at].contains(&(*comm, *to)));
        if let Some(((_, from, to, tag), _)) =
            early.filter(|(_, sums)| sums.complete > sums.sends).min_by_key(|at| at.0)
        {
            return Err(format!(
                "the part cannot be cut out there: rank {to} has received a message with tag {tag} that rank {from} sends \
                 behind the cut; allowed: iterations of a collective that no rank leaves before all have come to it, as \
                 barrier, allreduce, allgather and alltoall of all ranks"
            ));
        }
        Ok(())
    }

    /// The messages that cross the cuts on a channel of a rank.
    fn crossing(&self, rank: u32, key: Key, sent: bool) -> Crossing {
        let Some(channel) = self.channel(rank, key, sent) else { return Crossing::default() };
        let balanced = |at: usize| self.unknown[at].contains(&(channel.0, channel.2));
        let of = |at: usize| self.sums[at].get(&channel).copied().unwrap_or_default();
        let less = |at: usize| if balanced(at) { (0, 0) } else { difference(of(at)) };
        let (under_way, waiting) = less(0);
        if !self.bounded {
            return Crossing { under_way, arriving: under_way, waiting, filled: waiting, ..Crossing::default() };
        }
        let (sent, received) = (of(1).sends - of(0).sends, of(1).receives - of(0).receives);
        let (sends, receives) = less(1);
        let (arriving, filled) =
            if balanced(1) { (under_way, waiting) } else { (under_way.min(received), waiting.min(sent)) };
        Crossing {
            under_way,
            arriving,
            waiting,
            filled,
            sends_beyond: sends.min(sent),
            receives_beyond: receives.min(received),
        }
    }
}

/// How many more sends than receives there are, and how many more receives than sends.
const fn difference(sums: Sums) -> (u64, u64) {
    (sums.sends.saturating_sub(sums.receives), sums.receives.saturating_sub(sums.sends))
}

/// The communicators of every rank, numbered for the whole job.
fn communicators(scans: &[Scan]) -> Vec<Communicators> {
    let tallies: Vec<&RankTally> = scans.iter().map(|scan| &scan.tally).collect();
    let memberships = Memberships::find(&tallies);
    let mut numbers: HashMap<Identity, u32> = HashMap::new();
    let mut found = Vec::new();
    for (known, tally) in memberships.known.into_iter().zip(tallies) {
        let mut own: Vec<(usize, Arc<[u32]>)> = known.into_iter().collect();
        own.sort_unstable_by_key(|(number, _)| *number);
        let mut places: HashMap<Arc<[u32]>, u64> = HashMap::new();
        let numbered = own.into_iter().map(|(number, members)| {
            let place = match tally.definition(number) {
                Some(handle) => u64::from(handle) << 32,
                None => {
                    let place = places.entry(Arc::clone(&members)).or_default();
                    *place += 1;
                    *place
                }
            };
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            (number, (*numbers.entry((Arc::clone(&members), place)).or_insert(next), members))
        });
        found.push(numbered.collect());
    }
    found
}

/// The operations of a rank besides those of its part.
pub struct Plan {
    /// In front of the first pass.
    pub prelude: Vec<Op>,
    /// In front of every pass: messages and receives that are open when the part begins.
    pub open: Vec<Op>,
    /// Sends and receives of a pass by channel, where some are left out: how many are not.
    pub sends: HashMap<Key, u64>,
    /// As `sends`.
    pub receives: HashMap<Key, u64>,
    /// Handles at the beginning.
    pub handles: Handles,
}

impl Plan {
    /// That of a rank, whose source at the beginning of the trace is `origin`.
    pub fn new(
        rank: usize,
        scan: &Scan,
        channels: &Channels,
        origin: Box<dyn Source>,
        window: Window,
    ) -> Result<Self, TraceError> {
        let rank = u32::try_from(rank).expect("invariant: ranks are numbered with 32 bits");
        let [before, until] = &scan.counts;
        let inside = |counts: fn(&Counts) -> &HashMap<Key, u64>, key: &Key| {
            counts(until).get(key).copied().unwrap_or(0) - counts(before).get(key).copied().unwrap_or(0)
        };
        let mut plan = Self {
            prelude: scan.prelude.clone(),
            open: Vec::new(),
            sends: HashMap::new(),
            receives: HashMap::new(),
            handles: scan.handles.clone(),
        };
        let mut under_way: HashMap<Key, Crossing> = HashMap::new();
        for key in until.sends.keys() {
            let crossing = channels.crossing(rank, *key, true);
            if crossing.under_way > 0 {
                under_way.insert(*key, crossing);
            }
            if crossing.sends_beyond > 0 {
                plan.sends.insert(*key, inside(|counts| &counts.sends, key) - crossing.sends_beyond);
            }
        }
        for key in until.receives.keys() {
            let crossing = channels.crossing(rank, *key, false);
            if crossing.receives_beyond > 0 {
                plan.receives.insert(*key, inside(|counts| &counts.receives, key) - crossing.receives_beyond);
            }
        }
        let mut waiting: Vec<(u64, &Op)> = Vec::new();
        for receive in scan.receives.values() {
            let Some(key) = receive.key else { continue };
            let crossing = channels.crossing(rank, key, false);
            let first = before.receives[&key] - crossing.waiting;
            if (first + 1..=first + crossing.filled).contains(&receive.place) {
                waiting.push((receive.place, &receive.op));
            }
        }
        waiting.sort_by_key(|(place, _)| *place);
        plan.open.extend(waiting.into_iter().map(|(_, op)| op.clone()));
        if !under_way.is_empty() {
            plan.open.extend(resent(origin, scan, &under_way, window)?);
        }
        Ok(plan)
    }
}

/// The sends in front of a part whose messages arrive in it: requests that are waited for in the part are the same.
fn resent(
    mut origin: Box<dyn Source>,
    scan: &Scan,
    under_way: &HashMap<Key, Crossing>,
    window: Window,
) -> Result<Vec<Op>, TraceError> {
    let mut last: HashMap<Key, VecDeque<(u64, Op)>> = HashMap::new();
    let (mut handles, mut marks, mut place) = (Handles::new(), 0, 0_u64);
    let mut latest: HashMap<RequestId, u64> = HashMap::new();
    while marks < window.from.get()
        && let Some(op) = origin.next_op().map_err(TraceError::Source)?
    {
        place += 1;
        match &op {
            Op::MarkProgress => marks += 1,
            Op::P2p(P2p::Send { to, tag, comm, .. }) | Op::P2p(P2p::Isend { to, tag, comm, .. }) => {
                let key = (handles.number(*comm), to.0, *tag);
                if let Some(crossing) = under_way.get(&key) {
                    let own = last.entry(key).or_default();
                    own.push_back((place, op.clone()));
                    if own.len() as u64 > crossing.under_way {
                        own.pop_front();
                    }
                }
            }
            _ => {}
        }
        if let Op::P2p(P2p::Isend { request, .. })
        | Op::P2p(P2p::Irecv { request, .. })
        | Op::Collective(Collective::Nonblocking { request, .. }) = &op
        {
            latest.insert(*request, place);
        }
        handles.follow(&op);
    }
    let mut sends: Vec<(u64, Key, Op)> = Vec::new();
    for (key, own) in last {
        let arriving = usize::try_from(under_way[&key].arriving).unwrap_or(usize::MAX);
        sends.extend(own.into_iter().take(arriving).map(|(place, op)| (place, key, op)));
    }
    sends.sort_by_key(|(place, ..)| *place);
    let mut ops = Vec::new();
    for (spare, (place, key, op)) in (0..).zip(sends) {
        let (Op::P2p(P2p::Send { to, bytes, tag, comm, mode })
        | Op::P2p(P2p::Isend { to, bytes, tag, comm, mode, .. })) = op
        else {
            unreachable!("invariant: only sends are kept")
        };
        if scan.handles.number(comm) != key.0 {
            let problem = "a message is on its way there on a communicator that has been given up".to_owned();
            return Err(window.refuse(Cut::Begin, problem));
        }
        let own = match op {
            Op::P2p(P2p::Isend { request, .. }) if scan.others.contains(&request) && latest[&request] == place => {
                Some(request)
            }
            _ => None,
        };
        let request = own.unwrap_or(RequestId::MAX - spare);
        ops.push(Op::P2p(P2p::Isend { to, bytes, tag, comm, mode, request }));
        if own.is_none() {
            ops.push(Op::P2p(P2p::RequestFree(request)));
        }
    }
    Ok(ops)
}
