//! UGAL-G: each packet takes the minimal path, or a non-minimal path if that is cheaper by the loads of all links of both.
//!
//! No switch knows those. It is what UGAL-L is compared with: how well could it decide?

use schemars::schema_for;

use super::Entry;
use super::non_minimal::{Ugal, UgalParams};

const NAME: &str = "ugal_g";

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the minimal path or a random non-minimal path, by the loads of all ports on both",
    schema: || schema_for!(UgalParams),
    build: |graph, json, _| Ugal::build(graph, json, NAME, true),
};
