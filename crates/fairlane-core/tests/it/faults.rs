//! Faults: what a degraded cable does to a stream, by a closed form; overlapping, added under way, on both directions; and
//! what is refused.

use std::sync::Arc;

use fairlane_core::fault::FaultSpec;
use fairlane_core::ids::{HostId, JobId, LinkId, Rank, TrafficId};
use fairlane_core::mpi::RailPolicy;
use fairlane_core::network;
use fairlane_core::observe;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{COMM_WORLD, Op, P2p, Program, SendMode};
use fairlane_core::registry::Registry;
use fairlane_core::simulation::{FabricSpec, JobSpec, Named, Parallelism, Simulation, Spec};
use fairlane_core::topology::{RailsSpec, Vertex, Wiring};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use serde_json::json;

const FAR: Instant = Instant(u64::MAX >> 1);
/// Of 1000 bytes at 8 Gbit/s, ps.
const PACKET: u64 = 1_000_000;
const LATENCY: u64 = 100_000;
const PACKETS: u64 = 200;
/// The link that leaves host 0.
const FIRST: &str = "host0 port 1 to switch0";

fn degraded(link: &str, lanes: u8, at: u64, until: Option<u64>) -> FaultSpec {
    let params = json!({ "link": link, "lanes": lanes });
    FaultSpec {
        fault: Named { name: "degraded_link".into(), params },
        at: Picoseconds(at),
        until: until.map(Picoseconds),
    }
}

fn spec(faults: Vec<FaultSpec>) -> Spec {
    let job = JobSpec { name: "job".into(), hosts: vec![HostId(0), HostId(1)], ..Default::default() };
    let params = json!({
        "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 8_000_000_000_u64, "latency": LATENCY, "host_latency": LATENCY,
    });
    Spec {
        fabric: FabricSpec {
            topology: "fat_tree".into(),
            params,
            routing: "d_mod_k".into(),
            routing_params: json!({}),
            rails: None,
        },
        network: network::Parameters { mtu: Bytes(1000), header: Bytes(0), ..Default::default() },
        qos: Default::default(),
        mpi: fairlane_core::mpi::Parameters { eager_threshold: Bytes(1 << 30), ..Default::default() },
        jobs: vec![job],
        faults,
        observe: observe::Parameters { departures: true, ..Default::default() },
    }
}

/// One message from rank 0 to rank 1.
fn message(bytes: u64) -> Program {
    let (bytes, comm) = (Bytes(bytes), COMM_WORLD);
    let send = Op::P2p(P2p::Send { to: Rank(1), bytes, tag: 0, comm, mode: SendMode::Standard });
    let receive = Op::P2p(P2p::Recv { from: None, tag: None, comm });
    Program { ranks: [send, receive].map(|op| Script::new(vec![Line::Op(op)]).unwrap().source()).into() }
}

/// One message of [`PACKETS`] packets from host 0 to host 1.
fn stream(faults: Vec<FaultSpec>) -> Simulation {
    Simulation::new(spec(faults), vec![message(1000 * PACKETS)]).unwrap()
}

/// The link that leaves host 0.
fn first(simulation: &Simulation) -> LinkId {
    simulation.network().graph().ports(Vertex::Host(HostId(0))).next().unwrap()
}

/// When packets start on the link that leaves host 0.
fn starts(simulation: &Simulation) -> Vec<u64> {
    let link = first(simulation);
    let departures = simulation.network().departures();
    departures.iter().filter(|departure| departure.link == link.0).map(|departure| departure.time).collect()
}

