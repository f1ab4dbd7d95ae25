//! Static configuration of a shard: what does not change while packets move. The fabric, its policies and parameters.
//!
//! Lists by host, NIC or port have the members of the shard only, by their numbers there.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Plan;
use super::features::Features;
use super::link::Wire;
use super::loss::LossConfig;
use super::nic::transport::{Feedback, Transport};
use super::nic::{feedback_of, round_trips, transports};
use super::parameters::{Parameters, Switching};
use super::partition::{FarEnd, Partition, Place};
use super::probe::Probe;
use super::routes::Routes;
use super::switch::{Architecture, InputQueued};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::NONE;
use crate::observe;
use crate::qos::arbiter::{Arbiter, MAX_LANES, MAX_VIRTUAL_LANES};
use crate::routing::Routing;
use crate::topology::{Graph, Link, Vertex};
use crate::units::{BitsPerSec, Bytes, Picoseconds};

/// The configuration of one shard.
#[derive(Clone)]
pub(super) struct Config {
    pub graph: Arc<Graph>,
    pub routes: Routes,
    pub arbiter: Arc<dyn Arbiter>,
    /// The scenario's transport, then those of jobs that have another.
    pub transports: Vec<Arc<dyn Transport>>,
    /// The place of each job's transport among them; empty if all have the first.
    pub transport_of_job: Vec<u16>,
    /// What each of them needs of switches and receivers.
    pub feedback: Vec<Option<Feedback>>,
    /// The round trip of each of them; see [`FlowSetup::round_trip`](super::nic::transport::FlowSetup::round_trip).
    pub round_trips: Vec<Picoseconds>,
    /// Words of a flow's state, for any of them.
    pub flow_words: usize,
    /// What the network needs besides carrying packets; see [`Config::has`].
    pub features: Features,
    /// How packets can be lost.
    pub loss: LossConfig,
    /// Errors per bit of links that have some, in units of 2^-64, by id.
    pub error_rates: FxHashMap<u32, u64>,
    pub parameters: Parameters,
    pub observe: observe::Parameters,
    /// A full packet on the wire, and the part of every packet that is not payload; in bytes.
    pub full: u32,
    pub header: u32,
    /// The most bytes that any lane can have in the input buffer of its link; see [`Config::buffer_of`].
    pub lane_buffer: u32,
    /// The part of them that all lanes of a port share; `None` if every lane has a buffer of its own.
    pub pool: Option<u32>,
    /// Lanes of every port: the pairs of virtual lane and virtual channel in use.
    pub lanes: usize,
    /// The first lane of each virtual lane; after the last, the number of lanes.
    pub first_lane: [u8; MAX_VIRTUAL_LANES + 1],
    /// Virtual lanes in use.
    pub virtual_lanes: u8,
    /// The virtual lane of each lane.
    pub vl_of_lane: [u8; MAX_LANES],
    /// Some virtual lane has several virtual channels.
    pub channels: bool,
    /// The routing is adaptive: packets are routed when they arrive at a switch.
    pub adaptive: bool,
    /// The parameters of input-queued switches; `None` if switches are output-queued.
    pub input_queued: Option<InputQueued>,
    /// Packets are sent to a switch, not straight to its output port: the routing is adaptive, or switches are input-queued.
    pub by_switch: bool,
    /// Words of the arbiter's state.
    pub state_words: usize,
    /// What belongs to which shard.
    pub partition: Partition,
    /// The number of this shard.
    pub shard: usize,
    /// The same, as packets carry it.
    pub origin: u8,
    /// The ids of the shard's hosts, switches and links; empty with one shard.
    pub host_ids: Vec<u32>,
    pub switch_ids: Vec<u32>,
    pub link_ids: Vec<u32>,
    /// The far end of each link; empty with one shard.
    pub far_ends: Vec<FarEnd>,
    /// NIC ports are those below this number.
    pub nics: u32,
    /// The host of each NIC port.
    pub nic_host: Vec<u32>,
    /// The first NIC port of each host; one more at the end.
    pub first_nic: Vec<u32>,
    /// Every host has one adapter: its id is the address of it.
    pub single_homed: bool,
    /// The minimum time between two messages of each NIC, ps; empty if there is none.
    pub gaps: Vec<u64>,
    /// The id of the switch at the far end of each link, or [`NONE`].
    pub to_switch: Vec<u32>,
    /// The NIC port at the far end of each link, by its number in the shard there, or [`NONE`].
    pub to_nic: Vec<u32>,
    /// The distinct kinds of link in the fabric, and the kind of each link of the shard.
    pub wires: Vec<Wire>,
    pub wire_of: Vec<u32>,
    /// The longest latency of a link, ps.
    pub longest: u64,
    /// A lane with so many credits cannot run short before credits arrive that are returned in the open window, even if the
    /// fastest link is busy from the window's opening until then.
    pub sufficient: u32,
    /// Every link has the same bandwidth.
    pub one_rate: bool,
}

