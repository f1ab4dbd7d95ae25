//! The global links, by pair of groups.

use super::super::choices::{scatter, share, table_entries};
use super::local::Local;
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, LinkRole, Vertex};

/// A global link with its ends.
#[derive(Clone, Copy, Debug)]
pub struct Gateway {
    pub link: LinkId,
    /// The place of its near end in its group.
    pub near_place: u16,
    /// The place of its far end in its group.
    pub far_place: u16,
}

pub struct Gateways {
    groups: u32,
    /// Where the list of each pair of groups begins; one more at the end.
    start: Vec<u32>,
    /// By pair of groups, then by near end.
    list: Vec<Gateway>,
    /// By near end: the links alone.
    of_switch: Vec<Vec<LinkId>>,
    /// The same links by near end, then group of the far end, and where the list of each such pair begins; one more at the end.
    /// Empty unless every switch of a group is joined with every other.
    own: Vec<Gateway>,
    own_start: Vec<u32>,
}

impl Gateways {
    /// Sorts the global links of groups of switches; `routing` is for the error.
    pub fn new(graph: &Graph, local: &Local, routing: &'static str) -> Result<Self, BuildError> {
        let size = local.size();
        let switches = u32::try_from(graph.switches()).expect("invariant: fewer than 2^32 switches");
        let groups = switches / size;
        let pairs = table_entries(routing, [(groups as usize, "groups"), (groups as usize, "groups")])?;
        let place = |switch: SwitchId| {
            let allowed = "needs groups of fewer than 65536 switches";
            u16::try_from(switch.0 % size).map_err(|_| BuildError::value("fabric.routing", routing, allowed))
        };
        // Pair of groups, near end, and the rest.
        let mut list: Vec<(u32, SwitchId, Gateway)> = Vec::new();
        for (link, cable) in
            (0..).map(LinkId).zip(graph.links()).filter(|(link, _)| graph.role(*link) == LinkRole::Global)
        {
            if let (Vertex::Switch(near), Vertex::Switch(far)) = (cable.from, cable.to) {
                let gateway = Gateway { link, near_place: place(near)?, far_place: place(far)? };
                list.push((near.0 / size * groups + far.0 / size, near, gateway));
            }
        }
        let (mut own, mut own_start) = (Vec::new(), Vec::new());
        if local.is_all_to_all() {
            let of_switches = table_entries(routing, [(graph.switches(), "switches"), (groups as usize, "groups")])?;
            list.sort_by_key(|(pair, near, gateway)| (near.0 * groups + *pair % groups, gateway.link));
            own_start = starts(of_switches, list.iter().map(|(pair, near, _)| near.0 * groups + *pair % groups));
            own = list.iter().map(|(.., gateway)| *gateway).collect();
        }
        list.sort_by_key(|(pair, near, gateway)| (*pair, *near, gateway.link));
        let start = starts(pairs, list.iter().map(|(pair, ..)| *pair));
        let mut of_switch = vec![Vec::new(); graph.switches()];
        list.iter().for_each(|(_, near, gateway)| of_switch[near.index()].push(gateway.link));
        let list = list.into_iter().map(|(.., gateway)| gateway).collect();
        let gateways = Self { groups, start, list, of_switch, own, own_start };
        gateways.check(routing)?;
        Ok(gateways)
    }

    /// Every group needs a link to every other.
    fn check(&self, routing: &'static str) -> Result<(), BuildError> {
        for a in 0..self.groups {
            if let Some(b) = (0..self.groups).find(|b| a != *b && self.between(a, *b).is_empty()) {
                let problem = format!("{routing} needs a global link from group {a} to group {b}");
                return Err(BuildError::Shape { path: "fabric.routing".to_owned(), problem });
            }
        }
        Ok(())
    }

    #[inline]
    fn between(&self, from: u32, to: u32) -> &[Gateway] {
        let pair = (from * self.groups + to) as usize;
        &self.list[self.start[pair] as usize..self.start[pair + 1] as usize]
    }