/// A stream keeps the link busy, so a packet starts when the one before has been sent, which takes `4 / lanes` times as long if
/// that started in the fault's time. Faults begin and end at the end of a window, which is at most one latency.
#[test]
fn packets_take_as_long_as_the_lanes_that_are_left_need() {
    for (lanes, factor) in [(1, 4), (2, 2), (4, 1)] {
        let (at, until) = (50 * PACKET + 7, 120 * PACKET + 11);
        let mut simulation = stream(vec![degraded(FIRST, lanes, at, Some(until))]);
        assert!(simulation.run_until(FAR, u64::MAX).unwrap());
        simulation.check_laws().unwrap();
        let starts = starts(&simulation);
        assert_eq!(starts.len() as u64, PACKETS);
        for pair in starts.windows(2) {
            let took = pair[1] - pair[0];
            let clearly = |instant: u64| pair[0] < instant || pair[0] > instant + LATENCY;
            if clearly(at) && clearly(until) {
                let expected = if pair[0] > at && pair[0] < until { factor * PACKET } else { PACKET };
                assert_eq!(took, expected, "{lanes} lanes, start {}", pair[0]);
            } else {
                assert!(took == PACKET || took == factor * PACKET);
            }
        }
    }
}

/// The slower of two faults counts while both last, and each ends by itself.
#[test]
fn faults_overlap() {
    let back = "switch0 port 1";
    let faults =
        vec![degraded(FIRST, 2, 20 * PACKET, Some(80 * PACKET)), degraded(back, 1, 40 * PACKET, Some(60 * PACKET))];
    let mut simulation = stream(faults);
    simulation.run_until(FAR, u64::MAX).unwrap();
    let starts = starts(&simulation);
    let factor = |from: u64, to: u64| {
        let inside = starts.windows(2).filter(|pair| pair[0] > from * PACKET + LATENCY && pair[0] < to * PACKET);
        inside.map(|pair| (pair[1] - pair[0]) / PACKET).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        [(0, 20), (20, 40), (40, 60), (60, 80), (80, 500)].map(|(from, to)| factor(from, to)),
        [[1].into(), [2].into(), [4].into(), [2].into(), [1].into(),]
    );
}

/// One that is added under way is the same as one of the specification; one whose time has passed begins at once.
#[test]
fn a_fault_can_be_added_to_a_run() {
    let fault = degraded(FIRST, 1, 50 * PACKET, None);
    let mut given = stream(vec![fault.clone()]);
    given.run_until(FAR, u64::MAX).unwrap();
    let mut added = stream(Vec::new());
    added.run_until(Instant(30 * PACKET), u64::MAX).unwrap();
    let mut fork = added.clone();
    added.add_fault(&fault).unwrap();
    added.run_until(FAR, u64::MAX).unwrap();
    assert_eq!(given.digest(), added.digest());
    assert_eq!(starts(&given), starts(&added));
    fork.add_fault(&degraded(FIRST, 1, 0, None)).unwrap();
    fork.run_until(FAR, u64::MAX).unwrap();
    let late = starts(&fork);
    assert!(
        late.windows(2).all(|pair| pair[1] - pair[0] == if pair[0] > 30 * PACKET + LATENCY { 4 } else { 1 } * PACKET
            || pair[0].abs_diff(30 * PACKET) <= LATENCY)
    );
}

