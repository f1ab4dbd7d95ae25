//! DCQCN, the congestion control of RoCEv2.
//!
//! Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015; names and defaults are the paper's
//! (figures 6 and 7, and section 5 for the timer of 55 us). The fabric is lossless, as with priority flow control.
//!
//! A switch marks packets (ECN) by the queue of the output: none below `kmin`, with a probability that grows to `pmax` at `kmax`,
//! all above. The receiver answers marked packets of a flow with at most one CNP each `cnp_interval`. With a CNP the sender's
//! current rate becomes the target rate, the current rate falls by alpha/2 of itself, and alpha becomes (1 - g) alpha + g; each
//! `alpha_timer` without a CNP it becomes (1 - g) alpha. Each `increase_timer` and each `byte_counter` bytes the rate grows: the
//! first five times of both to the middle between current and target rate (fast recovery); then the target rate grows by `rai`
//! before (additive increase), and once both have come more than five times by `rhai` for each time beyond (hyper increase).
//!
//! Marks depend on the queue alone: a port that waits for credits marks what others delay. The paper's switches have megabytes
//! of shared buffer, so that the root marks long before flow control reaches the switch before it. With small buffers victims
//! are slowed.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Entry, Feedback, FlowSetup, Marking, MarkingOutputs, Notice, Notices, State, Threshold, Transport};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "dcqcn",
    summary: "DCQCN of RoCEv2 (Zhu et al. 2015): ECN marks, CNPs, and rates that recover; needs deep buffers",
    schema: || schema_for!(Params),
    build: |json, ()| {
        let params: Params = crate::table::params("network.transport", json)?;
        Ok(Box::new(Dcqcn::new(params)?))
    },
};

/// DCQCN.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [
    { "kmin": 8192, "kmax": 32768, "pmax": 0.1 },
    { "kmin": 8192, "kmax": 65536, "cnp_interval": 4_000_000, "notice_vl": 0 },
]))]
struct Params {
    /// Queue above which packets are marked. Default: 5 KB.
    kmin: Bytes,
    /// Queue above which all packets are marked; at most the buffer of a lane. Default: 200 KB.
    kmax: Bytes,
    /// Probability of a mark at kmax. Default: 0.01.
    #[schemars(range(min = 0.0, max = 1.0))]
    pmax: f64,
    /// The shortest time between two CNPs of a flow. Default: 50 us.
    cnp_interval: Picoseconds,
    /// How fast alpha follows the marks. Default: 1/256.
    #[schemars(range(min = 0.0, max = 1.0))]
    g: f64,
    /// Alpha falls after so long without a CNP. Default: 55 us.
    alpha_timer: Picoseconds,
    /// The rate grows each time this has passed. Default: 55 us.
    increase_timer: Picoseconds,
    /// The rate grows each time so much has been sent. Default: 10 MB.
    byte_counter: Bytes,
    /// Step of the additive increase. Default: 40 Mb/s.
    rai: BitsPerSec,
    /// Step of the hyper increase. Default: 400 Mb/s.
    rhai: BitsPerSec,
    /// The lowest rate. Default: 40 Mb/s.
    min_rate: BitsPerSec,
    /// Virtual lane of CNPs. Default: that of the packets that they answer.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            kmin: Bytes(5_000),
            kmax: Bytes(200_000),
            pmax: 0.01,
            cnp_interval: Picoseconds::from_micros(50),
            g: 1.0 / 256.0,
            alpha_timer: Picoseconds::from_micros(55),
            increase_timer: Picoseconds::from_micros(55),
            byte_counter: Bytes(10_000_000),
            rai: BitsPerSec(40_000_000),
            rhai: BitsPerSec(400_000_000),
            min_rate: BitsPerSec(40_000_000),
            notice_vl: None,
        }
    }
}

/// Words of the state. Rates in bit/s, alpha in units of 2^-20, times in ps.
const RATE: usize = 0;
const TARGET: usize = 1;
const ALPHA: usize = 2;
/// When alpha last changed.
const ALPHA_SINCE: usize = 3;
/// When the timer of the increase last expired or began.
const TIMER_SINCE: usize = 4;
/// Increases by the timer and by bytes since the last CNP.
const BY_TIMER: usize = 5;
const BY_BYTES: usize = 6;
/// Bytes since the last increase by bytes, or the last CNP.
const SENT: usize = 7;
/// The earliest start of the next packet.
const NEXT: usize = 8;
/// The link's bandwidth.
const LINE: usize = 9;
const WORDS: usize = 10;

/// One, as alpha is kept.
const ONE: u64 = 1 << 20;

/// Steps of fast recovery.
const FAST: u64 = 5;

struct Dcqcn {
    params: Params,
    /// In units of 2^-20.
    g: u64,
    /// In units of 2^-32.
    pmax: u32,
}

