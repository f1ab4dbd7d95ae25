//! Endpoints: the adapters of hosts. Each has an address of its own, and packets are routed to endpoints, not to hosts.
//!
//! Endpoints are numbered host by host, those of one host rail by rail, so the number of an endpoint is that of the link
//! that leaves it. A routing knows the fabric *by endpoint*: every endpoint is a host with one link there. Endpoints that no
//! path between switches joins, as those of the planes of several rails, are in different *parts* of the fabric.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::graph::{Given, Graph, Link, Vertex};
use super::parts::{NOWHERE, Parts};
use crate::ids::{HostId, LinkId, SwitchId};

impl Graph {
    /// The parts of the fabric.
    fn parts(&self) -> &Parts {
        self.parts_cell().get_or_init(|| {
            let (of_switch, count) = self.parts_without(&BTreeSet::new());
            let mut rails: Vec<Option<Option<u8>>> = vec![None; count];
            for (link, rail) in self.adapters() {
                if let Vertex::Switch(switch) = self.link(link).to {
                    let known = &mut rails[of_switch[switch.index()] as usize];
                    *known = Some(known.map_or(Some(rail), |known| known.filter(|known| *known == rail)));
                }
            }
            Arc::new(Parts { of_switch, rails: rails.into_iter().map(Option::flatten).collect() })
        })
    }

    /// How many endpoints there are: adapters of all hosts.
    #[must_use]
    pub fn endpoints(&self) -> usize {
        self.first_endpoint(HostId(number(self.hosts()))) as usize
    }

    /// Every endpoint, as the link that leaves it, and its rail: its place among the adapters of its host.
    fn adapters(&self) -> impl Iterator<Item = (LinkId, u8)> {
        let hosts = (0..self.hosts()).map(|host| Vertex::Host(HostId(number(host))));
        hosts.flat_map(|host| self.ports(host).zip((0..=u8::MAX).chain(std::iter::repeat(u8::MAX))))
    }

    /// The most adapters that a host has.
    #[must_use]
    pub fn rails(&self) -> u32 {
        let of_host = |host| number(self.ports(Vertex::Host(HostId(number(host)))).len());
        (0..self.hosts()).map(of_host).max().unwrap_or(1)
    }

    /// The address of an adapter.
    #[must_use]
    #[inline]
    pub fn endpoint(&self, host: HostId, rail: u32) -> HostId {
        HostId(self.first_endpoint(host) + rail)
    }

    /// The host of an endpoint.
    #[must_use]
    pub fn host_of(&self, endpoint: HostId) -> HostId {
        match self.link(LinkId(endpoint.0)).from {
            Vertex::Host(host) => host,
            Vertex::Switch(_) => unreachable!("invariant: links of hosts come first"),
        }
    }

    /// The rail that a link belongs to; none for a link between switches that adapters of several rails share.
    #[must_use]
    pub fn rail(&self, id: LinkId) -> Option<u8> {
        let link = self.link(id);
        let of_host = |host, port: LinkId| {
            let place = port.0 - self.first_endpoint(host);
            u8::try_from(place).ok()
        };
        match (link.from, link.to) {
            (Vertex::Host(host), _) => of_host(host, id),
            (_, Vertex::Host(host)) => of_host(host, link.reverse),
            (Vertex::Switch(switch), Vertex::Switch(_)) => self.parts().rail(switch),
        }
    }

    /// The part of each switch of the fabric without some links, numbered in order of their first switches, and how many
    /// parts there are.
    pub(crate) fn parts_without(&self, down: &BTreeSet<LinkId>) -> (Vec<u32>, usize) {
        let mut parts = vec![NOWHERE; self.switches()];
        let mut count = 0;
        for first in (0..).take(self.switches()).map(SwitchId) {
            if parts[first.index()] != NOWHERE {
                continue;
            }
            parts[first.index()] = count;
            let mut open = vec![first];
            while let Some(at) = open.pop() {
                for link in self.ports(Vertex::Switch(at)).filter(|link| !down.contains(link)) {
                    if let Vertex::Switch(next) = self.link(link).to
                        && parts[next.index()] == NOWHERE
                    {
                        parts[next.index()] = count;
                        open.push(next);
                    }
                }
            }
            count += 1;
        }
        (parts, count as usize)
    }

