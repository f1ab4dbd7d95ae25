//! InfiniBand congestion control.
//!
//! As described in the InfiniBand Architecture Specification, volume 1, annex A10 "Congestion Control", whose names
//! these are.
//!
//! **Switches**: an output that is the root of congestion, with more than a threshold in its queue, sets the FECN bit
//! of packets: of each with probability 1 / (`marking_rate` + 1), and of none smaller than `packet_size`. An output
//! whose lane has lacked credits is a victim and marks nothing, unless it leads to a host (there, Victim_Mask is set).
//!
//! **Receivers** answer a packet with FECN by an acknowledgement with BECN.
//!
//! **Senders** keep an index (CCTI) into the congestion control table (CCT) for each flow. A BECN adds `ccti_increase`
//! to it, up to `ccti_limit`. Every `ccti_timer` takes one from it, down to `ccti_min`. After a packet the flow waits
//! for the packet's wire time multiplied by the entry of the table at its index.
//!
//! # Defaults
//!
//! As described in E. G. Gran et al., "First Experiences with Congestion Control in InfiniBand Hardware", IPDPS 2010.
//! `threshold`, `packet_size`, `ccti_increase` and `ccti_min` are also the defaults of Mellanox's Congestion Control
//! Manager (MLNX_OFED User Manual, Rev 2.2-1.0.1, tables 26 and 27: 0xf, 0x200 bytes, 1, 0). That has 0xa for
//! `marking_rate`, and computes the timer and the table from the number of hosts, in a way that is not published. With
//! the table here and `marking_rate` 10, the indices of many flows grow too slowly to keep the queue of an incast short.
//! OpenSM itself sets none of these unless they are given.
//!
//! The specification leaves to the vendor what the thresholds 1 to 15 mean and what the table holds. Here threshold 1
//! is the whole input buffer of a lane and 15 half of it; entry *i* of the table is *i*²/128 unless it is given.
//!
//! # Fairness
//!
//! Shares become equal because a flow gets BECN in proportion to its rate. Flows with constant delays send
//! periodically, however: if the threshold is only a few packets, the pattern of the periods decides whose packets are
//! above it. With a threshold of four packets, two flows into one host stay at shares of about 35% and 65%, and get
//! equal numbers of BECN. Half of a buffer of 64 KiB is eight packets, and the shares are equal on average.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{
    Entry, Feedback, Flow, FlowSetup, Marking, MarkingOutputs, Notice, Notices, Threshold, Transport, require,
};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::qos::arbiter::MAX_VIRTUAL_LANES;
use crate::units::{Bytes, Instant, Picoseconds};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "ib_cc",
    summary: "InfiniBand congestion control (IBA annex A10): FECN, BECN, and a table of delays at the adapter",
    schema: || schema_for!(Params),
    build: |json, ()| {
        let params: Params = crate::table::params("network.transport", json)?;
        Ok(Box::new(IbCc::new(params)?))
    },
};

/// InfiniBand congestion control.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [
    {},
    { "threshold": 12, "marking_rate": 10, "ccti_increase": 2, "virtual_lanes": [{ "vl": 0, "ccti_min": 1 }] },
    { "ccti_limit": 3, "cct": [0, 64, 128, 256] },
]))]
struct Params {
    /// Threshold of the switches: 0 marks nothing, 1 is the highest, 15 the lowest. Default: 15.
    #[schemars(range(max = 15))]
    threshold: u8,
    /// The mean number of packets that qualify and are left out between two that are marked. Default: 0.
    #[schemars(range(max = 65535))]
    marking_rate: u32,
    /// Smaller packets are not marked; in units of 64 bytes. Default: 8.
    #[schemars(range(max = 255))]
    packet_size: u32,
    /// Added to the index by each BECN. Default: 1.
    #[schemars(range(min = 1, max = 255))]
    ccti_increase: u64,
    /// The highest index. Default: 127.
    #[schemars(range(min = 1, max = 1023))]
    ccti_limit: u64,
    /// The lowest index. Default: 0.
    #[schemars(range(max = 1023))]
    ccti_min: u64,
    /// The index falls by one every so many units of 1.024 us. Default: 150.
    #[schemars(range(min = 1, max = 65535))]
    ccti_timer: u64,
    /// The congestion control table, from index 0 to the highest: delays in 128ths of a packet's wire time.
    cct: Option<Vec<u32>>,
    /// Settings of virtual lanes that have their own, for service levels with lanes of their own.
    virtual_lanes: Vec<OfLane>,
    /// Virtual lane of acknowledgements. Default: that of the packets that they acknowledge.
    notice_vl: Option<u8>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            threshold: 15,
            marking_rate: 0,
            packet_size: 8,
            ccti_increase: 1,
            ccti_limit: 127,
            ccti_min: 0,
            ccti_timer: 150,
            cct: None,
            virtual_lanes: Vec::new(),
            notice_vl: None,
        }
    }
}

/// Settings of flows on one virtual lane; those that are absent are as for other lanes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfLane {
    /// The virtual lane.
    #[schemars(range(max = 31))]
    vl: u8,
    /// Added to the index by each BECN.
    #[serde(default)]
    #[schemars(range(min = 1, max = 255))]
    ccti_increase: Option<u64>,
    /// The highest index.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1023))]
    ccti_limit: Option<u64>,
    /// The lowest index.
    #[serde(default)]
    #[schemars(range(max = 1023))]
    ccti_min: Option<u64>,
    /// The index falls by one every so many units of 1.024 us.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65535))]
    ccti_timer: Option<u64>,
}

