//! What the plug-ins do, in simulations that are made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlane_core::ids::{HostId, JobId, LinkId, Rank, SwitchId};
use fairlane_core::observe::Departure;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Collective, CollectiveKind, Op, P2p, Program, SendMode, Volume};
use fairlane_core::registry::Registry;
use fairlane_core::routing::{Hop, Loads, PortLoads, Visit};
use fairlane_core::simulation::{Parallelism, Simulation, Spec};
use fairlane_core::topology::{Graph, LinkRole, Vertex};
use fairlane_core::units::{Bytes, Instant};
use serde_json::{Value, json};

const FAR: Instant = Instant(u64::MAX >> 1);
const RATE: u64 = 100_000_000_000;
const LEAVES: u32 = 4;
const HOSTS: u32 = 16;

/// The built-in entries and those of the crate.
fn registry() -> Registry {
    let mut registry = Registry::default();
    fairlane_example_plugin::register(&mut registry).unwrap();
    registry
}

fn fabric(routing: &str) -> Value {
    let params = json!({ "leaves": LEAVES, "hosts_per_leaf": 4, "spines": 4, "bandwidth": RATE, "latency": 200_000 });
    json!({ "topology": "leaf_spine", "params": params, "routing": routing })
}

/// A specification of these plug-ins with a job on these hosts: even ranks on service level 0, odd ones on 1.
fn spec(routing: &str, arbiter: &str, hosts: &[u32]) -> Value {
    let levels: BTreeMap<usize, usize> = (0..hosts.len()).map(|rank| (rank, rank % 2)).collect();
    json!({
        "fabric": fabric(routing),
        "network": { "mtu": 4096, "header": 0, "buffer": 1 << 20 },
        "qos": { "sl2vl": [0, 1], "arbiter": { "name": arbiter } },
        "mpi": { "eager_threshold": 1 << 30, "send_overhead": 0, "receive_overhead": 0, "collectives": { "bcast": "chain" } },
        "jobs": [{ "name": "job", "hosts": hosts, "ranks": levels }],
        "observe": { "departures": true },
    })
}

fn simulation(spec: &Value, ranks: Vec<Vec<Op>>) -> Simulation {
    let spec: Spec = serde_json::from_value(spec.clone()).unwrap();
    let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
    let program = Program { ranks: ranks.into_iter().map(source).collect() };
    Simulation::with(&registry(), spec, vec![program]).unwrap()
}

/// Runs to the end, and checks the laws on the way and there.
fn finish(mut simulation: Simulation) -> Simulation {
    for step in 1..20 {
        simulation.run_until(Instant(step * 1_000_000), u64::MAX).unwrap();
        simulation.check_laws().unwrap();
    }
    assert!(simulation.run_until(FAR, u64::MAX).unwrap() && simulation.finished());
    simulation.check_laws().unwrap();
    simulation
}

/// The same under the transport `paced`.
fn paced(mut spec: Value, percent: u64) -> Value {
    spec["network"]["transport"] = json!({ "name": "paced", "params": { "percent": percent } });
    spec
}

fn send(to: u32, bytes: u64, tag: i32) -> Op {
    Op::P2p(P2p::Send { to: Rank(to), bytes: Bytes(bytes), tag, comm: COMM_WORLD, mode: SendMode::Standard })
}

fn receive(from: u32, tag: i32) -> Op {
    Op::P2p(P2p::Recv { from: Some(Rank(from)), tag: Some(tag), comm: COMM_WORLD })
}

fn broadcast(bytes: u64) -> Op {
    let volume = Volume::Uniform(Bytes(bytes));
    Op::Collective(Collective::Blocking { kind: CollectiveKind::Bcast, comm: COMM_WORLD, root: Rank(3), volume })
}

/// Every rank sends `messages` messages to the rank `distance` after it, then all broadcast.
fn shift(distance: u32, messages: i32, bytes: u64) -> Vec<Vec<Op>> {
    let ops = |rank: u32| {
        let sends = (0..messages).map(|tag| send((rank + distance) % HOSTS, bytes, tag));
        let receives = (0..messages).map(|tag| receive((rank + HOSTS - distance) % HOSTS, tag));
        sends.chain(receives).chain([broadcast(bytes)]).collect()
    };
    (0..HOSTS).map(ops).collect()
}

