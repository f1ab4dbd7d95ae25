//! Laws of the levels of cabled fabrics, and of up/down routing on trees with hosts at any level.

use fairlane_core::ids::{HostId, LinkId, SwitchId};
use fairlane_core::routing::{self, Routing, coverage};
use fairlane_core::topology::{Graph, is_tree};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::fabrics::{self, Sample};
use crate::routing_laws::{distances, ends, heaviest_link, no_cycle, route, waits};

/// Shapes that are drawn.
const CASES: usize = 300;
/// More hops than any test follows.
const BUDGET: u64 = u64::MAX;

fn up_down(graph: &Graph) -> Box<dyn Routing> {
    routing::build("up_down", &Value::Null, graph).unwrap()
}

fn levels(graph: &Graph) -> Vec<u8> {
    (0..).take(graph.switches()).map(|switch| graph.level(SwitchId(switch))).collect()
}

/// The switches above the leaves.
fn upper(graph: &Graph) -> Vec<SwitchId> {
    (0..).take(graph.switches()).map(SwitchId).filter(|switch| graph.level(*switch) > 1).collect()
}

/// The fat-tree as cables, with `count` more hosts at switches above the leaves, from a seed; and what it is with its
/// switches' numbers there.
fn with_hosts_above(graph: &Graph, count: usize, seed: usize) -> (Graph, Vec<SwitchId>) {
    let upper = upper(graph);
    let more: Vec<SwitchId> =
        (0..count).filter_map(|number| upper.get((seed + number * (seed % 7)) % upper.len().max(1)).copied()).collect();
    let (sample, numbers) = fabrics::cabled(graph, &more);
    (sample.build(), numbers)
}

fn keeps_levels(graph: &Graph, cabled: &Graph, numbers: &[SwitchId]) -> bool {
    numbers.iter().zip(levels(graph)).all(|(switch, level)| cabled.level(*switch) == level)
}

#[test]
fn fat_trees_keep_their_levels_and_their_throughput_with_hosts_above_the_leaves() {
    for (sample, graph) in fabrics::small_examples(1296) {
        if sample.topology != "fat_tree" {
            continue;
        }
        for (count, seed) in [(0, 0), (1, 3), (graph.hosts() / 20, 5), (graph.hosts() / 8, 11)] {
            let (cabled, numbers) = with_hosts_above(&graph, count, seed);
            assert!(keeps_levels(&graph, &cabled, &numbers), "{sample:?} with {count} hosts above");
            assert!(is_tree(&cabled));
            let routing = up_down(&cabled);
            assert!(no_cycle(&waits(&cabled, &*routing, &ends(&cabled, &*routing))), "{sample:?} with {count}");
            // As D-mod-K on the tree without them: any shift of the tree's own hosts loads every link at most once.
            let step = if graph.hosts() > 400 { 211 } else { 7 };
            for shift in (1..graph.hosts()).step_by(step) {
                let heaviest = heaviest(&cabled, &*routing, graph.hosts(), shift);
                assert_eq!(heaviest, 1, "{sample:?} with {count} hosts above, shift by {shift}");
            }
            let found = coverage(&cabled, &*routing, BUDGET);
            assert!(found.is_exact);
            assert_eq!((found.minimal_paths, found.minimal_routes), (1.0, Some(1.0)), "{sample:?} with {count}");
        }
    }
}

/// The greatest number of routes over one link when each of the first `hosts` sends to the host `shift` further.
fn heaviest(graph: &Graph, routing: &dyn Routing, hosts: usize, shift: usize) -> usize {
    let mut load = vec![0; graph.links().len()];
    for from in 0..hosts {
        let [from, to] = [from, (from + shift) % hosts].map(|host| HostId(u32::try_from(host).unwrap()));
        route(graph, routing, from, to).iter().for_each(|hop| load[hop.link.index()] += 1);
    }
    load.into_iter().max().unwrap()
}

