//! Paths through fabrics of groups: to another group over a random global link of the own one, and minimally from there.
//! Within a group: through a random switch of it.
//!
//! **Virtual channels**: with the fewest, a packet rises as in minimal routing, by one wherever the next link's rank is not
//! above the last one's. A dragonfly needs three for non-minimal paths that are chosen at the first switch (local 0, global 0,
//! local 1, global 1, local 2), and four if a packet may leave the minimal path later (local 0, local 1, global 1 ...). With one for each
//! hop, a packet rises at each link. Either way it never comes back to a pair of channel and rank, so no cycle of
//! channel dependencies can be.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::minimal::{Minimal, only::MOST_SWITCHES};
use super::grid::{draw_but, far_switches};
use super::{Next, Path, Paths};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::routing::Hop;
use crate::topology::Graph;

/// How virtual channels are assigned to the hops of a path.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::routing) enum Channels {
    /// Each hop the next one: as many as the longest path has links between switches, whatever the global links join.
    #[default]
    PerHop,
    /// The next one only where a cycle could be closed else.
    Fewest,
}

/// Where a packet on the minimal path may leave it.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::routing) enum Revise {
    /// At every switch of the group that it begins in.
    #[default]
    SourceGroup,
    /// At every switch of the path, also in the group that it goes to.
    Minimal,
}

pub(in crate::routing) struct Groups {
    minimal: Minimal,
    given: Channels,
    revise: Revise,
    /// Links of the longest paths within a group and between groups, minimal and not.
    longest: [[u32; 2]; 2],
    channels: u8,
    /// By link: the switch that it leads to, and the one that sends on it, if any.
    far: Vec<Option<SwitchId>>,
    near: Vec<Option<SwitchId>>,
    /// Links between two switches on minimal paths, by both; empty if that were too many.
    lengths: Vec<u8>,
    switches: usize,
}

impl Groups {
    /// `revised`: packets may leave the minimal path later than at their first switch, and have channels in this manner.
    pub fn new(graph: &Graph, routing: &'static str, revised: Option<(Channels, Revise)>) -> Result<Self, BuildError> {
        let minimal = Minimal::new(graph, routing)?;
        let (given, revise) = revised.unwrap_or((Channels::Fewest, Revise::default()));
        let extent = Extent::new(graph, &minimal);
        let channels = match given {
            Channels::PerHop => extent.longest(revise),
            Channels::Fewest => extent.highest(graph, &minimal, revised.map(|(_, revise)| revise)) + 1,
        };
        let channels = u8::try_from(channels)
            .map_err(|_| BuildError::value("fabric.routing", routing, "needs more than 255 virtual channels"))?;
        let far = far_switches(graph);
        let near = graph.links().iter().map(|link| far[link.reverse.index()]).collect();
        let (longest, switches) = (extent.of_kinds(), graph.switches());
        let mut groups = Self { minimal, given, revise, longest, channels, far, near, lengths: Vec::new(), switches };
        if switches <= MOST_SWITCHES {
            let all = || (0..).take(switches).map(SwitchId);
            let length = |pair: (SwitchId, SwitchId)| u8::try_from(groups.minimal.length(pair.0, pair.1)).ok();
            let lengths = all().flat_map(|at| all().map(move |target| (at, target))).map(length);
            groups.lengths = lengths.collect::<Option<_>>().unwrap_or_default();
        }
        Ok(groups)
    }

    /// Links between two switches on a minimal path.
    #[inline]
    fn distance(&self, at: SwitchId, target: SwitchId) -> u32 {
        let known = self.lengths.get(at.index() * self.switches + target.index());
        known.map_or_else(|| self.minimal.length(at, target), |links| (*links).into())
    }

    fn group(&self, switch: SwitchId) -> u32 {
        self.minimal.local.home(switch).group
    }

    /// The switch that sends on a link between switches.
    #[inline]
    fn near(&self, link: LinkId) -> SwitchId {
        self.near[link.index()].expect("invariant: a link between switches")
    }

    /// The switch that a link between switches leads to.
    #[inline]
    fn end(&self, link: LinkId) -> SwitchId {
        self.far[link.index()].expect("invariant: a link between switches")
    }

    #[inline]
    fn hop(&self, previous: Hop, link: LinkId) -> Hop {
        let fresh = self.minimal.ranks[previous.link.index()] == 0;
        let rise = match self.given {
            Channels::PerHop => u8::from(!fresh),
            Channels::Fewest => self.minimal.rise(previous.link, link),
        };
        Hop { link, channel: previous.channel + rise }
    }
}

