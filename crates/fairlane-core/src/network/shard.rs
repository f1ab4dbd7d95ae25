//! A shard: the hosts, NICs, switches and ports of a part of the fabric, or of all of it, and how they run through a window, which is at
//! most one link latency (see [`crate::kernel`]). The windows follow one another in `windows`.
//!
//! In a window each host runs first, alone, through its events in order of time, and soon after it its NIC's port if it hands
//! messages over; then, with adaptive routing or input-queued switches, the switches route what arrives at them; then each
//! other port that has something to do runs, alone (the ports of an input-queued switch together with the switch). What a port
//! sends arrives in a later window, so the order in which hosts and ports run changes no result.
//!
//! Hosts and ports have numbers of their own in a shard: 0, 1, 2 ... in order of their ids. With one shard these are
//! the ids. What leaves a shard is [`Mail`](super::exchange::Mail).

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

use super::config::Config;
use super::endpoint::Endpoint;
use super::features::Instance;
use super::in_flight::{AtSwitch, HOSTS, InFlight, NetworkCalendar, PORTS};
use super::index::{HostIdx, PacketIdx, PortIdx};
use super::naming::NO_SWITCH;
use super::observation::Observation;
use super::packet::{Delivery, Injection};
use super::partition::Partition;
use super::plan::Plan;
use super::port::{ActivePort, Arrival, DOWN, Lane, Port, each_lane, kind};
use super::prefetch::{INJECTING, LARGE, Prefetch};
use super::switch::{Crossbars, Sorting};
use crate::error::RunError;
use crate::fault::LinkErrors;
use crate::ids::{HostId, LinkId, SwitchId, VirtualLane};
use crate::kernel::{Indexed, Mask};
use crate::qos::arbiter::Arbitration;
use crate::topology::Graph;
use crate::units::{Instant, Picoseconds};

/// The error that ended the run of a host, and the id of the host.
pub(super) type Failed = (HostId, RunError);

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

impl Shard {
    /// Runs one window. After an error the window is run to its end all the same, so that what has been measured does not
    /// depend on the order of hosts; of several errors, that of the first host is returned.
    pub(super) fn run_window<I: Instance, E: Endpoint + Prefetch>(
        &mut self,
        window: u64,
        endpoint: &mut E,
    ) -> Result<(), Failed> {
        self.in_flight.calendar.open(window);
        self.in_flight.take_due();
        let until = self.in_flight.calendar.opening(window + 1);
        let result = self.run_hosts::<I, E>(until, endpoint);
        if self.config.fabric.by_switch {
            self.run_switches::<I>(until);
        }
        self.run_ports::<I>(until);
        self.in_flight.calendar.close();
        self.last_due = window;
        result
    }

    fn run_hosts<I: Instance, E: Endpoint + Prefetch>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
    ) -> Result<(), Failed> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.in_flight.calendar.take(HOSTS, &mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for (place, &host) in hosts.iter().enumerate() {
            if large {
                self.prefetch_hosts::<I, E>(&hosts, place, endpoint);
            }
            if let Err(error) = self.run_host::<I, E>(host, until, endpoint, large) {
                result = result.and(Err((self.config.naming.host_id(host), error)));
            }
            self.run_injecting::<I>(if large { INJECTING } else { 0 }, until, &mut arrivals);
        }
        self.run_injecting::<I>(0, until, &mut arrivals);
        self.scratch.injecting.clear();
        self.scratch.injected = 0;
        self.scratch.arrivals = arrivals;
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<I: Instance>(&mut self, until: Instant) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        let mut to_hosts = std::mem::take(&mut self.scratch.to_hosts);
        self.in_flight.calendar.take_split(PORTS, &self.to_hosts, &mut to_hosts, &mut ports);
        // In ascending order: first the NICs' ports.
        let nics = ports.partition_point(|&port| port < self.config.naming.nics);
        self.run_each::<I, { kind::NIC }>(&ports[..nics], until);
        if self.config.has::<I>().input_queued {
            self.run_crossbars::<I>([&ports[nics..], &to_hosts], until);
        } else {
            self.run_each::<I, { kind::TO_SWITCH }>(&ports[nics..], until);
            self.run_each::<I, { kind::TO_HOST }>(&to_hosts, until);
        }
        self.scratch.to_hosts = to_hosts;
        self.scratch.ports = ports;
    }

    fn run_each<I: Instance, const KIND: u8>(&mut self, ports: &[PortIdx], until: Instant) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let large = self.ports.len() > LARGE;
        for (place, &port) in ports.iter().enumerate() {
            if large {
                self.prefetch_ports::<I, KIND>(ports, place);
            }
            self.run_port::<I, KIND>(port, until, &mut arrivals);
        }
        self.scratch.arrivals = arrivals;
    }

    /// Runs one port through the open window.
    #[inline(always)]
    pub(super) fn run_port<I: Instance, const KIND: u8>(
        &mut self,
        port: PortIdx,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
    ) {
        let mut first = self.in_flight.inboxes.take(self.in_flight.calendar.window(), port);
        if first.is_none() || !self.active_port::<I, KIND>(port).pass(&mut first, until) {
            self.run_queues::<I, KIND>(port, first, until, arrivals);
        }
    }

    /// A packet that has been routed joins its port, which first decides what comes before; nothing else arrives there before `next`.
    #[inline(always)]
    pub(super) fn join<I: Instance, const KIND: u8>(&mut self, port: PortIdx, packet: PacketIdx, next: Instant) {
        let mut first = packet;
        if !self.active_port::<I, KIND>(port).pass(&mut first, next) {
            self.join_queue::<I, KIND>(port, first, next);
        }
    }

    /// The general case of [`Shard::join`]. The port runs once more at the end of the window.
    #[inline(never)]
    fn join_queue<I: Instance, const KIND: u8>(&mut self, port: PortIdx, first: PacketIdx, next: Instant) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let mut active = self.active_port::<I, KIND>(port);
        active.sort(first, &mut arrivals);
        active.advance(next, &mut arrivals);
        if active.port.waiting != 0 {
            self.in_flight.calendar.wake_near(PORTS, port, self.in_flight.calendar.window());
        }
        self.scratch.arrivals = arrivals;
    }

    /// The general case of [`Shard::run_port`]: packets queue or wait for credits. A function of its own, so that the common
    /// case stays in registers.
    #[inline(never)]
    fn run_queues<I: Instance, const KIND: u8>(
        &mut self,
        port: PortIdx,
        first: PacketIdx,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
    ) {
        self.active_port::<I, KIND>(port).run(first, until, arrivals);
    }

    #[inline(always)]
    pub(super) fn active_port<I: Instance, const KIND: u8>(&mut self, number: PortIdx) -> ActivePort<'_, I, KIND> {
        ActivePort {
            number,
            port: &mut self.ports[number],
            lanes: &mut self.lanes,
            base: number.index() * self.config.fabric.lanes,
            opening: self.in_flight.calendar.opened(),
            arbiter: &mut *self.arbiter,
            config: &self.config,
            in_flight: &mut self.in_flight,
            observation: &mut self.observation,
            instance: PhantomData,
        }
    }
}