/// The parameters of the flows of a virtual lane.
#[derive(Clone, Copy)]
struct Settings {
    increase: u64,
    limit: u64,
    min: u64,
    /// In ps.
    timer: u64,
}

/// The unit of the timer, ps.
const TIMER_UNIT: u64 = 1_024_000;

struct IbCc {
    params: Params,
    settings: Vec<Settings>,
    cct: Vec<u64>,
}

impl IbCc {
    fn new(params: Params) -> Result<Self, BuildError> {
        require(params.threshold <= 15, "threshold", params.threshold, "0 to 15; 0 marks nothing")?;
        let usual = Settings {
            increase: params.ccti_increase,
            limit: params.ccti_limit,
            min: params.ccti_min,
            timer: params.ccti_timer.saturating_mul(TIMER_UNIT),
        };
        let mut settings = vec![usual; MAX_VIRTUAL_LANES];
        for of in &params.virtual_lanes {
            require(usize::from(of.vl) < MAX_VIRTUAL_LANES, "virtual_lanes.vl", of.vl, "a virtual lane, 0 to 31")?;
            settings[usize::from(of.vl)] = Settings {
                increase: of.ccti_increase.unwrap_or(usual.increase),
                limit: of.ccti_limit.unwrap_or(usual.limit),
                min: of.ccti_min.unwrap_or(usual.min),
                timer: of.ccti_timer.map_or(usual.timer, |timer| timer.saturating_mul(TIMER_UNIT)),
            };
        }
        for lane in &settings {
            require((1..=255).contains(&lane.increase), "ccti_increase", lane.increase, "1 to 255")?;
            require((1..=1023).contains(&lane.limit), "ccti_limit", lane.limit, "1 to 1023")?;
            require(lane.min <= lane.limit, "ccti_min", lane.min, "at most ccti_limit")?;
            let units = lane.timer / TIMER_UNIT;
            require((1..=65535).contains(&units), "ccti_timer", units, "1 to 65535, in units of 1.024 us")?;
        }
        let highest = settings.iter().map(|lane| lane.limit).max().unwrap_or(0);
        let entries = highest as usize + 1;
        let cct: Vec<u64> = match &params.cct {
            None => (0..=highest).map(|index| index * index).collect(),
            Some(table) => table.iter().map(|entry| u64::from(*entry)).collect(),
        };
        let allowed = format!("{entries} entries, from index 0 to ccti_limit");
        require(cct.len() == entries, "cct", cct.len(), &allowed)?;
        Ok(Self { params, settings, cct })
    }
}

impl Transport for IbCc {
    fn feedback(&self) -> Option<Feedback> {
        let Params { threshold, marking_rate, packet_size, notice_vl, .. } = self.params;
        // Threshold 1 is the whole buffer, 15 half of it.
        let at = |threshold: u8| Threshold::Sixteenths(16 - (threshold - 1) * 8 / 14);
        let marking = (threshold > 0).then(|| Marking {
            outputs: MarkingOutputs::Roots,
            from: at(threshold),
            to: at(threshold),
            probability: u32::MAX,
            above: u32::MAX / (marking_rate + 1),
            smallest: Bytes(u64::from(packet_size) * 64),
        });
        // The AETH.
        let bytes = Bytes(4);
        Some(Feedback {
            marking,
            telemetry: false,
            notices: Notices::Marked(Picoseconds::ZERO),
            bytes,
            vl: notice_vl.map(VirtualLane),
        })
    }

    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow> {
        let settings = self.settings[setup.vl.index()];
        Box::new(IbFlow { settings, ccti: settings.min, expiries: 0, next: Instant::ZERO, ib_cc: self })
    }
}

/// A flow.
#[derive(Clone)]
struct IbFlow {
    ib_cc: Arc<IbCc>,
    settings: Settings,
    /// The index.
    ccti: u64,
    /// Expiries of the timer so far.
    expiries: u64,
    /// The earliest start of the next packet.
    next: Instant,
}

impl IbFlow {
    /// Takes into account how often the timer, which runs freely, has expired.
    fn expire(&mut self, now: Instant) {
        let expiries = now.0 / self.settings.timer;
        self.ccti = self.ccti.saturating_sub(expiries - self.expiries).max(self.settings.min);
        self.expiries = expiries;
    }
}

impl Flow for IbFlow {
    fn noticed(&mut self, _notice: &Notice, now: Instant) {
        self.expire(now);
        self.ccti = (self.ccti + self.settings.increase).min(self.settings.limit);
    }

    fn earliest(&self, _now: Instant) -> Instant {
        self.next
    }

    fn started(&mut self, _bytes: Bytes, wire_time: Picoseconds, now: Instant) {
        self.expire(now);
        let delay = u128::from(wire_time.0) * u128::from(self.ib_cc.cct[self.ccti as usize]) / 128;
        self.next = now + wire_time + Picoseconds(u64::try_from(delay).unwrap_or(u64::MAX / 4));
    }
}
