//! The network in several shards, on one thread or several: results do not depend on it. On the network alone, with hosts
//! that send at random times, answer some messages, and now and then put off looking at what has come.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_core::error::RunError;
use fairlane_core::ids::{HostId, JobId, LinkId, Rank, TrafficId, VirtualLane};
use fairlane_core::network::{
    Delivery, Endpoint, Injection, LaneCounters, Network, Parameters, Partition, Pause, Plan, Prefetch,
};
use fairlane_core::network::{PortBuffer, Sharing, Switching, Totals, transport};
use fairlane_core::qos::levels::TrafficKind;
use fairlane_core::registry::Registry;
use fairlane_core::simulation::required_virtual_lanes;
use fairlane_core::table::Named;
use fairlane_core::topology::{Graph, RailsSpec};
use fairlane_core::units::{Bytes, Instant, Picoseconds};
use fairlane_core::{observe, qos::arbiter, rng, routing, topology};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const JOBS: u16 = 3;
const END: Instant = Instant(40_000_000);

/// Hosts send by themselves before this instant, ps.
const LAST_SEND: u64 = END.0 * 3 / 4;

/// A message of this size makes its destination send one back.
const ASKS: u64 = 1;

/// A delivery that a host has seen: when, whose message, and whether it was its first or last packet.
type Seen = (u32, Delivery);

/// Hosts of which each shard's endpoint runs its own.
#[derive(Clone)]
struct Traffic {
    hosts: u32,
    rails: u8,
    /// By host: its random numbers, and when it sends next.
    own: Vec<(ChaCha8Rng, u64)>,
    seen: Vec<Seen>,
    /// The host that fails, and the instant from which on it does.
    fails: Option<(u32, u64)>,
    /// Messages of odd hosts are counted apart from those of even ones.
    classes: bool,
}

impl Traffic {
    fn new(hosts: u32, rails: u8) -> Self {
        let own =
            (0..hosts).map(|host| (rng::stream(7, "traffic", u64::from(host)), u64::from(host) * 1_000)).collect();
        Self { hosts, rails, own, seen: Vec::new(), fails: None, classes: false }
    }

    fn message(&mut self, from: u32, at: u64, to: u32, bytes: u64) -> Injection {
        let classes = self.classes;
        let random = &mut self.own[from as usize].0;
        let mut injection = Injection {
            at: Instant(at),
            from: HostId(from),
            to: HostId(to),
            bytes: Bytes(bytes),
            rails: [random.random_range(0..self.rails); 2],
            vl: VirtualLane(random.random_range(0..2)),
            job: JobId(random.random_range(0..JOBS)),
            traffic: TrafficId(0),
            kind: TrafficKind::ALL[random.random_range(0..TrafficKind::ALL.len())],
            sender: Rank(from),
            receiver: Rank(to),
            token: from,
            stage: if bytes == ASKS { 1 } else { 0 },
            urgent: random.random_bool(0.1),
        };
        let odd = u16::from(from % 2 == 1);
        injection.traffic = TrafficId(if classes { 2 * injection.job.0 + odd } else { injection.job.0 });
        injection
    }
}

impl Endpoint for Traffic {
    type Mail = ();

    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, Box<RunError>> {
        if self.fails.is_some_and(|(failing, at)| failing == host.0 && until.0 > at) {
            return Err(Box::new(RunError::Law { at: until, law: format!("of host {host}") }));
        }
        for delivery in deliveries {
            self.seen.push((host.0, *delivery));
            if delivery.stage == 1 && delivery.last && delivery.token != host.0 {
                injections.push(self.message(host.0, until.0 - 1, delivery.token, 300));
            }
        }
        let due = self.own[host.index()].1;
        if due < until.0.min(LAST_SEND) {
            let random = &mut self.own[host.index()].0;
            let to = (host.0 + random.random_range(1..self.hosts)) % self.hosts;
            let bytes = [0, ASKS, 4096, random.random_range(0..30_000)][random.random_range(0..4)];
            let gap = random.random_range(1..4_000_000);
            self.own[host.index()].1 = due.max(until.0 - 1) + gap;
            let at = due.max(until.0.saturating_sub(1));
            injections.push(self.message(host.0, at, to, bytes));
        }
        let (random, due) = &mut self.own[host.index()];
        let at = (*due < LAST_SEND).then_some(Instant((*due).max(until.0)));
        Ok(Pause { at, deferrable: at.is_some() && random.random_bool(0.3) })
    }

