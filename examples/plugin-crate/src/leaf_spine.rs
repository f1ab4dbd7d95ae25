//! A topology: leaf switches with hosts, each joined to every spine switch by one cable.

use fairlane_core::error::BuildError;
use fairlane_core::ids::HostId;
use fairlane_core::table;
use fairlane_core::topology::{Build, Entry, Graph, GraphBuilder, Size, Vertex};
use fairlane_core::units::{BitsPerSec, Picoseconds};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

/// The entry.
pub static ENTRY: Entry = Entry {
    name: "leaf_spine",
    summary: "leaf switches with hosts, each joined to every spine switch",
    schema: || schema_for!(Params),
    build: Build {
        routing: "spine_by_job",
        size: |json| table::params::<Params>("fabric", json)?.size(),
        graph: |json| table::params::<Params>("fabric", json)?.build(),
    },
};

/// Leaf switches with hosts, each joined to every spine switch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "leaves": 4, "hosts_per_leaf": 4, "spines": 4, "bandwidth": 100_000_000_000_u64 }]))]
struct Params {
    /// Leaf switches.
    #[schemars(range(min = 1, max = 1024))]
    leaves: u32,
    /// Hosts of each leaf switch.
    #[schemars(range(min = 1, max = 1024))]
    hosts_per_leaf: u32,
    /// Spine switches.
    #[schemars(range(min = 1, max = 1024))]
    spines: u32,
    /// Bandwidth of every link.
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "default_latency")]
    latency: Picoseconds,
}

const fn default_latency() -> Picoseconds {
    Picoseconds::from_nanos(100)
}

impl Params {
    fn size(&self) -> Result<Size, BuildError> {
        let keys = [("leaves", self.leaves), ("hosts_per_leaf", self.hosts_per_leaf), ("spines", self.spines)];
        if let Some((key, value)) = keys.into_iter().find(|(_, value)| !(1..=1024).contains(value)) {
            return Err(BuildError::value(format!("fabric.{key}"), value, "1 to 1024"));
        }
        let [leaves, hosts, spines] = keys.map(|(_, value)| u64::from(value));
        Ok(Size::new(leaves * hosts, leaves + spines, leaves * (hosts + spines)))
    }

    fn build(&self) -> Result<Graph, BuildError> {
        let mut graph = GraphBuilder::default();
        graph.add_hosts(self.leaves * self.hosts_per_leaf);
        let leaves: Vec<_> = (0..self.leaves).map(|_| Vertex::Switch(graph.add_switch(1))).collect();
        let spines: Vec<_> = (0..self.spines).map(|_| Vertex::Switch(graph.add_switch(2))).collect();
        for (&leaf, first) in leaves.iter().zip((0..).step_by(self.hosts_per_leaf as usize)) {
            for host in (first..first + self.hosts_per_leaf).map(|host| Vertex::Host(HostId(host))) {
                graph.add_cable(host, leaf, self.bandwidth, self.latency, "host up", "host down");
            }
            for &spine in &spines {
                graph.add_cable(leaf, spine, self.bandwidth, self.latency, "leaf up", "leaf down");
            }
        }
        graph.build()
    }
}
