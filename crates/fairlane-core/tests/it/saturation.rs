//! The throughput of routings when every host sends as fast as it can, against closed forms.
//!
//! `offered` is a part of the link's rate; accepted is what is delivered of it, once the buffers have filled. Hosts do nothing
//! but send, and do not wait.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a load"
)]

use std::sync::Arc;

use fairlane_core::ids::{HostId, JobId, Rank};
use fairlane_core::mpi;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::rng;
use fairlane_core::routing::{self, Hop};
use fairlane_core::simulation::{FabricSpec, JobSpec, Simulation, Spec};
use fairlane_core::topology::{self, Graph, Vertex};
use fairlane_core::units::{BitsPerSec, Bytes, Instant, Picoseconds};
use rand::RngExt;
use serde_json::{Value, json};

const PAYLOAD: Bytes = Bytes(4096);
const WIRE: Bytes = Bytes(4096 + 26);
const RATE: BitsPerSec = BitsPerSec(100_000_000_000);
/// Sends of a rank before they repeat.
const SENDS: u32 = 1024;
const WARM_UP: Instant = Instant(100_000_000);
const END: Instant = Instant(250_000_000);

/// A fabric and a routing, under traffic.
struct Load {
    topology: &'static str,
    params: Value,
    routing: &'static str,
    /// Where a host sends to, by a random number.
    target: fn(host: u32, random: u32) -> u32,
}

impl Load {
    /// The part of the offered load that is delivered.
    fn accepted(&self, offered: f64) -> f64 {
        let hosts = u32::try_from(self.graph().hosts()).unwrap();
        let gap = RATE.serialization(WIRE).0 as f64 / offered;
        let mut simulation = self.simulation((0..hosts).map(|host| (host, self.script(host, gap))));
        simulation.run_until(WARM_UP, u64::MAX).unwrap();
        let (before, start) = (simulation.network().totals().messages_delivered, simulation.now());
        simulation.run_until(END, u64::MAX).unwrap();
        let bytes = (simulation.network().totals().messages_delivered - before) * WIRE.0;
        let seconds = (simulation.now().0 - start.0) as f64 * 1e-12;
        let most = simulation.network().graph().hosts() as f64 * RATE.0 as f64 / 8.0 * seconds;
        bytes as f64 / most
    }

    fn graph(&self) -> Graph {
        topology::build(self.topology, &self.params).unwrap()
    }

    /// One job, from the host and the script of each rank.
    fn simulation(&self, ranks: impl IntoIterator<Item = (u32, Script)>) -> Simulation {
        let (hosts, ranks) = ranks.into_iter().map(|(host, script)| (HostId(host), script.source())).unzip();
        let job = JobSpec { name: "all".into(), hosts, ..Default::default() };
        let spec = Spec {
            fabric: FabricSpec {
                topology: self.topology.into(),
                params: self.params.clone(),
                routing: self.routing.into(),
                routing_params: json!({}),
                rails: None,
            },
            network: Default::default(),
            qos: Default::default(),
            mpi: mpi::Parameters {
                send_overhead: Picoseconds::ZERO,
                receive_overhead: Picoseconds::ZERO,
                ..Default::default()
            },
            jobs: vec![job],
            faults: Vec::new(),
            observe: Default::default(),
        };
        Simulation::on(&Registry::default(), Arc::new(self.graph()), spec, vec![Program { ranks }]).unwrap()
    }

    /// Sends without an end, at random times. Nobody receives: what has come stays unexpected.
    fn script(&self, host: u32, gap: f64) -> Script {
        let mut random = rng::stream(1, "saturation", u64::from(host));
        let mut lines = vec![Line::Repeat(None)];
        let waits: Vec<f64> = (0..SENDS).map(|_| random.random_range(0.0..1.0)).collect();
        let mean = waits.iter().sum::<f64>() / f64::from(SENDS);
        for wait in waits {
            let (to, wait) = ((self.target)(host, random.random()), wait / mean * gap);
            lines.push(Line::Op(Op::Compute(Picoseconds(wait as u64))));
            let (to, mode) = (Rank(to), SendMode::Standard);
            lines.push(Line::Op(Op::P2p(P2p::Send { to, bytes: PAYLOAD, tag: 0, comm: COMM_WORLD, mode })));
        }
        lines.push(Line::End);
        Script::new(lines).unwrap()
    }
}

/// Nine groups of four switches of two hosts and two global links: balanced, 72 hosts.
fn dragonfly(routing: &'static str, target: fn(u32, u32) -> u32) -> Load {
    let params = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2,
                         "bandwidth": RATE.0, "latency": 100_000 });
    Load { topology: "dragonfly", params, routing, target }
}

/// Any other host.
fn uniform_72(host: u32, random: u32) -> u32 {
    (host + 1 + random % 71) % 72
}

/// Any host of the next group.
fn next_group(host: u32, random: u32) -> u32 {
    (host / 8 + 1) % 9 * 8 + random % 8
}

/// Eight by eight switches of a host each.
fn torus(routing: &'static str, target: fn(u32, u32) -> u32) -> Load {
    let params = json!({ "sides": [8, 8], "bandwidth": RATE.0, "latency": 100_000 });
    Load { topology: "torus", params, routing, target }
}

fn uniform_64(host: u32, random: u32) -> u32 {
    (host + 1 + random % 63) % 64
}