impl Config {
    /// What follows from a plan for one shard, for windows of this width.
    pub fn new(plan: &Plan, window: Picoseconds, partition: &Partition, shard: usize) -> Self {
        let Plan { graph, routing, arbiter, architecture, virtual_lanes, parameters, observe, .. } = plan;
        let first_lane = first_lanes(&**routing, *virtual_lanes);
        let lanes = usize::from(first_lane[MAX_VIRTUAL_LANES]);
        assert!(lanes <= MAX_LANES && parameters.check().is_ok(), "invariant: the simulation has checked its plan");
        let buffers = parameters.lane_buffers(lanes).expect("invariant: the simulation has checked its plan");
        let [host_ids, switch_ids, link_ids] = partition.members(shard);
        let all = graph.links();
        let whole = partition.shards() == 1;
        let links = || own_links(all, &link_ids, whole);
        let nic_host: Vec<u32> =
            links().map_while(|link| host_of(link.from)).map(|host| partition.host(host).number()).collect();
        let nics = nic_host.len();
        let hosts = number(if whole { graph.hosts() } else { host_ids.len() });
        let ports_before = |host| nic_host.partition_point(|other| *other < host);
        let (wires, wire_of) = wires(all, links(), parameters);
        let longest = wires.iter().map(|wire| wire.latency).max().unwrap_or(0);
        let input_queued = match architecture {
            Architecture::InputQueued(params) => Some(params.clone()),
            Architecture::OutputQueued => None,
        };
        let (transports, transport_of_job) = transports(plan);
        let feedback = feedback_of(&transports, parameters.mtu);
        let mut config = Self {
            full: narrow(parameters.largest_packet()),
            header: narrow(parameters.header),
            lane_buffer: narrow(buffers.lane),
            pool: buffers.pool.map(narrow),
            channels: lanes > usize::from(*virtual_lanes),
            vl_of_lane: vls_of_lanes(&first_lane, *virtual_lanes),
            virtual_lanes: *virtual_lanes,
            first_lane,
            lanes,
            adaptive: routing.adaptive(),
            by_switch: routing.adaptive() || input_queued.is_some(),
            input_queued,
            state_words: arbiter.state_words(),
            nics: number(nics),
            first_nic: (0..=hosts).map(|host| number(ports_before(host))).collect(),
            single_homed: graph.endpoints() == graph.hosts(),
            gaps: message_gaps(graph, links().take(nics)),
            to_switch: links().map(|link| switch_of(link.to)).collect(),
            to_nic: links().map(|link| nic_of(link, partition)).collect(),
            far_ends: if whole {
                Vec::new()
            } else {
                links().map(|link| FarEnd::new(link, graph, partition)).collect()
            },
            one_rate: all.iter().all(|link| link.bandwidth == all[0].bandwidth),
            longest,
            sufficient: 0,
            wires,
            wire_of,
            nic_host,
            partition: partition.clone(),
            shard,
            origin: u8::try_from(shard).expect("invariant: at most 32 shards"),
            host_ids,
            switch_ids,
            link_ids,
            graph: Arc::clone(graph),
            routes: Routes::new(Arc::clone(routing)),
            arbiter: Arc::clone(arbiter),
            features: Features::NONE,
            round_trips: round_trips(plan, &feedback),
            flow_words: transports.iter().map(|transport| transport.state_words()).max().unwrap_or(0),
            transports,
            transport_of_job,
            feedback,
            loss: LossConfig::new(plan, &first_lane, window),
            error_rates: FxHashMap::default(),
            parameters: parameters.clone(),
            observe: *observe,
        };
        config.features = Features::new(plan, &config);
        config.sufficient = config.sufficient_credits(window);
        config
    }

