//! Routings of a fabric that numbers its switches, links or hosts otherwise than the fabric that they were built on.

use super::{Hop, Loads, Routing, Visit};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Planes};

/// How numbers of the whole fabric and of the fabric that is routed translate into each other.
pub(super) trait Numbering: Send + Sync {
    /// The routing that is asked at a switch, by its number among [`Renumbered::inner`], and the switch's number there.
    fn switch(&self, at: SwitchId) -> (usize, SwitchId) {
        (0, at)
    }

    /// A link of the whole fabric as routing number `routing` knows it.
    fn inside(&self, _routing: usize, link: LinkId) -> LinkId {
        link
    }

    /// A link as routing number `routing` knows it, in the whole fabric.
    fn outside(&self, _routing: usize, link: LinkId) -> LinkId {
        link
    }

    /// The host that stands for an endpoint.
    fn host(&self, endpoint: HostId) -> HostId {
        endpoint
    }

    /// Whether an endpoint is one of those that routing number `routing` knows.
    fn knows(&self, _routing: usize, _endpoint: HostId) -> bool {
        true
    }

    /// The loads of links as routing number `routing` knows them.
    fn loads<'a>(&'a self, _routing: usize, loads: &Loads<'a>) -> Loads<'a> {
        *loads
    }
}

/// Routings with other numbers.
pub(super) struct Renumbered<N> {
    /// One, or one for each number that [`Numbering::switch`] returns.
    inner: Vec<Box<dyn Routing>>,
    numbering: N,
}

impl<N: Numbering> Renumbered<N> {
    /// `inner`: one routing for all, or one for each number that [`Numbering::switch`] returns.
    pub fn new(inner: Vec<Box<dyn Routing>>, numbering: N) -> Self {
        Self { inner, numbering }
    }

    fn routing(&self, number: usize) -> &dyn Routing {
        match &self.inner[..] {
            [alike] => &**alike,
            each => &*each[number],
        }
    }

    fn outside(&self, number: usize, hop: Hop) -> Hop {
        Hop { link: self.numbering.outside(number, hop.link), ..hop }
    }

    fn inside(&self, number: usize, hop: Hop) -> Hop {
        Hop { link: self.numbering.inside(number, hop.link), ..hop }
    }

    fn visit(&self, number: usize, visit: &Visit) -> Visit {
        Visit { previous: self.inside(number, visit.previous), to: self.numbering.host(visit.to), ..*visit }
    }
}

impl<N: Numbering> Routing for Renumbered<N> {
    fn virtual_channels(&self) -> u8 {
        self.inner.iter().map(|inner| inner.virtual_channels()).max().unwrap_or(1)
    }

    fn channels_of(&self, vl: u8) -> u8 {
        self.inner.iter().map(|inner| inner.channels_of(vl)).max().unwrap_or(1)
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        let (number, at) = self.numbering.switch(at);
        self.numbering.knows(number, to) && self.routing(number).reaches(at, self.numbering.host(to))
    }

    fn routed_lanes(&self) -> u8 {
        self.inner.iter().map(|inner| inner.routed_lanes()).max().unwrap_or(1)
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (number, at) = self.numbering.switch(at);
        let hop = self.routing(number).next_hop(at, self.inside(number, previous), self.numbering.host(to));
        self.outside(number, hop)
    }

    fn adaptive(&self) -> bool {
        self.inner.iter().any(|inner| inner.adaptive())
    }

    fn sees_lanes(&self) -> bool {
        self.inner.iter().any(|inner| inner.sees_lanes())
    }

    fn sees_waiting(&self) -> bool {
        self.inner.iter().any(|inner| inner.sees_waiting())
    }

    fn sees_own_ports_only(&self) -> bool {
        self.inner.iter().all(|inner| inner.sees_own_ports_only())
    }

    fn takes_entropies(&self) -> bool {
        self.inner.iter().all(|inner| inner.takes_entropies())
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (number, at) = self.numbering.switch(at);
        let mut own = self.visit(number, visit);
        let hop = self.routing(number).choose(at, &mut own, &self.numbering.loads(number, loads));
        visit.note = own.note;
        self.outside(number, hop)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let (number, at) = self.numbering.switch(at);
        let options = self.routing(number).options(at, &self.visit(number, visit));
        options.into_iter().map(|(hop, note)| (self.outside(number, hop), note)).collect()
    }
}

/// Several planes of one fabric: each switch routes within its plane, as the topology's routing says.
pub(super) struct OnPlanes {
    pub planes: Planes,
    /// How many planes there are.
    pub rails: u32,
}

impl Numbering for OnPlanes {
    fn switch(&self, at: SwitchId) -> (usize, SwitchId) {
        let (plane, at) = self.planes.inside(at);
        (plane as usize, at)
    }

    fn inside(&self, plane: usize, link: LinkId) -> LinkId {
        self.planes.link_inside(plane_number(plane), link)
    }

    fn outside(&self, plane: usize, link: LinkId) -> LinkId {
        LinkId(link.0 + self.planes.shift(plane_number(plane)))
    }

    fn host(&self, endpoint: HostId) -> HostId {
        HostId(endpoint.0 / self.rails)
    }

    fn knows(&self, plane: usize, endpoint: HostId) -> bool {
        endpoint.0 % self.rails == plane_number(plane)
    }

    /// A routing looks at links of switches only, and those of a plane have the same order here as there.
    fn loads<'a>(&'a self, plane: usize, loads: &Loads<'a>) -> Loads<'a> {
        loads.shifted(self.planes.shift(plane_number(plane)))
    }
}

fn plane_number(plane: usize) -> u32 {
    u32::try_from(plane).expect("invariant: at most eight planes")
}

/// A fabric by endpoint: the host that each endpoint is there. Links of hosts have other numbers there, too, but routings only
/// ask whether they are links of hosts.
pub(super) struct ByEndpoint(pub Vec<u32>);

impl Numbering for ByEndpoint {
    #[inline]
    fn host(&self, endpoint: HostId) -> HostId {
        HostId(self.0[endpoint.index()])
    }
}

/// A fabric without some links.
pub(super) struct Without {
    /// The ids of its links.
    ids: Vec<LinkId>,
    /// Its numbers of links, by id; of links that it does not have, 0.
    numbers: Vec<LinkId>,
}

impl Without {
    /// `ids`: the ids in `graph` of the links that are left.
    pub fn new(graph: &Graph, ids: Vec<LinkId>) -> Self {
        let mut numbers = vec![LinkId(0); graph.links().len()];
        (0..).map(LinkId).zip(&ids).for_each(|(number, id)| numbers[id.index()] = number);
        Self { ids, numbers }
    }
}

impl Numbering for Without {
    fn inside(&self, _routing: usize, link: LinkId) -> LinkId {
        self.numbers[link.index()]
    }

    fn outside(&self, _routing: usize, link: LinkId) -> LinkId {
        self.ids[link.index()]
    }

    fn loads<'a>(&'a self, _routing: usize, loads: &Loads<'a>) -> Loads<'a> {
        Loads { ids: &self.ids, ..*loads }
    }
}
