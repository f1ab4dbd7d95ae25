//! The network: what happens to a packet between two hosts.
//!
//! Ports, lanes, credits and NICs as the model page describes them, run window by window (see [`crate::kernel`]).
//!
//! A packet's path through the files: `nic` (injection, segmentation), `port` (queue, arbitration, transmission), `link`,
//! `switch` (adaptive routing), `port` again, `nic` (reassembly). `credits` books the buffers, `probe` observes,
//! `engine` advances time.

mod config;
mod credits;
mod deadlock;
mod endpoint;
mod engine;
mod in_flight;
mod latency;
mod laws;
mod link;
mod nic;
mod occupancy;
mod packet;
mod parameters;
#[allow(dead_code, reason = "the engine runs one shard yet")]
mod partition;
mod port;
mod prefetch;
mod probe;
mod switch;
#[cfg(test)]
mod testing;

use std::collections::VecDeque;
use std::sync::Arc;

pub use endpoint::{Endpoint, Pause};
pub use packet::{Delivery, Injection};
pub use parameters::{Parameters, Switching};
pub use partition::Partition;

use crate::ids::{HostId, LinkId, VirtualLane};
use crate::kernel::{Mailboxes, Mask, NONE, Pool};
use crate::observe::{self, Departure, Interference};
use crate::qos::arbiter::Arbiter;
use crate::routing::Routing;
use crate::topology::Graph;
use crate::units::{Bytes, Instant, Picoseconds};
use config::{Config, narrow};
use credits::CreditReturns;
use in_flight::{InFlight, NetworkCalendar};
use occupancy::Occupancy;
use packet::SinglePacket;
use port::{Arrival, Lane, Port};
use probe::Observation;
use switch::AtSwitch;

/// Windows ahead for which arrivals at ports are listed, at most; those that come later wait in the calendar.
const MOST_INBOX_SLOTS: usize = 32;

/// A fabric in operation.
#[derive(Clone)]
pub struct Network {
    config: Config,
    /// The window that comes after the last one run.
    next_window: u64,
    ports: Vec<Port>,
    /// By port, then lane.
    lanes: Vec<Lane>,
    /// By port, as many words as the arbiter needs.
    arbiter_states: Vec<u32>,
    /// The ports of links that lead to hosts.
    to_hosts: Mask,
    in_flight: InFlight,
    observation: Observation,
    scratch: Scratch,
}

/// What the network has carried so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that started on a link: the unit of the engine's speed.
    pub packet_hops: u64,
    /// Payload handed to NICs.
    pub bytes_injected: u64,
    /// Payload of messages that have come whole and that their hosts have looked at.
    pub bytes_delivered: u64,
    /// Messages handed to NICs.
    pub messages_injected: u64,
    /// Messages that have come whole and that their hosts have looked at; a rank that computes looks when it goes on.
    pub messages_delivered: u64,
}

/// What one port has carried on one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Sum of the packets' waiting times. Divided by the elapsed time: the mean queue length.
    pub waiting: Picoseconds,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: Picoseconds,
    /// Sum of the waiting times, at the switch where the link ends, of the packets that came over it; `None` if that is not
    /// kept.
    pub onward_waiting: Option<Picoseconds>,
    /// Longest queue seen; like all of these zero if counters are not kept. Without them it would not be known either: a port
    /// that no packet waits at takes a shortcut past its queue, and when it can do so depends on when it takes in credits.
    pub max_queue: u32,
}

/// Buffers that are reused from window to window.
#[derive(Clone, Default)]
struct Scratch {
    arrivals: Vec<Arrival>,
    deliveries: Vec<Delivery>,
    injections: Vec<Injection>,
    /// NICs' ports to which their hosts have handed messages in the open window.
    injecting: VecDeque<u32>,
    /// The hosts, and the ports, that run in the open window.
    hosts: Vec<u32>,
    ports: Vec<u32>,
    /// Those of them that lead to hosts.
    to_hosts: Vec<u32>,
    /// The switches that route in the open window.
    switches: Vec<u32>,
    /// What arrives at the switch that runs.
    at_switch: Vec<AtSwitch>,
}

