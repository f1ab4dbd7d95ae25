//! Tori and meshes of any dimensions.
//!
//! Every switch has a neighbour on either side along each dimension; a side of 2 in a torus has two cables, one for
//! each direction. Coordinates are the digits of a switch's number, those of dimension 0 counting fastest; hosts are
//! numbered switch by switch. Ports of a switch: hosts, then by dimension to the next and to the previous switch.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lattice::{self, Wires};
use super::layout::{Grid, LineCabling};
use super::preset::{self, Preset};
use super::size::product;
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// The torus's line in the table.
pub const ENTRY: Entry = Entry {
    name: "torus",
    summary: "torus or mesh of any dimensions and sides",
    schema: || preset::schema(schema_for!(Params), PRESETS),
    build: Build {
        routing: "dimension_order",
        size: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.build(),
    },
};

/// 2 GiB/s.
const LINK: u64 = 2 * 8 * (1 << 30);

// Of X. Yang et al., "Study of intra- and interjob interference on torus networks", ICPADS 2016. The host and its
// switch are one node there: its link is as fast as all others together.
const PRESETS: &[Preset] = &[
    Preset {
        name: "yang2016-3d",
        summary: "16 x 16 x 8 nodes, 2 GiB/s a link (Yang et al., ICPADS 2016)",
        params: || json!({ "sides": [16, 16, 8], "bandwidth": LINK, "host_bandwidth": 6 * LINK }),
    },
    Preset {
        name: "yang2016-5d",
        summary: "8 x 4 x 4 x 4 x 4 nodes, 2 GiB/s a link",
        params: || json!({ "sides": [8, 4, 4, 4, 4], "bandwidth": LINK, "host_bandwidth": 10 * LINK }),
    },
    Preset {
        name: "yang2016-7d",
        summary: "4 x 4 x 4 x 4 x 2 x 2 x 2 nodes, 2 GiB/s a link",
        params: || json!({ "sides": [4, 4, 4, 4, 2, 2, 2], "bandwidth": LINK, "host_bandwidth": 14 * LINK }),
    },
];

/// A torus or mesh of any dimensions and sides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Switches along each dimension, up to 16 dimensions.
    sides: Vec<u32>,
    /// Hosts of a switch. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    hosts_per_switch: u32,
    /// Whether it is a mesh: without the wraparound cables of a torus. Default: false.
    #[serde(default)]
    mesh: bool,
    /// Expected number of hosts, as a check: the product of the sides x hosts of a switch.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Bandwidth of the links along each dimension. Default: `bandwidth`.
    #[serde(default)]
    bandwidths: Option<Vec<BitsPerSec>>,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and switches. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
}

const fn one() -> u32 {
    1
}

/// Shapes that differ in kind: long and short rings, several hosts, a mesh, a line.
fn examples() -> Value {
    json!([
        { "sides": [4, 4, 4] },
        { "sides": [5, 3, 2], "hosts_per_switch": 2, "bandwidths": [25_000_000_000_u64, 25_000_000_000_u64, 50_000_000_000_u64] },
        { "sides": [6, 5], "mesh": true },
        { "sides": [9] },
        { "sides": [2, 1, 2], "mesh": true },
    ])
}

impl Params {
    fn size(&self) -> Result<Size, BuildError> {
        lattice::at_least_one(&[("hosts_per_switch", self.hosts_per_switch)])?;
        let switches = u64::from(lattice::product(&self.sides)?);
        let hosts = product([switches, self.hosts_per_switch.into()]);
        let along = |side: &u32| match u64::from(*side) {
            1 => 0,
            side if self.mesh => switches / side * (side - 1),
            _ => switches,
        };
        let cables = self.sides.iter().map(along).sum();
        Size::of(
            hosts,
            switches,
            [
                ("hosts_per_switch", self.hosts_per_switch.to_string(), hosts),
                ("sides", format!("{:?}", self.sides), cables),
            ],
        )
    }

