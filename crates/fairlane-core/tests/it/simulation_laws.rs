//! Laws of a whole simulation, on random fabrics, parameters and programs: everything sent is received, nothing is lost,
//! credits and waiting times balance, and neither slicing, forking nor repeating changes a bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_core::fault::FaultSpec;
use fairlane_core::ids::{HostId, JobId, LinkId, Rank, ServiceLevel, VirtualLane};
use fairlane_core::mpi::{self, RailPolicy};
use fairlane_core::network::{self, LaneCounters, PortBuffer, Sharing, Switching};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, CollectiveKind, Op, Program, SendMode, Volume};
use fairlane_core::registry::Registry;
use fairlane_core::results::TABLES;
use fairlane_core::simulation::{
    FabricSpec, JobSpec, Named, Parallelism, QosSpec, Simulation, Spec, required_virtual_lanes,
};
use fairlane_core::topology::{Adapter, RailsSpec, Wiring};
use fairlane_core::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use fairlane_core::{routing, topology};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(super) const FAR: Instant = Instant(u64::MAX >> 1);

/// Sender, receiver, bytes, synchronous, compute before.
type Message = (u32, u32, u64, bool, u64);

/// A random simulation: two jobs on a fabric of twelve hosts, some of which they share.
#[derive(Clone, Debug)]
pub(super) struct Case {
    hosts: Vec<Vec<u32>>,
    /// By job.
    messages: Vec<Vec<Message>>,
    lanes: u8,
    arbiter: usize,
    kinds_differ: bool,
    buffer: u64,
    /// How the lanes of a port share its memory, of one packet for each and some more bytes; `None` if each has a `buffer`.
    sharing: Option<Sharing>,
    mtu: u64,
    eager: u64,
    store_and_forward: bool,
    collective: usize,
    /// Number of the fabric and its routing; see [`FABRICS`].
    fabric: usize,
    /// Planes of the fabric, and the policies of the two jobs; see [`POLICIES`].
    rails: (u8, [usize; 2]),
    /// Whether counters are kept.
    counters: bool,
    /// Number of the switch architecture; see [`SWITCHES`].
    switch: usize,
    /// Cables that lose lanes: link, beginning, duration, lanes left of four.
    faults: Vec<(u32, u64, Option<u64>, u8)>,
    /// The transports of the two jobs; see [`Case::transport`].
    transports: [usize; 2],
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
    RailPolicy::Only { only: 0 },
];
/// Transports of jobs; half of the jobs have none of their own.
const TRANSPORTS: &[(&str, &str)] = &[
    ("ib_cc", "{}"),
    ("dcqcn", r#"{ "kmin": 60, "kmax": 80, "pmax": 1 }"#),
    ("swift", "{}"),
    ("endpoint_cc", r#"{ "threshold": 80 }"#),
];
/// A tree of two levels, routed by destination.
const TREE: usize = 1;

/// A random case of jobs without transports of their own.
pub(super) fn case() -> impl Strategy<Value = Case> {
    controlled().prop_map(|case| Case { transports: [TRANSPORTS.len(); 2], ..case })
}

/// A random case, of jobs with congestion control among others: their notices are counted, but are not in records.
fn controlled() -> impl Strategy<Value = Case> {
    let hosts = proptest::collection::vec(proptest::collection::vec(0..12_u32, 2..6), 2);
    let message = (0..6_u32, 0..6_u32, 0..5000_u64, any::<bool>(), 0..2_000_000_u64);
    let messages = proptest::collection::vec(proptest::collection::vec(message, 1..30), 2);
    let network = (1..5_u8, 0..3_usize, any::<bool>(), 0..3000_u64, 64..700_u64, 0..FABRICS.len());
    let rails = (1..4_u8, proptest::array::uniform2(0..POLICIES.len()));
    let switch = (0..2 * SWITCHES.len() - 2).prop_map(|number| number.saturating_sub(SWITCHES.len() - 2));
    let sharing =
        proptest::sample::select(vec![None, Some(Sharing::Even), Some(Sharing::Dynamic), Some(Sharing::Dynamic)]);
    let transports = proptest::array::uniform2(0..2 * TRANSPORTS.len());
    let fault = (any::<u32>(), 0..30_000_000_u64, proptest::option::of(1..30_000_000_u64), 1..4_u8);
    let faults = proptest::collection::vec(fault, 0..4);
    let flags = (any::<bool>(), proptest::bool::weighted(0.8), switch, sharing);
    (hosts, messages, network, 0..3000_u64, flags, 0..CollectiveKind::ALL.len(), rails, faults, transports).prop_map(
        |(
            hosts,
            messages,
            (lanes, arbiter, kinds_differ, room, mtu, fabric),
            eager,
            (store_and_forward, counters, switch, sharing),
            collective,
            rails,
            faults,
            transports,
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
            sender.push(op(Op::Isend {
                to: Rank(to),
                bytes: Bytes(bytes),
                tag: 0,
                comm: COMM_WORLD,
                mode,
                request: send,
            }));
            lines[to as usize].push(op(Op::Irecv { from: None, tag: None, comm: COMM_WORLD, request: receive }));
        }
        let volume = Volume::Uniform(Bytes(777));
        let kind = CollectiveKind::ALL[self.collective];
        for (lines, requests) in lines.iter_mut().zip(requests) {
            lines.push(op(Op::WaitAll((0..requests).collect())));
            lines.push(op(Op::CommSplit { comm: COMM_WORLD, new: 7, color: Some(0), key: 0 }));
            lines.push(op(Op::Collective { kind, comm: 7, root: Rank(0), volume: volume.clone() }));
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
            hosts: hosts.iter().map(|&host| HostId(host)).collect(),
            service_level: Some(u8::try_from(job).unwrap() % self.lanes),
            ranks: [(1, top)].into(),
            transport: self.transport(self.transports[job]),
            rails: Some(POLICIES[self.rails.1[job]].clone()),
            start: Picoseconds::ZERO,
            stop: None,
            marks: false,
        });
        Spec {
            fabric: self.fabric(),
            network: network::Parameters {
                mtu: Bytes(self.mtu),
                buffer: Bytes(self.buffer),
                port_buffer: self.sharing.map(|sharing| PortBuffer { size: Bytes(self.memory()), sharing }),
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
                arbiter: Named { name: names[self.arbiter].into(), params },
                default: 0,
                kinds,
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

    /// That of the table, if it fits the switches: those with queues at their inputs do not mark packets.
    fn transport(&self, number: usize) -> Option<Named> {
        let (name, params) = TRANSPORTS.get(number).filter(|_| SWITCHES[self.switch].0 == "output_queued")?;
        Some(Named { name: (*name).into(), params: serde_json::from_str(params).unwrap() })
    }

    /// Some faults of cables.
    fn faults(&self) -> Vec<FaultSpec> {
        let graph = self.fabric().build(&Registry::default()).unwrap();
        let links = u32::try_from(graph.links().len()).unwrap();
        let name = |link: u32| graph.link_name(LinkId(link % links));
        let of_fault = |&(link, at, lasts, lanes): &(u32, u64, Option<u64>, u8)| FaultSpec {
            fault: Named { name: "degraded_link".into(), params: json!({ "link": name(link), "lanes": lanes }) },
            at: Picoseconds(at),
            until: lasts.map(|lasts| Picoseconds(at + lasts)),
        };
        self.faults.iter().map(of_fault).collect()
    }

    /// Memory of a port: a packet for each lane, and what `buffer` has beyond one.
    fn memory(&self) -> u64 {
        let (topology, params, routing, routing_params) = FABRICS[self.fabric];
        let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let mut params = read(params);
        params["bandwidth"] = json!(1);
        let graph = Arc::new(topology::build(topology, &params).unwrap());
        let routing = routing::build(routing, &read(routing_params), &graph).unwrap();
        let lanes = required_virtual_lanes(&*routing, self.lanes).len() as u64;
        let full = self.mtu + 26;
        lanes * full + (self.buffer - full)
    }

    /// Planes, the last of them with adapters that are slower and take their time between messages.
    fn rails(&self) -> Option<RailsSpec> {
        let slow = Adapter {
            bandwidth: Some(BitsPerSec(3_000_000_000)),
            latency: Some(Picoseconds(90_001)),
            message_gap: Picoseconds(123_456),
        };
        let mut adapters = vec![Adapter::default(); usize::from(self.rails.0)];
        adapters[usize::from(self.rails.0) - 1] = slow;
        (self.rails.0 > 1).then_some(RailsSpec { count: self.rails.0, wiring: Wiring::Planes, adapters })
    }

    fn simulation(&self) -> Simulation {
        Simulation::new(self.spec(), self.programs()).unwrap()
    }
}

/// Everything that was measured, to compare two runs: the tables, of departures what does not depend on the names of messages.
pub(super) fn measured(simulation: &Simulation) -> String {
    let network = simulation.network();
    let entering = TABLES.iter().filter(|table| table.in_digest).map(|table| table.name);
    let tables = entering.chain(["job_marks", "latency", "latency_histogram"]).map(|name| simulation.table(name));
    let tables: Vec<_> = tables.collect::<Result<_, _>>().unwrap();
    let departures: Vec<_> = network.departures().iter().map(|d| (d.time, d.link, d.lane, d.job, d.bytes)).collect();
    format!("{tables:?} {departures:?} {:?} {}", network.totals(), simulation.digest())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn everything_sent_is_received_and_all_balances(case in controlled()) {
        let mut simulation = case.simulation();
        prop_assert!(simulation.run_until(FAR, u64::MAX).unwrap());
        prop_assert!(simulation.finished());
        simulation.check_laws().unwrap();
        let totals = simulation.network().totals();
        prop_assert_eq!(totals.messages_injected, totals.messages_delivered);
        prop_assert_eq!(totals.bytes_injected, totals.bytes_delivered);
        for job in 0..2 {
            prop_assert!(simulation.mpi().records(JobId(job)).all(|(_, record)| record.iterations == 1));
        }
    }

    #[test]
    fn slices_forks_and_repetition_change_nothing(case in controlled(), slice in 100_000_u64..5_000_000, hops in 1_u64..50) {
        let mut whole = case.simulation();
        whole.run_until(FAR, u64::MAX).unwrap();
        let mut sliced = case.simulation();
        let mut end = 0;
        while !sliced.finished() {
            end += slice;
            sliced.run_until(Instant(end), hops).unwrap();
            sliced.check_laws().unwrap();
            sliced = sliced.clone();
        }
        prop_assert_eq!(measured(&whole), measured(&sliced));
    }

    #[test]
    fn counters_only_watch_and_without_them_nothing_is_counted(case in controlled()) {
        let runs = [true, false].map(|counters| {
            let mut simulation = Case { counters, ..case.clone() }.simulation();
            simulation.run_until(FAR, u64::MAX).unwrap();
            simulation
        });
        let [departures, without] = [&runs[0], &runs[1]].map(|run| run.network().departures());
        prop_assert!(departures == without);
        let network = runs[1].network();
        for link in (0..).take(network.graph().links().len()).map(LinkId) {
            prop_assert_eq!(network.port_times(link), (Picoseconds::ZERO, Picoseconds::ZERO));
            for lane in (0..).take(network.lanes()).map(VirtualLane) {
                prop_assert_eq!(network.counters(link, lane), LaneCounters::default());
            }
        }
    }

    #[test]
    fn service_levels_may_change_at_any_time(case in controlled(), at in 0_u64..20_000_000) {
        let mut simulation = case.simulation();
        simulation.run_until(Instant(at), u64::MAX).unwrap();
        let top = ServiceLevel(case.lanes - 1);
        simulation.change_levels(|levels| levels.set_job(JobId(0), Some(top))).unwrap();
        simulation.set_rank_levels(JobId(1), &[(0, top.0)].into()).unwrap();
        simulation.run_until(FAR, u64::MAX).unwrap();
        prop_assert!(simulation.finished());
        simulation.check_laws().unwrap();
    }
}

proptest! {
    // Threads wait for each other at every window, which takes its time where there are more of them than free cores.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn shards_and_threads_change_nothing(case in controlled(), slice in 1_000_000_u64..20_000_000, hops in 200_u64..800) {
        let mut spec = case.spec();
        spec.observe.departures = false;
        let runs = [(1, 1), (2, 1), (3, 2), (7, 1)].map(|(shards, threads)| {
            let registry = Registry::default();
            let graph = Arc::new(spec.fabric.build(&registry).unwrap());
            let parallelism = Parallelism { shards, threads };
            let mut simulation =
                Simulation::parallel(&registry, graph, spec.clone(), case.programs(), parallelism).unwrap();
            let (mut end, mut seen) = (0, Vec::new());
            while !simulation.finished() {
                end += slice;
                simulation.run_until(Instant(end), hops).unwrap();
                simulation.check_laws().unwrap();
                seen.push((simulation.now(), measured(&simulation)));
                if seen.len() % 3 == 0 {
                    let top = ServiceLevel(u8::try_from(seen.len()).unwrap() % case.lanes);
                    simulation.change_levels(|levels| levels.set_job(JobId(0), Some(top))).unwrap();
                    simulation = simulation.clone();
                }
            }
            seen
        });
        prop_assert!(runs.iter().all(|run| *run == runs[0]));
    }
}

#[test]
fn a_port_of_sixteen_lanes_takes_at_most_one_and_a_half_kibibytes() {
    let mut case = Case { lanes: 1, ..sparse() };
    let one = case.simulation().network().bytes_per_port();
    case.lanes = 16;
    let sixteen = case.simulation().network().bytes_per_port();
    assert!(sixteen > one && sixteen <= Bytes(1536), "{} bytes, {} with one lane", sixteen.0, one.0);
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

/// Two ranks that send each other messages for ever.
fn ping_pong() -> (Case, Vec<Program>) {
    let case = sparse();
    let send =
        |to| op(Op::Send { to: Rank(to), bytes: Bytes(5000), tag: 0, comm: COMM_WORLD, mode: SendMode::Standard });
    let receive = |from| op(Op::Recv { from: Some(Rank(from)), tag: None, comm: COMM_WORLD });
    let endless = |lines: [Line; 2]| {
        let [first, second] = lines;
        let lines = vec![Line::Repeat(None), first, second, op(Op::MarkProgress), Line::End];
        Script::new(lines).unwrap().source()
    };
    let job = || Program { ranks: vec![endless([send(1), receive(1)]), endless([receive(0), send(0)])] };
    (case, vec![job(), job()])
}

#[test]
fn a_job_that_begins_later_does_the_same_later() {
    const LATER: u64 = 12_345_678;
    let marks = |start: u64| {
        let (case, programs) = ping_pong();
        let mut spec = case.spec();
        spec.jobs[0].start = Picoseconds(start);
        spec.jobs[0].marks = true;
        // The other job is far away in the tree, on hosts of its own.
        let mut simulation = Simulation::new(spec, programs).unwrap();
        simulation.run_until(Instant(200_000_000), u64::MAX).unwrap();
        let (_, record) = simulation.mpi().records(JobId(0)).next().unwrap();
        assert_eq!(record.marks.len() as u64, record.iterations);
        record.marks.iter().map(|mark| mark.0).collect::<Vec<_>>()
    };
    let (now, later) = (marks(0), marks(LATER));
    assert!(later.len() > 3 && later.len() < now.len());
    assert!(now.iter().zip(&later).all(|(now, later)| now + LATER == *later), "{now:?} {later:?}");
}

#[test]
fn a_job_that_is_stopped_leaves_nothing_behind() {
    const STOP: u64 = 300_000_000;
    let (case, programs) = ping_pong();
    let mut spec = case.spec();
    spec.jobs.iter_mut().for_each(|job| job.stop = Some(Picoseconds(STOP)));
    spec.jobs[1].stop = Some(Picoseconds(2 * STOP));
    let mut simulation = Simulation::new(spec.clone(), programs).unwrap();
    assert!(simulation.run_until(FAR, u64::MAX).unwrap(), "nothing is left");
    assert!(simulation.finished());
    simulation.check_laws().unwrap();
    let totals = simulation.network().totals();
    assert_eq!(totals.messages_injected, totals.messages_delivered);
    for (job, stop) in [(0, STOP), (1, 2 * STOP)] {
        for (_, record) in simulation.mpi().records(JobId(job)) {
            assert!(record.iterations > 3 && record.last_mark.0 < stop);
            assert!(record.communication().0 <= stop, "{} of {stop}", record.communication().0);
        }
    }
    spec.jobs[0].stop = Some(Picoseconds::ZERO);
    let error = Simulation::new(spec, ping_pong().1).err().unwrap().to_string();
    assert!(error.contains("jobs[0].stop"), "{error}");
}
