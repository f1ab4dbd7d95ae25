//! Cray Cascade (XC30): a dragonfly whose groups are grids of switches, all joined along each row by green links and
//! along each column by black ones; blue links in bundles join the groups (G. Faanes et al., "Cray Cascade: a scalable
//! HPC system based on a dragonfly network", SC 2012).
//!
//! A bundle of blue links ends at a pair of neighbouring switches of the group and is shared out between the two.
//! Bundles are assigned to all pairs round-robin, so that those to one group end far apart, or row by row, so that every
//! row of switches, a chassis, has a bundle to each other group; Edison was cabled so.
//!
//! Hosts are numbered switch by switch, switches row by row and group by group. Ports of a switch: hosts, green, black,
//! blue.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arrangement::{Arrangement, End};
use super::lattice::{self, MAX_SWITCHES, Wires};
use super::preset::{self, Preset};
use super::size::{pairs, product};
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// Cascade's line in the table.
pub const ENTRY: Entry = Entry {
    name: "cascade",
    summary: "Cray Cascade (XC30): a dragonfly whose groups are grids of switches",
    schema: || preset::schema(schema_for!(Params), PRESETS),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.build(),
    },
};

const PRESETS: &[Preset] = &[
    Preset {
        name: "edison",
        summary: "NERSC's Edison: 15 groups of 16 x 6 switches, 4 hosts each, six four-link bundles between two groups",
        params: || json!({ "groups": 15, "bundles": 6 }),
    },
    Preset {
        name: "edison-cabling",
        summary: "Edison with its real blue cabling: a bundle between two groups in each row, in order of groups",
        params: || json!({ "groups": 15, "bundles": 6, "bundles_by": "row", "arrangement": "absolute" }),
    },
];

/// How the bundles of a group are distributed over its pairs of neighbouring switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BundlesBy {
    /// Round-robin over all pairs of the group.
    #[default]
    Group,
    /// Row by row: one bundle to each other group over the pairs of the first row, round-robin, the next over those of the
    /// second, and so on.
    Row,
}

/// A dragonfly whose groups are grids of switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Number of groups.
    #[schemars(range(min = 1))]
    groups: u32,
    /// Switches of a row, joined all to all by green links: the blades of a chassis. Default: 16.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 1))]
    columns: u32,
    /// Rows of a group: switches of one column are joined all to all by black links. Default: 6.
    #[serde(default = "six")]
    #[schemars(range(min = 1))]
    rows: u32,
    /// Hosts of a switch. Default: 4.
    #[serde(default = "four")]
    #[schemars(range(min = 1))]
    hosts_per_switch: u32,
    /// Black links between two switches of a column. Default: 3.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    black: u32,
    /// Bundles of blue links between two groups. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    bundles: u32,
    /// Links of a bundle. Default: 4.
    #[serde(default = "four")]
    #[schemars(range(min = 1))]
    bundle_links: u32,
    /// Blue ports of a switch, which are at least as many as are used. Default: 10.
    #[serde(default = "ten")]
    blue_ports: u32,
    /// How a group's bundles are distributed over its pairs of neighbouring switches. Default: group.
    #[serde(default)]
    bundles_by: BundlesBy,
    /// Order in which a group's bundles lead to the other groups. Default: palm_tree.
    #[serde(default)]
    arrangement: Arrangement,
    /// Expected number of hosts, as a check: groups x columns x rows x hosts of a switch.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of green and black links. Default: 42 Gb/s (5.25 GB/s).
    #[serde(default = "electrical")]
    bandwidth: BitsPerSec,
    /// Bandwidth of blue links. Default: 37.5 Gb/s (4.69 GB/s).
    #[serde(default = "optical")]
    global_bandwidth: BitsPerSec,
    /// Bandwidth of the links between hosts and switches. Default: 80 Gb/s.
    #[serde(default = "injection")]
    host_bandwidth: BitsPerSec,
    /// Latency of links within a group. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Latency of blue links. Default: `latency`.
    #[serde(default)]
    global_latency: Option<Picoseconds>,
}

const fn one() -> u32 {
    1
}
const fn three() -> u32 {
    3
}
const fn four() -> u32 {
    4
}
const fn six() -> u32 {
    6
}
const fn ten() -> u32 {
    10
}
const fn sixteen() -> u32 {
    16
}
const fn electrical() -> BitsPerSec {
    BitsPerSec(42_000_000_000)
}
const fn optical() -> BitsPerSec {
    BitsPerSec(37_500_000_000)
}
const fn injection() -> BitsPerSec {
    BitsPerSec(80_000_000_000)
}

