//! Laws of the graph of every topology.

use std::collections::HashSet;

use fairlane_core::ids::{HostId, LinkId, SwitchId};
use fairlane_core::topology::{Graph, TABLE, Vertex};
use proptest::prelude::*;

use crate::fabrics;

fn vertices(graph: &Graph) -> impl Iterator<Item = Vertex> {
    let hosts = (0..).take(graph.hosts()).map(|host| Vertex::Host(HostId(host)));
    hosts.chain((0..).take(graph.switches()).map(|switch| Vertex::Switch(SwitchId(switch))))
}

/// The two links of a cable name each other and have their ends swapped and their wire in common.
fn ports_are_symmetric(graph: &Graph) {
    for (id, link) in (0..).map(LinkId).zip(graph.links()) {
        let back = graph.link(link.reverse);
        assert_ne!(link.reverse, id);
        assert_eq!(back.reverse, id);
        assert_eq!((back.from, back.to), (link.to, link.from));
        assert_eq!((back.bandwidth, back.latency), (link.bandwidth, link.latency));
        assert!(usize::from(link.class) < graph.classes().len());
    }
}

/// Every link is a port of the vertex that it leaves, and of no other.
fn ports_cover_the_links(graph: &Graph) {
    let mut seen = HashSet::new();
    for vertex in vertices(graph) {
        for link in graph.ports(vertex) {
            assert_eq!(graph.link(link).from, vertex);
            assert!(seen.insert(link));
        }
    }
    assert_eq!(seen.len(), graph.links().len());
}

/// Every vertex is reached from host 0.
fn all_is_connected(graph: &Graph) {
    let start = Vertex::Host(HostId(0));
    let mut reached = HashSet::from([start]);
    let mut fresh = vec![start];
    while let Some(vertex) = fresh.pop() {
        let next = graph.ports(vertex).map(|link| graph.link(link).to);
        fresh.extend(next.filter(|vertex| reached.insert(*vertex)));
    }
    assert_eq!(reached.len(), graph.hosts() + graph.switches());
}

fn laws(graph: &Graph) {
    ports_are_symmetric(graph);
    ports_cover_the_links(graph);
    all_is_connected(graph);
}

#[test]
fn every_example_of_every_topology_obeys_the_laws() {
    for entry in TABLE {
        fabrics::examples_of(entry).iter().for_each(|sample| laws(&sample.build()));
    }
}

#[test]
fn unknown_topologies_and_parameters_are_named() {
    let error = fairlane_core::topology::build("fat_treee", &serde_json::json!({})).unwrap_err().to_string();
    assert!(error.contains("did you mean \"fat_tree\"?"), "{error}");
    for entry in TABLE {
        let error = (entry.build.graph)(&serde_json::json!({ "no_such_parameter": 1 })).unwrap_err().to_string();
        assert!(error.contains("no_such_parameter"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fabrics_of_all_kinds_and_sizes_obey_the_laws(sample in fabrics::of_any_kind()) {
        laws(&sample.build());
    }

    #[test]
    fn fat_trees_of_all_sizes_obey_the_laws(sample in fabrics::fat_tree()) {
        let graph = sample.build();
        prop_assert_eq!(graph.hosts(), sample.params["hosts"].as_u64().unwrap() as usize);
        laws(&graph);
        let radix = sample.params["radix"].as_u64().unwrap() as usize;
        for switch in (0..).take(graph.switches()).map(SwitchId) {
            prop_assert!(graph.ports(Vertex::Switch(switch)).len() <= radix);
        }
    }
}
