//! A shard: the hosts, NICs, switches and ports of a part of the fabric, or of all of it.
//!
//! Hosts, switches and ports have numbers of their own in a shard: 0, 1, 2 ... in order of their ids. With one shard these are
//! the ids. What leaves a shard goes to its [`Outboxes`].

use std::collections::{BTreeMap, VecDeque};

use super::config::Config;
use super::credits::CreditReturns;
use super::in_flight::{InFlight, NetworkCalendar};
use super::mail::Outboxes;
use super::nic::pacing::Flows;
use super::nic::queue_pairs::QueuePairs;
use super::occupancy::Occupancy;
use super::packet::SinglePacket;
use super::partition::Partition;
use super::port::{Arrival, DOWN, Lane, LaneMarking, Port};
use super::probe::Observation;
use super::switch::{Arriving, Crossbars};
use super::{Delivery, Injection, MOST_INBOX_SLOTS, Plan, Totals};
use crate::fault::BitErrorRate;
use crate::ids::LinkId;
use crate::kernel::{Mailboxes, Mask, NONE, Pool};
use crate::qos::arbiter::Arbiter;
use crate::routing::Routing;
use crate::topology::Graph;
use crate::units::{BitsPerSec, Instant, Picoseconds};
use std::sync::Arc;

/// A part of a fabric in operation.
#[derive(Clone)]
pub(super) struct Shard {
    pub config: Config,
    pub ports: Vec<Port>,
    /// By port, then lane.
    pub lanes: Vec<Lane>,
    /// By port, as many words as the arbiter needs.
    pub arbiter_states: Vec<u32>,
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
    pub injecting: VecDeque<u32>,
    /// The hosts that run in the open window.
    pub hosts: Vec<u32>,
    /// The ports that run in it, but for those that lead to hosts.
    pub ports: Vec<u32>,
    /// The ports that run in it and lead to hosts.
    pub to_hosts: Vec<u32>,
    /// The switches at which packets arrive in the open window.
    pub switches: Vec<u32>,
    /// The packets that arrive at the switch that is running.
    pub arriving: Vec<Arriving>,
}

impl Shard {
    /// Shard `number` of a network at rest, at instant zero.
    pub fn new(plan: &Plan, partition: &Partition, number: usize) -> Self {
        let latencies = plan.graph.links().iter().map(|link| link.latency);
        let lookahead = latencies.min().unwrap_or(Picoseconds(1));
        let (adaptive, sees_lanes) = (plan.routing.adaptive(), plan.routing.sees_lanes());
        let sees_others = adaptive && !plan.routing.sees_own_ports_only();
        // An adaptive routing reads loads as they were when the window opened, so its results depend on the width of windows:
        // the model page defines it as a power of two.
        let lookahead = if adaptive { Picoseconds(1 << lookahead.0.ilog2()) } else { lookahead };
        let width = NetworkCalendar::new(lookahead, [0; 3]).width();
        let config = Config::new(plan, width, partition, number);
        let (hosts, ports) = (config.first_nic.len() - 1, config.wire_of.len());
        let switches = if config.by_switch { partition.switches_of(number, &plan.graph) } else { 0 };
        let calendar = NetworkCalendar::new(lookahead, [hosts, ports, switches]);
        let inbox_slots =
            (calendar.window_of(Instant(config.furthest())) + 2).next_power_of_two().min(MOST_INBOX_SLOTS as u64);
        let mut to_hosts = Mask::new(ports);
        (0..).zip(&config.to_nic).filter(|(_, nic)| **nic != NONE).for_each(|(port, _)| to_hosts.insert(port));
        Self {
            ports: config.wire_of.iter().map(|&wire| Port::new(wire)).collect(),
            lanes: (0..ports).flat_map(|_| config.lane_credits()).map(Lane::new).collect(),
            arbiter_states: arbiter_states(&config),
            in_flight: InFlight {
                calendar,
                inboxes: Mailboxes::new(inbox_slots, ports),
                switch_inboxes: Mailboxes::new(inbox_slots, switches),
                at_switches: (0..inbox_slots).map(|_| Vec::new()).collect(),
                occupancy: Occupancy::new(
                    if adaptive { ports } else { 0 },
                    if sees_lanes { config.lanes } else { 0 },
                    sees_others,
                    plan.routing.sees_waiting().then_some(config.full),
                ),
                receive_queues: vec![(NONE, NONE); config.nic_host.len()],
                packets: Pool::default(),
                messages: Pool::default(),
                queue_pairs: QueuePairs::default(),
                returns: vec![CreditReturns::default(); ports],
                next_offer: vec![0; config.gaps.len()],
                deferring: vec![false; hosts],
                flows: vec![Flows::default(); if config.features.paces { config.nic_host.len() } else { 0 }],
                tags: Vec::new(),
                notices: Pool::default(),
                marking: vec![
                    LaneMarking::default();
                    if config.features.measures_queues { ports * config.lanes } else { 0 }
                ],
                given_up: Vec::new(),
                trimmed: 0,
                single_packet: SinglePacket::default(),
                control_packets: SinglePacket::default(),
                sequence: 0,
                totals: Totals::default(),
                out: Outboxes::new(partition.shards()),
            },
            observation: Observation::new(&plan.observe, plan.jobs, ports * config.lanes),
            scratch: Scratch::default(),
            last_due: 0,
            to_hosts,
            crossbars: Crossbars::new(&config),
            config,
        }
    }

