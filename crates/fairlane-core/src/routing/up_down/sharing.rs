//! How equally long paths are shared out by destination.
//!
//! On a tree it is D-mod-K's rule, carried over to trees with faults and with hosts at any level: of `n` candidate links
//! at a switch of level `j`, destination `d` takes number `floor(r / s(j)) mod n`. The rank `r` counts the hosts of one
//! level, subtree by subtree, switch by switch and by name: `d` is the `r`-th host that hangs at a switch of its level `l`. The
//! stride `s(j)` is the product of the numbers of parents of the switches of the levels from `l` to `j - 1`: paths to
//! `d` meet in one switch of level
//! `l`, so only parents from there on have been chosen among. Candidates are numbered in an order that is the same at all
//! switches: first one link of each trunk, in the order of what they lead to, then the second ones. Switches are ordered
//! from the top, by the first of their parents, so that the planes of a tree have one order in every subtree.
//!
//! Down a regular tree only one switch leads to `d`. Where several do, as line cards of a director above one edge
//! switch, packets come down over the switch that those from `d` would go up through by the rank of `d`, if it is among
//! them; else over number `floor(r / s(j - 2))` of these switches, modulo their number. Of the `n` cables to that switch
//! they take number `floor(r / s(j)) mod n`.
//!
//! On other fabrics the link is picked by a hash of switch and destination.

use std::collections::{HashMap, HashSet};

use crate::ids::{HostId, LinkId, SwitchId};
use crate::routing::choices::{share, spread};
use crate::routing::parts::Ends;
use crate::topology::{self, Graph, Vertex};

/// How equally long paths are shared out by destination.
pub(super) struct Sharing {
    /// None on a fabric that is no tree.
    tree: Option<TreeRanks>,
}

struct TreeRanks {
    /// By host: its level, and its rank among the hosts of that level in its part of the fabric.
    ranks: Vec<(u8, u32)>,
    /// By switch.
    levels: Vec<u8>,
    /// By the level of a host and that of a switch.
    strides: Vec<Vec<u32>>,
    /// By switch: where it stands among the switches of its level.
    places: Vec<u32>,
    /// By host and level: the switch that packets from the host would go up through, by its own rank.
    above: Vec<Option<SwitchId>>,
}

/// The switches that the candidates of one list lead to, where these are several, all of lower levels; else nothing.
#[derive(Default)]
pub(super) struct Below {
    /// By candidate.
    ends: Box<[SwitchId]>,
    /// How many different switches these are: those of the first candidates.
    switches: usize,
}

impl Sharing {
    pub fn new(graph: &Graph, ends: &Ends) -> Self {
        Self { tree: topology::is_tree(graph).then(|| TreeRanks::new(graph, ends)) }
    }

    /// The candidate of a destination among `count`; `below` as [`Sharing::below`] finds them.
    #[inline]
    pub fn index(&self, at: SwitchId, to: HostId, count: usize, below: &Below) -> usize {
        let parts = u32::try_from(count).expect("invariant: fewer than 2^32 links");
        let Some(tree) = &self.tree else { return share(spread(at, to), parts) as usize };
        if below.switches > 1 {
            return tree.down(at, to, below);
        }
        let (level, rank) = tree.ranks[to.index()];
        let stride = tree.strides[usize::from(level)][usize::from(tree.levels[at.index()])];
        (rank / stride % parts) as usize
    }

    /// The switches that sorted candidates lead to.
    pub fn below(&self, graph: &Graph, at: SwitchId, links: &[LinkId]) -> Below {
        let Some(tree) = &self.tree else { return Below::default() };
        let lower = |link: &LinkId| match graph.link(*link).to {
            Vertex::Switch(switch) if tree.levels[switch.index()] < tree.levels[at.index()] => Some(switch),
            _ => None,
        };
        let Some(ends) = links.iter().map(lower).collect::<Option<Box<[SwitchId]>>>() else { return Below::default() };
        let switches = ends.iter().collect::<HashSet<_>>().len();
        if switches > 1 { Below { ends, switches } } else { Below::default() }
    }