/// Without hosts above the leaves the routes of a cabled fat-tree are D-mod-K's, link by link of equal ends.
#[test]
fn on_a_clean_tree_up_down_is_d_mod_k() {
    let shapes = [
        json!({ "hosts": 64, "levels": 2, "radix": 16 }),
        json!({ "hosts": 128, "levels": 3, "radix": 8 }),
        json!({ "hosts": 100, "levels": 3, "radix": 10, "leaf_down": 6, "leaf_up": 4, "leaves_per_pod": 5,
                "aggregation_down": 5, "aggregation_up": 3 }),
    ];
    for params in shapes {
        let graph = Sample { topology: "fat_tree", params }.build();
        let (modulo, plain) = (routing::build("d_mod_k", &Value::Null, &graph).unwrap(), up_down(&graph));
        for (from, to) in (0..100).flat_map(|from| (0..100).map(move |to| (from, to))) {
            if from < graph.hosts() && to < graph.hosts() && from != to {
                let [from, to] = [from, to].map(|host| HostId(u32::try_from(host).unwrap()));
                assert_eq!(route(&graph, &*plain, from, to), route(&graph, &*modulo, from, to), "{from} to {to}");
            }
        }
        assert_eq!(heaviest_link(&graph, &*plain, 7), heaviest_link(&graph, &*modulo, 7));
    }
}

/// Two hosts at two spines of one level have no up/down path: their packets turn up again once, on channel 1. Every route
/// is as short as any path, and the leaves share these packets.
#[test]
fn hosts_at_spines_reach_each_other_over_a_second_channel() {
    let graph = Sample { topology: "fat_tree", params: json!({ "hosts": 64, "levels": 2, "radix": 16 }) }.build();
    let spines = upper(&graph);
    let more: Vec<SwitchId> = std::iter::repeat_n(spines[0], 8).chain(std::iter::repeat_n(spines[1], 8)).collect();
    let (sample, _) = fabrics::cabled(&graph, &more);
    let cabled = sample.build();
    let routing = up_down(&cabled);
    assert_eq!(routing.virtual_channels(), 2);
    let host = |number: usize| HostId(u32::try_from(number).unwrap());
    for from in 0..cabled.hosts() {
        let shortest = distances(&cabled, host(from));
        for to in (0..cabled.hosts()).filter(|to| *to != from) {
            let hops = route(&cabled, &*routing, host(from), host(to));
            assert_eq!(hops.len(), shortest[to]);
            let between_spines = from >= 64 && to >= 64 && (from < 72) != (to < 72);
            assert_eq!(hops.iter().any(|hop| hop.channel == 1), between_spines, "{from} to {to}");
        }
    }
    let all: Vec<HostId> = (0..cabled.hosts()).map(host).collect();
    assert!(no_cycle(&waits(&cabled, &*routing, &all)));
    // Eight hosts of one spine send to eight of the other, over eight leaves with trunks of two: each over its own.
    let turns: std::collections::BTreeSet<LinkId> =
        (0..8).map(|number| route(&cabled, &*routing, host(64 + number), host(72 + number))[1].link).collect();
    assert_eq!(turns.len(), 8);
    // From a leaf each cable of the trunk to a spine carries half of what goes to the spine's hosts.
    let mut load = std::collections::BTreeMap::new();
    (64..72).for_each(|to| *load.entry(route(&cabled, &*routing, host(0), host(to))[1].link).or_insert(0) += 1);
    assert_eq!(load.into_values().collect::<Vec<_>>(), [4, 4]);
}

