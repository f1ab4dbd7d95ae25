//! Congestion control by network signals for lossy lanes: a window that follows marks, delays and trimmed packets, as the Ultra
//! Ethernet transport has it (Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, section 3.6.13, NSCC).
//!
//! Every packet is acknowledged. The acknowledgement tells whether a switch has marked the packet, and the packet's queueing delay,
//! its round trip less `base_rtt`; below, `target` is the target delay.
//!
//! | | delay below the target | delay at the target or above |
//! |---|---|---|
//! | not marked | the window grows by `alpha (target - delay)` per byte | it grows by `fi` per byte |
//! | marked | it stays | if the mean delay is above the target: it shrinks, once per `base_rtt`, by `gamma (mean delay - target) / mean delay`, at most by half |
//!
//! Growth is accumulated and applied every eight full packets: the window grows by the accumulated sum divided by the window, and
//! once per `base_rtt` also by `eta`. When the acknowledgements of a whole window had delays below a microsecond, the
//! window grows by a quarter of what is acknowledged instead (*fast increase*).
//!
//! When the notice of a trimmed packet arrives, the packet is retransmitted and the window shrinks by its bytes. *Quick adapt*: at
//! the end of each interval of `base_rtt` plus `target`, the window becomes the bytes acknowledged in the interval, if packets
//! were trimmed or lost in it and these bytes are less than an eighth of the largest window.
//!
//! The window begins at its largest value, 1.5 times the bandwidth times `base_rtt`, so that nothing waits for a first round trip.
//! Constants are those of the specification for 100 Gbit/s and 12 us, scaled as it says.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Entry, Feedback, FlowSetup, Marking, MarkingOutputs, Notice, Notices, State, Threshold, Transport};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "uec",
    summary: "Ultra Ethernet's congestion control by marks, delays and trimmed packets, for lossy lanes",
    schema: || schema_for!(Params),
    build: |json, ()| Ok(Box::new(Uec::new(crate::table::params("network.transport", json)?)?)),
};

/// A window by marks, delays and trimmed packets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "base_rtt": 14_000_000, "kmin": 37_350, "kmax": 145_250 }]))]
struct Params {
    /// Round trip of a full packet and its acknowledgement on the longest path of a fabric without load. Default: that of the fabric.
    base_rtt: Option<Picoseconds>,
    /// Queueing delay that is aimed at. Default: three quarters of `base_rtt`.
    target_delay: Option<Picoseconds>,
    /// Queue below which nothing is marked. Default: 12 KiB.
    kmin: Bytes,
    /// Queue from which on everything is marked. Default: 48 KiB.
    kmax: Bytes,
    /// Virtual lane of acknowledgements. Default: that of the packets that they acknowledge.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self { base_rtt: None, target_delay: None, kmin: Bytes(12 << 10), kmax: Bytes(48 << 10), notice_vl: None }
    }
}

/// Words of the state, in bytes and picoseconds. `CWND` counts 1/256 of a byte; `COLLECTED` is growth times the window, both in
/// bytes.
const CWND: usize = 0;
const IN_FLIGHT: usize = 1;
/// The largest window.
const LARGEST: usize = 2;
/// A full packet.
const FULL: usize = 3;
/// Growth that has not taken effect, times the window.
const COLLECTED: usize = 4;
/// Bytes acknowledged since growth took effect last.
const ACKNOWLEDGED: usize = 5;
/// Mean delay.
const DELAY: usize = 6;
/// When the window last shrank because of delays.
const DECREASED: usize = 7;
/// When the time of quick adapt ends, what was acknowledged in it, and whether anything was trimmed or lost.
const ADAPTS: usize = 8;
const ACHIEVED: usize = 9;
const TRIMMED: usize = 10;
/// Bandwidth times `base_rtt`.
const BDP: usize = 11;
/// Bytes acknowledged in a row with hardly any delay.
const FAST: usize = 12;
/// When `eta` was added last.
const ADDED: usize = 13;
/// The round trip without load and the target delay.
const BASE: usize = 14;
const TARGET: usize = 15;
const WORDS: usize = 16;

/// Hardly any delay, ps; and less than the target.
const NO_DELAY: u64 = 1_000_000;

/// A byte, in the units of the window.
const BYTE: u64 = 256;
/// What the specification's constants are for: 100 Gbit/s times 12 us, in bytes.
const REFERENCE: u64 = 150_000;

struct Uec {
    params: Params,
}

impl Uec {
    fn new(params: Params) -> Result<Self, BuildError> {
        let wrong = |key: &str, value: String, allowed: &str| {
            Err(BuildError::value(format!("network.transport.{key}"), value, allowed))
        };
        if let Some(base_rtt) = params.base_rtt.filter(|time| !(1_000..=1_000_000_000_000).contains(&time.0)) {
            return wrong("base_rtt", base_rtt.to_string(), "1 ns to 1 s");
        }
        if let Some(target) = params.target_delay.filter(|time| !(1..=1_000_000_000_000).contains(&time.0)) {
            return wrong("target_delay", target.to_string(), "above zero, at most 1 s");
        }
        if params.kmax < params.kmin {
            return wrong("kmax", params.kmax.0.to_string(), "at least kmin");
        }
        Ok(Self { params })
    }

    /// The window becomes `cwnd`, from one packet to the largest.
    fn set(state: &mut State, cwnd: u64) {
        state[CWND] = cwnd.clamp(state[FULL] * BYTE, state[LARGEST] * BYTE);
    }

