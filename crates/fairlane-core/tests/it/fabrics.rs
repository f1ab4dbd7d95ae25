//! Fabrics to try the laws on.

use fairlane_core::ids::SwitchId;
use fairlane_core::topology::{self, Entry, Graph, GraphBuilder, Vertex};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A topology with parameters, as a scenario asks for it.
#[derive(Clone, Debug)]
pub struct Sample {
    pub topology: &'static str,
    pub params: Value,
}

impl Sample {
    pub fn build(&self) -> Graph {
        topology::build(self.topology, &self.params).unwrap_or_else(|error| panic!("{self:?}: {error}"))
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
    thinned.build().unwrap()
}
