//! Packet-hops per CPU second of one core: uniform random traffic, one-packet messages, MPI hosts.
//!
//! `cargo bench --bench engine -- [FILTER [PACKET-HOPS]]`. The bound to compare with is measured in turn in the same run:
//! the time that a conventional engine's event list alone would take (ratio above 1: faster than that list).

#![allow(clippy::cast_precision_loss, reason = "figures for display")]

#[path = "../../fairlane-bindings/src/allocator.rs"]
mod allocator;
mod traffic;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ProcessTime;
use fairlane_core::ids::HostId;
use fairlane_core::rng;
use fairlane_core::routing::{self, Hop, Loads, PortLoads, Visit};
use fairlane_core::simulation::Parallelism;
use fairlane_core::topology::{Graph, Vertex};
use rand::{Rng, RngExt};
use traffic::{Case, DRAGONFLY, ONE_PACKET, advance, fabric, warm};

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
                row(topology, params, Case { hosts, service_levels, counters, routing, bytes: ONE_PACKET }, hops);
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
            let case = Case { hosts, service_levels: 1, counters: true, routing, bytes: ONE_PACKET };
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
    let ports = PortLoads { all: queued, ..Default::default() };
    let loads = Loads::of(&ports);
    let hosts = u32::try_from(graph.hosts()).expect("few hosts");
    let (mut chosen, start) = (0, ProcessTime::now());
    while chosen < choices {
        let (from, to) = (HostId(random.random_range(0..hosts)), HostId(random.random_range(0..hosts)));
        let link = graph.ports(Vertex::Host(from)).next().expect("a host with a link");
        let mut visit = Visit::new(Hop { link, channel: 0 }, to);
        while let Vertex::Switch(at) = graph.link(visit.previous.link).to {
            visit.random = random.next_u32();
            visit.previous = routing.choose(at, &mut visit, &loads);
            chosen += 1;
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / chosen as f64
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
    let mut simulation = warm(graph, case, Parallelism::default(), hops / 4);
    let before = simulation.network().totals();
    let start = ProcessTime::now();
    advance(&mut simulation, hops);
    let elapsed: Duration = start.elapsed();
    let after = simulation.network().totals();
    // Messages are packets here.
    let packets = after.messages_delivered - before.messages_delivered;
    (after.packet_hops - before.packet_hops, elapsed.as_secs_f64(), packets)
}
