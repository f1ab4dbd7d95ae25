//! The partition of a fabric into shards, which run in parallel.
//!
//! Switches are divided in order of number, level by level and plane by plane, so that each shard has its share of the leaves
//! and of the spines; groups stay whole. A host belongs to the shard of its first switch. Results do not depend on it.

use std::marker::PhantomData;
use std::sync::Arc;

use super::index::{HostIdx, PortIdx, SwitchIdx};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::Index;
use crate::topology::{Graph, Layout, Link, Vertex};

/// The shard of each host, switch and link. A link belongs to the shard of the vertex that sends on it.
#[derive(Clone, Debug)]
pub struct Partition {
    shards: usize,
    /// Hosts, switches and links of the fabric.
    sizes: [usize; 3],
    /// By host, switch, link; all empty with one shard.
    hosts: Arc<[Place<HostIdx>]>,
    switches: Arc<[Place<SwitchIdx>]>,
    links: Arc<[Place<PortIdx>]>,
}

/// A shard, and a host, switch or port in it. Numbers have the order of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<I>(u32, PhantomData<I>);

impl<I: Index> Place<I> {
    const BITS: u32 = 27;

    /// The first of the first shard.
    pub const FIRST: Self = Self(0, PhantomData);

    #[inline(always)]
    pub fn new(shard: usize, index: I) -> Self {
        let number = index.number();
        debug_assert!(shard < Partition::MOST_SHARDS && number < 1 << Self::BITS, "{number} does not fit a place");
        #[allow(clippy::cast_possible_truncation, reason = "at most 32 shards")]
        Self((shard as u32) << Self::BITS | number, PhantomData)
    }

    #[inline]
    pub const fn shard(self) -> usize {
        (self.0 >> Self::BITS) as usize
    }

    #[inline]
    pub fn index(self) -> I {
        I::from_number(self.0 & ((1 << Self::BITS) - 1))
    }
}

impl Partition {
    /// The most shards that a fabric can be divided into.
    pub const MOST_SHARDS: usize = 32;

    /// Divides a fabric into so many shards, of which some may be empty.
    ///
    /// # Panics
    /// If `shards` is zero or above [`Partition::MOST_SHARDS`].
    #[must_use]
    pub fn new(graph: &Graph, shards: usize) -> Self {
        assert!((1..=Self::MOST_SHARDS).contains(&shards), "invariant: 1 to 32 shards, not {shards}");
        let sizes = [graph.hosts(), graph.switches(), graph.links().len()];
        if shards == 1 {
            return Self { shards, sizes, hosts: Arc::new([]), switches: Arc::new([]), links: Arc::new([]) };
        }
        let of_switches = divide(graph, shards);
        let of_hosts: Vec<usize> =
            (0..).take(graph.hosts()).map(|host| home(graph, HostId(host), &of_switches)).collect();
        let of_links = graph.links().iter().map(|link| match link.from {
            Vertex::Host(host) => of_hosts[host.index()],
            Vertex::Switch(switch) => of_switches[switch.index()],
        });
        Self {
            shards,
            sizes,
            links: places(of_links, shards),
            hosts: places(of_hosts.iter().copied(), shards),
            switches: places(of_switches.iter().copied(), shards),
        }
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.shards
    }

    /// The shard of a host.
    ///
    /// # Panics
    /// If the fabric has no such host.
    #[must_use]
    pub fn shard_of(&self, host: HostId) -> usize {
        assert!(host.index() < self.sizes[0], "invariant: one of {} hosts, not {}", self.sizes[0], host.0);
        self.host(host).shard()
    }

    /// The shard of every host.
    #[must_use]
    pub fn of_hosts(&self, graph: &Graph) -> Vec<usize> {
        (0..).take(graph.hosts()).map(|host| self.shard_of(HostId(host))).collect()
    }

    #[inline]
    pub(super) fn host(&self, host: HostId) -> Place<HostIdx> {
        self.place(&self.hosts, host.0, self.sizes[0])
    }

    #[inline]
    pub(super) fn switch(&self, switch: SwitchId) -> Place<SwitchIdx> {
        self.place(&self.switches, switch.0, self.sizes[1])
    }

    #[inline]
    pub(super) fn link(&self, link: LinkId) -> Place<PortIdx> {
        self.place(&self.links, link.0, self.sizes[2])
    }

    /// The place of one of `size` ids: with one shard its own number. Panics for an id that the fabric does not have; with one
    /// shard in debug builds only, because the number of such an id is out of the bounds of all that is kept by number.
    #[inline(always)]
    fn place<I: Index>(&self, places: &[Place<I>], id: u32, size: usize) -> Place<I> {
        debug_assert!((id as usize) < size, "invariant: one of {size} ids, not {id}");
        if self.shards == 1 { Place(id, PhantomData) } else { places[id as usize] }
    }

    /// How many switches a shard has.
    pub(super) fn switches_of(&self, shard: usize, graph: &Graph) -> usize {
        if self.shards == 1 { graph.switches() } else { self.members(shard)[1].len() }
    }

    /// The ids of the hosts, switches and links of one shard, in order. All empty with one shard, where numbers are ids.
    pub(super) fn members(&self, shard: usize) -> [Vec<u32>; 3] {
        [ids(&self.hosts, shard), ids(&self.switches, shard), ids(&self.links, shard)]
    }
}

/// The ids of what belongs to a shard.
fn ids<I: Index>(places: &[Place<I>], shard: usize) -> Vec<u32> {
    (0..).zip(places).filter(|(_, place)| place.shard() == shard).map(|(id, _)| id).collect()
}

