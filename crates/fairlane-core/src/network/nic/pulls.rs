//! Credit that receivers grant (Ultra Ethernet Specification 1.0, section 3.6.14, RCCC; htsim's `UecPullPacer`): the pacer of a NIC.
//!
//! Packets ask for credit by their pull target ([`Label::pull_target`](super::transport::Label::pull_target)). At 0.99 of the rate of
//! its link a NIC grants, flow after flow, up to 16 KiB to flows that have been granted less than their target; if there is
//! none, to the others, up to a speculative window above their target, so that they may start at once when they have more to
//! send. A grant is a control packet. A flow of which a trimmed packet comes is granted at least a full packet more.
//!
//! In an oversubscribed fabric
//! ([`Pulls::oversubscription`](super::transport::Pulls::oversubscription)) the rate of grants follows congestion that the receiver
//! sees: see [`PullRate`].

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::pull_rate::{Congestion, PullRate};
use crate::ids::{JobId, TrafficId, VirtualLane};
use crate::units::Instant;

/// A flow at its receiver: the sending address, job, virtual lane.
pub(in crate::network) type Source = (u32, JobId, VirtualLane);

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
    pub congestion: Congestion,
}

/// Bytes of a grant at most.
const GRANT: u64 = 16 << 10;

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
pub(super) struct Demand {
    pub traffic: TrafficId,
    pub to: u32,
    target: u64,
    pub granted: u64,
    /// Trimmed packets that have come.
    pub trimmed: u32,
    list: List,
}

/// A grant: to a flow, its address here, and all that it has been granted; the bytes of this grant.
pub(super) struct Grant {
    pub source: Source,
    pub demand: Demand,
    pub bytes: u64,
}

/// Grants credit to the flows that come to a NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Pacer {
    demands: FxHashMap<Source, Demand>,
    /// The highest target of each flow among the packets that are on their last link or have come.
    known: FxHashMap<Source, u64>,
    active: VecDeque<Source>,
    idle: VecDeque<Source>,
    /// When the next grant may be made, and whether its packet exists.
    pub(super) next: Instant,
    pub(super) scheduled: bool,
    pub(super) rate: PullRate,
}

impl Pacer {
    /// A packet will come: returns the highest target of its flow.
    pub fn know(&mut self, asked: &Asked) -> u64 {
        let known = self.known.entry(asked.source).or_default();
        *known = asked.target.max(*known);
        *known
    }

    pub fn ask(&mut self, asked: &Asked, full: u64) {
        let begun =
            Demand { traffic: asked.traffic, to: asked.to, target: 0, granted: 0, trimmed: 0, list: List::None };
        let demand = self.demands.entry(asked.source).or_insert(begun);
        demand.to = asked.to;
        demand.target = demand.target.max(asked.target);
        if asked.congestion.trimmed {
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

    pub fn has_demand(&self) -> bool {
        !(self.active.is_empty() && self.idle.is_empty())
    }

    /// The next grant. `window`: so much more than their targets idle flows are granted.
    pub(super) fn grant(&mut self, window: impl Fn(JobId) -> u64) -> Option<Grant> {
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
