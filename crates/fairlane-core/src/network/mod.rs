//! The network: what happens to a packet between two hosts.
//!
//! Ports, lanes, credits and NICs as the model page describes them, run window by window (see [`crate::kernel`]).
//! In a window each host runs first, alone, through its events in order of time; then each port that has something to
//! do, alone. What a port sends lands in another's inbox for a later window, so the order in which hosts and ports are run
//! changes nothing.

mod deadlock;
mod inbox;
mod laws;
mod nic;
mod packet;
mod parameters;
mod port;
mod transmit;

use std::sync::Arc;

pub use packet::{Delivery, Injection};
pub use parameters::{Parameters, Switching};

use crate::error::RunError;
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::kernel::{Calendar, NONE, Pool, prefetch};
use crate::observe::{self, Departure, Interference};
use crate::qos::arbiter::{Arbiter, MAX_LANES};
use crate::routing::Routing;
use crate::topology::{Graph, Vertex};
use crate::units::{Bytes, Instant, Picoseconds};
use packet::{Message, Packet};
use port::{Credit, Lane, LaneRecord, Port, SWITCH};

/// How many hosts or ports ahead of the one that runs memory is fetched.
const AHEAD: usize = 4;

/// Fabrics with more ports than this do not fit the fast caches, so memory is fetched ahead.
const LARGE: usize = 1024;

/// The hosts' side of the network.
pub trait Endpoint {
    /// Runs `host` alone up to (not including) `until`, given what is delivered to it before then, in order. Pushes
    /// what the host sends. Returns when the host has something to do next by itself, at `until` or later.
    ///
    /// # Errors
    /// Ends the run.
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Option<Instant>, RunError>;

    /// `host` will run soon: fetches what it keeps (step 0), what that points to (1), what that points to (2).
    fn prefetch(&self, host: HostId, step: usize);
}

/// A fabric in operation.
#[derive(Clone)]
pub struct Network {
    graph: Arc<Graph>,
    routing: Arc<dyn Routing>,
    arbiter: Arc<dyn Arbiter>,
    parameters: Parameters,
    /// A full packet on the wire, and the part of every packet that is not payload; in bytes.
    full: u32,
    header: u32,
    /// Lanes of every port: virtual lanes in use times virtual channels of the routing.
    lanes: usize,
    channels: u8,
    calendar: Calendar,
    /// The window that comes after the last one run.
    next_window: u64,
    ports: Vec<Port>,
    /// By port, then lane.
    lane_table: Vec<Lane>,
    lane_records: Vec<LaneRecord>,
    /// By port, as many words as the arbiter needs.
    arbiter_state: Vec<u32>,
    state_words: usize,
    /// Heads of the lists of what arrives: by window modulo the number of slots, then port.
    inbox: Vec<u32>,
    inbox_slots: u64,
    /// NIC ports are those below this number.
    nics: u32,
    /// The host of each NIC port.
    nic_host: Vec<u32>,
    /// The first NIC port of each host; one more at the end.
    first_nic: Vec<u32>,
    /// The switch at the far end of each link, or [`NONE`].
    far_switch: Vec<u32>,
    /// Packets on their way to each NIC: head and tail of a queue.
    incoming: Vec<(u32, u32)>,
    packets: Pool<Packet>,
    messages: Pool<Message>,
    credits: Pool<Credit>,
    /// Every link has the same bandwidth.
    one_rate: bool,
    sequence: u64,
    totals: Totals,
    observe: observe::Parameters,
    interference: Interference,
    departures: Vec<Departure>,
    scratch: Scratch,
}

/// What the network has carried so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that started on a link: the unit of the engine's speed.
    pub packet_hops: u64,
    /// Payload handed to NICs.
    pub bytes_injected: u64,
    /// Payload of messages that have come whole.
    pub bytes_delivered: u64,
    /// Messages handed to NICs.
    pub messages_injected: u64,
    /// Messages that have come whole.
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
    /// Longest queue seen.
    pub max_queue: u32,
}