    /// Credits are returned when a packet has left a buffer: at a switch, when its transmission on the next link ends, which
    /// began in the open window; at a host, one link latency after that end. They arrive one link latency later still. So
    /// credits returned in a window of this width have arrived at the latest a full packet's wire time and two link latencies
    /// after the window's end. Until then a link can start what fits into the time since the window's opening, and one packet
    /// more; and the next must fit. With a pool, credits of one lane may be what another lacks, and a link with errors may take
    /// longer: the exact time always counts.
    pub fn sufficient_credits(&self, window: Picoseconds) -> u32 {
        if self.pool.is_some() || !self.error_rates.is_empty() {
            return u32::MAX;
        }
        let fastest = self.wires.iter().map(|wire| wire.bandwidth.0).max().unwrap_or(0);
        let span = u128::from(window.0) + u128::from(self.slowest()) + 2 * u128::from(self.longest);
        let bytes = (span * u128::from(fastest)).div_ceil(8 * 1_000_000_000_000) + 2 * u128::from(self.full);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// The number of the kind of link with this latency and bandwidth, new if there is none. Kinds are never removed: what is
    /// under way may have started on a link of any of them.
    pub fn wire(&mut self, latency: Picoseconds, bandwidth: BitsPerSec) -> u32 {
        let same = |wire: &Wire| wire.latency == latency.0 && wire.bandwidth == bandwidth;
        let known = self.wires.iter().position(same);
        number(known.unwrap_or_else(|| {
            let full_wire_time = bandwidth.serialization(self.parameters.largest_packet()).0;
            self.wires.push(Wire { latency: latency.0, bandwidth, full_wire_time });
            self.wires.len() - 1
        }))
    }

    /// The lanes whose credits can make one of `waiting` ready.
    #[inline(always)]
    pub const fn awaited<P: Probe>(&self, waiting: u64) -> u64 {
        if self.has::<P>().pool { u64::MAX } else { waiting }
    }

    /// The longest time from a packet's start on a link to its arrival at the next port, ps; see [`Config::forwarding_delay`].
    pub fn furthest(&self) -> u64 {
        let delay = match self.parameters.switching {
            Switching::CutThrough if self.one_rate => 0,
            _ => self.slowest(),
        };
        self.longest + self.parameters.switch_latency.0 + delay
    }

    /// The same on one link, given by its id.
    pub fn furthest_on(&self, link: u32) -> u64 {
        self.latency_of(link) + self.parameters.switch_latency.0 + self.slowest()
    }

    /// The longest wire time of a full packet, ps.
    fn slowest(&self) -> u64 {
        self.wires.iter().map(|wire| wire.full_wire_time).max().unwrap_or(0)
    }

    /// The place of a job's transport among [`Config::transports`].
    #[inline]
    pub fn transport_place(&self, job: u16) -> usize {
        self.transport_of_job.get(usize::from(job)).map_or(0, |place| usize::from(*place))
    }

    /// The transport of a job.
    #[inline]
    pub fn transport_of(&self, job: u16) -> &dyn Transport {
        &*self.transports[self.transport_place(job)]
    }

    /// The NIC ports of a host of the shard.
    #[inline]
    pub fn nics_of(&self, host: u32) -> std::ops::Range<u32> {
        self.first_nic[host as usize]..self.first_nic[host as usize + 1]
    }

    /// The id of a port's link.
    #[inline(always)]
    pub fn link_id<P: Probe>(&self, port: u32) -> u32 {
        if P::SHARDED { self.link_ids[port as usize] } else { port }
    }

    /// The same, with any number of shards.
    pub fn link_of(&self, port: u32) -> u32 {
        self.link_ids.get(port as usize).map_or(port, |link| *link)
    }

    /// The id of a host of the shard.
    #[inline(always)]
    pub fn host_id<P: Probe>(&self, host: u32) -> HostId {
        HostId(if P::SHARDED { self.host_ids[host as usize] } else { host })
    }

    /// The id of a switch of the shard.
    #[inline(always)]
    pub fn switch_id<P: Probe>(&self, switch: u32) -> SwitchId {
        SwitchId(if P::SHARDED { self.switch_ids[switch as usize] } else { switch })
    }

    /// The shard at the far end of a port's link, if it is another.
    #[inline(always)]
    pub fn other_shard<P: Probe>(&self, port: u32) -> Option<usize> {
        if !P::SHARDED {
            return None;
        }
        let shard = usize::from(self.far_ends[port as usize].shard);
        (shard != self.shard).then_some(shard)
    }

    /// The port of a link that leaves the switch at the far end of `port`, by its number in the shard there.
    #[inline(always)]
    pub fn next_port<P: Probe>(&self, port: u32, link: u32) -> u32 {
        if P::SHARDED { link.wrapping_add(self.far_ends[port as usize].offset) } else { link }
    }

    /// A port of this shard as other shards know it.
    #[inline(always)]
    pub fn place(&self, port: u32) -> Place {
        Place::new(self.shard, port)
    }

    /// A link's port, by its number in its shard.
    #[inline(always)]
    pub fn port_of<P: Probe>(&self, link: u32) -> u32 {
        if P::SHARDED { self.partition.link(LinkId(link)).number() } else { link }
    }

    /// The place of a link among the counters of queueing after a link: that of the link back, which leaves the switch at
    /// its end and so belongs to the shard in which the packets wait.
    pub fn onward_place(&self, link: u32) -> usize {
        self.partition.link(self.graph.link(LinkId(link)).reverse).number() as usize
    }

    /// The address of a host's adapter of this rail: the number of the link that leaves it.
    #[inline]
    pub fn endpoint(&self, host: HostId, rail: u8) -> u32 {
        if self.single_homed { host.0 } else { self.graph.endpoint(host, rail.into()).0 }
    }

    /// The lane of a virtual lane and a virtual channel.
    #[inline]
    pub fn lane(&self, vl: u8, channel: u8) -> u8 {
        self.first_lane[usize::from(vl) % MAX_VIRTUAL_LANES] + channel
    }

    /// Virtual lanes in use.
    pub fn vls(&self) -> u8 {
        self.virtual_lanes
    }

    /// The virtual lane of a lane.
    #[inline]
    pub fn vl_of(&self, lane: u8) -> u8 {
        self.vl_of_lane[usize::from(lane) % MAX_LANES]
    }

    /// The lanes of a virtual lane.
    #[inline]
    pub fn lanes_of(&self, vl: u8) -> std::ops::Range<u8> {
        let vl = usize::from(vl) % MAX_VIRTUAL_LANES;
        self.first_lane[vl]..self.first_lane[vl + 1]
    }

    /// How many packets a message of this payload makes. Most make one: no division for them.
    #[inline]
    pub fn packets_of(&self, bytes: u64) -> u64 {
        if bytes <= self.parameters.mtu.0 { 1 } else { bytes.div_ceil(self.parameters.mtu.0) }
    }

    /// Payload of the next packet of a message of which this much is left.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most one MTU")]
    pub fn payload(&self, left: u64) -> u32 {
        left.min(self.parameters.mtu.0) as u32
    }

    /// Wire time of a packet on a link, given by its id, ps.
    pub fn wire_time(&self, link: u32, bytes: u32) -> u64 {
        self.graph.link(LinkId(link)).bandwidth.serialization(Bytes(u64::from(bytes))).0
    }

    /// How much later than its head a packet joins the output queue of a switch, ps: with store-and-forward its wire time on
    /// the link that it came over; with cut-through the time by which its transmission on a faster link `next` (an id) would
    /// otherwise overtake its arrival. `wire_time` is that of the link that it came over, evaluated only if needed.
    #[inline]
    pub fn forwarding_delay<P: Probe>(&self, wire_time: impl FnOnce() -> u64, bytes: u32, next: u32) -> u64 {
        if !self.has::<P>().late {
            return 0;
        }
        match self.parameters.switching {
            Switching::StoreAndForward => wire_time(),
            Switching::CutThrough => wire_time().saturating_sub(self.wire_time(next, bytes)),
        }
    }

    /// The latency of a port's link, ps.
    #[inline]
    pub fn latency(&self, port: u32) -> u64 {
        let wire = if self.wires.len() == 1 { 0 } else { self.wire_of[port as usize] };
        self.wires[wire as usize].latency
    }

    /// The latency of a link of any shard, given by its id, ps.
    #[inline]
    pub fn latency_of(&self, link: u32) -> u64 {
        if let [wire] = &self.wires[..] { wire.latency } else { self.graph.link(LinkId(link)).latency.0 }
    }

    /// The most bytes that this lane can have in the input buffer of its link.
    pub fn buffer_of(&self, lane: u8) -> u32 {
        let own = self.parameters.port_buffer.as_ref().and_then(|memory| memory.of_lane(lane));
        own.map_or(self.lane_buffer, narrow)
    }

    /// The virtual channel of a lane of this virtual lane.
    #[inline]
    pub fn channel(&self, vl: u8, lane: u8) -> u8 {
        lane - self.first_lane[usize::from(vl) % MAX_VIRTUAL_LANES]
    }
}

/// The links of a shard.
fn own_links<'a>(all: &'a [Link], ids: &'a [u32], whole: bool) -> impl Iterator<Item = &'a Link> {
    let every = if whole { all } else { &[] };
    every.iter().chain(ids.iter().map(|id| &all[*id as usize]))
}

/// The distinct kinds of link in the fabric, and the kind of each link of the shard.
fn wires<'a>(all: &[Link], links: impl Iterator<Item = &'a Link>, parameters: &Parameters) -> (Vec<Wire>, Vec<u32>) {
    let mut known: HashMap<(Picoseconds, BitsPerSec), u32> = HashMap::new();
    let mut wires = Vec::new();
    for link in all {
        let (latency, bandwidth) = (link.latency, link.bandwidth);
        known.entry((latency, bandwidth)).or_insert_with(|| {
            let full_wire_time = bandwidth.serialization(parameters.largest_packet()).0;
            wires.push(Wire { latency: latency.0, bandwidth, full_wire_time });
            number(wires.len() - 1)
        });
    }
    (wires, links.map(|link| known[&(link.latency, link.bandwidth)]).collect())
}

