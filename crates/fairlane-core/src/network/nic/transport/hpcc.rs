//! HPCC: congestion control by in-band telemetry.
//!
//! As described in Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1. Names are the
//! paper's, and so are the defaults of `eta` and `max_stage`.
//!
//! **Switches** write into every packet that starts at one of their outputs how many bytes wait there (`qlen`), how
//! many have been sent (`txBytes`), the time, and the bandwidth `B`. **Receivers** acknowledge every packet, with its telemetry.
//!
//! **Senders** compare the telemetry of each acknowledgement with that of the one before. With the base round trip `T`, a link that
//! has sent `txBytes` in the time `tau` has the utilisation `min(qlen, qlen before) / (B T) + txBytes / (tau B)`. That of the most
//! utilised link is `u`, and the estimate follows it: `U := (1 - tau/T) U + tau/T u`, with `tau` at most `T`. Then, with the reference
//! window `Wc`:
//!
//! - `U` at `eta` or above, or `max_stage` additive steps in a row: `W := Wc eta / U + W_AI`;
//! - otherwise: `W := Wc + W_AI`.
//!
//! `Wc` becomes `W` once per round trip: when a packet that started after the last such change is acknowledged. A flow sends as long as
//! fewer than `W` bytes are not acknowledged, at the rate `W / T`.
//!
//! A flow begins with `W = Wc = B T` of its adapter's link, which `W` never exceeds (the paper has no bound; its simulator bounds the
//! rate), and its first acknowledgement only provides the telemetry to compare with. `W_AI` is `(1 - eta) B T / flows`, the rule of
//! section 3.3; with the default, 81 bytes in the paper's simulations (100 Gb/s, 13 us). With `N` flows on a link its utilisation settles
//! where additive and multiplicative steps cancel, at `eta + N (1 - eta) / flows`.
//!
//! If a packet takes another path than the one before, its telemetry is only stored, as in section 4.1. Not modelled: the bytes of
//! telemetry in packets (42 for five links: see `header`), its limited numbers of bits.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Entry, Feedback, Flow, FlowSetup, LinkTelemetry, Notice, Notices, Transport, require, require_range};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "hpcc",
    summary: "HPCC (Li et al. 2019): a window that follows the load of links, which switches write into packets",
    schema: || schema_for!(Params),
    build: |json, ()| Ok(Box::new(Hpcc::new(crate::table::params("network.transport", json)?)?)),
};

/// HPCC.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "eta": 0.9, "max_stage": 0, "w_ai": 200, "base_rtt": 9_000_000 }]))]
struct Params {
    /// The utilisation that is aimed at. Default: 0.95.
    #[schemars(range(min = 0.1, max = 1.0))]
    eta: f64,
    /// Additive steps in a row after which the next is multiplicative. Default: 5.
    max_stage: u32,
    /// The additive step of a window in a round trip. Default: from `flows`.
    w_ai: Option<Bytes>,
    /// Flows that may share a link, from which `w_ai` follows. Default: 100.
    #[schemars(range(min = 1, max = 65536))]
    flows: u32,
    /// Round trip of a full packet and its acknowledgement on the longest path of a fabric without load. Default: that of the fabric.
    base_rtt: Option<Picoseconds>,
    /// Virtual lane of acknowledgements. Default: that of the packets that they acknowledge.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self { eta: 0.95, max_stage: 5, w_ai: None, flows: 100, base_rtt: None, notice_vl: None }
    }
}

/// One, as utilisations are kept.
const ONE: u64 = 1 << 20;
/// A byte, in the units of windows.
const BYTE: u64 = 256;
/// The largest window, in bytes.
const MOST: u64 = 1 << 40;
/// Telemetry of five links, as the paper counts it.
const TELEMETRY: Bytes = Bytes(42);

struct Hpcc {
    params: Params,
    /// In units of [`ONE`].
    eta: u64,
}

impl Hpcc {
    fn new(params: Params) -> Result<Self, BuildError> {
        require_range(0.1, 1.0, &[("eta", params.eta)])?;
        require((1..=65_536).contains(&params.flows), "flows", params.flows, "1 to 65536")?;
        if let Some(step) = params.w_ai {
            require((1..=MOST).contains(&step.0), "w_ai", step.0, "1 byte to 1 TiB")?;
        }
        if let Some(base) = params.base_rtt {
            require((1_000..=1_000_000_000_000).contains(&base.0), "base_rtt", base, "1 ns to 1 s")?;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0.1 to 1")]
        let eta = (params.eta * ONE as f64).round() as u64;
        Ok(Self { params, eta })
    }
}

impl Transport for Hpcc {
    fn accepts_losses(&self) -> bool {
        true
    }

