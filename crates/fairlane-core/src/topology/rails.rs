//! Rails: hosts with several adapters, each on a plane of its own or on a port of its own of one fabric.
//!
//! Any topology is built once and multiplied here. Where each rail has a plane of its own, the routing is that of one plane.
//! In one fabric, the topology's hosts become adapters: those of one host are neighbours (`shared`), or at different
//! switches, where each switch serves one rail of a group of hosts (`rail_optimised`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::graph::{Given, Graph, Link, Vertex, check_latency};
use super::layout::Layout;
use super::rails_spec::{Adapter, RailsSpec, Wiring};
use super::size::Size;
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// More adapters than any host has.
const MOST: u8 = 8;

/// The links of one plane in the graph of all planes: those of hosts come first, then plane by plane those of switches.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    rails: u32,
    hosts: u32,
    switches: u32,
    switch_links: u32,
}

impl Planes {
    fn new(base: &Graph, rails: u32) -> Self {
        let number = |count: usize| u32::try_from(count).expect("invariant: links have 32-bit numbers");
        let (hosts, links) = (number(base.hosts()), number(base.links().len()));
        Self { rails, hosts, switches: number(base.switches()), switch_links: links - hosts }
    }

    /// The plane of a switch, and its number there.
    #[must_use]
    #[inline]
    pub fn inside(&self, switch: SwitchId) -> (u32, SwitchId) {
        (switch.0 / self.switches, SwitchId(switch.0 % self.switches))
    }

    /// How much greater the numbers of a plane's links between switches are here than there.
    #[must_use]
    #[inline]
    pub fn shift(&self, plane: u32) -> u32 {
        (self.rails - 1) * self.hosts + plane * self.switch_links
    }

    /// The number of a link within its plane.
    #[must_use]
    #[inline]
    pub fn link_inside(&self, plane: u32, link: LinkId) -> LinkId {
        let of_host = link.0 < self.rails * self.hosts;
        LinkId(if of_host { link.0 / self.rails } else { link.0 - self.shift(plane) })
    }

    fn link(&self, plane: u32, link: LinkId) -> LinkId {
        let of_host = link.0 < self.hosts;
        LinkId(if of_host { link.0 * self.rails + plane } else { link.0 + self.shift(plane) })
    }
}

impl Graph {
    /// The same hosts with several adapters each.
    ///
    /// # Errors
    /// [`BuildError`] when the rails contradict themselves or the topology.
    pub fn with_rails(self, rails: &RailsSpec) -> Result<Self, BuildError> {
        rails.check(&self)?;
        Ok(match rails.wiring {
            Wiring::Planes => planes(self, rails),
            Wiring::Shared | Wiring::RailOptimised => {
                let adapters = rails.adapters_of(&self)?;
                one_fabric(self, rails, &adapters)
            }
        })
    }

    /// The least time between two messages that an adapter sends.
    #[must_use]
    pub fn message_gap(&self, rail: usize) -> Picoseconds {
        let adapter = self.made().and_then(|made| made.rails.adapters.get(rail));
        adapter.map_or(Picoseconds::ZERO, |adapter| adapter.message_gap)
    }

    /// The topology that each plane is a copy of, if it has been multiplied for several planes.
    pub(super) fn copied(&self) -> Option<(&Self, Planes)> {
        let made = self.made()?;
        made.plane.as_ref().map(|plane| (plane, Planes::new(plane, made.rails.count.into())))
    }

    /// The fabric that each plane is a copy of, if this is one of several planes: multiplied, or given link by link with the
    /// numbers that it would have then. Each plane is routed as this fabric.
    #[must_use]
    pub fn plane(&self) -> Option<(&Self, Planes)> {
        self.copied().or_else(|| {
            let plane = self.plane_cell().get_or_init(|| self.equal_planes().map(Arc::new)).as_deref()?;
            Some((plane, Planes::new(plane, self.rails())))
        })
    }

