//! Laws of every routing on every topology that it accepts.

use std::collections::{HashMap, HashSet, VecDeque};

use fairlane_core::ids::{HostId, LinkId};
use fairlane_core::routing::{self, Entry, Hop, Loads, PortLoads, Routing, TABLE, Visit};
use fairlane_core::simulation::required_virtual_lanes;
use fairlane_core::table::Table;
use fairlane_core::topology::{Graph, LinkRole, Vertex};
use proptest::prelude::*;
use serde_json::Value;

use crate::fabrics;

/// The hops of a packet from one host to another, the host's own link first.
pub fn route(graph: &Graph, routing: &dyn Routing, from: HostId, to: HostId) -> Vec<Hop> {
    let first = graph.ports(Vertex::Host(from)).next().unwrap();
    let mut hops = vec![Hop { link: first, channel: 0 }];
    let bound = graph.switches() * usize::from(routing.virtual_channels()) + 1;
    loop {
        let last = hops[hops.len() - 1];
        let at = match graph.link(last.link).to {
            Vertex::Host(end) => {
                assert_eq!(end, to, "a packet from {from} to {to} went astray");
                return hops;
            }
            Vertex::Switch(at) => at,
        };
        assert!(hops.len() <= bound, "a packet from {from} to {to} makes no end");
        let next = routing.next_hop(at, last, to);
        assert_eq!(graph.link(next.link).from, Vertex::Switch(at), "a link of another switch");
        assert!(next.channel < routing.virtual_channels());
        assert_eq!(routing.next_hop(at, last, to), next, "a pure function");
        hops.push(next);
    }
}

/// A queue of a link: its virtual lane, and its channel.
pub type Queue = (LinkId, u8, u8);

/// The queues that wait for each queue.
pub type Waits = HashMap<Queue, HashSet<Queue>>;

/// The queues that a packet in a queue can wait for, on the way from each of these hosts to each other, whatever the loads.
/// Checks that a packet stays on the fabric, within the channels of its lane, and comes to its host.
pub fn waits(graph: &Graph, routing: &dyn Routing, ends: &[HostId]) -> Waits {
    let mut waits = Waits::new();
    let hosts = || ends.iter().copied();
    // Virtual lanes may have routings of their own if packets are routed at switches.
    let vls = if routing.adaptive() { 2 } else { 1 };
    for (vl, to) in (0..vls).flat_map(|vl| hosts().map(move |to| (vl, to))) {
        let fresh = |from| graph.ports(Vertex::Host(from)).next().map(|link| (Hop { link, channel: 0 }, 0));
        let mut open: Vec<(Hop, u32)> = hosts().filter(|from| *from != to).filter_map(fresh).collect();
        let mut seen: HashSet<(LinkId, u8, u32)> = HashSet::new();
        while let Some((previous, note)) = open.pop() {
            let at = match graph.link(previous.link).to {
                Vertex::Host(end) => {
                    assert_eq!(end, to, "a packet to {to} went astray");
                    continue;
                }
                Vertex::Switch(at) => at,
            };
            if !seen.insert((previous.link, previous.channel, note)) {
                continue;
            }
            let visit = Visit { vl, note, ..Visit::new(previous, to) };
            for (hop, note) in routing.options(at, &visit) {
                assert_eq!(graph.link(hop.link).from, Vertex::Switch(at), "a link of another switch");
                assert!(
                    hop.channel < routing.channels_of(vl),
                    "channel {} of {}",
                    hop.channel,
                    routing.channels_of(vl)
                );
                let queue = |hop: Hop| (hop.link, vl, hop.channel);
                waits.entry(queue(previous)).or_default().insert(queue(hop));
                waits.entry(queue(hop)).or_default();
                open.push((hop, note));
            }
        }
    }
    waits
}

/// All hosts of a graph.
pub fn hosts(graph: &Graph) -> Vec<HostId> {
    (0..).take(graph.hosts()).map(HostId).collect()
}

/// The hosts between which paths are tried: the first of every switch that has some, so that on small fabrics all paths between
/// switches are; of large ones as many as time allows, for where loads decide there are many paths.
pub fn ends(graph: &Graph, routing: &dyn Routing) -> Vec<HostId> {
    let switch = |host: &HostId| graph.ports(Vertex::Host(*host)).next().map(|link| graph.link(link).to);
    let mut all = hosts(graph);
    all.dedup_by_key(|host| switch(host));
    let most = if routing.adaptive() { (8000 / graph.links().len()).clamp(4, 48) } else { 100 };
    let step = all.len().div_ceil(most);
    all.into_iter().step_by(step).collect()
}

