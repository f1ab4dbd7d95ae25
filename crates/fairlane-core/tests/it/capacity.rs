//! Sizes that are too large: each limit of a fabric, its routings and its jobs has an error that names the key and the limit. Sizes are
//! refused before the graph is built.

use fairlane_core::error::BuildError;
use fairlane_core::ids::HostId;
use fairlane_core::program::Program;
use fairlane_core::qos::arbiter;
use fairlane_core::routing;
use fairlane_core::simulation::{Simulation, Spec};
use fairlane_core::topology::{self, Graph, GraphBuilder, Layout, Vertex};
use fairlane_core::units::{BitsPerSec, Picoseconds};
use serde_json::{Value, json};

const BANDWIDTH: BitsPerSec = BitsPerSec(100_000_000_000);
const LATENCY: Picoseconds = Picoseconds(100_000);

/// Checks that an error begins like this.
fn is_refused<T>(found: Result<T, BuildError>, expected: &str) {
    let error = found.err().unwrap_or_else(|| panic!("nothing was refused, but expected: {expected}")).to_string();
    assert!(error.starts_with(expected), "{error}\nbut expected: {expected}");
}

#[test]
fn parameters_of_too_large_topologies_are_named() {
    let cases = [
        ("fat_tree", json!({ "hosts": 1_048_577 }), "fabric.hosts = 1048577: 1 to 1048576 hosts"),
        ("fat_tree", json!({ "hosts": 8, "radix": 4097 }), "fabric.radix = 4097: 2 to 4096 ports"),
        ("fat_tree", json!({ "hosts": 8, "levels": 4 }), "fabric.levels = 4: 1, 2 or 3 levels of switches"),
        ("slim_fly", json!({ "q": 257 }), "fabric.q = 257: a prime power from 3 to 256; the nearest: 256"),
        ("torus", json!({ "sides": [1024, 1025] }), "fabric.sides = [1024, 1025]: at most 1048576 switches"),
        (
            "torus",
            json!({ "sides": vec![1; 17] }),
            "fabric.sides = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]: 1 to 16",
        ),
        (
            "torus",
            json!({ "sides": [1024], "hosts_per_switch": 4097 }),
            "fabric.hosts_per_switch = 4097: at most 4194304 hosts",
        ),
        (
            "hyperx",
            json!({ "sides": [2], "hosts_per_switch": 1, "trunks": [4097] }),
            "fabric.trunks = 4097: 1 to 4096 cables",
        ),
        (
            "hyperx",
            json!({ "sides": [65_536], "hosts_per_switch": 1 }),
            "fabric.sides = [65536]: at most 134217728 links make a fabric",
        ),
        (
            "dragonfly",
            json!({ "groups": 1025, "switches_per_group": 1024, "hosts_per_switch": 1, "global_links": 1 }),
            "fabric.groups = 1025: at most 1048576 switches, not 1049600",
        ),
        (
            "dragonfly",
            json!({ "groups": 2, "switches_per_group": 65_536, "hosts_per_switch": 1, "global_links": 65_536 }),
            "fabric.global_links = 65536: fewer than 2^32 global ports a group",
        ),
        (
            "dragonfly_plus",
            json!({ "groups": 1025, "leaves": 512, "spines": 512, "hosts_per_leaf": 1, "global_links": 2 }),
            "fabric.groups = 1025: at most 1048576 switches, not 1049600",
        ),
    ];
    for (topology, params, expected) in cases {
        is_refused(topology::build(topology, &params), expected);
    }
}

/// Switches of this level, each with a host.
fn builder(switches: u32, level: u8) -> GraphBuilder {
    let mut graph = GraphBuilder::default();
    graph.add_hosts(switches);
    for number in 0..switches {
        let at = Vertex::Switch(graph.add_switch(level));
        graph.add_cable(Vertex::Host(HostId(number)), at, BANDWIDTH, LATENCY, "host", "host");
    }
    graph
}

fn switch(number: u32) -> Vertex {
    Vertex::Switch(fairlane_core::ids::SwitchId(number))
}

