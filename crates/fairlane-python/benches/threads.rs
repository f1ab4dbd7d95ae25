//! Several threads against one: uniform random traffic of MPI hosts, both runs in turn in one process, in pairs.
//!
//! `cargo bench --bench threads -- [FILTER [PACKET-HOPS [THREADS]]]`. Columns: wall time of one thread over that of several, the
//! median of the pairs with the least and the greatest; packet-hops a window; how evenly they are divided, the mean over the
//! largest share, for these and for 16 shards; and what follows for 16 threads with the cost of a barrier. All figures need
//! as many free cores as threads.

#![allow(clippy::cast_precision_loss, reason = "figures for display")]

#[path = "../../fairlane-bindings/src/allocator.rs"]
mod allocator;
mod traffic;

use std::sync::Arc;
use std::time::Instant as Clock;

use fairlane_core::kernel::Barrier;
use fairlane_core::simulation::Parallelism;
use fairlane_core::topology::Graph;
use fairlane_core::units::Instant;
use traffic::{Case, DRAGONFLY, ONE_PACKET, advance, fabric, warm};

const PAIRS: usize = 5;
const MANY: usize = 16;

const FABRICS: &[(&str, u32, &str, &str)] = &[
    ("fat_tree", 64, r#"{ "hosts": 64, "levels": 2 }"#, "d_mod_k"),
    ("fat_tree", 256, r#"{ "hosts": 256, "levels": 2, "radix": 32 }"#, "d_mod_k"),
    ("fat_tree", 1296, r#"{ "hosts": 1296, "levels": 3 }"#, "d_mod_k"),
    ("fat_tree", 8192, r#"{ "hosts": 8192, "levels": 3 }"#, "d_mod_k"),
    ("dragonfly", 1056, DRAGONFLY, "minimal"),
    ("dragonfly", 1056, DRAGONFLY, "progressive"),
    ("torus", 1296, r#"{ "sides": [12, 12, 9] }"#, "dimension_order"),
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let filter = arguments.next().unwrap_or_default();
    let hops = arguments.next().map_or(3_000_000, |argument| argument.parse().expect("a number of packet-hops"));
    let threads = arguments.next().map_or(2, |argument| argument.parse().expect("a number of threads"));
    let barrier = barrier(threads);
    println!("a barrier of {threads} threads takes {barrier:.0} ns");
    println!(
        "{:>10} {:>6} {:>16} {:>9} {:>7} {:>12} {:>12} {:>8} {:>11} {:>12}",
        "fabric",
        "hosts",
        "routing",
        "ns/hop",
        "speedup",
        "range",
        "hops/window",
        "balance",
        "balance 16",
        "estimate 16"
    );
    for &(topology, hosts, params, routing) in FABRICS {
        if format!("{topology}/{hosts}/{routing}").contains(&filter) {
            let graph = fabric(topology, params);
            let case = Case { hosts, service_levels: 4, counters: true, routing, bytes: ONE_PACKET };
            row((topology, &graph), case, (hops, threads), barrier);
        }
    }
}

fn row((name, graph): (&str, &Arc<Graph>), case: Case, (hops, threads): (u64, usize), barrier: f64) {
    let mut pairs: Vec<[f64; 2]> =
        (0..PAIRS).map(|_| [1, threads].map(|threads| seconds(graph, case, threads, hops))).collect();
    pairs.sort_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
    let speedup = |pair: &[f64; 2]| pair[0] / pair[1];
    let alone = pairs.iter().map(|pair| pair[0]).fold(f64::MAX, f64::min) * 1e9 / hops as f64;
    let (window, balance) = division(graph, case, threads, hops / 8);
    let (_, many) = division(graph, case, MANY, hops / 8);
    // The cost of mail is in the measured time of several threads, beyond their balance and their barriers.
    let shared = pairs.iter().map(|pair| pair[1]).fold(f64::MAX, f64::min) * 1e9 / hops as f64;
    let work = ((shared - barrier / window) * balance * threads as f64).max(alone);
    let estimate = alone / (work / (MANY as f64 * many) + barrier * (MANY as f64 / threads as f64).log2() / window);
    println!(
        "{name:>10} {:>6} {:>16} {alone:>9.1} {:>7.2} {:>5.2} - {:<4.2} {window:>12.0} {balance:>8.2} {many:>11.2} {estimate:>12.1}",
        case.hosts,
        case.routing,
        speedup(&pairs[PAIRS / 2]),
        speedup(&pairs[0]),
        speedup(&pairs[PAIRS - 1]),
    );
}

/// Wall time of so many packet-hops, after a warm-up.
fn seconds(graph: &Arc<Graph>, case: Case, threads: usize, hops: u64) -> f64 {
    let mut simulation = warm(graph, case, Parallelism::threads(threads), hops / 4);
    let start = Clock::now();
    advance(&mut simulation, hops);
    start.elapsed().as_secs_f64()
}

/// Packet-hops a window, and the mean over the largest share of a shard: what part of the time the shards work that have
/// not the most to do, if each hop costs the same.
fn division(graph: &Arc<Graph>, case: Case, shards: usize, hops: u64) -> (f64, f64) {
    let mut simulation = warm(graph, case, Parallelism { shards, threads: 1 }, hops);
    let (mut windows, mut largest, first) = (0_u64, 0, simulation.network().totals().packet_hops);
    let mut before = simulation.network().packet_hops_of_shards();
    let mut done = 0;
    while done < hops {
        // At least one packet-hop more: at least one window.
        simulation.run_until(Instant(u64::MAX >> 1), 1).expect("traffic that flows");
        let after = simulation.network().packet_hops_of_shards();
        largest += after.iter().zip(&before).map(|(after, before)| after - before).max().unwrap_or(0);
        before = after;
        windows += 1;
        done = simulation.network().totals().packet_hops - first;
    }
    (done as f64 / windows as f64, done as f64 / shards as f64 / largest as f64)
}

/// Nanoseconds that a barrier takes which all threads reach at about the same time.
fn barrier(threads: usize) -> f64 {
    const ROUNDS: u32 = 100_000;
    let barrier = Barrier::new(threads);
    let rounds = || (0..ROUNDS).for_each(|_| barrier.wait());
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| _ = scope.spawn(rounds));
        let start = Clock::now();
        rounds();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    })
}
