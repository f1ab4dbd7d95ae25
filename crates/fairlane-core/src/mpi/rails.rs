//! Which of its host's adapters a message goes through, where a host has several.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messaging::Messaging;
use super::transfer::Stage;
use crate::ids::{JobId, Rank};
use crate::network::Injection;
use crate::units::Bytes;

/// How a job's messages are shared among the rails. The parts of a rendezvous are messages of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum RailPolicy {
    /// Each rank sends its messages over one rail after the other.
    RoundRobin,
    /// Payloads of more than `above` bytes are cut into equal parts, one for each rail, and have come when all of them
    /// have; other messages are sent round robin.
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
    /// One rail for all.
    Only {
        /// Its number.
        only: u8,
    },
}

impl RailPolicy {
    /// Whether messages from one rank to another can overtake each other, on this many rails.
    fn overtakes(&self, rails: u8) -> bool {
        rails > 1 && matches!(self, Self::RoundRobin | Self::Stripe { .. })
    }

    /// The rail, if it is the same for all messages.
    fn constant(&self, rails: u8) -> Option<u8> {
        match self {
            Self::Only { only } => Some(*only),
            _ => (rails == 1).then_some(0),
        }
    }
}

/// The policies of all jobs, and the next rails of a shard's ranks.
#[derive(Clone, Debug)]
pub(super) struct Rails {
    /// Policy and number of rails by job.
    jobs: Arc<[(RailPolicy, u8)]>,
    /// The next rail in turn, by rank.
    turns: Vec<u8>,
    /// All messages of all jobs go over rail 0.
    trivial: bool,
}

impl Rails {
    /// The policies of jobs of this many ranks in all.
    pub fn new(jobs: Arc<[(RailPolicy, u8)]>, ranks: usize) -> Self {
        let trivial = jobs.iter().all(|(policy, rails)| policy.constant(*rails) == Some(0));
        Self { jobs, turns: vec![0; if trivial { 0 } else { ranks }], trivial }
    }

    /// Whether all messages of all jobs go over rail 0.
    #[inline]
    pub fn trivial(&self) -> bool {
        self.trivial
    }

    /// Whether messages from one rank to another can overtake each other.
    pub fn overtake(&self) -> bool {
        self.jobs.iter().any(|(policy, rails)| policy.overtakes(*rails))
    }

    fn next(&mut self, rank: u32, rails: u8) -> u8 {
        let turn = &mut self.turns[rank as usize];
        let rail = *turn;
        *turn = (rail + 1) % rails;
        rail
    }
}

impl Messaging {
    /// Hands a message of a transfer, which `from` sends, to the network, by the job's policy.
    #[inline(never)]
    pub(super) fn send_over_rails(
        &mut self,
        injection: Injection,
        transfer: u32,
        from: u32,
        [sender, receiver]: [Rank; 2],
    ) {
        let JobId(job) = injection.job;
        let (ref policy, rails) = self.rails.jobs[usize::from(job)];
        let of_rank = |rank: Rank| u8::try_from(rank.0 % u32::from(rails)).expect("invariant: at most 255 rails");
        let payload = Stage::of(injection.stage).is_payload();
        let rail = match *policy {
            RailPolicy::Stripe { above } if rails > 1 && payload && injection.bytes > above => {
                self.send_parts(injection, transfer, rails);
                return;
            }
            RailPolicy::RoundRobin | RailPolicy::Stripe { .. } => self.rails.next(from, rails),
            RailPolicy::ByDestination => of_rank(receiver),
            RailPolicy::BySource { ref ranks } => ranks.get(sender.index()).copied().unwrap_or_else(|| of_rank(sender)),
            RailPolicy::Only { only } => only,
        };
        self.outbox.push(Injection { rail, ..injection });
    }

    /// Hands a payload over in parts that differ by a byte at most, none of them empty.
    fn send_parts(&mut self, whole: Injection, transfer: u32, rails: u8) {
        let bytes = whole.bytes.0;
        let parts = u8::try_from(bytes).unwrap_or(u8::MAX).min(rails);
        self.jobs[whole.job.index()].in_flight += i64::from(parts) - 1;
        self.transfers[transfer].await_parts(parts);
        let end = |part: u8| {
            let end = u128::from(bytes) * u128::from(part) / u128::from(parts);
            u64::try_from(end).expect("invariant: no more than the whole")
        };
        for rail in 0..parts {
            self.outbox.push(Injection { rail, bytes: Bytes(end(rail + 1) - end(rail)), ..whole });
        }
    }
}
