//! Age-based arbitration: the lane whose packet was injected first (D. Abts, D. Weisser, "Age-based packet arbitration in
//! large-radix k-ary n-cubes", SC 2007).
//!
//! A packet's age counts from the instant at which it was offered to the port of the NIC that sent it, so that it is the same
//! order at every port on its path. Lanes have no weights. Packets of one lane leave a port in the order in which they joined its
//! queue: ages decide among lanes only.

use schemars::schema_for;

use super::{Arbiter, Arbiters, Entry, Lanes, Ports, Queues};
use crate::ids::VirtualLane;
use crate::table::{Kind, NoParams};
use crate::units::{BitsPerSec, Bytes, Instant};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "oldest_first",
    summary: "age-based: the lane whose packet was injected first",
    schema: || schema_for!(NoParams),
    build: |json, _lanes| {
        NoParams::check(Arbiters::PATH, json)?;
        Ok(Ports::none(OldestFirst))
    },
};

struct OldestFirst;

impl Arbiter for OldestFirst {
    type State = ();

    fn begin(&self, _bandwidth: BitsPerSec) {}

    fn pick(&self, _state: &mut (), ready: Lanes, queues: &dyn Queues, _now: Instant) -> VirtualLane {
        // Of equals the lowest lane.
        let oldest = ready.iter().min_by_key(|lane| (std::cmp::Reverse(queues.since_injection(*lane)), *lane));
        oldest.unwrap_or_default()
    }

    fn serve_alone(&self, _state: &mut (), _lane: VirtualLane, _bytes: Bytes, _now: Instant) {}

    fn sent(&self, _state: &mut (), _lane: VirtualLane, _bytes: Bytes, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::units::Picoseconds;

    /// Ages by lane; all else is of no interest.
    struct Ages(Vec<u64>);

    impl Queues for Ages {
        fn packets(&self, _lane: VirtualLane) -> u32 {
            unreachable!("ages alone decide")
        }

        fn bytes(&self, _lane: VirtualLane) -> Bytes {
            unreachable!("ages alone decide")
        }

        fn age(&self, _lane: VirtualLane) -> Picoseconds {
            unreachable!("ages since the injection decide")
        }

        fn since_injection(&self, lane: VirtualLane) -> Picoseconds {
            Picoseconds(self.0[usize::from(lane.0)])
        }
    }

    proptest! {
        #[test]
        fn the_oldest_ready_packet_is_picked(ages in prop::collection::vec(0_u64..6, 8), ready in 1_u32..256) {
            let mut arbiter = crate::qos::arbiter::build("oldest_first", &json!({}), 8).unwrap().at(&[BitsPerSec(1)]);
            let picked = arbiter.pick(0, Lanes(ready), &Ages(ages.clone()), Instant(9));
            let lane = usize::from(picked.0);
            prop_assert!(ready >> lane & 1 == 1);
            for other in (0..8).filter(|other| ready >> other & 1 == 1) {
                prop_assert!(ages[other] < ages[lane] || ages[other] == ages[lane] && other >= lane);
            }
        }
    }
}
