//! Swift: congestion control by delay.
//!
//! As described in G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
//! SIGCOMM 2020, algorithm 1 and section 3.5 (flow-based scaling of the target delay). Names are the paper's, and so
//! are the defaults of `ai`, `beta`, `max_mdf`, `fs_min_cwnd` and `fs_max_cwnd`. The target delay and its range are
//! those of this module: the paper's, for data centres, are longer than it takes to fill a buffer of 64 KiB.
//!
//! **Receivers** acknowledge every packet. The delay of a packet is the time from its start at the NIC to the arrival
//! of the acknowledgement.
//!
//! **Senders** keep a congestion window of packets for each flow. With each acknowledgement they compare the delay with
//! the target:
//!
//! - Delay below the target: the window grows by `ai` / window, which is `ai` packets each round trip; a window below
//!   one packet grows by `ai`.
//! - Otherwise, if the last decrease is at least this delay ago: window := window * (1 - `beta` * (delay - target) /
//!   delay), but at most `max_mdf` of the window at once.
//!
//! A flow with a window of at least one packet sends as long as fewer bytes are not acknowledged. With a window below
//! one packet it has one packet in flight, and packets start at least the last delay divided by the window apart.
//!
//! **Target delay**: `base_target_delay`, and more for flows with small windows, since the queue of a bottleneck is
//! longer if more flows share it: a / sqrt(window) - b, from 0 to `fs_range`, with a and b such that it is `fs_range`
//! at `fs_min_cwnd` and 0 at `fs_max_cwnd`. It also makes shares equal: of two flows of one bottleneck, the one with
//! the larger window has the lower target.
//!
//! Lost and trimmed packets shrink the window by `max_mdf`, at most once in a round trip. Not modelled: delay at hosts, and with it
//! the paper's second window for endpoints.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Entry, Feedback, Flow, FlowSetup, Notice, Notices, Transport, require, require_range};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "swift",
    summary: "Swift (Kumar et al. 2020): a window that follows the measured delay of every packet",
    schema: || schema_for!(Params),
    build: |json, ()| {
        let params: Params = crate::table::params("network.transport", json)?;
        Ok(Box::new(Swift::new(&params)?))
    },
};

/// Swift.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "base_target_delay": 8_000_000, "ai": 0.5, "max_cwnd": 32.0 }]))]
struct Params {
    /// Target delay of a flow with a large window. Default: 4 us.
    base_target_delay: Picoseconds,
    /// Additive increase: packets each round trip. Default: 1.
    #[schemars(range(min = 0.001, max = 1000.0))]
    ai: f64,
    /// Multiplicative decrease: the part of (delay - target) / delay by which the window shrinks. Default: 0.8.
    #[schemars(range(min = 0.001, max = 1.0))]
    beta: f64,
    /// The largest part of a window by which it shrinks at once. Default: 0.5.
    #[schemars(range(min = 0.001, max = 0.999))]
    max_mdf: f64,
    /// The most that the target delay of a flow with a small window has in addition. Default: 2 us.
    fs_range: Picoseconds,
    /// Window up to which the target has all of it, in packets. Default: 0.1.
    #[schemars(range(min = 0.001, max = 1000.0))]
    fs_min_cwnd: f64,
    /// Window from which on the target has nothing of it, in packets. Default: 100.
    #[schemars(range(min = 0.001, max = 1000.0))]
    fs_max_cwnd: f64,
    /// The smallest window, in packets. Default: 0.01.
    #[schemars(range(min = 0.001, max = 1.0))]
    min_cwnd: f64,
    /// The largest window, with which a flow begins, in packets. Default: 64.
    #[schemars(range(min = 1.0, max = 65536.0))]
    max_cwnd: f64,
    /// Virtual lane of acknowledgements. Default: that of the packets that they acknowledge.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            base_target_delay: Picoseconds::from_micros(4),
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            fs_range: Picoseconds::from_micros(2),
            fs_min_cwnd: 0.1,
            fs_max_cwnd: 100.0,
            min_cwnd: 0.01,
            max_cwnd: 64.0,
            notice_vl: None,
        }
    }
}

/// A window of one packet, and the unit of factors.
const ONE: u64 = 1 << 16;

struct Swift {
    target: u64,
    ai: u64,
    beta: u64,
    max_mdf: u64,
    fs_range: u64,
    /// The paper's alpha and beta of the scaling, ps; the latter is subtracted.
    fs_alpha: u64,
    fs_beta: u64,
    min_cwnd: u64,
    max_cwnd: u64,
    notice_vl: Option<u8>,
}

