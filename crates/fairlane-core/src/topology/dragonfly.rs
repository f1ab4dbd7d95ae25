//! Dragonflies: groups of switches joined all to all, and global cables between all groups (J. Kim et al.,
//! "Technology-driven, highly-scalable dragonfly topology", ISCA 2008).
//!
//! Hosts are numbered switch by switch, switches group by group. Ports of a switch: hosts, then the other switches of
//! the group, then its share of the group's global ports.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arrangement::Arrangement;
use super::lattice::{self, MAX_SWITCHES, Wires};
use super::preset::{self, Preset};
use super::size::{pairs, product};
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// The dragonfly's line in the table.
pub const ENTRY: Entry = Entry {
    name: "dragonfly",
    summary: "groups of switches joined all to all, and global cables between all groups",
    schema: || preset::schema(schema_for!(Params), PRESETS),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.build(),
    },
};

const PRESETS: &[Preset] = &[
    Preset {
        name: "lumi",
        summary: "LUMI-G's 10,240 endpoints on Slingshot-11: 20 groups of 32 switches, 16 endpoints each",
        // Published: 20 groups of 128 nodes, 32 switches of a group joined all to all, 16 endpoints of 200 Gb/s a switch, the
        // four endpoints of a node at different switches (docs.lumi-supercomputer.eu/hardware/network); switches of 64
        // ports, 48 of them for other switches; 276 TB/s between the nodes of LUMI-G, in both directions. Assumed: one cable
        // between two switches of a group, and all 17 ports that are left for other groups: 28 cables between two groups,
        // 266 TB/s. Latencies are the defaults. LUMI-C, storage and service groups are left out.
        params: || {
            json!({ "groups": 20, "switches_per_group": 32, "hosts_per_switch": 16, "global_links": 17,
                    "bandwidth": 200_000_000_000_u64 })
        },
    },
    Preset {
        name: "wilke2020",
        summary: "512 switches of 64 ports in 16 groups of 32, 16 hosts each (Wilke and Kenny, IPDPS 2020)",
        // A circulant arrangement uses all 512 global ports of a group, so every switch reaches every other group.
        params: || {
            json!({ "groups": 16, "switches_per_group": 32, "hosts_per_switch": 16, "global_links": 16,
                    "arrangement": "circulant" })
        },
    },
];

/// Groups of switches joined all to all, and global cables between all groups.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Number of groups, at most one more than the global ports of a group.
    #[schemars(range(min = 1))]
    groups: u32,
    /// Switches of a group ("a" in the literature), each joined to all others.
    #[schemars(range(min = 1))]
    switches_per_group: u32,
    /// Hosts of a switch ("p").
    #[schemars(range(min = 1))]
    hosts_per_switch: u32,
    /// Global ports of a switch ("h").
    global_links: u32,
    /// The groups that the global cables join, and the ports. Default: palm_tree.
    #[serde(default)]
    arrangement: Arrangement,
    /// Expected number of hosts, as a check: groups x switches x hosts of a switch.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and switches. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
    /// Bandwidth of the links between groups. Default: `bandwidth`.
    #[serde(default)]
    global_bandwidth: Option<BitsPerSec>,
    /// Latency of the links between groups. Default: `latency`.
    #[serde(default)]
    global_latency: Option<Picoseconds>,
}

