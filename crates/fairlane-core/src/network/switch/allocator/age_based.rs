//! Age-based allocation: each output grants, and each input accepts, the packet that was injected first (D. Abts, D. Weisser,
//! "Age-based packet arbitration in large-radix k-ary n-cubes", SC 2007).
//!
//! Where paths merge one after the other, round robin halves the share of distant sources at each merge (the parking-lot
//! problem); by age all sources have the same share.

use schemars::schema_for;

use super::{Allocator, Allocators, CrossbarRequest, Entry};
use crate::table::{Kind, NoParams};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "age_based",
    summary: "the packet that was injected first",
    schema: || schema_for!(NoParams),
    build: |json, ()| {
        NoParams::check(Allocators::PATH, json)?;
        Ok(Box::new(AgeBased))
    },
};

struct AgeBased;

impl Allocator for AgeBased {
    fn rank(&self, request: &CrossbarRequest, _distance: u32) -> u64 {
        request.injected.0
    }
}
