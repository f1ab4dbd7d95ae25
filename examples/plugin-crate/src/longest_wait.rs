//! An arbiter: the lane whose first packet has waited longest at this port. As long as no lane lacks credits, the port serves packets in
//! the order in which they came.

use fairlane_core::ids::VirtualLane;
use fairlane_core::qos::arbiter::{Arbiter, Entry, Lanes, Queues, State};
use fairlane_core::table::NoParams;
use fairlane_core::units::{Bytes, Instant};
use schemars::schema_for;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "longest_wait",
    summary: "the lane whose first packet has waited longest at this port",
    schema: || schema_for!(NoParams),
    build: |json, _lanes| {
        NoParams::check("qos.arbiter", json)?;
        Ok(Box::new(LongestWait))
    },
};

struct LongestWait;

impl Arbiter for LongestWait {
    fn state_words(&self) -> usize {
        0
    }

    fn pick(&self, _state: &mut State, ready: Lanes, queues: &dyn Queues, _now: Instant) -> VirtualLane {
        // Of equals the lowest lane.
        ready.iter().min_by_key(|lane| (std::cmp::Reverse(queues.age(*lane)), *lane)).expect("a lane is ready")
    }

    fn sent(&self, _state: &mut State, _lane: VirtualLane, _bytes: Bytes, _now: Instant) {}
}
