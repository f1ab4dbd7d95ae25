//! Random simulations: two jobs on a fabric of twelve hosts, with any fabric, routing, switches, transports and faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_core::fault::FaultSpec;
use fairlane_core::ids::{HostId, LinkId, Rank, SwitchId};
use fairlane_core::mpi::{self, RailPolicy};
use fairlane_core::network::{self, FlowControl, Pfc, PortBuffer, Retransmission, Sharing, Switching};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Collective, CollectiveKind, Comm, Op, P2p, Program, SendMode, Volume};
use fairlane_core::registry::Registry;
use fairlane_core::simulation::{FabricSpec, JobSpec, Named, QosSpec, Simulation, Spec, required_virtual_lanes};
use fairlane_core::topology::{Adapter, RailsSpec, Wiring};
use fairlane_core::units::{BitsPerSec, Bytes, Picoseconds};
use fairlane_core::{routing, topology};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Sender, receiver, bytes, synchronous, compute before.
type Message = (u32, u32, u64, bool, u64);

/// A fault: its kind and place, beginning and duration, and how bad it is, 1 to 3.
#[derive(Clone, Debug)]
pub(super) struct RandomFault {
    kind: usize,
    place: u32,
    at: u64,
    lasts: Option<u64>,
    severity: u8,
}

impl RandomFault {
    /// Whether packets are lost by it: by the last three kinds, and on links that do not repeat packets with errors.
    fn loses(&self) -> bool {
        self.kind >= LOSING || FAULTS[self.kind] == "bit_errors" && self.severity == 2
    }
}

/// The kinds of faults.
const FAULTS: [&str; 7] =
    ["degraded_link", "bit_errors", "slow_host", "pause_storm", "link_down", "switch_down", "adapter_down"];
/// The first by which packets are always lost.
const LOSING: usize = 4;
/// The one that needs priority flow control.
const STORM: usize = 3;

/// A random simulation: two jobs on a fabric of twelve hosts, some of which they share.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub hosts: Vec<Vec<u32>>,
    /// By job.
    pub messages: Vec<Vec<Message>>,
    pub lanes: u8,
    pub arbiter: usize,
    pub kinds_differ: bool,
    pub buffer: u64,
    /// How the lanes of a port share its memory, of one packet for each and some more bytes; `None` if each has a `buffer`.
    pub sharing: Option<Sharing>,
    pub mtu: u64,
    pub eager: u64,
    pub store_and_forward: bool,
    pub collective: usize,
    /// Number of the fabric and its routing; see [`FABRICS`].
    pub fabric: usize,
    /// Planes of the fabric, and the policies of the two jobs; see [`POLICIES`].
    pub rails: (u8, [usize; 2]),
    /// Whether counters are kept.
    pub counters: bool,
    /// Number of the switch architecture; see [`SWITCHES`].
    pub switch: usize,
    pub faults: Vec<RandomFault>,
    /// Every virtual lane but the last is lossy, and headers go on there; both jobs have a transport that takes it.
    pub lossy: bool,
    /// Flows go back N, if the routing keeps their packets on one path.
    pub go_back_n: bool,
    /// Priority flow control, and its watchdog.
    pub pauses: [bool; 2],
    /// The transports of the two jobs; see [`Case::transport`].
    pub transports: [usize; 2],
}