    /// The first of several planes, if the others are copies of it but for bandwidths and latencies of hosts' links.
    fn equal_planes(&self) -> Option<Self> {
        let rails = u8::try_from(self.rails()).ok().filter(|rails| *rails > 1)?;
        let (count, hosts) = (usize::from(rails), self.hosts());
        let uniform = self.endpoints() == hosts * count && self.switches().is_multiple_of(count);
        if !uniform || self.forwarding().is_some() || self.made().is_some() || self.is_of_endpoints() {
            return None;
        }
        let (switches, switch_links) = (self.switches() / count, self.links().len() - hosts * count);
        let fits = match self.layout() {
            Layout::Free => true,
            Layout::Groups { switches: group, .. } => switches.is_multiple_of(*group as usize),
            Layout::Grid(_) => false,
        };
        let fits = fits && switch_links.is_multiple_of(count) && switch_links > 0;
        let plane = fits.then(|| self.first_plane(rails.into(), switches))??;
        if plane.parts_without(&BTreeSet::new()).1 > 1 {
            return None;
        }
        let copies = planes(plane.clone(), &RailsSpec { count: rails, wiring: Wiring::Planes, adapters: Vec::new() });
        let alike = |(place, (one, other)): (usize, (&Link, &Link))| {
            let of_host = place < hosts * count || matches!(one.to, Vertex::Host(_));
            let (bandwidth, latency) =
                if of_host { (other.bandwidth, other.latency) } else { (one.bandwidth, one.latency) };
            Link { bandwidth, latency, ..*one } == *other
        };
        let same_levels = (0..).take(self.switches()).map(SwitchId).all(|at| self.level(at) == copies.level(at));
        let mut all = self.links().iter().zip(copies.links()).enumerate();
        (same_levels && self.links().len() == copies.links().len() && all.all(alike)).then_some(plane)
    }
}

impl RailsSpec {
    /// How large a fabric of this size is with these rails.
    #[must_use]
    pub fn size(&self, base: Size) -> Size {
        let count = u64::from(self.count.max(1));
        match self.wiring {
            Wiring::Planes => Size {
                hosts: base.hosts,
                switches: base.switches.saturating_mul(count),
                links: base.links.saturating_mul(count),
            },
            Wiring::Shared | Wiring::RailOptimised => Size { hosts: base.hosts / count, ..base },
        }
    }

    fn check(&self, base: &Graph) -> Result<(), BuildError> {
        if !(1..=MOST).contains(&self.count) {
            return Err(BuildError::value("fabric.rails.count", self.count, format!("1 to {MOST} adapters a host")));
        }
        if !self.adapters.is_empty() && self.adapters.len() != usize::from(self.count) {
            let allowed = format!("none, or one for each of the {} rails", self.count);
            return Err(BuildError::value("fabric.rails.adapters", self.adapters.len(), allowed));
        }
        let hosts = || (0..).take(base.hosts()).map(|host| Vertex::Host(HostId(host)));
        if let Some(host) = hosts().find(|host| base.ports(*host).len() != 1) {
            let allowed = format!(
                "only for a topology whose hosts have one link each, and {:?} has several",
                base.vertex_name(host)
            );
            return Err(BuildError::value("fabric.rails.count", self.count, allowed));
        }
        if self.wiring != Wiring::Planes && !base.hosts().is_multiple_of(usize::from(self.count)) {
            let allowed = format!(
                "with wiring {:?} a divisor of the topology's {} hosts, which are the adapters",
                self.wiring.name(),
                base.hosts()
            );
            return Err(BuildError::value("fabric.rails.count", self.count, allowed));
        }
        let checks = self.adapters.iter().enumerate().map(|(rail, adapter)| adapter.check(rail));
        checks.collect()
    }

    /// By host of the topology: the endpoint that it becomes, numbered host by host.
    fn adapters_of(&self, base: &Graph) -> Result<Vec<u32>, BuildError> {
        let count = u32::from(self.count);
        if self.wiring != Wiring::RailOptimised {
            return Ok((0..).take(base.hosts()).collect());
        }
        // The topology's hosts by switch: switch `j` serves rail `j mod count` of the hosts of group `j / count`.
        let ends: Vec<Vertex> = base.links()[..base.hosts()].iter().map(|link| link.to).collect();
        let switches: Vec<&[Vertex]> = ends.chunk_by(|a, b| a == b).collect();
        let width = switches[0].len();
        if switches.iter().any(|own| own.len() != width) || !switches.len().is_multiple_of(usize::from(self.count)) {
            let allowed = format!(
                "with wiring {:?} a divisor of the {} switches with hosts, each with the same number of hosts",
                self.wiring.name(),
                switches.len()
            );
            return Err(BuildError::value("fabric.rails.count", self.count, allowed));
        }
        let width = u32::try_from(width).expect("invariant: fewer than 2^32 hosts");
        let endpoint = |place: u32| {
            let (switch, inside) = (place / width, place % width);
            (switch / count * width + inside) * count + switch % count
        };
        Ok((0..).take(base.hosts()).map(endpoint).collect())
    }

