//! Instructions per packet-hop, counted by callgrind: see `benches/instructions.py`, which divides and compares.

#![allow(missing_docs, reason = "the harness generates public items")]

mod traffic;

use std::hint::black_box;

use fairlane_core::simulation::{Parallelism, Simulation};
use gungraun::prelude::*;
use traffic::{Case, DRAGONFLY, ONE_PACKET, advance, fabric, warm};

/// Packet-hops that are counted, after the warm-up; `benches/instructions.py` divides by them.
const HOPS: u64 = 200_000;
const WARM_UP: u64 = 100_000;

/// A message of several packets.
const BULK: u64 = 64 * 1024;

fn ready(topology: &str, params: &str, hosts: u32, routing: &'static str, bytes: u64) -> Simulation {
    let case = Case { hosts, service_levels: 4, counters: true, routing, bytes };
    warm(&fabric(topology, params), case, Parallelism::default(), WARM_UP)
}

#[library_benchmark(setup = ready)]
#[bench::fat_tree_64("fat_tree", r#"{ "hosts": 64, "levels": 2 }"#, 64, "d_mod_k", ONE_PACKET)]
#[bench::fat_tree_64_bulk("fat_tree", r#"{ "hosts": 64, "levels": 2 }"#, 64, "d_mod_k", BULK)]
#[bench::fat_tree_1296("fat_tree", r#"{ "hosts": 1296, "levels": 3 }"#, 1296, "d_mod_k", ONE_PACKET)]
#[bench::dragonfly_1056_minimal("dragonfly", DRAGONFLY, 1056, "minimal", ONE_PACKET)]
#[bench::dragonfly_1056_progressive("dragonfly", DRAGONFLY, 1056, "progressive", ONE_PACKET)]
#[bench::torus_1296("torus", r#"{ "sides": [12, 12, 9] }"#, 1296, "dimension_order", ONE_PACKET)]
fn hops(mut simulation: Simulation) -> Simulation {
    advance(black_box(&mut simulation), HOPS);
    simulation
}

// The first case without counters, histograms and interference: what they cost is the difference.
fn ready_unobserved(hosts: u32) -> Simulation {
    let case = Case { hosts, service_levels: 4, counters: false, routing: "d_mod_k", bytes: ONE_PACKET };
    let fabric = fabric("fat_tree", &format!(r#"{{ "hosts": {hosts}, "levels": 2 }}"#));
    warm(&fabric, case, Parallelism::default(), WARM_UP)
}

#[library_benchmark(setup = ready_unobserved)]
#[bench::fat_tree_64_unobserved(64)]
fn hops_unobserved(mut simulation: Simulation) -> Simulation {
    advance(black_box(&mut simulation), HOPS);
    simulation
}

fn ready_in_shards(shards: usize) -> Simulation {
    let case = Case { hosts: 1296, service_levels: 4, counters: true, routing: "d_mod_k", bytes: ONE_PACKET };
    let fabric = fabric("fat_tree", r#"{ "hosts": 1296, "levels": 3 }"#);
    warm(&fabric, case, Parallelism { shards, threads: 1 }, WARM_UP)
}

#[library_benchmark(setup = ready_in_shards)]
#[bench::fat_tree_1296_in_shards(2)]
fn hops_in_shards(mut simulation: Simulation) -> Simulation {
    advance(black_box(&mut simulation), HOPS);
    simulation
}

library_benchmark_group!(name = engine, benchmarks = [hops, hops_unobserved, hops_in_shards]);
main!(library_benchmark_groups = engine);
