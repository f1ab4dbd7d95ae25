//! The levels of the switches of a cabled tree, inferred from the whole structure.
//!
//! Hosts alone do not say which switches are leaves: management, storage and gateway hosts hang at aggregation and core
//! switches too, and some leaves have no host. The levels sought are those for which the cables between switches join
//! adjacent levels, hosts hang at level 1, and every switch above level 1 has switches below it. Each connected part of
//! the switches (a plane, a rail) is levelled by itself, in four steps:
//!
//! 1. Candidates. The switches with at least `t` hosts, or with at least a given share of their ports used for hosts,
//!    are taken for leaves; the level of every other switch is one more than its distance from the nearest leaf. The same
//!    is tried with those added to the leaves that have hosts and only lower neighbours then.
//! 2. Descent. The best candidates are improved switch by switch, greatest gain first, as long as their cost falls: that
//!    of cables, [`cable_cost`], and that of hosts above level 1.
//! 3. Ambiguous switches, all of whose neighbours have level 2, are put below or above these by what they join: see
//!    [`Component::side`].
//! 4. The cheapest candidate that is a tree ([`Census::is_tree`]) is taken. Where there is none, the levels are
//!    distances from the nearest switch with hosts, which say little: a torus, a dragonfly, a random graph.
//!
//! Everything is deterministic, and linear in the number of cables but for constant factors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Graph, Vertex};
use crate::ids::{HostId, SwitchId};

/// The highest level that is distinguished from those above it.
pub(super) const TOP: u8 = 100;
/// Candidates of either kind, and how many of them are improved.
const THRESHOLDS: usize = 24;
const IMPROVED: usize = 6;
/// Passes of the descent over all switches.
const PASSES: usize = 40;

/// How the cables and hosts of a fabric lie with respect to its levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    /// Cables between switches, and those of them within a level.
    cables: u64,
    across: u64,
    /// Cables between switches whose levels differ by more than one.
    skipping: u64,
    /// Cables to hosts, and those of them above level 1.
    hosts: u64,
    upper: u64,
    /// Those at switches above level 1 that join nothing above.
    at_tops: u64,
    /// Switches above level 1 that join nothing below.
    floating: u64,
    cost: u64,
}

impl Census {
    /// Counts a cable between switches of these levels.
    fn count(&mut self, a: u8, b: u8, cables: u64) {
        self.cables += cables;
        self.across += if a == b { cables } else { 0 };
        self.skipping += if a.abs_diff(b) > 1 { cables } else { 0 };
    }

    /// Counts the hosts of a switch, and whether something is above and below it.
    fn count_switch(&mut self, level: u8, hosts: u64, above: bool, below: bool) {
        self.hosts += hosts;
        self.upper += if level > 1 { hosts } else { 0 };
        self.at_tops += if level > 1 && !above { hosts } else { 0 };
        self.floating += u64::from(level > 1 && !below && hosts == 0);
    }

    /// Whether levels describe the fabric: at most a tenth of the cables between switches stay within a level and a fifth
    /// do not join adjacent ones, at most a third of the hosts hang above level 1, and every switch above level 1 has
    /// something below it.
    ///
    /// Line cards of a director have hosts, and edge switches below them: where 98% of the cables join adjacent levels
    /// and 98% of the hosts are at level 1 or have a switch above theirs, up to three quarters hang above level 1. In a
    /// grid or a hypercube, where cables can all join adjacent levels, too, the tops have hosts as all others.
    fn is_tree(&self) -> bool {
        let uneven = self.across + self.skipping;
        let flat = self.across * 10 > self.cables || uneven * 5 > self.cables;
        let director =
            uneven * 50 <= self.cables && self.at_tops * 50 <= self.hosts && self.upper * 4 <= self.hosts * 3;
        !flat && (self.upper * 3 <= self.hosts || director) && self.floating == 0
    }
}

/// Whether the levels of a fabric describe it as a tree.
#[must_use]
pub fn is_tree(graph: &Graph) -> bool {
    let mut census = Census::default();
    for switch in (0..).take(graph.switches()).map(SwitchId) {
        let (own, mut hosts, mut above, mut below) = (graph.level(switch), 0, false, false);
        for link in graph.ports(Vertex::Switch(switch)) {
            match graph.link(link).to {
                Vertex::Switch(other) => {
                    census.count(own, graph.level(other), 1);
                    below |= graph.level(other) < own;
                    above |= graph.level(other) > own;
                }
                Vertex::Host(HostId(_)) => hosts += 1,
            }
        }
        if own == 0 {
            return false;
        }
        census.count_switch(own, hosts, above, below);
    }
    census.is_tree()
}