    /// A host's cable, or one direction of it, as the adapter of this rail has it.
    fn fitted(&self, rail: usize, link: Link) -> Link {
        let Some(adapter) = self.adapters.get(rail) else { return link };
        Link {
            bandwidth: adapter.bandwidth.unwrap_or(link.bandwidth),
            latency: adapter.latency.unwrap_or(link.latency),
            ..link
        }
    }
}

/// The longest gap between two messages of an adapter: one second.
const MAX_GAP: Picoseconds = Picoseconds(1_000_000_000_000);

impl Adapter {
    fn check(&self, rail: usize) -> Result<(), BuildError> {
        let path = |key: &str| format!("fabric.rails.adapters[{rail}].{key}");
        if self.bandwidth == Some(BitsPerSec::ZERO) {
            return Err(BuildError::value(path("bandwidth"), 0, "a link needs a bandwidth above zero"));
        }
        if self.message_gap > MAX_GAP {
            return Err(BuildError::value(path("message_gap"), self.message_gap, "at most one second"));
        }
        self.latency.map_or(Ok(()), |latency| check_latency(&path("latency"), latency))
    }
}

/// A copy of the fabric for each rail; the hosts are the same.
fn planes(base: Graph, rails: &RailsSpec) -> Graph {
    let count = u32::from(rails.count);
    let map = Planes::new(&base, count);
    let (host_links, switch_links) = base.links().split_at(base.hosts());
    let copy = |plane: u32, link: &Link| {
        let vertex = |vertex| match vertex {
            Vertex::Switch(switch) => Vertex::Switch(SwitchId(switch.0 + plane * map.switches)),
            host @ Vertex::Host(_) => host,
        };
        let copied =
            Link { from: vertex(link.from), to: vertex(link.to), reverse: map.link(plane, link.reverse), ..*link };
        let of_host = [link.from, link.to].iter().any(|end| matches!(end, Vertex::Host(_)));
        if of_host { rails.fitted(plane as usize, copied) } else { copied }
    };
    let of_hosts = host_links.iter().flat_map(|link| (0..count).map(move |plane| (plane, link)));
    let of_switches = (0..count).flat_map(|plane| switch_links.iter().map(move |link| (plane, link)));
    let links = of_hosts.chain(of_switches).map(|(plane, link)| copy(plane, link)).collect();
    let (hosts, copies) = (base.hosts(), usize::from(rails.count));
    base.multiplied(rails.clone(), hosts, copies, links, None)
}

