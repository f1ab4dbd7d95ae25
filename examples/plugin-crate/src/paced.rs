//! A transport: every flow has at most a share of the rate of its NIC's link.

use std::sync::Arc;

use fairlane_core::error::BuildError;
use fairlane_core::network::transport::{Entry, Flow, FlowSetup, Transport};
use fairlane_core::table;
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "paced",
    summary: "every flow has at most a share of the rate of its NIC's link",
    schema: || schema_for!(Params),
    build: |json, ()| {
        let Params { percent } = table::params("network.transport", json)?;
        if !(1..=100).contains(&percent) {
            return Err(BuildError::value("network.transport.percent", percent, "1 to 100"));
        }
        Ok(Box::new(Paced { percent }))
    },
};

/// Every flow has at most a share of the rate of its NIC's link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "percent": 50 }]))]
struct Params {
    /// Share of the link's rate, in percent.
    #[schemars(range(min = 1, max = 100))]
    percent: u64,
}

struct Paced {
    percent: u64,
}

impl Transport for Paced {
    fn flow(self: Arc<Self>, _setup: &FlowSetup) -> Box<dyn Flow> {
        Box::new(PacedFlow { percent: self.percent, next: Instant::ZERO })
    }
}

#[derive(Clone)]
struct PacedFlow {
    percent: u64,
    /// The earliest start of its next packet.
    next: Instant,
}

impl Flow for PacedFlow {
    fn earliest(&self, _now: Instant) -> Instant {
        self.next
    }

    fn started(&mut self, _bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        self.next = now + Picoseconds(wire_time.0 * 100 / self.percent);
    }
}
