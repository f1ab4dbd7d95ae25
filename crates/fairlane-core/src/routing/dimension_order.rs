//! Dimension-order routing of tori, meshes and HyperX: one coordinate after the other, each in the shorter direction.
//!
//! Around a ring of even length both paths to the opposite switch are equally long; from even coordinates packets go
//! forwards, from odd ones backwards. Parallel links of a trunk are chosen by destination.
//!
//! **Virtual channels**: dimensions are taken in order, so cycles could only be within one ring. There a packet is on
//! channel 1 as long as it still has to cross the dateline, the link between the last switch and the first, and on
//! channel 0 afterwards or if it never does (W. J. Dally and C. L. Seitz, "Deadlock-free message routing in
//! multiprocessor interconnection networks", IEEE Trans. Computers 36, 1987). Rings of up to three switches have no way
//! of two links and need one channel, as meshes and HyperX do.

use schemars::schema_for;

use super::choices::{Choices, spread};
use super::parts::Ends;
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Grid, Layout, LineCabling, Vertex};

const NAME: &str = "dimension_order";
/// The shortest ring on which packets take two links in a row.
const RING_WITH_DATELINE: u32 = 4;

/// Dimension-order routing's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "dimension by dimension, with datelines on tori; also for meshes and HyperX",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(DimensionOrder::new(graph, NAME)?))
    },
};

/// Dimension-order routing, and what routings are made of that sometimes take another path.
pub(super) struct DimensionOrder {
    pub ends: Ends,
    line: LineCabling,
    dimensions: Vec<Dimension>,
    /// By switch: its coordinates, packed, dimension 0 lowest.
    packed: Vec<u64>,
    /// By bit of the packed coordinates: the dimension that it belongs to.
    dimension_of: [u8; 64],
    /// Slots of a switch.
    slots: u32,
    links: Choices,
}

/// One dimension of the grid.
struct Dimension {
    side: u32,
    /// Where its coordinate begins in the packed ones, and the bits that it has, at the lowest place.
    shift: u32,
    mask: u32,
    /// Its first slot: those to the next and to the previous switch, or one for each coordinate.
    slot: u32,
    has_dateline: bool,
    /// 1 where odd coordinates go backwards if both ways are equally long.
    odd: u32,
}

impl DimensionOrder {
    /// Sorts the links of a grid; `routing` is for the error.
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let Layout::Grid(grid) = graph.layout() else {
            return Err(BuildError::value("fabric.routing", routing, "needs a grid of switches"));
        };
        let (mut slots, mut shift) = (0, 0);
        let mut dimension_of = [0; 64];
        let mut dimensions = Vec::new();
        for (number, &side) in (0..).zip(&grid.sides) {
            let bits = u32::BITS - (side - 1).leading_zeros();
            let has_dateline = grid.line == LineCabling::Ring && side >= RING_WITH_DATELINE;
            let (mask, odd) = ((1 << bits) - 1, u32::from(side > 2));
            dimensions.push(Dimension { side, shift, mask, slot: slots, has_dateline, odd });
            slots += if grid.line == LineCabling::Full { side } else { 2 };
            let end = (shift + bits) as usize;
            let Some(own) = dimension_of.get_mut(shift as usize..end) else {
                return Err(BuildError::value(
                    "fabric.routing",
                    routing,
                    "needs coordinates of together up to 64 bits",
                ));
            };
            own.fill(number);
            shift += bits;
        }
        let pack = |at| {
            let coordinates = grid.coordinates(SwitchId(at)).zip(&dimensions);
            coordinates
                .fold(0, |packed, (digit, dimension): (u32, &Dimension)| packed | (u64::from(digit) << dimension.shift))
        };
        let packed = (0..).take(graph.switches()).map(pack).collect();
        let mut order = Self {
            ends: Ends::new(graph, routing)?,
            line: grid.line,
            dimensions,
            packed,
            dimension_of,
            slots,
            links: Choices::default(),
        };
        for at in (0..).take(graph.switches()).map(SwitchId) {
            order.add(graph, grid, at, routing)?;
        }
        Ok(order)
    }

    /// Sorts the links of a switch into its slots.
    fn add(&mut self, graph: &Graph, grid: &Grid, at: SwitchId, routing: &'static str) -> Result<(), BuildError> {
        let mut lists: Vec<Vec<LinkId>> = vec![Vec::new(); self.slots as usize];
        for link in graph.ports(Vertex::Switch(at)) {
            let Vertex::Switch(to) = graph.link(link).to else { continue };
            let Some(number) = grid.dimension(at, to) else { continue };
            let coordinate = |switch| grid.coordinates(switch).nth(number).unwrap_or_default();
            lists[self.dimensions[number].slot_to(self.line, coordinate(at), coordinate(to)) as usize].push(link);
        }
        for (dimension, here) in self.dimensions.iter().zip(grid.coordinates(at)) {
            let mut others = (0..dimension.side).filter(|there| *there != here);
            let missing = others.find(|there| {
                let (slot, _) = dimension.way(self.line, here, *there);
                lists[slot as usize].is_empty()
            });
            if let Some(there) = missing {
                let problem = format!(
                    "{routing} needs a link from {:?} towards coordinate {there} of a side of {}",
                    graph.switch_name(at),
                    dimension.side
                );
                return Err(BuildError::Shape { path: "fabric.routing".to_owned(), problem });
            }
        }
        lists.into_iter().for_each(|list| self.links.push(list));
        Ok(())
    }
}