#[test]
fn wrong_faults_are_refused_with_their_place() {
    let unknown = FaultSpec { fault: Named::new("degraded_lnk"), at: Picoseconds(0), until: None };
    let wrong = [
        (
            degraded("host9 port 1", 1, 0, None),
            "fault[1].link = \"host9 port 1\": no host and no switch is called \"host9\"; did you",
        ),
        (degraded("switch0 port 9", 1, 0, None), "ports of switch0 with a cable: 1, 2, 3, 4"),
        (degraded("host0 port 1 to host1", 1, 0, None), "that port leads to switch0"),
        (degraded("host0", 1, 0, None), "a link by its sending end, as \"leaf4 port 7"),
        (degraded(FIRST, 5, 0, None), "fault[1].lanes = 5: 1 to 4, the lanes of the cable"),
        (degraded(FIRST, 0, 0, None), "fault[1].lanes = 0: 1 to 4"),
        (degraded(FIRST, 1, 10, Some(10)), "fault[1].until = 10: after fault[1].at (10 ps)"),
        (unknown, "did you mean \"degraded_link\"?"),
    ];
    for (fault, words) in wrong {
        let spec = spec(vec![degraded(FIRST, 1, 0, None), fault]);
        let source = || Script::new(Vec::new()).unwrap().source();
        let error = Simulation::new(spec, vec![Program { ranks: vec![source(), source()] }]).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

fn fault(name: &str, params: serde_json::Value, at: u64, until: Option<u64>) -> FaultSpec {
    FaultSpec { fault: Named { name: name.into(), params }, at: Picoseconds(at), until: until.map(Picoseconds) }
}

const TIMEOUT: u64 = 5 * PACKET;
const SWEEP: u64 = 20 * PACKET;
const RETRIES: u64 = 7;

/// The same stream between two leaves of a tree with two spines; a second job sends the other way round between two other hosts.
fn across(faults: Vec<FaultSpec>) -> Simulation {
    Simulation::new(across_spec(faults), across_programs()).unwrap()
}

fn across_spec(faults: Vec<FaultSpec>) -> Spec {
    let mut spec = spec(faults);
    spec.fabric.params = json!({
        "hosts": 4, "levels": 2, "radix": 4, "bandwidth": 8_000_000_000_u64, "latency": LATENCY, "host_latency": LATENCY,
    });
    spec.network.retransmission_timeout = Picoseconds(TIMEOUT);
    spec.network.sweep_time = Picoseconds(SWEEP);
    spec.jobs[0].hosts = vec![HostId(0), HostId(2)];
    let other = JobSpec { name: "other".into(), hosts: vec![HostId(3), HostId(1)], ..spec.jobs[0].clone() };
    spec.jobs.push(other);
    spec
}

fn across_programs() -> Vec<Program> {
    vec![message(1000 * PACKETS), message(1000 * PACKETS)]
}

/// The links that its packets start on.
fn links_of_stream(simulation: &Simulation, from: u64, until: u64) -> std::collections::BTreeSet<u32> {
    let departures = simulation.network().departures();
    let of_stream = departures.iter().filter(|departure| departure.job == 0 && (from..until).contains(&departure.time));
    of_stream.map(|departure| departure.link).collect()
}

/// A cable of the stream's path goes down. Packets are lost until routes avoid it, and all of them arrive; then it comes back.
#[test]
fn a_link_goes_down_and_comes_back() {
    let whole = across(Vec::new());
    let graph = whole.network().graph().clone();
    let mut whole = whole;
    whole.run_until(FAR, u64::MAX).unwrap();
    let path = links_of_stream(&whole, 0, u64::MAX);
    let between_switches = |link: &&u32| {
        let ends = graph.link(LinkId(**link));
        matches!((ends.from, ends.to), (Vertex::Switch(_), Vertex::Switch(_)))
    };
    let up = path.iter().find(between_switches).unwrap();
    let (at, until) = (50 * PACKET, 150 * PACKET);
    let down = fault("link_down", json!({ "link": graph.link_name(LinkId(*up)) }), at, Some(until));
    let mut simulation = across(vec![down]);
    assert!(simulation.run_until(FAR, u64::MAX).unwrap());
    assert!(simulation.finished());
    simulation.check_laws().unwrap();
    let totals = simulation.network().totals();
    // Lost: what starts from the failure to the sweep, and what was under way: the packets that a link's time and latency hold.
    assert!((SWEEP / PACKET..=SWEEP / PACKET + 3).contains(&totals.packets_lost), "{}", totals.packets_lost);
    assert_eq!((totals.packets_lost, totals.packets_given_up), (totals.packets_retransmitted, 0));
    assert_eq!(totals.bytes_injected, totals.bytes_delivered);
    let sweeps = &simulation.fault_log().sweeps;
    let brief: Vec<_> =
        sweeps.iter().map(|sweep| (sweep.routing.as_deref(), sweep.down, sweep.cut_off.len())).collect();
    assert_eq!(brief, [(Some("d_mod_k"), 2, 0), (Some("d_mod_k"), 0, 0)]);
    assert!(
        sweeps[0].at.0.abs_diff(at + SWEEP) <= 2 * LATENCY && sweeps[1].at.0.abs_diff(until + SWEEP) <= 2 * LATENCY
    );
    let at_rest = 5 * PACKET;
    assert!(!links_of_stream(&simulation, at + LATENCY, until).contains(up), "nothing starts on a link that is down");
    assert!(
        links_of_stream(&simulation, until + SWEEP + at_rest, u64::MAX).contains(up),
        "routes are those from before"
    );
}

/// A message that is lost whole arrives one timeout after its loss, or more often, if it is lost again.
#[test]
fn lost_packets_are_sent_again_after_a_timeout() {
    for outage in [TIMEOUT / 2, TIMEOUT + TIMEOUT / 2, 3 * TIMEOUT + TIMEOUT / 2] {
        let alone = |faults| {
            let mut spec = spec(faults);
            spec.network.retransmission_timeout = Picoseconds(TIMEOUT);
            let mut simulation = Simulation::new(spec, vec![message(1000)]).unwrap();
            simulation.run_until(FAR, u64::MAX).unwrap();
            assert!(simulation.finished());
            simulation.check_laws().unwrap();
            simulation
        };
        let end = |simulation: &Simulation| simulation.mpi().records(JobId(0)).nth(1).unwrap().1.finished.unwrap().0;
        let whole = alone(Vec::new());
        // The switch's link to host 1: the packet joins its queue one latency and one switch later than it starts.
        let down = fault("link_down", json!({ "link": "switch0 port 2" }), 0, Some(outage));
        let broken = alone(vec![down]);
        let joins = LATENCY + 100_000;
        let times = (outage - joins).div_ceil(TIMEOUT + joins);
        assert_eq!(end(&broken), end(&whole) + times * (TIMEOUT + joins), "outage of {outage} ps");
        assert_eq!(broken.network().totals().packets_lost, times);
    }
}

/// A job with a host whose adapter is dead fails when a packet has been lost once more often than it is retransmitted; it does not
/// hang, and the other job goes on as if nothing had happened.
#[test]
fn a_job_whose_host_is_gone_fails() {
    let mut whole = across(Vec::new());
    whole.run_until(FAR, u64::MAX).unwrap();
    let at = 50 * PACKET;
    let mut simulation = across(vec![fault("adapter_down", json!({ "host": "host2" }), at, None)]);
    assert!(simulation.run_until(FAR, u64::MAX).unwrap());
    assert!(simulation.finished(), "it ends");
    simulation.check_laws().unwrap();
    let failures = &simulation.fault_log().failures;
    assert_eq!(failures.len(), 1);
    let failed = failures[0];
    assert_eq!((failed.job, failed.from, failed.to), (JobId(0), HostId(0), HostId(2)));
    // The first packet is lost at the failure or a packet later; each retransmission takes a few packets' time.
    let least = at + (RETRIES + 1) * TIMEOUT;
    assert!((least..least + 60 * PACKET).contains(&failed.at.0), "{} ps, not {least} ps", failed.at.0);
    let ends = |simulation: &Simulation| -> Vec<_> {
        simulation.mpi().records(JobId(1)).map(|(_, record)| record.finished).collect()
    };
    assert_eq!(ends(&whole), ends(&simulation));
    assert_eq!(simulation.fault_log().sweeps.last().unwrap().cut_off, [HostId(2)]);
    let unfinished = simulation.mpi().records(JobId(0)).any(|(_, record)| record.finished.is_none());
    assert!(unfinished);
    let jobs_with_latencies = |simulation: &Simulation| -> Vec<_> {
        simulation.message_latencies().histograms().map(|(traffic, ..)| traffic).collect()
    };
    assert_eq!(jobs_with_latencies(&whole), [TrafficId(0), TrafficId(1)]);
    assert_eq!(jobs_with_latencies(&simulation), [TrafficId(1)], "what is given up has no latency");
}

/// With errors a packet takes `1 + f` times its time on the wire and `f` times two latencies, where `f` is geometric: the mean of a
/// stream of packets lies within five standard errors of `p / (1 - p)` failures each.
#[test]
fn repetitions_cost_what_their_probability_says() {
    let rate = 2e-5_f64;
    let mut simulation = stream(vec![fault("bit_errors", json!({ "link": FIRST, "rate": rate }), 0, None)]);
    simulation.run_until(FAR, u64::MAX).unwrap();
    simulation.check_laws().unwrap();
    let starts = starts(&simulation);
    let repetition = (PACKET + 2 * LATENCY) as f64;
    let failures: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0] - PACKET) as f64 / repetition).collect();
    assert!(failures.iter().all(|count| count.fract() == 0.0), "{failures:?}");
    let p: f64 = 1.0 - (1.0 - rate).powi(8000);
    let expected = p / (1.0 - p);
    let mean = failures.iter().sum::<f64>() / failures.len() as f64;
    let error = (p / (1.0 - p).powi(2) / failures.len() as f64).sqrt();
    assert!((mean - expected).abs() < 5.0 * error, "{mean} failures a packet, not {expected} +- {error}");
}

