//! Paths, virtual channels and balance of routings on graphs without a layout: neither groups nor a grid.

use std::collections::HashSet;

use fairlane_core::ids::HostId;
use fairlane_core::routing::MAX_CHANNELS;
use fairlane_core::routing::{self, Hop, Routing, Visit};
use fairlane_core::topology::{Graph, Vertex};
use proptest::prelude::*;
use serde_json::Value;

use crate::fabrics;
use crate::routing_laws::{distances, ends, hosts, no_cycle, route, waits};

/// Links of the longest path that loads can make a packet take.
fn longest_option(graph: &Graph, routing: &dyn Routing, from: HostId, to: HostId) -> usize {
    let first = graph.ports(Vertex::Host(from)).next().unwrap();
    let mut open = HashSet::from([(first, 0)]);
    let mut links = 1;
    loop {
        let mut next = HashSet::new();
        for (link, channel) in open {
            if let Vertex::Switch(at) = graph.link(link).to {
                let visit = Visit::new(Hop { link, channel }, to);
                next.extend(routing.options(at, &visit).into_iter().map(|(hop, _)| (hop.link, hop.channel)));
            }
        }
        if next.is_empty() {
            return links;
        }
        open = next;
        links += 1;
    }
}

/// Where switches have no levels, a packet is on channel h at its h-th link between switches: as many channels as the diameter on
/// minimal paths, twice as many on non-minimal ones. In trees one channel is enough for shortest paths.
#[test]
fn channels_of_graphs_are_those_of_the_rule() {
    let cases = [
        ("slim_fly", serde_json::json!({ "q": 5, "hosts_per_switch": 1 }), [2, 2, 4]),
        ("slim_fly", serde_json::json!({ "q": 8, "hosts_per_switch": 1 }), [2, 2, 4]),
        ("random_regular", serde_json::json!({ "switches": 12, "degree": 11, "hosts_per_switch": 1 }), [1, 1, 2]),
        // A cycle of 9 switches: 4 links to the farthest.
        ("random_regular", serde_json::json!({ "switches": 9, "degree": 2, "hosts_per_switch": 1 }), [4, 4, 8]),
        // Up, down; through another leaf up, down, up, down, and the second ascent is on the second channel.
        ("fat_tree", serde_json::json!({ "hosts": 32, "levels": 2, "radix": 8 }), [1, 1, 2]),
    ];
    for (topology, params, expected) in cases {
        let graph = fairlane_core::topology::build(topology, &params).unwrap();
        let channels = |name| routing::build(name, &Value::Null, &graph).unwrap().virtual_channels();
        assert_eq!(["minimal", "adaptive", "valiant"].map(channels), expected, "{topology} {params}");
        assert_eq!(channels("ugal_l"), expected[2], "{topology} {params}");
    }
}

/// Above 32 channels no port has lanes enough.
#[test]
fn paths_too_long_for_the_channels_are_refused_with_their_number() {
    let params = serde_json::json!({ "switches": 67, "degree": 2, "hosts_per_switch": 1 });
    let graph = fairlane_core::topology::build("random_regular", &params).unwrap();
    let error = |name| routing::build(name, &Value::Null, &graph).err().unwrap().to_string();
    let expected = "fabric.routing = minimal: needs 33 virtual channels on this fabric, and a routing has at most 32; up_down needs one";
    assert!(error("minimal").contains(expected), "{}", error("minimal"));
    assert!(error("valiant").contains("fabric.routing = valiant: needs 66 virtual channels"), "{}", error("valiant"));
    let params = serde_json::json!({ "switches": 601, "degree": 2, "hosts_per_switch": 1 });
    let graph = fairlane_core::topology::build("random_regular", &params).unwrap();
    let error = routing::build("minimal", &Value::Null, &graph).err().unwrap().to_string();
    assert!(error.contains("needs a fabric without paths of more than 254 links"), "{error}");
}

