//! An arbiter: the lane whose first packet has waited longest at this port. As long as no lane lacks credits, the port serves packets in
//! the order in which they came.

use fairlane_core::ids::VirtualLane;
use fairlane_core::qos::arbiter::{Arbiter, Entry, Lanes, Ports, Queues};
use fairlane_core::table::NoParams;
use fairlane_core::units::{BitsPerSec, Bytes, Instant};
use schemars::schema_for;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "longest_wait",
    summary: "the lane whose first packet has waited longest at this port",
    schema: || schema_for!(NoParams),
    build: |json, _lanes| {
        NoParams::check("qos.arbiter", json)?;
        Ok(Ports::none(LongestWait))
    },
};

struct LongestWait;

impl Arbiter for LongestWait {
    type State = ();

    fn begin(&self, _bandwidth: BitsPerSec) {}

    fn pick(&self, _state: &mut (), ready: Lanes, queues: &dyn Queues, _now: Instant) -> VirtualLane {
        // Of equals the lowest lane.
        ready.iter().min_by_key(|lane| (std::cmp::Reverse(queues.age(*lane)), *lane)).expect("a lane is ready")
    }

    fn sent(&self, _state: &mut (), _lane: VirtualLane, _bytes: Bytes, _now: Instant) {}
}
