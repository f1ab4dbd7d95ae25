//! Link-level flow control alone: a NIC sends what it has as soon as there are credits, as in InfiniBand without congestion
//! control.

use std::sync::Arc;

use schemars::schema_for;

use super::{Entry, Flow, FlowSetup, Transport};
use crate::table::NoParams;
use crate::units::{Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "credits_only",
    summary: "a packet starts as soon as its lane has credits: no end-to-end control",
    schema: || schema_for!(NoParams),
    build: |json, ()| {
        NoParams::check("network.transport", json)?;
        Ok(Box::new(CreditsOnly))
    },
};

/// Never holds a packet back.
#[derive(Clone)]
pub(super) struct CreditsOnly;

impl Transport for CreditsOnly {
    fn paces(&self) -> bool {
        false
    }

    fn flow(self: Arc<Self>, _setup: &FlowSetup) -> Box<dyn Flow> {
        Box::new(Self)
    }
}

impl Flow for CreditsOnly {
    fn earliest(&self, now: Instant) -> Instant {
        now
    }

    fn started(&mut self, _bytes: Bytes, _wire_time: Picoseconds, _now: Instant) {}
}
