//! Parking lots: sources along a chain of switches share the link to one destination. Where arbitration is round robin, the
//! share of a source halves at each merge that follows; where it goes by age, all sources have the same share.

use std::collections::HashMap;

use fairlane_core::ids::{HostId, LinkId, Rank};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{Op, P2p, Program};
use fairlane_core::rng;
use fairlane_core::simulation::{Simulation, Spec};
use fairlane_core::topology::Vertex;
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use proptest::prelude::*;
use rand::RngExt;
use serde_json::{Value, json};

const RATE: u64 = 100_000_000_000;
/// Packets have no headers here.
const BYTES: u64 = 4096;
/// The wire time of a packet.
const WIRE: u64 = BYTES * 8 * 1_000_000_000_000 / RATE;

/// A chain of as many switches as there are sources, a source at each, and the destination at the last. Each source is a job
/// of its own on a service level of its own, whose virtual lane is given.
fn simulation(lanes: &[u8], buffer: u64, arbiter: &str, switch: &Value, scripts: impl Fn(u64) -> Script) -> Simulation {
    let count = lanes.len();
    let hosts: Vec<String> = (0..count).map(|source| format!("h{source}")).chain(["sink".into()]).collect();
    let cable = |a: String, b: String| json!({ "ends": [a, b], "bandwidth": RATE });
    let chain = (1..count).map(|at| cable(format!("s{}", at - 1), format!("s{at}")));
    let ends = (0..count).map(|at| cable(format!("h{at}"), format!("s{at}")));
    let last = cable("sink".into(), format!("s{}", count - 1));
    let links: Vec<Value> = chain.chain(ends).chain([last]).collect();
    let job =
        |source: usize| json!({ "name": format!("job{source}"), "hosts": [source, count], "service_level": source });
    let spec: Spec = serde_json::from_value(json!({
        "fabric": { "topology": "imported", "params": { "hosts": hosts, "links": links }, "routing": "up_down" },
        "network": { "mtu": BYTES, "header": 0, "buffer": buffer, "switch": switch },
        "qos": { "sl2vl": lanes, "arbiter": { "name": arbiter } },
        "mpi": { "eager_threshold": 1 << 20, "send_overhead": 0, "receive_overhead": 0 },
        "jobs": (0..count).map(job).collect::<Vec<_>>(),
        "observe": { "departures": true },
    }))
    .unwrap();
    let nothing = || Script::new(Vec::new()).unwrap();
    let program = |source| Program { ranks: vec![scripts(source).source(), nothing().source()] };
    Simulation::new(spec, (0..count as u64).map(program).collect()).unwrap()
}

/// A packet to the destination after each of these times.
fn packets(gaps: impl IntoIterator<Item = u64>, forever: bool) -> Script {
    let packet = |gap| {
        [Op::Compute(Picoseconds(gap)), Op::P2p(P2p::Datagram { to: Rank(1), bytes: Bytes(BYTES) })].map(Line::Op)
    };
    let body = gaps.into_iter().flat_map(packet);
    let lines: Vec<Line> = if forever {
        [Line::Repeat(None)].into_iter().chain(body).chain([Line::End]).collect()
    } else {
        body.collect()
    };
    Script::new(lines).unwrap()
}

/// The link to the destination.
fn last_link(simulation: &Simulation) -> LinkId {
    let graph = simulation.network().graph();
    let sink = HostId(u32::try_from(graph.hosts()).unwrap() - 1);
    graph.link(graph.ports(Vertex::Host(sink)).next().unwrap()).reverse
}

/// The share of each source in the last link, where every source offers the rate of its link: of 1000 packets after 200.
fn shares(lanes: &[u8], arbiter: &str, switch: &Value) -> Vec<f64> {
    let mut simulation = simulation(lanes, 4 * BYTES, arbiter, switch, |_| packets([WIRE], true));
    simulation.run_until(Instant(1250 * WIRE), u64::MAX).unwrap();
    simulation.check_laws().unwrap();
    let last = last_link(&simulation);
    let on_last = simulation.network().departures().into_iter().filter(|it| it.link == last.0);
    let jobs: Vec<u16> = on_last.skip(200).take(1000).map(|it| it.job).collect();
    assert_eq!(jobs.len(), 1000, "the link is never idle");
    let of_source = |source| jobs.iter().filter(|job| usize::from(**job) == source).count();
    (0..lanes.len()).map(|source| f64::from(u32::try_from(of_source(source)).unwrap()) / 1000.0).collect()
}

fn assert_near(found: &[f64], expected: &[f64]) {
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 0.02);
    assert!(near, "{found:?}, not {expected:?}");
}

/// The two distant sources have lane 0 and share the link between the switches alike; the near one has lane 1. Round robin gives
/// each lane one half of the last link. By age packets leave in the order in which they were made, and all are made at one rate.
#[test]
fn the_oldest_first_arbiter_is_fair_to_distant_sources() {
    let ideal = json!({ "name": "output_queued" });
    assert_near(&shares(&[0, 0, 1], "weighted_round_robin", &ideal), &[0.25, 0.25, 0.5]);
    assert_near(&shares(&[0, 0, 1], "oldest_first", &ideal), &[1.0 / 3.0; 3]);
}

/// One lane for all: the allocator decides at each switch between the link from the switch before and the source's own.
#[test]
fn the_age_based_allocator_is_fair_to_distant_sources() {
    let switch = |name: &str| json!({ "name": "input_queued", "params": { "allocator": name } });
    let halved = [0.125, 0.125, 0.25, 0.5];
    assert_near(&shares(&[0; 4], "weighted_round_robin", &switch("round_robin")), &halved);
    assert_near(&shares(&[0; 4], "weighted_round_robin", &switch("age_based")), &[0.25; 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Four sources send at random times, each on a lane of its own, and buffers hold all. Wherever packets wait for a link, the one
    /// that was made first leaves first.
    #[test]
    fn packets_leave_every_port_in_the_order_of_their_injection(seed in 0_u64..1 << 32) {
        let script = |source| {
            let mut random = rng::stream(seed, "injections", source);
            packets((0..50).map(|_| random.random_range(0..4 * WIRE)).collect::<Vec<_>>(), false)
        };
        let ideal = json!({ "name": "output_queued" });
        let mut simulation = simulation(&[0, 1, 2, 3], 1000 * BYTES, "oldest_first", &ideal, script);
        simulation.run_until(Instant(1_000_000 * WIRE), u64::MAX).unwrap();
        prop_assert!(simulation.finished());
        let departures = simulation.network().departures();
        let is_nic = |link: u32| usize::try_from(link).unwrap() < simulation.network().graph().hosts();
        // When a packet was offered to its NIC's port; a source's packets come in order, so that a count tells which it is.
        let mut injected: HashMap<u16, Vec<u64>> = HashMap::new();
        let mut counts: HashMap<(u32, u16), usize> = HashMap::new();
        let mut ports: HashMap<u32, Vec<(u64, u64, u64)>> = HashMap::new();
        for it in departures {
            if is_nic(it.link) {
                injected.entry(it.job).or_default().push(it.time - it.waited);
                continue;
            }
            let count = counts.entry((it.link, it.job)).or_default();
            ports.entry(it.link).or_default().push((it.time, it.time - it.waited, injected[&it.job][*count]));
            *count += 1;
        }
        for packets in ports.values() {
            for (number, &(left, _, age)) in packets.iter().enumerate() {
                for &(_, joined, other) in &packets[number + 1..] {
                    prop_assert!(joined > left || age <= other);
                }
            }
        }
    }
}
