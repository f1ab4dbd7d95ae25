//! UGAL-L: each packet takes the minimal path, or a non-minimal path if that looks cheaper from its first switch.
//!
//! A path costs the load of its first link, for each link between switches that it has: the packet is taken to wait as long at
//! every switch as here.

use schemars::schema_for;

use super::Entry;
use super::non_minimal::{LocalParams, Ugal};

const NAME: &str = "ugal_l";

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the minimal path or a random non-minimal path, by the loads of the source switch's ports",
    schema: || schema_for!(LocalParams),
    build: |graph, json, _| Ugal::build(graph, json, NAME, false),
};