#[test]
fn a_slow_host_computes_as_many_times_as_long() {
    const SPAN: u64 = 10_000_000;
    let run = |faults| {
        let source = || Script::new(vec![Line::Op(Op::Compute(Picoseconds(SPAN))); 4]).unwrap().source();
        let mut simulation = Simulation::new(spec(faults), vec![Program { ranks: vec![source(), source()] }]).unwrap();
        simulation.run_until(FAR, u64::MAX).unwrap();
        let ends = simulation.mpi().records(JobId(0)).map(|(_, record)| record.finished.unwrap().0);
        ends.collect::<Vec<_>>()
    };
    // The second computation begins before the fault, the fourth after it.
    let slow = fault("slow_host", json!({ "host": "host1", "factor": 2.5 }), SPAN + 5, Some(3 * SPAN));
    assert_eq!(run(vec![slow]), [4 * SPAN, 2 * SPAN + 5 * SPAN / 2 + SPAN]);
}

/// Where switches store packets before they forward them, a short packet that started on a slower link is forwarded sooner than a
/// long one before it that is measured by the slower link, too.
#[test]
fn packets_may_overtake_where_bandwidths_change() {
    let mut spec = spec(vec![degraded(FIRST, 1, 2 * PACKET + 1, None)]);
    spec.network.switching = network::Switching::StoreAndForward;
    spec.network.switch = Named::new("input_queued");
    let mut simulation = Simulation::new(spec, vec![message(3100)]).unwrap();
    simulation.run_until(FAR, u64::MAX).unwrap();
    assert!(simulation.finished());
    simulation.check_laws().unwrap();
}

