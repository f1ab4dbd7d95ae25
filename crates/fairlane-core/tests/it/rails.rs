//! Hosts with several adapters: what rails add up to, and that they change nothing where they are not used.

use fairlane_core::error::RunError;
use fairlane_core::ids::{HostId, JobId, LinkId, Rank};
use fairlane_core::mpi::{self, RailPolicy};
use fairlane_core::network;
use fairlane_core::observe;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::routing::{Hop, Routing};
use fairlane_core::simulation::{FabricSpec, JobSpec, Simulation, Spec};
use fairlane_core::topology::{Graph, RailsSpec, Vertex};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use proptest::prelude::*;
use serde_json::{Value, json};

const FAR: Instant = Instant(u64::MAX >> 1);
const EAGER: u64 = 10_000;
const ROUND_ROBIN: RailPolicy = RailPolicy::RoundRobin;
const STRIPE: RailPolicy = RailPolicy::Stripe { above: Bytes(1000) };

fn only(only: u8) -> RailPolicy {
    RailPolicy::Only { only, to: None }
}

fn fabric(topology: &str, params: Value, routing: &str, rails: &Value) -> FabricSpec {
    let rails: Option<RailsSpec> = serde_json::from_value(rails.clone()).unwrap();
    let routing_params = json!({});
    FabricSpec { topology: topology.into(), params, routing: routing.into(), routing_params, rails }
}

/// Two levels of switches with several ways between leaves: 16 hosts, or half as many of two adapters if shared.
fn tree(rails: &Value) -> FabricSpec {
    fabric("fat_tree", json!({ "hosts": 16, "levels": 2, "radix": 8 }), "d_mod_k", rails)
}

/// One switch.
fn switch(rails: &Value) -> FabricSpec {
    fabric("fat_tree", json!({ "hosts": 4, "levels": 1, "radix": 4 }), "d_mod_k", rails)
}

/// One job on the given hosts, with no costs but those of the network.
fn simulation(fabric: FabricSpec, policy: RailPolicy, hosts: &[u32], ranks: Vec<Vec<Op>>) -> Simulation {
    let job = JobSpec {
        name: "job".into(),
        hosts: hosts.iter().map(|&host| HostId(host)).collect(),
        rails: Some(policy),
        marks: true,
        ..Default::default()
    };
    let spec = Spec {
        fabric,
        network: network::Parameters { mtu: Bytes(1000), header: Bytes(0), ..Default::default() },
        qos: Default::default(),
        mpi: mpi::Parameters {
            eager_threshold: Bytes(EAGER),
            send_overhead: Picoseconds::ZERO,
            receive_overhead: Picoseconds::ZERO,
            ..Default::default()
        },
        jobs: vec![job],
        faults: Vec::new(),
        observe: observe::Parameters { departures: true, ..Default::default() },
    };
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    let program = Program { ranks: ranks.into_iter().map(source).collect() };
    Simulation::new(spec, vec![program]).unwrap()
}

/// When the last rank ends, in picoseconds.
fn ends(mut simulation: Simulation) -> u64 {
    assert!(simulation.run_until(FAR, u64::MAX).unwrap());
    simulation.check_laws().unwrap();
    let finished = simulation.mpi().records(JobId(0)).map(|(_, record)| record.finished.unwrap().0);
    finished.max().unwrap()
}

fn isend(to: u32, bytes: u64, tag: i32, request: u32) -> Op {
    Op::P2p(P2p::Isend { to: Rank(to), bytes: Bytes(bytes), tag, comm: COMM_WORLD, mode: SendMode::Standard, request })
}

fn irecv(tag: Option<i32>, request: u32) -> Op {
    Op::P2p(P2p::Irecv { from: Some(Rank(0)), tag, comm: COMM_WORLD, request })
}

/// Rank 0 sends `count` messages at once, rank 1 waits for them.
fn messages(count: u32, bytes: u64) -> Vec<Vec<Op>> {
    let all: std::sync::Arc<[u32]> = (0..count).collect();
    let sends = (0..count).map(|request| isend(1, bytes, 0, request));
    let receives = (0..count).map(|request| irecv(None, request));
    vec![
        sends.chain([Op::P2p(P2p::WaitAll(all.clone()))]).collect(),
        receives.chain([Op::P2p(P2p::WaitAll(all)), Op::MarkProgress]).collect(),
    ]
}

