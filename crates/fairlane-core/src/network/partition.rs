//! The partition of a fabric into shards, which run in parallel.
//!
//! Switches are divided in order of number, level by level and plane by plane, so that each shard has its share of the leaves
//! and of the spines; groups stay whole. A host belongs to the shard of its first switch. Results do not depend on it.

use std::sync::Arc;

use super::index::PortIdx;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Layout, Vertex};

/// The shard of each switch and link. A link belongs to the shard of the vertex that sends on it, and has a port there: ports have
/// the order of links. With one shard their numbers are those of links, and nothing is kept.
#[derive(Clone, Debug)]
pub struct Partition {
    shards: usize,
    /// By switch.
    switches: Arc<[u8]>,
    /// By link.
    links: Arc<[PortPlace]>,
}

/// A port, and the shard that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortPlace {
    pub shard: u8,
    pub port: PortIdx,
}

impl PortPlace {
    /// Bits of the number of a port in its shard.
    const BITS: u32 = 27;

    /// The name of the port in shard `own`: its number if it is there, or one above all numbers.
    #[inline(always)]
    pub fn name_in(self, own: u8) -> PortIdx {
        PortIdx(self.port.0 | u32::from(self.shard ^ own) << Self::BITS)
    }

    /// The number of a port in its shard, given its name in any.
    #[inline(always)]
    pub const fn number(name: PortIdx) -> PortIdx {
        PortIdx(name.0 & ((1 << Self::BITS) - 1))
    }

    /// The port with this name in shard `own`, or, if it is in another, that and the port there.
    #[inline(always)]
    pub fn named(name: PortIdx, own: u8) -> Result<PortIdx, Self> {
        if name.0 < 1 << Self::BITS {
            return Ok(name);
        }
        #[allow(clippy::cast_possible_truncation, reason = "five bits")]
        Err(Self { shard: own ^ (name.0 >> Self::BITS) as u8, port: Self::number(name) })
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
        if shards == 1 {
            return Self { shards, switches: Arc::new([]), links: Arc::new([]) };
        }
        let switches = divide(graph, shards);
        let mut ports = vec![0; shards];
        let links = graph.links().iter().map(|link| {
            let shard = match link.from {
                Vertex::Host(host) => home(graph, host, &switches),
                Vertex::Switch(switch) => switches[switch.index()],
            };
            ports[usize::from(shard)] += 1;
            PortPlace { shard, port: PortIdx(ports[usize::from(shard)] - 1) }
        });
        Self { shards, links: links.collect(), switches: switches.into() }
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> usize {
        self.shards
    }

    /// The shard of a host.
    pub(super) fn of_host(&self, graph: &Graph, host: HostId) -> usize {
        home(graph, host, &self.switches).into()
    }

    /// The shard of every host.
    #[must_use]
    pub fn of_hosts(&self, graph: &Graph) -> Vec<usize> {
        (0..).take(graph.hosts()).map(|host| self.of_host(graph, HostId(host))).collect()
    }

    /// The shard of a switch.
    #[inline(always)]
    pub(super) fn of_switch(&self, switch: SwitchId) -> u8 {
        if self.switches.is_empty() { 0 } else { self.switches[switch.index()] }
    }

    /// The port of a link.
    #[inline(always)]
    pub(super) fn port(&self, link: LinkId) -> PortPlace {
        if self.links.is_empty() { PortPlace { shard: 0, port: PortIdx(link.0) } } else { self.links[link.index()] }
    }

    /// The links of a shard, in order; none with one shard.
    pub(super) fn links_of(&self, shard: u8) -> impl Iterator<Item = LinkId> {
        (0..).map(LinkId).zip(&*self.links).filter(move |(_, place)| place.shard == shard).map(|(link, _)| link)
    }
}

/// The shard of each switch.
fn divide(graph: &Graph, shards: usize) -> Vec<u8> {
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
            let shard = u8::try_from(shard).expect("invariant: at most 32 shards");
            unit.iter().for_each(|switch| shard_of[switch.index()] = shard);
            before += own;
        }
    }
    shard_of
}

/// The shard of a host: that of the first switch that it is attached to.
fn home(graph: &Graph, host: HostId, of_switches: &[u8]) -> u8 {
    let ends = graph.ports(Vertex::Host(host)).map(|link| graph.link(link).to);
    let mut switches = ends.filter_map(|end| if let Vertex::Switch(switch) = end { Some(switch) } else { None });
    switches.next().and_then(|switch| of_switches.get(switch.index()).copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::topology;

    /// Links by shard.
    fn sizes(graph: &Graph, shards: u8) -> Vec<usize> {
        let partition = Partition::new(graph, shards.into());
        (0..shards).map(|shard| partition.links_of(shard).count()).collect()
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
                let expected = if shards == 1 { 0 } else { graph.links().len() / usize::from(shards) };
                assert!(sizes.iter().all(|size| *size == expected), "{topology} in {shards}: {sizes:?}");
            }
        }
    }

    #[test]
    fn ports_have_the_order_of_links_and_groups_stay_whole() {
        let params = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
        let graph = topology::build("dragonfly", &params).unwrap();
        let partition = Partition::new(&graph, 7);
        for shard in 0..7 {
            for (port, link) in (0..).map(PortIdx).zip(partition.links_of(shard)) {
                assert_eq!(partition.port(link), PortPlace { shard, port });
            }
        }
        for switch in (0..36).map(SwitchId) {
            assert_eq!(partition.of_switch(switch), partition.of_switch(SwitchId(switch.0 / 4 * 4)));
        }
        assert_eq!(sizes(&graph, 7).iter().sum::<usize>(), graph.links().len());
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn an_unknown_link_is_in_no_shard() {
        let graph = topology::build("fat_tree", &json!({ "hosts": 16, "levels": 2, "radix": 8 })).unwrap();
        let _ = Partition::new(&graph, 2).port(LinkId(1 << 20));
    }
}
