//! HyperX: a grid in which all switches along a line are joined, in every dimension (J. H. Ahn et al., "HyperX:
//! topology, routing, and packaging of efficient large-scale networks", SC 2009). One dimension is a full mesh, two a
//! flattened butterfly; with sides of 2 it is a hypercube.
//!
//! Coordinates are the digits of a switch's number, those of dimension 0 counting fastest; hosts are numbered switch by
//! switch. Ports of a switch: hosts, then by dimension its cables to the others, those of a trunk side by side.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lattice::{self, Wires};
use super::layout::{Grid, LineCabling};
use super::size::{pairs, product};
use super::{Build, Entry, Graph, GraphBuilder, Layout, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// The HyperX's line in the table.
pub const ENTRY: Entry = Entry {
    name: "hyperx",
    summary: "grid of switches, all joined along every line: flattened butterflies, hypercubes, full meshes",
    schema: || schema_for!(Params),
    build: Build {
        routing: "dimension_order",
        size: |json| crate::table::params::<Params>("fabric", json)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", json)?.build(),
    },
};

const MAX_TRUNK: u32 = 4096;

/// A grid of switches, all joined along every line.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Switches along each dimension, up to 16 dimensions ("S").
    sides: Vec<u32>,
    /// Hosts of a switch ("T").
    #[schemars(range(min = 1))]
    hosts_per_switch: u32,
    /// Parallel cables between two switches, for each dimension ("K"). Default: 1.
    #[serde(default)]
    trunks: Option<Vec<u32>>,
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

/// Shapes that differ in kind: a flattened butterfly, trunks, a hypercube, a full mesh.
fn examples() -> Value {
    json!([
        { "sides": [4, 4], "hosts_per_switch": 4 },
        { "sides": [5, 3, 2], "hosts_per_switch": 2, "trunks": [1, 2, 3] },
        { "sides": [2, 2, 2, 2], "hosts_per_switch": 1 },
        { "sides": [7], "hosts_per_switch": 3 },
    ])
}

impl Params {
    fn size(&self) -> Result<Size, BuildError> {
        lattice::at_least_one(&[("hosts_per_switch", self.hosts_per_switch)])?;
        let switches = u64::from(lattice::product(&self.sides)?);
        let hosts = product([switches, self.hosts_per_switch.into()]);
        let trunks = self.checked_trunks()?;
        let pairs_along = |side: &u32| product([switches / u64::from(*side), pairs(u64::from(*side))]);
        let all_pairs = self.sides.iter().map(pairs_along).fold(0, u64::saturating_add);
        let along = |(side, trunk): (&u32, &u32)| product([pairs_along(side), u64::from(*trunk)]);
        let cables = self.sides.iter().zip(&trunks).map(along).fold(0, u64::saturating_add);
        Size::of(
            hosts,
            switches,
            [
                ("hosts_per_switch", self.hosts_per_switch.to_string(), hosts),
                ("sides", format!("{:?}", self.sides), all_pairs),
                ("trunks", format!("{trunks:?}"), cables.saturating_sub(all_pairs)),
            ],
        )
    }

    fn build(&self) -> Result<Graph, BuildError> {
        lattice::at_least_one(&[("hosts_per_switch", self.hosts_per_switch)])?;
        let switches = lattice::product(&self.sides)?;
        lattice::check_hosts(self.hosts, u64::from(switches), self.hosts_per_switch, "the product of the sides")?;
        let bandwidths = lattice::by_dimension("bandwidths", self.bandwidths.as_deref(), self.bandwidth, &self.sides)?;
        let trunks = self.checked_trunks()?;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, switches, self.hosts_per_switch, wires);
        let mut stride = 1;
        for (number, &side) in self.sides.iter().enumerate() {
            let (wires, class) = (Wires { bandwidth: bandwidths[number], ..wires }, format!("dimension {number}"));
            for at in 0..switches {
                for step in 1..side - at / stride % side {
                    let [a, b] = [at, at + step * stride].map(|switch| Vertex::Switch(SwitchId(switch)));
                    (0..trunks[number]).for_each(|_| wires.join(&mut graph, a, b, &class));
                }
            }
            stride *= side;
        }
        graph.set_layout(Layout::Grid(Grid { sides: self.sides.clone(), line: LineCabling::Full }));
        graph.build()
    }

    /// Parallel cables between two switches, by dimension.
    fn checked_trunks(&self) -> Result<Vec<u32>, BuildError> {
        let trunks = lattice::by_dimension("trunks", self.trunks.as_deref(), 1, &self.sides)?;
        match trunks.iter().find(|trunk| !(1..=MAX_TRUNK).contains(*trunk)) {
            Some(trunk) => Err(BuildError::value("fabric.trunks", trunk, format!("1 to {MAX_TRUNK} cables"))),
            None => Ok(trunks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_joined_with_all_along_its_lines() {
        let params = json!({ "sides": [5, 3, 2], "hosts_per_switch": 2, "trunks": [1, 2, 3] });
        let graph = crate::topology::build("hyperx", &params).unwrap();
        assert_eq!((graph.hosts(), graph.switches()), (60, 30));
        for switch in (0..30).map(SwitchId) {
            assert_eq!(graph.ports(Vertex::Switch(switch)).len(), 2 + 4 + 2 * 2 + 3);
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (params, expected) in [
            (json!({ "sides": [4], "hosts_per_switch": 0 }), "fabric.hosts_per_switch = 0: at least 1"),
            (json!({ "sides": [4], "hosts_per_switch": 1, "trunks": [0] }), "fabric.trunks = 0: 1 to 4096 cables"),
            (json!({ "sides": [16384], "hosts_per_switch": 1 }), "fabric.sides = [16384]: at most 134217728 links"),
            (json!({ "sides": [4], "hosts_per_switch": 2, "hosts": 7 }), "fabric.hosts = 7: the product of"),
        ] {
            let message = crate::topology::build("hyperx", &params).unwrap_err().to_string();
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