fn time(fabric: FabricSpec, policy: RailPolicy, count: u32, bytes: u64) -> u64 {
    ends(simulation(fabric, policy, &[0, 3], messages(count, bytes)))
}

#[test]
fn a_striped_message_takes_as_long_as_its_part() {
    for bytes in [4_000, 8_000, 64_000, 4_000_000] {
        for rails in [2, 4] {
            let planes = json!({ "count": rails });
            // Both parts or the whole are eager, or neither is.
            let whole = if bytes > EAGER { bytes * rails } else { bytes };
            let part = time(switch(&Value::Null), only(0), 1, whole / rails);
            let striped = time(switch(&planes), STRIPE, 1, whole);
            if whole / rails > EAGER || whole <= EAGER {
                assert_eq!(striped, part, "{whole} bytes on {rails} rails");
            }
        }
    }
    // Of a long message the bandwidth is all that counts: 64 MB of 100 Gb/s links, to within latencies of 3 us.
    let wire = 64_000_000 * 8 * 10;
    let (one, two) = (time(switch(&Value::Null), only(0), 1, 64_000_000), |policy| {
        time(switch(&json!({ "count": 2 })), policy, 1, 64_000_000)
    });
    assert!(one >= wire && one < wire + 3_000_000, "{one}");
    assert!(two(STRIPE) >= wire / 2 && two(STRIPE) < wire / 2 + 3_000_000);
    assert_eq!(two(ROUND_ROBIN), one, "the message itself goes over one rail");
}

#[test]
fn messages_in_turn_take_as_long_as_half_of_them() {
    for count in [2, 10, 64] {
        let alone = time(switch(&Value::Null), only(0), count / 2, 5_000);
        let two = |policy| time(switch(&json!({ "count": 2 })), policy, count, 5_000);
        assert_eq!(two(ROUND_ROBIN), alone, "{count} messages");
        let same_rail = time(switch(&Value::Null), only(0), count, 5_000);
        let by_source = |ranks: &[u8]| two(RailPolicy::BySource { ranks: ranks.to_vec() });
        assert_eq!([two(RailPolicy::ByDestination), by_source(&[])], [same_rail; 2]);
        assert_eq!([by_source(&[0, 0]), by_source(&[1, 0])], [same_rail; 2]);
        assert_eq!(two(only(1)), same_rail);
    }
}

#[test]
fn a_rendezvous_of_a_striped_message_is_over_when_its_last_part_is() {
    // Rail 1 has a tenth of the bandwidth: its half decides.
    let slow = json!({ "count": 2, "adapters": [{}, { "bandwidth": 10_000_000_000_u64 }] });
    let wire = 1_000_000 * 8 * 100;
    let striped = time(switch(&slow), STRIPE, 1, 2_000_000);
    assert!(striped > wire && striped < wire + 5_000_000, "{striped} of {wire}");
}

#[test]
fn an_adapter_sends_no_more_messages_than_its_gap_allows() {
    const GAP: u64 = 3_000_000;
    let gap = json!({ "count": 2, "adapters": [{ "message_gap": GAP }, {}] });
    let at_once = |count| time(switch(&json!({ "count": 2 })), only(0), count, 100);
    let spaced = |count| time(switch(&gap), only(0), count, 100);
    assert_eq!(spaced(1), at_once(1));
    assert_eq!(spaced(20), at_once(1) + 19 * GAP);
    assert_eq!(time(switch(&gap), only(1), 20, 100), at_once(20), "the other adapter has none");
}

