//! Shortest paths within a group: for each pair of its switches the distance and the first step.

use std::collections::VecDeque;

use super::super::choices::{Choices, table_entries};
use crate::error::BuildError;
use crate::ids::{LinkId, SwitchId};
use crate::topology::{Graph, LinkRole, Vertex};

/// No path.
const FAR: u8 = u8::MAX;

pub struct Local {
    size: u32,
    /// By switch.
    homes: Vec<Home>,
    /// By switch and place in its group.
    distances: Vec<u8>,
    /// First steps, by switch and place in its group.
    steps: Choices,
    /// Whether every switch of a group is joined with every other.
    all_to_all: bool,
}

/// The group of a switch, and its place there.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    pub group: u32,
    pub place: u32,
}

impl Local {
    /// Measures the groups of `size` switches; `routing` is for the error.
    pub fn new(graph: &Graph, size: u32, ranks: &[u8], routing: &'static str) -> Result<Self, BuildError> {
        let entries = table_entries(routing, [(graph.switches(), "switches"), (size as usize, "switches of a group")])?;
        let mates: Vec<Vec<(LinkId, SwitchId)>> =
            (0..).take(graph.switches()).map(|at| mates(graph, SwitchId(at))).collect();
        let homes = (0..).take(mates.len()).map(|at: u32| Home { group: at / size, place: at % size }).collect();
        let mut local = Self { size, homes, distances: Vec::new(), steps: Choices::default(), all_to_all: false };
        local.distances.reserve(entries);
        for at in (0..).take(mates.len()).map(SwitchId) {
            local.measure(graph, &mates, at, routing)?;
        }
        local.all_to_all = local.distances.iter().all(|distance| *distance <= 1);
        for at in (0..).take(mates.len()).map(SwitchId) {
            for place in 0..size {
                let distance = local.distance(at, place);
                let nearer = |(_, mate): &&(LinkId, SwitchId)| local.distance(*mate, place) < distance;
                let steps: Vec<LinkId> = mates[at.index()].iter().filter(nearer).map(|(link, _)| *link).collect();
                let lowest = steps.iter().map(|link| ranks[link.index()]).min();
                local.steps.push(steps.into_iter().filter(|link| Some(ranks[link.index()]) == lowest));
            }
        }
        Ok(local)
    }

    /// Adds the distances from `at`. Cables go both ways, so they are the distances to it as well.
    fn measure(
        &mut self,
        graph: &Graph,
        mates: &[Vec<(LinkId, SwitchId)>],
        at: SwitchId,
        routing: &'static str,
    ) -> Result<(), BuildError> {
        let base = at.0 / self.size * self.size;
        let mut distances = vec![FAR; self.size as usize];
        distances[(at.0 - base) as usize] = 0;
        let mut fresh = VecDeque::from([at]);
        while let Some(near) = fresh.pop_front() {
            let beyond = (distances[(near.0 - base) as usize] + 1).min(FAR - 1);
            for (_, mate) in &mates[near.index()] {
                let distance = &mut distances[(mate.0 - base) as usize];
                if *distance == FAR {
                    *distance = beyond;
                    fresh.push_back(*mate);
                }
            }
        }
        if let Some(place) = (0..).zip(&distances).find_map(|(place, distance)| (*distance == FAR).then_some(place)) {
            let group = at.0 / self.size;
            let problem = format!(
                "{routing} needs a path within group {group} from {:?} to {:?}",
                graph.switch_name(at),
                graph.switch_name(SwitchId(base + place))
            );
            return Err(BuildError::Shape { path: "fabric.routing".to_owned(), problem });
        }
        self.distances.extend(distances);
        Ok(())
    }

    #[inline]
    pub fn is_all_to_all(&self) -> bool {
        self.all_to_all
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// The group of a switch, and its place there: looked up, for to divide takes longer.
    #[inline]
    pub fn home(&self, at: SwitchId) -> Home {
        self.homes[at.index()]
    }

    #[inline]
    fn slot(&self, at: SwitchId, place: u32) -> usize {
        at.index() * self.size as usize + place as usize
    }

    /// Links between a switch and a place in its group.
    #[inline]
    pub fn distance(&self, at: SwitchId, place: u32) -> u8 {
        self.distances[self.slot(at, place)]
    }

    /// The distances between a switch and all of its group, by place.
    #[inline]
    pub fn distances_of(&self, at: SwitchId) -> &[u8] {
        let first = self.slot(at, 0);
        &self.distances[first..first + self.size as usize]
    }

    /// The first step from a switch to a place in its group.
    #[inline]
    pub fn step(&self, at: SwitchId, place: u32, spread: impl FnOnce() -> u32) -> LinkId {
        self.steps.pick(self.slot(at, place), spread)
    }

    /// The only first step from a switch to a place in its group, if there is but one.
    pub fn only_step(&self, at: SwitchId, place: u32) -> Option<LinkId> {
        let [only] = self.steps.list(self.slot(at, place)) else { return None };
        Some(*only)
    }

    /// The highest channel and then rank with which a packet can come from `at` to `to`, from those it starts with.
    pub fn worst(&self, graph: &Graph, ranks: &[u8], at: SwitchId, to: SwitchId, start: (usize, u8)) -> (usize, u8) {
        if at == to {
            return start;
        }
        let place = to.0 % self.size;
        let mut kinds: Vec<(u8, Vertex)> = Vec::new();
        for link in self.steps.list(self.slot(at, place)) {
            let kind = (ranks[link.index()], graph.link(*link).to);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let beyond = kinds.into_iter().map(|(rank, next)| match next {
            Vertex::Host(_) => start,
            Vertex::Switch(next) => self.worst(graph, ranks, next, to, (start.0 + usize::from(start.1 >= rank), rank)),
        });
        beyond.max().unwrap_or(start)
    }
}

/// The links to switches of the own group.
fn mates(graph: &Graph, at: SwitchId) -> Vec<(LinkId, SwitchId)> {
    let links = graph.ports(Vertex::Switch(at)).filter(|link| graph.role(*link) != LinkRole::Global);
    links
        .filter_map(|link| if let Vertex::Switch(to) = graph.link(link).to { Some((link, to)) } else { None })
        .collect()
}