    /// The candidates of one switch, given in order of port, in the order in which they are numbered.
    pub fn sorted(&self, graph: &Graph, links: &[LinkId]) -> Vec<LinkId> {
        let mut links = links.to_vec();
        let Some(tree) = &self.tree else { return links };
        let mut seen: HashMap<Vertex, u32> = HashMap::new();
        let key = |link: &LinkId| {
            let end = graph.link(*link).to;
            let parallel = seen.entry(end).and_modify(|count| *count += 1).or_default();
            let place = if let Vertex::Switch(switch) = end { tree.places[switch.index()] } else { 0 };
            (*parallel, place, *link)
        };
        links.sort_by_cached_key(key);
        links
    }
}

impl TreeRanks {
    fn new(graph: &Graph, ends: &Ends) -> Self {
        let switches = || (0..).take(graph.switches()).map(SwitchId);
        let levels: Vec<u8> = switches().map(|switch| graph.level(switch)).collect();
        let top = usize::from(levels.iter().copied().max().unwrap_or(0));
        let parents = usual_parents(graph, top);
        let strides = (0..=top).map(|low| strides(&parents, low, top)).collect();
        let mut tree = Self { ranks: Vec::new(), strides, places: places(graph, &levels), levels, above: Vec::new() };
        let parents: Vec<Vec<SwitchId>> = switches().map(|at| tree.parents(graph, at)).collect();
        tree.ranks = tree.ranks(graph, ends, &parents, top);
        tree.above = tree.ways_up(graph, &parents, top);
        tree
    }

    /// By host: the level of the switch at its first link, and its rank among the hosts of that level. Hosts of a switch
    /// are in the order of their names, numbers within names by value, so that ranks do not depend on the order in which
    /// a file lists them. Switches of one subtree, those with the same first parent, follow each other; subtrees and
    /// switches do as their first hosts.
    fn ranks(&self, graph: &Graph, ends: &Ends, parents: &[Vec<SwitchId>], top: usize) -> Vec<(u8, u32)> {
        let named = by_name((0..).take(graph.hosts()).map(HostId), |host| graph.host_name(host));
        let mut first: HashMap<SwitchId, usize> = HashMap::new();
        let mut chains: Vec<Vec<SwitchId>> = Vec::with_capacity(graph.hosts());
        for (number, host) in named.iter().copied().enumerate() {
            let mut chain = Vec::new();
            let mut end = graph.ports(Vertex::Host(host)).next().map(|link| graph.link(link).to);
            while let Some(Vertex::Switch(at)) = end {
                if !chain.is_empty() && usize::from(self.levels[at.index()]) >= top {
                    break;
                }
                first.entry(at).or_insert(number);
                chain.push(at);
                end = parents[at.index()].first().map(|parent| Vertex::Switch(*parent));
            }
            chains.push(chain);
        }
        let key = |(number, chain): (usize, &Vec<SwitchId>)| {
            let level = self.levels[chain.first()?.index()];
            Some((level, chain.iter().rev().map(|switch| first[switch]).collect::<Vec<usize>>(), number, named[number]))
        };
        let mut order: Vec<_> = chains.iter().enumerate().filter_map(key).collect();
        order.sort_unstable();
        let mut ranks = vec![(1, 0); graph.hosts()];
        let mut next = HashMap::new();
        for (level, _, _, host) in order {
            let rank: &mut u32 = next.entry((ends.parts[ends.of(host).0.index()], level)).or_default();
            ranks[host.index()] = (level, *rank);
            *rank += 1;
        }
        ranks
    }

    /// [`TreeRanks::above`]: from the switch at each host's first link, the parent that the host's own rank chooses, and so on.
    fn ways_up(&self, graph: &Graph, parents: &[Vec<SwitchId>], top: usize) -> Vec<Option<SwitchId>> {
        let mut above = vec![None; graph.hosts() * (top + 1)];
        for host in (0..).take(graph.hosts()).map(HostId) {
            let (low, rank) = self.ranks[host.index()];
            let mut end = graph.ports(Vertex::Host(host)).next().map(|link| graph.link(link).to);
            while let Some(Vertex::Switch(at)) = end {
                let level = usize::from(self.levels[at.index()]);
                above[host.index() * (top + 1) + level] = Some(at);
                let own = &parents[at.index()];
                let digit = (rank / self.strides[usize::from(low)][level]) as usize;
                end = (!own.is_empty()).then(|| Vertex::Switch(own[digit % own.len()]));
            }
        }
        above
    }