/// A little of everything between the ranks of a job: all to all, short and long.
fn exchange(ranks: u32) -> Vec<Vec<Op>> {
    let requests = |rank: u32| (0..ranks).filter(move |peer| *peer != rank);
    let of = |rank: u32| {
        let receive = |peer| Op::P2p(P2p::Irecv { from: Some(Rank(peer)), tag: None, comm: COMM_WORLD, request: peer });
        let send = |peer: u32| isend(peer, 700 + 4_000 * u64::from((rank + peer) % 5), 0, ranks + peer);
        let all = requests(rank).chain(requests(rank).map(|peer| ranks + peer)).collect();
        let ops = requests(rank).map(receive).chain(requests(rank).map(send));
        ops.chain([Op::P2p(P2p::WaitAll(all)), Op::MarkProgress]).collect()
    };
    (0..ranks).map(of).collect()
}

/// Everything that was measured, but for the numbers of links: departures have the link's number within its plane.
fn measured(mut simulation: Simulation) -> (Vec<u32>, String) {
    simulation.run_until(FAR, u64::MAX).unwrap();
    let network = simulation.network();
    let graph = network.graph();
    let inside = |link: LinkId| match graph.plane() {
        Some((_, planes)) => planes.link_inside(graph.rail(link).unwrap().into(), link),
        None => link,
    };
    let mut departures: Vec<_> =
        network.departures().iter().map(|d| (d.time, inside(LinkId(d.link)).0, d.lane, d.bytes)).collect();
    departures.sort_unstable();
    let records: Vec<_> = simulation.mpi().records(JobId(0)).collect();
    let used = departures.iter().map(|departure| departure.1).collect();
    (used, format!("{departures:?} {records:?} {:?}", network.totals()))
}

#[test]
fn one_rail_of_several_is_a_fabric_of_one_rail() {
    let hosts: Vec<u32> = (0..12).map(|rank| rank * 5 % 16).collect();
    for (topology, params, routing) in [
        ("fat_tree", json!({ "hosts": 16, "levels": 2, "radix": 8 }), "d_mod_k"),
        ("torus", json!({ "sides": [4, 4] }), "dimension_order"),
        (
            "dragonfly",
            json!({ "groups": 4, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 2 }),
            "minimal",
        ),
    ] {
        let on = |rails: Value, policy| {
            measured(simulation(fabric(topology, params.clone(), routing, &rails), policy, &hosts, exchange(12)))
        };
        let (used, one) = on(Value::Null, only(0));
        assert!(!used.is_empty());
        for rail in 0..3 {
            assert_eq!(on(json!({ "count": 3 }), only(rail)).1, one, "{topology}: rail {rail} of three");
        }
        assert_eq!(on(json!({ "count": 1 }), ROUND_ROBIN).1, one);
        assert_ne!(on(json!({ "count": 3 }), ROUND_ROBIN).1, one);
    }
}

#[test]
fn a_shared_fabric_with_one_adapter_in_use_is_one_of_every_other_host() {
    let rails = json!({ "count": 2, "wiring": "shared" });
    for rail in 0..2 {
        let hosts: Vec<u32> = (0..8).collect();
        let adapters: Vec<u32> = hosts.iter().map(|host| 2 * host + u32::from(rail)).collect();
        let merged = ends(simulation(tree(&rails), only(rail), &hosts, exchange(8)));
        assert_eq!(merged, ends(simulation(tree(&Value::Null), only(0), &adapters, exchange(8))));
    }
}

/// The links of a packet's way.
fn way(graph: &Graph, routing: &dyn Routing, from: u32, to: u32, rail: u32) -> Vec<LinkId> {
    let first = graph.ports(Vertex::Host(HostId(from))).nth(rail as usize).unwrap();
    let mut hops = vec![Hop { link: first, channel: 0 }];
    while let Vertex::Switch(at) = graph.link(hops[hops.len() - 1].link).to {
        hops.push(routing.next_hop(at, hops[hops.len() - 1], graph.endpoint(HostId(to), rail)));
        assert!(hops.len() < 20, "a way without end");
    }
    assert_eq!(graph.link(hops[hops.len() - 1].link).to, Vertex::Host(HostId(to)));
    hops.into_iter().map(|hop| hop.link).collect()
}