    fn post(&mut self, _shard: usize, _mail: &mut ()) {}

    fn accept(&mut self, _shard: usize, _mail: &mut ()) {}

    fn end_window(&mut self, _until: Instant) -> bool {
        false
    }
}

impl Prefetch for Traffic {}

/// Everything that can be read from a network after a run.
#[derive(Debug, PartialEq)]
struct Results {
    now: Instant,
    totals: Totals,
    links: Vec<(Vec<LaneCounters>, (Picoseconds, Picoseconds))>,
    by_port: Vec<(u32, u16, u16, u64)>,
    matrix: Vec<u64>,
    latencies: observe::Latencies,
    seen: Vec<Seen>,
    unseen: Vec<Delivery>,
    class_bytes: Vec<u64>,
}

fn results(network: &Network, endpoints: &[Traffic]) -> Results {
    let lanes = || 0..u8::try_from(network.lanes()).unwrap();
    let links = (0..).take(network.graph().links().len()).map(LinkId);
    let interference = network.interference();
    let cells = (0..interference.jobs()).flat_map(|a| (0..interference.jobs()).map(move |b| (a, b)));
    let mut seen: Vec<Seen> = endpoints.iter().flat_map(|endpoint| endpoint.seen.clone()).collect();
    seen.sort_by_key(|(host, _)| *host);
    let mut unseen: Vec<Delivery> = (0..network.shards()).flat_map(|shard| network.unseen_deliveries(shard)).collect();
    unseen.sort_by_key(|delivery| (delivery.at, delivery.token));
    Results {
        now: network.now(),
        totals: network.totals(),
        links: links
            .map(|link| (lanes().map(|lane| network.counters(link, lane)).collect(), network.port_times(link)))
            .collect(),
        by_port: interference.by_port(),
        matrix: cells.map(|(delayed, delaying)| interference.cell(delayed, delaying)).collect(),
        latencies: network.latencies(),
        seen,
        unseen,
        class_bytes: network.class_bytes(),
    }
}

/// The system that a case runs on.
struct Case {
    graph: Arc<Graph>,
    routing: &'static str,
    switching: Switching,
    switch: Named,
    port_buffer: Option<PortBuffer>,
    transport: Named,
    observe: observe::Parameters,
    fails: Option<(u32, u64)>,
    classes: bool,
}

impl Case {
    fn new(topology: &str, params: &Value, routing: &'static str) -> Self {
        Self {
            graph: Arc::new(topology::build(topology, params).unwrap()),
            routing,
            switching: Switching::CutThrough,
            switch: Parameters::default().switch,
            port_buffer: None,
            transport: Named::new(transport::DEFAULT),
            observe: observe::Parameters { interference_by_port: true, onward_waiting: true, ..Default::default() },
            fails: None,
            classes: false,
        }
    }

    fn built_transport(&self, name: &str, params: &Value) -> Arc<dyn transport::Transport> {
        Registry::default().transports.build(name, params, ()).unwrap().into()
    }

    fn plan(&self) -> Plan {
        let parameters = Parameters {
            buffer: Bytes(9_000),
            switching: self.switching,
            switch: self.switch.clone(),
            port_buffer: self.port_buffer.clone(),
            ..Parameters::default()
        };
        Plan {
            routing: routing::build(self.routing, &json!({}), &self.graph).unwrap().into(),
            arbiter: arbiter::build("weighted_round_robin", &json!({}), 2).unwrap(),
            graph: Arc::clone(&self.graph),
            transport: self.built_transport(transport::DEFAULT, &Value::Null),
            // One job has the usual transport, the others the case's.
            job_transports: (1..JOBS)
                .map(|job| (JobId(job), self.built_transport(&self.transport.name, &self.transport.params)))
                .collect(),
            virtual_lanes: 2,
            lossy: Vec::new(),
            trim_vl: None,
            jobs: usize::from(JOBS),
            traffic: if self.classes { (0..2 * JOBS).map(|counted| JobId(counted / 2)).collect() } else { Vec::new() },
            architecture: Registry::default().architecture(&parameters).unwrap(),
            parameters,
            observe: self.observe,
        }
    }