/// The parts of which a network is made.
pub struct Plan {
    /// The fabric.
    pub graph: Arc<Graph>,
    /// Where packets go.
    pub routing: Arc<dyn Routing>,
    /// How lanes share a link.
    pub arbiter: Arc<dyn Arbiter>,
    /// Virtual lanes in use.
    pub virtual_lanes: u8,
    /// Jobs that share the fabric.
    pub jobs: usize,
    /// Sizes and times.
    pub parameters: Parameters,
    /// What to keep.
    pub observe: observe::Parameters,
}

impl Network {
    /// A network at rest, at instant zero.
    ///
    /// # Panics
    /// If the plan asks for more than [`MAX_LANES`](crate::qos::arbiter::MAX_LANES) lanes or its parameters do not pass [`Parameters::check`].
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let latencies = plan.graph.links().iter().map(|link| link.latency);
        let lookahead = latencies.min().unwrap_or(Picoseconds(1));
        let (adaptive, sees_lanes) = (plan.routing.adaptive(), plan.routing.sees_lanes());
        // Loads are as old as the window: where they are looked at, it is no wider than a power of two.
        let lookahead = if adaptive { Picoseconds(1 << lookahead.0.ilog2()) } else { lookahead };
        let (hosts, ports) = (plan.graph.hosts(), plan.graph.links().len());
        let switches = if adaptive { plan.graph.switches() } else { 0 };
        let calendar = NetworkCalendar::new(lookahead, [hosts, ports, switches]);
        let config = Config::new(&plan, calendar.width());
        let inbox_slots =
            (calendar.window_of(Instant(config.furthest())) + 2).next_power_of_two().min(MOST_INBOX_SLOTS as u64);
        let mut to_hosts = Mask::new(ports);
        (0..).zip(&config.to_nic).filter(|(_, nic)| **nic != NONE).for_each(|(port, _)| to_hosts.insert(port));
        Self {
            next_window: 0,
            ports: config.wire_of.iter().map(|&wire| Port::new(wire)).collect(),
            lanes: vec![Lane::new(narrow(config.parameters.buffer)); ports * config.lanes],
            arbiter_states: arbiter_states(&config),
            in_flight: InFlight {
                calendar,
                inboxes: Mailboxes::new(inbox_slots, ports),
                switch_inboxes: Mailboxes::new(inbox_slots, switches),
                occupancy: Occupancy::new(if adaptive { ports } else { 0 }, if sees_lanes { config.lanes } else { 0 }),
                receive_queues: vec![(NONE, NONE); config.nic_host.len()],
                packets: Pool::default(),
                messages: Pool::default(),
                returns: vec![CreditReturns::default(); ports],
                next_offer: vec![0; config.gaps.len()],
                deferring: vec![false; hosts],
                single_packet: SinglePacket::default(),
                sequence: 0,
                totals: Totals::default(),
            },
            observation: Observation::new(&plan.observe, plan.jobs, ports * config.lanes),
            scratch: Scratch::default(),
            to_hosts,
            config,
        }
    }

    /// Has `host` run at `at`: in the window that opens next, or a later one.
    pub fn wake(&mut self, host: HostId, at: Instant) {
        self.in_flight.wake_host(host.0, at.max(self.now()));
    }

    /// The instant up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.in_flight.calendar.opening(self.next_window)
    }

    /// Whether nothing is left to happen by itself.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.in_flight.calendar.is_empty()
    }

    /// Replaces the arbiter on every port, from the next decision on. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: Arc<dyn Arbiter>) {
        self.config.state_words = arbiter.state_words();
        self.config.arbiter = arbiter;
        self.arbiter_states = arbiter_states(&self.config);
    }

    /// The fabric.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.config.graph
    }

    /// Lanes of every port.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.config.lanes
    }

    /// Virtual lanes in use; each has one or more lanes.
    #[must_use]
    pub fn virtual_lanes(&self) -> u8 {
        self.config.vls()
    }

    /// Whether packets are routed when they are at a switch, and those of a message can overtake each other.
    #[must_use]
    pub fn adaptive(&self) -> bool {
        self.config.adaptive
    }

    /// What has been carried so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.in_flight.totals
    }

    /// Who delayed whom so far.
    #[must_use]
    pub fn interference(&self) -> &Interference {
        &self.observation.interference
    }

    /// The log of departures so far, as far as it is kept: in order of time, then link.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        let mut log = self.observation.departures.clone();
        log.sort_unstable();
        log
    }

    /// Memory that does not depend on what is in flight, per port: state, lanes, inbox, counters, calendar, graph.
    #[must_use]
    pub fn bytes_per_port(&self) -> Bytes {
        let Config { lanes, state_words, adaptive, .. } = self.config;
        bytes_per_port(lanes, self.in_flight.inboxes.bytes_per_place(), state_words, adaptive)
    }

    /// The most of it, for an estimate before there is a network.
    #[must_use]
    pub fn most_bytes_per_port(lanes: usize, state_words: usize, adaptive: bool) -> Bytes {
        bytes_per_port(lanes, MOST_INBOX_SLOTS * size_of::<u32>(), state_words, adaptive)
    }

    /// How long a port's link has carried packets, and how long it was idle although packets waited.
    #[must_use]
    pub fn port_times(&self, link: LinkId) -> (Picoseconds, Picoseconds) {
        let port = &self.ports[link.index()];
        // A packet is counted whole when it starts, a stall when it ends: what is still to come is taken off, what has
        // been is added.
        let ahead = if port.stalled || port.active == 0 { 0 } else { port.busy_until.saturating_sub(self.now().0) };
        (Picoseconds(port.active - ahead), Picoseconds(port.idle_stalled + self.open_stall(port)))
    }

    /// How long the stall has lasted in which the port is.
    fn open_stall(&self, port: &Port) -> u64 {
        let counted = port.stalled && self.config.observe.counters;
        if counted { self.now().0.saturating_sub(port.busy_until) } else { 0 }
    }

    /// What a port has carried on one lane so far.
    #[must_use]
    pub fn counters(&self, link: LinkId, lane: VirtualLane) -> LaneCounters {
        let place = link.index() * self.config.lanes + usize::from(lane.0);
        let record = &self.lanes[place];
        let port = &self.ports[link.index()];
        let open_stall = if port.waiting >> lane.0 & 1 == 1 { self.open_stall(port) } else { 0 };
        LaneCounters {
            bytes: record.bytes,
            packets: record.packets,
            waiting: Picoseconds(record.waited),
            stalled: Picoseconds(record.stalled + open_stall),
            onward_waiting: self.observation.input_queueing.get(place).copied().map(Picoseconds),
            // A packet that did not wait was a queue of one for no time.
            max_queue: record.max_depth.max(u32::from(record.packets > 0)),
        }
    }
}

fn bytes_per_port(lanes: usize, inbox: usize, state_words: usize, adaptive: bool) -> Bytes {
    let config = size_of::<CreditReturns>()
        + size_of::<Port>()
        + size_of::<crate::topology::Link>()
        + 3 * size_of::<u32>()
        + if adaptive { Occupancy::BYTES_PER_PORT } else { 0 };
    let own = lanes * size_of::<Lane>() + inbox + state_words * size_of::<u32>();
    Bytes((own + config + NetworkCalendar::BITS_PER_MEMBER / 8) as u64)
}

/// The arbiter's states of all ports, at the beginning.
fn arbiter_states(config: &Config) -> Vec<u32> {
    let mut states = vec![0; config.wire_of.len() * config.state_words];
    for (state, &wire) in states.chunks_exact_mut(config.state_words.max(1)).zip(&config.wire_of) {
        config.arbiter.begin(state, config.wires[wire as usize].bandwidth);
    }
    states
}
