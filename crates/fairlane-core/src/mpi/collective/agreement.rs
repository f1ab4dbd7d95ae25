//! Agreements: all members of a communicator must call the same collective, and those of a split learn what the others gave, as
//! those of a job in bursts learn what its first rank decided.
//!
//! Each shard has a copy of the agreements of every job. Calls of its own ranks are in it at once; when a window ends, each
//! shard reports to the others what its ranks have called, so that all copies are equal again. A rank needs what others gave
//! only when the messages of the collective have come, and those of other shards take at least one window.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::{HostId, JobId, Rank};
use crate::mpi::words;
use crate::observe::call_of;
use crate::program::Op;
use crate::units::Bytes;

/// A collective: its job, the context of its communicator, and its number there.
pub(in crate::mpi) type Key = (JobId, u32, u64);

/// Arguments of a caller of a split: colour, key, rank in the parent and rank in the job. Rank 0 makes one at the end of a burst.
pub(in crate::mpi) type Bid = (i32, i32, u32, u32);

/// The open collectives of all jobs: those that not every member has completed.
#[derive(Clone, Debug, Default)]
pub(in crate::mpi) struct Agreements {
    open: FxHashMap<Key, Agreement>,
    /// Collectives that ranks of this shard have called or completed since the last report.
    changed: Vec<Key>,
    /// Calls that another shard's ranks made and that may differ from the first.
    disputed: Vec<(Key, First)>,
}

#[derive(Clone, Debug)]
struct Agreement {
    first: First,
    /// The first call has not been reported.
    unreported: bool,
    arrived: u32,
    left: u32,
    /// Of `arrived`, `left` and `bids` what has not been reported.
    new: (u32, u32, usize),
    changed: bool,
    /// For a split, and for the end of a burst.
    bids: Vec<Bid>,
    /// The members by colour, as ranks of the job in order, once all bids have been made.
    groups: FxHashMap<i32, Arc<[u32]>>,
}

/// The property in which the volumes of a collective's callers must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) enum Consistency {
    Anything,
    /// Each gives one number, its own.
    Number,
    /// Each gives this number.
    Bytes(Bytes),
    /// Each gives a list of blocks.
    Blocks,
}

/// A rank's call, as far as others must agree with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) struct Claim {
    /// The caller, as a rank of the job, and its host.
    pub rank: u32,
    pub host: HostId,
    /// The operation's name.
    pub name: &'static str,
    pub root: Rank,
    /// Members of the communicator.
    pub size: u32,
    /// How the volumes must be alike.
    pub consistency: Consistency,
}

/// The first call of a collective, in this shard or in all.
#[derive(Clone, Debug)]
struct First {
    claim: Claim,
    op: Op,
}

/// Progress of the ranks of one shard with a collective in one window.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct AgreementReport {
    key: Key,
    /// The first call, if there was none before.
    first: Option<First>,
    arrived: u32,
    left: u32,
    bids: Vec<Bid>,
}

/// Two calls of one collective that differ.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct Mismatch {
    /// The host of the later one.
    pub host: HostId,
    pub key: Key,
    pub first: String,
    pub second: String,
}

impl First {
    fn agrees(&self, claim: &Claim, op: &Op) -> bool {
        std::mem::discriminant(&self.op) == std::mem::discriminant(op)
            && call_of(&self.op) == call_of(op)
            && (self.claim.name, self.claim.root, self.claim.size, self.claim.consistency)
                == (claim.name, claim.root, claim.size, claim.consistency)
    }

    fn describe(&self) -> String {
        let Claim { rank, size, .. } = self.claim;
        format!("rank {rank} called {} among {size} ranks", words::of(&self.op))
    }
}

impl Agreements {
    /// A rank makes a collective call. Says with whom it disagrees: the first caller's call and its own, in words.
    pub fn enter(&mut self, key: Key, claim: Claim, op: &Op) -> Result<(), (String, String)> {
        let first = || Agreement::new(First { claim, op: op.clone() }, true);
        let agreement = self.open.entry(key).or_insert_with(first);
        agreement.new.0 += 1;
        Self::note(&mut self.changed, key, agreement);
        if agreement.first.agrees(&claim, op) {
            return Ok(());
        }
        Err((agreement.first.describe(), First { claim, op: op.clone() }.describe()))
    }

    fn note(changed: &mut Vec<Key>, key: Key, agreement: &mut Agreement) {
        if !std::mem::replace(&mut agreement.changed, true) {
            changed.push(key);
        }
    }

    /// A caller makes its bid.
    pub fn bid(&mut self, key: Key, bid: Bid) {
        if let Some(agreement) = self.open.get_mut(&key) {
            agreement.bids.push(bid);
            agreement.new.2 += 1;
        }
    }