    /// Collects growth for the acknowledgement of some bytes with this delay, and lets it take effect.
    fn grow(&self, state: &mut State, bytes: u64, delay: u64) {
        // alpha = 4 MTU a b / target and fi = 5 MTU a, where a and b are the scales of the window and of the target.
        let wide = |value: u64| u128::from(value);
        let scaled = wide(state[FULL]) * wide(state[BDP]) / wide(REFERENCE);
        state[FAST] = if delay < NO_DELAY.min(state[TARGET]) { state[FAST] + bytes } else { 0 };
        if state[FAST] > state[CWND] / BYTE {
            let growth = bytes * BYTE / 4 * state[BDP] / REFERENCE;
            Self::set(state, state[CWND] + growth);
            return;
        }
        let per_byte =
            if delay < state[TARGET] { 4 * scaled * wide(state[TARGET] - delay) / 12_000_000 } else { 5 * scaled };
        let growth = u64::try_from(per_byte * wide(bytes)).unwrap_or(u64::MAX >> 8);
        state[COLLECTED] = state[COLLECTED].saturating_add(growth);
    }

    /// What has been collected takes effect every eight full packets.
    fn apply_growth(&self, state: &mut State, bytes: u64, now: u64) {
        state[ACKNOWLEDGED] += bytes;
        if state[ACKNOWLEDGED] < 8 * state[FULL] {
            return;
        }
        let cwnd = (state[CWND] / BYTE).max(1);
        // eta = 0.15 MTU a.
        let mut eta = 0;
        if now - state[ADDED] >= state[BASE] {
            state[ADDED] = now;
            eta = 15 * state[FULL] * BYTE / 100 * state[BDP] / REFERENCE;
        }
        let growth = u128::from(state[COLLECTED]) * u128::from(BYTE) / u128::from(cwnd);
        let growth = u64::try_from(growth).unwrap_or(u64::MAX >> 8);
        (state[COLLECTED], state[ACKNOWLEDGED]) = (0, 0);
        Self::set(state, state[CWND] + growth + eta);
    }

    /// The time of quick adapt may have ended at `now`.
    fn adapt(&self, state: &mut State, now: u64) {
        if now < state[ADAPTS] {
            return;
        }
        let (achieved, trimmed) = (state[ACHIEVED], state[TRIMMED] > 0);
        if state[ADAPTS] > 0 && trimmed && achieved < state[LARGEST] / 8 {
            Self::set(state, achieved * BYTE);
            (state[COLLECTED], state[ACKNOWLEDGED]) = (0, 0);
        }
        state[ADAPTS] = now + state[BASE] + state[TARGET];
        (state[ACHIEVED], state[TRIMMED]) = (0, 0);
    }
}

impl Transport for Uec {
    fn state_words(&self) -> usize {
        WORDS
    }

    fn accepts_losses(&self) -> bool {
        true
    }

    fn begin(&self, state: &mut State, flow: &FlowSetup) {
        let base = self.params.base_rtt.unwrap_or(flow.round_trip).0.max(1_000);
        state[BASE] = base;
        state[TARGET] = self.params.target_delay.map_or(base * 3 / 4, |delay| delay.0);
        let bits = u128::from(flow.bandwidth.0) * u128::from(base) / 1_000_000_000_000;
        state[FULL] = flow.full_packet.0;
        state[BDP] = u64::try_from(bits / 8).unwrap_or(u64::MAX >> 20).clamp(flow.full_packet.0, 1 << 40);
        state[LARGEST] = state[BDP] * 3 / 2;
        state[CWND] = state[LARGEST] * BYTE;
    }

    fn feedback(&self) -> Option<Feedback> {
        Some(Feedback {
            marking: Some(Marking {
                outputs: MarkingOutputs::All,
                from: Threshold::Bytes("kmin", self.params.kmin),
                to: Threshold::Bytes("kmax", self.params.kmax),
                probability: u32::MAX,
                above: u32::MAX,
                smallest: Bytes(0),
            }),
            notices: Notices::EveryPacket,
            // All that it says is in the header.
            bytes: Bytes(0),
            vl: self.params.notice_vl.map(VirtualLane),
        })
    }

    fn noticed(&self, state: &mut State, notice: &Notice, now: Instant) {
        let (bytes, now) = (notice.bytes.0, now.0);
        if notice.trimmed {
            self.lost(state, notice.bytes, Instant(now));
            return;
        }
        state[IN_FLIGHT] -= bytes;
        state[ACHIEVED] += bytes;
        let delay = (now - notice.sent.0).saturating_sub(state[BASE]);
        // The mean moves by 1/80 of the difference.
        state[DELAY] = (state[DELAY] * 79 + delay) / 80;
        match (notice.marked, delay < state[TARGET]) {
            (false, _) => self.grow(state, bytes, delay),
            (true, true) => {}
            (true, false) if now - state[DECREASED] > state[BASE] && state[DELAY] > state[TARGET] => {
                state[DECREASED] = now;
                // At most by half; gamma = 0.8.
                let share = u128::from(state[DELAY] - state[TARGET]) * 80 / u128::from(state[DELAY]);
                let share = u64::try_from(share).unwrap_or(50).min(50);
                Self::set(state, state[CWND] / 100 * (100 - share));
            }
            (true, false) => {}
        }
        self.apply_growth(state, bytes, now);
        self.adapt(state, now);
    }

    fn lost(&self, state: &mut State, bytes: Bytes, now: Instant) {
        state[IN_FLIGHT] -= bytes.0;
        state[TRIMMED] += bytes.0;
        Self::set(state, state[CWND].saturating_sub(bytes.0 * BYTE));
        self.adapt(state, now.0);
    }

    fn earliest(&self, state: &State, now: Instant) -> Instant {
        if state[IN_FLIGHT] >= state[CWND] / BYTE { Instant::MAX } else { now }
    }

    fn started(&self, state: &mut State, bytes: Bytes, _wire_time: Picoseconds, _now: Instant) {
        state[IN_FLIGHT] += bytes.0;
    }
}
