//! Fabrics to try the laws on.

use fairlane_core::ids::{LinkId, SwitchId};
use fairlane_core::topology::{self, Entry, Graph, GraphBuilder, Size, Vertex};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A topology with parameters, as a scenario asks for it.
#[derive(Clone, Debug)]
pub struct Sample {
    pub topology: &'static str,
    pub params: Value,
}

impl Sample {
    /// The fabric, which is as large as was said before it was built.
    pub fn build(&self) -> Graph {
        let graph = topology::build(self.topology, &self.params).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let counted = topology::size(self.topology, &self.params).unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let [hosts, switches, links] = [graph.hosts(), graph.switches(), graph.links().len()].map(|count| count as u64);
        assert_eq!(counted, Size { hosts, switches, links }, "{self:?}");
        graph
    }
}

/// Every example that the schema of every topology shows.
pub fn examples() -> Vec<Sample> {
    topology::TABLE.iter().flat_map(examples_of).collect()
}

/// The examples of up to `hosts` hosts.
pub fn small_examples(hosts: usize) -> Vec<(Sample, Graph)> {
    let built = examples().into_iter().map(|sample| (sample.clone(), sample.build()));
    built.filter(|(_, graph)| graph.hosts() <= hosts).collect()
}

/// The examples in the schema of a topology, of which there must be some: the laws are tried on them.
pub fn examples_of(entry: &Entry) -> Vec<Sample> {
    let schema = (entry.schema)();
    let examples = schema.get("examples").and_then(Value::as_array).cloned().unwrap_or_default();
    assert!(!examples.is_empty(), "the schema of topology {} has no examples", entry.name);
    examples.into_iter().map(|params| Sample { topology: entry.name, params }).collect()
}

/// Fat-trees of all sizes: two and three levels, tapered or not, last leaf and pod partly filled.
pub fn fat_tree() -> impl Strategy<Value = Sample> {
    (1..=3_u32, 1..=3_u32, 1..=6_u32, 1..=5_u32, 2..=3_u8, 1..=120_u32, 0..=4_u32).prop_map(
        |(trunk, parents, leaf_down, leaves, levels, hosts, aggregation_up)| {
            let (leaf_up, down, up) = (trunk * parents, trunk * leaves, aggregation_up + 1);
            let radix = (leaf_down + leaf_up).max(down + up) + aggregation_up % 3;
            let mut params = json!({ "levels": levels, "radix": radix, "leaf_down": leaf_down, "leaf_up": leaf_up });
            let mut largest = leaf_down * radix;
            if levels == 3 {
                params["leaves_per_pod"] = json!(leaves);
                params["aggregation_down"] = json!(down);
                params["aggregation_up"] = json!(up);
                largest *= leaves;
            }
            params["hosts"] = json!((hosts - 1) % largest + 1);
            Sample { topology: "fat_tree", params }
        },
    )
}

/// How the global links of a dragonfly are arranged.
fn arrangement() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("palm_tree"), Just("relative"), Just("circulant"), Just("absolute")]
}

/// Dragonflies of all sizes: one group to as many as there are ports for.
pub fn dragonfly() -> impl Strategy<Value = Sample> {
    (1..=6_u32, 1..=2_u32, 0..=3_u32, 0..=18_u32, arrangement()).prop_map(|(a, p, h, groups, arrangement)| {
        let params = json!({ "groups": groups % (a * h + 1) + 1, "switches_per_group": a, "hosts_per_switch": p,
                             "global_links": h, "arrangement": arrangement });
        Sample { topology: "dragonfly", params }
    })
}

/// Dragonfly+ of all sizes.
pub fn dragonfly_plus() -> impl Strategy<Value = Sample> {
    (1..=4_u32, 1..=4_u32, 1..=2_u32, 0..=3_u32, 0..=12_u32, arrangement()).prop_map(
        |(leaves, spines, hosts, global, groups, arrangement)| {
            let params = json!({ "groups": groups % (spines * global + 1) + 1, "leaves": leaves, "spines": spines,
                                 "hosts_per_leaf": hosts, "global_links": global, "arrangement": arrangement });
            Sample { topology: "dragonfly_plus", params }
        },
    )
}

/// Cascades of all sizes, grids of odd ones among them.
pub fn cascade() -> impl Strategy<Value = Sample> {
    (1..=5_u32, 1..=5_u32, 1..=4_u32, 1..=3_u32, 1..=3_u32, 1..=5_u32, arrangement()).prop_map(
        |(groups, columns, rows, black, bundles, links, arrangement)| {
            let params = json!({ "groups": groups, "columns": columns, "rows": rows, "hosts_per_switch": 1,
                                 "black": black, "bundles": bundles, "bundle_links": links, "blue_ports": 99,
                                 "arrangement": arrangement });
            Sample { topology: "cascade", params }
        },
    )
}

/// Tori and meshes of one to four dimensions.
pub fn torus() -> impl Strategy<Value = Sample> {
    (prop::collection::vec(1..=7_u32, 1..=4), 1..=2_u32, any::<bool>()).prop_map(|(mut sides, hosts, mesh)| {
        while sides.iter().product::<u32>() > 100 {
            sides.pop();
        }
        Sample { topology: "torus", params: json!({ "sides": sides, "hosts_per_switch": hosts, "mesh": mesh }) }
    })
}

