//! The adapters that the messages of a job go through, where hosts have several.
//!
//! A transfer keeps to one rail pair, as a library keeps to one queue pair for it: requests, gets and acknowledgements of a rendezvous
//! go over the adapters of its payload. So policies count payloads, not messages of the protocol.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{HostId, JobId, Rank};
use crate::topology::RailMap;
use crate::units::Bytes;

/// How a job's payloads are shared among the rail pairs of two hosts; see [`RailMap`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum RailPolicy {
    /// Each rank sends its payloads over one rail after the other.
    RoundRobin,
    /// Payloads of more than `above` bytes are cut into equal parts, one for each rail, and have come when all of them
    /// have; others are sent round robin.
    Stripe {
        /// The largest payload that is not cut.
        above: Bytes,
    },
    /// By the number of the rank that receives.
    ByDestination,
    /// By the rank that sends: each has a rail of its own.
    BySource {
        /// The rail of each rank; its number modulo the rails if the list is empty.
        #[serde(default)]
        ranks: Vec<u8>,
    },
    /// From the sending rank's own rail to the receiving rank's own rail, as ranks use the adapters next to their accelerators. If
    /// no path joins these, as by source.
    ByRank {
        /// The rail of each rank.
        ranks: Vec<u8>,
    },
    /// One rail for all.
    Only {
        /// Its number.
        only: u8,
        /// The receivers' rail. Default: the one that the sender's is paired with.
        #[serde(default)]
        to: Option<u8>,
    },
}

impl RailPolicy {
    /// Whether messages from one rank to another can overtake each other, where two hosts have several rail pairs.
    fn overtakes(&self) -> bool {
        matches!(self, Self::RoundRobin | Self::Stripe { .. })
    }

    /// Whether messages may go over other adapters than the policy names where these reach each other no more: not where a job
    /// is confined to one adapter.
    fn fails_over(&self) -> bool {
        !matches!(self, Self::Only { .. })
    }

    /// Whether all messages go from the senders' first adapter to that with which it is paired.
    fn first_only(&self) -> bool {
        matches!(self, Self::Only { only: 0, to: None | Some(0) })
    }

    /// The rail pairs of payloads from one rank to another, with their hosts, on a fabric without faults: each has as many of them.
    #[must_use]
    pub fn pairs(&self, map: &RailMap, origin: (Rank, HostId), target: (Rank, HostId)) -> Vec<[u8; 2]> {
        let turns = map.pairs(origin.1, target.1).len().min(if self.overtakes() { usize::from(u8::MAX) } else { 1 });
        (0..=u8::MAX).take(turns).map(|turn| self.choose(map, map, origin, target, turn)).collect()
    }

    /// The adapters of a transfer between ranks, with their hosts. `whole`: the map of the fabric without faults.
    fn choose(
        &self,
        whole: &RailMap,
        map: &RailMap,
        (origin, from): (Rank, HostId),
        (target, to): (Rank, HostId),
        turn: u8,
    ) -> [u8; 2] {
        let pairs = map.pairs(from, to);
        let number = |number: usize| pairs[number % pairs.len()];
        let from_rail = |rail: u8| {
            let pair = pairs.iter().find(|pair| pair[0] == rail).copied();
            pair.unwrap_or_else(|| number(rail.into()))
        };
        let between = |rail: u8, other: u8| {
            if map.joins((from, rail), (to, other)) { [rail, other] } else { from_rail(rail) }
        };
        match self {
            Self::RoundRobin | Self::Stripe { .. } => number(turn.into()),
            Self::ByDestination => number(target.index()),
            Self::BySource { ranks } => match ranks.get(origin.index()) {
                Some(rail) => from_rail(*rail),
                None => number(origin.index()),
            },
            Self::ByRank { ranks } => between(ranks[origin.index()], ranks[target.index()]),
            Self::Only { only, to: Some(other) } => [*only, *other],
            Self::Only { only, to: None } => {
                let pair = whole.pairs(from, to).iter().find(|pair| pair[0] == *only);
                pair.copied().unwrap_or([*only, *only])
            }
        }
    }
}

/// The policies of all jobs, and the next rails of a shard's ranks.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct RailSelection {
    policies: Arc<[RailPolicy]>,
    map: Arc<RailMap>,
    /// The map of the fabric without faults.
    whole: Arc<RailMap>,
    /// The next rail of the round robin, by rank, below [`ROUNDS`].
    next: Vec<u32>,
    ranks: usize,
    /// All messages of all jobs go from rail 0 to rail 0.
    trivial: bool,
}

/// Divisible by all numbers up to 16: so many rounds of any number of rails are whole.
const ROUNDS: u32 = 720_720;

impl RailSelection {
    /// The policies of jobs of this many ranks in all.
    pub fn new(policies: Arc<[RailPolicy]>, map: Arc<RailMap>, ranks: usize) -> Self {
        let first = map.all().all(|pairs| pairs.first() == Some(&[0, 0]));
        let single = first && map.all().all(|pairs| pairs.len() == 1);
        let trivial = single || first && policies.iter().all(RailPolicy::first_only);
        Self { policies, whole: Arc::clone(&map), map, next: vec![0; if trivial { 0 } else { ranks }], ranks, trivial }
    }

    /// Adapters have been lost or have come back.
    pub fn follow(&mut self, map: &Arc<RailMap>) {
        if self.policies.iter().any(RailPolicy::fails_over) {
            (self.map, self.trivial) = (Arc::clone(map), false);
            self.next.resize(self.ranks, 0);
        }
    }

    /// By job: whether its messages may go over other adapters than its policy names.
    pub fn fails_over(&self) -> impl Iterator<Item = bool> {
        self.policies.iter().map(RailPolicy::fails_over)
    }

    /// Whether all messages of all jobs go from rail 0 to rail 0.
    #[inline]
    pub fn trivial(&self) -> bool {
        self.trivial
    }

    /// Whether messages from one rank to another can overtake each other.
    pub fn overtake(&self) -> bool {
        self.policies.iter().any(RailPolicy::overtakes) && self.map.all().any(|pairs| pairs.len() > 1)
    }

    /// The largest payload of a job that is not striped, if others are.
    pub fn stripes_above(&self, job: JobId) -> Option<Bytes> {
        if let RailPolicy::Stripe { above } = self.policies[job.index()] { Some(above) } else { None }
    }

    /// The rail pairs of two hosts.
    pub fn pairs(&self, from: HostId, to: HostId) -> &[[u8; 2]] {
        self.map.pairs(from, to)
    }

    /// The number of the pair of a transfer that a rank of this shard, by its number here, begins.
    pub fn begin(&mut self, rank: u32, pairs: usize) -> u8 {
        let next = &mut self.next[rank as usize];
        let pair = *next as usize % pairs;
        *next = (*next + 1) % ROUNDS;
        u8::try_from(pair).expect("invariant: at most 255 rails")
    }

    /// The adapters of a transfer between ranks, with their hosts. `turn`: see [`RailSelection::begin`].
    pub fn choose(&self, job: JobId, origin: (Rank, HostId), target: (Rank, HostId), turn: u8) -> [u8; 2] {
        self.policies[job.index()].choose(&self.whole, &self.map, origin, target, turn)
    }
}
