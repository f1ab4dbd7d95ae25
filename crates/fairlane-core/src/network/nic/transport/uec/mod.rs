//! Ultra Ethernet's congestion control for lossy lanes (Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, section 3.6).
//!
//! - `control = "sender"`, NSCC: a window that follows marks, delays and trimmed packets, see [`window`].
//! - `control = "receiver"`, RCCC: receivers grant credit at the rate of their link, see [`credit`] and
//!   [`pulls`](super::super::pulls). Outputs to hosts do not mark packets then: receivers know of their own load.
//! - `control = "both"`: a packet needs room in the window and credit. A pull target asks for one packet more than the window at
//!   most, and packets that were trimmed at the last hop do not shrink the window.
//!
//! Every packet is acknowledged. With `path_choice` the sender also selects the paths of its packets, see [`paths`].

mod credit;
mod paths;
mod window;

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{
    Entry, Feedback, Flow, FlowSetup, Label, Marking, MarkingOutputs, Notice, Notices, Pulls, Threshold, Transport,
    bandwidth_delay,
};
use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::units::{Bytes, Instant, Picoseconds};
use credit::Credit;
use paths::{PathChoice, Paths};
use window::Window;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "uec",
    summary: "Ultra Ethernet's congestion control by marks, delays and trimmed packets, for lossy lanes",
    schema: || schema_for!(Params),
    build: |json, ()| Ok(Box::new(Uec::new(crate::table::params("network.transport", json)?)?)),
};

/// Ultra Ethernet's congestion control: by a window, by credits of receivers, or by both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "base_rtt": 14_000_000, "kmin": 37_350, "kmax": 145_250 },
    { "control": "receiver", "oversubscription": 4 }, { "control": "both" }]))]
struct Params {
    /// Round trip of a full packet and its acknowledgement on the longest path of a fabric without load. Default: that of the fabric.
    base_rtt: Option<Picoseconds>,
    /// Queueing delay that is aimed at. Default: three quarters of `base_rtt`.
    target_delay: Option<Picoseconds>,
    /// Queue below which nothing is marked; of degraded links in proportion to their bandwidth. Default: 12 KiB.
    kmin: Bytes,
    /// Queue from which on everything is marked, also in proportion. Default: 48 KiB.
    kmax: Bytes,
    /// Virtual lane of acknowledgements and credits. Default: that of the packets that they answer.
    notice_vl: Option<u8>,
    /// Who controls congestion: the sender by a window (NSCC), the receiver by credits (RCCC), or both. Default: `sender`.
    control: Control,
    /// Oversubscription of the fabric. Above 1, receivers lower the rate of their credits when packets are marked or trimmed in the
    /// fabric, at most to 0.9 divided by this. Only with `control = "receiver"`. Default: 1.
    #[schemars(range(min = 1, max = 90))]
    oversubscription: u32,
    /// Selects the paths of packets: the routing; or the sender, which skips paths that were marked (`bitmap`), recycles those that
    /// were not (`reps`), or both (`mixed`): then with `fabric.routing = { name = "ecmp", by = "packet" }`. Default: `routing`.
    path_choice: PathChoice,
    /// Number of entropies, from which paths are computed, for `path_choice`: a power of two. Default: 64.
    paths: u16,
}

/// Who controls congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Control {
    /// The sender, by a window.
    #[default]
    Sender,
    /// The receiver, by credits.
    Receiver,
    /// Both.
    Both,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            base_rtt: None,
            target_delay: None,
            kmin: Bytes(12 << 10),
            kmax: Bytes(48 << 10),
            notice_vl: None,
            control: Control::Sender,
            oversubscription: 1,
            path_choice: PathChoice::Routing,
            paths: 64,
        }
    }
}

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
        if !(1..=90).contains(&params.oversubscription) {
            return wrong("oversubscription", params.oversubscription.to_string(), "1 to 90");
        }
        if params.oversubscription > 1 && params.control != Control::Receiver {
            return wrong("oversubscription", params.oversubscription.to_string(), "1 unless control = \"receiver\"");
        }
        if !params.paths.is_power_of_two() {
            return wrong("paths", params.paths.to_string(), "a power of two, 1 to 32768");
        }
        Ok(Self { params })
    }
}

impl Transport for Uec {
    fn accepts_losses(&self) -> bool {
        true
    }