impl Paths for Groups {
    fn channels(&self) -> u8 {
        self.channels
    }

    #[inline(always)]
    fn step(&self, at: SwitchId, previous: Hop, path: Path, to: HostId) -> (Hop, Path) {
        let (target, down) = self.minimal.ends.of(to);
        let (goal, left) = match path.next() {
            Next::Link(link) if self.near(link) == at => return (self.hop(previous, link), Path::MINIMAL),
            Next::Link(link) => (self.near(link), path),
            Next::Switch(via) if via != at => (via, path),
            _ if at == target => return (Hop { link: down, channel: 0 }, Path::MINIMAL),
            _ => (target, if path == Path::UNDECIDED { path } else { Path::MINIMAL }),
        };
        let link = self.minimal.link(at, goal, to);
        // An open choice may be revised at the next switch, if that is in the same group or all are asked.
        let may = |next: SwitchId| self.revise == Revise::Minimal || self.group(next) == self.group(at);
        let closes = left == Path::UNDECIDED && !self.far[link.index()].is_some_and(may);
        (self.hop(previous, link), if closes { Path::MINIMAL } else { left })
    }

    #[inline(always)]
    fn length(&self, at: SwitchId, path: Path, to: HostId) -> u32 {
        let (target, _) = self.minimal.ends.of(to);
        match path.next() {
            Next::Destination => self.distance(at, target),
            Next::Switch(via) => self.distance(at, via) + self.distance(via, target),
            Next::Link(link) => self.distance(at, self.near(link)) + 1 + self.distance(self.end(link), target),
        }
    }

    fn longest(&self, at: SwitchId, path: Path, to: HostId) -> u32 {
        let (target, _) = self.minimal.ends.of(to);
        let [between, minimal] = [self.group(at) != self.group(target), path.next() == Next::Destination];
        self.longest[usize::from(between)][usize::from(!minimal)]
    }

    #[inline(always)]
    fn draw(&self, at: SwitchId, to: HostId, random: u32) -> Option<Path> {
        let (target, _) = self.minimal.ends.of(to);
        let [here, there] = [at, target].map(|switch| self.minimal.local.home(switch));
        if here.group != there.group {
            let gateway = self.minimal.gateways.draw_elsewhere(here.group, there.group, random);
            return gateway.map(|gateway| Path::over(gateway.link));
        }
        let via = draw_but(self.minimal.size, here.place, there.place, random).filter(|_| at != target);
        via.map(|place| Path::through(SwitchId(here.group * self.minimal.size + place)))
    }

    fn all(&self, at: SwitchId, to: HostId) -> Vec<Path> {
        let (target, _) = self.minimal.ends.of(to);
        let (here, there) = (self.group(at), self.group(target));
        if here != there {
            return self.minimal.gateways.elsewhere(here, there).map(|gateway| Path::over(gateway.link)).collect();
        }
        let mates = (here * self.minimal.size..(here + 1) * self.minimal.size).map(SwitchId);
        mates.filter(|via| at != target && *via != at && *via != target).map(Path::through).collect()
    }

    #[inline]
    fn far(&self, link: LinkId) -> Option<SwitchId> {
        self.far[link.index()]
    }
}

/// The switches that a path can come to, and how far those are apart.
struct Extent {
    /// Switches with hosts.
    leaves: Vec<SwitchId>,
    /// Switches with global links.
    gateways: Vec<SwitchId>,
    all: Vec<SwitchId>,
    /// Links between two switches of a group, at most: by the sets that they belong to.
    leaf_to_gateway: usize,
    any_to_gateway: usize,
    gateway_to_gateway: usize,
    leaf_to_leaf: usize,
    leaf_to_any: usize,
    any_to_any: usize,
    any_to_leaf: usize,
    gateway_to_leaf: usize,
    groups: u32,
}