    /// The members of colour `color` in order, as ranks of the job; once every member has made its bid.
    pub fn members(&mut self, key: Key, color: i32) -> Arc<[u32]> {
        let Some(agreement) = self.open.get_mut(&key) else { return Arc::new([]) };
        if agreement.bids.len() != agreement.first.claim.size as usize {
            return agreement.group(color);
        }
        if !agreement.groups.contains_key(&color) {
            let members = agreement.group(color);
            agreement.groups.insert(color, members);
        }
        Arc::clone(&agreement.groups[&color])
    }

    /// Whether a bid has been made that a message of the collective can have told of.
    pub fn has_bid(&self, key: Key) -> bool {
        self.open.get(&key).is_some_and(|agreement| !agreement.bids.is_empty())
    }

    /// A rank has completed the call; when all members have, the agreement is over at the end of the window.
    pub fn leave(&mut self, key: Key) {
        if let Some(agreement) = self.open.get_mut(&key) {
            agreement.new.1 += 1;
            Self::note(&mut self.changed, key, agreement);
        }
    }

    /// Adds to a report what has changed since the last. The copy of this shard has it from now on.
    pub fn report(&mut self, report: &mut Vec<AgreementReport>) {
        let Self { open, changed, .. } = self;
        report.extend(changed.drain(..).filter_map(|key| {
            let agreement = open.get_mut(&key)?;
            agreement.changed = false;
            let (arrived, left, bids) = std::mem::take(&mut agreement.new);
            (agreement.arrived, agreement.left) = (agreement.arrived + arrived, agreement.left + left);
            let first = std::mem::take(&mut agreement.unreported).then(|| agreement.first.clone());
            let bids = agreement.bids[agreement.bids.len() - bids..].to_vec();
            Some(AgreementReport { key, first, arrived, left, bids })
        }));
    }

    /// Takes in what another shard has reported.
    pub fn merge(&mut self, report: &AgreementReport) {
        let AgreementReport { key, first, arrived, left, bids } = report;
        if let Some(first) = first {
            let agreement = self.open.entry(*key).or_insert_with(|| Agreement::new(first.clone(), false));
            // Whether they differ is seen once it is known which of all was the first.
            let earlier = first.claim.host < agreement.first.claim.host;
            let later = if earlier { std::mem::replace(&mut agreement.first, first.clone()) } else { first.clone() };
            self.disputed.push((*key, later));
        }
        if let Some(agreement) = self.open.get_mut(key) {
            (agreement.arrived, agreement.left) = (agreement.arrived + arrived, agreement.left + left);
            agreement.bids.extend(bids);
        }
    }

    /// Calls of different shards that differ, once all have reported: the first of the window.
    pub fn mismatch(&mut self) -> Option<Mismatch> {
        let Self { open, disputed, .. } = self;
        let mismatches = disputed.drain(..).filter_map(|(key, later)| {
            let first = &open.get(&key)?.first;
            let mismatch =
                || Mismatch { host: later.claim.host, key, first: first.describe(), second: later.describe() };
            (!first.agrees(&later.claim, &later.op)).then(mismatch)
        });
        mismatches.min_by_key(|mismatch| mismatch.host)
    }

    /// The call of the first caller, in words.
    pub fn first(&self, key: Key) -> Option<String> {
        self.open.get(&key).map(|agreement| agreement.first.describe())
    }

    /// Forgets the collective of a report if every member has completed it, and returns it then.
    pub fn end(&mut self, report: &AgreementReport) -> Option<Key> {
        let over = self.open.get(&report.key).is_some_and(|agreement| agreement.left == agreement.first.claim.size);
        over.then(|| {
            self.open.remove(&report.key);
            report.key
        })
    }

    /// A collective of `job` that some members of its communicator have never called: first by `order`. The collective, the
    /// first call in words, and how many called it. To be asked when the job has ended.
    pub fn deserted(&self, job: JobId, order: impl Fn(u32) -> u32) -> Option<(Key, String, u32)> {
        let of_job = self.open.iter().filter(|((of, ..), _)| *of == job);
        let deserted = of_job.filter(|(_, agreement)| agreement.arrived < agreement.first.claim.size);
        let (&key, agreement) = deserted.min_by_key(|((_, context, number), _)| (order(*context), *number))?;
        Some((key, agreement.first.describe(), agreement.arrived))
    }
}

impl Agreement {
    fn new(first: First, unreported: bool) -> Self {
        Self {
            first,
            unreported,
            arrived: 0,
            left: 0,
            new: (0, 0, 0),
            changed: false,
            bids: Vec::new(),
            groups: FxHashMap::default(),
        }
    }

    fn group(&self, color: i32) -> Arc<[u32]> {
        let mut chosen: Vec<_> = self.bids.iter().filter(|bid| bid.0 == color).collect();
        chosen.sort_unstable();
        chosen.into_iter().map(|bid| bid.3).collect()
    }
}
