//! An arbiter: the lane with the most bytes in its queue.

use fairlane_core::ids::VirtualLane;
use fairlane_core::qos::arbiter::{Arbiter, Entry, Lanes, Ports, Queues};
use fairlane_core::table::NoParams;
use fairlane_core::units::{BitsPerSec, Bytes, Instant};
use schemars::schema_for;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "longest_queue",
    summary: "the lane with the most bytes in its queue",
    schema: || schema_for!(NoParams),
    build: |json, _lanes| {
        NoParams::check("qos.arbiter", json)?;
        Ok(Ports::none(LongestQueue))
    },
};

struct LongestQueue;

impl Arbiter for LongestQueue {
    type State = ();

    fn begin(&self, _bandwidth: BitsPerSec) {}

    fn pick(&self, _state: &mut (), ready: Lanes, queues: &dyn Queues, _now: Instant) -> VirtualLane {
        // Of equals the lowest lane.
        ready.iter().min_by_key(|lane| (std::cmp::Reverse(queues.bytes(*lane)), *lane)).expect("a lane is ready")
    }

    fn sent(&self, _state: &mut (), _lane: VirtualLane, _bytes: Bytes, _now: Instant) {}
}
