//! The network: what happens to a packet between two hosts.
//!
//! Ports, lanes, credits and NICs as the model page describes them, run window by window (see [`crate::kernel`]).
//!
//! It consists of one or more shards ([`Partition`]), which run in parallel and exchange `mail` when a window ends.
//!
//! A packet's path through the files: `nic` (injection, segmentation), `port` (queue, arbitration, transmission),
//! `switch` (adaptive routing), `port` again, `nic` (reassembly). `credits` books the buffers, `observation` counts,
//! `engine` runs a shard through a window, `windows` one window after the other.

mod conditions;
mod config;
mod credits;
mod deadlock;
mod endpoint;
mod engine;
mod exchange;
mod fabric;
mod features;
mod flow_control;
mod in_flight;
mod index;
mod latency;
mod laws;
mod loss;
mod mail;
mod naming;
mod nic;
mod observation;
mod occupancy;
mod packet;
mod parameters;
mod partition;
mod pauses;
mod plan;
mod port;
mod prefetch;
mod round_trip;
mod shard;
mod switch;
mod telemetry;
#[cfg(test)]
mod testing;
mod totals;
mod windows;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use endpoint::{Endpoint, Pause};
pub use flow_control::{FlowControl, Pfc};
pub use nic::transport;
pub use packet::{Delivery, Injection};
pub use parameters::{LaneBuffers, Parameters, PortBuffer, Retransmission, Sharing, Switching, Turns};
pub use partition::Partition;
pub use pauses::PauseCounters;
pub use plan::Plan;
pub use prefetch::Prefetch;
pub use round_trip::longest_round_trip;
pub use switch::{Architecture, Entry as SwitchEntry, InputQueued, InputQueues, Surroundings, Switches, allocator};
pub use totals::{LaneCounters, Totals};

use crate::fault::{GivenUp, LinkErrors};
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::observe::{Departure, Interference};
use crate::qos::arbiter::Arbitration;
use crate::routing::Routing;
use crate::topology::{Graph, RailMap};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use config::Config;
use credits::CreditReturns;
use in_flight::{MOST_INBOX_SLOTS, NetworkCalendar};
use index::PortIdx;
use occupancy::Occupancy;
use partition::PortPlace;
use pauses::Pauses;
use port::{Lane, Port};
use shard::Shard;

/// A fabric in operation.
#[derive(Clone)]
pub struct Network {
    partition: Partition,
    /// At least one.
    shards: Vec<Shard>,
    /// The threads that run them.
    threads: usize,
    /// The window that comes after the last one run.
    next_window: u64,
}

impl Network {
    /// A network at rest, at instant zero, in shards that each have a thread. Its results do not depend on the shards.
    ///
    /// # Panics
    /// If the plan asks for more than [`MAX_LANES`](crate::qos::arbiter::MAX_LANES) lanes, its parameters do not pass
    /// [`Parameters::check`] or [`Parameters::lane_buffers`], the partition is of another graph, or there are several
    /// shards although [`Plan::most_shards`] is one.
    #[must_use]
    pub fn new(plan: &Plan, partition: Partition) -> Self {
        assert!(partition.shards() <= plan.most_shards(), "invariant: the simulation has checked its plan");
        let shards = Shard::all(plan, &partition);
        Self { threads: shards.len(), partition, shards, next_window: 0 }
    }

    /// Has so many threads run the shards, each about as many shards.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Has `host` run at `at`: in the window that opens next, or a later one.
    pub fn wake(&mut self, host: HostId, at: Instant) {
        let at = at.max(self.now());
        let shard = self.partition.of_host(self.graph(), host);
        let Shard { config, in_flight, .. } = &mut self.shards[shard];
        in_flight.wake_host(config.naming.host(host), at);
    }

    /// Has every host look at what is on its way to it when it arrives.
    pub fn wake_all(&mut self) {
        let now = self.now();
        self.shards.iter_mut().for_each(|shard| shard.wake_all(now));
    }