/// Routes per link when every host sends to every other, on links between switches: least, mean and greatest.
fn routes_per_link(graph: &Graph, routing: &dyn Routing) -> (usize, f64, usize) {
    let mut load = vec![0_usize; graph.links().len()];
    for (from, to) in hosts(graph).iter().flat_map(|from| hosts(graph).into_iter().map(move |to| (*from, to))) {
        if from != to {
            route(graph, routing, from, to).iter().for_each(|hop| load[hop.link.index()] += 1);
        }
    }
    let between = graph
        .links()
        .iter()
        .zip(load)
        .filter(|(link, _)| matches!((link.from, link.to), (Vertex::Switch(_), Vertex::Switch(_))));
    let loads: Vec<usize> = between.map(|(_, load)| load).collect();
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let mean = loads.iter().sum::<usize>() as f64 / loads.len() as f64;
    (*loads.iter().min().unwrap(), mean, *loads.iter().max().unwrap())
}

/// Routes per link of a balanced Slim Fly. Of q = 5 there is one shortest path between any two switches: a link carries those of its own
/// pair and of 2 (k - 1) = 12 pairs at distance 2, times p^2 = 16 pairs of hosts. Of other q some pairs at distance 2 have several
/// paths, but most links carry the paths of pairs that have no other: as docs/model.md says, no link has more than 15% above the mean.
#[test]
fn routes_are_spread_evenly_over_the_links_of_a_slim_fly() {
    let build = |q: u32| {
        let graph = fairlane_core::topology::build("slim_fly", &serde_json::json!({ "q": q })).unwrap();
        let routing = routing::build("minimal", &Value::Null, &graph).unwrap();
        routes_per_link(&graph, &*routing)
    };
    assert_eq!(build(5), (208, 208.0, 208));
    let (least, mean, most) = build(7);
    // Computed independently from the definition of the graph and the rule of sharing.
    assert_eq!((least, most), (312, 684));
    assert!((mean - 598.909).abs() < 0.001, "{mean}");
    for q in [4, 8, 9] {
        let (_, mean, most) = build(q);
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let above = most as f64 / mean;
        assert!(above < 1.15, "q = {q}: {above}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Minimal paths of graphs without a layout are as long as a breadth-first search finds them, those of adaptive routing are, too,
    /// and non-minimal ones come through their intermediate switch by two of them.
    #[test]
    fn graphs_without_a_layout_have_shortest_paths(
        sample in prop_oneof![fabrics::imported(), fabrics::slim_fly(), fabrics::random_regular(), fabrics::fat_tree()]
    ) {
        let graph = sample.build();
        let minimal = routing::build("minimal", &Value::Null, &graph).unwrap();
        let adaptive = routing::build("adaptive", &Value::Null, &graph).unwrap();
        let hosts = graph.hosts();
        for from in (0..).take(hosts).map(HostId).step_by(1 + hosts / 40) {
            let shortest = distances(&graph, from);
            for to in (0..).take(hosts).map(HostId).filter(|to| *to != from) {
                prop_assert_eq!(route(&graph, &*minimal, from, to).len(), shortest[to.index()]);
                prop_assert_eq!(longest_option(&graph, &*adaptive, from, to), shortest[to.index()]);
            }
        }
        let most = |routing: &dyn Routing| usize::from(routing.virtual_channels());
        let diameter = (0..).take(hosts).map(HostId).flat_map(|from| distances(&graph, from)).max().unwrap_or(0);
        // Links between switches: without those of the two hosts.
        let hops = diameter.saturating_sub(2).max(1);
        prop_assert!(most(&*minimal) <= hops);
        let Ok(valiant) = routing::build("valiant", &Value::Null, &graph) else {
            // A ring of many switches, say: non-minimal paths are up to twice as long as a port has lanes.
            prop_assert!(2 * hops > MAX_CHANNELS, "refused although paths have at most {} hops", 2 * hops);
            return Ok(());
        };
        prop_assert!(most(&*valiant) >= most(&*minimal));
        prop_assert!(no_cycle(&waits(&graph, &*valiant, &ends(&graph, &*valiant))));
    }
}