/// One cable of shared switches goes down, and one of two adapters dies: messages over the other adapter take its own path.
#[test]
fn shared_rails_keep_their_adapters() {
    let run = |faults: Vec<FaultSpec>, policy: RailPolicy| {
        let mut spec = spec(faults);
        spec.fabric.params = json!({
            "hosts": 8, "levels": 2, "radix": 8, "bandwidth": 8_000_000_000_u64, "latency": LATENCY, "host_latency": LATENCY,
        });
        spec.fabric.rails = Some(RailsSpec { count: 2, wiring: Wiring::Shared, adapters: Vec::new() });
        spec.network.retransmission_timeout = Picoseconds(TIMEOUT);
        spec.network.sweep_time = Picoseconds(SWEEP);
        spec.jobs[0].hosts = vec![HostId(0), HostId(3)];
        spec.jobs[0].rails = Some(policy);
        let mut simulation = Simulation::new(spec, vec![message(1000 * PACKETS)]).unwrap();
        simulation.run_until(FAR, u64::MAX).unwrap();
        assert!(simulation.finished());
        simulation.check_laws().unwrap();
        simulation
    };
    let dead = |rail: u8| fault("adapter_down", json!({ "host": "host3", "rail": rail }), 50 * PACKET, None);
    let only = |only: u8| RailPolicy::Only { only, to: None };
    let by_source = |rail: u8| RailPolicy::BySource { ranks: vec![rail; 2] };
    for rail in [0, 1] {
        let other = run(vec![dead(1 - rail)], only(rail));
        assert!(other.fault_log().failures.is_empty(), "rail {rail} works");
        assert_eq!(other.network().totals().packets_lost, 0);
        assert_eq!(other.fault_log().sweeps[0].cut_off, [], "the host has an adapter left");
        assert_eq!(run(vec![dead(rail)], only(rail)).fault_log().failures.len(), 1, "confined to a dead adapter");
        // The packets that are lost go over the other adapter after the sweep.
        let moved = run(vec![dead(rail)], by_source(rail));
        assert!(moved.fault_log().failures.is_empty());
        assert!(moved.network().totals().packets_lost > 0);
        assert_eq!(moved.network().totals().packets_given_up, 0);
        let both = run(vec![dead(0), dead(1)], by_source(rail));
        assert_eq!(both.fault_log().failures.len(), 1);
        assert!(both.fault_log().sweeps.iter().any(|sweep| sweep.cut_off == [HostId(3)]));
    }
}