/// Sends packets over a fabric with loads at random: every choice must be one of the options, and noted as it is there.
fn wander(graph: &Graph, routing: &dyn Routing) {
    let mut seed = 1_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed ^ seed >> 16
    };
    for _ in 0..if routing.adaptive() { 60 } else { 0 } {
        let mut loads = || (0..graph.links().len()).map(|_| random() % 40_000).collect::<Vec<u32>>();
        let (opening, routed) = (loads(), loads());
        let all: Vec<u32> = opening.iter().zip(&routed).map(|(opening, routed)| opening + routed).collect();
        let ports = PortLoads { all, routed, waiting: opening, full: 1, ..Default::default() };
        let loads = Loads::of(&ports);
        let mut host = || HostId(random() % u32::try_from(graph.hosts()).unwrap());
        let (from, to) = (host(), host());
        let link = graph.ports(Vertex::Host(from)).next().unwrap();
        let vl = u8::try_from(random() % 3).unwrap();
        let mut visit = Visit { vl, ..Visit::new(Hop { link, channel: 0 }, to) };
        while let Vertex::Switch(at) = graph.link(visit.previous.link).to {
            visit.random = random();
            let options = routing.options(at, &visit);
            let hop = routing.choose(at, &mut visit, &loads);
            assert!(options.contains(&(hop, visit.note)), "{hop:?}, {} of {options:?}", visit.note);
            visit.previous = hop;
        }
        assert_eq!(graph.link(visit.previous.link).to, Vertex::Host(to));
    }
}

/// The queues that wait for each queue on given paths.
fn waits_on(routes: impl Iterator<Item = Vec<Hop>>) -> Waits {
    let queue = |hop: Hop| (hop.link, 0, hop.channel);
    let mut waits = Waits::new();
    for pair in routes.flat_map(|hops| hops.windows(2).map(|pair| (queue(pair[0]), queue(pair[1]))).collect::<Vec<_>>())
    {
        waits.entry(pair.0).or_default().insert(pair.1);
        waits.entry(pair.1).or_default();
    }
    waits
}

/// Whether there is no cycle in which each waits for the next. Then nothing deadlocks, and every path ends.
pub fn no_cycle(waits_for: &Waits) -> bool {
    // Take away what nothing waits for, until nothing or only cycles are left.
    let mut waiters: HashMap<_, usize> = waits_for.keys().map(|key| (*key, 0)).collect();
    waits_for.values().flatten().for_each(|key| *waiters.get_mut(key).unwrap() += 1);
    let mut free: Vec<_> = waiters.iter().filter(|(_, count)| **count == 0).map(|(key, _)| *key).collect();
    let mut taken = 0;
    while let Some(key) = free.pop() {
        taken += 1;
        for next in &waits_for[&key] {
            let count = waiters.get_mut(next).unwrap();
            *count -= 1;
            if *count == 0 {
                free.push(*next);
            }
        }
    }
    taken == waits_for.len()
}

/// Links on a shortest path from `from` to every host, over no more than one global link.
fn over_one_global_link(graph: &Graph, from: HostId) -> Vec<usize> {
    let start = (Vertex::Host(from), 0);
    let mut distance = HashMap::from([(start, 0)]);
    let mut fresh = VecDeque::from([start]);
    while let Some((vertex, crossed)) = fresh.pop_front() {
        let beyond = distance[&(vertex, crossed)] + 1;
        for link in graph.ports(vertex) {
            let next = (graph.link(link).to, crossed + usize::from(graph.role(link) == LinkRole::Global));
            if next.1 <= 1 && !distance.contains_key(&next) {
                distance.insert(next, beyond);
                fresh.push_back(next);
            }
        }
    }
    let to = |host, crossed| distance.get(&(Vertex::Host(HostId(host)), crossed)).copied();
    (0..)
        .take(graph.hosts())
        .map(|host| [0, 1].into_iter().filter_map(|crossed| to(host, crossed)).min().unwrap())
        .collect()
}

/// Links on a shortest path from `from` to every host, where there is one.
fn reach(graph: &Graph, from: HostId) -> Vec<Option<usize>> {
    let start = Vertex::Host(from);
    let mut distance = HashMap::from([(start, 0)]);
    let mut fresh = VecDeque::from([start]);
    while let Some(vertex) = fresh.pop_front() {
        let beyond = distance[&vertex] + 1;
        for next in graph.ports(vertex).map(|link| graph.link(link).to) {
            distance.entry(next).or_insert_with(|| {
                fresh.push_back(next);
                beyond
            });
        }
    }
    (0..).take(graph.hosts()).map(|host| distance.get(&Vertex::Host(HostId(host))).copied()).collect()
}

