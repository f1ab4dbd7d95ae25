//! Up/down routing of any connected fabric: the shortest ways that never go up after they went down (M. D. Schroeder
//! et al., "Autonet: a high-speed, self-configuring local area network using point-to-point links", IEEE J. Selected
//! Areas in Communications 9, 1991; OpenSM's `updn`).
//!
//! Switches are put into an order, and a link goes *up* if it leads to a later one: by level, then by the number of
//! links to other switches, then by number. Where some switch is not reached in that order (the levels of a torus say
//! nothing), the order is by nearness to a central switch, which always works. Among equally long ways, parallel links
//! of a trunk included, the destination decides, differently at each switch.
//!
//! One virtual channel is enough: a cycle would have to go up after it went down. A packet that went down is never sent
//! up again, so what it came over matters.
//!
//! The table holds two short numbers for each switch and each switch with hosts: the links for packets that may still go
//! up, and for those that may not.

mod order;

use schemars::schema_for;

use std::collections::HashMap;

use self::order::Order;
use super::choices::{Choices, Ends, spread};
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::prefetch_at;
use crate::topology::{Graph, Vertex};

const NAME: &str = "up_down";
const FAR: u32 = u32::MAX;

/// Up/down routing's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "shortest ways that never go up after they went down, on any connected fabric",
    schema: || schema_for!(NoParams),
    build: |graph, params| {
        NoParams::check(params)?;
        Ok(Box::new(UpDown::new(graph)?))
    },
};

struct UpDown {
    ends: Ends,
    /// The column of each switch with hosts.
    columns: Vec<u32>,
    leaves: usize,
    /// By switch and column: the number of the list for packets that may go up, and for those that may not.
    ways: Vec<[u16; 2]>,
    /// The first list of each switch.
    first: Vec<u32>,
    lists: Choices,
    /// Which links go down.
    descends: Vec<bool>,
}

impl UpDown {
    fn new(graph: &Graph) -> Result<Self, BuildError> {
        let ends = Ends::new(graph, NAME)?;
        let leaves = leaves(graph, &ends);
        for order in [Order::by_levels(graph), Order::by_nearness(graph)] {
            let distances = Distances::new(graph, &order, &leaves);
            if distances.reach_all(&leaves) {
                return Self::with(graph, ends, &leaves, &order, &distances);
            }
        }
        Err(BuildError::value("fabric.routing", NAME, "needs a connected fabric"))
    }

    fn with(
        graph: &Graph,
        ends: Ends,
        leaves: &[SwitchId],
        order: &Order,
        distances: &Distances,
    ) -> Result<Self, BuildError> {
        let mut columns = vec![0; graph.switches()];
        (0..).zip(leaves).for_each(|(column, leaf)| columns[leaf.index()] = column);
        let descends = graph.links().iter().map(|link| order.descends(link)).collect();
        let mut routing = Self {
            ends,
            columns,
            leaves: leaves.len(),
            ways: Vec::with_capacity(graph.switches() * leaves.len()),
            first: Vec::new(),
            lists: Choices::default(),
            descends,
        };
        let mut made = 0;
        for at in (0..).take(graph.switches()).map(SwitchId) {
            let mut known: HashMap<Vec<LinkId>, u16> = HashMap::new();
            routing.first.push(made);
            for column in 0..leaves.len() {
                let mut number = |may_rise| {
                    let list = distances.steps(graph, &routing.descends, at, column, may_rise);
                    if let Some(number) = known.get(&list) {
                        return Ok(*number);
                    }
                    let number = u16::try_from(known.len()).map_err(|_| {
                        BuildError::value(
                            "fabric.routing",
                            NAME,
                            format!("too many different ways at {:?}", graph.switch_name(at)),
                        )
                    })?;
                    routing.lists.push(list.iter().copied());
                    made += 1;
                    known.insert(list, number);
                    Ok(number)
                };
                routing.ways.push([number(true)?, number(false)?]);
            }
        }
        Ok(routing)
    }
}

impl Routing for UpDown {
    #[inline]
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (target, down) = self.ends.of(to);
        if at == target {
            return Hop { link: down, channel: 0 };
        }
        let way = self.ways[at.index() * self.leaves + self.columns[target.index()] as usize];
        let list = self.first[at.index()] + u32::from(way[usize::from(self.descends[previous.link.index()])]);
        Hop { link: self.lists.pick(list as usize, || spread(at, to)), channel: 0 }
    }

    fn prefetch(&self, at: SwitchId, to: HostId) {
        let (target, _) = self.ends.of(to);
        let column = self.columns[target.index()] as usize;
        prefetch_at(&self.ways, at.index() * self.leaves + column);
    }
}

/// The switches that have hosts.
fn leaves(graph: &Graph, ends: &Ends) -> Vec<SwitchId> {
    let has_hosts = ends.leaves(graph.switches());
    (0..).map(SwitchId).zip(has_hosts).filter_map(|(switch, has)| has.then_some(switch)).collect()
}

/// How far every switch is from every leaf: going down only, and going up first.
struct Distances {
    leaves: usize,
    /// By switch and column.
    down: Vec<u32>,
    any: Vec<u32>,
}