#[test]
fn packets_come_over_the_rail_that_they_were_sent_on() {
    for (rails, hosts) in [(json!({ "count": 2 }), 16), (json!({ "count": 2, "wiring": "shared" }), 8)] {
        let graph = tree(&rails).build(&Registry::default()).unwrap();
        for routing in ["d_mod_k", "up_down", "adaptive"] {
            let routing = fairlane_core::routing::build(routing, &json!({}), &graph).unwrap();
            for (from, to, rail) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to, (from + to) % 2))) {
                if from != to {
                    let way = way(&graph, &*routing, from, to, rail);
                    let ends = [way[0], way[way.len() - 1]].map(|link| graph.rail(link).map(u32::from));
                    assert_eq!(ends, [Some(rail); 2]);
                    let between = &way[1..way.len() - 1];
                    let own_plane = if rails["wiring"] == "shared" { None } else { Some(rail) };
                    assert!(between.iter().all(|link| graph.rail(*link).map(u32::from) == own_plane));
                }
            }
        }
    }
}

/// Messages of these sizes in order of their tags, to a receiver that names the tag of every message or of none. If one were
/// matched out of turn, a receive would wait for ever for what another has taken.
fn in_order(policy: RailPolicy, rails: &Value, sizes: &[(u64, bool)]) -> Result<bool, RunError> {
    let count = u32::try_from(sizes.len()).unwrap();
    let all: std::sync::Arc<[u32]> = (0..count).collect();
    let sends = (0..).zip(sizes).map(|(tag, (bytes, _))| isend(1, *bytes, tag, u32::try_from(tag).unwrap()));
    let receives = (0..).zip(sizes).flat_map(|(tag, (_, named))| {
        let request = u32::try_from(tag).unwrap();
        [irecv(named.then_some(tag), request), Op::P2p(P2p::Wait(request))]
    });
    let ranks = vec![sends.chain([Op::P2p(P2p::WaitAll(all))]).collect(), receives.collect()];
    simulation(tree(rails), policy, &[0, 7], ranks).run_until(FAR, u64::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_matched_in_the_order_of_sending(
        sizes in proptest::collection::vec((0..30_000_u64, any::<bool>()), 1..24),
        count in 2..4_u8,
        shared in any::<bool>(),
        stripe in any::<bool>(),
        gap in 0..2_000_000_u64,
    ) {
        let mut adapters = vec![json!({}); usize::from(count)];
        adapters[0] = json!({ "bandwidth": 1_000_000_000, "message_gap": gap });
        let shared = shared && count == 2;
        let rails = json!({ "count": count, "wiring": if shared { "shared" } else { "planes" }, "adapters": adapters });
        prop_assert_eq!(in_order(if stripe { STRIPE } else { ROUND_ROBIN }, &rails, &sizes), Ok(true));
    }
}

#[test]
fn a_message_that_overtakes_on_another_rail_waits_for_its_turn() {
    // The first message is long and on the slow rail, the second overtakes it: a receive of any tag must take the first.
    let slow = json!({ "count": 2, "adapters": [{ "bandwidth": 1_000_000_000 }, {}] });
    assert_eq!(in_order(ROUND_ROBIN, &slow, &[(9_000, false), (10, true)]), Ok(true));
    let swapped = json!({ "count": 2, "adapters": [{}, { "bandwidth": 1_000_000_000 }] });
    assert_eq!(in_order(ROUND_ROBIN, &swapped, &[(10, false), (9_000, false), (10, true)]), Ok(true));
}

/// Hosts with adapters in one fabric, cable by cable: what `fabric import` makes of a dump.
fn imported(links: &[(&str, &str)]) -> FabricSpec {
    let hosts: Vec<&str> = links.iter().map(|link| link.0).filter(|name| name.starts_with('h')).collect();
    let hosts: std::collections::BTreeSet<&str> = hosts.into_iter().collect();
    let cables: Vec<Value> = links.iter().map(|(a, b)| json!({ "ends": [a, b] })).collect();
    fabric("imported", json!({ "hosts": hosts, "links": cables }), "up_down", &Value::Null)
}

/// Bytes that each link to a host has carried, by the host's adapter.
fn received(simulation: &Simulation, host: u32) -> Vec<u64> {
    let graph = simulation.network().graph();
    let ports: Vec<LinkId> = graph.ports(Vertex::Host(HostId(host))).map(|port| graph.link(port).reverse).collect();
    let mut bytes = vec![0; ports.len()];
    for departure in simulation.network().departures() {
        if let Some(rail) = ports.iter().position(|port| port.0 == departure.link) {
            bytes[rail] += u64::from(departure.bytes);
        }
    }
    bytes
}

fn run(fabric: FabricSpec, policy: RailPolicy, hosts: &[u32], ranks: Vec<Vec<Op>>) -> Simulation {
    let mut simulation = simulation(fabric, policy, hosts, ranks);
    assert!(simulation.run_until(FAR, u64::MAX).unwrap());
    simulation.check_laws().unwrap();
    simulation
}

#[test]
fn every_policy_delivers_to_the_rail_that_it_names() {
    // Two leaves, each with one adapter of each of four hosts, and a spine: rail 0 is at leaf a, rail 1 at leaf b.
    let links: Vec<(&str, &str)> =
        ["h0", "h1", "h2", "h3"].iter().flat_map(|host| [(*host, "a"), (*host, "b")]).collect();
    let links = [&links[..], &[("a", "s"), ("b", "s")]].concat();
    let to_rails = |policy, ranks| received(&run(imported(&links), policy, &[0, 3], ranks), 3);
    for rail in 0..2_u8 {
        let bytes = to_rails(only(rail), messages(4, 5_000));
        assert_eq!((bytes[usize::from(rail)], bytes[1 - usize::from(rail)]), (20_000, 0));
        let across = RailPolicy::Only { only: rail, to: Some(1 - rail) };
        let bytes = to_rails(across, messages(4, 5_000));
        assert_eq!((bytes[1 - usize::from(rail)], bytes[usize::from(rail)]), (20_000, 0));
        let by_rank = RailPolicy::ByRank { ranks: vec![0, rail] };
        assert_eq!(to_rails(by_rank, messages(4, 5_000))[usize::from(rail)], 20_000);
    }
    assert_eq!(to_rails(ROUND_ROBIN, messages(4, 5_000)), [10_000; 2]);
    // Payloads are counted, not the messages of a rendezvous.
    let bytes = to_rails(ROUND_ROBIN, messages(4, 50_000));
    assert!(bytes.iter().all(|bytes| (100_000..101_000).contains(bytes)), "{bytes:?}");
    let bytes = to_rails(STRIPE, messages(1, 50_000));
    assert!(bytes.iter().all(|bytes| (25_000..25_500).contains(bytes)), "{bytes:?}");
}

#[test]
fn a_message_between_adapters_at_one_leaf_crosses_no_spine() {
    let links: Vec<(&str, &str)> = ["h0", "h1", "h2"].iter().flat_map(|host| [(*host, "a"), (*host, "b")]).collect();
    let links = [&links[..], &[("a", "s"), ("b", "s")]].concat();
    let spines = |policy| {
        let simulation = run(imported(&links), policy, &[0, 1, 2], exchange(3));
        let graph = simulation.network().graph();
        let inner = |link: &&u32| {
            let link = graph.link(LinkId(**link));
            matches!((link.from, link.to), (Vertex::Switch(_), Vertex::Switch(_)))
        };
        let links: Vec<u32> = simulation.network().departures().iter().map(|departure| departure.link).collect();
        links.iter().filter(inner).count()
    };
    for policy in [only(0), only(1), ROUND_ROBIN, STRIPE, RailPolicy::ByDestination] {
        assert_eq!(spines(policy.clone()), 0, "{policy:?}");
    }
    assert!(spines(RailPolicy::Only { only: 0, to: Some(1) }) > 0);
}

#[test]
fn hosts_with_other_numbers_of_adapters_use_all_of_them() {
    // A server with one adapter and a client with four: 4 x 5 kB out of the server go to each adapter of the client once.
    let links = [("h0", "a"), ("h1", "a"), ("h1", "a"), ("h1", "a"), ("h1", "a")];
    assert_eq!(received(&run(imported(&links), ROUND_ROBIN, &[0, 1], messages(4, 5_000)), 1), [5_000; 4]);
    assert_eq!(received(&run(imported(&links), ROUND_ROBIN, &[1, 0], messages(4, 5_000)), 0), [20_000]);
}

#[test]
fn adapters_on_planes_of_other_numbers_find_each_other() {
    // The planes a and b; h1 lists its adapters the other way round, h2 has one on plane b only.
    let links = [("h0", "a"), ("h0", "b"), ("h1", "b"), ("h1", "a"), ("h2", "b")];
    assert_eq!(received(&run(imported(&links), ROUND_ROBIN, &[0, 1], messages(4, 5_000)), 1), [10_000; 2]);
    assert_eq!(received(&run(imported(&links), only(0), &[0, 1], messages(4, 5_000)), 1), [0, 20_000]);
    assert_eq!(received(&run(imported(&links), ROUND_ROBIN, &[0, 2], messages(4, 5_000)), 2), [20_000]);
}

#[test]
fn hosts_that_no_plane_joins_are_named() {
    let links = [("h0", "a"), ("h1", "a"), ("h1", "b"), ("h2", "b")];
    let spec: Spec = serde_json::from_value(json!({
        "fabric": imported(&links),
        "qos": { "arbiter": { "name": "weighted_round_robin", "params": {} } },
        "jobs": [{ "name": "job", "hosts": [0, 2] }],
    }))
    .unwrap();
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    let program = Program { ranks: messages(1, 10).into_iter().map(source).collect() };
    let error = Simulation::new(spec, vec![program]).err().unwrap().to_string();
    let expected =
        "jobs[0].rails: no path between switches joins the adapters of \"h0\" and \"h2\" that messages may use";
    assert_eq!(error, expected);
}

#[test]
fn a_rail_optimised_tree_serves_each_rail_by_a_leaf() {
    // 4 leaves of 4 adapters, two rails: two groups of 4 hosts, leaf 2 g + r serves rail r of group g.
    let spec = tree(&json!({ "count": 2, "wiring": "rail_optimised" }));
    let graph = spec.build(&Registry::default()).unwrap();
    assert_eq!((graph.hosts(), graph.rails()), (8, 2));
    for host in 0..8_u32 {
        let leaves: Vec<Vertex> = graph.ports(Vertex::Host(HostId(host))).map(|port| graph.link(port).to).collect();
        let first = host / 4 * 2;
        let expected = [first, first + 1].map(|leaf| Vertex::Switch(fairlane_core::ids::SwitchId(leaf)));
        assert_eq!(leaves, expected, "host {host}");
    }
    for routing in ["d_mod_k", "up_down", "adaptive", "minimal"] {
        let Ok(routing) = fairlane_core::routing::build(routing, &json!({}), &graph) else { continue };
        for (from, to, rail) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to, (from + to) % 2))) {
            if from != to {
                let path = way(&graph, &*routing, from, to, rail);
                assert_eq!(path.len(), if from / 4 == to / 4 { 2 } else { 4 });
            }
        }
    }
    // Destinations of a rail are spread over all spines: 4 hosts of the other group, 4 up links of a leaf.
    let routing = fairlane_core::routing::build("d_mod_k", &json!({}), &graph).unwrap();
    let ups: std::collections::BTreeSet<LinkId> = (4..8).map(|to| way(&graph, &*routing, 0, to, 1)[1]).collect();
    assert_eq!(ups.len(), 4);
}

#[test]
fn a_rail_that_a_host_does_not_have_is_named() {
    for (rails, expected) in [
        (json!({ "policy": "only", "only": 1 }), "jobs[0].rails.only = 1: a rail of \"host0\", 0 to 0"),
        (json!({ "policy": "by_source", "ranks": [0, 3] }), "jobs[0].rails.ranks = 3: a rail of \"host1\", 0 to 0"),
    ] {
        let spec: Spec = serde_json::from_value(json!({
            "fabric": switch(&Value::Null),
            "qos": { "arbiter": { "name": "weighted_round_robin", "params": {} } },
            "jobs": [{ "name": "job", "hosts": [0, 1], "rails": rails }],
        }))
        .unwrap();
        let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
        let program = Program { ranks: messages(1, 10).into_iter().map(source).collect() };
        let error = Simulation::new(spec, vec![program]).err().unwrap().to_string();
        assert_eq!(error, expected);
    }
}
