//! Oldest first: each output grants, and each input accepts, the packet that has waited longest at its input.

use schemars::schema_for;

use super::{Allocator, Allocators, CrossbarRequest, Entry};
use crate::table::{Kind, NoParams};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "oldest_first",
    summary: "the packet that has waited longest at its input",
    schema: || schema_for!(NoParams),
    build: |json, ()| {
        NoParams::check(Allocators::PATH, json)?;
        Ok(Box::new(OldestFirst))
    },
};

struct OldestFirst;

impl Allocator for OldestFirst {
    fn rank(&self, request: &CrossbarRequest, _distance: u32) -> u64 {
        request.joined.0
    }
}
