//! The members of a shard and their numbers: hosts, switches, and output ports, each of which sends on one link.
//!
//! Lists by host, NIC or port have the members of the shard only, in order of their ids. With one shard numbers are ids.

use super::features::Instance;
use super::partition::{FarEnd, Partition, Place};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::NONE;
use crate::topology::{Graph, Link, Vertex};

/// Which hosts, switches and ports a shard has, and what is at the far ends of their links.
#[derive(Clone)]
pub(super) struct Naming {
    /// The number of this shard.
    pub shard: usize,
    /// The same, as packets carry it.
    pub origin: u8,
    /// The ids of the shard's hosts, switches and links; empty with one shard.
    host_ids: Vec<u32>,
    switch_ids: Vec<u32>,
    link_ids: Vec<u32>,
    /// The far end of each link; empty with one shard.
    pub far_ends: Vec<FarEnd>,
    /// NIC ports are those below this number.
    pub nics: u32,
    /// The host of each NIC port.
    pub nic_host: Vec<u32>,
    /// The first NIC port of each host; one more at the end.
    first_nic: Vec<u32>,
    /// The minimum time between two messages of each NIC, ps; empty if there is none.
    pub gaps: Vec<u64>,
    /// The id of the switch at the far end of each link, or [`NONE`].
    pub to_switch: Vec<u32>,
    /// The NIC port at the far end of each link, by its number in the shard there, or [`NONE`].
    pub to_nic: Vec<u32>,
}

impl Naming {
    /// The members of shard number `shard`.
    pub fn new(graph: &Graph, partition: &Partition, shard: usize) -> Self {
        let [host_ids, switch_ids, link_ids] = partition.members(shard);
        let whole = partition.shards() == 1;
        let all = graph.links();
        let every = if whole { all } else { &[] };
        let links = || every.iter().chain(link_ids.iter().map(|id| &all[*id as usize]));
        let nic_host: Vec<u32> =
            links().map_while(|link| host_of(link.from)).map(|host| partition.host(host).number()).collect();
        let hosts = number(if whole { graph.hosts() } else { host_ids.len() });
        let ports_before = |host| nic_host.partition_point(|other| *other < host);
        Self {
            shard,
            origin: u8::try_from(shard).expect("invariant: at most 32 shards"),
            far_ends: if whole {
                Vec::new()
            } else {
                links().map(|link| FarEnd::new(link, graph, partition)).collect()
            },
            nics: number(nic_host.len()),
            first_nic: (0..=hosts).map(|host| number(ports_before(host))).collect(),
            gaps: message_gaps(graph, links().take(nic_host.len())),
            to_switch: links().map(|link| switch_of(link.to)).collect(),
            to_nic: links().map(|link| nic_of(link, partition)).collect(),
            nic_host,
            host_ids,
            switch_ids,
            link_ids,
        }
    }

    /// How many hosts the shard has.
    pub fn hosts(&self) -> usize {
        self.first_nic.len() - 1
    }

    /// How many ports the shard has.
    pub fn ports(&self) -> usize {
        self.to_nic.len()
    }

    /// The links of the ports.
    pub fn links<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Link> {
        (0..).take(self.ports()).map(|port| graph.link(LinkId(self.link_of(port))))
    }

    /// The NIC ports of a host.
    #[inline]
    pub fn nics_of(&self, host: u32) -> std::ops::Range<u32> {
        self.first_nic[host as usize]..self.first_nic[host as usize + 1]
    }

    /// The id of a port's link.
    #[inline(always)]
    pub fn link_id<I: Instance>(&self, port: u32) -> u32 {
        if I::SHARDED { self.link_ids[port as usize] } else { port }
    }

    /// The same, with any number of shards.
    pub fn link_of(&self, port: u32) -> u32 {
        self.link_ids.get(port as usize).map_or(port, |link| *link)
    }

    /// The id of a host.
    #[inline(always)]
    pub fn host_id<I: Instance>(&self, host: u32) -> HostId {
        HostId(if I::SHARDED { self.host_ids[host as usize] } else { host })
    }

    /// The id of a switch.
    #[inline(always)]
    pub fn switch_id<I: Instance>(&self, switch: u32) -> SwitchId {
        SwitchId(if I::SHARDED { self.switch_ids[switch as usize] } else { switch })
    }

    /// The shard at the far end of a port's link, if it is another.
    #[inline(always)]
    pub fn other_shard<I: Instance>(&self, port: u32) -> Option<usize> {
        if !I::SHARDED {
            return None;
        }
        let shard = usize::from(self.far_ends[port as usize].shard);
        (shard != self.shard).then_some(shard)
    }

    /// The port of a link that leaves the switch at the far end of `port`, by its number in the shard there.
    #[inline(always)]
    pub fn next_port<I: Instance>(&self, port: u32, link: u32) -> u32 {
        if I::SHARDED { link.wrapping_add(self.far_ends[port as usize].offset) } else { link }
    }

    /// A port of this shard as other shards know it.
    #[inline(always)]
    pub fn place(&self, port: u32) -> Place {
        Place::new(self.shard, port)
    }
}

/// The minimum time between two messages of each NIC, ps; empty if there is none.
fn message_gaps<'a>(graph: &Graph, nics: impl Iterator<Item = &'a Link>) -> Vec<u64> {
    let rail = |link: &Link| {
        let own = graph.link(link.reverse).reverse;
        graph.ports(link.from).position(|port| port == own).unwrap_or_default()
    };
    let gaps: Vec<u64> = nics.map(|link| graph.message_gap(rail(link)).0).collect();
    if gaps.iter().all(|gap| *gap == 0) { Vec::new() } else { gaps }
}

fn host_of(vertex: Vertex) -> Option<HostId> {
    match vertex {
        Vertex::Host(host) => Some(host),
        Vertex::Switch(_) => None,
    }
}

fn switch_of(vertex: Vertex) -> u32 {
    match vertex {
        Vertex::Switch(switch) => switch.0,
        Vertex::Host(_) => NONE,
    }
}

fn nic_of(link: &Link, partition: &Partition) -> u32 {
    match link.to {
        Vertex::Host(_) => partition.link(link.reverse).number(),
        Vertex::Switch(_) => NONE,
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: links have 27-bit numbers")
}