/// Switch architectures with their parameters; half of the cases have the first.
const SWITCHES: &[(&str, &str)] = &[
    ("output_queued", "{}"),
    ("input_queued", "{}"),
    ("input_queued", r#"{ "queues": "fifo", "speedup": 1, "iterations": 1 }"#),
    ("input_queued", r#"{ "queues": "voq", "speedup": 1.001, "allocator": "oldest_first", "iterations": 2 }"#),
    ("input_queued", r#"{ "queues": "fifo", "allocator": "oldest_first", "output_buffer": 1000 }"#),
];

/// Topology, routing, and the parameters of both: twelve hosts each, with every routing that goes by loads or at random.
const FABRICS: &[(&str, &str, &str, &str)] = &[
    ("fat_tree", r#"{ "hosts": 12, "levels": 1, "radix": 12 }"#, "d_mod_k", "{}"),
    ("fat_tree", r#"{ "hosts": 12, "levels": 2, "radix": 8 }"#, "d_mod_k", "{}"),
    ("fat_tree", r#"{ "hosts": 12, "levels": 3, "radix": 4 }"#, "d_mod_k", "{}"),
    ("fat_tree", r#"{ "hosts": 12, "levels": 2, "radix": 8 }"#, "adaptive", "{}"),
    ("fat_tree", r#"{ "hosts": 12, "levels": 3, "radix": 4 }"#, "adaptive", "{}"),
    ("dragonfly", DRAGONFLY, "minimal", "{}"),
    ("dragonfly", DRAGONFLY, "valiant", "{}"),
    ("dragonfly", DRAGONFLY, "ugal_l", r#"{ "bias": 0, "ties": "random" }"#),
    ("dragonfly", DRAGONFLY, "ugal_g", r#"{ "bias": 0 }"#),
    ("dragonfly", DRAGONFLY, "progressive", r#"{ "bias": 0 }"#),
    ("dragonfly", DRAGONFLY, "per_lane", r#"{ "lanes": ["minimal", { "name": "progressive" }] }"#),
    ("cascade", CASCADE, "ugal_g", "{}"),
    ("cascade", CASCADE, "progressive", r#"{ "channels": "fewest", "bias": 0, "samples": 1 }"#),
    ("torus", r#"{ "sides": [4, 3] }"#, "dimension_order", "{}"),
    ("torus", r#"{ "sides": [4, 3] }"#, "valiant", "{}"),
    ("torus", r#"{ "sides": [4, 3] }"#, "ugal_l", r#"{ "bias": 0 }"#),
    ("hyperx", r#"{ "sides": [3, 2], "hosts_per_switch": 2 }"#, "ugal_g", r#"{ "bias": 0 }"#),
];
const DRAGONFLY: &str = r#"{ "groups": 3, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 1 }"#;
const CASCADE: &str = r#"{ "groups": 3, "columns": 2, "rows": 2, "hosts_per_switch": 1, "bundle_links": 1 }"#;
/// How messages are shared among rails.
const POLICIES: [RailPolicy; 5] = [
    RailPolicy::RoundRobin,
    RailPolicy::Stripe { above: Bytes(700) },
    RailPolicy::ByDestination,
    RailPolicy::BySource { ranks: Vec::new() },
    RailPolicy::Only { only: 0, to: None },
];
/// Transports of jobs; half of the jobs have none of their own.
const TRANSPORTS: &[(&str, &str)] = &[
    ("ib_cc", "{}"),
    ("dcqcn", r#"{ "kmin": 60, "kmax": 80, "pmax": 1 }"#),
    ("swift", "{}"),
    ("uec", r#"{ "kmin": 60, "kmax": 80 }"#),
    ("endpoint_cc", r#"{ "threshold": 80 }"#),
    ("hpcc", r#"{ "flows": 4 }"#),
    ("uec", r#"{ "kmin": 60, "kmax": 80, "control": "receiver", "oversubscription": 4 }"#),
    ("uec", r#"{ "kmin": 60, "kmax": 80, "control": "both", "base_rtt": 3000000 }"#),
];
/// Those for lossy lanes.
const LOSSY_TRANSPORTS: [usize; 6] = [1, 2, 3, 5, 6, 7];
/// A tree of two levels, routed by destination.
const TREE: usize = 1;

/// A random case of jobs without transports of their own, of which no packet is lost.
pub(super) fn case() -> impl Strategy<Value = Case> {
    controlled().prop_map(|mut case| {
        case.faults.retain(|fault| !fault.loses());
        Case { lossy: false, pauses: [case.pauses[0], false], transports: [TRANSPORTS.len(); 2], ..case }
    })
}

/// A random case, of jobs with congestion control among others, and with packets that are lost. Notices are counted, but are not in
/// records; and lost packets have waited, but not started.
pub(super) fn controlled() -> impl Strategy<Value = Case> {
    let hosts = proptest::collection::vec(proptest::collection::vec(0..12_u32, 2..6), 2);
    let message = (0..6_u32, 0..6_u32, 0..5000_u64, any::<bool>(), 0..2_000_000_u64);
    let messages = proptest::collection::vec(proptest::collection::vec(message, 1..30), 2);
    let network = (1..5_u8, 0..3_usize, any::<bool>(), 0..3000_u64, 64..700_u64, 0..FABRICS.len());
    let rails = (1..4_u8, proptest::array::uniform2(0..POLICIES.len()));
    let switch = (0..2 * SWITCHES.len() - 2).prop_map(|number| number.saturating_sub(SWITCHES.len() - 2));
    let sharing =
        proptest::sample::select(vec![None, Some(Sharing::Even), Some(Sharing::Dynamic), Some(Sharing::Dynamic)]);
    let transports = proptest::array::uniform2(0..2 * TRANSPORTS.len());
    let fault = (0..FAULTS.len(), any::<u32>(), 0..30_000_000_u64, proptest::option::of(1..30_000_000_u64), 1..4_u8);
    let fault = fault.prop_map(|(kind, place, at, lasts, severity)| {
        // Links come back, so that every job can finish.
        let lasts = if kind < STORM { lasts } else { Some(lasts.unwrap_or(20_000_000)) };
        RandomFault { kind, place, at, lasts, severity }
    });
    let faults = proptest::collection::vec(fault, 0..4);
    let losses = (proptest::bool::weighted(0.25), proptest::bool::weighted(0.4));
    let flags = (any::<bool>(), proptest::bool::weighted(0.8), switch, sharing, losses);
    let flow = (transports, proptest::array::uniform2(proptest::bool::weighted(0.4)));
    (hosts, messages, network, 0..3000_u64, flags, 0..CollectiveKind::ALL.len(), rails, faults, flow).prop_map(
        |(
            hosts,
            messages,
            (lanes, arbiter, kinds_differ, room, mtu, fabric),
            eager,
            (store_and_forward, counters, switch, sharing, (lossy, go_back_n)),
            collective,
            rails,
            faults,
            (transports, pauses),
        )| {
            Case {
                hosts,
                messages,
                lanes,
                arbiter,
                kinds_differ,
                buffer: mtu + 26 + room,
                sharing,
                mtu,
                eager,
                store_and_forward,
                collective,
                fabric,
                rails,
                counters,
                switch,
                faults,
                lossy,
                go_back_n,
                pauses,
                transports,
            }
        },
    )
}

pub(super) fn op(op: Op) -> Line {
    Line::Op(op)
}

impl Case {
    /// Every message is received by a wildcard, so any order of arrival matches; a collective ends each job.
    pub fn programs(&self) -> Vec<Program> {
        self.hosts.iter().zip(&self.messages).map(|(hosts, messages)| self.program(hosts, messages)).collect()
    }

    fn program(&self, hosts: &[u32], messages: &[Message]) -> Program {
        let size = u32::try_from(hosts.len()).unwrap();
        let mut lines: Vec<Vec<Line>> = vec![Vec::new(); hosts.len()];
        let mut requests = vec![0_u32; hosts.len()];
        for &(from, to, bytes, synchronous, compute) in messages {
            let (from, to) = (from % size, to % size);
            let mode = if synchronous { SendMode::Synchronous } else { SendMode::Standard };
            let mut next = |rank: u32| {
                requests[rank as usize] += 1;
                requests[rank as usize] - 1
            };
            let (send, receive) = (next(from), next(to));
            let sender = &mut lines[from as usize];
            sender.push(op(Op::Compute(Picoseconds(compute))));
            sender.push(op(Op::P2p(P2p::Isend {
                to: Rank(to),
                bytes: Bytes(bytes),
                tag: 0,
                comm: COMM_WORLD,
                mode,
                request: send,
            })));
            lines[to as usize].push(op(Op::P2p(P2p::Irecv {
                from: None,
                tag: None,
                comm: COMM_WORLD,
                request: receive,
            })));
        }
        let volume = Volume::Uniform(Bytes(777));
        let kind = CollectiveKind::ALL[self.collective];
        for (lines, requests) in lines.iter_mut().zip(requests) {
            lines.push(op(Op::P2p(P2p::WaitAll((0..requests).collect()))));
            lines.push(op(Op::Comm(Comm::Split { comm: COMM_WORLD, new: 7, color: Some(0), key: 0 })));
            lines.push(op(Op::Collective(Collective::Blocking {
                kind,
                comm: 7,
                root: Rank(0),
                volume: volume.clone(),
            })));
            lines.push(op(Op::MarkProgress));
        }
        Program { ranks: lines.into_iter().map(|lines| Script::new(lines).unwrap().source()).collect() }
    }

    /// Whether counters are kept.
    pub fn counts(&self) -> bool {
        self.counters
    }

    fn fabric(&self) -> FabricSpec {
        let (topology, params, routing, routing_params) = FABRICS[self.fabric];
        let mut params: Value = serde_json::from_str(params).unwrap();
        params["bandwidth"] = json!(7_000_000_000_u64);
        params["latency"] = json!(70_001);
        FabricSpec {
            topology: topology.into(),
            params,
            routing: routing.into(),
            routing_params: serde_json::from_str(routing_params).unwrap(),
            rails: self.rails(),
        }
    }

    pub fn spec(&self) -> Spec {
        let names = ["weighted_round_robin", "strict_priority", "vlarb"];
        let table: Vec<_> = (0..self.lanes).map(|lane| (lane, 1 + lane * 3)).collect();
        let params = if self.arbiter == 2 {
            json!({ "vlarb_high": [[0, 4]], "vlarb_low": table, "high_limit": 1 })
        } else {
            json!({})
        };
        let top = self.lanes - 1;
        let kinds = if self.kinds_differ { [("control".to_owned(), Some(top))].into() } else { BTreeMap::new() };
        let jobs = self.hosts.iter().enumerate().map(|(job, hosts)| JobSpec {
            name: format!("job {job}"),
            hosts: hosts.iter().map(|&host| HostId(host % self.hosts_in_use())).collect(),
            service_level: Some(u8::try_from(job).unwrap() % self.lanes),
            ranks: [(1, top)].into(),
            transport: if self.has_lossy_lanes() {
                self.transport(LOSSY_TRANSPORTS[self.transports[job] % LOSSY_TRANSPORTS.len()])
            } else {
                self.transport(self.transports[job])
            },
            rails: Some(POLICIES[self.rails.1[job]].clone()),
            nccl: None,
            start: Picoseconds::ZERO,
            stop: None,
            marks: false,
        });
        Spec {
            fabric: self.fabric(),
            network: network::Parameters {
                mtu: Bytes(self.mtu),
                buffer: Bytes(self.buffer + self.headroom()),
                flow_control: self.flow_control(),
                port_buffer: self.sharing.filter(|_| !self.has_pauses()).map(|sharing| PortBuffer {
                    size: Bytes(self.memory()),
                    sharing,
                    ..Default::default()
                }),
                // Faults last up to 30 us, and a packet is retransmitted for 56 us at least.
                retransmission_timeout: Picoseconds(7_000_000),
                retransmission: if self.goes_back() { Retransmission::GoBackN } else { Retransmission::Selective },
                sweep_time: Picoseconds(5_000_000),
                switching: if self.store_and_forward { Switching::StoreAndForward } else { Switching::CutThrough },
                switch: Named {
                    name: SWITCHES[self.switch].0.into(),
                    params: serde_json::from_str(SWITCHES[self.switch].1).unwrap(),
                },
                ..Default::default()
            },
            qos: QosSpec {
                lanes: None,
                sl2vl: (0..self.lanes).collect(),
                lossy: if self.has_lossy_lanes() { (0..top).collect() } else { Vec::new() },
                trim_vl: Some(top).filter(|_| self.has_lossy_lanes() && !self.goes_back()),
                arbiter: Named { name: names[self.arbiter].into(), params },
                kinds,
                ..Default::default()
            },
            mpi: mpi::Parameters { eager_threshold: Bytes(self.eager), ..Default::default() },
            jobs: jobs.collect(),
            faults: self.faults(),
            observe: fairlane_core::observe::Parameters {
                departures: true,
                counters: self.counters,
                ..Default::default()
            },
        }
    }

    /// The same case, whose faults do not end.
    pub fn with_lasting_faults(mut self) -> Self {
        self.faults.retain(|fault| fault.kind != STORM);
        self.faults.iter_mut().for_each(|fault| fault.lasts = None);
        self
    }

    /// Whether a packet may be lost.
    pub fn may_lose_packets(&self) -> bool {
        let output_queued = SWITCHES[self.switch].0 == "output_queued";
        self.has_lossy_lanes() || self.has_watchdog() || output_queued && self.faults.iter().any(RandomFault::loses)
    }

    fn goes_back(&self) -> bool {
        self.go_back_n && ["d_mod_k", "minimal", "dimension_order"].contains(&FABRICS[self.fabric].2)
    }

    /// Lossy lanes need another for headers, and queues at outputs, and lanes with a buffer of their own.
    fn has_lossy_lanes(&self) -> bool {
        let fits = SWITCHES[self.switch].0 == "output_queued" && self.sharing != Some(Sharing::Dynamic);
        self.lossy && self.lanes > 1 && fits && FABRICS[self.fabric].2 != "per_lane"
    }

    /// PAUSE has eight priorities, of which each pair of virtual lane and virtual channel takes one.
    pub fn has_pauses(&self) -> bool {
        self.pauses[0] && self.port_lanes() <= 8
    }

    fn has_watchdog(&self) -> bool {
        self.has_pauses() && self.pauses[1] && SWITCHES[self.switch].0 == "output_queued"
    }

    fn flow_control(&self) -> FlowControl {
        let watchdog = self.has_watchdog().then_some(Picoseconds(9_000_000));
        let response = Picoseconds(self.eager * 10);
        let pfc = Pfc {
            watchdog,
            response: if self.kinds_differ { Picoseconds::ZERO } else { response },
            ..Default::default()
        };
        if self.has_pauses() { FlowControl::Pfc(pfc) } else { FlowControl::Credits }
    }

    /// That of the table, if it fits the switches: those with queues at their inputs do not mark packets.
    fn transport(&self, number: usize) -> Option<Named> {
        let (name, params) = TRANSPORTS.get(number).filter(|_| SWITCHES[self.switch].0 == "output_queued")?;
        Some(Named { name: (*name).into(), params: serde_json::from_str(params).unwrap() })
    }

    /// The faults, but for those by which packets are lost where switches have queues at their inputs.
    fn faults(&self) -> Vec<FaultSpec> {
        let graph = self.fabric().build(&Registry::default()).unwrap();
        let [links, hosts, switches] = [graph.links().len(), graph.hosts(), graph.switches()];
        let number = |place: u32, count: usize| place % u32::try_from(count).unwrap();
        let of_fault = |&RandomFault { kind, place, at, lasts, severity }: &RandomFault| {
            let link = graph.link_name(LinkId(number(place, links)));
            let host = graph.host_name(HostId(number(place, hosts)));
            let params = match FAULTS[kind] {
                "degraded_link" => json!({ "link": link, "lanes": severity }),
                "bit_errors" => {
                    json!({ "link": link, "rate": 10_f64.powi(-i32::from(severity) - 3), "retry": severity != 2 })
                }
                "pause_storm" => json!({ "host": host }),
                "slow_host" => json!({ "host": host, "factor": 1.5 * f64::from(severity) }),
                "link_down" => json!({ "link": link }),
                "switch_down" => json!({ "switch": graph.switch_name(SwitchId(number(place, switches))) }),
                _ => json!({ "host": host }),
            };
            FaultSpec {
                fault: Named { name: FAULTS[kind].into(), params },
                at: Picoseconds(at),
                until: lasts.map(|lasts| Picoseconds(at + lasts)),
            }
        };
        let output_queued = SWITCHES[self.switch].0 == "output_queued";
        let fits =
            |fault: &&RandomFault| (output_queued || !fault.loses()) && (self.has_pauses() || fault.kind != STORM);
        self.faults.iter().filter(fits).map(of_fault).collect()
    }

    /// Memory of a port: a packet for each lane, and what `buffer` has beyond one.
    fn memory(&self) -> u64 {
        let full = self.mtu + 26;
        self.port_lanes() * full + (self.buffer - full)
    }

    /// Pairs of virtual lane and virtual channel.
    fn port_lanes(&self) -> u64 {
        let (topology, params, routing, routing_params) = FABRICS[self.fabric];
        let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let mut params = read(params);
        params["bandwidth"] = json!(1);
        let graph = Arc::new(topology::build(topology, &params).unwrap());
        let routing = routing::build(routing, &read(routing_params), &graph).unwrap();
        required_virtual_lanes(&*routing, self.lanes).len() as u64
    }

    /// The headroom of the longest or fastest link.
    fn headroom(&self) -> u64 {
        let FlowControl::Pfc(pfc) = self.flow_control() else { return 0 };
        let graph = self.fabric().build(&Registry::default()).unwrap();
        let links = (0..u32::try_from(graph.links().len()).unwrap()).map(LinkId);
        links.map(|link| pfc.headroom(&graph, link, Bytes(self.mtu + 26)).0).max().unwrap_or(0)
    }

    /// Whether the adapters of a host are at ports of one fabric, where others would be hosts.
    fn shares_switches(&self) -> bool {
        self.rails.0 > 1 && self.rails.1[0] == 1
    }

    fn hosts_in_use(&self) -> u32 {
        if self.shares_switches() { 12 / u32::from(self.rails.0) } else { 12 }
    }

    /// Adapters on planes or on shared switches, the last of them with adapters that are slower and take their time between messages.
    fn rails(&self) -> Option<RailsSpec> {
        let slow = Adapter {
            bandwidth: Some(BitsPerSec(3_000_000_000)),
            latency: Some(Picoseconds(90_001)),
            message_gap: Picoseconds(123_456),
        };
        let mut adapters = vec![Adapter::default(); usize::from(self.rails.0)];
        adapters[usize::from(self.rails.0) - 1] = slow;
        let wiring = if self.shares_switches() { Wiring::Shared } else { Wiring::Planes };
        (self.rails.0 > 1).then_some(RailsSpec { count: self.rails.0, wiring, adapters })
    }

    pub fn simulation(&self) -> Simulation {
        Simulation::new(self.spec(), self.programs()).unwrap()
    }
}

/// Two jobs that send nothing but a collective.
pub(super) fn sparse() -> Case {
    Case {
        hosts: vec![vec![0, 11], vec![3, 4]],
        messages: vec![Vec::new(), Vec::new()],
        lanes: 1,
        arbiter: 0,
        kinds_differ: false,
        buffer: 9000,
        sharing: None,
        mtu: 1000,
        eager: 1000,
        store_and_forward: false,
        collective: 0,
        fabric: TREE,
        rails: (1, [0, 0]),
        counters: true,
        switch: 0,
        faults: Vec::new(),
        lossy: false,
        go_back_n: false,
        pauses: [false; 2],
        transports: [TRANSPORTS.len(); 2],
    }
}

/// The same jobs with messages of all sizes between their ranks, and computations.
pub(super) fn busy() -> Case {
    let message =
        |number: u32| (number % 2, (number + 1) % 2, u64::from(number) * 317 % 5000, number.is_multiple_of(5), 90_000);
    let messages = vec![(0..40).map(message).collect(), (3..33).map(message).collect()];
    Case { hosts: vec![vec![0, 11], vec![3, 11]], messages, ..sparse() }
}