    /// Whether all hosts are joined, by switches or by hosts with several adapters.
    pub(crate) fn is_joined(&self) -> bool {
        let (of_switch, count) = self.parts_without(&BTreeSet::new());
        if count == 1 || self.is_of_endpoints() {
            return true;
        }
        let mut joined = vec![NOWHERE; count];
        let find = |joined: &[u32], mut part: u32| {
            while joined[part as usize] != part && joined[part as usize] != NOWHERE {
                part = joined[part as usize];
            }
            part
        };
        for host in (0..self.hosts()).map(|host| Vertex::Host(HostId(number(host)))) {
            let mut first = None;
            for link in self.ports(host) {
                if let Vertex::Switch(switch) = self.link(link).to {
                    let part = find(&joined, of_switch[switch.index()]);
                    let into = *first.get_or_insert(part);
                    let into = find(&joined, into);
                    joined[part as usize] = into;
                }
            }
        }
        let roots: BTreeSet<u32> =
            (0..).zip(&joined).filter(|(_, into)| **into != NOWHERE).map(|(part, _)| find(&joined, part)).collect();
        roots.len() <= 1
    }

    /// The fabric by endpoint, and the number that each endpoint has as a host there; none where that is its own. Where
    /// hosts have several adapters, endpoints are numbered switch by switch, part by part, in the order of the first endpoint of
    /// each switch: routings share paths by the numbers of destinations, and those of one switch follow each other then.
    pub(crate) fn by_endpoint(&self) -> (Cow<'_, Self>, Option<Vec<u32>>) {
        let endpoints = self.endpoints();
        if endpoints == self.hosts() {
            return (Cow::Borrowed(self), None);
        }
        let mut members: BTreeMap<Vertex, Vec<usize>> = BTreeMap::new();
        for endpoint in 0..endpoints {
            members.entry(self.links()[endpoint].to).or_default().push(endpoint);
        }
        let part = |end: &Vertex| {
            if let Vertex::Switch(switch) = end { self.parts().of_switch[switch.index()] } else { NOWHERE }
        };
        let mut switches: Vec<(u32, Vec<usize>)> = members.into_iter().map(|(end, own)| (part(&end), own)).collect();
        switches.sort_unstable_by_key(|(part, members)| (*part, members[0]));
        let order: Vec<usize> = switches.into_iter().flat_map(|(_, members)| members).collect();
        let mut numbers = vec![0; endpoints];
        (0..).zip(&order).for_each(|(place, endpoint)| numbers[*endpoint] = place);
        let is_same = order.is_sorted();
        let renamed = |link: LinkId| if link.index() < endpoints { LinkId(numbers[link.index()]) } else { link };
        let own = |link: &Link, id: LinkId| Link {
            from: if id.index() < endpoints { Vertex::Host(HostId(numbers[id.index()])) } else { link.from },
            to: match link.to {
                Vertex::Host(_) => Vertex::Host(HostId(numbers[link.reverse.index()])),
                switch @ Vertex::Switch(_) => switch,
            },
            reverse: renamed(link.reverse),
            ..*link
        };
        let links = order.iter().copied().chain(endpoints..self.links().len());
        let links = links.map(|old| own(&self.links()[old], LinkId(number(old)))).collect();
        let names = self.given().map(|given| {
            let called = |(link, rail): (LinkId, u8)| {
                let host = self.host_of(HostId(link.0));
                let name = &given.hosts[host.index()];
                if self.ports(Vertex::Host(host)).len() == 1 { name.clone() } else { format!("{name} adapter {rail}") }
            };
            let all: Vec<String> = self.adapters().map(called).collect();
            let ports =
                order.iter().copied().chain(endpoints..self.links().len()).map(|old| given.ports[old]).collect();
            let hosts = order.iter().map(|endpoint| all[*endpoint].clone()).collect();
            Arc::new(Given { hosts, switches: given.switches.clone(), ports })
        });
        (Cow::Owned(self.single_homed(links, names, &order)), (!is_same).then_some(numbers))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("invariant: hosts and links have 32-bit numbers")
}

/// The adapters of two hosts that exchange messages: the *rail pairs*, by which rail policies choose.
///
/// Pair `k` is adapter `k` of the host with more adapters and adapter `k mod n` of the other, which has `n`. Where no path
/// between switches joins these, the second is one of those of its host that are joined with the first, number
/// `k mod m` of `m`. Adapters that reach none of the other host are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailMap {
    /// The class of each host: hosts whose adapters are in the same parts are alike.
    class_of: Vec<u32>,
    /// By class and rail: the part.
    classes: Vec<Vec<u32>>,
    /// By pair of classes.
    pairs: Vec<Vec<[u8; 2]>>,
}

