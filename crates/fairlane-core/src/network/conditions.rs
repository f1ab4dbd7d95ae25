//! Conditions that change while a simulation runs, between two windows: faults change links, routes and adapters.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::fabric::Fabric;
use super::features::Features;
use super::index::PortIdx;
use super::naming::Naming;
use super::packet::{Packet, PacketNumber};
use super::parameters::Turns;
use super::partition::PortPlace;
use super::plan::Plan;
use crate::fault::LinkErrors;
use crate::ids::{HostId, JobId, LinkId};
use crate::kernel::Indexed;
use crate::routing::Routing;
use crate::topology::{Graph, RailMap};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// The conditions in which a shard runs its windows.
#[derive(Clone)]
pub(super) struct Conditions {
    pub features: Features,
    pub routes: Routes,
    /// The fabric with the present bandwidths of links.
    pub graph: Arc<Graph>,
    /// The distinct kinds of link in the fabric, and the kind of each link of the shard.
    pub wires: Vec<Wire>,
    pub wire_of: Indexed<PortIdx, u32>,
    /// A lane with so many credits cannot run short before credits arrive that are returned in the open window, even if the
    /// fastest link is busy from the window's opening until then.
    pub sufficient: u32,
    /// Packets on one path can overtake each other: some are lost, or the bandwidth of a link changes while they are on it.
    pub overtaking: bool,
    /// Links that are or were down.
    pub outages: Outages,
    /// Links that have errors.
    errors: FxHashMap<LinkId, LinkErrors>,
    /// The adapters that reach each other, once that has changed, and the jobs that use others where theirs do not.
    pub failover: Option<(Arc<RailMap>, Arc<[bool]>)>,
}

/// Rate and latency of a link. Links that are alike share one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    /// Latency, ps.
    pub latency: Picoseconds,
    pub bandwidth: BitsPerSec,
    /// Serialization time of a full packet, ps.
    pub full_wire_time: Picoseconds,
}

impl Conditions {
    /// Those of a network at instant zero, for windows of this width.
    pub fn new(plan: &Plan, fabric: &Fabric, naming: &Naming, window: Picoseconds) -> Self {
        let Plan { graph, routing, .. } = plan;
        let features = features(plan, fabric);
        let mut conditions = Self {
            features,
            routes: Routes::new(Arc::clone(routing)),
            graph: Arc::clone(graph),
            wires: Vec::new(),
            wire_of: Indexed::of(0, 0),
            sufficient: 0,
            overtaking: features.loses,
            outages: Outages::default(),
            errors: FxHashMap::default(),
            failover: None,
        };
        // In the order of all links, so that kinds have the same numbers in all shards.
        for link in graph.links() {
            conditions.wire_number(fabric, link.latency, link.bandwidth);
        }
        conditions.wire_of = naming
            .links()
            .map(|link| graph.link(link))
            .map(|link| conditions.wire_number(fabric, link.latency, link.bandwidth))
            .collect();
        conditions.set_sufficient(fabric, window);
        conditions
    }

    /// The kind of link with this number. Mostly there is one.
    #[inline(always)]
    pub fn wire(&self, number: u32) -> &Wire {
        if let [wire] = &self.wires[..] { wire } else { &self.wires[number as usize] }
    }

    /// The number of the kind of link with this latency and bandwidth, new if there is none. Kinds are never removed: what is
    /// under way may have started on a link of any of them.
    fn wire_number(&mut self, fabric: &Fabric, latency: Picoseconds, bandwidth: BitsPerSec) -> u32 {
        let same = |wire: &Wire| wire.latency == latency && wire.bandwidth == bandwidth;
        let known = self.wires.iter().position(same).unwrap_or_else(|| {
            let full_wire_time = bandwidth.serialization(fabric.parameters.largest_packet());
            self.wires.push(Wire { latency, bandwidth, full_wire_time });
            self.wires.len() - 1
        });
        u32::try_from(known).expect("invariant: links have 27-bit numbers")
    }