impl Swift {
    fn new(params: &Params) -> Result<Self, BuildError> {
        let &Params { ai, beta, max_mdf, fs_min_cwnd, fs_max_cwnd, min_cwnd, max_cwnd, .. } = params;
        require_range(0.001, 1000.0, &[("ai", ai), ("fs_min_cwnd", fs_min_cwnd), ("fs_max_cwnd", fs_max_cwnd)])?;
        require_range(0.001, 1.0, &[("beta", beta), ("min_cwnd", min_cwnd)])?;
        require_range(0.001, 0.999, &[("max_mdf", max_mdf)])?;
        require_range(1.0, 65536.0, &[("max_cwnd", max_cwnd)])?;
        let below = format!("below fs_max_cwnd ({fs_max_cwnd})");
        require(fs_min_cwnd < fs_max_cwnd, "fs_min_cwnd", fs_min_cwnd, &below)?;
        for (key, value) in [("base_target_delay", params.base_target_delay), ("fs_range", params.fs_range)] {
            require(value.0 <= 1_000_000_000_000, key, value, "at most one second")?;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "positive, and far below 2^53"
        )]
        let fixed = |value: f64| (value * ONE as f64).round() as u64;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "positive, and far below 2^53"
        )]
        let (fs_alpha, fs_beta) = {
            let (low, high) = (fs_min_cwnd.sqrt().recip(), fs_max_cwnd.sqrt().recip());
            let alpha = params.fs_range.0 as f64 / (low - high);
            (alpha.round() as u64, (alpha * high).round() as u64)
        };
        Ok(Self {
            target: params.base_target_delay.0,
            ai: fixed(ai),
            beta: fixed(beta),
            max_mdf: fixed(max_mdf),
            fs_range: params.fs_range.0,
            fs_alpha,
            fs_beta,
            min_cwnd: fixed(min_cwnd),
            max_cwnd: fixed(max_cwnd),
            notice_vl: params.notice_vl,
        })
    }

    /// The target delay at a window, ps.
    fn target(&self, cwnd: u64) -> u64 {
        // The root of a number of units of 2^-32 is one of units of 2^-16.
        let root = (cwnd * ONE).isqrt().max(1);
        let scaled = u128::from(self.fs_alpha) * u128::from(ONE) / u128::from(root);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).saturating_sub(self.fs_beta);
        self.target + scaled.min(self.fs_range)
    }
}

impl Transport for Swift {
    fn feedback(&self) -> Option<Feedback> {
        let vl = self.notice_vl.map(VirtualLane);
        Some(Feedback { marking: None, telemetry: false, notices: Notices::EveryPacket, bytes: Bytes(16), vl })
    }

    fn accepts_losses(&self) -> bool {
        true
    }

    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow> {
        let (cwnd, full) = (self.max_cwnd, setup.full_packet.0);
        Box::new(SwiftFlow { swift: self, cwnd, full, in_flight: 0, rtt: 0, decreased: 0, next: 0 })
    }
}

/// A flow. Times are in ps.
#[derive(Clone)]
struct SwiftFlow {
    swift: Arc<Swift>,
    /// The window, in units of [`ONE`].
    cwnd: u64,
    /// Bytes that are not acknowledged.
    in_flight: u64,
    /// The last round trip.
    rtt: u64,
    /// The last decrease.
    decreased: u64,
    /// The earliest start of the next packet.
    next: u64,
    /// A full packet, bytes.
    full: u64,
}

impl Flow for SwiftFlow {
    fn noticed(&mut self, notice: &Notice, now: Instant) {
        if notice.trimmed {
            self.lost(notice.bytes, now);
            return;
        }
        self.in_flight -= notice.bytes.0;
        let delay = now.0 - notice.sent.0;
        self.rtt = delay;
        let (cwnd, target) = (self.cwnd, self.swift.target(self.cwnd));
        let next = if delay < target {
            cwnd + if cwnd >= ONE { (self.swift.ai * ONE).div_ceil(cwnd) } else { self.swift.ai }
        } else if now.0 - self.decreased >= delay {
            self.decreased = now.0;
            let excess = u128::from(self.swift.beta) * u128::from(delay - target) / u128::from(delay.max(1));
            let factor = ONE - u64::try_from(excess).unwrap_or(ONE).min(self.swift.max_mdf);
            cwnd * factor / ONE
        } else {
            cwnd
        };
        self.cwnd = next.clamp(self.swift.min_cwnd, self.swift.max_cwnd);
    }

    fn lost(&mut self, bytes: Bytes, now: Instant) {
        self.in_flight -= bytes.0;
        if now.0 - self.decreased >= self.rtt {
            self.decreased = now.0;
            let next = self.cwnd * (ONE - self.swift.max_mdf) / ONE;
            self.cwnd = next.clamp(self.swift.min_cwnd, self.swift.max_cwnd);
        }
    }

    fn earliest(&self, now: Instant) -> Instant {
        let full_window = match self.cwnd {
            cwnd if cwnd >= ONE => self.in_flight >= cwnd * self.full / ONE,
            _ => self.in_flight > 0,
        };
        match (full_window, self.cwnd < ONE) {
            (true, _) => Instant::MAX,
            (false, true) => Instant(self.next),
            (false, false) => now,
        }
    }

    fn started(&mut self, bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        self.in_flight += bytes.0;
        self.next = now.0 + (self.rtt * ONE / self.cwnd.max(1)).max(wire_time.0);
    }
}
