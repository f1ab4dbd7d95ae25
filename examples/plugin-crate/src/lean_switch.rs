//! A switch architecture: an input-queued switch whose crossbar is no faster than its links, and whose allocator is
//! `smallest_first` of this crate.
//!
//! An architecture chooses a form of [`Architecture`] and its parameters. Queues, credits and arbitration are the simulator's.

use std::sync::Arc;

use fairlane_core::network::{Architecture, InputQueued, InputQueues, SwitchEntry};
use fairlane_core::table;
use fairlane_core::units::Bytes;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::json;

/// The entry.
pub static ENTRY: SwitchEntry = SwitchEntry {
    name: "lean",
    summary: "input-queued, a crossbar at the speed of the links, the smallest packet first",
    schema: || schema_for!(Params),
    build: |json, surroundings| {
        let Params { output_packets } = table::params("network.switch", json)?;
        let allocator = surroundings.allocators.build("smallest_first", &json!(null), ())?;
        let buffer = Bytes(surroundings.full_packet.0 * u64::from(output_packets));
        let switch = InputQueued::new(InputQueues::Voq, Arc::from(allocator), 1, 1.0, buffer, surroundings)?;
        Ok(Architecture::InputQueued(switch))
    },
};

/// An input-queued switch with a slow crossbar.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "output_packets": 1 }]))]
struct Params {
    /// Full packets that the buffer of each lane of an output port holds: 1 to 255.
    #[schemars(range(min = 1))]
    output_packets: u8,
}