#[test]
fn links_that_a_graph_cannot_have_are_refused() {
    let with = |bandwidth, latency| {
        let mut graph = builder(2, 1);
        graph.add_cable(switch(0), switch(1), bandwidth, latency, "link", "link");
        graph.build()
    };
    assert!(with(BANDWIDTH, Picoseconds(1_000_000_000_000)).is_ok());
    is_refused(
        with(BANDWIDTH, Picoseconds(1_000_000_000_001)),
        "fabric.latency = 1.000 s: at most one second for a link",
    );
    is_refused(with(BANDWIDTH, Picoseconds(0)), "fabric.latency = 0: a link needs a latency above zero");
    is_refused(with(BitsPerSec(0), LATENCY), "fabric.bandwidth = 0: a link needs a bandwidth above zero");
    is_refused(GraphBuilder::default().build(), "fabric: no hosts");
}

/// Two switches joined by cables of which each link has a class of its own.
fn with_classes(count: usize) -> Result<Graph, BuildError> {
    let names: Vec<String> = (0..count).map(|number| format!("class {number}")).collect();
    let mut graph = GraphBuilder::default();
    graph.add_hosts(2);
    for host in 0..2 {
        graph.add_switch(0);
        graph.add_cable(Vertex::Host(HostId(host)), switch(host), BANDWIDTH, LATENCY, &names[0], &names[1]);
    }
    for pair in names.chunks(2) {
        graph.add_cable(switch(0), switch(1), BANDWIDTH, LATENCY, &pair[0], pair.last().unwrap());
    }
    graph.set_layout(Layout::Groups { switches: 2, row: 2 });
    graph.build()
}

/// A class has an 8-bit number, and so has the rank of a link, where zero is that of the links of hosts.
#[test]
fn more_classes_of_links_than_numbers_are_refused() {
    is_refused(
        with_classes(257),
        "fabric.links[].class = \"class 256\": at most 256 classes of links, and there are 257",
    );
    let minimal = |classes| routing::build("minimal", &Value::Null, &with_classes(classes).unwrap());
    assert!(minimal(254).is_ok());
    is_refused(minimal(256), "fabric.routing = minimal: needs a fabric of fewer than 255 classes of links");
}

/// Two groups of 140 switches in a line, joined at one end of each. Where all links are of one class, a packet is on channel h at its h-th
/// link: 139 + 1 + 139 channels.
#[test]
fn groups_too_wide_for_the_channels_are_refused() {
    let mut graph = builder(280, 0);
    for at in (0..279).filter(|at| *at != 139) {
        graph.add_cable(switch(at), switch(at + 1), BANDWIDTH, LATENCY, "link", "link");
    }
    graph.add_cable(switch(0), switch(140), BANDWIDTH, LATENCY, "link", "link");
    graph.set_layout(Layout::Groups { switches: 140, row: 140 });
    let graph = graph.build().unwrap();
    is_refused(
        routing::build("minimal", &Value::Null, &graph),
        "fabric.routing = minimal: needs more than 255 virtual channels on this fabric",
    );
}

#[test]
fn a_table_of_shortest_paths_has_a_limit_of_switches() {
    let params = json!({ "switches": 8194, "degree": 3, "hosts_per_switch": 1 });
    let graph = topology::build("random_regular", &params).unwrap();
    for name in ["minimal", "ecmp", "valiant"] {
        let expected =
            format!("fabric.routing = {name}: up to 8192 switches where paths are found by a table, and this");
        is_refused(routing::build(name, &Value::Null, &graph), &expected);
    }
}

#[test]
fn a_table_of_arbitration_has_a_limit_of_entries() {
    let table = |entries| arbiter::build("vlarb", &json!({ "vlarb_high": vec![(0, 1); entries] }), 2);
    assert!(table(64).is_ok());
    is_refused(table(65), "qos.arbiter.vlarb_high = 65 entries: at most 64 entries");
}

#[test]
fn a_fabric_has_a_limit_of_jobs() {
    let jobs: Vec<Value> = (0..4097).map(|number| json!({ "name": format!("job {number}"), "hosts": [0] })).collect();
    let spec = json!({
        "fabric": { "topology": "torus", "params": { "sides": [2] }, "routing": "dimension_order" },
        "qos": { "arbiter": { "name": "weighted_round_robin" } },
        "jobs": jobs,
    });
    let spec: Spec = serde_json::from_value(spec).unwrap();
    let programs = spec.jobs.iter().map(|_| Program { ranks: Vec::new() }).collect();
    is_refused(Simulation::new(spec, programs), "jobs = 4097: at most 4096 jobs on one fabric");
}