/// Rings, tori, dragonflies and HyperX with hosts at every switch are no trees, whatever their cables are called.
#[test]
fn fabrics_that_are_no_trees_are_not_taken_for_any() {
    for (topology, params) in [
        ("torus", json!({ "sides": [6], "hosts_per_switch": 2 })),
        ("torus", json!({ "sides": [7], "hosts_per_switch": 1 })),
        ("torus", json!({ "sides": [4, 4], "hosts_per_switch": 2 })),
        ("torus", json!({ "sides": [4, 4, 4], "hosts_per_switch": 1 })),
        ("torus", json!({ "sides": [5, 3], "hosts_per_switch": 4, "mesh": true })),
        ("dragonfly", json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 })),
        ("hyperx", json!({ "sides": [4, 4], "trunks": [1, 1], "hosts_per_switch": 4 })),
        (
            "cascade",
            json!({ "groups": 3, "columns": 4, "rows": 3, "hosts_per_switch": 4, "black": 1, "bundles": 1,
                            "bundle_links": 2, "blue_ports": 9 }),
        ),
    ] {
        let graph = Sample { topology, params: params.clone() }.build();
        let (sample, _) = fabrics::cabled(&graph, &[]);
        let cabled = sample.build();
        assert!(!is_tree(&cabled), "{topology} {params}: {:?}", levels(&cabled));
        assert!(levels(&cabled).iter().all(|level| *level == 1), "{topology} {params}");
        assert_eq!(up_down(&cabled).virtual_channels(), 1);
    }
}

fn links(pairs: &[(&str, &str)]) -> Vec<Value> {
    pairs.iter().map(|(a, b)| json!({ "ends": [a, b] })).collect()
}

/// The levels by name of switch, of the fabric of these cables; hosts are the names that begin with `h`.
fn named_levels(cables: &[Value]) -> std::collections::BTreeMap<String, u8> {
    let ends = cables.iter().flat_map(|cable| [0, 1].map(|side| cable["ends"][side].as_str().unwrap().to_owned()));
    let (mut hosts, mut switches): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for end in ends {
        let list = if end.starts_with('h') { &mut hosts } else { &mut switches };
        if !list.contains(&end) {
            list.push(end);
        }
    }
    let graph = Sample { topology: "imported", params: json!({ "hosts": hosts, "links": cables }) }.build();
    switches.into_iter().zip(levels(&graph)).collect()
}

/// A leaf with hosts, or one of these hosts' cables.
fn hosts_at(cables: &mut Vec<Value>, switch: &str, count: usize) {
    let start = cables.len();
    cables.extend((0..count).map(|host| json!({ "ends": [format!("h{}", start + host), switch] })));
}

/// `leaves` leaves of `hosts` hosts, joined with all of `spines`.
fn subtree(cables: &mut Vec<Value>, name: &str, leaves: usize, hosts: usize, spines: &[String]) {
    for leaf in (0..leaves).map(|leaf| format!("{name}leaf{leaf}")) {
        hosts_at(cables, &leaf, hosts);
        spines.iter().for_each(|spine| cables.push(json!({ "ends": [leaf, spine] })));
    }
}

