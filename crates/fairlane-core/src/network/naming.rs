//! The members of a shard and their numbers: hosts, and output ports, each of which sends on one link.
//!
//! Lists by host, NIC or port have the members of the shard only, in order of their ids. With one shard numbers are ids.

use super::index::{HostIdx, PortIdx};
use super::partition::Partition;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::Indexed;
use crate::topology::{Graph, Link, Vertex};
use crate::units::Picoseconds;

/// No switch is at the far end of a link.
pub(super) const NO_SWITCH: SwitchId = SwitchId(u32::MAX);

/// The hosts and ports of a shard, and the switches at the far ends of their links.
#[derive(Clone)]
pub(super) struct Naming {
    /// The number of this shard.
    pub shard: u8,
    /// The ids of the shard's hosts and links; empty with one shard.
    host_ids: Indexed<HostIdx, HostId>,
    link_ids: Indexed<PortIdx, LinkId>,
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
}

impl Naming {
    /// The members of shard number `shard`.
    pub fn new(graph: &Graph, partition: &Partition, shard: u8) -> Self {
        let whole = partition.shards() == 1;
        let link_ids: Vec<LinkId> = partition.links_of(shard).collect();
        let all = if whole { graph.links() } else { &[] };
        let links = || all.iter().chain(link_ids.iter().map(|id| graph.link(*id)));
        let of_nics: Vec<HostId> = links().map_while(|link| host_of(link.from)).collect();
        let own = |host: &HostId| partition.of_host(graph, *host) == usize::from(shard);
        let hosts: Vec<HostId> = (0..).take(graph.hosts()).map(HostId).filter(own).collect();
        let number_of =
            |host: HostId| if whole { host.0 } else { number(hosts.partition_point(|other| *other < host)) };
        let nics_before = |host| PortIdx(number(of_nics.partition_point(|other| *other < host)));
        let nics = PortIdx(number(of_nics.len()));
        Self {
            shard,
            nics,
            nic_host: of_nics.iter().map(|host| HostIdx(number_of(*host))).collect(),
            first_nic: hosts.iter().map(|host| nics_before(*host)).chain([nics]).collect(),
            gaps: message_gaps(graph, links().take(of_nics.len())),
            to_switch: links().map(|link| switch_of(link.to)).collect(),
            host_ids: if whole { Indexed::default() } else { hosts.into() },
            link_ids: link_ids.into(),
        }
    }

    /// A host of the shard.
    pub fn host(&self, id: HostId) -> HostIdx {
        let place = self.host_ids.rows().binary_search_by_key(&id.0, |host| host.0);
        if self.host_ids.is_empty() {
            HostIdx(id.0)
        } else {
            HostIdx(number(place.expect("invariant: a host of the shard")))
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
        self.to_switch.len()
    }

    /// The links of the ports.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        self.to_switch.each().map(|(port, _)| self.link_of(port))
    }

    /// The NIC ports of a host.
    #[inline]
    pub fn nics_of(&self, host: HostIdx) -> Nics {
        Nics(self.first_nic[host.index()].0..self.first_nic[host.index() + 1].0)
    }

    /// The link of a port.
    #[inline(always)]
    pub fn link_of(&self, port: PortIdx) -> LinkId {
        if self.link_ids.is_empty() { LinkId(port.0) } else { self.link_ids[port] }
    }

    /// The id of a host.
    #[inline(always)]
    pub fn host_id(&self, host: HostIdx) -> HostId {
        if self.host_ids.is_empty() { HostId(host.0) } else { self.host_ids[host] }
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

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: links have 27-bit numbers")
}