/// The shard of each switch.
fn divide(graph: &Graph, shards: usize) -> Vec<usize> {
    let plane = graph.plane().map_or(graph, |(plane, _)| plane).switches().max(1);
    let whole = if let Layout::Groups { switches, .. } = graph.layout() { *switches as usize } else { 1 };
    let ids = || (0..).take(graph.switches()).map(SwitchId);
    let class = |switch: SwitchId| (switch.index() / plane, graph.level(switch));
    let unit = |switch: SwitchId| (class(switch), switch.index() % plane / whole.max(1));
    let mut order: Vec<SwitchId> = ids().collect();
    order.sort_by_key(|switch| (unit(*switch), switch.0));
    let weight = |switches: &[SwitchId]| -> usize {
        switches.iter().map(|switch| graph.ports(Vertex::Switch(*switch)).len().max(1)).sum()
    };
    let mut shard_of = vec![0; graph.switches()];
    for class in order.chunk_by(|a, b| class(*a) == class(*b)) {
        let (all, mut before) = (weight(class), 0);
        for unit in class.chunk_by(|a, b| unit(*a) == unit(*b)) {
            let own = weight(unit);
            // The shard in whose share of the class the middle of the unit lies.
            let shard = (2 * before + own) * shards / (2 * all);
            unit.iter().for_each(|switch| shard_of[switch.index()] = shard);
            before += own;
        }
    }
    shard_of
}

/// The shard of a host: that of the first switch that it is attached to.
fn home(graph: &Graph, host: HostId, of_switches: &[usize]) -> usize {
    let ends = graph.ports(Vertex::Host(host)).map(|link| graph.link(link).to);
    let mut switches = ends.filter_map(|end| if let Vertex::Switch(switch) = end { Some(switch) } else { None });
    switches.next().map_or(0, |switch| of_switches[switch.index()])
}

/// Numbers the members of each shard in order of their ids.
fn places<I: Index>(shard_of: impl Iterator<Item = usize>, shards: usize) -> Arc<[Place<I>]> {
    let mut next = vec![0; shards];
    let number = |shard: usize| {
        next[shard] += 1;
        Place::new(shard, I::from_number(next[shard] - 1))
    };
    shard_of.map(number).collect()
}

/// The vertex at the far end of a link, in a network of several shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarEnd {
    /// To be added (modulo 2^32) to the ids of the links that leave it for the numbers of their ports: they are
    /// numbered without gaps in the fabric and in the shard.
    pub offset: u32,
    pub shard: u8,
}

impl FarEnd {
    pub fn new(link: &Link, graph: &Graph, partition: &Partition) -> Self {
        let first = graph.ports(link.to).next().unwrap_or(link.reverse);
        let place = partition.link(first);
        let shard = u8::try_from(place.shard()).expect("invariant: at most 32 shards");
        Self { offset: place.index().0.wrapping_sub(first.0), shard }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::topology;

    /// Links by shard.
    fn sizes(graph: &Graph, shards: usize) -> Vec<usize> {
        let partition = Partition::new(graph, shards);
        (0..shards).map(|shard| partition.members(shard)[2].len()).collect()
    }

    #[test]
    fn regular_fabrics_are_divided_evenly() {
        let fabrics = [
            ("fat_tree", json!({ "hosts": 64, "levels": 2, "radix": 16 })),
            ("dragonfly", json!({ "groups": 8, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 })),
            ("torus", json!({ "sides": [4, 4, 4] })),
        ];
        for (topology, params) in fabrics {
            let graph = topology::build(topology, &params).unwrap();
            for shards in [1, 2, 4] {
                let sizes = sizes(&graph, shards);
                let expected = if shards == 1 { 0 } else { graph.links().len() / shards };
                assert!(sizes.iter().all(|size| *size == expected), "{topology} in {shards}: {sizes:?}");
            }
        }
    }

    #[test]
    fn members_have_the_order_of_their_ids_and_groups_stay_whole() {
        let params = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
        let graph = topology::build("dragonfly", &params).unwrap();
        let partition = Partition::new(&graph, 7);
        for shard in 0..7 {
            let [hosts, switches, links] = partition.members(shard);
            for (number, link) in (0..).zip(links) {
                assert_eq!(partition.link(LinkId(link)), Place::new(shard, PortIdx(number)));
            }
            for (number, host) in (0..).zip(hosts) {
                assert_eq!(partition.host(HostId(host)), Place::new(shard, HostIdx(number)));
            }
            for group in switches.iter().map(|switch| switch / 4) {
                let members = (group * 4..group * 4 + 4).map(SwitchId);
                assert!(members.map(|switch| partition.switch(switch).shard()).all(|other| other == shard));
            }
        }
        let of_links = |shard: usize| partition.members(shard)[2].len();
        assert_eq!((0..7).map(of_links).sum::<usize>(), graph.links().len());
    }

    /// The partition of a fabric of 16 hosts.
    fn of_sixteen_hosts(shards: usize) -> Partition {
        let graph = topology::build("fat_tree", &json!({ "hosts": 16, "levels": 2, "radix": 8 })).unwrap();
        assert_eq!(graph.hosts(), 16);
        Partition::new(&graph, shards)
    }

    #[test]
    fn the_last_host_has_a_shard() {
        assert_eq!([1, 2].map(|shards| of_sixteen_hosts(shards).shard_of(HostId(15))), [0, 1]);
    }

    #[test]
    #[should_panic(expected = "one of 16 hosts, not 16")]
    fn an_unknown_host_is_in_no_shard() {
        let _ = of_sixteen_hosts(1).shard_of(HostId(16));
    }

    #[test]
    #[should_panic(expected = "invariant: one of")]
    fn an_unknown_link_is_in_no_shard() {
        let _ = of_sixteen_hosts(2).link(LinkId(1 << 20));
    }
}