fn numbered(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

#[test]
fn leaves_without_hosts_and_switches_with_few_are_told_apart() {
    // Three subtrees under six core switches, in two planes.
    let mut cables = Vec::new();
    for pod in ["a", "b", "c"] {
        let spines = numbered(&format!("{pod}spine"), 2);
        subtree(&mut cables, pod, 4, 8, &spines);
        for core in 0..6 {
            cables.push(json!({ "ends": [spines[core / 3], format!("core{core}")] }));
        }
    }
    // A leaf that is not used, one with a single host, hosts at two core switches and at a spine.
    cables.extend(links(&[("aunused", "aspine0"), ("aunused", "aspine1"), ("bfew", "bspine0"), ("bfew", "bspine1")]));
    hosts_at(&mut cables, "bfew", 1);
    hosts_at(&mut cables, "core0", 2);
    hosts_at(&mut cables, "core4", 1);
    hosts_at(&mut cables, "cspine1", 3);
    let levels = named_levels(&cables);
    for (name, level) in &levels {
        let expected = match name.as_str() {
            name if name.starts_with("core") => 3,
            name if name.contains("spine") => 2,
            _ => 1,
        };
        assert_eq!(*level, expected, "{name}: {levels:?}");
    }
}

#[test]
fn planes_and_fabrics_joined_by_few_cables_are_levelled_each_by_itself() {
    // Two planes, joined only through hosts, of which one has three levels.
    let mut cables = Vec::new();
    subtree(&mut cables, "a", 3, 4, &numbered("aspine", 2));
    for pod in ["b", "c"] {
        let spines = numbered(&format!("{pod}spine"), 2);
        subtree(&mut cables, pod, 2, 4, &spines);
        cables.extend((0..4).map(|core| json!({ "ends": [spines[core / 2], format!("core{core}")] })));
    }
    cables.extend(links(&[("h0", "bleaf0")]));
    let levels = named_levels(&cables);
    assert!(levels.iter().all(|(name, level)| {
        *level == if name.starts_with("core") { 3 } else { 1 + u8::from(name.contains("spine")) }
    }));
    // Two trees of two levels, whose first spines are joined.
    let mut cables = Vec::new();
    subtree(&mut cables, "a", 6, 8, &numbered("aspine", 4));
    subtree(&mut cables, "b", 6, 8, &numbered("bspine", 4));
    cables.extend(links(&[("aspine0", "bspine0"), ("aspine1", "bspine1")]));
    hosts_at(&mut cables, "aspine2", 2);
    let levels = named_levels(&cables);
    assert!(levels.iter().all(|(name, level)| *level == 1 + u8::from(name.contains("spine"))), "{levels:?}");
}

/// A chassis: line cards with hosts, line cards below which there are leaves, and spine cards.
#[test]
fn line_cards_of_a_chassis_may_have_hosts_or_leaves_below() {
    let spines = numbered("spine", 4);
    let mut cables = Vec::new();
    subtree(&mut cables, "line", 4, 12, &spines);
    for line in 0..4 {
        spines.iter().for_each(|spine| cables.push(json!({ "ends": [format!("upper{line}"), spine] })));
        for leaf in 0..3 {
            let leaf = format!("rack{line}{leaf}");
            hosts_at(&mut cables, &leaf, 8);
            (0..4).for_each(|_| cables.push(json!({ "ends": [leaf, format!("upper{line}")] })));
        }
    }
    let levels = named_levels(&cables);
    assert!(levels.iter().all(|(name, level)| !name.starts_with("rack") || *level == 1));
    assert!(levels.iter().all(|(name, level)| !name.starts_with("upper") || *level == 2));
    assert!(levels.iter().all(|(name, level)| !name.starts_with("spine") || *level == 3), "{levels:?}");
}

/// Ten thousand switches of three levels, with hosts at a hundred of those above.
#[test]
fn large_trees_are_levelled() {
    let params = json!({ "hosts": 18432, "levels": 3, "radix": 96, "leaf_down": 4, "leaf_up": 48,
                         "aggregation_down": 48, "aggregation_up": 48, "leaves_per_pod": 48 });
    let graph = Sample { topology: "fat_tree", params }.build();
    let upper = upper(&graph);
    let more: Vec<SwitchId> = upper.iter().step_by(upper.len() / 100).copied().collect();
    let (sample, numbers) = fabrics::cabled(&graph, &more);
    let cabled = sample.build();
    assert!(graph.switches() > 10_000, "{}", graph.switches());
    assert!(keeps_levels(&graph, &cabled, &numbers));
}

#[test]
fn coverage_finds_what_no_route_takes() {
    // A square of four switches, all with a host. Up/down by nearness to a corner: the cable between the two switches
    // opposite that corner's other neighbours is on no route but its ends' own.
    let (sample, _) = fabrics::cabled(
        &Sample { topology: "torus", params: json!({ "sides": [6], "hosts_per_switch": 1 }) }.build(),
        &[],
    );
    let ring = sample.build();
    let found = coverage(&ring, &*up_down(&ring), BUDGET);
    // Two of the thirty ordered pairs of switches are the ends of the opening; pairs whose only short path leads through
    // it go round. Counted by hand: with the top at one switch the opposite one ends every path, and so the pairs
    // whose minimal path leads through that switch, one each way between its two neighbours, take a longer one.
    assert_eq!(found.minimal_routes, Some(28.0 / 30.0));
    assert_eq!(found.used.iter().filter(|used| !**used).count(), 0);
    // A spine that is joined with one leaf only: no route goes there.
    let mut cables = Vec::new();
    subtree(&mut cables, "", 3, 4, &numbered("spine", 2));
    cables.extend(links(&[("stub", "leaf0"), ("stub", "leaf0")]));
    let hosts: Vec<String> = (0..cables.len()).map(|number| format!("h{number}")).collect();
    let used = |name: &&String| cables.iter().any(|cable| cable["ends"][0] == name.as_str());
    let hosts: Vec<&String> = hosts.iter().filter(used).collect();
    let graph = Sample { topology: "imported", params: json!({ "hosts": hosts, "links": cables }) }.build();
    let found = coverage(&graph, &*up_down(&graph), BUDGET);
    let idle: Vec<_> =
        graph.links().iter().zip(&found.used).filter(|(_, used)| !**used).map(|(link, _)| link).collect();
    assert_eq!(idle.len(), 4, "two cables, both ways");
    let stub = idle.iter().flat_map(|link| [link.from, link.to]).filter(|end| graph.ports(*end).len() == 2);
    assert_eq!(stub.count(), 4);
    assert!(found.is_exact && (found.minimal_paths - 1.0).abs() < 1e-12);
}

/// Where the budget is spent early, what is said of idle links is a bound: none is called used that is not.
#[test]
fn a_small_budget_makes_coverage_a_bound() {
    let graph = Sample { topology: "fat_tree", params: json!({ "hosts": 128, "levels": 3, "radix": 8 }) }.build();
    let routing = routing::build("d_mod_k", &Value::Null, &graph).unwrap();
    let (whole, part) = (coverage(&graph, &*routing, BUDGET), coverage(&graph, &*routing, 100));
    assert!(whole.is_exact && !part.is_exact && part.destinations < whole.destinations);
    assert!(part.used.iter().zip(&whole.used).all(|(part, whole)| *whole || !*part));
    assert!(whole.used.iter().all(|used| *used));
    assert_eq!((part.sources, whole.sources), ((1, 32), (32, 32)));
}

/// Where a fat-tree has two subtrees at least, hosts above the leaves, up to an eighth of all, change no level, and every
/// route is as short as any path. The levels are inferred, so the shapes are drawn from a fixed seed.
#[test]
fn hosts_above_the_leaves_change_no_level() {
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    for _ in 0..CASES {
        let (sample, share, seed) =
            (fabrics::fat_tree(), 0..=8_usize, 0..1000_usize).new_tree(&mut runner).unwrap().current();
        let graph = sample.build();
        // In a single subtree core switches without hosts cannot be told from leaves without hosts.
        let top = usize::from(levels(&graph).into_iter().max().unwrap());
        if distances(&graph, HostId(0))[graph.hosts() - 1] < 2 * top {
            continue;
        }
        tried += 1;
        let (cabled, numbers) = with_hosts_above(&graph, graph.hosts() * share / 64, seed);
        let found: Vec<u8> = numbers.iter().map(|switch| cabled.level(*switch)).collect();
        assert_eq!(found, levels(&graph), "{sample:?}, {share} of 64 above the leaves, seed {seed}");
        let routing = up_down(&cabled);
        for from in (0..).take(cabled.hosts()).map(HostId).step_by(5) {
            let shortest = distances(&cabled, from);
            for to in (0..).take(cabled.hosts()).map(HostId).filter(|to| *to != from).step_by(3) {
                assert_eq!(route(&cabled, &*routing, from, to).len(), shortest[to.index()]);
            }
        }
    }
    assert!(tried > CASES / 2, "{tried}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever hosts are, nothing can deadlock.
    #[test]
    fn hosts_above_the_leaves_bring_no_cycle(sample in fabrics::fat_tree(), share in 0..=64_usize, seed in 0..1000_usize) {
        let graph = sample.build();
        let (cabled, _) = with_hosts_above(&graph, graph.hosts() * share / 64, seed);
        let routing = up_down(&cabled);
        prop_assert!(no_cycle(&waits(&cabled, &*routing, &ends(&cabled, &*routing))));
    }
}
