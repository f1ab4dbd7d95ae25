//! Round robin: each output grants, and each input accepts, in cyclic order (iSLIP).

use schemars::schema_for;

use super::{Allocator, Allocators, CrossbarRequest, Entry};
use crate::table::{Kind, NoParams};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "round_robin",
    summary: "outputs grant and inputs accept in cyclic order (iSLIP)",
    schema: || schema_for!(NoParams),
    build: |json, ()| {
        NoParams::check(Allocators::PATH, json)?;
        Ok(Box::new(RoundRobin))
    },
};

struct RoundRobin;

impl Allocator for RoundRobin {
    fn rank(&self, _request: &CrossbarRequest, distance: u32) -> u64 {
        distance.into()
    }
}