/// Shapes that differ in kind: small, odd, and one real group by itself.
fn examples() -> Value {
    json!([
        { "groups": 4, "columns": 4, "rows": 3, "hosts_per_switch": 2 },
        { "groups": 5, "columns": 3, "rows": 3, "hosts_per_switch": 1, "bundles": 2, "bundle_links": 3, "black": 1 },
        { "groups": 1 },
        { "groups": 4, "columns": 3, "rows": 2, "hosts_per_switch": 1, "bundles": 3, "bundle_links": 2, "bundles_by": "row" },
    ])
}

impl Params {
    fn build(&self) -> Result<Graph, BuildError> {
        self.check()?;
        let size = self.columns * self.rows;
        let wires = Wires::new(self.bandwidth, self.latency, Some(self.host_bandwidth));
        let blue = Wires::new(self.global_bandwidth, self.latency, None).with_latency(self.global_latency);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, self.groups * size, self.hosts_per_switch, wires);
        for group in 0..self.groups {
            let at = |place: u32| Vertex::Switch(SwitchId(group * size + place));
            for place in 0..size {
                let row_end = (place / self.columns + 1) * self.columns;
                (place + 1..row_end).for_each(|other| wires.join(&mut graph, at(place), at(other), "green"));
            }
            for place in 0..size {
                for other in (place + self.columns..size).step_by(self.columns as usize) {
                    (0..self.black).for_each(|_| wires.join(&mut graph, at(place), at(other), "black"));
                }
            }
        }
        for ends in self.arrangement.cables(self.groups, self.bundles * (self.groups - 1)) {
            for link in 0..self.bundle_links {
                let [a, b] = ends.map(|end| Vertex::Switch(self.bundle_end(end, link)));
                blue.join(&mut graph, a, b, "blue");
            }
        }
        graph.set_layout(Layout::Groups { switches: size, row: self.columns });
        graph.build()
    }

    fn size(&self) -> Result<Size, BuildError> {
        self.check()?;
        let [groups, columns, rows, black] = [self.groups, self.columns, self.rows, self.black].map(u64::from);
        let switches = product([groups, columns, rows]);
        let hosts = product([switches, self.hosts_per_switch.into()]);
        let green = product([groups, rows, pairs(columns)]);
        let black = product([groups, columns, pairs(rows), black]);
        let ports = self.bundles.saturating_mul(self.groups - 1);
        let blue = product([self.arrangement.number(self.groups, ports), self.bundle_links.into()]);
        Size::of(
            hosts,
            switches,
            [
                ("hosts_per_switch", self.hosts_per_switch.to_string(), hosts),
                ("columns", self.columns.to_string(), green),
                ("black", self.black.to_string(), black),
                ("bundles", self.bundles.to_string(), blue),
            ],
        )
    }

    /// The switch at which a link of a bundle ends.
    fn bundle_end(&self, end: End, link: u32) -> SwitchId {
        let size = self.columns * self.rows;
        let (first, port, width) = match self.bundles_by {
            BundlesBy::Group => (0, end.port, size),
            BundlesBy::Row => {
                let (round, port) = (end.port / (self.groups - 1), end.port % (self.groups - 1));
                // The rounds of one row follow each other.
                (round % self.rows * self.columns, port + round / self.rows * (self.groups - 1), self.columns)
            }
        };
        let place = port % width.div_ceil(2) * 2 + link % 2;
        SwitchId(end.group * size + first + place.min(width - 1))
    }

    /// The most blue ports that a switch uses.
    fn used_ports(&self) -> u64 {
        let (bundles, links) = (u64::from(self.bundles), u64::from(self.bundle_links));
        let (width, rounds) = match self.bundles_by {
            BundlesBy::Group => (u64::from(self.columns) * u64::from(self.rows), bundles),
            BundlesBy::Row => (u64::from(self.columns), bundles.div_ceil(u64::from(self.rows))),
        };
        // The share of a bundle that the busier switch of a pair has; a last switch without a partner has all of it.
        let share = if width % 2 == 1 { links } else { links.div_ceil(2) };
        product([rounds, (self.groups - 1).into()]).div_ceil(width.div_ceil(2)).saturating_mul(share)
    }

    fn check(&self) -> Result<(), BuildError> {
        lattice::at_least_one(&[
            ("groups", self.groups),
            ("columns", self.columns),
            ("rows", self.rows),
            ("hosts_per_switch", self.hosts_per_switch),
            ("black", self.black),
            ("bundles", self.bundles),
            ("bundle_links", self.bundle_links),
        ])?;
        let size = u64::from(self.columns) * u64::from(self.rows);
        let switches = size.saturating_mul(u64::from(self.groups));
        if switches > MAX_SWITCHES {
            let allowed = format!("at most {MAX_SWITCHES} switches, not {switches}");
            return Err(BuildError::value("fabric.groups", self.groups, allowed));
        }
        lattice::check_hosts(self.hosts, switches, self.hosts_per_switch, "groups x columns x rows")?;
        let bundles = u64::from(self.bundles) * u64::from(self.groups - 1);
        let links = u64::from(self.bundle_links);
        let used = self.used_ports();
        if used > u64::from(self.blue_ports) {
            let allowed = format!(
                "at least {used}: {bundles} bundles of {links} links end at the {size} switches of a group; or fewer \
                 groups or bundles"
            );
            return Err(BuildError::value("fabric.blue_ports", self.blue_ports, allowed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;
    use crate::topology::LinkRole;

    fn build(params: Value) -> Graph {
        crate::topology::build("cascade", &params).unwrap()
    }

    fn class(graph: &Graph, name: &str) -> usize {
        graph.links().iter().filter(|link| graph.classes()[usize::from(link.class)] == name).count()
    }

    #[test]
    fn edison_has_the_links_and_the_global_bandwidth_of_the_paper() {
        let graph = build(json!({ "preset": "edison" }));
        assert_eq!((graph.hosts(), graph.switches()), (5760, 1440));
        assert_eq!(class(&graph, "green"), 1440 * 15);
        assert_eq!(class(&graph, "black"), 1440 * 5 * 3);
        assert_eq!(class(&graph, "blue"), 15 * 14 * 24);
        // "23 TB/s global bandwidth", both directions of all blue links.
        let global: u64 =
            graph.links().iter().filter(|link| link.bandwidth == optical()).map(|link| link.bandwidth.0).sum();
        assert_eq!(global / 8 / 1_000_000_000_000, 23);
        // 48 ports, 8 of them for the four hosts, whose two ports each are one link here.
        for switch in (0..1440).map(SwitchId) {
            assert!(graph.ports(Vertex::Switch(switch)).len() <= 44, "switch {switch}");
        }
    }

    #[test]
    fn bundles_to_one_group_end_at_pairs_that_lie_apart() {
        let graph = build(json!({ "preset": "edison" }));
        let blue = (0..).map(LinkId).take(graph.links().len()).filter(|link| graph.role(*link) == LinkRole::Global);
        let ends = blue.filter_map(|link| match (graph.link(link).from, graph.link(link).to) {
            (Vertex::Switch(from), Vertex::Switch(to)) if from.0 < 96 && to.0 / 96 == 1 => Some(from.0 / 2),
            _ => None,
        });
        let mut pairs: Vec<u32> = ends.collect();
        pairs.sort_unstable();
        assert_eq!(pairs.len(), 24);
        pairs.dedup();
        assert_eq!(pairs.len(), 6);
    }

    #[test]
    fn row_by_row_every_row_has_a_bundle_to_each_other_group() {
        let graph = build(json!({ "preset": "edison-cabling" }));
        assert_eq!(class(&graph, "blue"), 15 * 14 * 24);
        let mut bundles = std::collections::BTreeMap::new();
        let mut ports = vec![0; graph.switches()];
        for link in (0..).map(LinkId).take(graph.links().len()).filter(|link| graph.role(*link) == LinkRole::Global) {
            let (Vertex::Switch(from), Vertex::Switch(to)) = (graph.link(link).from, graph.link(link).to) else {
                panic!("global links are between switches")
            };
            assert_eq!(from.0 % 2, to.0 % 2, "a bundle joins switches of one side of their pairs");
            *bundles.entry((from.0 / 16, from.0 % 16 / 2, to.0 / 16, to.0 % 16 / 2)).or_insert(0) += 1;
            ports[from.index()] += 1;
        }
        // Rows are numbered through: the same row of both groups, the pair by the order of the other groups.
        assert!(bundles.values().all(|links| *links == 4));
        for &(from, near, to, far) in bundles.keys() {
            let place = |own: u32, other: u32| (if other < own { other } else { other - 1 }) % 8;
            assert_eq!(from % 6, to % 6);
            assert_eq!((near, far), (place(from / 6, to / 6), place(to / 6, from / 6)));
        }
        assert_eq!(bundles.len(), 15 * 14 * 6);
        assert_eq!([2, 4].map(|used| ports.iter().filter(|ports| **ports == used).count()), [360, 1080]);
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (params, expected) in [
            (json!({ "groups": 200, "bundles": 6 }), "fabric.blue_ports = 10: at least 50: 1194 bundles of 4 links"),
            (
                json!({ "groups": 42, "bundles": 6, "bundles_by": "row" }),
                "fabric.blue_ports = 10: at least 12: 246 bundles of 4 links",
            ),
            (json!({ "groups": 2, "rows": 0 }), "fabric.rows = 0: at least 1"),
            (json!({ "preset": "edison", "hosts": 5576 }), "fabric.hosts = 5576: groups x columns x rows x"),
            (json!({ "preset": "edson" }), "did you mean \"edison\"?"),
        ] {
            let message = crate::topology::build("cascade", &params).unwrap_err().to_string();
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
