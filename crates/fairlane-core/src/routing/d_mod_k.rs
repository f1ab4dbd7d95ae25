//! D-mod-K: destination-based, deterministic up/down routing of fat-trees.
//!
//! At a switch of level `l` every destination `d` has the quotient `x = floor(d / stride)`, where `stride` is the
//! product of the numbers of parents of the switches of the levels below `l` (E. Zahavi, "Fat-tree routing and node
//! ordering providing contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72, 2012).
//! A packet takes candidate `x mod n` among its `n` candidate ports, in order of port number. Candidates are the ports
//! that lead one step along a shortest up/down path: down if `d` hangs below the switch, else up. On a full-bisection
//! tree any shift permutation then loads every link at most once.
//!
//! The rule has two representations. [`Span`] is arithmetic in 32 bytes, for switches whose children are equal
//! consecutive intervals of hosts; [`PortTable`] lists the port for every destination, for all others: irregular or
//! faulty trees, and hosts that are not numbered leaf by leaf.
//!
//! One virtual channel is enough: no packet goes up after it went down, so channel dependencies have no cycle.

mod span;
mod table;
mod tree;

use schemars::schema_for;

pub(super) use self::span::Span;
use self::table::PortTable;
use self::tree::LevelledFabric;
use super::parts::Ends;
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Graph;

/// D-mod-K's line in the table.
pub const ENTRY: Entry = Entry {
    name: "d_mod_k",
    summary: "destination-based deterministic up/down routing of fat-trees, regular or not",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(DModK::new(graph)?))
    },
};

/// The arithmetic paths of every switch; none for those that have to be listed.
pub(super) fn spans(graph: &Graph) -> Result<Vec<Option<Span>>, BuildError> {
    Ok(span::of_switches(&LevelledFabric::new(graph)?))
}

/// Where a switch sends a packet.
enum Ports {
    Arithmetic(Span),
    /// The switch's row of the table, and its first link.
    Listed {
        row: u32,
        first: LinkId,
    },
}

struct DModK {
    ends: Ends,
    switches: Vec<Ports>,
    table: PortTable,
}

impl DModK {
    fn new(graph: &Graph) -> Result<Self, BuildError> {
        let tree = LevelledFabric::new(graph)?;
        Self::with_spans(&tree, span::of_switches(&tree))
    }

    /// Lists the paths of every switch that has no span.
    fn with_spans(tree: &LevelledFabric, spans: Vec<Option<Span>>) -> Result<Self, BuildError> {
        let mut listed = Vec::new();
        let ports = |(switch, span)| match span {
            Some(span) => Ports::Arithmetic(span),
            None => {
                let row = u32::try_from(listed.len()).expect("invariant: fewer than 2^32 switches");
                listed.push(switch);
                Ports::Listed { row, first: tree.first_link(switch) }
            }
        };
        let switches = (0..).map(SwitchId).zip(spans).map(ports).collect();
        let ends = Ends::new(tree.graph, ENTRY.name)?;
        let table = PortTable::new(tree, &listed, &ends.parts)?;
        Ok(Self { ends, switches, table })
    }
}

impl Routing for DModK {
    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.ends.reaches(at, to)
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        let link = match &self.switches[at.index()] {
            Ports::Arithmetic(span) => span.link(to),
            Ports::Listed { row, first } => LinkId(first.0 + self.table.port(*row, to)),
        };
        Hop { link, channel: 0 }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::topology::{GraphBuilder, Vertex};
    use crate::units::{BitsPerSec, Picoseconds};

    /// The upstream link of a packet fresh from host 0; D-mod-K does not ask.
    const FRESH: Hop = Hop { link: LinkId(0), channel: 0 };

    fn fat_tree(params: &serde_json::Value) -> Graph {
        crate::topology::build("fat_tree", params).unwrap()
    }

    /// A tree by its cables: hosts below switches, switches below switches; switch `i` has level `levels[i]`.
    fn irregular(hosts: &[u32], levels: &[u8], cables: &[(u32, u32)]) -> Graph {
        let mut graph = GraphBuilder::default();
        graph.add_hosts(u32::try_from(hosts.len()).unwrap());
        levels.iter().for_each(|level| _ = graph.add_switch(*level));
        let mut join =
            |a, b| graph.add_cable(a, Vertex::Switch(SwitchId(b)), BitsPerSec(1), Picoseconds(1), "up", "down");
        (0..).zip(hosts).for_each(|(host, leaf)| join(Vertex::Host(HostId(host)), *leaf));
        cables.iter().for_each(|(low, high)| join(Vertex::Switch(SwitchId(*low)), *high));
        graph.build().unwrap()
    }

    #[test]
    fn a_span_is_small() {
        assert_eq!(size_of::<Ports>(), 32);
    }