fn all_hosts() -> Vec<u32> {
    (0..HOSTS).collect()
}

/// The links of the given role that carried something.
fn used(simulation: &Simulation, role: LinkRole) -> BTreeSet<LinkId> {
    let graph = simulation.network().graph();
    simulation
        .network()
        .departures()
        .iter()
        .map(|it| LinkId(it.link))
        .filter(|link| graph.role(*link) == role)
        .collect()
}

#[test]
fn all_plug_ins_work_together_and_runs_repeat() {
    for routing in ["spine_by_job", "lightest_lane"] {
        for arbiter in ["longest_wait", "longest_queue"] {
            let run = || finish(simulation(&spec(routing, arbiter, &all_hosts()), shift(5, 8, 20_000)));
            let (first, again) = (run(), run());
            assert_eq!(first.network().departures(), again.network().departures(), "{routing} {arbiter}");
            let totals = first.network().totals();
            // Sixteen ranks send eight messages each; a broadcast makes fifteen.
            assert_eq!((totals.messages_delivered, totals.bytes_delivered), (143, 143 * 20_000));
            // Five packets a message. A shift by five leaves the leaf: four links. The chain from rank 3 leaves a leaf four times.
            let hops = 16 * 8 * 5 * 4 + 4 * 5 * 4 + 11 * 5 * 2;
            assert_eq!(totals.packet_hops, hops, "{routing} {arbiter}");
        }
    }
}

#[test]
fn a_fork_goes_on_as_the_original() {
    let mut original = simulation(&spec("lightest_lane", "longest_wait", &all_hosts()), shift(5, 8, 20_000));
    original.run_until(Instant(3_000_000), u64::MAX).unwrap();
    let fork = finish(original.clone());
    assert_eq!(finish(original).network().departures(), fork.network().departures());
}

#[test]
fn wrong_names_and_parameters_are_errors_that_know_the_plug_ins() {
    let error = |spec: Value| {
        let spec: Spec = serde_json::from_value(spec).unwrap();
        Simulation::with(&registry(), spec, Vec::new()).err().unwrap().to_string()
    };
    let mut wrong = spec("spine_by_jb", "longest_wait", &[0]);
    assert!(error(wrong).ends_with("did you mean \"spine_by_job\"?"));
    wrong = spec("spine_by_job", "longest_wat", &[0]);
    assert!(error(wrong).ends_with("did you mean \"longest_wait\"?"));
    wrong = spec("spine_by_job", "longest_wait", &[0]);
    wrong["mpi"]["collectives"]["bcast"] = json!("chian");
    assert!(error(wrong).ends_with("did you mean \"chain\"?"));
    wrong = spec("spine_by_job", "longest_wait", &[0]);
    wrong["fabric"]["params"]["leaves"] = json!(0);
    assert_eq!(error(wrong), "fabric.leaves = 0: 1 to 1024");
    wrong = spec("d_mod_k", "longest_wait", &[0]);
    wrong["fabric"]["routing_params"] = json!({ "paths": 2 });
    assert!(error(wrong).contains("topology leaf_spine is usually routed by spine_by_job"));
}

#[test]
fn the_fabric_has_the_size_that_it_announces() {
    let registry = registry();
    let params = &fabric("spine_by_job")["params"];
    let (size, graph) = (registry.topologies.size("leaf_spine", params).unwrap(), build());
    assert_eq!((size.hosts, size.switches, size.links), (16, 8, 64));
    assert_eq!((graph.hosts(), graph.switches(), graph.links().len()), (16, 8, 64));
}

fn build() -> Graph {
    registry().topologies.build("leaf_spine", &fabric("spine_by_job")["params"], ()).unwrap()
}