/// Links on a shortest path from `from` to every host.
pub fn distances(graph: &Graph, from: HostId) -> Vec<usize> {
    reach(graph, from).into_iter().map(Option::unwrap).collect()
}

/// The greatest number of routes over one link when every host sends to the host `shift` further.
pub fn heaviest_link(graph: &Graph, routing: &dyn Routing, shift: usize) -> usize {
    let hosts = graph.hosts();
    let mut load = vec![0; graph.links().len()];
    for from in 0..hosts {
        let [from, to] = [from, (from + shift) % hosts].map(|host| HostId(u32::try_from(host).unwrap()));
        route(graph, routing, from, to).iter().for_each(|hop| load[hop.link.index()] += 1);
    }
    load.into_iter().max().unwrap()
}

/// No parameters, and every example that the schema of a routing shows.
fn parameters(entry: &Entry) -> Vec<Value> {
    let schema = (entry.schema)();
    let examples = schema.get("examples").and_then(Value::as_array).cloned().unwrap_or_default();
    std::iter::once(Value::Object(serde_json::Map::new())).chain(examples).collect()
}

#[test]
fn every_routing_delivers_without_cycles_on_every_example_that_it_accepts() {
    for entry in TABLE {
        let mut accepted = 0;
        for (sample, params) in
            fabrics::examples().iter().flat_map(|s| parameters(entry).into_iter().map(move |p| (s, p)))
        {
            let graph = sample.build();
            let Ok(routing) = (entry.build)(&graph, &params, &Table::default()) else { continue };
            accepted += 1;
            let ends = ends(&graph, &*routing);
            assert!(no_cycle(&waits(&graph, &*routing, &ends)), "{} {params} on {sample:?}", entry.name);
            wander(&graph, &*routing);
        }
        assert!(accepted > 0, "no example is for routing {}", entry.name);
    }
}

/// The default routing of a topology serves all its examples, and up/down routing serves everything.
#[test]
fn every_example_is_served_by_its_usual_routing_and_by_up_down() {
    for sample in fabrics::examples() {
        let graph = sample.build();
        let usual = graph.topology().unwrap().routing();
        for name in [usual, "up_down"] {
            let refused = routing::build(name, &Value::Null, &graph).err();
            assert!(refused.is_none(), "{name} on {sample:?}: {}", refused.unwrap());
        }
    }
}

#[test]
fn a_routing_that_does_not_fit_is_refused_naming_both() {
    let build = |name: &str| fabrics::examples().into_iter().find(|sample| sample.topology == name).unwrap().build();
    for (routing, topology, expected) in [
        ("d_mod_k", "dragonfly", "fabric.routing = d_mod_k: needs a fabric whose switches have levels"),
        ("minimal", "torus", "fabric.routing = minimal: needs a fabric of groups"),
        ("dimension_order", "fat_tree", "fabric.routing = dimension_order: needs a grid of switches"),
        ("tables", "hyperx", "fabric.routing = tables: needs a fabric with forwarding tables"),
    ] {
        let error = routing::build(routing, &Value::Null, &build(topology)).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains(&format!("; topology {topology} is usually")), "{error}");
    }
    let error = routing::build("progressive", &Value::Null, &build("slim_fly")).err().unwrap().to_string();
    let expected = "needs a fabric of groups; topology slim_fly is usually routed by minimal (others that fit: adaptive, ecmp, rotation, ugal_g, \
                    ugal_l, up_down, valiant)";
    assert!(error.contains(expected), "{error}");
}

/// Wilke and Kenny, "Opportunities and limitations of quality-of-service in message passing applications on adaptively routed
/// dragonfly and fat tree networks", IEEE CLUSTER 2020, section III: four service levels need 24 lanes if all are routed
/// progressively, 16 if two are routed minimally, and 4 on the fat-tree.
#[test]
fn the_lanes_of_wilke_and_kenny_come_out() {
    let (min, par) = ("minimal", "progressive");
    let fabrics = [
        ("dragonfly", serde_json::json!({ "preset": "wilke2020" })),
        (
            "dragonfly",
            serde_json::json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 }),
        ),
    ];
    for (topology, params) in fabrics {
        let graph = fairlane_core::topology::build(topology, &params).unwrap();
        let lanes = |lanes: [&str; 4]| {
            let routing = routing::build("per_lane", &serde_json::json!({ "lanes": lanes }), &graph).unwrap();
            required_virtual_lanes(&*routing, 4).len()
        };
        assert_eq!([lanes([par; 4]), lanes([par, par, min, min]), lanes([min; 4])], [24, 16, 8]);
        assert_eq!(lanes(["valiant", "ugal_l", "ugal_g", "minimal"]), 3 * 3 + 2);
    }
    for preset in ["wilke2020", "wilke2020-tapered"] {
        let Ok(graph) = fairlane_core::topology::build("fat_tree", &serde_json::json!({ "preset": preset })) else {
            panic!("no preset {preset}")
        };
        let routing = routing::build("adaptive", &Value::Null, &graph).unwrap();
        assert_eq!(required_virtual_lanes(&*routing, 4).len(), 4);
    }
}