impl Dcqcn {
    fn new(params: Params) -> Result<Self, BuildError> {
        let wrong = |key: &str, value: String, allowed: &str| {
            Err(BuildError::value(format!("network.transport.{key}"), value, allowed))
        };
        if params.kmin > params.kmax {
            return wrong("kmin", params.kmin.0.to_string(), &format!("at most kmax ({} bytes)", params.kmax.0));
        }
        for (key, value) in [("pmax", params.pmax), ("g", params.g)] {
            if !(0.0..=1.0).contains(&value) {
                return wrong(key, value.to_string(), "0 to 1");
            }
        }
        for (key, value) in [("alpha_timer", params.alpha_timer), ("increase_timer", params.increase_timer)] {
            if value.0 < 1_000_000 {
                return wrong(key, value.to_string(), "at least 1 us");
            }
        }
        if params.byte_counter.0 == 0 {
            return wrong("byte_counter", "0".to_owned(), "at least 1 byte");
        }
        if params.min_rate.0 < 1_000_000 {
            return wrong("min_rate", params.min_rate.0.to_string(), "at least 1 Mb/s");
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are from 0 to 1")]
        let (g, pmax) = ((params.g * ONE as f64) as u64, (params.pmax * f64::from(u32::MAX)) as u32);
        Ok(Self { params, g, pmax })
    }

    /// An increase by the timer or by bytes.
    fn increase(&self, state: &mut State) {
        let (timer, bytes) = (state[BY_TIMER], state[BY_BYTES]);
        if timer.max(bytes) > FAST {
            let beyond = timer.min(bytes).saturating_sub(FAST);
            let step = if beyond > 0 { self.params.rhai.0.saturating_mul(beyond) } else { self.params.rai.0 };
            state[TARGET] = state[TARGET].saturating_add(step).min(state[LINE]);
        }
        state[RATE] = (state[RATE] + state[TARGET]).div_ceil(2);
    }

    /// Takes into account what the timers have done up to `now`.
    fn expire(&self, state: &mut State, now: Instant) {
        let Params { alpha_timer, increase_timer, .. } = self.params;
        while state[ALPHA] > 0 && state[ALPHA_SINCE] + alpha_timer.0 <= now.0 {
            state[ALPHA_SINCE] += alpha_timer.0;
            state[ALPHA] = state[ALPHA].saturating_sub((state[ALPHA] * self.g).div_ceil(ONE));
            if self.g == 0 {
                break;
            }
        }
        while state[RATE] < state[LINE] && state[TIMER_SINCE] + increase_timer.0 <= now.0 {
            state[TIMER_SINCE] += increase_timer.0;
            state[BY_TIMER] += 1;
            let before = (state[RATE], state[TARGET]);
            self.increase(state);
            if before == (state[RATE], state[TARGET]) && self.params.rai.0 == 0 {
                break;
            }
        }
    }
}

impl Transport for Dcqcn {
    fn state_words(&self) -> usize {
        WORDS
    }

    fn begin(&self, state: &mut State, flow: &FlowSetup) {
        for word in [RATE, TARGET, LINE] {
            state[word] = flow.bandwidth.0;
        }
        state[ALPHA] = ONE;
    }

    fn feedback(&self) -> Option<Feedback> {
        let Params { kmin, kmax, cnp_interval, notice_vl, .. } = self.params;
        Some(Feedback {
            marking: Some(Marking {
                outputs: MarkingOutputs::All,
                from: Threshold::Bytes("kmin", kmin),
                to: Threshold::Bytes("kmax", kmax),
                probability: self.pmax,
                above: u32::MAX,
                smallest: Bytes(0),
            }),
            notices: Notices::Marked(cnp_interval),
            // The reserved field of a CNP.
            bytes: Bytes(16),
            vl: notice_vl.map(VirtualLane),
        })
    }

    fn noticed(&self, state: &mut State, _notice: &Notice, now: Instant) {
        if state[RATE] == state[LINE] && state[TARGET] == state[LINE] && state[ALPHA_SINCE] == 0 {
            // The first CNP: until now there was no limit, and alpha is one.
            state[ALPHA_SINCE] = now.0;
        }
        self.expire(state, now);
        state[TARGET] = state[RATE];
        let cut = u128::from(state[RATE]) * u128::from(state[ALPHA]) / u128::from(2 * ONE);
        let floor = self.params.min_rate.0.min(state[LINE]);
        state[RATE] = (state[RATE] - u64::try_from(cut).unwrap_or(0)).max(floor);
        state[ALPHA] = (state[ALPHA] * (ONE - self.g) / ONE + self.g).min(ONE);
        state[ALPHA_SINCE] = now.0;
        state[TIMER_SINCE] = now.0;
        state[BY_TIMER] = 0;
        state[BY_BYTES] = 0;
        state[SENT] = 0;
    }

    fn earliest(&self, state: &State, _now: Instant) -> Instant {
        Instant(state[NEXT])
    }

    fn started(&self, state: &mut State, bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        if state[RATE] < state[LINE] {
            self.expire(state, now);
            state[SENT] += bytes.0;
            if state[SENT] >= self.params.byte_counter.0 {
                state[SENT] -= self.params.byte_counter.0;
                state[BY_BYTES] += 1;
                self.increase(state);
            }
        }
        state[NEXT] = now.0 + BitsPerSec(state[RATE]).serialization(bytes).0.max(wire_time.0);
    }
}
