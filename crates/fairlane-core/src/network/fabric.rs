//! The part of the configuration that never changes and is the same in all shards: topology, policies, parameters, lanes.

use std::collections::HashMap;
use std::sync::Arc;

use super::index::LaneIdx;
use super::parameters::{Parameters, Retransmission, Switching};
use super::partition::{Partition, PortPlace};
use super::pauses::Pauses;
use super::plan::Plan;
use super::round_trip::longest_round_trip;
use super::switch::{Architecture, InputQueued};
use super::transport::{Feedback, Pulls, Transport};
use crate::ids::{HostId, JobId, LinkId, TrafficId, VirtualLane};
use crate::observe;
use crate::qos::arbiter::{MAX_LANES, MAX_VIRTUAL_LANES};
use crate::routing::Routing;
use crate::topology::{Graph, Vertex};
use crate::units::{Bytes, Picoseconds};

/// A fabric and the policies of its devices. Bandwidths and routes may change: see
/// [`Conditions`](super::conditions::Conditions). Each shard has a copy, so that what a hop reads is next to each other; the graph, the
/// partition, transports and tables are shared.
#[derive(Clone)]
pub(super) struct Fabric {
    /// The fabric as it was built.
    pub graph: Arc<Graph>,
    pub partition: Partition,
    /// The scenario's transport, then those of jobs that have another.
    pub transports: Vec<Arc<dyn Transport>>,
    /// The place of each job's transport among them; empty if all have the first.
    transport_of_job: Arc<[u16]>,
    /// The job of each [`TrafficId`]; empty if they are the numbers of jobs.
    job_of_traffic: Arc<[JobId]>,
    /// The feedback that each of them needs.
    pub feedback: Vec<Option<Feedback>>,
    /// How receivers grant credit to each of them, if they do.
    pub pulls: Vec<Option<Pulls>>,
    /// The round trip of each of them; see [`FlowSetup::round_trip`](super::transport::FlowSetup::round_trip).
    pub round_trips: Vec<Picoseconds>,
    pub parameters: Parameters,
    pub observe: observe::Parameters,
    /// A full packet on the wire, and the part of every packet that is not payload; in bytes.
    pub full: u32,
    pub header: u32,
    /// The most bytes that any lane can have in the input buffer of its link; see [`Fabric::buffer_of`].
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
    vl_of_lane: [u8; MAX_LANES],
    /// Some virtual lane has several virtual channels.
    pub channels: bool,
    /// The lanes on which packets need no credits and are lost at full queues.
    pub lossy: u64,
    /// The lanes with priority flow control.
    pub pfc: u64,
    /// The virtual lane of the headers of packets that are trimmed instead, if they are.
    pub trim_vl: Option<VirtualLane>,
    /// From the loss of a packet until its retransmission, ps; at least four windows.
    pub timeout: Picoseconds,
    /// Receivers discard packets after a gap, see [`Retransmission`].
    pub go_back_n: bool,
    /// The routing is adaptive: packets are routed when they arrive at a switch.
    pub adaptive: bool,
    /// The parameters of input-queued switches; `None` if switches are output-queued.
    pub input_queued: Option<InputQueued>,
    /// Packets are sent to a switch, not straight to its output port: the routing is adaptive, or switches are input-queued.
    pub by_switch: bool,
    /// Every host has one adapter: its id is the address of it.
    single_homed: bool,
    /// The longest latency of a link, ps.
    pub longest: Picoseconds,
}