    /// The instant up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shards[0].in_flight.calendar.opening(self.next_window)
    }

    /// How long a window is.
    #[must_use]
    pub fn window(&self) -> Picoseconds {
        self.shards[0].in_flight.calendar.width()
    }

    /// Whether nothing is left to happen by itself.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.shards.iter().all(|shard| shard.in_flight.calendar.is_empty())
    }

    /// Replaces the arbiter on every port, from the next decision on. Its state starts anew.
    pub fn set_arbiter(&mut self, arbiter: &dyn Arbitration) {
        self.shards.iter_mut().for_each(|shard| shard.set_arbiter(arbiter));
    }

    /// Gives links other bandwidths, for packets that start on them from now on. Routing does not know of it.
    pub fn set_bandwidths(&mut self, bandwidths: &BTreeMap<LinkId, BitsPerSec>) {
        if !bandwidths.is_empty() {
            let graph = Arc::new(self.graph().with_bandwidths(bandwidths));
            self.shards.iter_mut().for_each(|shard| shard.set_bandwidths(&graph, bandwidths.keys().copied()));
        }
    }

    /// From now on links can change, and, if `lost`, packets can be lost. To be called before anything of it happens.
    pub fn expect_faults(&mut self, lost: bool) {
        for shard in &mut self.shards {
            shard.config.conditions.overtaking = true;
            shard.config.conditions.features.loses |= lost;
        }
    }

    /// Links go down, or are up again. Packets on a link that goes down, and those in the queue of its port, are lost, and so are
    /// those that come to the port while it is down. What is on the last link to a host still arrives.
    pub fn set_down(&mut self, links: &BTreeMap<LinkId, bool>) {
        let now = self.now();
        self.shards.iter_mut().for_each(|shard| shard.set_down(links, now));
    }

    /// Hosts at the end of these links pause virtual lanes without a reason, or all that lose nothing; no others do.
    pub fn set_storms(&mut self, storms: &BTreeSet<(LinkId, Option<VirtualLane>)>) {
        let now = self.now();
        self.shards.iter_mut().for_each(|shard| shard.set_storms(storms, now));
    }

    /// Whether a host pauses a lane without a reason.
    #[must_use]
    pub fn storms(&self) -> bool {
        self.shards.iter().any(|shard| shard.in_flight.pauses.iter().any(Pauses::stormed))
    }

    /// The lanes that have been paused so far: link, lane, and what was counted, in order of links.
    #[must_use]
    pub fn pauses(&self) -> Vec<(LinkId, u8, PauseCounters)> {
        let of_port = |(link, shard, port): (LinkId, &Shard, PortIdx)| {
            let lanes =
                shard.in_flight.pauses_of(port, self.lanes()).map(|(lane, pauses)| (lane, pauses.counters(self.now())));
            lanes
                .filter(|(_, counters)| counters.pauses > 0)
                .map(|(lane, counters)| (link, lane.0, counters))
                .collect::<Vec<_>>()
        };
        self.each_port().flat_map(of_port).collect()
    }

    /// Gives links errors, for packets that start on them from now on. All others have none.
    pub fn set_errors(&mut self, errors: &BTreeMap<LinkId, LinkErrors>) {
        self.shards.iter_mut().for_each(|shard| shard.set_errors(errors));
    }

    /// Packets that start from now on take other routes; those under way keep theirs.
    pub fn set_routing(&mut self, routing: &Arc<dyn Routing>) {
        self.shards.iter_mut().for_each(|shard| shard.config.conditions.routes.replace(Arc::clone(routing)));
    }

    /// Packets of these jobs that are retransmitted from now on go through these adapters, where those that they were sent through
    /// do not reach each other any more.
    pub fn set_rails(&mut self, rails: &Arc<RailMap>, jobs: &[bool]) {
        let failover = Some((Arc::clone(rails), Arc::from(jobs)));
        self.shards.iter_mut().for_each(|shard| shard.config.conditions.failover = failover.clone());
    }

    /// Packets that have been given up since the last call, in order of time.
    pub fn take_given_up(&mut self) -> Vec<GivenUp> {
        let of_shards = self.shards.iter_mut().flat_map(|shard| shard.in_flight.given_up.drain(..));
        let mut all: Vec<GivenUp> = of_shards.collect();
        all.sort_unstable();
        all
    }

    /// The configuration, in which shards do not differ but for `naming`.
    fn config(&self) -> &Config {
        &self.shards[0].config
    }

    /// The shard of a link, and its port there.
    fn port(&self, link: LinkId) -> (&Shard, PortIdx) {
        let PortPlace { shard, port } = self.partition.port(link);
        (&self.shards[usize::from(shard)], port)
    }

    /// The fabric.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.config().conditions.graph
    }

    /// Lanes of every port.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.config().fabric.lanes
    }

    /// Virtual lanes in use; each has one or more lanes.
    #[must_use]
    pub fn virtual_lanes(&self) -> u8 {
        self.config().fabric.virtual_lanes
    }

    /// Whether packets are routed when they are at a switch, and those of a message can overtake each other.
    #[must_use]
    pub fn adaptive(&self) -> bool {
        self.config().fabric.adaptive
    }

    /// Whether NICs hold packets back, so that messages of one host to another can overtake each other.
    #[must_use]
    pub fn paces(&self) -> bool {
        self.config().conditions.features.paces
    }

    /// Whether packets can be lost, as far as is known.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.config().conditions.features.loses
    }

    /// Sums since instant zero.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.shards.iter().map(|shard| shard.in_flight.totals).sum()
    }

    /// Packets that started on a link, by shard: how evenly the work is divided.
    #[must_use]
    pub fn packet_hops_of_shards(&self) -> Vec<u64> {
        self.shards.iter().map(|shard| shard.in_flight.totals.packet_hops).collect()
    }

    /// Who delayed whom so far.
    #[must_use]
    pub fn interference(&self) -> Cow<'_, Interference> {
        if let [shard] = &self.shards[..] {
            return Cow::Borrowed(&shard.observation.interference);
        }
        let observe = &self.config().fabric.observe;
        let mut sum = Interference::new(self.shards[0].observation.interference.jobs(), observe.interference_by_port);
        for shard in &self.shards {
            sum.merge(&shard.observation.interference, |port| shard.config.naming.link_of(PortIdx(port)).0);
        }
        Cow::Owned(sum)
    }

    /// The log of departures so far, as far as it is kept: in order of time, then link.
    #[must_use]
    pub fn departures(&self) -> Vec<Departure> {
        let mut log: Vec<Departure> =
            self.shards.iter().flat_map(|shard| shard.observation.departures.iter().cloned()).collect();
        log.sort_unstable();
        log
    }

    /// Memory that does not depend on what is in flight, per port: state, lanes, inbox, counters, calendar, graph. The mean over
    /// the ports of all shards, of which some may have none, rounded up.
    #[must_use]
    pub fn bytes_per_port(&self) -> Bytes {
        let of_shard = |shard: &Shard| {
            let fabric = &shard.config.fabric;
            let inbox = shard.in_flight.inboxes.bytes_per_place();
            shard.ports.len() as u64
                * bytes_per_port(fabric.lanes, inbox, shard.arbiter.state_size(), fabric.adaptive).0
        };
        let ports: usize = self.shards.iter().map(|shard| shard.ports.len()).sum();
        Bytes(self.shards.iter().map(of_shard).sum::<u64>().div_ceil(ports.max(1) as u64))
    }

    /// The most of it, for an estimate before there is a network; the arbiter's state of a port takes so many bytes.
    #[must_use]
    pub fn most_bytes_per_port(lanes: usize, arbiter: usize, adaptive: bool) -> Bytes {
        bytes_per_port(lanes, MOST_INBOX_SLOTS * size_of::<u32>(), arbiter, adaptive)
    }

    /// How long a port's link has carried packets, and how long it was idle although packets waited.
    #[must_use]
    pub fn port_times(&self, link: LinkId) -> (Picoseconds, Picoseconds) {
        let (shard, number) = self.port(link);
        let port = &shard.ports[number];
        // A packet is counted whole when it starts, a stall when it ends: what is still to come is taken off, what has
        // been is added.
        let idle = port.stalled || port.active == Picoseconds::ZERO;
        let ahead = if idle { Picoseconds::ZERO } else { port.busy_until.since(self.now()) };
        (port.active.beyond(ahead), port.idle_stalled + self.open_stall(port))
    }

    /// How long the stall has lasted in which the port is.
    fn open_stall(&self, port: &Port) -> Picoseconds {
        let counted = port.stalled && self.config().fabric.observe.counters;
        if counted { self.now().since(port.busy_until) } else { Picoseconds::ZERO }
    }

    /// Counters of one lane of a port since instant zero.
    #[must_use]
    pub fn counters(&self, link: LinkId, lane: u8) -> LaneCounters {
        let (shard, number) = self.port(link);
        let lanes = self.config().fabric.lanes;
        let record = &shard.lanes[number.index() * lanes + usize::from(lane)];
        let port = &shard.ports[number];
        let open_stall = if port.waiting >> lane & 1 == 1 { self.open_stall(port) } else { Picoseconds::ZERO };
        let (onward, place) = self.port(self.graph().link(link).reverse);
        let onward = onward.observation.input_queueing.get(place.index() * lanes + usize::from(lane));
        LaneCounters {
            bytes: record.bytes,
            packets: record.packets,
            waiting: record.waited,
            stalled: record.stalled + open_stall,
            onward_waiting: onward.copied().map(Picoseconds),
            // A packet that did not wait was a queue of one for no time.
            max_queue: record.max_depth.max(u32::from(record.packets > 0)),
        }
    }
}

fn bytes_per_port(lanes: usize, inbox: usize, arbiter: usize, adaptive: bool) -> Bytes {
    let config = size_of::<CreditReturns>()
        + size_of::<Port>()
        + size_of::<crate::topology::Link>()
        + 2 * size_of::<u32>()
        + if adaptive { Occupancy::BYTES_PER_PORT } else { 0 };
    let own = lanes * size_of::<Lane>() + inbox + arbiter;
    Bytes((own + config + NetworkCalendar::BITS_PER_MEMBER / 8) as u64)
}