    /// Runs in stretches, with a change of the arbiter and a fork between them. Returns the results after each stretch.
    fn run(&self, shards: usize, threads: usize) -> Vec<(Result<bool, RunError>, Results)> {
        let plan = self.plan();
        let hosts = u32::try_from(self.graph.hosts()).unwrap();
        let rails = u8::try_from(self.graph.rails()).unwrap();
        let mut network = Network::new(&plan, Partition::new(&self.graph, shards));
        network.set_threads(threads);
        let mut endpoints =
            vec![Traffic { fails: self.fails, classes: self.classes, ..Traffic::new(hosts, rails) }; shards];
        (0..hosts).for_each(|host| network.wake(HostId(host), Instant::ZERO));
        let mut found = Vec::new();
        let hops = [300, 1_500, u64::MAX];
        let ends = [END.0 / 2, END.0 / 2, END.0 * 1000];
        for (stretch, (hops, end)) in hops.into_iter().zip(ends).enumerate() {
            let before = (network.clone(), endpoints.clone());
            let result = network.run_until(Instant(end), hops, &mut endpoints);
            let now = results(&network, &endpoints);
            let (mut fork, mut others) = before;
            assert_eq!(fork.run_until(Instant(end), hops, &mut others), result);
            assert_eq!(results(&fork, &others), now, "a fork");
            if result.is_ok() {
                network.check_laws().unwrap();
            }
            found.push((result.clone(), now));
            if result.is_err() {
                break;
            }
            match stretch {
                0 => network.set_arbiter(&*arbiter::build("strict_priority", &json!({}), 2).unwrap()),
                _ => network.wake_all(),
            }
        }
        found
    }

    fn check(&self, name: &str) {
        let alone = self.run(1, 1);
        let hops = alone.last().unwrap().1.totals.packet_hops;
        assert!(hops > 1_500 || self.fails.is_some(), "{name}: only {hops} packet-hops");
        let most = self.plan().most_shards();
        for (shards, threads) in [(2, 2), (3, 1), (7, 3)] {
            if shards <= most {
                assert!(self.run(shards, threads) == alone, "{name} differs in {shards} shards on {threads} threads");
            }
        }
    }
}

/// Fabrics of all kinds with all routings that they take.
fn cases() -> Vec<(String, Case)> {
    let fabrics: Vec<(&str, Value, Vec<&'static str>)> = vec![
        ("fat_tree", json!({ "hosts": 32, "levels": 3, "radix": 8 }), vec!["d_mod_k", "up_down", "adaptive"]),
        (
            "dragonfly",
            json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 }),
            vec!["minimal", "valiant", "ugal_l", "ugal_g", "progressive"],
        ),
        ("torus", json!({ "sides": [4, 3, 2] }), vec!["dimension_order", "valiant", "ugal_l"]),
        ("hyperx", json!({ "sides": [4, 3], "hosts_per_switch": 2 }), vec!["dimension_order", "ugal_l"]),
    ];
    let cases = fabrics.into_iter().flat_map(|(topology, params, routings)| {
        routings
            .into_iter()
            .map(move |routing| (format!("{topology} with {routing}"), Case::new(topology, &params, routing)))
    });
    let every_other = cases.enumerate().map(|(place, (name, case))| (name, Case { classes: place % 2 == 1, ..case }));
    every_other.collect()
}

#[test]
fn results_do_not_depend_on_shards_and_threads() {
    cases().into_iter().for_each(|(name, case)| case.check(&name));
}

