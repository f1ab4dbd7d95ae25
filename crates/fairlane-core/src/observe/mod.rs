//! Records of a run: plain data that the network and MPI fill in and the simulation hands out.

mod departures;
mod interference;
mod latency;
mod marks;
mod operations;
mod ranks;
mod record;

pub use departures::Departure;
pub use interference::{Interference, Waiters};
pub use latency::{Bucket, Histogram, Latencies};
pub use marks::{JobMarks, MOST_MARKS, Mark, PendingMarks};
pub(crate) use operations::{COMPUTE, MARK};
pub use operations::{Operation, Operations, RequestEnd, operation_name};
pub use ranks::{CALLS, CallTime, RankRecord, call_name, call_of};
pub(crate) use ranks::{IRECV, ISEND};
pub use record::{JobRecord, MessageRecord, WaitRecord};

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::units::Picoseconds;

/// Selection of what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Counters of ports and lanes, the interference matrix, and histograms of latency. Switched off only to measure what they cost.
    pub counters: bool,
    /// The interference matrix of every port besides the whole one.
    pub interference_by_port: bool,
    /// By link and lane, how long the packets that came over it wait at the vertex downstream.
    pub onward_waiting: bool,
    /// A record of every packet that starts on a link. Grows with every packet: for small runs.
    pub departures: bool,
    /// A record of messages and waits, and of all packets, in a stretch of time.
    pub record: Option<RecordOf>,
}

/// The jobs that are recorded, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordOf {
    /// The job; every job without it.
    #[serde(default)]
    pub job: Option<JobId>,
    /// The first instant.
    pub from: Picoseconds,
    /// The instant from which on nothing more is recorded.
    pub to: Picoseconds,
    /// Whether the operations of the ranks are recorded, too.
    #[serde(default)]
    pub operations: bool,
}

impl Parameters {
    /// The instants at which departures are kept, in picoseconds.
    pub(crate) fn departs(&self) -> Range<u64> {
        match self.record {
            _ if self.departures => 0..u64::MAX,
            Some(RecordOf { from, to, .. }) => from.0..to.0,
            None => 0..0,
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self { counters: true, interference_by_port: false, onward_waiting: false, departures: false, record: None }
    }
}
