//! Up/down routing of any connected fabric: the shortest paths that never go up after they have gone down (M. D. Schroeder
//! et al., "Autonet: a high-speed, self-configuring local area network using point-to-point links", IEEE J. Selected
//! Areas in Communications 9, 1991; OpenSM's `updn`).
//!
//! Switches are put into an order, and a link goes *up* if it leads to a later one: by level, then by the number of
//! links to other switches, then by number. One virtual channel is enough: a cycle would have to go up after it went
//! down. A packet that went down is never sent up again, so what it came over matters.
//!
//! Where a tree has hosts above its leaves, some pairs have no such path: two hosts at two spines. Their packets go up
//! once more after they went down, on a second virtual channel. Each channel by itself has no cycle, and no packet comes
//! back from the second to the first. Pairs that have an up/down path keep it, on the first channel.
//!
//! Where a fabric is no tree and some switch is not reached in the order by levels (the levels of a torus say nothing),
//! the order is by nearness to a central switch, which always works.
//!
//! Equally long paths, parallel links of a trunk included, are shared out by destination: see [`Sharing`].
//!
//! Parts of a fabric that no path between switches joins, the planes of several rails, are routed each by itself.
//!
//! The table holds two short numbers for each switch and each switch with hosts: the links for packets that may still go
//! up, and for those that came down.

mod distances;
mod order;
mod sharing;

use schemars::schema_for;

use std::collections::HashMap;

use self::distances::Distances;
use self::order::Order;
use self::sharing::{Below, Sharing};
use super::choices::{self, Choices};
use super::parts::Ends;
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{self, Graph};

const NAME: &str = "up_down";

/// Up/down routing's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "shortest paths that never go up after they have gone down, on any connected fabric",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(UpDown::new(graph)?))
    },
};

struct UpDown {
    ends: Ends,
    /// The column of each switch with hosts.
    columns: Vec<u32>,
    leaves: usize,
    /// By switch and column: the number of the list for packets that may go up, and for those that came down.
    ways: Vec<[u16; 2]>,
    /// The first list of each switch.
    first: Vec<u32>,
    lists: Choices,
    /// By list: see [`Sharing::below`].
    below: Vec<Below>,
    sharing: Sharing,
    /// The links that go down.
    descends: Vec<bool>,
    channels: u8,
}

