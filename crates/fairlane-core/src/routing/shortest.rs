//! Shortest paths of any connected fabric, free of deadlock by virtual channels that rise from hop to hop.
//!
//! **Equal-cost paths** are shared by destination: of `n` links on a shortest path, in order of port, a packet to host `d` at switch
//! `s` takes number `(d + s) mod n`. So each of them serves the hosts of a switch alike, to within one host.
//!
//! **Virtual channels**: a packet starts on channel 0 and rises by one wherever the next link's rank is not above the last one's.
//! Links up have the level of the switch that sends as their rank, links within a level come after these, and links down after
//! those, from the highest level first. So the pair (channel, rank) grows with every hop, and no cycle of channel dependencies can
//! be, whatever the graph. Where switches have no levels all links are of one rank: a packet is on channel `h` at its `h`-th link
//! between switches (K. D. Gunther, "Prevention of deadlocks in packet-switched data transport systems", IEEE Trans.
//! Communications 29, 1981), and there are as many channels as the longest path has links. In a tree one channel is enough.
//!
//! The table has a slot for each switch and each switch that packets can go to.

use super::choices::Choices;
use super::parts::Ends;
use super::{Hop, MAX_CHANNELS, Routing, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, LinkRole, Vertex};

/// The table of so many switches has 320 MiB, and the lists of several links up to 1 GiB.
const MOST_SWITCHES: usize = 8192;
const MOST_CHOICES: usize = 1 << 28;
/// No column: no packet goes to this switch.
const NO_COLUMN: u32 = u32::MAX;
/// No path, or none that has been found yet.
const FAR: u8 = u8::MAX;
/// The rank of a link within a level: above those of links up, below those of links down.
const ACROSS: u8 = 128;

/// The destinations of packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Targets {
    /// Switches with hosts.
    Hosts,
    /// Any switch, and from there a switch with hosts.
    Intermediates,
}

/// Shortest paths between switches.
pub(super) struct Shortest {
    pub ends: Ends,
    switches: usize,
    /// By switch: its column.
    columns: Vec<u32>,
    /// By column and switch: the links on shortest paths from the switch to that of the column.
    links: Choices,
    /// By column and switch: how many links they have.
    lengths: Vec<u8>,
    /// By link: 0 for those of hosts.
    ranks: Vec<u8>,
    channels: u8,
}

impl Shortest {
    /// Finds all shortest paths; `routing` is for the error.
    pub fn new(graph: &Graph, routing: &'static str, targets: Targets) -> Result<Self, BuildError> {
        let refuse = |allowed: String| Err(BuildError::value("fabric.routing", routing, allowed));
        let switches = graph.switches();
        if switches > MOST_SWITCHES {
            return refuse(format!(
                "up to {MOST_SWITCHES} switches where paths are found by a table, and this fabric has {switches}; up_down has no such limit"
            ));
        }
        let ends = Ends::new(graph, routing)?;
        let sources = ends.leaves();
        let all: Vec<SwitchId> = (0..).take(switches).map(SwitchId).collect();
        let roots = if targets == Targets::Hosts { &sources } else { &all };
        let ranks: Vec<u8> = (0..).map(LinkId).take(graph.links().len()).map(|link| rank(graph, link)).collect();
        let mut found = Self {
            ends,
            switches,
            columns: vec![NO_COLUMN; switches],
            links: Choices::default(),
            lengths: Vec::with_capacity(roots.len() * switches),
            ranks,
            channels: 1,
        };
        let mut search = Search::new(graph, &found.ranks);
        // By switch: the highest state in which a packet comes there from a switch with hosts.
        let mut arrives = vec![State::FRESH; switches];
        let is_source = flags(switches, &sources);
        for (column, root) in (0..).zip(roots) {
            found.columns[root.index()] = column;
            if !search.from(*root, State::FRESH) {
                return refuse(format!(
                    "needs a fabric without paths of more than {} links; up_down has no such limit",
                    FAR - 1
                ));
            }
            if is_source[root.index()] {
                for (best, state) in arrives.iter_mut().zip(&search.states) {
                    *best = (*best).max(*state);
                }
            }
            found.lengths.extend_from_slice(&search.lengths);
            search.add_choices(&mut found.links);
            if found.links.size() > MOST_CHOICES {
                return refuse(format!(
                    "needs a fabric with fewer equally short paths: above {MOST_CHOICES} links in its table"
                ));
            }
        }
        let mut channels = sources.iter().map(|source| arrives[source.index()].channels()).max().unwrap_or(1);
        if targets == Targets::Intermediates && switches > 2 {
            for via in &all {
                search.from(*via, arrives[via.index()]);
                channels = sources.iter().map(|to| search.states[to.index()].channels()).fold(channels, usize::max);
            }
        }
        if channels > MAX_CHANNELS {
            return refuse(format!(
                "needs {channels} virtual channels on this fabric, and a routing has at most {MAX_CHANNELS}; up_down needs one"
            ));
        }
        found.channels = u8::try_from(channels).unwrap_or(u8::MAX);
        Ok(found)
    }

    fn slot(&self, at: SwitchId, target: SwitchId) -> usize {
        self.columns[target.index()] as usize * self.switches + at.index()
    }

    /// The links on shortest paths between two different switches of one part, in order of port.
    #[inline]
    pub fn choices(&self, at: SwitchId, target: SwitchId) -> &[LinkId] {
        self.links.list(self.slot(at, target))
    }