/// With every transport, and in any number of shards, a job whose host is gone fails at the same time, and nothing is left of it.
#[test]
fn jobs_fail_alike_with_every_transport_and_in_shards() {
    let uec = |control: &str| json!({ "kmin": 8000, "kmax": 32000, "control": control });
    for (transport, params, lossy) in [
        ("credits_only", json!({}), false),
        ("swift", json!({}), false),
        ("uec", uec("sender"), false),
        ("uec", uec("sender"), true),
        ("uec", uec("receiver"), true),
        ("uec", uec("both"), true),
        ("swift", json!({}), true),
        ("hpcc", json!({}), false),
        ("hpcc", json!({}), true),
        ("endpoint_cc", json!({}), false),
    ] {
        let runs = [(1, 1), (2, 1), (3, 2)].map(|(shards, threads)| {
            let mut spec = across_spec(vec![fault("adapter_down", json!({ "host": "host2" }), 50 * PACKET, None)]);
            spec.network.transport = Named { name: transport.into(), params: params.clone() };
            spec.observe.departures = false;
            spec.qos.sl2vl = vec![0, 1];
            (spec.qos.lossy, spec.qos.trim_vl) = if lossy { (vec![0], Some(1)) } else { (Vec::new(), None) };
            let registry = Registry::default();
            let graph = Arc::new(spec.fabric.build(&registry).unwrap());
            let mut simulation =
                Simulation::parallel(&registry, graph, spec, across_programs(), Parallelism { shards, threads })
                    .unwrap();
            assert!(simulation.run_until(FAR, u64::MAX).unwrap());
            assert!(simulation.finished(), "{transport}, {shards} shards");
            simulation.check_laws().unwrap();
            let failures = simulation.fault_log().failures.clone();
            assert_eq!(failures.len(), 1, "{transport}");
            (failures, simulation.network().totals(), simulation.digest())
        });
        assert!(
            runs.iter().all(|run| *run == runs[0]),
            "{transport}, lossy {lossy}: {:?}",
            runs.each_ref().map(|run| run.0.clone())
        );
    }
}

#[test]
fn rates_at_which_no_packet_would_pass_are_refused() {
    let mut spec = spec(vec![fault("bit_errors", json!({ "link": FIRST, "rate": 1e-4 }), 0, None)]);
    spec.network.mtu = Bytes(64 << 10);
    spec.network.buffer = Bytes(1 << 20);
    let source = || Script::new(Vec::new()).unwrap().source();
    let error = Simulation::new(spec, vec![Program { ranks: vec![source(), source()] }]).err().unwrap().to_string();
    assert!(error.contains("fault[0].rate = 0.0001: so low that 1% of full packets (65536 bytes"), "{error}");
}