    fn feedback(&self) -> Option<Feedback> {
        Some(Feedback {
            marking: None,
            telemetry: true,
            notices: Notices::EveryPacket,
            bytes: TELEMETRY,
            vl: self.params.notice_vl.map(VirtualLane),
        })
    }

    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow> {
        let base = self.params.base_rtt.unwrap_or(setup.round_trip).0.max(1_000);
        let largest = (in_flight(setup.bandwidth, base) / 8).clamp(setup.full_packet.0, MOST) * BYTE;
        let step = match self.params.w_ai {
            Some(step) => step.0 * BYTE,
            None => scale(largest, ONE - self.eta, ONE) / u64::from(self.params.flows),
        };
        Box::new(HpccFlow {
            hpcc: self,
            base,
            largest,
            step: step.max(1),
            window: largest,
            reference: largest,
            utilisation: ONE,
            measured: false,
            stage: 0,
            updated: None,
            in_flight: 0,
            last: None,
            path: Vec::new(),
        })
    }
}

/// Bits on a link of this bandwidth in a time, ps.
fn in_flight(bandwidth: BitsPerSec, time: u64) -> u64 {
    scale(bandwidth.0, time, 1_000_000_000_000)
}

/// `value` times `by` over `of`.
fn scale(value: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// A flow. Windows in units of 1/[`BYTE`], utilisations in units of 1/[`ONE`], times in ps.
#[derive(Clone)]
struct HpccFlow {
    hpcc: Arc<Hpcc>,
    /// The paper's `T`.
    base: u64,
    /// The window at the beginning.
    largest: u64,
    /// The paper's `W_AI`.
    step: u64,
    /// The paper's `W`.
    window: u64,
    /// The paper's `Wc`.
    reference: u64,
    /// The paper's `U`.
    utilisation: u64,
    /// `U` has been computed for the notice to come.
    measured: bool,
    /// The paper's `incStage`.
    stage: u32,
    /// When `Wc` was updated last.
    updated: Option<Instant>,
    /// Bytes that are not acknowledged.
    in_flight: u64,
    /// The start of the last packet, its bytes, and its time on the wire.
    last: Option<(Instant, u64, Picoseconds)>,
    /// The telemetry of the last acknowledgement, the paper's `L`.
    path: Vec<LinkTelemetry>,
}

impl HpccFlow {
    /// The utilisation of a link between two telemetries, and the time between them.
    fn utilisation(&self, link: &LinkTelemetry, before: &LinkTelemetry) -> (u64, u64) {
        let time = link.at.0 - before.at.0;
        let queued = scale(8 * link.queued.0.min(before.queued.0), ONE, in_flight(link.bandwidth, self.base));
        let sent = scale(8 * (link.sent.0 - before.sent.0), ONE, in_flight(link.bandwidth, time));
        (queued + sent, time)
    }

    /// The paper's `ComputeWind`; with `update`, once per round trip.
    fn compute_window(&mut self, update: bool) {
        let Hpcc { eta, params } = &*self.hpcc;
        let multiplicative = self.utilisation >= *eta || self.stage >= params.max_stage;
        let window = if multiplicative { scale(self.reference, *eta, self.utilisation) } else { self.reference };
        self.window = window.saturating_add(self.step).min(self.largest);
        if update {
            self.reference = self.window;
            self.stage = if multiplicative { 0 } else { self.stage + 1 };
        }
    }
}

impl Flow for HpccFlow {
    fn measured(&mut self, path: &[LinkTelemetry], _now: Instant) {
        let same = path.len() == self.path.len() && path.iter().zip(&self.path).all(|(new, old)| new.link == old.link);
        if same && path.iter().zip(&self.path).any(|(new, old)| new.at <= old.at) {
            // It has been overtaken.
            return;
        }
        let links = path.iter().zip(&self.path).map(|(link, before)| self.utilisation(link, before));
        if same && let Some((most, time)) = links.reduce(|most, link| if link.0 > most.0 { link } else { most }) {
            let time = time.min(self.base);
            self.utilisation = scale(self.utilisation, self.base - time, self.base) + scale(most, time, self.base);
            self.measured = true;
        }
        path.clone_into(&mut self.path);
    }

    fn noticed(&mut self, notice: &Notice, now: Instant) {
        self.in_flight -= notice.bytes.0;
        let measured = std::mem::take(&mut self.measured);
        let update = self.updated.is_none_or(|updated| notice.sent >= updated);
        if measured {
            self.compute_window(update);
        }
        if update {
            self.updated = Some(now);
        }
    }

    fn lost(&mut self, bytes: Bytes, _now: Instant) {
        self.in_flight -= bytes.0;
    }

    fn earliest(&self, now: Instant) -> Instant {
        if self.in_flight * BYTE >= self.window {
            return Instant::MAX;
        }
        self.last.map_or(now, |(start, bytes, wire_time)| {
            start + Picoseconds(scale(bytes * BYTE, self.base, self.window)).max(wire_time)
        })
    }

    fn started(&mut self, bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        self.in_flight += bytes.0;
        self.last = Some((now, bytes.0, wire_time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;

    const MICROSECOND: u64 = 1_000_000;

    fn flow(params: Params) -> Box<dyn Flow> {
        // 100 Gb/s times 8 us are 100,000 bytes.
        let setup = FlowSetup {
            bandwidth: BitsPerSec(100_000_000_000),
            vl: VirtualLane(0),
            full_packet: Bytes(1000),
            round_trip: Picoseconds(8 * MICROSECOND),
        };
        Arc::new(Hpcc::new(params).unwrap()).flow(&setup)
    }

    /// Telemetry of a link of 100 Gb/s.
    fn link(link: u32, queued: u64, sent: u64, nanos: u64) -> LinkTelemetry {
        let bandwidth = BitsPerSec(100_000_000_000);
        LinkTelemetry {
            link: LinkId(link),
            queued: Bytes(queued),
            sent: Bytes(sent),
            at: Instant(nanos * 1000),
            bandwidth,
        }
    }

    /// Acknowledges a packet of 1000 bytes; returns the pause after a packet that starts then, ns: 1000 bytes `T / W`.
    fn pause_after(flow: &mut dyn Flow, path: &[LinkTelemetry], sent: u64, now: u64) -> f64 {
        let (sent, now) = (Instant(sent * MICROSECOND), Instant(now * MICROSECOND));
        flow.measured(path, now);
        let (bytes, received, flows) = (Bytes(1000), now, 1);
        let (marked, trimmed, last_hop, entropy, pull_target) = (false, false, false, 0, 0);
        let notice = Notice { marked, trimmed, last_hop, entropy, pull_target, bytes, sent, received, flows };
        flow.noticed(&notice, now);
        flow.started(bytes, Picoseconds(80_000), now);
        (flow.earliest(now) - now).0 as f64 / 1000.0
    }

    /// By hand. `T` = 8 us, `B T` = 100,000 bytes, `W_AI` = 5% of it by 100 = 50.
    #[test]
    fn the_window_follows_the_most_utilised_link() {
        let mut flow = flow(Params::default());
        for _ in 0..2 {
            flow.started(Bytes(1000), Picoseconds(80_000), Instant::ZERO);
        }
        // The first acknowledgement changes nothing: 1000 bytes are paced at line rate, 80 ns.
        let pause = pause_after(&mut *flow, &[link(1, 50_000, 0, 0), link(2, 0, 0, 500)], 0, 8);
        assert!((pause - 80.0).abs() < 0.01, "{pause}");
        // 2 us later link 1 has sent 25,000 bytes, all that it can, and the shorter queue was 40,000: u = 0.4 + 1. Link 2 has sent half.
        // U = 3/4 * 1 + 1/4 * 1.4 = 1.1. The packet was sent before the first acknowledgement: Wc stays 100,000.
        let second = [link(1, 40_000, 25_000, 2_000), link(2, 0, 12_500, 2_500)];
        let pause = pause_after(&mut *flow, &second, 1, 10);
        let window = 100_000.0 * 0.95 / 1.1 + 50.0;
        assert!((pause - 1000.0 * 8000.0 / window).abs() < 0.01, "{pause}");
        // 16 us later, more than T: U = u, of link 2, 0.6. Below eta: W = Wc + W_AI, at most B T. It was sent after the first
        // acknowledgement: Wc is updated.
        let third = [link(1, 0, 125_000, 18_000), link(2, 90_000, 132_500, 18_500)];
        let pause = pause_after(&mut *flow, &third, 9, 26);
        assert!((pause - 80.0).abs() < 0.01, "{pause}");
        // All that link 2 can carry in T, and a queue of 90,000 bytes: U = 1.9, W = Wc / 2 + 50.
        let fourth = [link(1, 0, 125_000, 26_000), link(2, 100_000, 232_500, 26_500)];
        let pause = pause_after(&mut *flow, &fourth, 27, 34);
        assert!((pause - 1000.0 * 8000.0 / (50_000.0 + 50.0)).abs() < 0.01, "{pause}");
    }

    /// Five round trips of additive steps, then a multiplicative one although the link is half empty.
    #[test]
    fn a_multiplicative_step_comes_after_max_stage_additive_ones() {
        let mut flow = flow(Params { w_ai: Some(Bytes(1000)), ..Params::default() });
        let mut window = 100_000.0;
        for round in 0..8_u64 {
            flow.started(Bytes(1000), Picoseconds(80_000), Instant(20 * round * MICROSECOND));
            // Overloaded once: three times in the first interval.
            let sent = if round == 0 { 0 } else { 750_000 + (round - 1) * 125_000 };
            let pause = pause_after(&mut *flow, &[link(1, 0, sent, 20_000 * round)], 20 * round, 20 * round + 8);
            window = match round {
                0 => window,
                1 => window * 0.95 / 3.0 + 1000.0,
                7 => window * 0.95 / 0.5 + 1000.0,
                _ => window + 1000.0,
            };
            assert!((pause - 1000.0 * 8000.0 / window).abs() < 0.1, "{round}: {pause}");
        }
    }

    #[test]
    fn telemetry_of_another_path_or_an_older_packet_is_not_compared() {
        let mut flow = flow(Params::default());
        for _ in 0..3 {
            flow.started(Bytes(1000), Picoseconds(80_000), Instant::ZERO);
        }
        for path in [link(1, 0, 0, 100), link(2, 0, 1_000_000, 200), link(2, 0, 0, 150)] {
            let pause = pause_after(&mut *flow, &[path], 0, 8);
            assert!((pause - 80.0).abs() < 0.01, "{pause}");
        }
    }
}