impl RailMap {
    /// The rail pairs of a fabric of which some links are down. Hosts that no pair of adapters joins any more keep the pairs
    /// that they have where all links are up.
    #[must_use]
    pub fn new(graph: &Graph, down: &BTreeSet<LinkId>) -> Self {
        let whole = Self::strict(graph, &BTreeSet::new());
        if down.is_empty() {
            return whole;
        }
        let mut left = Self::strict(graph, down);
        for from in 0..left.class_of.len() {
            for to in 0..left.class_of.len() {
                let place = left.place(from, to);
                if left.pairs[place].is_empty() {
                    left.pairs[place].clone_from(&whole.pairs[whole.place(from, to)]);
                }
            }
        }
        left
    }

    fn strict(graph: &Graph, down: &BTreeSet<LinkId>) -> Self {
        let (parts, _) = graph.parts_without(down);
        let part = |link: LinkId| match graph.link(link).to {
            Vertex::Switch(switch) if !down.contains(&link) => parts[switch.index()],
            _ => NOWHERE,
        };
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut classes = Vec::new();
        let class_of = (0..graph.hosts()).map(|host| {
            let own: Vec<u32> = graph.ports(Vertex::Host(HostId(number(host)))).map(part).collect();
            *known.entry(own).or_insert_with_key(|own| {
                classes.push(own.clone());
                number(classes.len() - 1)
            })
        });
        let class_of = class_of.collect();
        let pairs = classes.iter().flat_map(|from| classes.iter().map(|to| pairs(from, to))).collect();
        Self { class_of, classes, pairs }
    }

    /// The rail pairs of all pairs of classes of hosts: hosts whose adapters reach the same are of one class.
    pub fn all(&self) -> impl Iterator<Item = &[[u8; 2]]> {
        self.pairs.iter().map(Vec::as_slice)
    }

    /// The class of a host.
    #[must_use]
    pub fn class(&self, host: HostId) -> u32 {
        self.class_of[host.index()]
    }

    fn place(&self, from: usize, to: usize) -> usize {
        self.class_of[from] as usize * self.classes.len() + self.class_of[to] as usize
    }

    /// The rail pairs of messages from one host to another: the sender's adapter, and the receiver's.
    #[must_use]
    #[inline]
    pub fn pairs(&self, from: HostId, to: HostId) -> &[[u8; 2]] {
        &self.pairs[self.place(from.index(), to.index())]
    }

    /// All pairs of adapters of two hosts that a path between switches joins.
    #[must_use]
    pub fn joined(&self, from: HostId, to: HostId) -> Vec<[u8; 2]> {
        let rails = |host: HostId| (0..=u8::MAX).take(self.classes[self.class_of[host.index()] as usize].len());
        let pairs = rails(from).flat_map(|rail| rails(to).map(move |other| [rail, other]));
        pairs.filter(|[rail, other]| self.joins((from, *rail), (to, *other))).collect()
    }

    /// Whether a path between switches joins an adapter of one host with one of another.
    #[must_use]
    pub fn joins(&self, (from, rail): (HostId, u8), (to, other): (HostId, u8)) -> bool {
        let part = |host: HostId, rail: u8| {
            let class = &self.classes[self.class_of[host.index()] as usize];
            class.get(usize::from(rail)).copied().filter(|part| *part != NOWHERE)
        };
        part(from, rail).is_some_and(|one| part(to, other) == Some(one))
    }
}

/// The rail pairs of two hosts whose adapters are in these parts.
fn pairs(from: &[u32], to: &[u32]) -> Vec<[u8; 2]> {
    let rail = |place: usize| u8::try_from(place).unwrap_or(u8::MAX);
    let pair = |k: usize| {
        let [first, second] = [k % from.len(), k % to.len()];
        if from[first] == NOWHERE {
            return None;
        }
        if from[first] == to[second] {
            return Some([rail(first), rail(second)]);
        }
        let joined: Vec<usize> = (0..to.len()).filter(|place| to[*place] == from[first]).collect();
        (!joined.is_empty()).then(|| [rail(first), rail(joined[k % joined.len()])])
    };
    (0..from.len().max(to.len())).filter_map(pair).collect()
}