impl Dimension {
    /// Its coordinate of packed ones.
    #[inline]
    fn coordinate(&self, packed: u64) -> u32 {
        (packed >> self.shift) as u32 & self.mask
    }

    /// The slot of a link between two coordinates.
    fn slot_to(&self, line: LineCabling, here: u32, there: u32) -> u32 {
        match line {
            LineCabling::Full => self.slot + there,
            LineCabling::Open => self.slot + u32::from(there < here),
            LineCabling::Ring => self.slot + u32::from((here + 1) % self.side != there),
        }
    }

    /// The slot and the channel of a packet at coordinate `here` that goes to `there`, another one.
    #[inline]
    fn way(&self, line: LineCabling, here: u32, there: u32) -> (u32, u8) {
        match line {
            LineCabling::Full => (self.slot + there, 0),
            LineCabling::Open => (self.slot + u32::from(there < here), 0),
            // Without branches: which way a packet goes is as good as random.
            LineCabling::Ring => {
                let above = there > here;
                let forward = there.wrapping_sub(here).wrapping_add(if above { 0 } else { self.side });
                // Of an odd coordinate the way forwards must be shorter than the way back; else as short will do.
                let forwards = 2 * forward <= self.side - (here & self.odd);
                let crosses = above != forwards;
                (self.slot + u32::from(!forwards), u8::from(crosses & self.has_dateline))
            }
        }
    }
}

impl Routing for DimensionOrder {
    fn virtual_channels(&self) -> u8 {
        if self.dimensions.iter().any(|dimension| dimension.has_dateline) { 2 } else { 1 }
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        let (target, down) = self.ends.of(to);
        self.towards(at, target, to).unwrap_or(Hop { link: down, channel: 0 })
    }
}

impl DimensionOrder {
    /// The hop from `at` towards the switch `target` of a packet to `to`; none if it is there.
    #[inline]
    pub fn towards(&self, at: SwitchId, target: SwitchId, to: HostId) -> Option<Hop> {
        let (here, there) = (self.packed[at.index()], self.packed[target.index()]);
        let different = here ^ there;
        if different == 0 {
            return None;
        }
        let dimension = &self.dimensions[usize::from(self.dimension_of[different.trailing_zeros() as usize])];
        let (slot, channel) = dimension.way(self.line, dimension.coordinate(here), dimension.coordinate(there));
        let slot = at.index() * self.slots as usize + slot as usize;
        Some(Hop { link: self.links.pick(slot, || spread(at, to)), channel })
    }

