//! What is kept of a run: plain records that the machinery fills in and the simulation hands out.

mod departures;
mod interference;
mod ranks;

pub use departures::Departure;
pub use interference::{Interference, Waiters};
pub use ranks::{CALLS, CallTime, RankRecord, call_name, call_of};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Counters of ports and lanes, and the interference matrix. Switched off only to measure what they cost.
    pub counters: bool,
    /// The interference matrix of every port besides the whole one.
    pub interference_by_port: bool,
    /// A record of every packet that starts on a link. Grows with every packet: for small runs.
    pub departures: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { counters: true, interference_by_port: false, departures: false }
    }
}