impl Fabric {
    /// That of a plan, for windows of this width.
    pub fn new(plan: &Plan, window: Picoseconds, partition: &Partition) -> Self {
        let Plan { graph, routing, virtual_lanes, parameters, .. } = plan;
        let first_lane = first_lanes(&**routing, *virtual_lanes);
        let lanes = usize::from(first_lane[MAX_VIRTUAL_LANES]);
        assert!(lanes <= MAX_LANES && parameters.check().is_ok(), "invariant: the simulation has checked its plan");
        let buffers = parameters.lane_buffers(lanes).expect("invariant: the simulation has checked its plan");
        let input_queued = match &plan.architecture {
            Architecture::InputQueued(params) => Some(params.clone()),
            Architecture::OutputQueued => None,
        };
        let lossy = plan.lossy.iter().flat_map(|vl| first_lane[usize::from(*vl)]..first_lane[usize::from(*vl) + 1]);
        let lossy = lossy.fold(0, |set, lane| set | 1 << lane);
        let all = u64::MAX >> (u64::BITS as usize - lanes.max(1));
        let (transports, transport_of_job) = transports(plan);
        let feedback = feedback_of(&transports, parameters.mtu);
        Self {
            graph: Arc::clone(graph),
            partition: partition.clone(),
            round_trips: round_trips(plan, &feedback),
            pulls: transports.iter().map(|transport| transport.pulls()).collect(),
            transports,
            transport_of_job,
            job_of_traffic: plan.traffic.as_slice().into(),
            feedback,
            full: narrow(parameters.largest_packet()),
            header: narrow(parameters.header),
            lane_buffer: narrow(buffers.lane),
            pool: buffers.pool.map(narrow),
            channels: lanes > usize::from(*virtual_lanes),
            vl_of_lane: vls_of_lanes(&first_lane, *virtual_lanes),
            virtual_lanes: *virtual_lanes,
            lossy,
            pfc: if parameters.flow_control.is_credits() { 0 } else { all & !lossy },
            first_lane,
            lanes,
            trim_vl: plan.trim_vl.map(VirtualLane),
            timeout: parameters.retransmission_timeout.max(4 * window),
            go_back_n: parameters.retransmission == Retransmission::GoBackN,
            adaptive: routing.adaptive(),
            by_switch: routing.adaptive() || input_queued.is_some(),
            input_queued,
            single_homed: graph.endpoints() == graph.hosts(),
            longest: graph.links().iter().map(|link| link.latency).max().unwrap_or_default(),
            parameters: parameters.clone(),
            observe: plan.observe,
        }
    }

    /// The job whose packets are counted for `traffic`.
    #[inline]
    pub fn job_of(&self, traffic: TrafficId) -> JobId {
        self.job_of_traffic.get(traffic.index()).copied().unwrap_or(JobId(traffic.0))
    }

    /// The place of a job's transport among [`Fabric::transports`].
    #[inline]
    pub fn transport_place(&self, job: JobId) -> usize {
        self.transport_of_job.get(job.index()).map_or(0, |place| usize::from(*place))
    }

    /// The transport of a job.
    #[inline]
    pub fn transport_of(&self, job: JobId) -> &Arc<dyn Transport> {
        &self.transports[self.transport_place(job)]
    }

    /// The feedback that the transport of a job needs.
    #[inline]
    pub fn feedback_of(&self, job: JobId) -> Option<&Feedback> {
        self.feedback[self.transport_place(job)].as_ref()
    }

    /// How receivers grant credit to the flows of a job, if they do.
    #[inline]
    pub fn pulls_of(&self, job: JobId) -> Option<Pulls> {
        self.pulls[self.transport_place(job)]
    }

    /// The lane of a port, in the order of all, at which queueing after a lane of a link is counted: that of the link back, which
    /// leaves the switch at its end and so belongs to the shard in which the packets wait.
    pub fn onward_place(&self, link: LinkId, lane: LaneIdx) -> usize {
        self.partition.port(self.graph.link(link).reverse).port.index() * self.lanes + lane.index()
    }

    /// The address of a host's adapter of this rail: the number of the link that leaves it.
    #[inline]
    pub fn endpoint(&self, host: HostId, rail: u8) -> u32 {
        if self.single_homed { host.0 } else { self.graph.endpoint(host, rail.into()).0 }
    }

    /// The NIC port that the packets of an address come from and go to.
    pub fn nic_of_address(&self, address: u32) -> PortPlace {
        self.partition.port(LinkId(address))
    }

    /// The lane of a virtual lane and a virtual channel.
    #[inline]
    pub fn lane(&self, vl: VirtualLane, channel: u8) -> LaneIdx {
        LaneIdx(self.first_lane[usize::from(vl.0) % MAX_VIRTUAL_LANES] + channel)
    }

    /// The virtual lane of a lane.
    #[inline]
    pub fn vl_of(&self, lane: LaneIdx) -> VirtualLane {
        VirtualLane(self.vl_of_lane[lane.index() % MAX_LANES])
    }

