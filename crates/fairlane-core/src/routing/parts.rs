//! Parts of a fabric that are joined only through hosts, as the planes of several rails are, and where hosts hang in each.

use super::choices;
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

/// Where hosts hang, in each part of the fabric: at their first link there.
pub(super) struct PartEnds {
    /// The part of each switch.
    pub parts: Vec<u32>,
    hosts: usize,
    /// By part and host: the switch at the host's first link there, and the switch's link to the host.
    ends: Vec<Option<(SwitchId, LinkId)>>,
}

impl PartEnds {
    /// Finds the ends; a part that a host sends into must reach all hosts. `routing` is for the error.
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let (parts, count) = parts(graph);
        let hosts = graph.hosts();
        let places =
            choices::table_entries(routing, [(count, "parts without a path between switches"), (hosts, "hosts")])?;
        let mut found = Self { parts, hosts, ends: vec![None; places] };
        let mut entered = vec![false; count];
        for host in (0..).take(hosts).map(HostId) {
            for (number, link) in graph.ports(Vertex::Host(host)).map(|link| graph.link(link)).enumerate() {
                let Vertex::Switch(switch) = link.to else {
                    let name = graph.host_name(host);
                    let allowed = format!("for hosts that are attached to switches, and {name:?} is not");
                    return Err(BuildError::value("fabric.routing", routing, allowed));
                };
                let part = found.parts[switch.index()] as usize;
                entered[part] |= number == 0;
                found.ends[part * hosts + host.index()].get_or_insert((switch, link.reverse));
            }
        }
        let of_part = |part: usize| &found.ends[part * hosts..(part + 1) * hosts];
        if (0..count).any(|part| entered[part] && of_part(part).contains(&None)) {
            return Err(BuildError::value("fabric.routing", routing, "needs a connected fabric"));
        }
        Ok(found)
    }

    /// Where a host hangs in the part of `at`, and the link to it; none if it has no link there.
    #[inline]
    pub fn find(&self, at: SwitchId, to: HostId) -> Option<(SwitchId, LinkId)> {
        self.ends[self.parts[at.index()] as usize * self.hosts + to.index()]
    }

    /// The same of a host that is reached from `at`.
    #[inline]
    pub fn of(&self, at: SwitchId, to: HostId) -> (SwitchId, LinkId) {
        self.find(at, to).expect("invariant: a part that packets enter reaches every host")
    }

    /// The switches at which packets leave the fabric, in ascending order.
    pub fn leaves(&self) -> Vec<SwitchId> {
        let mut leaves: Vec<SwitchId> = self.ends.iter().flatten().map(|(switch, _)| *switch).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }
}

/// The switches at which packets enter the fabric. A host's further links may be at switches at which none leave.
pub(super) fn entries(graph: &Graph) -> Vec<SwitchId> {
    let has_host = |switch: &SwitchId| {
        graph.ports(Vertex::Switch(*switch)).any(|link| matches!(graph.link(link).to, Vertex::Host(_)))
    };
    (0..).take(graph.switches()).map(SwitchId).filter(has_host).collect()
}

/// The switches at the far ends of a switch's links.
pub(super) fn neighbours(graph: &Graph, switch: SwitchId) -> impl Iterator<Item = SwitchId> {
    let ends = graph.ports(Vertex::Switch(switch)).map(|link| graph.link(link).to);
    ends.filter_map(|end| if let Vertex::Switch(other) = end { Some(other) } else { None })
}

/// The connected part of each switch, numbered in order of their first switches, and how many there are. Hosts join
/// nothing.
pub(super) fn parts(graph: &Graph) -> (Vec<u32>, usize) {
    let mut parts = vec![u32::MAX; graph.switches()];
    let mut count = 0;
    for first in (0..).take(graph.switches()).map(SwitchId) {
        if parts[first.index()] != u32::MAX {
            continue;
        }
        parts[first.index()] = count;
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            for next in neighbours(graph, at) {
                if parts[next.index()] == u32::MAX {
                    parts[next.index()] = count;
                    open.push(next);
                }
            }
        }
        count += 1;
    }
    (parts, count as usize)
}