#[test]
fn results_with_shared_memory_do_not_depend_on_shards_and_threads() {
    for (name, mut case) in cases().into_iter().step_by(3) {
        let routing = routing::build(case.routing, &json!({}), &case.graph).unwrap();
        let lanes = required_virtual_lanes(&*routing, 2).len() as u64;
        case.port_buffer =
            Some(PortBuffer { size: Bytes(4_122 * (lanes + 2) + 99), sharing: Sharing::Dynamic, ..Default::default() });
        case.check(&format!("shared memory, {name}"));
    }
}

#[test]
fn results_with_congestion_control_do_not_depend_on_shards_and_threads() {
    let transports = [
        ("endpoint_cc", json!({ "threshold": 4_200, "window": 8_192 })),
        ("ib_cc", json!({ "marking_rate": 1, "ccti_timer": 2, "notice_vl": 1 })),
        ("swift", json!({ "base_target_delay": 3_000_000, "max_cwnd": 4.0 })),
        ("dcqcn", json!({ "kmin": 4_200, "kmax": 9_000, "pmax": 0.5, "cnp_interval": 2_000_000 })),
        ("hpcc", json!({ "flows": 10 })),
    ];
    for (place, (name, mut case)) in cases().into_iter().enumerate() {
        let (transport, params) = &transports[place % transports.len()];
        case.transport = Named { name: (*transport).into(), params: params.clone() };
        case.check(&format!("{transport}, {name}"));
        let totals = case.run(1, 1).last().unwrap().1.totals;
        assert!(totals.control_packets > 0, "{transport}, {name}");
    }
    let fat_tree = json!({ "hosts": 32, "levels": 2, "radix": 8 });
    for (place, (transport, params)) in transports.iter().enumerate() {
        let mut case = Case::new("fat_tree", &fat_tree, "d_mod_k");
        let wiring = ["planes", "shared"][place % 2];
        let rails = json!({ "count": 2, "wiring": wiring });
        let rails: RailsSpec = serde_json::from_value(rails).unwrap();
        case.graph = Arc::new(topology::build("fat_tree", &fat_tree).unwrap().with_rails(&rails).unwrap());
        case.transport = Named { name: (*transport).into(), params: params.clone() };
        case.check(&format!("{transport}, rails"));
    }
    let mut case = Case::new("fat_tree", &fat_tree, "adaptive");
    case.switch = Named::new("input_queued");
    case.transport = Named { name: "swift".into(), params: transports[2].1.clone() };
    case.check("swift with input-queued switches");
}

#[test]
fn results_of_input_queued_switches_do_not_depend_on_shards_and_threads() {
    let params = [json!({}), json!({ "queues": "fifo", "speedup": 1, "allocator": "oldest_first", "iterations": 1 })];
    for (number, (name, mut case)) in cases().into_iter().enumerate().step_by(3) {
        case.switch = Named { name: "input_queued".into(), params: params[number % 2].clone() };
        case.check(&format!("input-queued {name}"));
    }
}

#[test]
fn rails_store_and_forward_and_less_observation_in_shards() {
    let fat_tree = json!({ "hosts": 32, "levels": 2, "radix": 8 });
    for wiring in ["planes", "shared"] {
        for routing in ["d_mod_k", "adaptive"] {
            let mut case = Case::new("fat_tree", &fat_tree, routing);
            let adapters = json!([{}, { "message_gap": 500_000 }]);
            let rails = json!({ "count": 2, "wiring": wiring, "adapters": adapters });
            let rails: RailsSpec = serde_json::from_value(rails).unwrap();
            case.graph = Arc::new(topology::build("fat_tree", &fat_tree).unwrap().with_rails(&rails).unwrap());
            case.check(&format!("rails {wiring} {routing}"));
        }
    }
    for (counters, onward_waiting) in [(false, false), (false, true), (true, false)] {
        let mut case = Case::new("fat_tree", &fat_tree, "d_mod_k");
        case.switching = Switching::StoreAndForward;
        case.observe = observe::Parameters { counters, onward_waiting, ..Default::default() };
        case.check(&format!("observation {counters} {onward_waiting}"));
    }
}

