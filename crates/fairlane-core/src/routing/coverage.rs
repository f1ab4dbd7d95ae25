//! The part of a fabric that a routing uses: the links on its routes, and how many of the minimal paths consist of these.
//!
//! Routes are those from every endpoint to every other of its part of the fabric, on every virtual lane, whatever the loads. A
//! link between switches that no such route takes is idle whatever the jobs send. A *minimal path* of two switches is a
//! path of the fewest links between them; paths over different links of a trunk are different paths.

use std::collections::{BTreeMap, HashSet};

use super::{Hop, Routing, Visit};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

/// The part of a fabric that a routing uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// By link: whether a route takes it.
    pub used: Vec<bool>,
    /// How many destinations' (endpoints') routes were followed before every link between switches was known to be used, or the budget
    /// was spent.
    pub destinations: usize,
    /// Whether `used` is exact; else more links may be used.
    pub is_exact: bool,
    /// Of the minimal paths between two switches with hosts, the share all of whose links are used; the mean over all
    /// pairs of endpoints of one part at different switches. 1 if there is no such pair.
    pub minimal_paths: f64,
    /// Of these pairs of endpoints, the share whose route is a minimal path;
    /// none for a routing that goes by loads.
    pub minimal_routes: Option<f64>,
    /// How many of the switches with hosts the shares were measured from, and how many there are.
    pub sources: (usize, usize),
}

/// Follows the routes of a fabric. It is exact as long as about `budget` hops are enough for the routes, and as many for
/// the minimal paths; else it looks at evenly spaced destinations and sources.
#[must_use]
pub fn coverage(graph: &Graph, routing: &dyn Routing, budget: u64) -> Coverage {
    let mut follower = Follower::new(graph, routing);
    follower.follow_last_hops();
    let endpoints = graph.endpoints();
    let (mut destinations, mut steps) = (0, 0);
    for endpoint in spaced(endpoints) {
        if follower.idle == 0 || steps > budget {
            break;
        }
        steps += follower.follow_to(endpoint);
        destinations += 1;
    }
    let is_exact = follower.idle == 0 || destinations == endpoints;
    let used = follower.used;
    let shares = MinimalShares::new(graph, routing, &used, budget);
    Coverage {
        used,
        destinations,
        is_exact,
        minimal_paths: shares.paths,
        minimal_routes: shares.routes,
        sources: shares.sources,
    }
}

/// All numbers below `count`, in an order in which each beginning is spread over all of them.
fn spaced(count: usize) -> impl Iterator<Item = HostId> {
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // Near the golden section, and without a common divisor.
    let step = (count * 618 / 1000..).find(|step| common(*step, count) == 1).unwrap_or(1);
    (0..count)
        .map(move |number| HostId(u32::try_from(number * step % count).expect("invariant: fewer than 2^32 hosts")))
}

/// An endpoint of the same part and another host is looked for among so many.
const MOST_TRIED: usize = 1024;

/// A link between switches?
fn is_inner(graph: &Graph, link: LinkId) -> bool {
    let link = graph.link(link);
    matches!((link.from, link.to), (Vertex::Switch(_), Vertex::Switch(_)))
}

/// The link that leaves an endpoint.
fn first_link(endpoint: HostId) -> LinkId {
    LinkId(endpoint.0)
}

/// Marks the links on routes.
struct Follower<'g> {
    graph: &'g Graph,
    routing: &'g dyn Routing,
    used: Vec<bool>,
    /// Links between switches that are not marked yet.
    idle: usize,
    /// Where routes begin: by switch, up to two endpoints. The others are routed as these.
    sources: Vec<Vec<HostId>>,
    /// By link and channel: one more than the number of the flood that passed it last.
    passed: Vec<u32>,
    floods: u32,
}