    /// The switches of higher levels that one joins, in the order in which candidates are numbered.
    fn parents(&self, graph: &Graph, at: SwitchId) -> Vec<SwitchId> {
        let ends = graph.ports(Vertex::Switch(at)).map(|link| graph.link(link).to);
        let mut parents: Vec<SwitchId> = ends
            .filter_map(|end| if let Vertex::Switch(other) = end { Some(other) } else { None })
            .filter(|other| self.levels[other.index()] > self.levels[at.index()])
            .collect();
        parents.sort_unstable_by_key(|other| (self.places[other.index()], *other));
        parents.dedup();
        parents
    }

    /// The candidate of a destination among those that lead down to several switches.
    fn down(&self, at: SwitchId, to: HostId, below: &Below) -> usize {
        let (low, rank) = self.ranks[to.index()];
        let strides = &self.strides[usize::from(low)];
        let own = usize::from(self.levels[at.index()]);
        let known = &self.above[to.index() * strides.len()..(to.index() + 1) * strides.len()];
        let is_known = |switch: &SwitchId| known[usize::from(self.levels[switch.index()])] == Some(*switch);
        let other = || (rank / strides[own.saturating_sub(2)]) as usize % below.switches;
        let switch = below.ends[below.ends.iter().position(is_known).unwrap_or_else(other)];
        let cables = || (0..below.ends.len()).filter(|place| below.ends[*place] == switch);
        cables().nth((rank / strides[own]) as usize % cables().count()).unwrap_or_default()
    }
}

/// Hosts or switches in the order of their names, numbers within names by value.
fn by_name<T: Copy + Ord>(all: impl Iterator<Item = T>, name: impl Fn(T) -> String) -> Vec<T> {
    let mut named: Vec<_> = all.map(|one| (name(one), one)).collect();
    named.sort_by(|(a, first), (b, second)| alphanumeric_sort::compare_str(a, b).then(first.cmp(second)));
    named.into_iter().map(|(_, one)| one).collect()
}

/// By level of a switch: the product of the usual numbers of parents from level `low` on and below its own.
fn strides(parents: &[u32], low: usize, top: usize) -> Vec<u32> {
    let product =
        |level: usize| parents[low.min(level)..level].iter().fold(1_u32, |all, some| all.saturating_mul(*some));
    (0..=top).map(product).collect()
}

/// By level: how many switches of higher levels most switches join, the largest of equally frequent numbers.
fn usual_parents(graph: &Graph, top: usize) -> Vec<u32> {
    let mut counts: Vec<HashMap<u32, u32>> = vec![HashMap::new(); top + 1];
    for switch in (0..).take(graph.switches()).map(SwitchId) {
        let level = graph.level(switch);
        let ends = graph.ports(Vertex::Switch(switch)).map(|link| graph.link(link).to);
        let mut above: Vec<SwitchId> = ends
            .filter_map(|end| if let Vertex::Switch(other) = end { Some(other) } else { None })
            .filter(|other| graph.level(*other) > level)
            .collect();
        above.sort_unstable();
        above.dedup();
        let number = u32::try_from(above.len()).expect("invariant: fewer than 2^32 ports");
        *counts[usize::from(level)].entry(number).or_default() += 1;
    }
    let usual = |counts: &HashMap<u32, u32>| counts.iter().map(|(number, often)| (*often, *number)).max();
    counts.iter().map(|counts| usual(counts).map_or(1, |(_, number)| number.max(1))).collect()
}

/// By switch: its place within its level, by the first of its parents, then by name.
fn places(graph: &Graph, levels: &[u8]) -> Vec<u32> {
    let mut places = vec![0; levels.len()];
    let mut by_level: Vec<Vec<SwitchId>> = vec![Vec::new(); 1 + usize::from(levels.iter().copied().max().unwrap_or(0))];
    for switch in by_name((0..).take(levels.len()).map(SwitchId), |switch| graph.switch_name(switch)) {
        by_level[usize::from(levels[switch.index()])].push(switch);
    }
    for members in by_level.iter_mut().rev() {
        let parent = |switch: &SwitchId| {
            let ends = graph.ports(Vertex::Switch(*switch)).map(|link| graph.link(link).to);
            let above = ends.filter_map(|end| match end {
                Vertex::Switch(other) if levels[other.index()] > levels[switch.index()] => Some(places[other.index()]),
                _ => None,
            });
            above.min()
        };
        members.sort_by_cached_key(parent);
        (0..).zip(members.iter()).for_each(|(place, switch)| places[switch.index()] = place);
    }
    places
}