    fn build(&self) -> Result<Graph, BuildError> {
        lattice::at_least_one(&[("hosts_per_switch", self.hosts_per_switch)])?;
        let switches = lattice::product(&self.sides)?;
        lattice::check_hosts(self.hosts, u64::from(switches), self.hosts_per_switch, "the product of the sides")?;
        let bandwidths = lattice::by_dimension("bandwidths", self.bandwidths.as_deref(), self.bandwidth, &self.sides)?;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, switches, self.hosts_per_switch, wires);
        let mut stride = 1;
        for (number, (&side, bandwidth)) in self.sides.iter().zip(bandwidths).enumerate() {
            let (wires, class) = (Wires { bandwidth, ..wires }, format!("dimension {number}"));
            for at in (0..switches).filter(|_| side > 1) {
                let here = at / stride % side;
                if here + 1 < side || !self.mesh {
                    let next = at - here * stride + (here + 1) % side * stride;
                    let [a, b] = [at, next].map(|switch| Vertex::Switch(SwitchId(switch)));
                    wires.join(&mut graph, a, b, &class);
                }
            }
            stride *= side;
        }
        let line = if self.mesh { LineCabling::Open } else { LineCabling::Ring };
        graph.set_layout(Layout::Grid(Grid { sides: self.sides.clone(), line }));
        graph.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;
    use crate::topology::LinkRole;

    fn build(params: Value) -> Graph {
        crate::topology::build("torus", &params).unwrap()
    }

    fn error(params: Value) -> String {
        crate::topology::build("torus", &params).unwrap_err().to_string()
    }

    #[test]
    fn every_node_of_a_torus_has_two_links_a_dimension() {
        for (name, dimensions) in [("yang2016-3d", 3), ("yang2016-5d", 5), ("yang2016-7d", 7)] {
            let graph = build(json!({ "preset": name }));
            assert_eq!((graph.hosts(), graph.switches()), (2048, 2048), "{name}");
            for switch in (0..2048).map(SwitchId) {
                let roles: Vec<LinkRole> =
                    graph.ports(Vertex::Switch(switch)).map(|link| graph.role(link)).skip(1).collect();
                assert_eq!(roles.len(), 2 * dimensions, "{name}");
                for number in 0..u8::try_from(dimensions).unwrap() {
                    assert_eq!(roles.iter().filter(|role| **role == LinkRole::Dimension(number)).count(), 2, "{name}");
                }
            }
        }
    }

    #[test]
    fn a_mesh_has_edges() {
        let graph = build(json!({ "sides": [6, 5], "mesh": true }));
        // 5 x 5 cables along dimension 0, 6 x 4 along dimension 1, and 30 to hosts.
        assert_eq!(graph.links().len(), 2 * (25 + 24 + 30));
    }

    #[test]
    fn dimensions_have_bandwidths_of_their_own() {
        let graph = build(json!({ "sides": [3, 3], "bandwidths": [7, 9], "bandwidth": 5 }));
        for link in (0..).map(LinkId).take(graph.links().len()) {
            let expected = match graph.role(link) {
                LinkRole::Dimension(0) => 7,
                LinkRole::Dimension(_) => 9,
                _ => 5,
            };
            assert_eq!(graph.link(link).bandwidth.0, expected);
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (params, expected) in [
            (
                json!({ "sides": [4, 4], "hosts": 15 }),
                "fabric.hosts = 15: the product of the sides x hosts_per_switch is 16",
            ),
            (json!({ "sides": [] }), "fabric.sides = []: 1 to 16 sides"),
            (json!({ "sides": [4, 0] }), "fabric.sides = [4, 0]: every side at least 1"),
            (json!({ "sides": [70000, 70000] }), "fabric.sides = [70000, 70000]: at most"),
            (
                json!({ "sides": [4, 4], "bandwidths": [1] }),
                "fabric.bandwidths = 1 of them: one for each of the 2 sides",
            ),
            (json!({ "hosts": 4 }), "missing field `sides`"),
        ] {
            let message = error(params.clone());
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