/// Buffers that are reused from window to window.
#[derive(Clone, Default)]
struct Scratch {
    arrivals: Vec<(u64, u64, u32)>,
    deliveries: Vec<Delivery>,
    injections: Vec<Injection>,
    /// The hosts, and the ports, that run in the open window.
    hosts: Vec<u32>,
    ports: Vec<u32>,
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
    /// If the plan asks for more than [`MAX_LANES`] lanes or its parameters do not pass [`Parameters::check`].
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let Plan { graph, routing, arbiter, virtual_lanes, jobs, parameters, observe } = plan;
        let channels = routing.virtual_channels();
        let lanes = usize::from(virtual_lanes) * usize::from(channels);
        assert!(lanes <= MAX_LANES && parameters.check().is_ok(), "invariant: the simulation has checked its plan");
        let links = graph.links();
        let nics = links.iter().take_while(|link| matches!(link.from, Vertex::Host(_))).count();
        let latency = |pick: fn(u64, u64) -> u64| links.iter().map(|link| link.latency.0).reduce(pick).unwrap_or(1);
        let calendar = Calendar::new(Picoseconds(latency(u64::min)), graph.hosts(), links.len());
        let ports: Vec<Port> = links.iter().map(|link| new_port(link, &parameters)).collect();
        let furthest =
            latency(u64::max) + parameters.switch_latency.0 + ports.iter().map(|p| p.full_wire_time).max().unwrap_or(0);
        let inbox_slots = (calendar.window_of(Instant(furthest)) + 2).next_power_of_two().min(32);
        let one_rate = links.iter().all(|link| link.bandwidth == links[0].bandwidth);
        let bytes = |bytes: Bytes| u32::try_from(bytes.0).expect("invariant: checked");
        let buffer = bytes(parameters.buffer);
        let state_words = arbiter.state_words();
        let nic_host = links[..nics].iter().map(|link| host_of(link.from)).collect();
        let ports_before = |host| links[..nics].partition_point(|link| host_of(link.from) < host);
        let number = |n: usize| u32::try_from(n).expect("invariant: links have 27-bit numbers");
        let first_nic = (0..=number(graph.hosts())).map(|host| number(ports_before(host))).collect();
        let far_switch = links.iter().map(|link| switch_of(link.to)).collect();
        let slots = usize::try_from(inbox_slots).expect("invariant: at most 32");
        Self {
            interference: Interference::new(jobs, links.len(), observe.interference_by_port),
            lane_table: vec![Lane::new(buffer); links.len() * lanes],
            lane_records: vec![LaneRecord::default(); links.len() * lanes],
            arbiter_state: vec![0; links.len() * state_words],
            inbox: vec![NONE; slots * links.len()],
            incoming: vec![(NONE, NONE); nics],
            nics: number(nics),
            nic_host,
            first_nic,
            far_switch,
            inbox_slots,
            one_rate,
            state_words,
            full: bytes(parameters.largest_packet()),
            header: bytes(parameters.header),
            graph,
            routing,
            arbiter,
            parameters,
            lanes,
            channels,
            calendar,
            ports,
            observe,
            next_window: 0,
            packets: Pool::default(),
            messages: Pool::default(),
            credits: Pool::default(),
            sequence: 0,
            totals: Totals::default(),
            departures: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Has `host` run at `at`: in the window that opens next, or a later one.
    pub fn wake(&mut self, host: HostId, at: Instant) {
        self.calendar.wake_host(host.0, at.max(self.now()));
    }

    /// The instant up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.calendar.opening(self.next_window)
    }

    /// Runs up to the end of the window in which `end` lies, or until about `hops` packets have started on a link, or until
    /// nothing is left to happen; the clock is at `end` then. Returns whether it is.
    ///
    /// # Errors
    /// What the endpoint returned; the run has ended then.
    pub fn run_until<E: Endpoint>(&mut self, end: Instant, hops: u64, endpoint: &mut E) -> Result<bool, RunError> {
        let budget = self.totals.packet_hops.saturating_add(hops);
        while self.totals.packet_hops < budget {
            let Some(window) = self.calendar.open(self.next_window, end) else {
                self.next_window = self.next_window.max(self.window_at_or_after(end));
                return Ok(true);
            };
            self.take_due();
            let until = self.calendar.opening(window + 1);
            self.run_hosts(until, endpoint)?;
            if self.observe.counters {
                self.run_ports::<true>(until.0)
            } else {
                self.run_ports::<false>(until.0)
            }
            self.calendar.close();
            self.next_window = window + 1;
        }
        Ok(self.now() >= end)
    }