impl UpDown {
    fn new(graph: &Graph) -> Result<Self, BuildError> {
        let ends = Ends::new(graph, NAME)?;
        let leaves = ends.leaves();
        choices::table_entries(NAME, [(graph.switches(), "switches"), (leaves.len(), "switches with hosts")])?;
        let by_levels = Order::by_levels(graph);
        let mut distances = Distances::new(graph, &by_levels, &leaves);
        if distances.reach_all(&leaves, &ends.parts) {
            return Self::with(graph, ends, &leaves, &by_levels, &distances);
        }
        if topology::is_tree(graph) {
            distances.allow_second_ascent(graph, &by_levels);
            if distances.reach_all(&leaves, &ends.parts) {
                return Self::with(graph, ends, &leaves, &by_levels, &distances);
            }
        }
        let order = Order::by_nearness(graph);
        let distances = Distances::new(graph, &order, &leaves);
        if distances.reach_all(&leaves, &ends.parts) {
            return Self::with(graph, ends, &leaves, &order, &distances);
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
        let sharing = Sharing::new(graph, &ends);
        let mut routing = Self {
            ends,
            columns,
            leaves: leaves.len(),
            ways: Vec::with_capacity(graph.switches() * leaves.len()),
            first: Vec::new(),
            lists: Choices::default(),
            below: Vec::new(),
            sharing,
            descends,
            channels: distances.channels(),
        };
        let mut made = 0;
        for at in (0..).take(graph.switches()).map(SwitchId) {
            let mut known: HashMap<Vec<LinkId>, u16> = HashMap::new();
            routing.first.push(made);
            for column in 0..leaves.len() {
                let mut number = |came_down| {
                    let list = distances.steps(graph, &routing.descends, at, column, came_down);
                    if let Some(number) = known.get(&list) {
                        return Ok(*number);
                    }
                    let number = u16::try_from(known.len()).map_err(|_| {
                        BuildError::value(
                            "fabric.routing",
                            NAME,
                            format!("too many different routes at {:?}", graph.switch_name(at)),
                        )
                    })?;
                    let sorted = routing.sharing.sorted(graph, &list);
                    routing.below.push(routing.sharing.below(graph, at, &sorted));
                    routing.lists.push(sorted);
                    made += 1;
                    known.insert(list, number);
                    Ok(number)
                };
                routing.ways.push([number(false)?, number(true)?]);
            }
        }
        Ok(routing)
    }
}

impl Routing for UpDown {
    fn virtual_channels(&self) -> u8 {
        self.channels
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.ends.reaches(at, to)
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (target, down) = self.ends.of(to);
        if at == target {
            return Hop { link: down, channel: previous.channel };
        }
        let way = self.ways[at.index() * self.leaves + self.columns[target.index()] as usize];
        let came_down = self.descends[previous.link.index()];
        let number = (self.first[at.index()] + u32::from(way[usize::from(came_down)])) as usize;
        let link = match self.lists.list(number) {
            [only] => *only,
            list => list[self.sharing.index(at, to, list.len(), &self.below[number])],
        };
        let rises_again = came_down && !self.descends[link.index()];
        Hop { link, channel: previous.channel + u8::from(rises_again) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topology::{self, Vertex};

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
    fn packets_that_enter_at_a_spine_over_a_second_adapter_reach_a_host_at_another_spine() {
        // Two gateways with a cable to each of two spines: from the one at t to the one at s.
        let link = |a: &str, b: &str| json!({ "ends": [a, b] });
        let hosts = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "g0", "g1"];
        let cables = (0..8).map(|host| link(hosts[host], if host < 4 { "a" } else { "b" }));
        let more = [("a", "s"), ("a", "t"), ("b", "s"), ("b", "t"), ("g0", "s"), ("g0", "t"), ("g1", "s"), ("g1", "t")];
        let links: Vec<Value> = cables.chain(more.map(|(a, b)| link(a, b))).collect();
        let graph = topology::build("imported", &json!({ "hosts": hosts, "links": links })).unwrap();
        let routing = crate::routing::build(NAME, &json!({}), &graph).unwrap();
        assert_eq!(routing.virtual_channels(), 2);
        let enters = graph.ports(Vertex::Host(HostId(8))).nth(1).unwrap();
        let mut hop = Hop { link: enters, channel: 0 };
        let mut channels = Vec::new();
        while let Vertex::Switch(at) = graph.link(hop.link).to {
            hop = routing.next_hop(at, hop, graph.endpoint(HostId(9), 0));
            channels.push(hop.channel);
        }
        assert_eq!(graph.link(hop.link).to, Vertex::Host(HostId(9)));
        assert_eq!(channels, [0, 1, 1], "down to a leaf, up to the other spine, to the gateway");
    }

    #[test]
    fn cables_of_trunks_of_different_widths_are_all_used() {
        // Two line cards p and q above the edge switch e, with three cables and one to the spine; hosts of f send over the spine.
        let link = |a: &str, b: &str| json!({ "ends": [a, b] });
        let hosts: Vec<String> = (0..13).map(|host| format!("h{host}")).collect();
        let cables = hosts.iter().enumerate().map(|(place, host)| link(host, if place < 12 { "e" } else { "f" }));
        let trunks = [("e", "p", 1), ("e", "q", 1), ("f", "r", 1), ("f", "t", 1), ("p", "s", 3), ("q", "s", 1)];
        let trunks = trunks.into_iter().chain([("r", "s", 1), ("t", "s", 1)]);
        let more = trunks.flat_map(|(a, b, cables)| std::iter::repeat_n(link(a, b), cables));
        let links: Vec<Value> = cables.chain(more).collect();
        let (graph, routing) = build("imported", &json!({ "hosts": hosts, "links": links }));
        let mut taken: HashMap<(String, LinkId), u32> = HashMap::new();
        for to in 0..12 {
            let way = way(&graph, &routing, 12, to);
            assert_eq!(way.len(), 6, "host, f, line card, spine, line card, e");
            let Vertex::Switch(card) = graph.link(way[3]).to else { panic!("a line card") };
            *taken.entry((graph.switch_name(card), way[3])).or_default() += 1;
            let known = if to % 2 == 0 { "p" } else { "q" };
            assert_eq!(graph.switch_name(card), known, "over the line card that packets from host {to} go up through");
        }
        let mut counts: Vec<(String, u32)> = taken.into_iter().map(|((card, _), count)| (card, count)).collect();
        counts.sort();
        let all = [("p", 2), ("p", 2), ("p", 2), ("q", 6)].map(|(card, count)| (card.to_owned(), count));
        assert_eq!(counts, all);
    }

    #[test]
    fn a_packet_that_went_down_stays_down() {
        // Leaves a, b, c, d; spine s joins a and b, spine t joins c and d, and b and c are joined directly. From a to d
        // no path goes up once and down once only over b and c: the order by nearness must serve.
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