/// The fabric itself; each host of it becomes the adapter that `adapters` says.
fn one_fabric(base: Graph, rails: &RailsSpec, adapters: &[u32]) -> Graph {
    let count = u32::from(rails.count);
    let renamed = |link: LinkId| adapters.get(link.index()).map_or(link, |endpoint| LinkId(*endpoint));
    let merged = |vertex| match vertex {
        Vertex::Host(host) => Vertex::Host(HostId(adapters[host.index()] / count)),
        switch @ Vertex::Switch(_) => switch,
    };
    let merge = |link: &Link| {
        let rail = [link.from, link.to].into_iter().find_map(|end| match end {
            Vertex::Host(host) => Some(adapters[host.index()] % count),
            Vertex::Switch(_) => None,
        });
        let link = Link { from: merged(link.from), to: merged(link.to), reverse: renamed(link.reverse), ..*link };
        rail.map_or(link, |rail| rails.fitted(rail as usize, link))
    };
    let mut order: Vec<usize> = (0..base.links().len()).collect();
    order[..adapters.len()].sort_unstable_by_key(|place| adapters[*place]);
    let links = order.iter().map(|place| merge(&base.links()[*place])).collect();
    let names = base.given().map(|given| {
        let hosts = order[..adapters.len()].iter().step_by(count as usize).map(|place| given.hosts[*place].clone());
        let ports = order.iter().enumerate().map(|(place, old)| {
            let own = place < adapters.len();
            if own { 1 + u32::try_from(place).unwrap_or(u32::MAX) % count } else { given.ports[*old] }
        });
        Arc::new(Given { hosts: hosts.collect(), switches: given.switches.clone(), ports: ports.collect() })
    });
    let hosts = base.hosts() / usize::from(rails.count);
    base.multiplied(rails.clone(), hosts, 1, links, names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tree(hosts: u32) -> Graph {
        crate::topology::build("fat_tree", &json!({ "hosts": hosts, "levels": 2, "radix": 8 })).unwrap()
    }

    fn rails(params: serde_json::Value) -> RailsSpec {
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn each_plane_is_the_topology_once_more() {
        let base = tree(16);
        let graph = tree(16).with_rails(&rails(json!({ "count": 3 }))).unwrap();
        assert_eq!((graph.hosts(), graph.switches(), graph.rails()), (16, 3 * base.switches(), 3));
        assert_eq!(graph.links().len(), 3 * base.links().len());
        let (known, planes) = graph.plane().unwrap();
        assert_eq!(known.links(), base.links());
        for (id, link) in (0..).map(LinkId).zip(graph.links()) {
            let back = graph.link(link.reverse);
            assert_eq!((back.reverse, back.from, back.to), (id, link.to, link.from));
            let plane = u32::from(graph.rail(id).unwrap());
            let inside = planes.link_inside(plane, id);
            assert_eq!(planes.link(plane, inside), id, "there and back");
            assert_eq!(graph.rail(link.reverse), graph.rail(id), "a cable is in one plane");
            let same = base.link(inside);
            for (here, there) in [(link.from, same.from), (link.to, same.to)] {
                match (here, there) {
                    (Vertex::Switch(here), Vertex::Switch(there)) => assert_eq!(planes.inside(here), (plane, there)),
                    (here, there) => assert_eq!(here, there),
                }
            }
        }
    }

    #[test]
    fn consecutive_adapters_make_a_host_of_a_shared_fabric() {
        let graph = tree(16).with_rails(&rails(json!({ "count": 2, "wiring": "shared" }))).unwrap();
        assert_eq!((graph.hosts(), graph.switches()), (8, tree(16).switches()));
        let ports: Vec<LinkId> = graph.ports(Vertex::Host(HostId(3))).collect();
        assert_eq!(ports, [6, 7].map(LinkId));
        assert!(ports.iter().all(|port| graph.link(*port).from == Vertex::Host(HostId(3))));
        assert_eq!((graph.endpoint(HostId(3), 1), graph.rail(LinkId(7))), (HostId(7), Some(1)));
        assert_eq!((graph.rail(LinkId(20)), graph.rail(graph.link(LinkId(7)).reverse)), (None, Some(1)));
    }

    #[test]
    fn an_adapter_has_a_cable_of_its_own() {
        let adapters = json!([{}, { "bandwidth": 5, "latency": 7, "message_gap": 9 }]);
        for (wiring, hosts) in [("planes", 16), ("shared", 8)] {
            let given = rails(json!({ "count": 2, "wiring": wiring, "adapters": adapters }));
            let graph = tree(16).with_rails(&given).unwrap();
            let wire = |link: LinkId| (graph.link(link).bandwidth.0, graph.link(link).latency.0);
            for host in (0..hosts).map(|host| Vertex::Host(HostId(host))) {
                let own: Vec<LinkId> = graph.ports(host).collect();
                assert_eq!([wire(own[1]), wire(graph.link(own[1]).reverse)], [(5, 7); 2]);
                assert_ne!(wire(own[0]), (5, 7));
            }
            assert_eq!([0, 1, 2].map(|rail| graph.message_gap(rail).0), [0, 9, 0]);
            assert_eq!(graph.links().iter().filter(|link| link.bandwidth.0 == 5).count(), 2 * hosts as usize);
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (given, expected) in [
            (json!({ "count": 0 }), "fabric.rails.count = 0: 1 to 8"),
            (json!({ "count": 9 }), "fabric.rails.count = 9: 1 to 8"),
            (json!({ "count": 3, "wiring": "shared" }), "fabric.rails.count = 3: with wiring \"shared\" a divisor"),
            (json!({ "count": 2, "adapters": [{}] }), "fabric.rails.adapters = 1: none, or one for each of the 2"),
            (
                json!({ "count": 1, "adapters": [{ "latency": 0 }] }),
                "fabric.rails.adapters[0].latency = 0: a link needs",
            ),
        ] {
            let error = tree(16).with_rails(&rails(given)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let two = tree(16).with_rails(&rails(json!({ "count": 2 }))).unwrap();
        let error = two.with_rails(&rails(json!({ "count": 2 }))).unwrap_err().to_string();
        assert!(error.contains("one link each"), "{error}");
    }
}