/// Every hop that a routing may choose leads up from a leaf that is not the destination's and down otherwise, so that no
/// cycle of buffers can fill.
#[test]
fn packets_go_up_once_and_down_once() {
    let (graph, registry) = (build(), registry());
    for name in ["spine_by_job", "lightest_lane"] {
        let routing = registry.routings.build(name, &Value::Null, &graph).unwrap();
        for (source, to) in (0..HOSTS).flat_map(|source| (0..HOSTS).map(move |to| (HostId(source), HostId(to)))) {
            let first = graph.ports(Vertex::Host(source)).next().unwrap();
            let mut open = vec![(Hop { link: first, channel: 0 }, vec![LinkRole::Host])];
            while let Some((hop, roles)) = open.pop() {
                let Vertex::Switch(at) = graph.link(hop.link).to else {
                    assert_eq!(graph.link(hop.link).to, Vertex::Host(to));
                    let local = source.0 / 4 == to.0 / 4;
                    let path: &[LinkRole] =
                        if local { &[LinkRole::Host] } else { &[LinkRole::Host, LinkRole::Up, LinkRole::Down] };
                    assert_eq!(roles[..roles.len() - 1], *path);
                    continue;
                };
                for (next, _) in routing.options(at, &Visit { source, ..Visit::new(hop, to) }) {
                    open.push((next, roles.iter().copied().chain([graph.role(next.link)]).collect()));
                }
            }
        }
    }
}

#[test]
fn a_job_keeps_to_one_spine_and_jobs_are_spread() {
    let graph = build();
    let routing = registry().routings.build("spine_by_job", &Value::Null, &graph).unwrap();
    let none = vec![0; graph.links().len()];
    let ports = PortLoads { all: none, ..Default::default() };
    let loads = Loads::of(&ports);
    let first = graph.ports(Vertex::Host(HostId(0))).next().unwrap();
    let mut counts: BTreeMap<LinkId, u32> = BTreeMap::new();
    for job in 0..4000 {
        let choose = |random| {
            let visit = Visit::new(Hop { link: first, channel: 0 }, HostId(9));
            routing.choose(SwitchId(0), &mut Visit { job: JobId(job), random, ..visit }, &loads).link
        };
        assert_eq!(choose(1), choose(0xFFFF_0000));
        *counts.entry(choose(1)).or_default() += 1;
    }
    assert!(counts.len() == 4 && counts.values().all(|count| *count == 1000), "{counts:?}");
}

#[test]
fn one_job_takes_one_up_link_by_its_number_and_several_by_occupancy() {
    let ranks = || vec![vec![send(1, 1 << 20, 0)], vec![receive(0, 0)]];
    let up_links =
        |routing| used(&finish(simulation(&spec(routing, "longest_wait", &[0, 9]), ranks())), LinkRole::Up).len();
    assert_eq!(up_links("spine_by_job"), 1);
    // A packet counts until its credits have returned, which takes longer than the next packet takes to come.
    assert!(up_links("lightest_lane") > 1);
}

/// Ranks 0 and 2 fill virtual lane 0 of their leaf's up links, rank 1 sends on virtual lane 1: its own lane is empty.
#[test]
fn the_occupancy_of_another_lane_is_not_seen() {
    let ranks = vec![vec![send(3, 1 << 18, 0)], vec![send(3, 4096, 0)], vec![send(3, 1 << 18, 0)], {
        vec![receive(0, 0), receive(1, 0), receive(2, 0)]
    }];
    let run = finish(simulation(&spec("lightest_lane", "longest_wait", &[0, 1, 2, 9]), ranks));
    let graph = run.network().graph();
    let first_up = graph.ports(Vertex::Switch(SwitchId(0))).find(|link| graph.role(*link) == LinkRole::Up).unwrap();
    let of_rank_1 = |it: &&Departure| it.lane == 1 && graph.role(LinkId(it.link)) == LinkRole::Up;
    let links: Vec<_> = run.network().departures().iter().filter(of_rank_1).map(|it| LinkId(it.link)).collect();
    assert_eq!(links, [first_up]);
}