    #[test]
    fn both_representations_agree_on_every_fat_tree() {
        let shapes = [
            json!({ "hosts": 64, "levels": 2, "radix": 16 }),
            json!({ "hosts": 324, "levels": 2, "radix": 36 }),
            json!({ "hosts": 128, "levels": 3, "radix": 8 }),
            json!({ "hosts": 23, "levels": 2, "radix": 8 }),
            json!({ "hosts": 101, "levels": 3, "radix": 8 }),
            json!({ "hosts": 3, "levels": 3, "radix": 8 }),
            json!({ "hosts": 9, "levels": 1 }),
            json!({ "hosts": 100, "levels": 3, "radix": 10, "leaf_down": 6, "leaf_up": 4, "leaves_per_pod": 5,
                    "aggregation_down": 5, "aggregation_up": 3 }),
            json!({ "hosts": 130, "levels": 3, "radix": 12, "leaf_down": 6, "leaf_up": 6, "leaves_per_pod": 2,
                    "aggregation_down": 6, "aggregation_up": 4 }),
        ];
        for params in shapes {
            let graph = fat_tree(&params);
            let tree = LevelledFabric::new(&graph).unwrap();
            let fast = DModK::new(&graph).unwrap();
            assert!(fast.switches.iter().all(|ports| matches!(ports, Ports::Arithmetic(_))), "{params}");
            let slow = DModK::with_spans(&tree, vec![None; graph.switches()]).unwrap();
            for at in (0..).take(graph.switches()).map(SwitchId) {
                for to in (0..).take(graph.hosts()).map(HostId) {
                    assert_eq!(fast.next_hop(at, FRESH, to), slow.next_hop(at, FRESH, to), "{params}: {at} to {to}");
                }
            }
        }
    }

    #[test]
    fn the_quotient_chooses_the_way_up() {
        // 4 leaves of 4 hosts (switches 0 to 3), 2 spines (4, 5), trunks of 2.
        let graph = fat_tree(&json!({ "hosts": 16, "levels": 2, "radix": 8 }));
        let routing = DModK::new(&graph).unwrap();
        let hop = |at, to| *graph.link(routing.next_hop(SwitchId(at), FRESH, HostId(to)).link);
        let ups: Vec<Vertex> = (4..8).map(|to| hop(0, to).to).collect();
        assert_eq!(ups, [4, 5, 4, 5].map(|spine| Vertex::Switch(SwitchId(spine))));
        assert_ne!(hop(0, 4).reverse, hop(0, 6).reverse, "two cables of one trunk");
        assert_ne!(hop(4, 4).reverse, hop(4, 6).reverse, "two cables of one trunk");
        assert_eq!(hop(1, 5).to, Vertex::Host(HostId(5)));
    }

    #[test]
    fn only_up_ports_from_which_the_destination_is_reached_are_used() {
        // Leaves 0, 1, 2; spine 3 joins all, spine 4 only leaves 0 and 1.
        let graph = irregular(&[0, 0, 1, 1, 2, 2], &[1, 1, 1, 2, 2], &[(0, 3), (1, 3), (2, 3), (0, 4), (1, 4)]);
        let routing = DModK::new(&graph).unwrap();
        let towards = |to| graph.link(routing.next_hop(SwitchId(0), FRESH, HostId(to)).link).to;
        assert_eq!([2, 3].map(towards), [3, 4].map(|spine| Vertex::Switch(SwitchId(spine))));
        assert_eq!([4, 5].map(towards), [3, 3].map(|spine| Vertex::Switch(SwitchId(spine))));
    }

    #[test]
    fn the_shorter_way_up_is_taken() {
        // Leaves 0 and 1 meet at switch 2 (level 2); switch 3 (level 2) of leaf 0 reaches leaf 1 only over switch 4.
        let graph = irregular(&[0, 0, 1, 1], &[1, 1, 2, 2, 3], &[(0, 2), (0, 3), (1, 2), (2, 4), (3, 4)]);
        let routing = DModK::new(&graph).unwrap();
        let towards = |to| graph.link(routing.next_hop(SwitchId(0), FRESH, HostId(to)).link).to;
        assert_eq!([2, 3].map(towards), [Vertex::Switch(SwitchId(2)); 2]);
    }

    #[test]
    fn fabrics_without_a_way_are_refused() {
        let flat = irregular(&[0, 1], &[1, 0], &[(0, 1)]);
        let error = DModK::new(&flat).err().unwrap().to_string();
        assert!(error.contains("\"switch1\" has none"), "{error}");
        // Two leaves that are joined only to each other: a link within a level is no path.
        let level = irregular(&[0, 1], &[1, 1], &[(0, 1)]);
        let error = DModK::new(&level).err().unwrap().to_string();
        assert_eq!(error, "fabric.routing: d_mod_k finds no up/down path from host \"host1\" to host \"host0\"");
    }

    #[test]
    fn planes_that_no_switch_joins_are_routed_each_by_itself() {
        // Two trees of two leaves and a spine each; their hosts take turns.
        let planes = irregular(&[0, 2, 1, 3], &[1, 1, 1, 1, 2, 2], &[(0, 4), (1, 4), (2, 5), (3, 5)]);
        let routing = DModK::new(&planes).unwrap();
        let reaches = |at| (0..4).map(|to| routing.reaches(SwitchId(at), HostId(to))).collect::<Vec<_>>();
        assert_eq!([reaches(0), reaches(3)], [[true, false, true, false], [false, true, false, true]]);
        let up = planes.link(routing.next_hop(SwitchId(0), FRESH, HostId(2)).link).to;
        assert_eq!(up, Vertex::Switch(SwitchId(4)));
    }
}
