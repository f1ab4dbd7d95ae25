//! Credit that receivers grant (Ultra Ethernet Specification 1.0, section 3.6.14, RCCC; htsim's `UecPullPacer`): the pacer of a NIC.
//!
//! Packets ask for credit by their pull target ([`Label::pull_target`](super::transport::Label::pull_target)). At 0.99 of the rate of
//! its link a NIC grants, flow after flow, up to 16 KiB to flows that have been granted less than their target; if there is
//! none, to the others, up to a speculative window above their target, so that they may start at once when they have more to
//! send. A grant is a control packet. A flow of which a trimmed packet comes is granted at least a full packet more.
//!
//! In an oversubscribed fabric the rate of grants follows congestion that the receiver sees ([`Pulls::oversubscription`]): see
//! [`PullRate`].

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::flows::{Source, Tag};
use super::pull_rate::PullRate;
use super::transport::{Pulls, bandwidth_delay};
use crate::ids::{JobId, TrafficId};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::index::MessageIdx;
use crate::network::packet::Content;
use crate::network::port::ActivePort;
use crate::units::{Bytes, Instant, Picoseconds};

/// A packet of a flow that asks for credit has come.
#[derive(Clone, Copy)]
pub(in crate::network) struct Asked {
    pub source: Source,
    /// Its traffic, for which its grants are counted.
    pub traffic: TrafficId,
    /// The address of the NIC to which it has come.
    pub to: u32,
    /// Its pull target.
    pub target: u64,
    pub marked: bool,
    pub trimmed: bool,
    /// It was trimmed at the output to the NIC.
    pub last_hop: bool,
}

/// Bytes of a grant at most.
const GRANT: u64 = 16 << 10;
/// A grant of nothing takes the time of so many bytes.
const EMPTY: u64 = 1 << 10;

/// Where a flow waits for credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    None,
    /// It has been granted less than it asks for.
    Active,
    /// It is granted more than that.
    Idle,
}

/// What a flow asks for, and what it has got; bytes since it began.
#[derive(Clone, Copy)]
struct Demand {
    traffic: TrafficId,
    to: u32,
    target: u64,
    granted: u64,
    /// Trimmed packets that have come.
    trimmed: u32,
    list: List,
}

/// A grant: to a flow, its address here, and all that it has been granted; the bytes of this grant.
struct Grant {
    source: Source,
    demand: Demand,
    bytes: u64,
}

/// Grants credit to the flows that come to a NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Pacer {
    demands: FxHashMap<Source, Demand>,
    /// The highest target of each flow among the packets that are on their last link or have come.
    known: FxHashMap<Source, u64>,
    active: VecDeque<Source>,
    idle: VecDeque<Source>,
    /// When the next grant may be made, and whether its message exists.
    next: Instant,
    scheduled: bool,
    rate: PullRate,
}

impl Pacer {
    /// A packet will come: returns the highest target of its flow.
    pub fn know(&mut self, asked: &Asked) -> u64 {
        let known = self.known.entry(asked.source).or_default();
        *known = asked.target.max(*known);
        *known
    }

    fn ask(&mut self, asked: &Asked, full: u64) {
        let begun =
            Demand { traffic: asked.traffic, to: asked.to, target: 0, granted: 0, trimmed: 0, list: List::None };
        let demand = self.demands.entry(asked.source).or_insert(begun);
        demand.to = asked.to;
        demand.target = demand.target.max(asked.target);
        if asked.trimmed {
            demand.trimmed += 1;
            demand.target = demand.target.max(demand.granted + full);
        }
        if demand.target > demand.granted && demand.list != List::Active {
            if demand.list == List::Idle {
                self.idle.retain(|source| *source != asked.source);
            }
            demand.list = List::Active;
            self.active.push_back(asked.source);
        }
    }

    fn has_demand(&self) -> bool {
        !(self.active.is_empty() && self.idle.is_empty())
    }