impl Extent {
    fn new(graph: &Graph, minimal: &Minimal) -> Self {
        let all: Vec<SwitchId> = (0..).take(graph.switches()).map(SwitchId).collect();
        let leaves = minimal.ends.leaves();
        let is_gateway = |at: &SwitchId| !minimal.gateways.ranks_of(*at, &minimal.ranks).is_empty();
        let gateways: Vec<SwitchId> = all.iter().copied().filter(is_gateway).collect();
        let apart = |from: &[SwitchId], to: &[SwitchId]| {
            let pairs = from.iter().flat_map(|a| mates(minimal, to, *a).map(|b| (*a, b)));
            pairs.map(|(a, b)| usize::from(minimal.local.distance(a, b.0 % minimal.size))).max().unwrap_or(0)
        };
        Self {
            leaf_to_gateway: apart(&leaves, &gateways),
            any_to_gateway: apart(&all, &gateways),
            gateway_to_gateway: apart(&gateways, &gateways),
            leaf_to_leaf: apart(&leaves, &leaves),
            leaf_to_any: apart(&leaves, &all),
            any_to_any: apart(&all, &all),
            any_to_leaf: apart(&all, &leaves),
            gateway_to_leaf: apart(&gateways, &leaves),
            groups: minimal.gateways.groups(),
            leaves,
            gateways,
            all,
        }
    }

    /// Links between switches on the longest paths within a group and to another, minimal and not, that are chosen at the first
    /// switch.
    fn of_kinds(&self) -> [[u32; 2]; 2] {
        let between = self.leaf_to_gateway + 1 + self.gateway_to_leaf;
        let kinds = [
            [self.leaf_to_leaf, self.leaf_to_any + self.any_to_leaf],
            [between, between + self.gateway_to_gateway + 1],
        ];
        kinds.map(|kind| kind.map(|links| u32::try_from(links).expect("invariant: distances are bytes")))
    }

    /// Links between switches on the longest path, if it may be left at each switch of the first group, or at all.
    fn longest(&self, revise: Revise) -> usize {
        let within = self.leaf_to_leaf.saturating_sub(1) + self.any_to_any + self.any_to_leaf;
        let intermediate = if self.groups > 2 { self.any_to_gateway + 1 + self.gateway_to_gateway } else { 0 };
        let between = if self.groups > 1 { self.leaf_to_gateway + intermediate + 1 + self.gateway_to_leaf } else { 0 };
        let late = match revise {
            Revise::Minimal if self.groups > 1 => {
                let detour = self.any_to_any + self.any_to_leaf;
                self.leaf_to_gateway + 1 + self.gateway_to_leaf.saturating_sub(1) + detour
            }
            _ => 0,
        };
        within.max(between).max(late).max(1)
    }

    /// The highest channel of any path if they rise by rank, or a number above it.
    fn highest(&self, graph: &Graph, minimal: &Minimal, revised: Option<Revise>) -> usize {
        let worst = |from: &[SwitchId], to: &[SwitchId], start: (usize, u8)| {
            let pairs = from.iter().flat_map(|a| mates(minimal, to, *a).map(|b| (*a, b)));
            pairs.map(|(a, b)| minimal.local.worst(graph, &minimal.ranks, a, b, start)).max().unwrap_or(start)
        };
        // Where a packet decides, at the latest.
        let decides = if revised.is_some() { worst(&self.leaves, &self.all, (0, 0)) } else { (0, 0) };
        let from = if revised.is_some() { &self.all } else { &self.leaves };
        let within = worst(&self.all, &self.leaves, worst(from, &self.all, decides)).0;
        let ranks: Vec<u8> =
            self.gateways.iter().flat_map(|at| minimal.gateways.ranks_of(*at, &minimal.ranks)).collect();
        let (Some(&lowest), Some(&top)) = (ranks.iter().min(), ranks.iter().max()) else { return within };
        // Over a global link, whose rank is at least the lowest.
        let over = |(channel, rank): (usize, u8)| channel + usize::from(rank >= lowest);
        let before = over(worst(from, &self.gateways, decides));
        let between = if self.groups > 2 { over(worst(&self.gateways, &self.gateways, (0, top))) } else { 0 };
        let late = match revised {
            Some(Revise::Minimal) => {
                let decides = worst(&self.gateways, &self.all, (0, top));
                before + worst(&self.all, &self.leaves, worst(&self.all, &self.all, decides)).0
            }
            _ => 0,
        };
        within.max(before + between + worst(&self.gateways, &self.leaves, (0, top)).0).max(late)
    }
}

/// Those of `to`, which are sorted, that are in the group of `at`.
fn mates<'a>(minimal: &Minimal, to: &'a [SwitchId], at: SwitchId) -> impl Iterator<Item = SwitchId> + use<'a> {
    let size = minimal.size;
    let first = to.partition_point(|other| other.0 / size < at.0 / size);
    to[first..].iter().copied().take_while(move |other| other.0 / size == at.0 / size)
}
