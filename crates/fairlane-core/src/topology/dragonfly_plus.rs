//! Dragonfly+, also called Megafly: groups of leaf and spine switches, each leaf joined with each spine of its group;
//! the spines hold the global cables (A. Shpiner et al., "Dragonfly+: low cost topology for scaling datacenters",
//! HiPINEB 2017; M. Flajslik et al., "Megafly: a topology for exascale systems", ISC 2018).
//!
//! Hosts are numbered leaf by leaf; the switches of a group are its leaves and then its spines. Ports of a leaf: hosts,
//! spines; of a spine: leaves, then global ports. Numbers and bandwidths of hosts can differ from leaf to leaf.

use std::collections::HashSet;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arrangement::Arrangement;
use super::by_leaf::{self, ByLeaf};
use super::lattice::{self, MAX_SWITCHES, Wires};
use super::leonardo;
use super::preset::{self, Preset};
use super::size::product;
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// The Dragonfly+'s line in the table.
pub const ENTRY: Entry = Entry {
    name: "dragonfly_plus",
    summary: "Dragonfly+ or Megafly: groups of leaf and spine switches, global cables between the spines",
    schema: || preset::schema(schema_for!(Params), PRESETS),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.build(),
    },
};

const PRESETS: &[Preset] = &[Preset {
    name: "leonardo",
    summary: "the 4,992 compute nodes of CINECA's Leonardo by name, in 22 cells of 18 leaves and 18 spines",
    params: leonardo::params,
}];

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
    /// Hosts of a leaf: a number, or a list by group of lists by leaf. Leaves that the list of a group omits have none.
    #[schemars(schema_with = "by_leaf::counts")]
    hosts_per_leaf: ByLeaf<u32>,
    /// Global ports of a spine.
    global_links: u32,
    /// The groups that the global cables join, and the ports. Default: palm_tree.
    #[serde(default)]
    arrangement: Arrangement,
    /// Names of the hosts, leaf by leaf. Default: host0, host1 and so on.
    #[serde(default)]
    host_names: Option<Vec<String>>,
    /// Names of leaf switches: a list by group of lists by leaf. Others have generated names.
    #[serde(default)]
    leaf_names: Option<Vec<Vec<String>>>,
    /// Expected number of hosts, as a check: groups x leaves x hosts of a leaf, or the sum over the leaves.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and leaves, or a list by group of lists by leaf. Default: `bandwidth`.
    #[serde(default)]
    #[schemars(schema_with = "by_leaf::bandwidths")]
    host_bandwidth: Option<ByLeaf<BitsPerSec>>,
    /// Bandwidth of the links between groups. Default: `bandwidth`.
    #[serde(default)]
    global_bandwidth: Option<BitsPerSec>,
    /// Latency of the links between groups. Default: `latency`.
    #[serde(default)]
    global_latency: Option<Picoseconds>,
}