    fn feedback(&self) -> Option<Feedback> {
        Some(Feedback {
            marking: Some(Marking {
                outputs: if self.params.control == Control::Sender {
                    MarkingOutputs::All
                } else {
                    MarkingOutputs::ToSwitches
                },
                from: Threshold::Scaled("kmin", self.params.kmin),
                to: Threshold::Scaled("kmax", self.params.kmax),
                probability: u32::MAX,
                above: u32::MAX,
                smallest: Bytes(0),
            }),
            telemetry: false,
            notices: Notices::EveryPacket,
            // All that it says is in the header.
            bytes: Bytes(0),
            vl: self.params.notice_vl.map(VirtualLane),
        })
    }

    fn pulls(&self) -> Option<Pulls> {
        let Params { control, base_rtt, oversubscription, .. } = self.params;
        (control != Control::Sender).then_some(Pulls { base_rtt, oversubscription })
    }

    fn chooses_paths(&self) -> bool {
        self.params.path_choice != PathChoice::Routing
    }

    fn flow(self: Arc<Self>, setup: &FlowSetup) -> Box<dyn Flow> {
        let Params { base_rtt, target_delay, control, path_choice, paths, .. } = self.params;
        let base = base_rtt.unwrap_or(setup.round_trip).max(Picoseconds(1_000));
        let full = setup.full_packet.0;
        let bdp = bandwidth_delay(setup.bandwidth, base, setup.full_packet);
        let base = base.0;
        let target = target_delay.map_or(base * 3 / 4, |delay| delay.0);
        Box::new(UecFlow {
            full,
            window: (control != Control::Receiver).then(|| Window::new(full, bdp, base, target)),
            credit: (control != Control::Sender).then(|| Credit::new(bdp * 3 / 2)),
            paths: (path_choice != PathChoice::Routing).then(|| Paths::new(path_choice, paths)),
        })
    }
}

/// A flow.
#[derive(Clone)]
struct UecFlow {
    /// Bytes of a full packet.
    full: u64,
    window: Option<Window>,
    credit: Option<Credit>,
    paths: Option<Paths>,
}

impl Flow for UecFlow {
    fn offered(&mut self, bytes: Bytes) {
        if let Some(credit) = &mut self.credit {
            credit.offered(bytes.0);
        }
    }

    fn label(&mut self, bytes: Bytes, now: Instant) -> Label {
        let most = self.window.as_ref().map_or(u64::MAX >> 1, |window| window.bytes() + self.full);
        Label {
            pull_target: self.credit.as_ref().map_or(0, |credit| credit.target(bytes.0, most, self.full)),
            entropy: self.paths.as_mut().map(|paths| paths.next(now.0)),
        }
    }

    fn noticed(&mut self, notice: &Notice, now: Instant) {
        if let Some(paths) = &mut self.paths {
            paths.answered(notice);
        }
        if let Some(credit) = &mut self.credit {
            credit.answered(notice.bytes.0, notice.trimmed, notice.pull_target);
        }
        let shrinks = self.credit.is_none() || !notice.last_hop;
        match &mut self.window {
            Some(window) if notice.trimmed => window.lost(notice.bytes.0, shrinks, now.0),
            Some(window) => window.acknowledged(notice, now.0),
            None => {}
        }
    }

    fn pulled(&mut self, granted: u64, trimmed: u32) {
        if let Some(credit) = &mut self.credit {
            credit.pulled(granted, trimmed);
        }
    }

    fn lost(&mut self, bytes: Bytes, now: Instant) {
        if let Some(window) = &mut self.window {
            window.lost(bytes.0, true, now.0);
        }
        if let Some(credit) = &mut self.credit {
            credit.lost(bytes.0);
        }
    }

    fn earliest(&self, now: Instant) -> Instant {
        let may = self.window.as_ref().is_none_or(Window::is_open) && self.credit.as_ref().is_none_or(Credit::is_left);
        if may { now } else { Instant::MAX }
    }

    fn started(&mut self, bytes: Bytes, _wire_time: Picoseconds, _now: Instant) {
        if let Some(window) = &mut self.window {
            window.started(bytes.0);
        }
        if let Some(credit) = &mut self.credit {
            credit.started(bytes.0);
        }
    }
}
