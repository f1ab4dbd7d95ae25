//! The members of a shard and their numbers: hosts, switches, and output ports, each of which sends on one link.
//!
//! Lists by host, NIC or port have the members of the shard only, in order of their ids. With one shard numbers are ids.

use super::features::Instance;
use super::index::{HostIdx, PortIdx, SwitchIdx};
use super::partition::{FarEnd, Partition, Place};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::Indexed;
use crate::topology::{Graph, Link, Vertex};
use crate::units::Picoseconds;

/// No switch is at the far end of a link.
pub(super) const NO_SWITCH: SwitchId = SwitchId(u32::MAX);

/// The hosts, switches and ports of a shard, and what is at the far ends of their links.
#[derive(Clone)]
pub(super) struct Naming {
    /// The number of this shard.
    pub shard: usize,
    /// The same, as packets carry it.
    pub origin: u8,
    /// The ids of the shard's hosts, switches and links; empty with one shard.
    host_ids: Indexed<HostIdx, u32>,
    switch_ids: Indexed<SwitchIdx, u32>,
    link_ids: Indexed<PortIdx, u32>,
    /// The far end of each link; empty with one shard.
    pub far_ends: Indexed<PortIdx, FarEnd>,
    /// NIC ports are those before this one.
    pub nics: PortIdx,
    /// The host of each NIC port.
    pub nic_host: Indexed<PortIdx, HostIdx>,
    /// The first NIC port of each host; one more at the end.
    first_nic: Vec<PortIdx>,
    /// The minimum time between two messages of each NIC, ps; empty if there is none.
    pub gaps: Indexed<PortIdx, Picoseconds>,
    /// The switch at the far end of each link; [`NO_SWITCH`] at hosts.
    pub to_switch: Indexed<PortIdx, SwitchId>,
    /// The NIC port at the far end of each link, in the shard there; none at switches.
    pub to_nic: Indexed<PortIdx, PortIdx>,
}

impl Naming {
    /// The members of shard number `shard`.
    pub fn new(graph: &Graph, partition: &Partition, shard: usize) -> Self {
        let [host_ids, switch_ids, link_ids] = partition.members(shard);
        let whole = partition.shards() == 1;
        let all = graph.links();
        let every = if whole { all } else { &[] };
        let links = || every.iter().chain(link_ids.iter().map(|id| &all[*id as usize]));
        let nic_host: Vec<HostIdx> =
            links().map_while(|link| host_of(link.from)).map(|host| partition.host(host).index()).collect();
        let hosts = number(if whole { graph.hosts() } else { host_ids.len() });
        let ports_before = |host| number(nic_host.partition_point(|other| other.0 < host));
        Self {
            shard,
            origin: u8::try_from(shard).expect("invariant: at most 32 shards"),
            far_ends: links().filter(|_| !whole).map(|link| FarEnd::new(link, graph, partition)).collect(),
            nics: PortIdx(number(nic_host.len())),
            first_nic: (0..=hosts).map(|host| PortIdx(ports_before(host))).collect(),
            gaps: message_gaps(graph, links().take(nic_host.len())),
            to_switch: links().map(|link| switch_of(link.to)).collect(),
            to_nic: links().map(|link| nic_of(link, partition)).collect(),
            nic_host: nic_host.into(),
            host_ids: host_ids.into(),
            switch_ids: switch_ids.into(),
            link_ids: link_ids.into(),
        }
    }

    /// How many hosts the shard has.
    pub fn hosts(&self) -> usize {
        self.first_nic.len() - 1
    }

    /// The hosts of the shard.
    pub fn all_hosts(&self) -> impl Iterator<Item = HostIdx> + use<> {
        (0..).take(self.hosts()).map(HostIdx)
    }

    /// How many ports the shard has.
    pub fn ports(&self) -> usize {
        self.to_nic.len()
    }

    /// The links of the ports.
    pub fn links<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Link> {
        self.links_of_ports().map(|link| graph.link(link))
    }

    /// Their ids.
    pub fn links_of_ports(&self) -> impl Iterator<Item = LinkId> {
        self.to_nic.each().map(|(port, _)| self.link_of(port))
    }