/// Shapes that differ in kind: several cables between two groups, one, spare ports, a single group.
fn examples() -> Value {
    json!([
        { "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 },
        { "groups": 33, "switches_per_group": 8, "hosts_per_switch": 4, "global_links": 4, "arrangement": "absolute" },
        { "groups": 4, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 3, "arrangement": "relative" },
        { "groups": 4, "switches_per_group": 5, "hosts_per_switch": 1, "global_links": 1, "arrangement": "circulant" },
        { "groups": 1, "switches_per_group": 5, "hosts_per_switch": 3, "global_links": 0 },
    ])
}

impl Params {
    fn build(&self) -> Result<Graph, BuildError> {
        let ports = self.check()?;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let global = Wires::new(self.global_bandwidth.unwrap_or(self.bandwidth), self.latency, None)
            .with_latency(self.global_latency);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, self.groups * self.switches_per_group, self.hosts_per_switch, wires);
        for group in 0..self.groups {
            for a in 0..self.switches_per_group {
                for b in a + 1..self.switches_per_group {
                    wires.join(&mut graph, self.switch(group, a), self.switch(group, b), "local");
                }
            }
        }
        for [a, b] in self.arrangement.cables(self.groups, ports) {
            let [a, b] = [a, b].map(|end| self.switch(end.group, end.port / self.global_links));
            global.join(&mut graph, a, b, "global");
        }
        graph.set_layout(Layout::Groups { switches: self.switches_per_group, row: self.switches_per_group });
        graph.build()
    }

    fn size(&self) -> Result<Size, BuildError> {
        let ports = self.check()?;
        let [groups, of_group, per_switch] =
            [self.groups, self.switches_per_group, self.hosts_per_switch].map(u64::from);
        let switches = product([groups, of_group]);
        let hosts = product([switches, per_switch]);
        let local = product([groups, pairs(of_group)]);
        Size::of(
            hosts,
            switches,
            [
                ("hosts_per_switch", self.hosts_per_switch.to_string(), hosts),
                ("switches_per_group", self.switches_per_group.to_string(), local),
                ("global_links", self.global_links.to_string(), self.arrangement.number(self.groups, ports)),
            ],
        )
    }

    /// The global ports of a group, if all is in order.
    fn check(&self) -> Result<u32, BuildError> {
        lattice::at_least_one(&[
            ("groups", self.groups),
            ("switches_per_group", self.switches_per_group),
            ("hosts_per_switch", self.hosts_per_switch),
        ])?;
        let switches = u64::from(self.groups) * u64::from(self.switches_per_group);
        if switches > MAX_SWITCHES {
            let allowed = format!("at most {MAX_SWITCHES} switches, not {switches}");
            return Err(BuildError::value("fabric.groups", self.groups, allowed));
        }
        lattice::check_hosts(self.hosts, switches, self.hosts_per_switch, "groups x switches_per_group")?;
        lattice::group_ports(self.groups, self.switches_per_group, self.global_links, "switches")
    }

    fn switch(&self, group: u32, number: u32) -> Vertex {
        Vertex::Switch(SwitchId(group * self.switches_per_group + number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HostId;
    use crate::topology::LinkRole;

    fn build(params: Value) -> Graph {
        crate::topology::build("dragonfly", &params).unwrap()
    }

    fn error(params: Value) -> String {
        crate::topology::build("dragonfly", &params).unwrap_err().to_string()
    }

    fn links(graph: &Graph, role: LinkRole) -> usize {
        (0..).map(crate::ids::LinkId).take(graph.links().len()).filter(|link| graph.role(*link) == role).count()
    }

    #[test]
    fn the_system_of_the_paper_has_its_ports_and_every_switch_reaches_every_group() {
        let graph = build(json!({ "preset": "wilke2020" }));
        assert_eq!((graph.hosts(), graph.switches()), (8192, 512));
        assert_eq!(links(&graph, LinkRole::Host), 2 * 8192);
        assert_eq!(links(&graph, LinkRole::Local), 512 * 31);
        assert_eq!(links(&graph, LinkRole::Global), 512 * 16);
        for switch in (0..512).map(SwitchId) {
            let far = graph.ports(Vertex::Switch(switch)).filter_map(|link| match graph.link(link).to {
                Vertex::Switch(to) if graph.role(link) == LinkRole::Global => Some(to.0 / 32),
                _ => None,
            });
            let far: std::collections::BTreeSet<u32> = far.collect();
            assert_eq!(far.len(), 15, "switch {switch}");
        }
    }

    #[test]
    fn a_preset_can_be_changed() {
        let graph = build(json!({ "preset": "wilke2020", "groups": 2, "hosts_per_switch": 1 }));
        assert_eq!((graph.hosts(), graph.switches()), (64, 64));
    }

    #[test]
    fn hosts_are_numbered_switch_by_switch() {
        let graph = build(json!({ "groups": 3, "switches_per_group": 2, "hosts_per_switch": 3, "global_links": 1 }));
        let at = |host| graph.link(graph.ports(Vertex::Host(HostId(host))).next().unwrap()).to;
        assert_eq!([0, 2, 3, 17].map(at), [0, 0, 1, 5].map(|switch| Vertex::Switch(SwitchId(switch))));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let base = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
        for (key, value, expected) in [
            ("groups", json!(10), "fabric.groups = 10: at most 9: a group has 4 switches x 2 global_links"),
            ("groups", json!(0), "fabric.groups = 0: at least 1"),
            ("hosts", json!(73), "fabric.hosts = 73: groups x switches_per_group x hosts_per_switch is 72"),
            ("arrangement", json!("palmtree"), "unknown variant `palmtree`, expected one of `palm_tree`, `relative`"),
            ("preset", json!("wilke"), "unknown preset \"wilke\"; allowed: lumi, wilke2020"),
            ("global_bandwidth", json!(0), "fabric.bandwidth = 0"),
        ] {
            let mut params = base.clone();
            params[key] = value;
            let message = error(params);
            assert!(message.contains(expected), "{message}");
        }
    }
}
