//! Packet-hops per CPU second of one core: uniform random traffic, one-packet messages, MPI hosts.
//!
//! `cargo bench --bench engine -- [FILTER [PACKET-HOPS]]`. The bound to compare with is measured in turn in the same run:
//! the time that a conventional engine's event list alone would take (ratio above 1: faster than that list).

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for display"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ProcessTime;
use fairlane_core::ids::{HostId, Rank};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, Program, RequestId, SendMode};
use fairlane_core::rng;
use fairlane_core::routing::{self, Hop, Loads, Visit};
use fairlane_core::simulation::{FabricSpec, JobSpec, Named, QosSpec, Simulation, Spec};
use fairlane_core::topology::{self, Graph, Vertex};
use fairlane_core::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use fairlane_core::{mpi, observe};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

const PAYLOAD: Bytes = Bytes(4096);
const RATE: BitsPerSec = BitsPerSec(100_000_000_000);
const JOBS: u32 = 4;

/// One row of the table: a fabric, a load, and what is switched on.
#[derive(Clone, Copy)]
struct Case {
    hosts: u32,
    service_levels: u8,
    counters: bool,
    routing: &'static str,
}

/// Fabrics with a deterministic routing, and their hosts: a small one, one of about a thousand hosts, a large one of each kind.
const FABRICS: &[(&str, u32, &str, &str)] = &[
    ("fat_tree", 64, r#"{ "hosts": 64, "levels": 2 }"#, "d_mod_k"),
    ("fat_tree", 1296, r#"{ "hosts": 1296, "levels": 3 }"#, "d_mod_k"),
    ("fat_tree", 8192, r#"{ "hosts": 8192, "levels": 3 }"#, "d_mod_k"),
    ("dragonfly", 72, SMALL_DRAGONFLY, "minimal"),
    ("dragonfly", 1056, DRAGONFLY, "minimal"),
    ("dragonfly", 8192, r#"{ "preset": "wilke2020" }"#, "minimal"),
    ("torus", 64, r#"{ "sides": [4, 4, 4] }"#, "dimension_order"),
    ("torus", 1296, r#"{ "sides": [12, 12, 9] }"#, "dimension_order"),
    ("torus", 8192, r#"{ "sides": [8, 8, 8, 4, 4] }"#, "dimension_order"),
];

/// Pairs of a deterministic and an adaptive routing on one fabric, with its hosts.
const ROUTINGS: &[(&str, u32, &str, &str, &str)] = &[
    ("fat_tree", 1296, r#"{ "hosts": 1296, "levels": 3 }"#, "d_mod_k", "adaptive"),
    ("dragonfly", 1056, DRAGONFLY, "minimal", "ugal_l"),
    ("dragonfly", 1056, DRAGONFLY, "minimal", "progressive"),
    ("dragonfly", 8192, r#"{ "preset": "wilke2020" }"#, "minimal", "progressive"),
];
const SMALL_DRAGONFLY: &str = r#"{ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 }"#;
const DRAGONFLY: &str = r#"{ "groups": 33, "switches_per_group": 8, "hosts_per_switch": 4, "global_links": 4 }"#;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let filter = arguments.next().unwrap_or_default();
    let hops = arguments.next().map_or(3_000_000, |argument| argument.parse().expect("a number of packet-hops"));
    println!(
        "{:>10} {:>6} {:>4} {:>9} {:>14} {:>9} {:>9} {:>10} {:>7}",
        "fabric", "hosts", "SLs", "counters", "hops a packet", "Mhops/s", "ns/hop", "event list", "ratio"
    );
    for &(topology, hosts, params, routing) in FABRICS {
        for (service_levels, counters) in [(1, true), (4, true), (4, false), (16, true)] {
            let name = format!("{topology}/{hosts}/{service_levels}/{counters}");
            if name.contains(&filter) && (topology == "fat_tree" || (service_levels == 4 && counters)) {
                row(topology, params, Case { hosts, service_levels, counters, routing }, hops);
            }
        }
    }
    println!(
        "\n{:>10} {:>6} {:>15} {:>9} {:>12} {:>9} {:>7} {:>13} {:>9} {:>7}",
        "fabric",
        "hosts",
        "deterministic",
        "ns/hop",
        "adaptive",
        "ns/hop",
        "ratio",
        "hops a packet",
        "choosing",
        "share"
    );
    for &(topology, hosts, params, fixed, adaptive) in ROUTINGS {
        if format!("{topology}/{hosts}/{adaptive}").contains(&filter) {
            compare(topology, hosts, params, [fixed, adaptive], hops);
        }
    }
}

/// Best of five runs of either routing, taken in turn, on one fabric under the same traffic: what a packet-hop costs, and what
/// part of it choosing the hop takes with the adaptive one.
fn compare(topology: &str, hosts: u32, params: &str, routings: [&'static str; 2], hops: u64) {
    let graph = fabric(topology, params);
    let (mut best, mut ways) = ([f64::MAX; 2], [0.0; 2]);
    let mut choosing = f64::MAX;
    for _ in 0..5 {
        choosing = choosing.min(choice(&graph, routings[1], hops / 4));
        for (place, routing) in routings.into_iter().enumerate() {
            let case = Case { hosts, service_levels: 1, counters: true, routing };
            let (done, seconds, packets) = run(case, &graph, hops);
            best[place] = best[place].min(seconds * 1e9 / done as f64);
            ways[place] = done as f64 / packets as f64;
        }
    }
    let [fixed, adaptive] = best;
    // A packet is injected without a choice.
    let choosing = choosing * (1.0 - 1.0 / ways[1]);
    println!(
        "{topology:>10} {hosts:>6} {:>15} {fixed:>9.1} {:>12} {adaptive:>9.1} {:>7.2} {:>6.2} {:>6.2} {choosing:>9.1} {:>6.0}%",
        routings[0],
        routings[1],
        adaptive / fixed,
        ways[0],
        ways[1],
        100.0 * choosing / adaptive
    );
}

/// Nanoseconds in which a routing chooses a hop: packets that go one after another between random hosts, through random loads
/// of up to four packets a link.
fn choice(graph: &Graph, routing: &str, choices: u64) -> f64 {
    let routing = routing::build(routing, &serde_json::Value::Null, graph).expect("a routing of a bench");
    let mut random = rng::stream(1, "choices", 0);
    let links = graph.links().len();
    let queued: Vec<u32> = (0..links).map(|_| random.random_range(0..4 * 4122)).collect();
    let none = vec![0; links];
    let loads = Loads { queued: &queued, used: &none, routed: &none };
    let hosts = u32::try_from(graph.hosts()).expect("few hosts");
    let (mut chosen, start) = (0, ProcessTime::now());
    while chosen < choices {
        let (from, to) = (HostId(random.random_range(0..hosts)), HostId(random.random_range(0..hosts)));
        let link = graph.ports(Vertex::Host(from)).next().expect("a host with a link");
        let mut visit = Visit { previous: Hop { link, channel: 0 }, to, vl: 0, note: 0, random: 0 };
        while let Vertex::Switch(at) = graph.link(visit.previous.link).to {
            visit.random = random.next_u32();
            visit.previous = routing.choose(at, &mut visit, &loads);
            chosen += 1;
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / chosen as f64
}

/// A fabric of links of one rate and latency.
fn fabric(topology: &str, params: &str) -> Arc<Graph> {
    let mut params: serde_json::Value = serde_json::from_str(params).expect("parameters of a bench");
    params["bandwidth"] = RATE.0.into();
    params["latency"] = 200_000.into();
    Arc::new(topology::build(topology, &params).expect("a fabric of a bench"))
}

/// Best of five runs, each in turn with the event list that a conventional engine would need for the same packet-hops.
fn row(topology: &str, params: &str, case: Case, hops: u64) {
    let graph = fabric(topology, params);
    let (mut own, mut list, mut way) = (f64::MAX, f64::MAX, 0.0);
    for _ in 0..5 {
        let (done, seconds, packets) = run(case, &graph, hops);
        own = own.min(seconds * 1e9 / done as f64);
        way = done as f64 / packets as f64;
        list = list.min(event_list(graph.links().len(), hops / 4));
    }
    println!(
        "{topology:>10} {:>6} {:>4} {:>9} {way:>14.2} {:>9.2} {own:>9.1} {list:>10.1} {:>7.2}",
        case.hosts,
        case.service_levels,
        case.counters,
        1e3 / own,
        list / own
    );
}

/// Nanoseconds a packet-hop for a binary heap alone to keep the 3.2 events (arrival, port free, credit) that a
/// conventional engine has for one: half of the ports busy, nothing done with the events.
fn event_list(ports: usize, hops: u64) -> f64 {
    let mut random = rng::stream(1, "events", 0);
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..ports as u64).map(|id| Reverse((id * 997 % 330_000, id))).collect();
    let events = hops * 32 / 10;
    let start = ProcessTime::now();
    for _ in 0..events {
        let Reverse((time, id)) = heap.pop().expect("a heap that stays full");
        heap.push(Reverse((time + 200_000 + random.next_u64() % 200_000, id)));
    }
    start.elapsed().as_secs_f64() * 1e9 / hops as f64
}

/// Packet-hops, CPU seconds and packets delivered of one run, after a warm-up.
fn run(case: Case, graph: &Arc<Graph>, hops: u64) -> (u64, f64, u64) {
    let (spec, programs) = uniform(case);
    let mut simulation = Simulation::on(Arc::clone(graph), spec, programs).expect("a valid plan");
    let far = Instant(u64::MAX >> 1);
    simulation.run_until(far, hops / 4).expect("traffic that flows");
    let before = simulation.network().totals();
    let start = ProcessTime::now();
    simulation.run_until(far, hops).expect("traffic that flows");
    let elapsed: Duration = start.elapsed();
    let after = simulation.network().totals();
    // Messages are packets here.
    let packets = after.messages_delivered - before.messages_delivered;
    (after.packet_hops - before.packet_hops, elapsed.as_secs_f64(), packets)
}

/// Every rank sends one packet to a random other rank, on average every two wire times.
fn uniform(case: Case) -> (Spec, Vec<Program>) {
    const STEPS: usize = 32;
    let wire = RATE.serialization(PAYLOAD + Bytes(26)).0;
    let size = case.hosts / JOBS;
    let mut specs = Vec::new();
    let mut programs = Vec::new();
    let mut hosts: Vec<u32> = (0..case.hosts).collect();
    hosts.shuffle(&mut rng::stream(1, "hosts", 0));
    for job in 0..JOBS {
        let mut random = rng::stream(1, "uniform", u64::from(job));
        let mut targets: Vec<Vec<u32>> = Vec::new();
        for _ in 0..STEPS {
            let mut order: Vec<u32> = (0..size).collect();
            order.shuffle(&mut random);
            // A cycle through all ranks: nobody sends to itself, everybody receives once.
            let mut target = vec![0; size as usize];
            for (place, &rank) in order.iter().enumerate() {
                target[rank as usize] = order[(place + 1) % order.len()];
            }
            targets.push(target);
        }
        let ranks = (0..size).map(|rank| script(rank, &targets, wire, &mut random).source()).collect();
        programs.push(Program { ranks });
        let own = &hosts[(job * size) as usize..((job + 1) * size) as usize];
        specs.push(JobSpec {
            name: format!("job {job}"),
            hosts: own.iter().map(|&host| HostId(host)).collect(),
            service_level: Some(u8::try_from(job).expect("four jobs") % case.service_levels),
            ranks: (0..size).filter(|_| case.service_levels > 4).map(|rank| (rank, (rank % 16) as u8)).collect(),
            rails: None,
            start: Picoseconds::ZERO,
            stop: None,
            marks: false,
        });
    }
    let spec = Spec {
        fabric: FabricSpec {
            topology: "fat_tree".into(),
            params: serde_json::Value::Null,
            routing: case.routing.into(),
            routing_params: serde_json::Value::Null,
            rails: None,
        },
        network: Default::default(),
        qos: QosSpec {
            lanes: None,
            sl2vl: (0..case.service_levels).collect(),
            arbiter: Named { name: "weighted_round_robin".into(), params: serde_json::json!({}) },
            default: 0,
            kinds: Default::default(),
        },
        // The hosts do nothing but send and receive: what is measured is the engine, not the idle time of its CPUs.
        mpi: mpi::Parameters {
            send_overhead: Picoseconds::ZERO,
            receive_overhead: Picoseconds::ZERO,
            ..Default::default()
        },
        jobs: specs,
        observe: observe::Parameters { counters: case.counters, ..Default::default() },
    };
    (spec, programs)
}

/// Blocks of sends and receives; a block's receives are waited for after the next block.
fn script(rank: u32, targets: &[Vec<u32>], wire: u64, random: &mut impl RngExt) -> Script {
    const BLOCK: usize = 8;
    let mut lines = vec![Line::Repeat(None)];
    for (number, block) in targets.chunks(BLOCK).enumerate() {
        let base = |number: usize| u32::try_from(number % 2 * 2 * BLOCK).expect("small");
        let request = |place: usize| base(number) + u32::try_from(place).expect("small");
        for place in 0..block.len() {
            lines.push(Line::Op(Op::Irecv { from: None, tag: None, comm: COMM_WORLD, request: request(place) }));
        }
        for (place, target) in block.iter().enumerate() {
            let (to, mode) = (Rank(target[rank as usize]), SendMode::Standard);
            let request = request(BLOCK + place);
            lines.push(Line::Op(Op::Isend { to, bytes: PAYLOAD, tag: 0, comm: COMM_WORLD, mode, request }));
            let gap = random.random_range(0.0..2.0) * 2.0 * wire as f64;
            lines.push(Line::Op(Op::Compute(Picoseconds(gap as u64))));
        }
        let all: Arc<[RequestId]> = (0..2 * BLOCK as u32).map(|place| base(number) + place).collect();
        lines.push(Line::Op(Op::WaitAll(all)));
    }
    lines.push(Line::End);
    Script::new(lines).expect("closed loops")
}
