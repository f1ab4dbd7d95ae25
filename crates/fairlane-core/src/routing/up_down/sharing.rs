//! How equally long paths are shared out by destination.
//!
//! On a tree it is D-mod-K's rule, carried over to trees with faults and with hosts at any level: of `n` candidate links
//! at a switch of level `j`, destination `d` takes number `floor(r / s) mod n`. The rank `r` counts the hosts of one
//! level, switch by switch: `d` is the `r`-th host that hangs at a switch of its level `l`. The stride `s` is the product
//! of the numbers of parents of the switches of the levels from `l` to `j - 1`: paths to `d` meet in one switch of level
//! `l`, so only parents from there on have been chosen among. Candidates are numbered in an order that is the same at all
//! switches: first one link of each trunk, in the order of what they lead to, then the second ones. Switches are ordered
//! from the top, by the first of their parents, so that the planes of a tree have one order in every subtree.
//!
//! On other fabrics the link is picked by a hash of switch and destination.

use std::collections::HashMap;

use crate::ids::{HostId, LinkId, SwitchId};
use crate::routing::choices::{share, spread};
use crate::topology::{self, Graph, Vertex};

/// How equally long paths are shared out by destination.
pub(super) struct Sharing {
    /// None on a fabric that is no tree.
    tree: Option<Tree>,
}

struct Tree {
    /// By host: its level, and its rank among the hosts of that level.
    ranks: Vec<(u8, u32)>,
    /// By switch.
    levels: Vec<u8>,
    /// By the level of a host and that of a switch.
    strides: Vec<Vec<u32>>,
    /// By switch: where it stands among the switches of its level.
    places: Vec<u32>,
}

impl Sharing {
    pub fn new(graph: &Graph) -> Self {
        Self { tree: topology::is_tree(graph).then(|| Tree::new(graph)) }
    }

    /// Which of `count` candidates a destination takes.
    #[inline]
    pub fn index(&self, at: SwitchId, to: HostId, count: usize) -> usize {
        let parts = u32::try_from(count).expect("invariant: fewer than 2^32 links");
        let Some(tree) = &self.tree else { return share(spread(at, to), parts) as usize };
        let (level, rank) = tree.ranks[to.index()];
        let stride = tree.strides[usize::from(level)][usize::from(tree.levels[at.index()])];
        (rank / stride % parts) as usize
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

impl Tree {
    fn new(graph: &Graph) -> Self {
        let switches = || (0..).take(graph.switches()).map(SwitchId);
        let levels: Vec<u8> = switches().map(|switch| graph.level(switch)).collect();
        let top = usize::from(levels.iter().copied().max().unwrap_or(0));
        let parents = usual_parents(graph, top);
        let strides = (0..=top).map(|low| strides(&parents, low, top)).collect();
        Self { ranks: ranks(graph), strides, places: places(graph, &levels), levels }
    }
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

/// By host: the level of the switch at its first link, and its rank among the hosts of that level. Switches follow each
/// other as their first hosts do.
fn ranks(graph: &Graph) -> Vec<(u8, u32)> {
    let mut order: Vec<(u8, HostId, HostId)> = Vec::with_capacity(graph.hosts());
    let mut first: HashMap<Vertex, HostId> = HashMap::new();
    for host in (0..).take(graph.hosts()).map(HostId) {
        let end = graph.ports(Vertex::Host(host)).next().map(|link| graph.link(link).to);
        let Some(Vertex::Switch(switch)) = end else { continue };
        order.push((graph.level(switch), *first.entry(Vertex::Switch(switch)).or_insert(host), host));
    }
    order.sort_unstable();
    let mut ranks = vec![(1, 0); graph.hosts()];
    let mut next = HashMap::new();
    for (level, _, host) in order {
        let rank: &mut u32 = next.entry(level).or_default();
        ranks[host.index()] = (level, *rank);
        *rank += 1;
    }
    ranks
}

/// By switch: its place within its level, by the first of its parents, then by number.
fn places(graph: &Graph, levels: &[u8]) -> Vec<u32> {
    let mut places = vec![0; levels.len()];
    let mut by_level: Vec<Vec<SwitchId>> = vec![Vec::new(); 1 + usize::from(levels.iter().copied().max().unwrap_or(0))];
    (0..)
        .take(levels.len())
        .map(SwitchId)
        .for_each(|switch| by_level[usize::from(levels[switch.index()])].push(switch));
    for members in by_level.iter_mut().rev() {
        let parent = |switch: &SwitchId| {
            let ends = graph.ports(Vertex::Switch(*switch)).map(|link| graph.link(link).to);
            let above = ends.filter_map(|end| match end {
                Vertex::Switch(other) if levels[other.index()] > levels[switch.index()] => Some(places[other.index()]),
                _ => None,
            });
            above.min()
        };
        members.sort_by_cached_key(|switch| (parent(switch), *switch));
        (0..).zip(members.iter()).for_each(|(place, switch)| places[switch.index()] = place);
    }
    places
}