    /// Gives links of `graph`, the new one, other bandwidths; those of other shards are passed over. The state of their
    /// ports' arbiters starts anew: they may count in shares of the bandwidth.
    pub fn set_bandwidths(&mut self, graph: &Arc<Graph>, bandwidths: &BTreeMap<LinkId, BitsPerSec>) {
        self.config.graph = Arc::clone(graph);
        self.config.one_rate = false;
        self.config.features.late = true;
        let words = self.config.state_words;
        for (&link, &bandwidth) in bandwidths {
            let place = self.config.partition.link(link);
            let wire = self.config.wire(graph.link(link).latency, bandwidth);
            if place.shard() != self.config.shard {
                continue;
            }
            let port = place.number() as usize;
            self.config.wire_of[port] = wire;
            self.ports[port].wire = wire;
            let state = &mut self.arbiter_states[port * words..][..words];
            state.fill(0);
            self.config.arbiter.begin(state, bandwidth);
        }
        self.config.sufficient = self.config.sufficient_credits(self.in_flight.calendar.width());
    }

    /// See [`Network::set_down`](super::Network::set_down); it is `now`.
    pub fn set_down(&mut self, links: &BTreeMap<LinkId, bool>, now: Instant) {
        for (&link, &down) in links {
            let furthest = self.config.furthest_on(link.0);
            if down {
                self.config.loss.outages.begin(link.0, now.0);
            } else {
                self.config.loss.outages.end(link.0, now.0, furthest);
            }
            let place = self.config.partition.link(link);
            if place.shard() == self.config.shard {
                let port = &mut self.ports[place.number() as usize];
                port.unusual = if down { port.unusual | DOWN } else { port.unusual & !DOWN };
                if port.waiting != 0 {
                    self.in_flight.wake_port(place.number(), now);
                }
            }
        }
    }

    /// See [`Network::set_error_rates`](super::Network::set_error_rates).
    pub fn set_error_rates(&mut self, rates: &BTreeMap<LinkId, BitErrorRate>) {
        self.config.error_rates = rates.iter().map(|(link, rate)| (link.0, rate.0)).collect();
        self.config.features.errors = !rates.is_empty();
        self.config.sufficient = self.config.sufficient_credits(self.in_flight.calendar.width());
    }

    /// See [`Network::set_routing`](super::Network::set_routing).
    pub fn set_routing(&mut self, routing: Arc<dyn Routing>) {
        self.config.routes.replace(routing);
    }

    /// Replaces the arbiter on every port. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: Arc<dyn Arbiter>) {
        self.config.state_words = arbiter.state_words();
        self.config.arbiter = arbiter;
        self.arbiter_states = arbiter_states(&self.config);
    }
}

/// The arbiter's states of all ports, at the beginning.
fn arbiter_states(config: &Config) -> Vec<u32> {
    let mut states = vec![0; config.wire_of.len() * config.state_words];
    for (state, &wire) in states.chunks_exact_mut(config.state_words.max(1)).zip(&config.wire_of) {
        config.arbiter.begin(state, config.wires[wire as usize].bandwidth);
    }
    states
}
