//! Which of its host's adapters a message goes through, where a host has several.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub(super) struct RailSelection {
    /// Policy and number of rails by job.
    pub jobs: Arc<[(RailPolicy, u8)]>,
    /// The next rail of the round robin, by rank.
    turns: Vec<u8>,
    /// All messages of all jobs go over rail 0.
    trivial: bool,
}

impl RailSelection {
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

    pub fn next(&mut self, rank: u32, rails: u8) -> u8 {
        let turn = &mut self.turns[rank as usize];
        let rail = *turn;
        *turn = (rail + 1) % rails;
        rail
    }
}