    /// The next grant. `window`: so much more than their targets idle flows are granted.
    fn grant(&mut self, window: impl Fn(JobId) -> u64) -> Option<Grant> {
        let source = self.active.pop_front().or_else(|| self.idle.pop_front())?;
        let demand = self.demands.get_mut(&source)?;
        let bytes = match demand.list {
            List::Active => (demand.target - demand.granted).min(GRANT),
            _ => GRANT,
        };
        demand.granted += bytes;
        let was_active = demand.list == List::Active;
        demand.list = List::None;
        if demand.target > demand.granted {
            demand.list = List::Active;
            self.active.push_back(source);
        } else if was_active || demand.granted - demand.target < window(source.1) {
            demand.list = List::Idle;
            self.idle.push_back(source);
        }
        Some(Grant { source, demand: *demand, bytes })
    }
}

fn base_rtt(config: &Config, job: JobId, pulls: Pulls) -> Picoseconds {
    let round_trip = config.fabric.round_trips[config.fabric.transport_place(job)];
    pulls.base_rtt.unwrap_or(round_trip).max(Picoseconds(1_000))
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    fn pacer(&mut self) -> &mut Pacer {
        &mut self.in_flight.flows[self.number].pacer
    }

    /// A packet that asks for credit comes at `now`.
    pub(super) fn take_asked(&mut self, asked: &Asked, now: Instant) {
        let (full, job) = (u64::from(self.config.fabric.full), asked.source.1);
        if let Some(pulls) = self.config.fabric.pulls_of(job)
            && pulls.oversubscription > 1
        {
            let (base, seed) = (base_rtt(self.config, job, pulls), self.config.naming.link_of(self.number).0);
            let rate = &mut self.pacer().rate;
            rate.catch_up(now, base, pulls.oversubscription, seed);
            rate.count(asked);
        }
        let pacer = self.pacer();
        pacer.ask(asked, full);
        if pacer.has_demand() && !pacer.scheduled {
            let at = pacer.next.max(now);
            self.schedule_grant(asked.source, asked.traffic, at);
        }
    }

    /// The next grant will be made at instant `at`: its message joins the NIC's queue then. Whom it is for is decided then.
    fn schedule_grant(&mut self, (to, _, vl): Source, traffic: TrafficId, at: Instant) {
        self.pacer().scheduled = true;
        let notice = self.in_flight.notices.insert(Tag { control: true, credit: Some(0), ..Tag::default() });
        // After all other messages of the same instant.
        let message = self.in_flight.notice_message(notice, (to, traffic, vl), 0, (at, 1 << 62));
        self.in_flight.flows[self.number].due.insert((at, 1 << 62, message.into()));
    }

    /// A notice is about to join its queue. If it is a grant, its flow is chosen.
    pub(super) fn fill_grant(&mut self, index: MessageIdx) {
        let message = self.in_flight.messages[index];
        let Content::Notice(notice) = message.content() else { return };
        if self.in_flight.notices[notice].credit.is_none() {
            return;
        }
        let now = message.offered;
        let config = self.config;
        let bandwidth = config.conditions.wires[self.port.wire as usize].bandwidth;
        let full = Bytes(u64::from(config.fabric.full));
        let window = |job| {
            let pulls = config.fabric.pulls_of(job);
            pulls.map_or(0, |pulls| bandwidth_delay(bandwidth, base_rtt(config, job, pulls), full) * 3 / 2)
        };
        let pacer = self.pacer();
        let Grant { source, demand, bytes } = pacer.grant(window).expect("invariant: a grant is for some flow");
        let (to, job, vl) = source;
        let time = bandwidth.serialization(Bytes(if bytes == 0 { EMPTY } else { bytes }));
        pacer.next = now + pacer.rate.stretch(time);
        pacer.scheduled = false;
        let (next, more) = (pacer.next, pacer.has_demand());
        let tag = Tag {
            to: demand.to,
            vl,
            pull: demand.granted,
            credit: Some(demand.trimmed),
            control: true,
            ..Tag::default()
        };
        self.in_flight.notices[notice] = tag;
        let message = &mut self.in_flight.messages[index];
        (message.to, message.traffic) = (to, demand.traffic);
        message.vl = config.fabric.feedback_of(job).and_then(|feedback| feedback.vl).unwrap_or(vl);
        if more {
            self.schedule_grant(source, demand.traffic, next);
        }
    }
}
