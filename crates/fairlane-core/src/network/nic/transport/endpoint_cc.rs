//! Congestion control by the destination, after what is published of Slingshot.
//!
//! D. De Sensi, S. Di Girolamo, K. McMahon, D. Roweth, T. Hoefler, "An In-Depth Analysis of the Slingshot
//! Interconnect", SC20, section II-E: the switches track the packets in flight between every pair of endpoints,
//! distinguish flows that contribute to congestion from those that suffer from it, and apply back-pressure to the
//! former only. The algorithm itself and its parameters are not published; this is a model of the principle, with
//! parameters of its own.
//!
//! Every packet is acknowledged. The ejection port, the output of a switch to a host, marks packets while more than
//! `threshold` bytes wait for the host. The acknowledgement carries the mark, and how many flows have reached that host
//! lately. A flow whose last acknowledgement was marked has at most `window` divided by that number in flight, at least
//! one packet; any other flow sends without limit. Bytes in flight to a congested destination are thus about `window`,
//! in equal shares, or one packet per flow if that is more. Flows to other destinations are not limited.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{
    Entry, Feedback, Flow, FlowSetup, Marking, MarkingOutputs, Notice, Notices, Threshold, Transport, require,
};
use crate::ids::VirtualLane;
use crate::units::{Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "endpoint_cc",
    summary: "per-destination tracking: only flows to a congested host are limited (after what is published of Slingshot)",
    schema: || schema_for!(Params),
    build: |json, ()| {
        let params: Params = crate::table::params("network.transport", json)?;
        require(params.window.0 > 0, "window", params.window.0, "at least 1 byte")?;
        Ok(Box::new(EndpointCc(params)))
    },
};

/// Limits the flows to a congested destination.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "threshold": 16384, "window": 131_072 }]))]
struct Params {
    /// Queue of the output to the host above which its destination is congested. Default: 8 KiB.
    threshold: Bytes,
    /// Bytes in flight to a congested destination, of all its flows together. It must exceed the threshold by the
    /// bandwidth of the destination's link times the round trip. Default: 64 KiB.
    window: Bytes,
    /// Virtual lane of acknowledgements. Default: that of the packets that they acknowledge.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self { threshold: Bytes(8192), window: Bytes(65536), notice_vl: None }
    }
}

struct EndpointCc(Params);

impl Transport for EndpointCc {
    fn feedback(&self) -> Option<Feedback> {
        let threshold = Threshold::Bytes("threshold", self.0.threshold);
        Some(Feedback {
            marking: Some(Marking {
                outputs: MarkingOutputs::ToHosts,
                from: threshold,
                to: threshold,
                probability: u32::MAX,
                above: u32::MAX,
                smallest: Bytes(0),
            }),
            telemetry: false,
            notices: Notices::EveryPacket,
            bytes: Bytes(8),
            vl: self.0.notice_vl.map(VirtualLane),
        })
    }

    fn flow(self: Arc<Self>, _setup: &FlowSetup) -> Box<dyn Flow> {
        Box::new(Tracked { window: self.0.window.0, in_flight: 0, limit: None })
    }
}

/// A flow. In bytes.
#[derive(Clone)]
struct Tracked {
    /// Bytes that all flows to a congested destination may have in flight together.
    window: u64,
    in_flight: u64,
    /// The most that may be in flight.
    limit: Option<u64>,
}

impl Flow for Tracked {
    fn noticed(&mut self, notice: &Notice, _now: Instant) {
        self.in_flight -= notice.bytes.0;
        self.limit = notice.marked.then(|| (self.window / u64::from(notice.flows)).max(1));
    }

    fn lost(&mut self, bytes: Bytes, _now: Instant) {
        self.in_flight -= bytes.0;
    }

    fn earliest(&self, now: Instant) -> Instant {
        if self.limit.is_some_and(|limit| self.in_flight >= limit) { Instant::MAX } else { now }
    }

    fn started(&mut self, bytes: Bytes, _wire_time: Picoseconds, _now: Instant) {
        self.in_flight += bytes.0;
    }
}
