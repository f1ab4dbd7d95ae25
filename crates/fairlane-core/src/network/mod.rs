//! The network: what happens to a packet between two hosts.
//!
//! Ports, lanes, credits and NICs as the model page describes them, run window by window (see [`crate::kernel`]).
//! In a window each host runs first, alone, through its events in order of time, and soon behind it its NIC's port if it hands
//! messages over; then each other port that has something to do, alone. What a port sends lands in another's inbox for a
//! later window, so the order in which hosts and ports are run changes nothing.

mod ahead;
mod crossing;
mod deadlock;
mod fixed;
mod flight;
mod latency;
mod laws;
mod loads;
mod nic;
mod packet;
mod parameters;
mod port;
mod start;
mod turn;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

pub use packet::{Delivery, Injection};
pub use parameters::{Parameters, Switching};

use crate::error::RunError;
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::kernel::{Calendar, Mask, NONE, Pool};
use crate::observe::{self, Departure, Interference, Latencies};
use crate::qos::arbiter::Arbiter;
use crate::routing::Routing;
use crate::topology::Graph;
use crate::units::{Bytes, Instant, Picoseconds};
use ahead::{HANDED, LARGE};
use crossing::{Crossing, Crossings};
use fixed::{Fixed, narrow};
use flight::{Flight, Inboxes};
use loads::LoadBook;
use packet::Whole;
use port::{Lane, Port, Returning};
use turn::{Arrival, Passed, Turn, kind};
use watch::Watch;

/// Windows ahead for which arrivals at ports are listed, at most; those that come later wait in the calendar.
const MOST_INBOX_SLOTS: usize = 32;

/// The hosts' side of the network.
pub trait Endpoint {
    /// Runs `host` alone up to (not including) `until`, given what is delivered to it before then, in order. Pushes
    /// what the host sends.
    ///
    /// # Errors
    /// Ends the run.
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, RunError>;

    /// `host` will run soon: fetches what it keeps (step 0), what that points to (1), what that points to (2), and so on to
    /// step 4.
    fn prefetch<const STEP: u8>(&self, host: HostId);

    /// The message with this token will be delivered soon.
    fn prefetch_message(&self, token: u32);
}

/// How a host goes on once it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it has something to do by itself, at the end of the window or later.
    pub at: Option<Instant>,
    /// Until then it need run only for what is prompt: the rest makes no difference to anyone before.
    pub patient: bool,
}