impl Distances {
    fn new(graph: &Graph, order: &Order, leaves: &[SwitchId]) -> Self {
        let size = graph.switches() * leaves.len();
        let mut distances = Self { leaves: leaves.len(), down: vec![FAR; size], any: Vec::new() };
        for (column, leaf) in leaves.iter().enumerate() {
            distances.down[leaf.index() * leaves.len() + column] = 0;
        }
        // A link down leads to a switch that is earlier in the order, whose distances are known then.
        for &at in &order.rising {
            for link in graph.ports(Vertex::Switch(at)).map(|link| graph.link(link)) {
                if let Vertex::Switch(to) = link.to
                    && order.descends(link)
                {
                    relax(&mut distances.down, leaves.len(), at, to);
                }
            }
        }
        distances.any = distances.down.clone();
        for &at in order.rising.iter().rev() {
            for link in graph.ports(Vertex::Switch(at)).map(|link| graph.link(link)) {
                if let Vertex::Switch(to) = link.to
                    && !order.descends(link)
                {
                    relax(&mut distances.any, leaves.len(), at, to);
                }
            }
        }
        distances
    }

    /// Whether a way leads from every leaf to every other.
    fn reach_all(&self, leaves: &[SwitchId]) -> bool {
        leaves.iter().all(|leaf| !self.row(&self.any, *leaf).contains(&FAR))
    }

    fn row<'d>(&self, distances: &'d [u32], at: SwitchId) -> &'d [u32] {
        &distances[at.index() * self.leaves..(at.index() + 1) * self.leaves]
    }

    /// The links that lead a step along a shortest way; none at the leaf itself, or where no packet comes.
    fn steps(&self, graph: &Graph, descends: &[bool], at: SwitchId, column: usize, may_rise: bool) -> Vec<LinkId> {
        let place = |switch: SwitchId| switch.index() * self.leaves + column;
        let length = if may_rise { self.any[place(at)] } else { self.down[place(at)] };
        let nearer = |link: &LinkId| {
            let Vertex::Switch(to) = graph.link(*link).to else { return false };
            let beyond = match (descends[link.index()], may_rise) {
                (true, _) => self.down[place(to)],
                (false, true) => self.any[place(to)],
                (false, false) => FAR,
            };
            length != 0 && length != FAR && beyond.saturating_add(1) == length
        };
        graph.ports(Vertex::Switch(at)).filter(nearer).collect()
    }
}

/// Shortens the distances from `at` by those over its neighbour `to`.
fn relax(distances: &mut [u32], leaves: usize, at: SwitchId, to: SwitchId) {
    let (at, to) = (at.index() * leaves, to.index() * leaves);
    for column in 0..leaves {
        distances[at + column] = distances[at + column].min(distances[to + column].saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topology;

    fn build(topology: &str, params: &Value) -> (Graph, UpDown) {
        let graph = topology::build(topology, params).unwrap();
        let routing = UpDown::new(&graph).unwrap();
        (graph, routing)
    }

    /// The links on the way between two hosts.
    fn way(graph: &Graph, routing: &UpDown, from: u32, to: u32) -> Vec<LinkId> {
        let mut hop = Hop { link: graph.ports(Vertex::Host(HostId(from))).next().unwrap(), channel: 0 };
        let mut way = vec![hop.link];
        while let Vertex::Switch(at) = graph.link(hop.link).to {
            hop = routing.next_hop(at, hop, HostId(to));
            way.push(hop.link);
        }
        way
    }

    #[test]
    fn on_a_fat_tree_all_spines_and_all_cables_of_a_trunk_are_used() {
        let (graph, routing) = build("fat_tree", &json!({ "hosts": 64, "levels": 2, "radix": 16 }));
        let mut used = std::collections::BTreeSet::new();
        for from in 0..8 {
            for to in 8..64 {
                let way = way(&graph, &routing, from, to);
                assert_eq!(way.len(), 4);
                used.insert(way[1]);
            }
        }
        assert_eq!(used.len(), 8);
    }

    #[test]
    fn a_packet_that_went_down_stays_down() {
        // Leaves a, b, c, d; spine s joins a and b, spine t joins c and d, and b and c are joined directly. From a to d
        // no way goes up once and down once only over b and c: the order by nearness must serve.
        let link = |a: &str, b: &str| json!({ "ends": [a, b] });
        let params = json!({
            "hosts": ["ha", "hb", "hc", "hd"],
            "links": [link("ha", "a"), link("hb", "b"), link("hc", "c"), link("hd", "d"), link("a", "s"), link("b", "s"),
                      link("c", "t"), link("d", "t"), link("b", "c")],
        });
        let (graph, routing) = build("imported", &params);
        for from in 0..4 {
            for to in (0..4).filter(|to| *to != from) {
                let falls: Vec<bool> =
                    way(&graph, &routing, from, to).iter().map(|link| routing.descends[link.index()]).collect();
                let inner = &falls[1..falls.len() - 1];
                assert!(inner.is_sorted(), "{from} to {to}: {inner:?}");
            }
        }
    }
}