/// Traffic between all leaves on both lanes, so that every choice compares occupied lanes of several ports.
#[test]
fn choices_by_occupancy_of_lanes_do_not_depend_on_shards() {
    let mut spec = spec("lightest_lane", "oldest_first", &all_hosts());
    spec["observe"] = json!({});
    let digest = |shards| {
        let spec: Spec = serde_json::from_value(spec.clone()).unwrap();
        let source = |ops: Vec<Op>| Script::new(ops.into_iter().map(Line::Op).collect()).unwrap().source();
        let program = Program { ranks: shift(5, 6, 40_000).into_iter().map(source).collect() };
        let registry = registry();
        let graph = Arc::new(spec.fabric.build(&registry).unwrap());
        let parallelism = Parallelism { shards, threads: 1 };
        let run = Simulation::parallel(&registry, graph, spec, vec![program], parallelism).unwrap();
        assert_eq!(run.network().shards(), shards);
        let run = finish(run);
        (run.network().totals(), run.now(), lanes_of_all_ports(&run))
    };
    let alone = digest(1);
    assert!([2, 3].map(digest).iter().all(|divided| *divided == alone));
}

/// Packets and queueing delay of both lanes of every port.
fn lanes_of_all_ports(run: &Simulation) -> Vec<(u64, u64)> {
    let links = (0..).map(LinkId).take(run.network().graph().links().len());
    let lanes = links.flat_map(|link| [0, 1].map(|lane| run.network().counters(link, lane)));
    lanes.map(|lane| (lane.packets, lane.waiting.0)).collect()
}

/// With room in every buffer, packets of both lanes leave a port in the order in which they joined its queues.
#[test]
fn the_packet_that_has_waited_longest_leaves_first() {
    let in_order = |arbiter| {
        let run = finish(simulation(&spec("spine_by_job", arbiter, &all_hosts()), shift(5, 8, 20_000)));
        let mut joined: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        let nics = run.network().graph().hosts() as u32;
        for it in run.network().departures().iter().filter(|it| it.link >= nics) {
            joined.entry(it.link).or_default().push((it.time, it.time - it.waited));
        }
        assert!(joined.values().flatten().any(|(time, joined)| joined < time), "packets wait");
        joined.values().all(|packets| packets.windows(2).all(|pair| pair[0].1 <= pair[1].1))
    };
    assert!(in_order("longest_wait"));
    assert!(!in_order("strict_priority"), "another arbiter does not keep the order");
}

/// Two senders on lane 0 and one on lane 1 share the link to a receiver: all three can send at the full rate, so lane 0 fills
/// twice as fast, and the longer queue is served until both are of equal length.
#[test]
fn the_longest_queue_is_served() {
    let ranks = vec![vec![send(3, 1 << 18, 0)], vec![send(3, 1 << 18, 0)], vec![send(3, 1 << 18, 0)], {
        vec![receive(0, 0), receive(1, 0), receive(2, 0)]
    }];
    let run = finish(simulation(&spec("spine_by_job", "longest_queue", &[0, 1, 2, 3]), ranks));
    let graph = run.network().graph();
    let last = graph.ports(Vertex::Host(HostId(3))).next().map(|link| graph.link(link).reverse).unwrap();
    let served: Vec<u8> = run.network().departures().iter().filter(|it| it.link == last.0).map(|it| it.lane).collect();
    // While all three send, 64 packets at the full rate each, the queues differ by less than three packets: of the 64 that
    // leave then lane 0 had 128 - x, lane 1 64 - y, with x + y = 128 and x = y.
    let of_lane_0 = served[..64].iter().filter(|lane| **lane == 0).count();
    assert!(of_lane_0 >= 62, "{of_lane_0}");
    assert_eq!(served.iter().filter(|lane| **lane == 0).count(), 128);
    assert!(run.network().counters(last, 1).packets == 64);
}

