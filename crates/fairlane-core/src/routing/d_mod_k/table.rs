//! The listed representation: a port for every switch and destination.

use super::tree::Tree;
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Vertex;

/// No up/down path, or a port that no packet asks for.
const NONE: u32 = u32::MAX;

/// Rows of links by destination.
#[derive(Default)]
pub(super) struct Table {
    hosts: usize,
    /// Row by row, the link to each host.
    links: Vec<u32>,
}

impl Table {
    /// Lists the ways of the switches in `rows`.
    ///
    /// # Errors
    /// [`BuildError::Shape`] when a host cannot be reached from another by going up and then down.
    pub fn new(tree: &Tree, rows: &[SwitchId]) -> Result<Self, BuildError> {
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let hosts = tree.graph.hosts();
        let mut links = vec![NONE; rows.len() * hosts];
        let mut steps = Steps::new(tree);
        for (index, host) in (0..).take(hosts).map(HostId).enumerate() {
            steps.towards(host);
            steps.check(host)?;
            for (row, &switch) in rows.iter().enumerate() {
                links[row * hosts + index] = steps.link(switch, host).map_or(NONE, |link| link.0);
            }
        }
        Ok(Self { hosts, links })
    }

    #[inline]
    pub fn link(&self, row: u32, to: HostId) -> LinkId {
        LinkId(self.links[row as usize * self.hosts + to.index()])
    }
}

/// How far every switch is from one destination.
struct Steps<'t> {
    tree: &'t Tree<'t>,
    /// Links on the shortest way down, by switch.
    down: Vec<u32>,
    /// Links on the shortest way up and down, by switch; equal to `down` where there is a way down.
    any: Vec<u32>,
}

impl<'t> Steps<'t> {
    fn new(tree: &'t Tree<'t>) -> Self {
        let switches = tree.graph.switches();
        Self { tree, down: vec![NONE; switches], any: vec![NONE; switches] }
    }

    /// Measures from every switch to `host`.
    fn towards(&mut self, host: HostId) {
        for &switch in &self.tree.bottom_up {
            self.down[switch.index()] = self.nearest(&self.tree.ports[switch.index()].down, &self.down, host);
        }
        for &switch in self.tree.bottom_up.iter().rev() {
            self.any[switch.index()] = match self.down[switch.index()] {
                NONE => self.nearest(&self.tree.ports[switch.index()].up, &self.any, host),
                down => down,
            };
        }
    }

    /// One more than the distance of the nearest far end of `links`.
    fn nearest(&self, links: &[LinkId], distance: &[u32], host: HostId) -> u32 {
        links.iter().map(|link| self.beyond(*link, distance, host)).min().unwrap_or(NONE)
    }

    /// The length of the way over `link`.
    fn beyond(&self, link: LinkId, distance: &[u32], host: HostId) -> u32 {
        match self.tree.graph.link(link).to {
            Vertex::Host(end) if end == host => 1,
            Vertex::Host(_) => NONE,
            Vertex::Switch(switch) => distance[switch.index()].saturating_add(1),
        }
    }

    /// The rule: candidate `x mod n`.
    fn link(&self, switch: SwitchId, host: HostId) -> Option<LinkId> {
        let ports = &self.tree.ports[switch.index()];
        let (links, distance) =
            if self.down[switch.index()] == NONE { (&ports.up, &self.any) } else { (&ports.down, &self.down) };
        let length = self.any[switch.index()];
        let candidates =
            || links.iter().copied().filter(|link| length != NONE && self.beyond(*link, distance, host) == length);
        let quotient = (host.0 / self.tree.stride(switch)) as usize;
        candidates().nth(quotient % candidates().count().max(1))
    }

    /// Checks that packets from every host find a way to `host`.
    fn check(&self, host: HostId) -> Result<(), BuildError> {
        let graph = self.tree.graph;
        for other in (0..).take(graph.hosts()).map(HostId).filter(|other| *other != host) {
            for link in graph.ports(Vertex::Host(other)) {
                if matches!(graph.link(link).to, Vertex::Switch(leaf) if self.any[leaf.index()] == NONE) {
                    let problem = format!("d_mod_k finds no up/down path from host {other} to host {host}");
                    return Err(BuildError::Shape { path: "fabric.routing".to_owned(), problem });
                }
            }
        }
        Ok(())
    }
}