    /// Gives links of `graph`, the new one, other bandwidths. Returns the ports of `naming` that have others, with their wires.
    pub fn set_bandwidths(
        &mut self,
        (fabric, naming): (&Fabric, &Naming),
        graph: &Arc<Graph>,
        links: impl Iterator<Item = LinkId>,
        window: Picoseconds,
    ) -> Vec<(PortIdx, u32)> {
        self.graph = Arc::clone(graph);
        self.features.late = true;
        let mut changed = Vec::new();
        for link in links {
            let PortPlace { shard, port } = fabric.partition.port(link);
            let wire = self.wire_number(fabric, graph.link(link).latency, graph.link(link).bandwidth);
            if shard == naming.shard {
                self.wire_of[port] = wire;
                changed.push((port, wire));
            }
        }
        self.set_sufficient(fabric, window);
        changed
    }

    /// Gives links errors; all others have none.
    pub fn set_errors(&mut self, fabric: &Fabric, errors: &BTreeMap<LinkId, LinkErrors>, window: Picoseconds) {
        self.errors = errors.iter().map(|(link, errors)| (*link, *errors)).collect();
        self.features.errors = !errors.is_empty();
        self.set_sufficient(fabric, window);
    }

    /// The bandwidths of the links of all ports.
    pub fn bandwidths(&self) -> Vec<BitsPerSec> {
        self.wire_of.rows().iter().map(|&wire| self.wire(wire).bandwidth).collect()
    }

    /// The errors of a link, if it has any.
    pub fn errors_of(&self, link: LinkId) -> Option<LinkErrors> {
        self.errors.get(&link).copied()
    }

    /// Credits are returned when a packet has left a buffer: at a switch, when its transmission on the next link ends, which
    /// began in the open window; at a host, one link latency after that end. They arrive one link latency later still. So
    /// credits returned in a window of this width have arrived at the latest a full packet's wire time and two link latencies
    /// after the window's end. Until then a link can start what fits into the time since the window's opening, and one packet
    /// more; and the next must fit. With a pool, credits of one lane may be what another lacks, and a link with errors may take
    /// longer: the exact time always counts.
    fn set_sufficient(&mut self, fabric: &Fabric, window: Picoseconds) {
        if fabric.pool.is_some() || !self.errors.is_empty() {
            self.sufficient = u32::MAX;
            return;
        }
        let fastest = self.wires.iter().map(|wire| wire.bandwidth.0).max().unwrap_or(0);
        let span = u128::from(window.0) + u128::from(self.slowest().0) + 2 * u128::from(fabric.longest.0);
        let bytes = (span * u128::from(fastest)).div_ceil(8 * 1_000_000_000_000) + 2 * u128::from(fabric.full);
        self.sufficient = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// The longest wire time of a full packet, ps.
    pub fn slowest(&self) -> Picoseconds {
        self.wires.iter().map(|wire| wire.full_wire_time).max().unwrap_or_default()
    }

    /// Wire time of a packet on a link, ps.
    pub fn wire_time(&self, link: LinkId, bytes: u32) -> Picoseconds {
        self.graph.link(link).bandwidth.serialization(Bytes(u64::from(bytes)))
    }

    /// The latency of a port's link, ps.
    #[inline]
    pub fn latency(&self, port: PortIdx) -> Picoseconds {
        let wire = if self.wires.len() == 1 { 0 } else { self.wire_of[port] };
        self.wires[wire as usize].latency
    }

    /// The latency of a link of any shard, ps.
    #[inline]
    pub fn latency_of(&self, link: LinkId) -> Picoseconds {
        if let [wire] = &self.wires[..] { wire.latency } else { self.graph.link(link).latency }
    }

    /// Whether a packet that joins the next queue at `time` is lost on the link that it comes over.
    pub fn lost_on_link(&self, packet: &Packet, time: Instant) -> bool {
        let link = packet.came.link();
        self.outages.lost(link, self.latency_of(link), time)
    }

    /// The addresses through which a lost packet is retransmitted: those that it had, or, where adapters have been cut off, others of
    /// the same hosts, as a connection moves to its alternate path (`InfiniBand` Architecture Specification, volume 1,
    /// section 17.2.8, "Automatic path migration").
    pub fn alternate(&self, &Packet { source, to, number, .. }: &Packet, job: JobId) -> [u32; 2] {
        let Some((rails, jobs)) = &self.failover else { return [source, to] };
        let end = |address: u32| {
            let host = self.graph.host_of(HostId(address));
            let rail = address - self.graph.endpoint(host, 0).0;
            (host, u8::try_from(rail).unwrap_or(u8::MAX))
        };
        let [from, other] = [end(source), end(to)];
        let pairs = rails.pairs(from.0, other.0);
        if pairs.is_empty() || !jobs[job.index()] || rails.joins(from, other) {
            return [source, to];
        }
        let [rail, peer] = pairs[number.place() as usize % pairs.len()];
        [self.graph.endpoint(from.0, rail.into()).0, self.graph.endpoint(other.0, peer.into()).0]
    }
}

/// The features of a plan. What faults bring is added when they are expected.
fn features(plan: &Plan, fabric: &Fabric) -> Features {
    let marks = fabric.feedback.iter().flatten().any(|feedback| feedback.marking.is_some());
    let telemetry = fabric.feedback.iter().flatten().any(|feedback| feedback.telemetry);
    let lossy = fabric.lossy != 0;
    let watchdog = plan.parameters.flow_control.pfc().is_some_and(|pfc| pfc.watchdog.is_some());
    let links = plan.graph.links();
    Features {
        paces: fabric.go_back_n || fabric.transports.iter().any(|transport| transport.paces()),
        controls: fabric.go_back_n || fabric.feedback.iter().any(Option::is_some),
        marks,
        telemetry,
        measures_queues: marks || telemetry || lossy,
        lossy,
        loses: lossy || watchdog,
        errors: false,
        pool: fabric.pool.is_some(),
        pfc: fabric.pfc != 0,
        input_queued: fabric.input_queued.is_some(),
        late: fabric.stores_packets() || links.iter().any(|link| link.bandwidth != links[0].bandwidth),
        gaps: (0..plan.graph.rails()).any(|rail| plan.graph.message_gap(rail as usize).0 > 0),
        pairs: plan.parameters.injection != Turns::Messages,
        details: plan.observe.onward_waiting || !plan.observe.departs().is_empty(),
        classes: !plan.traffic.is_empty(),
    }
}

/// The routings that packets under way may have. A packet keeps the routes that applied when it was injected, also after a sweep
/// has replaced them; after [`PacketNumber::GENERATIONS`] further sweeps it takes the newest.
#[derive(Clone)]
pub(super) struct Routes {
    /// That of all packets if it has never been replaced.
    first: Arc<dyn Routing>,
    /// By generation, modulo [`PacketNumber::GENERATIONS`]; empty if routes have never been replaced.
    all: Vec<Arc<dyn Routing>>,
    /// How often routes have been replaced.
    newest: usize,
    /// The generation of packets that start now, as [`PacketNumber`] has it.
    pub tag: u32,
}

impl Routes {
    fn new(routing: Arc<dyn Routing>) -> Self {
        Self { first: routing, all: Vec::new(), newest: 0, tag: PacketNumber::routes(0) }
    }