    /// Whether nothing is left to happen by itself.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.calendar.is_empty()
    }

    fn window_at_or_after(&self, at: Instant) -> u64 {
        let window = self.calendar.window_of(at);
        if self.calendar.opening(window) < at { window + 1 } else { window }
    }

    fn run_hosts<E: Endpoint>(&mut self, until: Instant, endpoint: &mut E) -> Result<(), RunError> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        self.calendar.hosts().drain_into(&mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for place in 0..hosts.len() {
            for step in 0..if large { 3 } else { 0 } {
                if let Some(&ahead) = hosts.get(place + (3 - step) * AHEAD) {
                    endpoint.prefetch(HostId(ahead), step);
                    if step == 0 {
                        self.prefetch_incoming(HostId(ahead));
                    }
                }
            }
            result = self.run_host(HostId(hosts[place]), until, endpoint);
            if result.is_err() {
                break;
            }
        }
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<const OBSERVE: bool>(&mut self, until: u64) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        self.calendar.ports().drain_into(&mut ports);
        let large = self.ports.len() > LARGE;
        for place in 0..ports.len() {
            if let (true, Some(&ahead)) = (large, ports.get(place + 3 * AHEAD)) {
                prefetch(&self.ports[ahead as usize]);
                self.prefetch_arrival(ahead);
            }
            if let (true, Some(&ahead)) = (large, ports.get(place + 2 * AHEAD)) {
                self.prefetch_lane(ahead);
            }
            if let (true, Some(&ahead)) = (large, ports.get(place + AHEAD)) {
                self.prefetch_credits(ahead);
            }
            let port = ports[place];
            if port < self.nics {
                self.run_port::<OBSERVE, true>(port, until);
            } else {
                self.run_port::<OBSERVE, false>(port, until);
            }
        }
        self.scratch.ports = ports;
    }

    /// Replaces the arbiter on every port, from the next decision on. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: Arc<dyn Arbiter>) {
        self.state_words = arbiter.state_words();
        self.arbiter_state = vec![0; self.ports.len() * self.state_words];
        self.arbiter = arbiter;
    }

    /// The fabric.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Lanes of every port.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// What has been carried so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Who delayed whom so far.
    #[must_use]
    pub fn interference(&self) -> &Interference {
        &self.interference
    }

    /// The log of departures so far, if it is kept: in order of time, then link.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        let mut log = self.departures.clone();
        log.sort_unstable();
        log
    }

    /// Memory that does not depend on what is in flight, per port: state, lanes, inbox, counters, calendar, graph.
    #[must_use]
    pub fn bytes_per_port(&self) -> Bytes {
        let ports = self.ports.len();
        let lanes = self.lanes * (size_of::<Lane>() + size_of::<LaneRecord>());
        let inbox = self.inbox.len() / ports * size_of::<u32>();
        let arbiter = self.state_words * size_of::<u32>();
        let fixed =
            size_of::<Port>() + size_of::<crate::topology::Link>() + size_of::<u32>() + Interference::BYTES_PER_PORT;
        Bytes((lanes + inbox + arbiter + fixed + Calendar::BITS_PER_VERTEX / 8) as u64)
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
        let counted = port.stalled && self.observe.counters;
        if counted { self.now().0.saturating_sub(port.busy_until) } else { 0 }
    }

    /// What a port has carried on one lane so far.
    #[must_use]
    pub fn counters(&self, link: LinkId, lane: VirtualLane) -> LaneCounters {
        let place = link.index() * self.lanes + usize::from(lane.0);
        let record = &self.lane_records[place];
        let packets = record.packets + u64::from(self.lane_table[place].packets);
        let port = &self.ports[link.index()];
        let open_stall = if port.waiting >> lane.0 & 1 == 1 { self.open_stall(port) } else { 0 };
        LaneCounters {
            bytes: packets * u64::from(self.full) - record.short,
            packets,
            waiting: Picoseconds(record.waited),
            stalled: Picoseconds(record.stalled + open_stall),
            // A packet that did not wait was a queue of one for no time.
            max_queue: record.max_depth.max(u32::from(packets > 0)),
        }
    }
}

fn host_of(vertex: Vertex) -> u32 {
    match vertex {
        Vertex::Host(host) => host.0,
        Vertex::Switch(_) => NONE,
    }
}

fn switch_of(vertex: Vertex) -> u32 {
    match vertex {
        Vertex::Switch(switch) => switch.0,
        Vertex::Host(_) => NONE,
    }
}

fn new_port(link: &crate::topology::Link, parameters: &Parameters) -> Port {
    Port {
        busy_until: 0,
        latency: link.latency.0,
        rate: link.bandwidth.0,
        full_wire_time: link.bandwidth.serialization(parameters.largest_packet()).0,
        active: 0,
        idle_stalled: 0,
        waiting: 0,
        to_nic: if matches!(link.to, Vertex::Host(_)) { link.reverse.0 } else { SWITCH },
        credits: NONE,
        job: 0,
        stalled: false,
    }
}