impl<'g> Follower<'g> {
    fn new(graph: &'g Graph, routing: &'g dyn Routing) -> Self {
        let mut sources: BTreeMap<Vertex, Vec<HostId>> = BTreeMap::new();
        for endpoint in (0..).take(graph.endpoints()).map(HostId) {
            let ends = sources.entry(graph.link(first_link(endpoint)).to).or_default();
            if ends.len() < 2 {
                ends.push(endpoint);
            }
        }
        let inner = (0..).map(LinkId).take(graph.links().len()).filter(|link| is_inner(graph, *link)).count();
        let channels = usize::from(routing.virtual_channels());
        Self {
            graph,
            routing,
            used: vec![false; graph.links().len()],
            idle: inner,
            sources: sources.into_values().collect(),
            passed: vec![0; graph.links().len() * channels],
            floods: 0,
        }
    }

    fn mark(&mut self, link: LinkId) {
        if !std::mem::replace(&mut self.used[link.index()], true) && is_inner(self.graph, link) {
            self.idle -= 1;
        }
    }

    /// Marks the links of the route to every endpoint from the next one of its part at another host.
    fn follow_last_hops(&mut self) {
        let endpoints = self.graph.endpoints();
        for to in (0..).take(endpoints).map(HostId) {
            let number =
                |place: usize| HostId(u32::try_from(place % endpoints).expect("invariant: links have 27 bits"));
            let mut others = (1..endpoints.min(MOST_TRIED)).map(|step| number(to.index() + step));
            let is_source = |from: &HostId| match self.graph.link(first_link(*from)).to {
                Vertex::Switch(at) => {
                    self.routing.reaches(at, to) && self.graph.host_of(*from) != self.graph.host_of(to)
                }
                Vertex::Host(_) => false,
            };
            let Some(from) = others.find(is_source) else { continue };
            // It sends to that one, too.
            self.mark(first_link(to));
            let mut hop = Hop { link: first_link(from), channel: 0 };
            self.mark(hop.link);
            while let Vertex::Switch(at) = self.graph.link(hop.link).to {
                hop = self.routing.next_hop(at, hop, to);
                self.mark(hop.link);
            }
        }
    }

    /// Marks the links of all routes to an endpoint; returns how many hops it looked at.
    fn follow_to(&mut self, to: HostId) -> u64 {
        let host = self.graph.host_of(to);
        let fresh: Vec<Hop> = self
            .sources
            .iter()
            .filter_map(|ends| ends.iter().find(|from| self.graph.host_of(**from) != host))
            .map(|from| Hop { link: first_link(*from), channel: 0 })
            .filter(|hop| match self.graph.link(hop.link).to {
                Vertex::Switch(at) => self.routing.reaches(at, to),
                Vertex::Host(_) => false,
            })
            .collect();
        if self.routing.adaptive() { self.flood_options(fresh, to) } else { self.flood(fresh, to) }
    }

    fn flood(&mut self, mut open: Vec<Hop>, to: HostId) -> u64 {
        self.floods += 1;
        let channels = usize::from(self.routing.virtual_channels());
        let mut steps = 0;
        while let Some(hop) = open.pop() {
            steps += 1;
            let passed = &mut self.passed[hop.link.index() * channels + usize::from(hop.channel)];
            if std::mem::replace(passed, self.floods) == self.floods {
                continue;
            }
            self.mark(hop.link);
            if let Vertex::Switch(at) = self.graph.link(hop.link).to {
                open.push(self.routing.next_hop(at, hop, to));
            }
        }
        steps
    }

    fn flood_options(&mut self, fresh: Vec<Hop>, to: HostId) -> u64 {
        let mut steps = 0;
        for vl in 0..self.routing.routed_lanes() {
            let mut open: Vec<(Hop, u32)> = fresh.iter().map(|hop| (*hop, 0)).collect();
            let mut seen: HashSet<(LinkId, u8, u32)> = HashSet::new();
            while let Some((previous, note)) = open.pop() {
                steps += 1;
                if !seen.insert((previous.link, previous.channel, note)) {
                    continue;
                }
                self.mark(previous.link);
                if let Vertex::Switch(at) = self.graph.link(previous.link).to {
                    open.extend(self.routing.options(at, &Visit { vl, note, ..Visit::new(previous, to) }));
                }
            }
        }
        steps
    }
}