/// A packet's time over one switch, from the start on the first link to the end of the last, is two wire times less the overlap
/// of cut-through: T = bytes / rate + 2 latencies + 100 ns for the switch. A broadcast over a chain of n ranks takes n - 1 of them.
#[test]
fn a_chain_takes_one_message_time_for_each_rank() {
    let bytes = 4096_u64;
    let ranks = (0..4).map(|_| vec![broadcast(bytes)]).collect();
    let mut run = simulation(&spec("spine_by_job", "longest_wait", &[0, 1, 2, 3]), ranks);
    run.run_until(FAR, u64::MAX).unwrap();
    let wire = bytes * 8 * 1_000_000_000_000 / RATE;
    let trip = 2 * 200_000 + 100_000 + wire;
    let ends: Vec<_> = run.mpi().records(JobId(0)).map(|(_, record)| record.finished.unwrap().0).collect();
    // The root is rank 3; a rank that has sent what the next one gets is done when its message has been handed over.
    assert_eq!(ends[2], 3 * trip);
    let sent: Vec<_> = run.mpi().records(JobId(0)).map(|(_, record)| record.messages_sent).collect();
    assert_eq!(sent, [1, 1, 0, 1]);
}

/// The wire time of a full packet.
const WIRE: u64 = 4096 * 8 * 1_000_000_000_000 / RATE;

/// Starts of packets at the NIC of host `host`, and the bytes of each.
fn starts(simulation: &Simulation, host: u32) -> Vec<u64> {
    let nic = simulation.network().graph().ports(Vertex::Host(HostId(host))).next().unwrap();
    simulation.network().departures().iter().filter(|it| it.link == nic.0).map(|it| it.time).collect()
}

/// A flow at 40% of the link's rate: packet k starts at k times the wire time divided by 0.4, whether they are packets of one
/// message or messages of one packet.
#[test]
fn a_paced_flow_starts_a_packet_every_wire_time_over_its_share() {
    let one = vec![vec![send(1, 20 * 4096, 0)], vec![receive(0, 0)]];
    let many = vec![(0..20).map(|tag| send(1, 4096, tag)).collect(), (0..20).map(|tag| receive(0, tag)).collect()];
    for ranks in [one, many] {
        let run = finish(simulation(&paced(spec("spine_by_job", "longest_wait", &[0, 9]), 40), ranks));
        assert_eq!(starts(&run, 0), (0..20).map(|k| k * WIRE * 100 / 40).collect::<Vec<_>>());
        // Over four links and three switches, cut through.
        let trip = 4 * 200_000 + 3 * 100_000 + WIRE;
        let end = run.mpi().records(JobId(0)).nth(1).and_then(|(_, record)| record.finished).unwrap();
        assert_eq!(end.0, 19 * WIRE * 100 / 40 + trip);
    }
}

/// Rank 0 sends 20 packets to each of `flows` other ranks, all handed over at once. A flow at half the rate starts a packet
/// every other wire time: with one flow the link is half idle, with two and more it is never idle.
#[test]
fn flows_share_what_the_link_has() {
    for flows in [1_u64, 2, 3, 8] {
        let sends = |to| {
            let (bytes, mode) = (Bytes(20 * 4096), SendMode::Standard);
            Op::P2p(P2p::Isend { to: Rank(to), bytes, tag: 0, comm: COMM_WORLD, mode, request: to })
        };
        let mut ranks =
            vec![(1..=flows as u32).map(sends).chain([Op::P2p(P2p::WaitAll((1..=flows as u32).collect()))]).collect()];
        ranks.extend((0..flows).map(|_| vec![receive(0, 0)]));
        let hosts: Vec<u32> = (0..=flows as u32).map(|rank| rank * 15 / flows as u32).collect();
        let run = finish(simulation(&paced(spec("spine_by_job", "longest_wait", &hosts), 50), ranks));
        let starts = starts(&run, 0);
        assert_eq!(starts.len() as u64, 20 * flows);
        let last = if flows == 1 { 19 * 2 * WIRE } else { (20 * flows - 1) * WIRE };
        assert_eq!(starts.last(), Some(&last), "{flows} flows");
    }
}

/// Nobody waits behind a message that is held back: one packet to another host starts as soon as the link is free.
#[test]
fn a_held_message_blocks_no_other() {
    let isend = |to: u32, packets: u64| {
        let (bytes, mode) = (Bytes(packets * 4096), SendMode::Standard);
        Op::P2p(P2p::Isend { to: Rank(to), bytes, tag: 0, comm: COMM_WORLD, mode, request: to })
    };
    let ranks = vec![
        vec![isend(1, 4), isend(2, 1), Op::P2p(P2p::WaitAll([1, 2].into()))],
        vec![receive(0, 0)],
        vec![receive(0, 0)],
    ];
    let run = finish(simulation(&paced(spec("spine_by_job", "longest_wait", &[0, 5, 9]), 10), ranks));
    assert_eq!(starts(&run, 0), [0, WIRE, 10 * WIRE, 20 * WIRE, 30 * WIRE]);
}