/// Three ahead in both dimensions, one less than half way round.
fn tornado(host: u32, _random: u32) -> u32 {
    (host / 8 + 3) % 8 * 8 + (host % 8 + 3) % 8
}

/// One global link carries what the eight hosts of a group send: an eighth of a link each.
#[test]
fn minimal_routing_saturates_at_one_link_for_a_group_on_adversarial_traffic() {
    let accepted = dragonfly("minimal", next_group).accepted(0.5);
    assert!((accepted - 0.125).abs() < 0.002, "{accepted}");
    let below = dragonfly("minimal", next_group).accepted(0.1);
    assert!((below - 0.1).abs() < 0.01, "{below}");
}

/// A non-minimal path leads over one of seven other groups. The link between two groups carries the first halves of one group's
/// non-minimal paths and the second halves of another's, 8/7 of a host's rate each: at most 7/16 get through. The direct link is
/// free for an eighth more if some packets take the minimal path.
#[test]
fn detours_let_adversarial_traffic_through() {
    let accepted = |routing| dragonfly(routing, next_group).accepted(0.9);
    let valiant = accepted("valiant");
    assert!(valiant > 0.36 && valiant <= 7.0 / 16.0 + 0.005, "{valiant}");
    for routing in ["ugal_l", "ugal_g", "progressive"] {
        let adaptive = accepted(routing);
        assert!(adaptive > 0.36 && adaptive <= 7.0 / 16.0 + 1.0 / 8.0 + 0.005, "{routing} {adaptive}");
    }
}

/// Minimal paths use every link about equally; non-minimal paths are twice as long.
#[test]
fn uniform_traffic_gets_through_unless_it_takes_detours() {
    let accepted = |routing| dragonfly(routing, uniform_72).accepted(1.0);
    for routing in ["minimal", "ugal_g", "progressive"] {
        let accepted = accepted(routing);
        assert!(accepted > 0.8 && accepted <= 1.0, "{routing} {accepted}");
    }
    let valiant = accepted("valiant");
    assert!(valiant > 0.36 && valiant < 0.6, "{valiant}");
}

/// Tornado: dimension order loads the links of one direction with three hosts' traffic. Non-minimal paths are four links long in each
/// dimension on average, over both directions: two hosts' traffic for each link. What is congested is mostly the second dimension,
/// which the first switch does not see; so of UGAL it is the one that sees everything which is tried.
#[test]
fn detours_help_against_tornado_traffic_on_a_torus() {
    let all_of_it = torus("dimension_order", tornado).accepted(0.3);
    assert!((all_of_it - 0.3).abs() < 0.01, "{all_of_it}");
    let order = torus("dimension_order", tornado).accepted(0.9);
    assert!(order <= 1.0 / 3.0, "{order}");
    let valiant = torus("valiant", tornado).accepted(0.9);
    assert!(valiant > 0.4 && valiant <= 0.5 + 0.01, "{valiant}");
    let adaptive = torus("ugal_g", tornado).accepted(0.45);
    assert!((adaptive - 0.45).abs() < 0.015, "{adaptive}");
    let uniform = torus("ugal_l", uniform_64).accepted(0.8);
    assert!((uniform - 0.8).abs() < 0.02, "{uniform}");
}

/// One packet on an idle fabric: its links' latencies, the switches between, and its own time on a wire. Without loads all
/// routings but Valiant's take the minimal path.
#[test]
fn an_idle_fabric_delivers_in_the_time_of_the_way() {
    let pair = |from: u32| (from, (from + 36) % 72);
    for routing in ["minimal", "valiant", "ugal_l", "ugal_g", "progressive"] {
        let load = dragonfly(routing, uniform_72);
        for (from, to) in (0..72).map(pair) {
            let (bytes, comm) = (PAYLOAD, COMM_WORLD);
            let send = Op::P2p(P2p::Send { to: Rank(1), bytes, tag: 0, comm, mode: SendMode::Standard });
            let scripts = [send, Op::P2p(P2p::Recv { from: None, tag: None, comm })]
                .map(|op| Script::new(vec![Line::Op(op)]).unwrap());
            let mut simulation = load.simulation([from, to].into_iter().zip(scripts));
            assert!(simulation.run_until(END, u64::MAX).unwrap());
            let links = simulation.network().totals().packet_hops;
            let (_, receiver) = simulation.mpi().records(JobId(0)).nth(1).unwrap();
            let time = links * 100_000 + (links - 1) * 100_000 + RATE.serialization(WIRE).0;
            assert_eq!(receiver.finished, Some(Instant(time)), "{routing}, {links} links");
            let direct = direct_links(&load.graph(), HostId(from), HostId(to));
            assert!(
                if routing == "valiant" { (4..=7).contains(&links) } else { links == direct },
                "{routing}, {links}"
            );
        }
    }
}

/// Links of the minimal way.
fn direct_links(graph: &Graph, from: HostId, to: HostId) -> u64 {
    let routing = routing::build("minimal", &Value::Null, graph).unwrap();
    let mut hop = Hop { link: graph.ports(Vertex::Host(from)).next().unwrap(), channel: 0 };
    let mut links = 1;
    while let Vertex::Switch(at) = graph.link(hop.link).to {
        hop = routing.next_hop(at, hop, to);
        links += 1;
    }
    links
}