    /// Links between two switches.
    pub fn distance(&self, a: SwitchId, b: SwitchId) -> u32 {
        let (here, there) = (self.packed[a.index()], self.packed[b.index()]);
        let along = |dimension: &Dimension| {
            let apart = dimension.coordinate(here).abs_diff(dimension.coordinate(there));
            match self.line {
                LineCabling::Full => u32::from(apart > 0),
                LineCabling::Open => apart,
                LineCabling::Ring => apart.min(dimension.side - apart),
            }
        };
        self.dimensions.iter().map(along).sum()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topology;

    fn build(topology: &str, params: Value) -> (Graph, DimensionOrder) {
        let graph = topology::build(topology, &params).unwrap();
        let routing = DimensionOrder::new(&graph, NAME).unwrap();
        (graph, routing)
    }

    /// The switches on the way, and the channels of the links between them.
    fn way(graph: &Graph, routing: &DimensionOrder, from: u32, to: u32) -> (Vec<u32>, Vec<u8>) {
        let mut hop = Hop { link: graph.ports(Vertex::Host(HostId(from))).next().unwrap(), channel: 0 };
        let (mut switches, mut channels) = (Vec::new(), Vec::new());
        while let Vertex::Switch(at) = graph.link(hop.link).to {
            switches.push(at.0);
            hop = routing.next_hop(at, hop, HostId(to));
            channels.push(hop.channel);
        }
        channels.pop();
        (switches, channels)
    }

    #[test]
    fn packets_go_the_shorter_way_and_change_channel_at_the_dateline() {
        let (graph, routing) = build("torus", json!({ "sides": [8] }));
        assert_eq!(routing.virtual_channels(), 2);
        assert_eq!(way(&graph, &routing, 6, 1), (vec![6, 7, 0, 1], vec![1, 1, 0]));
        assert_eq!(way(&graph, &routing, 1, 6), (vec![1, 0, 7, 6], vec![1, 1, 0]));
        assert_eq!(way(&graph, &routing, 1, 4), (vec![1, 2, 3, 4], vec![0, 0, 0]));
        // Opposite switches: forwards from even coordinates, backwards from odd ones.
        assert_eq!(way(&graph, &routing, 0, 4).0, [0, 1, 2, 3, 4]);
        assert_eq!(way(&graph, &routing, 1, 5).0, [1, 0, 7, 6, 5]);
    }

    #[test]
    fn dimensions_are_taken_in_order() {
        let (graph, routing) = build("torus", json!({ "sides": [5, 5], "mesh": true }));
        assert_eq!(routing.virtual_channels(), 1);
        assert_eq!(way(&graph, &routing, 0, 12).0, [0, 1, 2, 7, 12]);
        let (graph, routing) = build("hyperx", json!({ "sides": [5, 5], "hosts_per_switch": 1 }));
        assert_eq!(routing.virtual_channels(), 1);
        assert_eq!(way(&graph, &routing, 0, 23).0, [0, 3, 23]);
    }

    #[test]
    fn short_rings_need_one_channel_and_use_both_cables_of_a_side_of_two() {
        let (graph, routing) = build("torus", json!({ "sides": [3, 2], "hosts_per_switch": 8 }));
        assert_eq!(routing.virtual_channels(), 1);
        let fresh = Hop { link: LinkId(0), channel: 0 };
        let used: std::collections::BTreeSet<LinkId> =
            (24..32).map(|to| routing.next_hop(SwitchId(0), fresh, HostId(to)).link).collect();
        assert_eq!(used.len(), 2, "{:?}", graph.ports(Vertex::Switch(SwitchId(0))).collect::<Vec<_>>());
    }
}
