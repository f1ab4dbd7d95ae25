//! An allocator of input-queued switches: of the packets that could cross, the smallest.

use fairlane_core::network::allocator::{Allocator, CrossbarRequest, Entry};
use fairlane_core::table::NoParams;
use schemars::schema_for;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "smallest_first",
    summary: "the smallest packet; of equals in cyclic order",
    schema: || schema_for!(NoParams),
    build: |json, ()| {
        NoParams::check("network.switch.allocator", json)?;
        Ok(Box::new(SmallestFirst))
    },
};

struct SmallestFirst;

impl Allocator for SmallestFirst {
    fn rank(&self, request: &CrossbarRequest, distance: u32) -> u64 {
        request.bytes.0 << 32 | u64::from(distance)
    }
}