/// Shares of minimal paths and of routes that are minimal.
struct MinimalShares {
    paths: f64,
    routes: Option<f64>,
    sources: (usize, usize),
}

impl MinimalShares {
    fn new(graph: &Graph, routing: &dyn Routing, used: &[bool], budget: u64) -> Self {
        let ends = by_switch(graph);
        let leaves: Vec<SwitchId> = ends.keys().copied().collect();
        let affordable = usize::try_from(budget / (graph.links().len() as u64).max(1)).unwrap_or(usize::MAX).max(1);
        let step = leaves.len().div_ceil(affordable).max(1);
        let (mut paths, mut minimal, mut pairs) = (0.0, 0_u64, 0_u64);
        for from in leaves.iter().step_by(step) {
            let around = Around::new(graph, *from, used);
            let own = &ends[from];
            let weight = own.len() as u64;
            for to in leaves.iter().filter(|to| *to != from) {
                let Some(length) = around.distance[to.index()] else { continue };
                let number = weight * ends[to].len() as u64;
                if !routing.adaptive() {
                    let is_minimal = |to: &&HostId| hops(graph, routing, first_link(own[0]), **to) == Some(length);
                    minimal += weight * ends[to].iter().filter(is_minimal).count() as u64;
                }
                pairs += number;
                #[allow(clippy::cast_precision_loss, reason = "a weight")]
                let weight = number as f64;
                paths += around.over_used[to.index()] / around.paths[to.index()] * weight;
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let share = |part: f64| if pairs == 0 { 1.0 } else { part / pairs as f64 };
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let routes = (!routing.adaptive()).then(|| share(minimal as f64));
        Self { paths: share(paths), routes, sources: (leaves.len().div_ceil(step), leaves.len()) }
    }
}

/// The endpoints at each switch that has some.
fn by_switch(graph: &Graph) -> BTreeMap<SwitchId, Vec<HostId>> {
    let mut ends: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
    for endpoint in (0..).take(graph.endpoints()).map(HostId) {
        if let Vertex::Switch(switch) = graph.link(first_link(endpoint)).to {
            ends.entry(switch).or_default().push(endpoint);
        }
    }
    ends
}

/// Links between switches on the route of a packet that came over a host's link; none if it is not reached.
fn hops(graph: &Graph, routing: &dyn Routing, first: LinkId, to: HostId) -> Option<u32> {
    let mut hop = Hop { link: first, channel: 0 };
    let mut number = 0;
    while let Vertex::Switch(at) = graph.link(hop.link).to {
        if !routing.reaches(at, to) {
            return None;
        }
        hop = routing.next_hop(at, hop, to);
        number += u32::from(is_inner(graph, hop.link));
    }
    Some(number)
}

/// Minimal paths from one switch to all others.
struct Around {
    distance: Vec<Option<u32>>,
    /// How many there are, and how many of them go over used links only.
    paths: Vec<f64>,
    over_used: Vec<f64>,
}

impl Around {
    fn new(graph: &Graph, from: SwitchId, used: &[bool]) -> Self {
        let none = || vec![0.0; graph.switches()];
        let mut around = Self { distance: vec![None; graph.switches()], paths: none(), over_used: none() };
        around.distance[from.index()] = Some(0);
        (around.paths[from.index()], around.over_used[from.index()]) = (1.0, 1.0);
        let mut open = vec![from];
        let mut next = 0;
        while let Some(&at) = open.get(next) {
            next += 1;
            let beyond = around.distance[at.index()].map(|distance| distance + 1);
            for id in graph.ports(Vertex::Switch(at)) {
                let Vertex::Switch(to) = graph.link(id).to else { continue };
                if around.distance[to.index()].is_none() {
                    around.distance[to.index()] = beyond;
                    open.push(to);
                }
                if around.distance[to.index()] == beyond {
                    around.paths[to.index()] += around.paths[at.index()];
                    around.over_used[to.index()] += if used[id.index()] { around.over_used[at.index()] } else { 0.0 };
                }
            }
        }
        around
    }
}
