//! A shard: the hosts, NICs, switches and ports of a part of the fabric, or of all of it.
//!
//! Hosts and ports have numbers of their own in a shard: 0, 1, 2 ... in order of their ids. With one shard these are
//! the ids. What leaves a shard is [`Mail`](super::mail::Mail).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::config::Config;
use super::in_flight::{AtSwitch, InFlight, NetworkCalendar};
use super::index::{HostIdx, PortIdx};
use super::naming::NO_SWITCH;
use super::observation::Observation;
use super::packet::{Delivery, Injection};
use super::partition::Partition;
use super::plan::Plan;
use super::port::{Arrival, DOWN, Lane, Port, each_lane};
use super::switch::{Crossbars, Sorting};
use crate::fault::LinkErrors;
use crate::ids::{LinkId, SwitchId, VirtualLane};
use crate::kernel::{Indexed, Mask};
use crate::qos::arbiter::Arbitration;
use crate::topology::Graph;
use crate::units::{Instant, Picoseconds};

/// A part of a fabric in operation.
#[derive(Clone)]
pub(super) struct Shard {
    pub config: Config,
    pub ports: Indexed<PortIdx, Port>,
    /// By port, then lane.
    pub lanes: Vec<Lane>,
    /// The arbiter, with its states of the ports.
    pub arbiter: Box<dyn Arbitration>,
    /// The ports of links that lead to hosts.
    pub to_hosts: Mask,
    pub in_flight: InFlight,
    /// The input-queued switches; none if switches are output-queued.
    pub crossbars: Crossbars,
    pub observation: Observation,
    pub scratch: Scratch,
    /// The last window that this shard has run: the last one in which anything was due here.
    pub last_due: u64,
}

/// Buffers that are reused from window to window.
#[derive(Clone, Default)]
pub(super) struct Scratch {
    pub arrivals: Vec<Arrival>,
    pub deliveries: Vec<Delivery>,
    pub injections: Vec<Injection>,
    /// NICs' ports to which their hosts have handed messages in the open window.
    pub injecting: Vec<PortIdx>,
    /// How many of them have run.
    pub injected: usize,
    /// The hosts that run in the open window.
    pub hosts: Vec<HostIdx>,
    /// The ports that run in it, but for those that lead to hosts.
    pub ports: Vec<PortIdx>,
    /// The ports that run in it and lead to hosts.
    pub to_hosts: Vec<PortIdx>,
    /// The input-queued switches that run in the open window.
    pub switches: Vec<SwitchId>,
    /// The packets that arrive at switches in the open window, sorted.
    pub arriving: Vec<AtSwitch>,
    pub sorting: Sorting,
}

impl Shard {
    /// The shards of a network at rest, at instant zero.
    pub fn all(plan: &Plan, partition: &Partition) -> Vec<Self> {
        let latencies = plan.graph.links().iter().map(|link| link.latency);
        let lookahead = latencies.min().unwrap_or(Picoseconds(1));
        // An adaptive routing reads loads as they were when the window opened, so its results depend on the width of windows:
        // the model page defines it as a power of two.
        let lookahead = if plan.routing.adaptive() { Picoseconds(1 << lookahead.0.ilog2()) } else { lookahead };
        let width = NetworkCalendar::new(lookahead, [0; 3]).width();
        let configs = Config::of_shards(plan, partition, width);
        configs.into_iter().map(|config| Self::new(plan, config, lookahead)).collect()
    }

    fn new(plan: &Plan, config: Config, lookahead: Picoseconds) -> Self {
        let Config { fabric, conditions, naming } = &config;
        let mut to_hosts = Mask::new(naming.ports());
        naming.to_switch.each().filter(|(_, switch)| **switch == NO_SWITCH).for_each(|(port, _)| to_hosts.insert(port));
        let lanes = naming.ports() * fabric.lanes;
        Self {
            ports: conditions.wire_of.rows().iter().map(|&wire| Port::new(wire)).collect(),
            lanes: (0..naming.ports()).flat_map(|_| fabric.lane_credits()).map(Lane::new).collect(),
            arbiter: plan.arbiter.at(&conditions.bandwidths()),
            in_flight: InFlight::new(plan, &config, lookahead),
            observation: Observation::new(plan, lanes),
            scratch: Scratch::default(),
            last_due: 0,
            to_hosts,
            crossbars: Crossbars::new(&config),
            config,
        }
    }

    /// Gives links of `graph`, the new one, other bandwidths; those of other shards are passed over. The state of their
    /// ports' arbiters starts anew: they may count in shares of the bandwidth.
    pub fn set_bandwidths(&mut self, graph: &Arc<Graph>, links: impl Iterator<Item = LinkId>) {
        let Config { fabric, conditions, naming } = &mut self.config;
        let changed = conditions.set_bandwidths((fabric, naming), graph, links, self.in_flight.calendar.width());
        for (port, wire) in changed {
            self.ports[port].wire = wire;
            self.arbiter.begin(port.index(), conditions.wire(wire).bandwidth);
        }
    }

    /// See [`Network::set_down`](super::Network::set_down); it is `now`.
    pub fn set_down(&mut self, links: &BTreeMap<LinkId, bool>, now: Instant) {
        for (&link, &down) in links {
            let furthest = self.config.furthest_on(link);
            if down {
                self.config.conditions.outages.begin(link, now);
            } else {
                self.config.conditions.outages.end(link, now, furthest);
            }
            if let Ok(port) = self.config.port_of(link) {
                let state = &mut self.ports[port];
                state.unusual = if down { state.unusual | DOWN } else { state.unusual & !DOWN };
                if state.waiting != 0 {
                    self.in_flight.wake_port(port, now);
                }
            }
        }
    }

    /// See [`Network::set_storms`](super::Network::set_storms); it is `now`.
    pub fn set_storms(&mut self, storms: &BTreeSet<(LinkId, Option<VirtualLane>)>, now: Instant) {
        let Self { config: Config { fabric, naming, .. }, in_flight, ports, .. } = self;
        if in_flight.pauses.is_empty() {
            return;
        }
        for (port, state) in ports.each() {
            let link = naming.link_of(port);
            for lane in each_lane(fabric.pfc) {
                let storm = [None, Some(fabric.vl_of(lane))].into_iter().any(|vl| storms.contains(&(link, vl)));
                let pauses = &mut in_flight.pauses[port.index() * fabric.lanes + lane.index()];
                if storm != pauses.stormed() {
                    pauses.set_storm(storm, now);
                    if state.waiting != 0 {
                        in_flight.wake_port(port, now);
                    }
                }
            }
        }
    }

    /// See [`Network::set_errors`](super::Network::set_errors).
    pub fn set_errors(&mut self, errors: &BTreeMap<LinkId, LinkErrors>) {
        let Config { fabric, conditions, .. } = &mut self.config;
        conditions.set_errors(fabric, errors, self.in_flight.calendar.width());
    }

    /// Replaces the arbiter on every port. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: &dyn Arbitration) {
        self.arbiter = arbiter.at(&self.config.conditions.bandwidths());
    }
}