#[test]
fn a_cycle_is_noticed() {
    let hop = |link| Hop { link: LinkId(link), channel: 0 };
    let ring = [vec![hop(0), hop(1)], vec![hop(1), hop(2)], vec![hop(2), hop(0)]];
    assert!(!no_cycle(&waits_on(ring.into_iter())));
    // A second channel opens it.
    let dateline = [vec![hop(0), hop(1)], vec![hop(1), hop(2)], vec![hop(2), Hop { link: LinkId(0), channel: 1 }]];
    assert!(no_cycle(&waits_on(dateline.into_iter())));
}

#[test]
fn unknown_routings_are_named() {
    let (_, graph) = fabrics::small_examples(64).swap_remove(0);
    let error = routing::build("d_mod_m", &Value::Null, &graph).err().unwrap().to_string();
    assert!(error.contains("did you mean \"d_mod_k\"?"), "{error}");
}

/// On a full-bisection tree every shift permutation loads every link at most once.
///
/// Let leaves have `n` hosts and as many ports up, and pods `m` hosts. The quotients of the rule number the ways from a
/// leaf by `d mod n`, from a pod by `d mod m`. The sources of a leaf (pod) are `n` (`m`) consecutive hosts, so are their
/// destinations, modulo the number of hosts, which `n` and `m` divide; so all take different ways up. Down into a leaf
/// (pod) the ways are numbered by the same quotients, and the destinations there are `n` (`m`) consecutive hosts too.
#[test]
fn d_mod_k_spreads_shifts_evenly_over_full_bisection_trees() {
    let mut tried = 0;
    for (sample, graph) in fabrics::small_examples(1296) {
        if sample.topology != "fat_tree" {
            continue;
        }
        let routing = routing::build("d_mod_k", &Value::Null, &graph).unwrap();
        let step = if graph.hosts() > 400 { 61 } else { 1 };
        for shift in (1..graph.hosts()).step_by(step) {
            assert_eq!(heaviest_link(&graph, &*routing, shift), 1, "{sample:?}, shift by {shift}");
        }
        tried += 1;
    }
    assert!(tried >= 4);
}

