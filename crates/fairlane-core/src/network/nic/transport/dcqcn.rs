//! DCQCN, the congestion control of RoCEv2.
//!
//! As described in Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. Names are the
//! paper's, and so are the defaults, which are for links of 40 Gb/s. The paper does not detail hyper increase: it is that
//! of QCN (IEEE 802.1Qau). `rhai` and `min_rate` are values of this module. The paper's fabric is lossless, by priority flow
//! control; on lossy lanes marks come before losses if `kmax` is below the buffer.
//!
//! **Switches** mark packets (ECN) by the queue of the output: none up to `kmin`, each with a probability that grows
//! linearly to `pmax` at `kmax`, all above `kmax`.
//!
//! **Receivers** answer a marked packet with a CNP unless they have sent one for the flow within the last
//! `cnp_interval`.
//!
//! **Senders** have a current rate, at which the flow sends, a target rate, and alpha, an estimate of congestion. All
//! start at their highest values.
//!
//! - On a CNP: target := current, current := current * (1 - alpha/2), then alpha := (1 - g) * alpha + g. The timers and
//!   the byte counter start anew.
//! - Without a CNP for `alpha_timer`: alpha := (1 - g) * alpha, and again after each further `alpha_timer`.
//! - Increase: a step comes each `increase_timer`, and another each `byte_counter` bytes. Every step moves the current
//!   rate halfway to the target. The steps of the timer and those of the byte counter are counted separately. As long
//!   as neither has had more than five, the target stays (fast recovery). Once one has, each step first raises the
//!   target by `rai` (additive increase). Once both have, each step raises it by `rhai`, times the number of steps
//!   beyond five of the one that has had fewer (hyper increase).
//!
//! Marks depend on the queue alone. A port that waits for credits has a queue as well, and marks the packets of flows
//! that do not cause the congestion. The paper's switches have megabytes of shared buffer: the port at the root of the
//! congestion marks packets long before flow control stops the ports upstream. With small buffers, DCQCN slows down
//! victims.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{
    Entry, Feedback, Flow, FlowSetup, Marking, MarkingOutputs, Notice, Notices, Threshold, Transport, require,
    require_range,
};
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
    /// Weight of the latest CNP, or its absence, in alpha. Default: 1/256.
    #[schemars(range(min = 0.0, max = 1.0))]
    g: f64,
    /// Alpha decreases each time this passes without a CNP. Default: 55 us.
    alpha_timer: Picoseconds,
    /// An increase step comes each time this passes. Default: 55 us.
    increase_timer: Picoseconds,
    /// An increase step comes each time so much has been sent. Default: 10 MB.
    byte_counter: Bytes,
    /// The step of the target rate in additive increase. Default: 40 Mb/s.
    rai: BitsPerSec,
    /// The first step of the target rate in hyper increase; the second is twice that, and so on. Default:
    /// 400 Mb/s.
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

/// One, as alpha is kept.
const ONE: u64 = 1 << 20;

/// Steps of fast recovery, of the timer and of the byte counter.
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
        let Params { kmin, kmax, pmax, g, alpha_timer, increase_timer, byte_counter, min_rate, .. } = params;
        require(kmin <= kmax, "kmin", kmin.0, &format!("at most kmax ({} bytes)", kmax.0))?;
        require_range(0.0, 1.0, &[("pmax", pmax), ("g", g)])?;
        for (key, timer) in [("alpha_timer", alpha_timer), ("increase_timer", increase_timer)] {
            require(timer >= Picoseconds::from_micros(1), key, timer, "at least 1 us")?;
        }
        require(byte_counter.0 > 0, "byte_counter", byte_counter.0, "at least 1 byte")?;
        require(min_rate.0 >= 1_000_000, "min_rate", min_rate.0, "at least 1 Mb/s")?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are from 0 to 1")]
        let (g, pmax) = ((g * ONE as f64) as u64, (pmax * f64::from(u32::MAX)) as u32);
        Ok(Self { params, g, pmax })
    }
}

