//! Output-queued switches: a packet is in the queue of its output port one switch latency after its head has arrived. There is
//! no limit on what crosses a switch at a time, so that only links limit the throughput.
//!
//! The buffer in front of the switch, whose free bytes are the credits of the link before, keeps the packet until its tail has
//! left on the next link.

use schemars::schema_for;

use super::{Architecture, Entry, Switches};
use crate::table::{Kind, NoParams};

/// The architecture's line in the table.
pub const ENTRY: Entry = Entry {
    name: "output_queued",
    summary: "an ideal crossbar: packets wait for their output port only",
    schema: || schema_for!(NoParams),
    build: |json, _| NoParams::check(Switches::PATH, json).map(|()| Architecture::OutputQueued),
};