/// HyperX of one to four dimensions, with trunks.
pub fn hyperx() -> impl Strategy<Value = Sample> {
    prop::collection::vec((1..=5_u32, 1..=3_u32), 1..=4).prop_map(|mut dimensions| {
        while dimensions.iter().map(|(side, _)| side).product::<u32>() > 100 {
            dimensions.pop();
        }
        let (sides, trunks): (Vec<u32>, Vec<u32>) = dimensions.into_iter().unzip();
        Sample { topology: "hyperx", params: json!({ "sides": sides, "trunks": trunks, "hosts_per_switch": 2 }) }
    })
}

/// Slim Flies of all kinds of fields.
pub fn slim_fly() -> impl Strategy<Value = Sample> {
    (prop_oneof![Just(3), Just(4), Just(5)], 1..=2_u32)
        .prop_map(|(q, hosts)| Sample { topology: "slim_fly", params: json!({ "q": q, "hosts_per_switch": hosts }) })
}

/// Random regular graphs, from cycles to full meshes.
pub fn random_regular() -> impl Strategy<Value = Sample> {
    (3..=40_u32, 2..=9_u32, 1..=2_u32, any::<u32>()).prop_map(|(switches, degree, hosts, seed)| {
        let degree = degree.min(switches - 1);
        let degree = degree - switches * degree % 2;
        // One cable is too few; an odd number of switches above two can have two.
        let params = json!({ "switches": switches, "degree": degree.max(2), "hosts_per_switch": hosts, "seed": seed });
        Sample { topology: "random_regular", params }
    })
}

/// Any connected graph of switches: a random tree with cables added at random, hosts at some of the switches.
pub fn imported() -> impl Strategy<Value = Sample> {
    let numbers = |count| prop::collection::vec(0..1000_usize, count);
    (numbers(1..30), numbers(2..20), numbers(0..40)).prop_map(|(tree, hosts, more)| {
        let switches = tree.len() + 1;
        let cable = |a: String, b: usize| json!({ "ends": [a, format!("s{b}")] });
        let mut links: Vec<Value> =
            tree.iter().enumerate().map(|(at, up)| cable(format!("s{}", at + 1), up % (at + 1))).collect();
        let ends = more.iter().map(|pick| (pick % switches, pick / 7 % switches));
        links.extend(ends.filter(|(a, b)| a != b).map(|(a, b)| cable(format!("s{a}"), b)));
        links.extend(hosts.iter().enumerate().map(|(host, at)| cable(format!("h{host}"), at % switches)));
        let names: Vec<String> = (0..hosts.len()).map(|host| format!("h{host}")).collect();
        Sample { topology: "imported", params: json!({ "hosts": names, "links": links }) }
    })
}

/// A fabric as a list of cables, with more hosts at some of its switches; and the number that each switch has there.
/// Hosts keep their numbers, and those that are added follow.
pub fn cabled(graph: &Graph, more: &[SwitchId]) -> (Sample, Vec<SwitchId>) {
    let mut numbers: Vec<Option<u32>> = vec![None; graph.switches()];
    let mut next = 0..;
    let mut name = |vertex| match vertex {
        Vertex::Host(host) => format!("h{host}"),
        Vertex::Switch(switch) => {
            numbers[switch.index()] = numbers[switch.index()].or_else(|| next.next());
            format!("s{switch}")
        }
    };
    let mut hosts: Vec<String> = (0..graph.hosts()).map(|host| format!("h{host}")).collect();
    let cables = graph.links().iter().zip((0..).map(LinkId)).filter(|(link, id)| link.reverse > *id);
    let mut links: Vec<Value> = cables
        .map(|(link, _)| {
            let ends = [name(link.from), name(link.to)];
            json!({ "ends": ends, "bandwidth": link.bandwidth.0, "latency": link.latency.0 })
        })
        .collect();
    for (number, switch) in more.iter().enumerate() {
        let cable = graph.links()[0];
        hosts.push(format!("m{number}"));
        let ends = [format!("m{number}"), name(Vertex::Switch(*switch))];
        links.push(json!({ "ends": ends, "bandwidth": cable.bandwidth.0, "latency": cable.latency.0 }));
    }
    let numbers = numbers.into_iter().map(|number| SwitchId(number.unwrap())).collect();
    (Sample { topology: "imported", params: json!({ "hosts": hosts, "links": links }) }, numbers)
}

/// A fabric of any kind, small.
pub fn of_any_kind() -> impl Strategy<Value = Sample> {
    prop_oneof![
        dragonfly(),
        dragonfly_plus(),
        cascade(),
        torus(),
        hyperx(),
        imported(),
        fat_tree(),
        slim_fly(),
        random_regular()
    ]
}

/// The fabric without the cables between switches that `keep` does not hold on to (it gets a running number).
pub fn thinned(graph: &Graph, keep: impl Fn(usize) -> bool) -> Graph {
    let mut thinned = GraphBuilder::default();
    thinned.add_hosts(u32::try_from(graph.hosts()).unwrap());
    for switch in (0..).take(graph.switches()).map(SwitchId) {
        thinned.add_switch(graph.level(switch));
    }
    let mut number = 0;
    for link in graph.links().iter().filter(|link| link.from < link.to) {
        let between_switches = matches!(link.from, Vertex::Switch(_));
        number += usize::from(between_switches);
        if !between_switches || keep(number) {
            let class = |class: u8| graph.classes()[usize::from(class)].as_str();
            let back = graph.link(link.reverse).class;
            thinned.add_cable(link.from, link.to, link.bandwidth, link.latency, class(link.class), class(back));
        }
    }
    thinned.set_layout(graph.layout().clone());
    thinned.build().unwrap()
}