/// The minimum time between two messages of each NIC, ps; empty if there is none.
fn message_gaps<'a>(graph: &Graph, nics: impl Iterator<Item = &'a Link>) -> Vec<u64> {
    let rail = |link: &Link| {
        let own = graph.link(link.reverse).reverse;
        graph.ports(link.from).position(|port| port == own).unwrap_or_default()
    };
    let gaps: Vec<u64> = nics.map(|link| graph.message_gap(rail(link)).0).collect();
    if gaps.iter().all(|gap| *gap == 0) { Vec::new() } else { gaps }
}

/// The first lane of each virtual lane; after the last, the number of lanes.
fn first_lanes(routing: &dyn Routing, virtual_lanes: u8) -> [u8; MAX_VIRTUAL_LANES + 1] {
    let (mut first, mut lanes) = ([0; MAX_VIRTUAL_LANES + 1], 0);
    for vl in 0..virtual_lanes {
        first[usize::from(vl)] = lanes;
        lanes += routing.channels_of(vl);
    }
    first[usize::from(virtual_lanes)..].fill(lanes);
    first
}

/// The virtual lane of each lane.
fn vls_of_lanes(first_lane: &[u8; MAX_VIRTUAL_LANES + 1], virtual_lanes: u8) -> [u8; MAX_LANES] {
    let mut vl_of_lane = [0; MAX_LANES];
    for vl in 0..virtual_lanes {
        vl_of_lane[usize::from(first_lane[usize::from(vl)])..usize::from(first_lane[usize::from(vl) + 1])].fill(vl);
    }
    vl_of_lane
}

fn host_of(vertex: Vertex) -> Option<HostId> {
    match vertex {
        Vertex::Host(host) => Some(host),
        Vertex::Switch(_) => None,
    }
}

fn switch_of(vertex: Vertex) -> u32 {
    match vertex {
        Vertex::Switch(switch) => switch.0,
        Vertex::Host(_) => NONE,
    }
}

fn nic_of(link: &Link, partition: &Partition) -> u32 {
    match link.to {
        Vertex::Host(_) => partition.link(link.reverse).number(),
        Vertex::Switch(_) => NONE,
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: links have 27-bit numbers")
}

/// A size in 32 bits.
pub(super) fn narrow(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).expect("invariant: the parameters have been checked")
}