    /// Packets that start from now on take other routes.
    pub fn replace(&mut self, routing: Arc<dyn Routing>) {
        if self.all.is_empty() {
            self.all.push(Arc::clone(&self.first));
        }
        self.newest += 1;
        if self.all.len() < PacketNumber::GENERATIONS {
            self.all.push(routing);
        } else {
            self.all[self.newest % PacketNumber::GENERATIONS] = routing;
        }
        self.tag = PacketNumber::routes(self.newest);
    }

    /// The routing of a packet.
    #[inline(always)]
    pub fn of(&self, packet: &Packet) -> &dyn Routing {
        if self.all.is_empty() { &*self.first } else { &*self.all[packet.number.generation()] }
    }
}

/// When a link was down last.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Instant,
    until: Instant,
}

/// Links that are or were down.
#[derive(Clone, Debug, Default)]
pub(super) struct Outages {
    last: FxHashMap<LinkId, Outage>,
}

impl Outages {
    /// A link goes down at `now`.
    pub fn begin(&mut self, link: LinkId, now: Instant) {
        self.last.insert(link, Outage { from: now, until: Instant::MAX });
    }

    /// A link is up again at `now`. What was on it when it went down had joined the next queue at the latest `furthest` later, but for
    /// packets that were repeated.
    pub fn end(&mut self, link: LinkId, now: Instant, furthest: Picoseconds) {
        if let Some(outage) = self.last.get_mut(&link) {
            outage.until = now.max(outage.from + furthest);
        }
    }

    /// Whether a packet that came over a link, of this latency, and joins the next queue at `time` was on it when it went down.
    fn lost(&self, link: LinkId, latency: Picoseconds, time: Instant) -> bool {
        self.last
            .get(&link)
            .is_some_and(|outage| outage.from <= time && (time < outage.until || time - outage.until < latency))
    }
}