    /// The links of a switch to a group, where they are listed.
    #[inline]
    fn own_to(&self, at: SwitchId, group: u32) -> &[Gateway] {
        if self.own_start.is_empty() {
            return &[];
        }
        let pair = at.index() * self.groups as usize + group as usize;
        &self.own[self.own_start[pair] as usize..self.own_start[pair + 1] as usize]
    }

    /// The global links that a path from `at` to the switch `target` of another group may take.
    #[inline]
    fn towards(&self, local: &Local, at: SwitchId, target: SwitchId) -> &[Gateway] {
        let group = local.home(target).group;
        // Where all switches of a group are joined, a link of one's own is at most one link from the target: no other can be on
        // a shorter path.
        let own = self.own_to(at, group);
        if own.is_empty() { self.between(local.home(at).group, group) } else { own }
    }

    /// The only global link on a shortest path from `at` to the switch `target` of another group, if there is but one.
    pub fn only(&self, local: &Local, at: SwitchId, target: SwitchId) -> Option<&Gateway> {
        let length = |gateway: &Gateway| {
            let (near, far) = (gateway.near_place.into(), gateway.far_place.into());
            u16::from(local.distance(at, near)) + u16::from(local.distance(target, far))
        };
        let all = self.towards(local, at, target);
        let least = all.iter().map(length).min()?;
        let mut nearest = all.iter().filter(|gateway| length(gateway) == least);
        nearest.next().filter(|_| nearest.next().is_none())
    }

    /// One of the global links on a shortest path from `at` to the host `to` of the switch `target` of another group.
    #[inline]
    pub fn nearest(&self, local: &Local, at: SwitchId, target: SwitchId, to: HostId) -> &Gateway {
        let all = self.towards(local, at, target);
        if let [only] = all {
            return only;
        }
        // Two short rows, for distances are the same both ways.
        let (here, there) = (local.distances_of(at), local.distances_of(target));
        // Each (destination, link) draws a number, and of equally near links the one that drew least is taken. Where it
        // is taken from a switch, it is taken from all switches on the way to it as well.
        let salt = scatter(to.0);
        let (mut best, mut least, mut drawn) = (0, u16::MAX, u32::MAX);
        for (number, gateway) in all.iter().enumerate() {
            let length =
                u16::from(here[usize::from(gateway.near_place)]) + u16::from(there[usize::from(gateway.far_place)]);
            if length <= least {
                let draw = scatter(salt ^ gateway.link.0);
                if length < least || draw < drawn {
                    (best, least, drawn) = (number, length, draw);
                }
            }
        }
        &all[best]
    }

    /// The global links from one group to all others but one.
    pub fn elsewhere(&self, from: u32, but: u32) -> impl Iterator<Item = &Gateway> {
        (0..self.groups).filter(move |to| *to != but).flat_map(move |to| self.between(from, to))
    }

    /// One of [`Gateways::elsewhere`], by a random number; none if there is none.
    #[inline]
    pub fn draw_elsewhere(&self, from: u32, but: u32, random: u32) -> Option<&Gateway> {
        let starts = &self.start[(from * self.groups) as usize..][..=self.groups as usize];
        let [first, low, high, end] = [0, but, but + 1, self.groups].map(|to| starts[to as usize]);
        let place = first + share(random, low - first + end - high);
        self.list[..end as usize].get((if place < low { place } else { place + high - low }) as usize)
    }

    /// How many groups there are.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The different ranks of the global links of a switch.
    pub fn ranks_of(&self, at: SwitchId, ranks: &[u8]) -> Vec<u8> {
        let mut found: Vec<u8> = self.of_switch[at.index()].iter().map(|link| ranks[link.index()]).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Where the part of each number below `count` begins in a list that is sorted by these numbers; one more at the end.
fn starts(count: usize, numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0; count + 1];
    numbers.for_each(|number| starts[number as usize + 1] += 1);
    for number in 0..count {
        starts[number + 1] += starts[number];
    }
    starts
}
