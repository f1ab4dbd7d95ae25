//! The listed representation: a port for every switch and destination.

use std::collections::BTreeMap;

use super::super::choices::table_entries;
use super::tree::LevelledFabric;
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Vertex;

/// A port that no packet asks for.
const NONE: u16 = u16::MAX;
/// A distance where there is no path.
const FAR: u32 = u32::MAX;

/// The ports of some switches, a row for each, by destination.
#[derive(Default)]
pub(super) struct PortTable {
    hosts: usize,
    ports: Vec<u16>,
}

impl PortTable {
    /// Lists the ports of the switches in `rows`; `parts`: the part of the fabric of each switch.
    ///
    /// # Errors
    /// [`BuildError::Shape`] when a host cannot be reached from another by going up and then down.
    pub fn new(tree: &LevelledFabric, rows: &[SwitchId], parts: &[u32]) -> Result<Self, BuildError> {
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let hosts = tree.graph.hosts();
        let places = table_entries("d_mod_k", [(rows.len(), "irregular switches"), (hosts, "hosts")])?;
        let mut table = Self { hosts, ports: vec![NONE; places] };
        let mut steps = Steps::new(tree);
        for (leaf, destinations) in hosts_by_leaf(tree) {
            steps.towards(leaf);
            steps.check(leaf, destinations[0], parts)?;
            for (row, &switch) in rows.iter().enumerate() {
                let on_the_way = steps.candidates(switch);
                for &host in &destinations {
                    let direct = || links_to_host(tree, switch, host);
                    let candidates = if leaf == switch { &direct() } else { &on_the_way };
                    table.ports[row * hosts + host.index()] = choose(tree, switch, candidates, host)?;
                }
            }
        }
        Ok(table)
    }

    /// The number of the port in `row` that leads to a host.
    #[inline]
    pub fn port(&self, row: u32, to: HostId) -> u32 {
        let port = self.ports[row as usize * self.hosts + to.index()];
        debug_assert_ne!(port, NONE, "a packet where none should be");
        u32::from(port)
    }
}

/// The rule: candidate `x mod n`. As a port number.
fn choose(tree: &LevelledFabric, switch: SwitchId, candidates: &[LinkId], to: HostId) -> Result<u16, BuildError> {
    if candidates.is_empty() {
        return Ok(NONE);
    }
    let link = candidates[(to.0 / tree.stride(switch)) as usize % candidates.len()];
    let port = link.0 - tree.first_link(switch).0;
    u16::try_from(port).ok().filter(|port| *port != NONE).ok_or_else(|| {
        let problem = format!(
            "d_mod_k is for switches of fewer than {NONE} ports, and {:?} has more",
            tree.graph.switch_name(switch)
        );
        BuildError::Shape { path: "fabric.routing".to_owned(), problem }
    })
}

/// Hosts by the switch that they hang at.
fn hosts_by_leaf(tree: &LevelledFabric) -> BTreeMap<SwitchId, Vec<HostId>> {
    let mut groups: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
    for host in (0..).take(tree.graph.hosts()).map(HostId) {
        let ends = tree.graph.ports(Vertex::Host(host)).map(|link| tree.graph.link(link).to);
        for end in ends {
            if let Vertex::Switch(leaf) = end {
                groups.entry(leaf).or_default().push(host);
            }
        }
    }
    groups
}

fn links_to_host(tree: &LevelledFabric, leaf: SwitchId, host: HostId) -> Vec<LinkId> {
    let down = tree.ports[leaf.index()].down.iter().copied();
    down.filter(|link| tree.graph.link(*link).to == Vertex::Host(host)).collect()
}

/// How far every switch is from the leaf of a destination.
struct Steps<'t> {
    tree: &'t LevelledFabric<'t>,
    /// Links on the shortest path down, by switch.
    down: Vec<u32>,
    /// Links on the shortest path up and down, by switch; equal to `down` where there is a path down.
    any: Vec<u32>,
}

impl<'t> Steps<'t> {
    fn new(tree: &'t LevelledFabric<'t>) -> Self {
        let switches = tree.graph.switches();
        Self { tree, down: vec![FAR; switches], any: vec![FAR; switches] }
    }

    /// Measures from every switch to `leaf`.
    fn towards(&mut self, leaf: SwitchId) {
        for &switch in &self.tree.bottom_up {
            let nearest = self.nearest(&self.tree.ports[switch.index()].down, &self.down);
            self.down[switch.index()] = if leaf == switch { 0 } else { nearest };
        }
        for &switch in self.tree.bottom_up.iter().rev() {
            self.any[switch.index()] = match self.down[switch.index()] {
                FAR => self.nearest(&self.tree.ports[switch.index()].up, &self.any),
                down => down,
            };
        }
    }

    /// One more than the distance of the nearest switch that `links` lead to.
    fn nearest(&self, links: &[LinkId], distance: &[u32]) -> u32 {
        links.iter().map(|link| self.beyond(*link, distance)).min().unwrap_or(FAR)
    }

    /// The length of the path over `link`.
    fn beyond(&self, link: LinkId, distance: &[u32]) -> u32 {
        match self.tree.graph.link(link).to {
            Vertex::Host(_) => FAR,
            Vertex::Switch(switch) => distance[switch.index()].saturating_add(1),
        }
    }

    /// The links that lead a step along a shortest path; none at a leaf of the destination.
    fn candidates(&self, switch: SwitchId) -> Vec<LinkId> {
        let (ports, length) = (&self.tree.ports[switch.index()], self.any[switch.index()]);
        let (links, distance) =
            if self.down[switch.index()] == FAR { (&ports.up, &self.any) } else { (&ports.down, &self.down) };
        let nearer = |link: &LinkId| length != FAR && self.beyond(*link, distance) == length;
        links.iter().copied().filter(nearer).collect()
    }

    /// Checks that packets from every host of its part find a path to `host`, whose leaf was measured to.
    fn check(&self, leaf: SwitchId, host: HostId, parts: &[u32]) -> Result<(), BuildError> {
        let graph = self.tree.graph;
        let cut_off = |other: &HostId| {
            let mut ends = graph.ports(Vertex::Host(*other)).map(|link| graph.link(link).to);
            let is_far = |at: SwitchId| self.any[at.index()] == FAR && parts[at.index()] == parts[leaf.index()];
            ends.any(|end| matches!(end, Vertex::Switch(at) if is_far(at)))
        };
        (0..).take(graph.hosts()).map(HostId).find(cut_off).map_or(Ok(()), |other| {
            let problem = format!(
                "d_mod_k finds no up/down path from host {:?} to host {:?}",
                graph.host_name(other),
                graph.host_name(host)
            );
            Err(BuildError::Shape { path: "fabric.routing".to_owned(), problem })
        })
    }
}