/// A fabric in operation.
#[derive(Clone)]
pub struct Network {
    fixed: Fixed,
    /// The window that comes after the last one run.
    next_window: u64,
    ports: Vec<Port>,
    /// By port, then lane.
    lane_table: Vec<Lane>,
    /// By port, as many words as the arbiter needs.
    arbiter_state: Vec<u32>,
    /// The ports of links that lead to hosts.
    to_hosts: Mask,
    flight: Flight,
    watch: Watch,
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
    /// NICs' ports to which their hosts have handed something in the open window.
    handed: VecDeque<u32>,
    /// The hosts, and the ports, that run in the open window.
    hosts: Vec<u32>,
    ports: Vec<u32>,
    /// Those of them that lead to hosts.
    last: Vec<u32>,
    /// What comes to switches that route it in the open window.
    crossings: Vec<Crossing>,
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
        let adaptive = plan.routing.adaptive();
        // Loads are as old as the window: where they are looked at, it is no wider than a power of two.
        let lookahead = if adaptive { Picoseconds(1 << lookahead.0.ilog2()) } else { lookahead };
        let (hosts, ports) = (plan.graph.hosts(), plan.graph.links().len());
        let calendar = Calendar::new(lookahead, hosts, ports);
        let fixed = Fixed::new(&plan, calendar.width());
        let inbox_slots =
            (calendar.window_of(Instant(fixed.furthest())) + 2).next_power_of_two().min(MOST_INBOX_SLOTS as u64);
        let mut to_hosts = Mask::new(ports);
        (0..).zip(&fixed.far_nic).filter(|(_, nic)| **nic != NONE).for_each(|(port, _)| to_hosts.insert(port));
        Self {
            next_window: 0,
            ports: fixed.wire_of.iter().map(|&wire| Port::new(wire)).collect(),
            lane_table: vec![Lane::new(narrow(fixed.parameters.buffer)); ports * fixed.lanes],
            arbiter_state: arbiter_states(&fixed),
            flight: Flight {
                calendar,
                inboxes: Inboxes::new(inbox_slots, ports),
                crossings: Crossings::default(),
                loads: LoadBook::new(if adaptive { ports } else { 0 }),
                incoming: vec![(NONE, NONE); fixed.nic_host.len()],
                packets: Pool::default(),
                messages: Pool::default(),
                returning: vec![Returning::default(); ports],
                next_offer: vec![0; fixed.gaps.len()],
                patient: vec![false; hosts],
                whole: Whole::default(),
                sequence: 0,
                totals: Totals::default(),
            },
            watch: Watch {
                interference: Interference::new(plan.jobs, plan.observe.interference_by_port),
                onward: vec![0; if plan.observe.onward_waiting { ports * fixed.lanes } else { 0 }],
                departs: plan.observe.departs(),
                departures: Vec::new(),
                latencies: if plan.observe.counters { Latencies::new(plan.jobs) } else { Latencies::default() },
            },
            scratch: Scratch::default(),
            to_hosts,
            fixed,
        }
    }

    /// Has `host` run at `at`: in the window that opens next, or a later one.
    pub fn wake(&mut self, host: HostId, at: Instant) {
        self.flight.calendar.wake_host(host.0, at.max(self.now()));
    }

    /// The instant up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.flight.calendar.opening(self.next_window)
    }

    /// Runs up to the end of the window in which `end` lies, or until about `hops` packets have started on a link, or until
    /// nothing is left to happen; the clock is at `end` then. Returns whether it is.
    ///
    /// # Errors
    /// What the endpoint returned; the run has ended then.
    pub fn run_until<E: Endpoint>(&mut self, end: Instant, hops: u64, endpoint: &mut E) -> Result<bool, RunError> {
        let budget = self.flight.totals.packet_hops.saturating_add(hops);
        while self.flight.totals.packet_hops < budget {
            let Some(window) = self.flight.calendar.open(self.next_window, end) else {
                self.next_window = self.next_window.max(self.window_at_or_after(end));
                return Ok(true);
            };
            self.flight.take_due(&self.fixed);
            let until = self.flight.calendar.opening(window + 1);
            if self.fixed.observe.counters {
                self.run_window::<true, E>(until, endpoint)?;
            } else {
                self.run_window::<false, E>(until, endpoint)?;
            }
            self.flight.calendar.close();
            self.next_window = window + 1;
        }
        Ok(self.now() >= end)
    }

    /// Whether nothing is left to happen by itself.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.flight.calendar.is_empty()
    }

    fn window_at_or_after(&self, at: Instant) -> u64 {
        let window = self.flight.calendar.window_of(at);
        if self.flight.calendar.opening(window) < at { window + 1 } else { window }
    }

    fn run_window<const OBSERVE: bool, E: Endpoint>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
    ) -> Result<(), RunError> {
        self.run_hosts::<OBSERVE, E>(until, endpoint)?;
        if self.fixed.adaptive {
            self.run_switches();
        }
        self.run_ports::<OBSERVE>(until.0);
        Ok(())
    }

    fn run_hosts<const OBSERVE: bool, E: Endpoint>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
    ) -> Result<(), RunError> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.flight.calendar.take_hosts(&mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for (place, &host) in hosts.iter().enumerate() {
            if large {
                self.prefetch_hosts(&hosts, place, endpoint);
            }
            result = self.run_host(HostId(host), until, endpoint, large);
            if result.is_err() {
                break;
            }
            self.run_handed::<OBSERVE>(if large { HANDED } else { 0 }, until.0, &mut arrivals);
        }
        self.run_handed::<OBSERVE>(0, until.0, &mut arrivals);
        self.scratch.arrivals = arrivals;
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<const OBSERVE: bool>(&mut self, until: u64) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        let mut last = std::mem::take(&mut self.scratch.last);
        self.flight.calendar.take_ports(&self.to_hosts, &mut last, &mut ports);
        // In ascending order: first the NICs' ports.
        let nics = ports.partition_point(|&port| port < self.fixed.nics);
        self.run_each::<OBSERVE, { kind::NIC }>(&ports[..nics], until);
        self.run_each::<OBSERVE, { kind::THROUGH }>(&ports[nics..], until);
        self.run_each::<OBSERVE, { kind::LAST }>(&last, until);
        self.scratch.last = last;
        self.scratch.ports = ports;
    }

    fn run_each<const OBSERVE: bool, const KIND: u8>(&mut self, ports: &[u32], until: u64) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let large = self.ports.len() > LARGE;
        for (place, &port) in ports.iter().enumerate() {
            if large {
                self.prefetch_ports::<KIND>(ports, place);
            }
            self.run_port::<OBSERVE, KIND>(port, until, &mut arrivals);
        }
        self.scratch.arrivals = arrivals;
    }

    /// Runs one port through the open window.
    #[inline(always)]
    fn run_port<const OBSERVE: bool, const KIND: u8>(&mut self, port: u32, until: u64, arrivals: &mut Vec<Arrival>) {
        let mut first = self.flight.inboxes.take(self.flight.calendar.window(), port);
        if first != NONE {
            match self.turn::<OBSERVE, KIND>(port).pass(first, until) {
                Passed::Yes => return,
                Passed::Part(lane) => {
                    self.turn::<OBSERVE, KIND>(port).offer_again(lane, first);
                    first = NONE;
                }
                Passed::No => {}
            }
        }
        self.run_queue::<OBSERVE, KIND>(port, first, until, arrivals);
    }

    /// What [`Network::run_port`] seldom needs, apart from it so that what it often needs stays in registers.
    #[inline(never)]
    fn run_queue<const OBSERVE: bool, const KIND: u8>(
        &mut self,
        port: u32,
        first: u32,
        until: u64,
        arrivals: &mut Vec<Arrival>,
    ) {
        self.turn::<OBSERVE, KIND>(port).run(first, until, arrivals);
    }

    #[inline(always)]
    fn turn<const OBSERVE: bool, const KIND: u8>(&mut self, number: u32) -> Turn<'_, OBSERVE, KIND> {
        Turn {
            number,
            port: &mut self.ports[number as usize],
            lanes: &mut self.lane_table,
            base: number as usize * self.fixed.lanes,
            opening: self.flight.calendar.opening(self.flight.calendar.window()).0,
            states: &mut self.arbiter_state,
            fixed: &self.fixed,
            flight: &mut self.flight,
            watch: &mut self.watch,
        }
    }

    /// Replaces the arbiter on every port, from the next decision on. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: Arc<dyn Arbiter>) {
        self.fixed.state_words = arbiter.state_words();
        self.fixed.arbiter = arbiter;
        self.arbiter_state = arbiter_states(&self.fixed);
    }

    /// The fabric.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.fixed.graph
    }

    /// Lanes of every port.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.fixed.lanes
    }

    /// Virtual lanes in use; each has one or more lanes.
    #[must_use]
    pub fn virtual_lanes(&self) -> u8 {
        self.fixed.vls()
    }

    /// Whether packets are routed when they are at a switch, and those of a message can overtake each other.
    #[must_use]
    pub fn adaptive(&self) -> bool {
        self.fixed.adaptive
    }

    /// What has been carried so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.flight.totals
    }

    /// Who delayed whom so far.
    #[must_use]
    pub fn interference(&self) -> &Interference {
        &self.watch.interference
    }

    /// The log of departures so far, as far as it is kept: in order of time, then link.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        let mut log = self.watch.departures.clone();
        log.sort_unstable();
        log
    }

    /// Memory that does not depend on what is in flight, per port: state, lanes, inbox, counters, calendar, graph.
    #[must_use]
    pub fn bytes_per_port(&self) -> Bytes {
        let Fixed { lanes, state_words, adaptive, .. } = self.fixed;
        bytes_per_port(lanes, self.flight.inboxes.bytes_per_place(), state_words, adaptive)
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
        let counted = port.stalled && self.fixed.observe.counters;
        if counted { self.now().0.saturating_sub(port.busy_until) } else { 0 }
    }

    /// What a port has carried on one lane so far.
    #[must_use]
    pub fn counters(&self, link: LinkId, lane: VirtualLane) -> LaneCounters {
        let place = link.index() * self.fixed.lanes + usize::from(lane.0);
        let record = &self.lane_table[place];
        let port = &self.ports[link.index()];
        let open_stall = if port.waiting >> lane.0 & 1 == 1 { self.open_stall(port) } else { 0 };
        LaneCounters {
            bytes: record.bytes,
            packets: record.packets,
            waiting: Picoseconds(record.waited),
            stalled: Picoseconds(record.stalled + open_stall),
            onward_waiting: self.watch.onward.get(place).copied().map(Picoseconds),
            // A packet that did not wait was a queue of one for no time.
            max_queue: record.max_depth.max(u32::from(record.packets > 0)),
        }
    }
}

fn bytes_per_port(lanes: usize, inbox: usize, state_words: usize, adaptive: bool) -> Bytes {
    let fixed = size_of::<Returning>()
        + size_of::<Port>()
        + size_of::<crate::topology::Link>()
        + 3 * size_of::<u32>()
        + if adaptive { LoadBook::BYTES_PER_PORT } else { 0 };
    let own = lanes * size_of::<Lane>() + inbox + state_words * size_of::<u32>();
    Bytes((own + fixed + Calendar::BITS_PER_VERTEX / 8) as u64)
}

/// The arbiter's states of all ports, at the beginning.
fn arbiter_states(fixed: &Fixed) -> Vec<u32> {
    let mut states = vec![0; fixed.wire_of.len() * fixed.state_words];
    for (state, &wire) in states.chunks_exact_mut(fixed.state_words.max(1)).zip(&fixed.wire_of) {
        fixed.arbiter.begin(state, fixed.wires[wire as usize].bandwidth);
    }
    states
}
