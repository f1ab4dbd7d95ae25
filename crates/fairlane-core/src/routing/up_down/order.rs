//! The order of switches: which of two is further up.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use super::super::parts::neighbours;
use crate::ids::SwitchId;
use crate::topology::{Graph, Link, Vertex};

/// An order of the switches.
pub(super) struct Order {
    /// Lowest first.
    pub rising: Vec<SwitchId>,
    places: Vec<usize>,
}

impl Order {
    /// By level, then by the number of links to other switches, then by number.
    pub fn by_levels(graph: &Graph) -> Self {
        Self::by_key(graph, |switch| (graph.level(switch), neighbours(graph, switch).count()))
    }

    /// Nearest to a central switch last, in each part of the fabric. A central switch is nearest to those furthest away;
    /// of several it is one with many links to other switches.
    pub fn by_nearness(graph: &Graph) -> Self {
        let all = || (0..).take(graph.switches()).map(SwitchId);
        let (parts, count) = graph.parts_without(&BTreeSet::new());
        let furthest = |switch: SwitchId| distances(graph, switch).into_iter().filter(|far| *far != usize::MAX).max();
        let mut centres: Vec<Option<_>> = vec![None; count];
        for switch in all() {
            let key = (furthest(switch), Reverse(neighbours(graph, switch).count()));
            let centre = &mut centres[parts[switch.index()] as usize];
            if centre.is_none_or(|(best, _)| key < best) {
                *centre = Some((key, switch));
            }
        }
        let mut nearest = vec![usize::MAX; graph.switches()];
        for (_, centre) in centres.into_iter().flatten() {
            let found = distances(graph, centre);
            nearest.iter_mut().zip(found).for_each(|(nearest, distance)| *nearest = distance.min(*nearest));
        }
        Self::by_key(graph, |switch| Reverse(nearest[switch.index()]))
    }

    fn by_key<K: Ord>(graph: &Graph, key: impl Fn(SwitchId) -> K) -> Self {
        let mut rising: Vec<SwitchId> = (0..).take(graph.switches()).map(SwitchId).collect();
        rising.sort_by_key(|switch| (key(*switch), *switch));
        let mut places = vec![0; rising.len()];
        rising.iter().enumerate().for_each(|(place, switch)| places[switch.index()] = place);
        Self { rising, places }
    }

    /// Whether a link leads down: to a host, or to a switch that comes earlier.
    pub fn descends(&self, link: &Link) -> bool {
        match (link.from, link.to) {
            (Vertex::Host(_), _) => false,
            (_, Vertex::Host(_)) => true,
            (Vertex::Switch(from), Vertex::Switch(to)) => self.places[to.index()] < self.places[from.index()],
        }
    }
}

/// Links from a switch to every other; the largest number where there is no path.
fn distances(graph: &Graph, from: SwitchId) -> Vec<usize> {
    let mut distances = vec![usize::MAX; graph.switches()];
    distances[from.index()] = 0;
    let mut fresh = VecDeque::from([from]);
    while let Some(at) = fresh.pop_front() {
        for next in neighbours(graph, at) {
            if distances[next.index()] == usize::MAX {
                distances[next.index()] = distances[at.index()] + 1;
                fresh.push_back(next);
            }
        }
    }
    distances
}