    /// The virtual channel of a lane of this virtual lane.
    #[inline]
    pub fn channel(&self, vl: VirtualLane, lane: LaneIdx) -> u8 {
        lane.0 - self.first_lane[usize::from(vl.0) % MAX_VIRTUAL_LANES]
    }

    /// The lanes of a virtual lane.
    #[inline]
    pub fn lanes_of(&self, vl: VirtualLane) -> impl Iterator<Item = LaneIdx> + use<> {
        let vl = usize::from(vl.0) % MAX_VIRTUAL_LANES;
        (self.first_lane[vl]..self.first_lane[vl + 1]).map(LaneIdx)
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

    /// The most bytes that this lane can have in the input buffer of its link.
    pub fn buffer_of(&self, lane: LaneIdx) -> u32 {
        let own = self.parameters.port_buffer.as_ref().and_then(|memory| memory.of_lane(lane.0));
        own.map_or(self.lane_buffer, narrow)
    }

    /// Whether packets on a lane need no credits and are lost at full queues.
    pub const fn is_lossy(&self, lane: LaneIdx) -> bool {
        self.lossy & lane.bit() != 0
    }

    /// Whether a lane has priority flow control.
    #[inline(always)]
    pub const fn is_pfc(&self, lane: LaneIdx) -> bool {
        self.pfc & lane.bit() != 0
    }

    /// The pauses of the lanes of a port; none without priority flow control.
    pub fn pauses(&self, link: LinkId) -> impl Iterator<Item = Pauses> {
        let (graph, full) = (&self.graph, self.parameters.largest_packet());
        let at_switch = matches!(graph.link(link).from, Vertex::Switch(_));
        let pfc = self.parameters.flow_control.pfc().into_iter();
        pfc.flat_map(move |pfc| {
            (0..).take(self.lanes).map(move |lane| {
                let buffer = Bytes(u64::from(self.buffer_of(LaneIdx(lane))));
                Pauses::new(pfc.thresholds(graph, link, full, buffer), pfc, at_switch)
            })
        })
    }

    /// The credits of each lane of a port at rest; a lane without has 2 GiB, more than the queues of a switch hold.
    pub fn lane_credits(&self) -> impl Iterator<Item = u32> {
        let lanes = (0..).take(self.lanes).map(LaneIdx);
        lanes.map(|lane| if self.is_lossy(lane) || self.is_pfc(lane) { u32::MAX / 2 } else { self.buffer_of(lane) })
    }

    /// Whether packets join queues only when all of them is there.
    pub fn stores_packets(&self) -> bool {
        self.parameters.switching == Switching::StoreAndForward
    }
}

/// The scenario's transport and those of jobs, and the place of each job's.
fn transports(plan: &Plan) -> (Vec<Arc<dyn Transport>>, Arc<[u16]>) {
    let mut all = vec![Arc::clone(&plan.transport)];
    let mut of_jobs = vec![0; if plan.job_transports.is_empty() { 0 } else { plan.jobs }];
    for (job, transport) in &plan.job_transports {
        of_jobs[job.index()] = u16::try_from(all.len()).expect("invariant: at most 4096 jobs");
        all.push(Arc::clone(transport));
    }
    (all, of_jobs.into())
}

/// The round trip of each transport, with its notices; zero of those without.
fn round_trips(plan: &Plan, feedback: &[Option<Feedback>]) -> Vec<Picoseconds> {
    let mut known: HashMap<Bytes, Picoseconds> = HashMap::new();
    let mut round_trip = |feedback: &Feedback| {
        let Plan { graph, routing, parameters, .. } = plan;
        let answer = feedback.bytes + parameters.header;
        *known.entry(answer).or_insert_with(|| longest_round_trip(graph, &**routing, parameters, answer))
    };
    feedback.iter().map(|feedback| feedback.as_ref().map_or(Picoseconds::ZERO, &mut round_trip)).collect()
}

/// The feedback that each transport needs; a notice is one packet.
fn feedback_of(transports: &[Arc<dyn Transport>], mtu: Bytes) -> Vec<Option<Feedback>> {
    let mut all: Vec<Option<Feedback>> = transports.iter().map(|transport| transport.feedback()).collect();
    for feedback in all.iter_mut().flatten() {
        feedback.bytes = feedback.bytes.min(mtu);
    }
    all
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

/// A size in 32 bits.
pub(super) fn narrow(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).expect("invariant: the parameters have been checked")
}
