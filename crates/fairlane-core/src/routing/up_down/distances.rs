//! How far switches are from each other along permitted paths.

use super::order::Order;
use crate::ids::{LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

const FAR: u32 = u32::MAX;

/// How far every switch is from every leaf, by switch and column of the leaf.
pub(super) struct Distances {
    leaves: usize,
    /// Going down only.
    down: Vec<u32>,
    /// Going up, then down.
    any: Vec<u32>,
    /// Where a second ascent is allowed.
    again: Option<Again>,
}

/// Distances with a second ascent.
struct Again {
    /// Of packets that came down: going down, then up, then down.
    after: Vec<u32>,
    /// Of packets that may go up: first up, then the same.
    fresh: Vec<u32>,
}

impl Distances {
    pub fn new(graph: &Graph, order: &Order, leaves: &[SwitchId]) -> Self {
        let size = graph.switches() * leaves.len();
        let mut down = vec![FAR; size];
        for (column, leaf) in leaves.iter().enumerate() {
            down[leaf.index() * leaves.len() + column] = 0;
        }
        relax_down(&mut down, leaves.len(), graph, order);
        let mut any = down.clone();
        relax_up(&mut any, leaves.len(), graph, order);
        Self { leaves: leaves.len(), down, any, again: None }
    }

    /// Adds paths that go up once more after they went down.
    pub fn allow_second_ascent(&mut self, graph: &Graph, order: &Order) {
        let mut after = self.any.clone();
        relax_down(&mut after, self.leaves, graph, order);
        let mut fresh = after.clone();
        relax_up(&mut fresh, self.leaves, graph, order);
        self.again = Some(Again { after, fresh });
    }

    /// The virtual channels that the paths need.
    pub fn channels(&self) -> u8 {
        if self.again.is_some() { 2 } else { 1 }
    }

    /// Whether a path leads from each leaf to every other in its part of the fabric.
    pub fn reach_all(&self, leaves: &[SwitchId], parts: &[u32]) -> bool {
        let distances = self.again.as_ref().map_or(&self.any, |again| &again.fresh);
        leaves.iter().all(|from| {
            let row = &distances[from.index() * self.leaves..(from.index() + 1) * self.leaves];
            let inside = |to: &SwitchId| parts[to.index()] == parts[from.index()];
            row.iter().zip(leaves).all(|(distance, to)| *distance != FAR || !inside(to))
        })
    }

    /// The links that lead a step along a shortest path; none at the leaf itself, or where no packet comes.
    pub fn steps(&self, graph: &Graph, descends: &[bool], at: SwitchId, column: usize, came_down: bool) -> Vec<LinkId> {
        let place = |switch: SwitchId| switch.index() * self.leaves + column;
        let here = place(at);
        let plain = if came_down { &self.down } else { &self.any };
        // The distances from here, from the far end of a link down, and from that of a link up, if that may be taken.
        let (own, down, up) = match &self.again {
            Some(again) if plain[here] == FAR && came_down => (&again.after, &again.after, Some(&self.any)),
            Some(again) if plain[here] == FAR => (&again.fresh, &again.after, Some(&again.fresh)),
            _ => (plain, &self.down, (!came_down).then_some(&self.any)),
        };
        let length = own[here];
        if length == 0 || length == FAR {
            return Vec::new();
        }
        let nearer = |link: &LinkId| {
            let Vertex::Switch(to) = graph.link(*link).to else { return false };
            let beyond = if descends[link.index()] { Some(down) } else { up };
            beyond.is_some_and(|distances| distances[place(to)].saturating_add(1) == length)
        };
        graph.ports(Vertex::Switch(at)).filter(nearer).collect()
    }
}

/// Shortens distances by steps down. A link down leads to a switch that is earlier in the order, whose distances are
/// known then.
fn relax_down(distances: &mut [u32], leaves: usize, graph: &Graph, order: &Order) {
    for &at in &order.rising {
        relax(distances, leaves, graph, at, |link| order.descends(graph.link(link)));
    }
}

/// Shortens distances by steps up.
fn relax_up(distances: &mut [u32], leaves: usize, graph: &Graph, order: &Order) {
    for &at in order.rising.iter().rev() {
        relax(distances, leaves, graph, at, |link| !order.descends(graph.link(link)));
    }
}

/// Shortens the distances from `at` by those over some of its links to switches. Of parallel links one is looked at.
fn relax(distances: &mut [u32], leaves: usize, graph: &Graph, at: SwitchId, allowed: impl Fn(LinkId) -> bool) {
    let mut last = None;
    for link in graph.ports(Vertex::Switch(at)).filter(|link| allowed(*link)) {
        let Vertex::Switch(to) = graph.link(link).to else { continue };
        if last.replace(to) == Some(to) {
            continue;
        }
        let (at, to) = (at.index() * leaves, to.index() * leaves);
        for column in 0..leaves {
            distances[at + column] = distances[at + column].min(distances[to + column].saturating_add(1));
        }
    }
}