#[test]
fn the_error_of_the_first_host_ends_the_run_in_shards_too() {
    for (host, at) in [(0, 1_000_000), (17, 5_000_000), (31, 0)] {
        let mut case = Case::new("fat_tree", &json!({ "hosts": 32, "levels": 2, "radix": 8 }), "d_mod_k");
        case.fails = Some((host, at));
        case.check(&format!("failing host {host}"));
        assert!(case.run(3, 3).last().unwrap().0.is_err());
    }
}

/// The results of a run that counts by class, as they would be without classes.
fn without_classes(mut results: Results) -> Results {
    let counted = usize::from(2 * JOBS);
    let mut matrix = vec![0; usize::from(JOBS).pow(2)];
    for (cell, span) in results.matrix.iter().enumerate() {
        matrix[cell / counted / 2 * usize::from(JOBS) + cell % counted / 2] += span;
    }
    let mut by_port: BTreeMap<(u32, u16, u16), u64> = BTreeMap::new();
    for (port, delayed, delaying, span) in &results.by_port {
        *by_port.entry((*port, delayed / 2, delaying / 2)).or_default() += span;
    }
    let mut latencies = observe::Latencies::new(usize::from(JOBS));
    for (counted, kind, histogram) in results.latencies.histograms() {
        latencies.merge_into(TrafficId(counted.0 / 2), kind, histogram);
    }
    let deliveries = results.seen.iter_mut().map(|(_, delivery)| delivery).chain(&mut results.unseen);
    deliveries.for_each(|delivery| delivery.traffic.0 /= 2);
    let by_port =
        by_port.into_iter().map(|((port, delayed, delaying), span)| (port, delayed, delaying, span)).collect();
    Results { matrix, by_port, latencies, class_bytes: Vec::new(), ..results }
}

/// Counting by class changes nothing but the counters that it divides, and these add up to those of the jobs.
#[test]
fn classes_divide_what_is_counted_of_jobs() {
    let transports = ["swift", "dcqcn", transport::DEFAULT];
    for (place, (name, mut case)) in cases().into_iter().enumerate() {
        case.transport = Named::new(transports[place % transports.len()]);
        if place % 4 == 0 {
            case.switch = Named::new("input_queued");
        }
        case.classes = false;
        let jobs = case.run(1, 1);
        case.classes = true;
        for ((_, of_jobs), (_, of_classes)) in jobs.into_iter().zip(case.run(1, 1)) {
            let bytes: u64 = of_classes.class_bytes.iter().sum();
            assert!(bytes >= of_classes.totals.bytes_delivered, "{name}");
            assert!(without_classes(of_classes) == of_jobs, "{name}");
        }
    }
}

#[test]
fn a_log_of_packets_and_loads_of_other_switches_need_one_shard() {
    let mut case = Case::new("fat_tree", &json!({ "hosts": 32, "levels": 2, "radix": 8 }), "d_mod_k");
    assert_eq!(case.plan().most_shards(), Partition::MOST_SHARDS);
    case.observe.departures = true;
    assert_eq!(case.plan().most_shards(), 1);
    let dragonfly = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
    assert_eq!(Case::new("dragonfly", &dragonfly, "ugal_g").plan().most_shards(), 1);
}

/// Of one switch and four shards, three shards have no port; what a port takes does not depend on the number of shards.
#[test]
fn memory_per_port_is_that_of_the_shards_that_have_ports() {
    let params = json!({ "sides": [1], "hosts_per_switch": 4 });
    let case = Case::new("torus", &params, "dimension_order");
    let bytes = |shards| Network::new(&case.plan(), Partition::new(&case.graph, shards)).bytes_per_port();
    let partition = Partition::new(&case.graph, 4);
    assert!(partition.of_hosts(&case.graph).iter().all(|shard| *shard != 0), "the first shard is empty");
    assert_eq!([2, 4].map(bytes), [bytes(1); 2]);
}