/// Shapes that differ in kind: as many leaves as spines, several cables between two groups, a single group, and groups
/// that differ, with names.
fn examples() -> Value {
    json!([
        { "groups": 9, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "global_links": 2 },
        { "groups": 5, "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "global_links": 5, "arrangement": "absolute" },
        { "groups": 1, "leaves": 4, "spines": 2, "hosts_per_leaf": 3, "global_links": 0 },
        {
            "groups": 3, "leaves": 3, "spines": 2, "hosts_per_leaf": [[3, 1, 2], [2], [0, 4]], "global_links": 2,
            "host_bandwidth": [[200_000_000_000_u64], [50_000_000_000_u64], []],
            "host_names": (0..12).map(|number| format!("node{}", (7 * number) % 12)).collect::<Vec<_>>(),
            "leaf_names": [["r1l1", "r1l2"], [], ["r3l1", "r3l2", "r3l3"]],
        },
    ])
}

impl Params {
    fn build(&self) -> Result<Graph, BuildError> {
        let ports = self.check()?;
        let size = self.leaves + self.spines;
        let wires = Wires::new(self.bandwidth, self.latency, None);
        let global = Wires::new(self.global_bandwidth.unwrap_or(self.bandwidth), self.latency, None)
            .with_latency(self.global_latency);
        let mut graph = GraphBuilder::default();
        graph.add_hosts(u32::try_from(self.number_of_hosts()).unwrap_or(u32::MAX));
        let mut hosts = (0..).map(HostId);
        for group in 0..self.groups {
            for leaf in 0..self.leaves {
                let at = graph.add_switch(1);
                let given = self.host_bandwidth.as_ref().and_then(|bandwidths| bandwidths.get(group, leaf));
                let wires = Wires { host_bandwidth: given.unwrap_or(self.bandwidth), ..wires };
                let count = self.hosts_per_leaf.get(group, leaf).unwrap_or(0);
                lattice::add_hosts_of(&mut graph, at, hosts.by_ref().take(count as usize), wires);
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
        self.name(graph.build()?)
    }

    /// The fabric with the names that are given.
    fn name(&self, graph: Graph) -> Result<Graph, BuildError> {
        if self.host_names.is_none() && self.leaf_names.is_none() {
            return Ok(graph);
        }
        let hosts = self.host_names.clone().unwrap_or_else(|| graph.host_names());
        if hosts.len() != graph.hosts() {
            let allowed = format!("one for each of the {} hosts", graph.hosts());
            return Err(BuildError::value("fabric.host_names", format!("{} names", hosts.len()), allowed));
        }
        let mut switches = graph.switch_names();
        for (group, names) in self.leaf_names.iter().flatten().enumerate() {
            let first = group * (self.leaves + self.spines) as usize;
            names.iter().enumerate().for_each(|(leaf, name)| switches[first + leaf].clone_from(name));
        }
        let mut known = HashSet::new();
        for (key, name) in
            hosts.iter().map(|name| ("host_names", name)).chain(switches.iter().map(|name| ("leaf_names", name)))
        {
            if name.is_empty() || !known.insert(name) {
                let allowed = "every host and every switch has a name of its own";
                return Err(BuildError::value(format!("fabric.{key}"), format!("{name:?}"), allowed));
            }
        }
        Ok(graph.with_names(hosts, switches))
    }

    fn number_of_hosts(&self) -> u64 {
        self.hosts_per_leaf.sum(self.groups, self.leaves)
    }

    fn size(&self) -> Result<Size, BuildError> {
        let ports = self.check()?;
        let [groups, leaves, spines] = [self.groups, self.leaves, self.spines].map(u64::from);
        let hosts = self.number_of_hosts();
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
        lattice::at_least_one(&[("groups", self.groups), ("leaves", self.leaves), ("spines", self.spines)])?;
        let leaves = u64::from(self.groups) * u64::from(self.leaves);
        let switches = leaves.saturating_add(u64::from(self.groups) * u64::from(self.spines));
        if switches > MAX_SWITCHES {
            let allowed = format!("at most {MAX_SWITCHES} switches, not {switches}");
            return Err(BuildError::value("fabric.groups", self.groups, allowed));
        }
        if let ByLeaf::All(hosts) = self.hosts_per_leaf {
            lattice::at_least_one(&[("hosts_per_leaf", hosts)])?;
            lattice::check_hosts(self.hosts, leaves, hosts, "groups x leaves")?;
        } else {
            self.hosts_per_leaf.check("hosts_per_leaf", self.groups, self.leaves)?;
            let hosts = self.number_of_hosts();
            if !(1..=lattice::MAX_HOSTS).contains(&hosts) {
                let allowed = format!("1 to {} hosts in all, not {hosts}", lattice::MAX_HOSTS);
                return Err(BuildError::value("fabric.hosts_per_leaf", &self.hosts_per_leaf, allowed));
            }
            if let Some(asked) = self.hosts.filter(|asked| u64::from(*asked) != hosts) {
                let allowed = format!("the lists of hosts_per_leaf make {hosts}; give that number, or none");
                return Err(BuildError::value("fabric.hosts", asked, allowed));
            }
        }
        if let Some(bandwidths) = &self.host_bandwidth {
            bandwidths.check("host_bandwidth", self.groups, self.leaves)?;
        }
        if let Some(names) = &self.leaf_names {
            by_leaf::check("leaf_names", names, self.groups, self.leaves)?;
        }
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

    fn differing(changes: &Value) -> Result<Graph, BuildError> {
        let mut params = examples().as_array().unwrap().last().unwrap().clone();
        params.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        crate::topology::build("dragonfly_plus", &params)
    }

    #[test]
    fn leaves_differ_as_the_lists_say() {
        let graph = differing(&json!({})).unwrap();
        let hosts = |switch: u32| {
            let ports = graph.ports(Vertex::Switch(SwitchId(switch)));
            ports.filter(|link| graph.role(*link) == LinkRole::Host).map(|link| graph.link(link)).collect::<Vec<_>>()
        };
        let counts: Vec<usize> = (0..15).map(|switch| hosts(switch).len()).collect();
        assert_eq!(counts, [3, 1, 2, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
        let speeds = [0, 1, 5, 11].map(|switch| hosts(switch)[0].bandwidth.0 / 1_000_000_000);
        assert_eq!(speeds, [200, 100, 50, 100]);
        assert_eq!(
            [0, 1, 2, 3, 5, 12].map(|at| graph.switch_name(SwitchId(at))),
            ["r1l1", "r1l2", "group0-leaf2", "group0-spine0", "group1-leaf0", "r3l3"]
        );
        assert_eq!(graph.host_names()[..3], ["node0", "node7", "node2"]);
    }

    #[test]
    fn wrong_lists_are_named() {
        for (changes, expected) in [
            (json!({ "hosts_per_leaf": [[3], [9]] }), "fabric.hosts_per_leaf = 2 lists: one for each of the 3 groups"),
            (
                json!({ "hosts_per_leaf": [[3], [9], [1, 1, 1, 1]] }),
                "hosts_per_leaf[2] = 4 values: at most one for each of the 3 leaves",
            ),
            (json!({ "hosts_per_leaf": [[], [0], []] }), "1 to 4194304 hosts in all, not 0"),
            (json!({ "hosts": 13 }), "fabric.hosts = 13: the lists of hosts_per_leaf make 12"),
            (json!({ "host_bandwidth": [[1]] }), "fabric.host_bandwidth = 1 lists: one for each of the 3 groups"),
            (json!({ "host_names": ["a"] }), "fabric.host_names = 1 names: one for each of the 12 hosts"),
            (json!({ "leaf_names": [["a", "a"], [], []] }), "fabric.leaf_names = \"a\": every host and every switch"),
            (json!({ "leaf_names": [["node3"], [], []] }), "fabric.leaf_names = \"node3\""),
        ] {
            let message = differing(&changes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
