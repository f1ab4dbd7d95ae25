//! The traffic of the benchmarks: uniform random, one-packet messages unless a case has longer ones, MPI hosts.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures of benchmarks are small")]

use std::sync::Arc;

use fairlane_core::ids::{HostId, Rank};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, RequestId, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::simulation::{FabricSpec, JobSpec, Parallelism, QosSpec, Simulation, Spec};
use fairlane_core::topology::{self, Graph};
use fairlane_core::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use fairlane_core::{mpi, observe, rng};
use rand::RngExt;
use rand::seq::SliceRandom;

/// The bandwidth of every link.
pub const RATE: BitsPerSec = BitsPerSec(100_000_000_000);
/// Jobs of every case, of equal size.
const JOBS: u32 = 4;

/// One row of the table: a fabric, a load, and what is switched on.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Hosts of the fabric, a rank on each.
    pub hosts: u32,
    /// Service levels, each with a lane of its own.
    pub service_levels: u8,
    /// Whether port counters are kept.
    pub counters: bool,
    /// Name of the routing.
    pub routing: &'static str,
    /// Payload of every message.
    pub bytes: u64,
}

/// Payload of a message that is one packet.
pub const ONE_PACKET: u64 = 4096;

/// A dragonfly of 1056 hosts.
pub const DRAGONFLY: &str = r#"{ "groups": 33, "switches_per_group": 8, "hosts_per_switch": 4, "global_links": 4 }"#;

/// A fabric of links of one rate and latency.
pub fn fabric(topology: &str, params: &str) -> Arc<Graph> {
    let mut params: serde_json::Value = serde_json::from_str(params).expect("parameters of a bench");
    params["bandwidth"] = RATE.0.into();
    params["latency"] = 200_000.into();
    Arc::new(topology::build(topology, &params).expect("a fabric of a bench"))
}

/// A simulation of uniform random traffic in which `hops` packets have started on a link.
pub fn warm(graph: &Arc<Graph>, case: Case, parallelism: Parallelism, hops: u64) -> Simulation {
    let ((spec, programs), graph) = (uniform(case), Arc::clone(graph));
    let simulation = Simulation::parallel(&Registry::default(), graph, spec, programs, parallelism);
    let mut simulation = simulation.expect("a valid plan");
    advance(&mut simulation, hops);
    simulation
}

/// Runs until about `hops` more packets have started on a link.
pub fn advance(simulation: &mut Simulation, hops: u64) {
    simulation.run_until(Instant(u64::MAX >> 1), hops).expect("traffic that flows");
}

/// Every rank sends one message to a random other rank, on average every two wire times.
fn uniform(case: Case) -> (Spec, Vec<Program>) {
    const STEPS: usize = 32;
    let wire = RATE.serialization(Bytes(case.bytes + 26 * case.bytes.div_ceil(ONE_PACKET))).0;
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
        let ranks = (0..size).map(|rank| script(rank, case.bytes, &targets, wire, &mut random).source()).collect();
        programs.push(Program { ranks });
        let own = &hosts[(job * size) as usize..((job + 1) * size) as usize];
        specs.push(JobSpec {
            name: format!("job {job}"),
            hosts: own.iter().map(|&host| HostId(host)).collect(),
            service_level: Some(u8::try_from(job).expect("four jobs") % case.service_levels),
            ranks: (0..size).filter(|_| case.service_levels > 4).map(|rank| (rank, (rank % 16) as u8)).collect(),
            ..Default::default()
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
        qos: QosSpec { sl2vl: (0..case.service_levels).collect(), ..Default::default() },
        // The hosts do nothing but send and receive: what is measured is the engine, not the idle time of its CPUs.
        mpi: mpi::Parameters {
            send_overhead: Picoseconds::ZERO,
            receive_overhead: Picoseconds::ZERO,
            ..Default::default()
        },
        jobs: specs,
        faults: Vec::new(),
        observe: observe::Parameters { counters: case.counters, ..Default::default() },
    };
    (spec, programs)
}

/// Blocks of sends and receives, at the end of which all of them are waited for. The tag is the number of the block: a receive that
/// took a message of the next block would leave one of its own block without a receive, and with rendezvous ranks then wait for
/// each other for ever.
fn script(rank: u32, bytes: u64, targets: &[Vec<u32>], wire: u64, random: &mut impl RngExt) -> Script {
    const BLOCK: usize = 8;
    let mut lines = vec![Line::Repeat(None)];
    for (number, block) in targets.chunks(BLOCK).enumerate() {
        let base = |number: usize| u32::try_from(number % 2 * 2 * BLOCK).expect("small");
        let request = |place: usize| base(number) + u32::try_from(place).expect("small");
        let tag = i32::try_from(number).expect("small");
        for place in 0..block.len() {
            lines.push(Line::Op(Op::P2p(P2p::Irecv {
                from: None,
                tag: Some(tag),
                comm: COMM_WORLD,
                request: request(place),
            })));
        }
        for (place, target) in block.iter().enumerate() {
            let (to, mode) = (Rank(target[rank as usize]), SendMode::Standard);
            let request = request(BLOCK + place);
            lines.push(Line::Op(Op::P2p(P2p::Isend { to, bytes: Bytes(bytes), tag, comm: COMM_WORLD, mode, request })));
            let gap = random.random_range(0.0..2.0) * 2.0 * wire as f64;
            lines.push(Line::Op(Op::Compute(Picoseconds(gap as u64))));
        }
        let all: Arc<[RequestId]> = (0..2 * BLOCK as u32).map(|place| base(number) + place).collect();
        lines.push(Line::Op(Op::P2p(P2p::WaitAll(all))));
    }
    lines.push(Line::End);
    Script::new(lines).expect("closed loops")
}