/// Switches, the cables to hosts at each, and the cables between them.
pub(super) struct Cabling {
    /// Cables to hosts, by switch.
    pub hosts: Vec<u32>,
    /// By switch: its neighbours in ascending order, with the number of cables to each.
    pub neighbours: Vec<Vec<(usize, u32)>>,
}

impl Cabling {
    /// The level of every switch.
    pub fn levels(&self) -> Vec<u8> {
        let mut levels = vec![TOP; self.hosts.len()];
        for members in self.parts() {
            let part = Component { cabling: self, members };
            let found = part.levels();
            part.members.iter().for_each(|&switch| levels[switch] = found[switch]);
        }
        levels
    }

    /// The connected parts, each in ascending order.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.hosts.len()];
        let mut parts = Vec::new();
        for first in 0..self.hosts.len() {
            if std::mem::replace(&mut seen[first], true) {
                continue;
            }
            let mut part = vec![first];
            let mut next = 0;
            while let Some(&at) = part.get(next) {
                next += 1;
                for &(other, _) in &self.neighbours[at] {
                    if !std::mem::replace(&mut seen[other], true) {
                        part.push(other);
                    }
                }
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts
    }

    /// Cables between a switch and others.
    fn cables(&self, switch: usize) -> u64 {
        self.neighbours[switch].iter().map(|(_, cables)| u64::from(*cables)).sum()
    }

    /// Whether at least a `part` of `whole` of a switch's cables lead to hosts.
    fn is_hosting(&self, switch: usize, part: u64, whole: u64) -> bool {
        let hosts = u64::from(self.hosts[switch]);
        hosts > 0 && hosts * whole >= part * (hosts + self.cables(switch))
    }
}

/// The side of level 2 that a switch is on which joins only switches of level 2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Leaf,
    Above,
}

/// A connected part of the switches. Levels are held for all switches; those of others are not looked at.
struct Component<'c> {
    cabling: &'c Cabling,
    members: Vec<usize>,
}