    /// The NIC ports of a host.
    #[inline]
    pub fn nics_of(&self, host: HostIdx) -> Nics {
        Nics(self.first_nic[host.index()].0..self.first_nic[host.index() + 1].0)
    }

    /// The id of a port's link.
    #[inline(always)]
    pub fn link_id<I: Instance>(&self, port: PortIdx) -> LinkId {
        LinkId(if I::SHARDED { self.link_ids[port] } else { port.0 })
    }

    /// The same, with any number of shards.
    pub fn link_of(&self, port: PortIdx) -> LinkId {
        LinkId(self.link_ids.get(port).map_or(port.0, |link| *link))
    }

    /// The id of a host.
    #[inline(always)]
    pub fn host_id<I: Instance>(&self, host: HostIdx) -> HostId {
        HostId(if I::SHARDED { self.host_ids[host] } else { host.0 })
    }

    /// The id of a switch.
    #[inline(always)]
    pub fn switch_id<I: Instance>(&self, switch: SwitchIdx) -> SwitchId {
        SwitchId(if I::SHARDED { self.switch_ids[switch] } else { switch.0 })
    }

    /// The shard at the far end of a port's link, if it is another.
    #[inline(always)]
    pub fn other_shard<I: Instance>(&self, port: PortIdx) -> Option<usize> {
        if !I::SHARDED {
            return None;
        }
        let shard = usize::from(self.far_ends[port].shard);
        (shard != self.shard).then_some(shard)
    }

    /// The port of a link that leaves the switch at the far end of `port`, in the shard there.
    #[inline(always)]
    pub fn next_port<I: Instance>(&self, port: PortIdx, link: LinkId) -> PortIdx {
        PortIdx(if I::SHARDED { link.0.wrapping_add(self.far_ends[port].offset) } else { link.0 })
    }

    /// A port of this shard as other shards know it.
    #[inline(always)]
    pub fn place(&self, port: PortIdx) -> Place<PortIdx> {
        Place::new(self.shard, port)
    }
}

/// The NIC ports of a host.
#[derive(Clone)]
pub(super) struct Nics(std::ops::Range<u32>);

impl Nics {
    /// The first.
    #[inline(always)]
    pub const fn first(&self) -> PortIdx {
        PortIdx(self.0.start)
    }

    /// The adapter of this rail.
    #[inline(always)]
    pub fn rail(&self, rail: u8) -> PortIdx {
        let nic = self.0.start + u32::from(rail);
        debug_assert!(nic < self.0.end, "there is no rail {rail}");
        PortIdx(nic)
    }

    /// Whether there is more than one.
    #[inline(always)]
    pub const fn several(&self) -> bool {
        self.0.end - self.0.start > 1
    }
}

impl Iterator for Nics {
    type Item = PortIdx;

    #[inline(always)]
    fn next(&mut self) -> Option<PortIdx> {
        self.0.next().map(PortIdx)
    }
}

/// The minimum time between two messages of each NIC, ps; empty if there is none.
fn message_gaps<'a>(graph: &Graph, nics: impl Iterator<Item = &'a Link>) -> Indexed<PortIdx, Picoseconds> {
    let rail = |link: &Link| {
        let own = graph.link(link.reverse).reverse;
        graph.ports(link.from).position(|port| port == own).unwrap_or_default()
    };
    let gaps: Vec<Picoseconds> = nics.map(|link| graph.message_gap(rail(link))).collect();
    if gaps.iter().all(|gap| *gap == Picoseconds::ZERO) { Vec::new().into() } else { gaps.into() }
}

fn host_of(vertex: Vertex) -> Option<HostId> {
    match vertex {
        Vertex::Host(host) => Some(host),
        Vertex::Switch(_) => None,
    }
}

fn switch_of(vertex: Vertex) -> SwitchId {
    match vertex {
        Vertex::Switch(switch) => switch,
        Vertex::Host(_) => NO_SWITCH,
    }
}

fn nic_of(link: &Link, partition: &Partition) -> PortIdx {
    match link.to {
        Vertex::Host(_) => partition.link(link.reverse).index(),
        Vertex::Switch(_) => PortIdx::NONE,
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: links have 27-bit numbers")
}