impl Transport for Dcqcn {
    /// Without priority flow control: it has no window, and limits rates by marks alone.
    fn accepts_losses(&self) -> bool {
        true
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
            telemetry: false,
            notices: Notices::Marked(cnp_interval),
            // The reserved field of a CNP.
            bytes: Bytes(16),
            vl: notice_vl.map(VirtualLane),
        })
    }

    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow> {
        let line = setup.bandwidth.0;
        let flow = DcqcnFlow {
            dcqcn: self,
            rate: line,
            target: line,
            line,
            alpha: ONE,
            alpha_since: 0,
            timer_since: 0,
            by_timer: 0,
            by_bytes: 0,
            sent: 0,
            next: 0,
        };
        Box::new(flow)
    }
}

/// A flow. Rates in bit/s, alpha in units of 2^-20, times in ps.
#[derive(Clone)]
struct DcqcnFlow {
    dcqcn: Arc<Dcqcn>,
    rate: u64,
    target: u64,
    alpha: u64,
    /// When alpha last changed.
    alpha_since: u64,
    /// When the increase timer last expired or started.
    timer_since: u64,
    /// Increase steps of the timer since the last CNP.
    by_timer: u64,
    /// Those of the byte counter.
    by_bytes: u64,
    /// Bytes sent since the last step of the byte counter, or the last CNP.
    sent: u64,
    /// The earliest start of the next packet.
    next: u64,
    /// The link's bandwidth.
    line: u64,
}

impl DcqcnFlow {
    /// A step of the timer or of the byte counter, which has been counted.
    fn increase(&mut self) {
        let (timer, bytes) = (self.by_timer, self.by_bytes);
        if timer.max(bytes) > FAST {
            let beyond = timer.min(bytes).saturating_sub(FAST);
            let step =
                if beyond > 0 { self.dcqcn.params.rhai.0.saturating_mul(beyond) } else { self.dcqcn.params.rai.0 };
            self.target = self.target.saturating_add(step).min(self.line);
        }
        self.rate = (self.rate + self.target).div_ceil(2);
    }

    /// Brings alpha and the rates up to `now`: all expiries of the two timers since the last time.
    fn expire(&mut self, now: Instant) {
        let Params { alpha_timer, increase_timer, .. } = self.dcqcn.params;
        while self.alpha > 0 && self.alpha_since + alpha_timer.0 <= now.0 {
            self.alpha_since += alpha_timer.0;
            self.alpha = self.alpha.saturating_sub((self.alpha * self.dcqcn.g).div_ceil(ONE));
            if self.dcqcn.g == 0 {
                break;
            }
        }
        while self.rate < self.line && self.timer_since + increase_timer.0 <= now.0 {
            self.timer_since += increase_timer.0;
            self.by_timer += 1;
            let before = (self.rate, self.target);
            self.increase();
            if before == (self.rate, self.target) && self.dcqcn.params.rai.0 == 0 {
                break;
            }
        }
    }
}

impl Flow for DcqcnFlow {
    fn noticed(&mut self, _notice: &Notice, now: Instant) {
        if self.rate == self.line && self.target == self.line && self.alpha_since == 0 {
            // The first CNP: until now there was no limit, and alpha is one.
            self.alpha_since = now.0;
        }
        self.expire(now);
        self.target = self.rate;
        let cut = u128::from(self.rate) * u128::from(self.alpha) / u128::from(2 * ONE);
        let floor = self.dcqcn.params.min_rate.0.min(self.line);
        self.rate = (self.rate - u64::try_from(cut).unwrap_or(0)).max(floor);
        self.alpha = (self.alpha * (ONE - self.dcqcn.g) / ONE + self.dcqcn.g).min(ONE);
        self.alpha_since = now.0;
        self.timer_since = now.0;
        self.by_timer = 0;
        self.by_bytes = 0;
        self.sent = 0;
    }

    fn earliest(&self, _now: Instant) -> Instant {
        Instant(self.next)
    }

    fn started(&mut self, bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        if self.rate < self.line {
            self.expire(now);
            self.sent += bytes.0;
            if self.sent >= self.dcqcn.params.byte_counter.0 {
                self.sent -= self.dcqcn.params.byte_counter.0;
                self.by_bytes += 1;
                self.increase();
            }
        }
        self.next = now.0 + BitsPerSec(self.rate).serialization(bytes).0.max(wire_time.0);
    }
}