/// A 4:3 taper at a leaf: at best 36 routes share 27 ways, so some way carries two; D-mod-K lets none carry more.
#[test]
fn d_mod_k_spreads_shifts_over_a_tapered_tree() {
    let params = serde_json::json!({
        "hosts": 16, "levels": 2, "radix": 8, "leaf_down": 4, "leaf_up": 3
    });
    let graph = fairlane_core::topology::build("fat_tree", &params).unwrap();
    let routing = routing::build("d_mod_k", &Value::Null, &graph).unwrap();
    assert_eq!(heaviest_link(&graph, &*routing, 4), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn d_mod_k_is_minimal_and_free_of_cycles_on_fat_trees_of_all_sizes(sample in fabrics::fat_tree()) {
        let graph = sample.build();
        let routing = routing::build("d_mod_k", &Value::Null, &graph).unwrap();
        for from in (0..).take(graph.hosts()).map(HostId) {
            let shortest = distances(&graph, from);
            for to in (0..).take(graph.hosts()).map(HostId).filter(|to| *to != from) {
                prop_assert_eq!(route(&graph, &*routing, from, to).len(), shortest[to.index()]);
            }
        }
        prop_assert!(no_cycle(&waits(&graph, &*routing, &hosts(&graph))));
    }

    /// Every routing that takes a fabric delivers on it without cycles, and the usual one takes it.
    #[test]
    fn every_routing_delivers_without_cycles_on_fabrics_of_all_kinds(sample in fabrics::of_any_kind()) {
        let graph = sample.build();
        for (entry, params) in TABLE.iter().flat_map(|entry| parameters(entry).into_iter().map(move |it| (entry, it))) {
            match routing::build(entry.name, &params, &graph) {
                Ok(routing) => {
                    let law = no_cycle(&waits(&graph, &*routing, &ends(&graph, &*routing)));
                    prop_assert!(law, "{} {}", entry.name, params);
                    wander(&graph, &*routing);
                }
                Err(error) => {
                    let usual = graph.topology().unwrap().routing();
                    prop_assert!(entry.name != usual && entry.name != "up_down", "{}: {}", entry.name, error);
                }
            }
        }
    }

    /// With cables gone, what a routing still takes it serves; up/down refuses only what is not connected.
    #[test]
    fn every_routing_delivers_with_cables_gone(sample in fabrics::of_any_kind(), lost in 2..=9_usize) {
        let graph = fabrics::thinned(&sample.build(), |number| number % lost != 0);
        for entry in TABLE {
            match routing::build(entry.name, &Value::Null, &graph) {
                Ok(routing) => {
                    prop_assert!(no_cycle(&waits(&graph, &*routing, &ends(&graph, &*routing))), "{}", entry.name);
                }
                Err(error) if entry.name == "up_down" => {
                    prop_assert!(error.to_string().contains("needs a connected fabric"), "{}", error);
                    prop_assert!(reach(&graph, HostId(0)).iter().any(Option::is_none));
                }
                Err(_) => {}
            }
        }
    }

    /// One coordinate after the other is as short as any path through a grid.
    #[test]
    fn dimension_order_takes_shortest_paths(sample in prop_oneof![fabrics::torus(), fabrics::hyperx()]) {
        let graph = sample.build();
        let routing = routing::build("dimension_order", &Value::Null, &graph).unwrap();
        for from in (0..).take(graph.hosts()).map(HostId).step_by(5) {
            let shortest = distances(&graph, from);
            for to in (0..).take(graph.hosts()).map(HostId).filter(|to| *to != from) {
                prop_assert_eq!(route(&graph, &*routing, from, to).len(), shortest[to.index()]);
            }
        }
    }

    /// The shortest path with at most one global link: found here by going through the graph in two layers.
    #[test]
    fn minimal_takes_shortest_paths_over_one_global_link(
        sample in prop_oneof![fabrics::dragonfly(), fabrics::cascade(), fabrics::dragonfly_plus()]
    ) {
        let graph = sample.build();
        let routing = routing::build("minimal", &Value::Null, &graph).unwrap();
        for from in (0..).take(graph.hosts()).map(HostId).step_by(3) {
            let shortest = over_one_global_link(&graph, from);
            for to in (0..).take(graph.hosts()).map(HostId).filter(|to| *to != from) {
                prop_assert_eq!(route(&graph, &*routing, from, to).len(), shortest[to.index()]);
            }
        }
    }

    /// With cables gone, every pair that has an up/down way is served, and if one has none the error says so.
    #[test]
    fn d_mod_k_delivers_on_trees_with_cables_gone(sample in fabrics::fat_tree(), lost in 2..=9_usize) {
        let graph = fabrics::thinned(&sample.build(), |number| number % lost != 0);
        match routing::build("d_mod_k", &Value::Null, &graph) {
            Ok(routing) => prop_assert!(no_cycle(&waits(&graph, &*routing, &hosts(&graph)))),
            Err(error) => {
                let message = error.to_string();
                let is_named = message.contains("no up/down path from host") || message.contains("needs a connected fabric");
                prop_assert!(is_named, "{}", message);
                let unreached = |from| up_down_reach(&graph, HostId(from)).len() < graph.hosts();
                prop_assert!((0..).take(graph.hosts()).any(unreached));
            }
        }
    }
}

/// The hosts that are reached from `from` by going up any number of links and then down.
fn up_down_reach(graph: &Graph, from: HostId) -> HashSet<HostId> {
    let level = |vertex| match vertex {
        Vertex::Host(_) => 0,
        Vertex::Switch(switch) => graph.level(switch),
    };
    let start = (Vertex::Host(from), true);
    let mut seen = HashSet::from([start]);
    let mut fresh = vec![start];
    while let Some((vertex, rising)) = fresh.pop() {
        for next in graph.ports(vertex).map(|link| graph.link(link).to) {
            let state = (next, level(next) > level(vertex));
            if (rising || !state.1) && seen.insert(state) {
                fresh.push(state);
            }
        }
    }
    seen.iter().filter_map(|(vertex, _)| if let Vertex::Host(host) = vertex { Some(*host) } else { None }).collect()
}