#[test]
fn paced_runs_repeat_in_steps_of_any_size_and_bad_parameters_are_errors() {
    for percent in [7, 50, 100] {
        let spec = paced(spec("lightest_lane", "longest_wait", &all_hosts()), percent);
        let whole = finish(simulation(&spec, shift(5, 8, 20_000)));
        let mut steps = simulation(&spec, shift(5, 8, 20_000));
        while !steps.finished() {
            steps.run_until(FAR, 37).unwrap();
            steps = steps.clone();
        }
        assert_eq!(steps.network().departures(), whole.network().departures());
        assert_eq!(steps.network().totals().bytes_delivered, 143 * 20_000);
    }
    let wrong = paced(spec("spine_by_job", "longest_wait", &[0]), 0);
    let error = Simulation::with(&registry(), serde_json::from_value(wrong).unwrap(), Vec::new()).err().unwrap();
    assert_eq!(error.to_string(), "network.transport.percent = 0: 1 to 100");
}

/// Rank 0 sends 16 full packets to rank 3 and rank 1 sends 16 small ones, all at the same time: both inputs of the leaf switch have
/// packets for one output all the time. With `smallest_first` each small packet crosses before the next full one that is not
/// crossing yet; round robin takes them in turn.
#[test]
fn the_smallest_packet_crosses_first() {
    let ends = |switch: Value| {
        let sends = |bytes| (0..16).map(|tag| send(2, bytes, tag)).collect::<Vec<_>>();
        let ranks = vec![sends(4096), sends(256), {
            let both = (0..16).flat_map(|tag| [receive(1, tag), receive(0, tag)]);
            both.collect()
        }];
        let mut spec = spec("spine_by_job", "weighted_round_robin", &[0, 1, 2]);
        spec["network"]["switch"] = switch;
        let run = finish(simulation(&spec, ranks));
        let graph = run.network().graph();
        let last = graph.ports(Vertex::Host(HostId(2))).next().map(|link| graph.link(link).reverse).unwrap();
        let on_last = run.network().departures().into_iter().filter(|it| it.link == last.0);
        let small: Vec<u64> = on_last.filter(|it| it.bytes < 1000).map(|it| it.time).collect();
        assert_eq!(small.len(), 16);
        small[15]
    };
    let allocator = |name| json!({ "name": "input_queued", "params": { "speedup": 1.0, "allocator": name } });
    let lean = json!({ "name": "lean", "params": { "output_packets": 2 } });
    let [round_robin, smallest_first] = ["round_robin", "smallest_first"].map(|name| ends(allocator(name)));
    assert!(2 * smallest_first < round_robin, "{smallest_first} {round_robin}");
    assert!(2 * ends(lean) < round_robin);
}

#[test]
fn wrong_switches_are_errors_that_know_the_plug_ins() {
    let error = |switch: Value| {
        let mut spec = spec("spine_by_job", "longest_wait", &[0]);
        spec["network"]["switch"] = switch;
        let spec: Spec = serde_json::from_value(spec).unwrap();
        Simulation::with(&registry(), spec, Vec::new()).err().unwrap().to_string()
    };
    assert!(error(json!({ "name": "laen" })).ends_with("did you mean \"lean\"?"));
    assert!(error(json!({ "name": "lean" })).starts_with("network.switch: missing field `output_packets`"));
    let none = json!({ "name": "lean", "params": { "output_packets": 0 } });
    assert!(error(none).starts_with("network.switch.output_buffer = 0: at least one full packet"));
    let unknown = json!({ "name": "input_queued", "params": { "allocator": "smalest_first" } });
    assert!(error(unknown).ends_with("did you mean \"smallest_first\"?"));
}
