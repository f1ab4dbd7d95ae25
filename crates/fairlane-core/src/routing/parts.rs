//! Where hosts hang in the fabric that is routed, and the parts of it that no path between switches joins.
//!
//! A routing knows a fabric by endpoint (see [`crate::topology`]): every host has one link. The planes of several rails are
//! parts of one fabric; packets stay in the part that they enter.

use std::collections::BTreeSet;

use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Vertex};

/// Where each host hangs.
pub(super) struct Ends {
    /// The part of each switch.
    pub parts: Vec<u32>,
    /// By host: its switch, and the switch's link to it.
    ends: Vec<(SwitchId, LinkId)>,
}

impl Ends {
    /// Finds the ends; `routing` is for the error.
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let (parts, _) = graph.parts_without(&BTreeSet::new());
        let end = |host: HostId| {
            let link = graph.ports(Vertex::Host(host)).next().map(|link| graph.link(link));
            match link.map(|link| (link.to, link.reverse)) {
                Some((Vertex::Switch(switch), down)) => Ok((switch, down)),
                _ => {
                    let name = graph.host_name(host);
                    let allowed = format!("for hosts that are attached to switches, and {name:?} is not");
                    Err(BuildError::value("fabric.routing", routing, allowed))
                }
            }
        };
        let ends = (0..).take(graph.hosts()).map(HostId).map(end).collect::<Result<_, _>>()?;
        Ok(Self { parts, ends })
    }

    /// Whether packets at a switch can be routed to a host: both are in one part.
    pub fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.parts[at.index()] == self.parts[self.ends[to.index()].0.index()]
    }

    /// The switch of a host, and the link to it.
    #[inline]
    pub fn of(&self, to: HostId) -> (SwitchId, LinkId) {
        self.ends[to.index()]
    }

    /// The switches with hosts, in ascending order: packets enter and leave the fabric there.
    pub fn leaves(&self) -> Vec<SwitchId> {
        let leaves: BTreeSet<SwitchId> = self.ends.iter().map(|(switch, _)| *switch).collect();
        leaves.into_iter().collect()
    }
}

/// The switches at the far ends of a switch's links.
pub(super) fn neighbours(graph: &Graph, switch: SwitchId) -> impl Iterator<Item = SwitchId> {
    let ends = graph.ports(Vertex::Switch(switch)).map(|link| graph.link(link).to);
    ends.filter_map(|end| if let Vertex::Switch(other) = end { Some(other) } else { None })
}
