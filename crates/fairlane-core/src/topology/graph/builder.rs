//! The builder of a fabric's graph.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::super::forwarding::Forwarding;
use super::super::layout::Layout;
use super::super::size::Size;
use super::{Given, Graph, Link, Vertex};
use crate::error::BuildError;
use crate::ids::{LinkId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// Collects hosts, switches and cables, then lays the links out by vertex.
#[derive(Default)]
pub struct GraphBuilder {
    hosts: u32,
    levels: Vec<u8>,
    classes: Vec<String>,
    cables: Vec<Cable>,
    layout: Layout,
    forwarding: Option<Forwarding>,
    names: Option<[Vec<String>; 2]>,
}

struct Cable {
    ends: [Vertex; 2],
    bandwidth: BitsPerSec,
    latency: Picoseconds,
    classes: [usize; 2],
    ports: Option<[u32; 2]>,
}

/// Links have so many classes at most: a class has an 8-bit number.
const MAX_CLASSES: usize = 1 << u8::BITS;

/// The longest latency of a link: one second.
const MAX_LATENCY: Picoseconds = Picoseconds(1_000_000_000_000);

/// The problem with a link's latency, if there is one.
pub(in crate::topology) fn check_latency(path: &str, latency: Picoseconds) -> Result<(), BuildError> {
    match latency {
        Picoseconds::ZERO => Err(BuildError::value(path, 0, "a link needs a latency above zero")),
        _ if latency > MAX_LATENCY => Err(BuildError::value(path, latency, "at most one second for a link")),
        _ => Ok(()),
    }
}

impl GraphBuilder {
    /// Adds `count` hosts; their ids follow those already there.
    pub fn add_hosts(&mut self, count: u32) {
        self.hosts += count;
    }

    /// Adds a switch at `level` (1 for leaves of a tree; 0 where there are no levels).
    pub fn add_switch(&mut self, level: u8) -> SwitchId {
        self.levels.push(level);
        SwitchId(u32::try_from(self.levels.len() - 1).expect("invariant: fewer than 2^32 switches"))
    }

    /// Joins `a` and `b` by a cable of two links. `class_ab` names the class of the link from `a` to `b`, `class_ba`
    /// the other. Ports are numbered in the order in which a vertex's cables are added.
    pub fn add_cable(
        &mut self,
        a: Vertex,
        b: Vertex,
        bandwidth: BitsPerSec,
        latency: Picoseconds,
        class_ab: &str,
        class_ba: &str,
    ) {
        let classes = [self.class(class_ab), self.class(class_ba)];
        self.cables.push(Cable { ends: [a, b], bandwidth, latency, classes, ports: None });
    }

    /// Says which numbers the ports at the two ends of the cable have that was added last.
    pub fn number_ports(&mut self, ports: [u32; 2]) {
        if let Some(cable) = self.cables.last_mut() {
            cable.ports = Some(ports);
        }
    }

    /// Names hosts and switches; without it names are made up from where they are.
    pub fn set_names(&mut self, hosts: Vec<String>, switches: Vec<String>) {
        self.names = Some([hosts, switches]);
    }

    /// Says how the switches are laid out; without it they are not, but for their levels.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Adds forwarding tables.
    pub fn set_forwarding(&mut self, forwarding: Forwarding) {
        self.forwarding = Some(forwarding);
    }

    fn class(&mut self, name: &str) -> usize {
        self.classes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.classes.push(name.to_owned());
            self.classes.len() - 1
        })
    }

    /// The finished graph.
    ///
    /// # Errors
    /// [`BuildError::Value`] for a link without bandwidth or latency or with one of more than a second, for more links or
    /// classes of links than there are numbers for; [`BuildError::Shape`] for a host without a link or a fabric without hosts.
    pub fn build(self) -> Result<Graph, BuildError> {
        Size::new(self.hosts.into(), self.levels.len() as u64, self.cables.len() as u64).check()?;
        if let Some(first) = self.classes.get(MAX_CLASSES) {
            let allowed = format!("at most {MAX_CLASSES} classes of links, and there are {}", self.classes.len());
            return Err(BuildError::value("fabric.links[].class", format!("{first:?}"), allowed));
        }
        for cable in &self.cables {
            if cable.bandwidth == BitsPerSec::ZERO {
                return Err(BuildError::value("fabric.bandwidth", 0, "a link needs a bandwidth above zero"));
            }
            check_latency("fabric.latency", cable.latency)?;
        }
        let vertices = self.hosts as usize + self.levels.len();
        let slot = |vertex: Vertex| match vertex {
            Vertex::Host(host) => host.index(),
            Vertex::Switch(switch) => self.hosts as usize + switch.index(),
        };
        let mut first = vec![0_u32; vertices + 1];
        for end in self.cables.iter().flat_map(|cable| cable.ends) {
            first[slot(end) + 1] += 1;
        }
        for vertex in 0..vertices {
            first[vertex + 1] += first[vertex];
        }
        let mut next = first.clone();
        let mut links: Vec<Option<Link>> = vec![None; self.cables.len() * 2];
        let mut ports: Vec<Option<u32>> = vec![None; links.len()];
        for cable in &self.cables {
            let ids = cable.ends.map(|end| {
                let id = next[slot(end)];
                next[slot(end)] += 1;
                LinkId(id)
            });
            for side in 0..2 {
                ports[ids[side].index()] = cable.ports.map(|ports| ports[side]);
                links[ids[side].index()] = Some(Link {
                    from: cable.ends[side],
                    to: cable.ends[1 - side],
                    bandwidth: cable.bandwidth,
                    latency: cable.latency,
                    class: u8::try_from(cable.classes[side]).unwrap_or(u8::MAX),
                    reverse: ids[1 - side],
                });
            }
        }
        let host_ports = first[..=self.hosts as usize].to_vec();
        let lonely = host_ports.windows(2).position(|pair| pair[0] == pair[1]);
        if self.hosts == 0 || lonely.is_some() {
            let name =
                |host: usize| self.names.as_ref().map_or(format!("host{host}"), |[hosts, _]| hosts[host].clone());
            let problem = lonely.map_or("no hosts".to_owned(), |host| format!("host {:?} has no link", name(host)));
            return Err(BuildError::Shape { path: "fabric".to_owned(), problem });
        }
        let names = self.names.map(|[hosts, switches]| {
            let ports = numbered(&first, &ports);
            Arc::new(Given { hosts, switches, ports })
        });
        Ok(Graph {
            links: links.into_iter().flatten().collect(),
            host_ports,
            switch_ports: first[self.hosts as usize..].to_vec(),
            levels: self.levels,
            classes: self.classes,
            layout: self.layout,
            forwarding: self.forwarding,
            topology: None,
            names,
            made: None,
            parts: OnceLock::new(),
            plane: OnceLock::new(),
            of_endpoints: false,
        })
    }
}

/// The numbers of all ports: those of a vertex that have none get the lowest, from 1, that are free.
fn numbered(first: &[u32], given: &[Option<u32>]) -> Vec<u32> {
    let of_vertex = |ends: &[u32]| {
        let own = &given[ends[0] as usize..ends[1] as usize];
        let used: BTreeSet<u32> = own.iter().flatten().copied().collect();
        let mut free = (1..).filter(move |number| !used.contains(number));
        own.iter().map(|port| port.or_else(|| free.next()).unwrap_or_default()).collect::<Vec<_>>()
    };
    first.windows(2).flat_map(of_vertex).collect()
}
