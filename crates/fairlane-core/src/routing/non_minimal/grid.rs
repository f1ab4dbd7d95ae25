//! Paths through a grid: dimension order to a random switch, and dimension order from there.
//!
//! **Virtual channels**: those of dimension order twice, first on the path to the intermediate switch, then on the path from it.
//! Minimal paths use the second half. So no packet goes back to the first half, and each is free of cycles.

use super::super::Routing;
use super::super::choices::share;
use super::super::dimension_order::DimensionOrder;
use super::{Next, Path, Paths};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::routing::Hop;
use crate::topology::{Graph, Vertex};

pub(super) struct Grid {
    order: DimensionOrder,
    /// Channels of one half.
    half: u8,
    switches: u32,
    far: Vec<Option<SwitchId>>,
}

impl Grid {
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let order = DimensionOrder::new(graph, routing)?;
        let switches = u32::try_from(graph.switches()).expect("invariant: fewer than 2^32 switches");
        Ok(Self { half: order.virtual_channels(), order, switches, far: far_switches(graph) })
    }
}

/// The switch that each link leads to, if any.
pub(super) fn far_switches(graph: &Graph) -> Vec<Option<SwitchId>> {
    let far = |vertex| if let Vertex::Switch(switch) = vertex { Some(switch) } else { None };
    graph.links().iter().map(|link| far(link.to)).collect()
}

/// One of `count` consecutive numbers without two of them, by a random number.
#[inline]
pub(super) fn draw_but(count: u32, a: u32, b: u32, random: u32) -> Option<u32> {
    let left = count.saturating_sub(if a == b { 1 } else { 2 });
    let (low, high) = (a.min(b), a.max(b));
    let mut number = share(random, left);
    number += u32::from(number >= low);
    number += u32::from(low != high && number >= high);
    (left > 0).then_some(number)
}

impl Paths for Grid {
    fn channels(&self) -> u8 {
        2 * self.half
    }

    #[inline]
    fn step(&self, at: SwitchId, _previous: Hop, path: Path, to: HostId) -> (Hop, Path) {
        let (target, down) = self.order.ends.of(to);
        if let Next::Switch(via) = path.next()
            && let Some(hop) = self.order.towards(at, via, to)
        {
            return (hop, path);
        }
        let hop = match self.order.towards(at, target, to) {
            Some(hop) => Hop { channel: self.half + hop.channel, ..hop },
            None => Hop { link: down, channel: 0 },
        };
        (hop, Path::MINIMAL)
    }

    fn length(&self, at: SwitchId, path: Path, to: HostId) -> u32 {
        let (target, _) = self.order.ends.of(to);
        match path.next() {
            Next::Switch(via) => self.order.distance(at, via) + self.order.distance(via, target),
            _ => self.order.distance(at, target),
        }
    }

    #[inline]
    fn draw(&self, at: SwitchId, to: HostId, random: u32) -> Option<Path> {
        let (target, _) = self.order.ends.of(to);
        let via = draw_but(self.switches, at.0, target.0, random).filter(|_| at != target);
        via.map(|via| Path::through(SwitchId(via)))
    }

    fn all(&self, at: SwitchId, to: HostId) -> Vec<Path> {
        let (target, _) = self.order.ends.of(to);
        let all = (0..self.switches).map(SwitchId).filter(|via| at != target && *via != at && *via != target);
        all.map(Path::through).collect()
    }

    #[inline]
    fn far(&self, link: LinkId) -> Option<SwitchId> {
        self.far[link.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_drawn_evenly_without_two() {
        let drawn = |count, a, b| {
            let mut seen = vec![0; count as usize];
            (0..1000_u32)
                .filter_map(|n| draw_but(count, a, b, n * 4_294_967 + 2_147_483))
                .for_each(|n| seen[n as usize] += 1);
            seen
        };
        assert_eq!(drawn(6, 4, 1), [250, 0, 250, 250, 0, 250]);
        assert_eq!(drawn(3, 2, 2), [500, 500, 0]);
        assert_eq!(drawn(2, 0, 1), [0, 0]);
        assert_eq!(drawn(1, 0, 0), [0]);
    }
}