    /// The link from `at` towards another switch, `target`, of a packet to `to`.
    #[inline]
    pub fn link(&self, at: SwitchId, target: SwitchId, to: HostId) -> LinkId {
        match self.choices(at, target) {
            [only] => *only,
            several => several[own(at, to, several.len())],
        }
    }

    /// A packet's hop over a link between switches.
    #[inline]
    pub fn hop(&self, previous: Hop, link: LinkId) -> Hop {
        let rises = self.ranks[previous.link.index()] >= self.ranks[link.index()];
        Hop { link, channel: previous.channel + u8::from(rises) }
    }

    /// Every hop on a shortest path of a packet, with what is noted in the packet.
    pub fn all_options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let (target, down) = self.ends.of(visit.to);
        if at == target {
            return vec![(Hop { link: down, channel: 0 }, visit.note)];
        }
        let links = self.choices(at, target).iter();
        links.map(|link| (self.hop(visit.previous, *link), visit.note)).collect()
    }

    /// Links between two switches.
    pub fn length(&self, at: SwitchId, target: SwitchId) -> u32 {
        self.lengths[self.slot(at, target)].into()
    }
}

/// The link of a destination among `count` links on shortest paths.
#[inline]
pub(super) fn own(at: SwitchId, to: HostId, count: usize) -> usize {
    to.0.wrapping_add(at.0) as usize % count
}

impl Routing for Shortest {
    fn virtual_channels(&self) -> u8 {
        self.channels
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.ends.reaches(at, to)
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (target, down) = self.ends.of(to);
        if at == target { Hop { link: down, channel: 0 } } else { self.hop(previous, self.link(at, target, to)) }
    }
}

/// The rank of a link: 0 for those of hosts.
fn rank(graph: &Graph, link: LinkId) -> u8 {
    let Vertex::Switch(from) = graph.link(link).from else { return 0 };
    // Levels above 100 are not distinguished.
    let level = graph.level(from).min(ACROSS - 1);
    match graph.role(link) {
        LinkRole::Host => 0,
        LinkRole::Up => level.max(1),
        LinkRole::Down => u8::MAX - level,
        _ => ACROSS,
    }
}

fn flags(switches: usize, set: &[SwitchId]) -> Vec<bool> {
    let mut flags = vec![false; switches];
    set.iter().for_each(|switch| flags[switch.index()] = true);
    flags
}

/// In which channel, and over a link of which rank, a packet comes to a switch. Whatever a packet does from there on, one that came
/// in a higher state ends in a state at least as high: the highest is what counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    channel: u16,
    rank: u8,
}

impl State {
    /// At the first switch.
    const FRESH: Self = Self { channel: 0, rank: 0 };

    fn over(self, rank: u8) -> Self {
        Self { channel: self.channel + u16::from(self.rank >= rank), rank }
    }

    /// Channels of a path that ends so.
    fn channels(self) -> usize {
        usize::from(self.channel) + 1
    }
}

/// A link between switches, as the search needs it.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    link: LinkId,
    rank: u8,
}

/// A breadth-first search.
struct Search {
    /// The first edge of each switch, one more at the end.
    first: Vec<u32>,
    edges: Vec<Edge>,
    order: Vec<u32>,
    /// By switch: links from the root, and the highest state in which a packet from there arrives.
    lengths: Vec<u8>,
    states: Vec<State>,
}

impl Search {
    fn new(graph: &Graph, ranks: &[u8]) -> Self {
        let (mut first, mut edges) = (vec![0], Vec::new());
        for at in (0..).take(graph.switches()).map(SwitchId) {
            edges.extend(graph.ports(Vertex::Switch(at)).filter_map(|link| match graph.link(link).to {
                Vertex::Switch(to) => Some(Edge { to: to.0, link, rank: ranks[link.index()] }),
                Vertex::Host(_) => None,
            }));
            first.push(u32::try_from(edges.len()).expect("invariant: links have 32-bit numbers"));
        }
        let switches = graph.switches();
        Self { first, edges, order: Vec::new(), lengths: vec![FAR; switches], states: vec![State::FRESH; switches] }
    }

    fn edges(&self, at: u32) -> std::ops::Range<usize> {
        self.first[at as usize] as usize..self.first[at as usize + 1] as usize
    }

    /// Visits all switches from `root`, where packets start in this state. False if some are too far.
    fn from(&mut self, root: SwitchId, start: State) -> bool {
        self.lengths.fill(FAR);
        self.states.fill(State::FRESH);
        self.order.clear();
        self.order.push(root.0);
        (self.lengths[root.index()], self.states[root.index()]) = (0, start);
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            let (length, state) = (self.lengths[at as usize], self.states[at as usize]);
            for edge in self.edges(at) {
                let Edge { to, rank, .. } = self.edges[edge];
                let to = to as usize;
                if self.lengths[to] == FAR {
                    if length + 1 == FAR {
                        return false;
                    }
                    self.lengths[to] = length + 1;
                    self.order.push(self.edges[edge].to);
                }
                if self.lengths[to] == length + 1 {
                    self.states[to] = self.states[to].max(state.over(rank));
                }
            }
        }
        true
    }

    /// Adds for every switch the links that lead a step nearer to the root.
    fn add_choices(&self, choices: &mut Choices) {
        for (at, length) in (0..).zip(&self.lengths) {
            let near = self.edges[self.edges(at)].iter().filter(|edge| self.lengths[edge.to as usize] < *length);
            choices.push(near.map(|edge| edge.link));
        }
    }
}