impl Component<'_> {
    fn levels(&self) -> Vec<u8> {
        let usual = self.distances(|switch| self.cabling.hosts[switch] > 0);
        let known = self.census(&usual);
        let mut candidates: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut consider = |levels: Vec<u8>| {
            if candidates.iter().all(|(_, known)| *known != levels) {
                candidates.push((self.census(&levels).cost, levels));
            }
        };
        for mut leaves in self.leaf_sets() {
            let levels = self.distances(|switch| leaves.contains(&switch));
            leaves.extend(self.peaks(&levels));
            consider(levels);
            consider(self.distances(|switch| leaves.contains(&switch)));
        }
        // Stable: of equals the one with more leaves stays first.
        candidates.sort_by_key(|(cost, _)| *cost);
        candidates.truncate(IMPROVED);
        let improved = candidates.into_iter().map(|(_, mut levels)| {
            self.descend(&mut levels);
            for _ in 0..2 {
                self.settle(&mut levels);
            }
            (self.census(&levels), levels)
        });
        let better = |census: &Census| census.is_tree() && (known.is_tree() || census.cost < known.cost);
        let trees = improved.filter(|(census, _)| better(census));
        trees.min_by_key(|(census, _)| census.cost).map_or(usual, |(_, levels)| levels)
    }

    /// Switches with hosts that join only switches below them, and at least one: leaves that were missed, or tops.
    fn peaks(&self, levels: &[u8]) -> Vec<usize> {
        let is_peak = |switch: &usize| {
            let around = &self.cabling.neighbours[*switch];
            !around.is_empty() && around.iter().all(|(other, _)| levels[*other] < levels[*switch])
        };
        self.members.iter().copied().filter(|switch| self.cabling.hosts[*switch] > 0).filter(is_peak).collect()
    }

    /// Sets of switches that may be the leaves, without those that are empty; the first is all switches with hosts.
    fn leaf_sets(&self) -> Vec<BTreeSet<usize>> {
        let counts: BTreeSet<u32> = self.members.iter().map(|switch| self.cabling.hosts[*switch]).collect();
        let counts: Vec<u32> = counts.into_iter().filter(|count| *count > 0).collect();
        let step = counts.len().div_ceil(THRESHOLDS).max(1);
        let by_count = counts
            .iter()
            .step_by(step)
            .map(|least| self.members.iter().copied().filter(|switch| self.cabling.hosts[*switch] >= *least).collect());
        let whole = THRESHOLDS as u64;
        let by_share = (1..whole).map(|part| {
            self.members.iter().copied().filter(|switch| self.cabling.is_hosting(*switch, part, whole)).collect()
        });
        by_count.chain(by_share).filter(|set: &BTreeSet<usize>| !set.is_empty()).collect()
    }

    /// One more than the distance from the nearest leaf.
    fn distances(&self, is_leaf: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut levels = vec![TOP; self.cabling.hosts.len()];
        let mut fresh: VecDeque<usize> = self.members.iter().copied().filter(|switch| is_leaf(*switch)).collect();
        let mut seen = vec![false; levels.len()];
        for &leaf in &fresh {
            (levels[leaf], seen[leaf]) = (1, true);
        }
        while let Some(at) = fresh.pop_front() {
            for &(next, _) in &self.cabling.neighbours[at] {
                if !std::mem::replace(&mut seen[next], true) {
                    levels[next] = (levels[at] + 1).min(TOP);
                    fresh.push_back(next);
                }
            }
        }
        levels
    }

    fn census(&self, levels: &[u8]) -> Census {
        let mut census = Census::default();
        for &switch in &self.members {
            let (own, hosts) = (levels[switch], u64::from(self.cabling.hosts[switch]));
            let (mut above, mut below) = (false, false);
            for &(other, cables) in &self.cabling.neighbours[switch] {
                below |= levels[other] < own;
                above |= levels[other] > own;
                // Each cable is seen from both ends.
                census.count(own, levels[other], u64::from(cables));
                census.cost += u64::from(cables) * cable_cost(own, levels[other]);
            }
            census.cost += 2 * self.host_cost(switch, own, levels);
            census.count_switch(own, hosts, above, below);
        }
        census
    }

    /// The cost of hosts above level 1: 1 each, or 8 at the top of a single other switch, which joins nothing.
    fn host_cost(&self, switch: usize, own: u8, levels: &[u8]) -> u64 {
        if own == 1 {
            return 0;
        }
        let around = || self.cabling.neighbours[switch].iter().map(|(other, _)| levels[*other]);
        let below = around().filter(|level| *level < own).count();
        let joins = below > 1 || around().any(|level| level > own);
        u64::from(self.cabling.hosts[switch]) * if joins { 1 } else { 8 }
    }

    /// Moves switches to their cheapest levels until none gains. In each pass those move that gain more than any neighbour
    /// would: the switch that is wrong gains more than those that could adapt to it.
    fn descend(&self, levels: &mut [u8]) {
        let mut moves = vec![(0, 0); levels.len()];
        for _ in 0..PASSES {
            for &switch in &self.members {
                moves[switch] = self.best(switch, levels);
            }
            let leads = |switch: usize| {
                let key = |switch: usize| (moves[switch].0, std::cmp::Reverse(switch));
                moves[switch].0 > 0
                    && self.cabling.neighbours[switch].iter().all(|(other, _)| key(*other) < key(switch))
            };
            let leading: Vec<usize> = self.members.iter().copied().filter(|switch| leads(*switch)).collect();
            if leading.is_empty() {
                return;
            }
            leading.into_iter().for_each(|switch| levels[switch] = moves[switch].1);
        }
    }

    /// The gain of a switch at its cheapest level, and that level.
    fn best(&self, switch: usize, levels: &[u8]) -> (u64, u8) {
        let mut around: BTreeMap<u8, u64> = BTreeMap::new();
        for &(other, cables) in &self.cabling.neighbours[switch] {
            *around.entry(levels[other]).or_default() += u64::from(cables);
        }
        let Some((&lowest, _)) = around.first_key_value() else { return (0, levels[switch]) };
        let cost = |own: u8| {
            let cables: u64 = around.iter().map(|(level, cables)| cables * cable_cost(own, *level)).sum();
            cables + self.host_cost(switch, own, levels)
        };
        // Of equals the higher level comes first: a switch without hosts is rather above than below what it joins.
        let options = around.keys().rev().flat_map(|level| [level.saturating_add(1).min(TOP), level.saturating_sub(1)]);
        // A switch above level 1 has something below it.
        let options = options.filter(|level| *level == 1 || *level > lowest);
        let own = cost(levels[switch]);
        let mut best = (own, levels[switch]);
        for option in options {
            let found = cost(option);
            if found < best.0 {
                best = (found, option);
            }
        }
        (own - best.0, best.1)
    }

    /// Puts every switch that joins only switches of level 2 below or above these.
    fn settle(&self, levels: &mut [u8]) {
        let joins_middle = |switch: usize| {
            let around = &self.cabling.neighbours[switch];
            !around.is_empty() && around.iter().all(|(other, _)| levels[*other] == 2)
        };
        let open: Vec<usize> = self.members.iter().copied().filter(|switch| joins_middle(*switch)).collect();
        let mut spare: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        let mut settled = Vec::new();
        for switch in open {
            if self.cabling.hosts[switch] == 0 {
                spare.entry(self.around(switch)).or_default().push(switch);
            } else if self.side(switch, levels) == Side::Leaf {
                settled.push((switch, 1));
            } else {
                settled.push((switch, 3));
            }
        }
        for (around, switches) in spare {
            let alike = self.leaves_alike(&around, levels);
            let level = if alike > switches.len() { 1 } else { 3 };
            settled.extend(switches.into_iter().map(|switch| (switch, level)));
        }
        settled.into_iter().for_each(|(switch, level)| levels[switch] = level);
    }

    fn around(&self, switch: usize) -> Vec<usize> {
        self.cabling.neighbours[switch].iter().map(|(other, _)| *other).collect()
    }

    /// Where a switch with hosts is. The switches that a leaf joins have most of their other leaves in common: they are the
    /// spines of one subtree. Those that a core switch joins have few, for they are of several subtrees; none at all, if it
    /// has more hosts than a core switch is expected to have.
    fn side(&self, switch: usize, levels: &[u8]) -> Side {
        let leaves: Vec<BTreeSet<usize>> = self.cabling.neighbours[switch]
            .iter()
            .map(|(spine, _)| {
                let below = self.cabling.neighbours[*spine].iter().map(|(leaf, _)| *leaf);
                let all: BTreeSet<usize> = below
                    .filter(|leaf| *leaf != switch && levels[*leaf] == 1 && self.cabling.hosts[*leaf] > 0)
                    .collect();
                // Others with few hosts may be what this one is.
                let sure: BTreeSet<usize> =
                    all.iter().copied().filter(|leaf| self.cabling.is_hosting(*leaf, 1, 2)).collect();
                if sure.is_empty() { all } else { sure }
            })
            .collect();
        let (mut common, mut possible) = (0, 0);
        for pair in leaves.windows(2) {
            common += pair[0].intersection(&pair[1]).count();
            possible += pair[0].len().min(pair[1].len());
        }
        let many_hosts = self.cabling.is_hosting(switch, 1, 2);
        if common * 2 >= possible || (many_hosts && common > 0) { Side::Leaf } else { Side::Above }
    }

    /// How many leaves with hosts join nearly the same spines: two thirds of what either joins.
    fn leaves_alike(&self, around: &[usize], levels: &[u8]) -> usize {
        let mut common: BTreeMap<usize, usize> = BTreeMap::new();
        for &spine in around {
            for &(leaf, _) in &self.cabling.neighbours[spine] {
                if levels[leaf] == 1 && self.cabling.hosts[leaf] > 0 {
                    *common.entry(leaf).or_default() += 1;
                }
            }
        }
        let alike = |(leaf, common): (usize, usize)| {
            let either = around.len() + self.cabling.neighbours[leaf].len() - common;
            common * 3 >= either * 2
        };
        common.into_iter().filter(|found| alike(*found)).count()
    }
}

/// The cost of a cable between switches of these levels: nothing if they are adjacent, most within a level.
fn cable_cost(a: u8, b: u8) -> u64 {
    match a.abs_diff(b) {
        0 => 4,
        1 => 0,
        2 => 3,
        _ => 4,
    }
}
