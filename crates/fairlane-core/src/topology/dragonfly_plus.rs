//! Dragonfly+, also called Megafly: groups of leaf and spine switches, each leaf joined with each spine of its group;
//! the spines hold the global cables (A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters",
//! HiPINEB 2017; M. Flajslik et al., "Megafly: a topology for exascale systems", ISC 2018).
//!
//! Hosts are numbered leaf by leaf; the switches of a group are its leaves and then its spines. Ports of a leaf: hosts,
//! spines; of a spine: leaves, then global ports.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arrangement::Arrangement;
use super::lattice::{self, MAX_SWITCHES, Wires};
use super::size::product;
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// The Dragonfly+'s line in the table.
pub const ENTRY: Entry = Entry {
    name: "dragonfly_plus",
    summary: "Dragonfly+ or Megafly: groups of leaf and spine switches, global cables between the spines",
    schema: || schema_for!(Params),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", json)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", json)?.build(),
    },
};

/// Groups of leaf and spine switches, and global cables between the spines.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Number of groups, at most one more than the global ports of a group.
    #[schemars(range(min = 1))]
    groups: u32,
    /// Leaf switches of a group.
    #[schemars(range(min = 1))]
    leaves: u32,
    /// Spine switches of a group, each joined with each leaf.
    #[schemars(range(min = 1))]
    spines: u32,
    /// Hosts of a leaf.
    #[schemars(range(min = 1))]
    hosts_per_leaf: u32,
    /// Global ports of a spine.
    global_links: u32,
    /// Which groups the global cables join, and at which ports. Default: palm_tree.
    #[serde(default)]
    arrangement: Arrangement,
    /// Expected number of hosts, as a check: groups x leaves x hosts of a leaf.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and leaves. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
    /// Bandwidth of the links between groups. Default: `bandwidth`.
    #[serde(default)]
    global_bandwidth: Option<BitsPerSec>,
    /// Latency of the links between groups. Default: `latency`.
    #[serde(default)]
    global_latency: Option<Picoseconds>,
}

/// Shapes that differ in kind: as many leaves as spines, several cables between two groups, a single group.
fn examples() -> Value {
    json!([
        { "groups": 9, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "global_links": 2 },
        { "groups": 5, "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "global_links": 5, "arrangement": "absolute" },
        { "groups": 1, "leaves": 4, "spines": 2, "hosts_per_leaf": 3, "global_links": 0 },
    ])
}

impl Params {
    fn build(&self) -> Result<Graph, BuildError> {
        let ports = self.check()?;
        let size = self.leaves + self.spines;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let global = Wires::new(self.global_bandwidth.unwrap_or(self.bandwidth), self.latency, None)
            .with_latency(self.global_latency);
        let mut graph = GraphBuilder::default();
        graph.add_hosts(self.groups * self.leaves * self.hosts_per_leaf);
        let mut hosts = (0..).map(HostId);
        for group in 0..self.groups {
            for _ in 0..self.leaves {
                let leaf = graph.add_switch(1);
                lattice::add_hosts_of(&mut graph, leaf, hosts.by_ref().take(self.hosts_per_leaf as usize), wires);
            }
            (0..self.spines).for_each(|_| _ = graph.add_switch(2));
            let at = |place: u32| Vertex::Switch(SwitchId(group * size + place));
            for leaf in 0..self.leaves {
                for spine in self.leaves..size {
                    wires.rise(&mut graph, at(leaf), at(spine), "leaf up", "leaf down");
                }
            }
        }
        for ends in self.arrangement.cables(self.groups, ports) {
            let [a, b] = ends.map(|end| SwitchId(end.group * size + self.leaves + end.port / self.global_links));
            global.join(&mut graph, Vertex::Switch(a), Vertex::Switch(b), "global");
        }
        graph.set_layout(Layout::Groups { switches: size, row: size });
        graph.build()
    }

    fn size(&self) -> Result<Size, BuildError> {
        let ports = self.check()?;
        let [groups, leaves, spines, per_leaf] =
            [self.groups, self.leaves, self.spines, self.hosts_per_leaf].map(u64::from);
        let hosts = product([groups, leaves, per_leaf]);
        let local = product([groups, leaves, spines]);
        Size::of(
            hosts,
            product([groups, leaves + spines]),
            [
                ("hosts_per_leaf", self.hosts_per_leaf.to_string(), hosts),
                ("spines", self.spines.to_string(), local),
                ("global_links", self.global_links.to_string(), self.arrangement.number(self.groups, ports)),
            ],
        )
    }

    /// The global ports of a group, if all is in order.
    fn check(&self) -> Result<u32, BuildError> {
        lattice::at_least_one(&[
            ("groups", self.groups),
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("hosts_per_leaf", self.hosts_per_leaf),
        ])?;
        let leaves = u64::from(self.groups) * u64::from(self.leaves);
        let switches = leaves.saturating_add(u64::from(self.groups) * u64::from(self.spines));
        if switches > MAX_SWITCHES {
            let allowed = format!("at most {MAX_SWITCHES} switches, not {switches}");
            return Err(BuildError::value("fabric.groups", self.groups, allowed));
        }
        lattice::check_hosts(self.hosts, leaves, self.hosts_per_leaf, "groups x leaves")?;
        lattice::group_ports(self.groups, self.spines, self.global_links, "spines")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;
    use crate::topology::LinkRole;

    #[test]
    fn leaves_have_hosts_and_spines_have_global_links() {
        let params = json!({ "groups": 9, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "global_links": 2 });
        let graph = crate::topology::build("dragonfly_plus", &params).unwrap();
        assert_eq!((graph.hosts(), graph.switches()), (144, 72));
        let count = |role| (0..).map(LinkId).take(graph.links().len()).filter(|link| graph.role(*link) == role).count();
        let expected = [
            (LinkRole::Host, 288),
            (LinkRole::Up, 144),
            (LinkRole::Down, 144),
            (LinkRole::Global, 72),
            (LinkRole::Local, 0),
        ];
        for (role, links) in expected {
            assert_eq!(count(role), links, "{role}");
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let params = json!({ "groups": 10, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "global_links": 2 });
        let message = crate::topology::build("dragonfly_plus", &params).unwrap_err().to_string();
        assert!(message.contains("fabric.groups = 10: at most 9: a group has 4 spines x 2 global_links"), "{message}");
    }
}
