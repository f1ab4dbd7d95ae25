//! The graph of a fabric: hosts and switches joined by links.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::Entry;
use super::forwarding::Forwarding;
use super::layout::{Layout, LinkRole};
use super::parts::Parts;
use super::rails_spec::{RailsSpec, Wiring};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

mod builder;

pub use builder::GraphBuilder;
pub(super) use builder::check_latency;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vertex {
    /// A host's network port.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}

/// One direction of a cable, and the output port that feeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sending end.
    pub from: Vertex,
    /// The receiving end.
    pub to: Vertex,
    /// The rate of the wire.
    pub bandwidth: BitsPerSec,
    /// Time of flight.
    pub latency: Picoseconds,
    /// The class of the link, an index into [`Graph::classes`]: "host up", "leaf up", "leaf down" ...
    pub class: u8,
    /// The other direction of the same cable.
    pub reverse: LinkId,
}

/// The names that a fabric was given.
#[derive(Debug)]
pub(super) struct Given {
    pub hosts: Vec<String>,
    pub switches: Vec<String>,
    /// The number of the port that feeds each link.
    pub ports: Vec<u32>,
}

/// The specification that a graph of several rails was made by.
#[derive(Debug)]
pub(super) struct Made {
    pub rails: RailsSpec,
    /// The topology, if each rail has a copy of it.
    pub plane: Option<Graph>,
}

/// Hosts, switches and links of a fabric, and how the switches are levelled if they are.
///
/// The links that leave one vertex have consecutive ids, so a port number of a vertex and a [`LinkId`] convert into
/// each other by one addition.
#[derive(Clone, Debug)]
pub struct Graph {
    links: Vec<Link>,
    /// First link of each host, one more at the end.
    host_ports: Vec<u32>,
    /// First link of each switch, one more at the end.
    switch_ports: Vec<u32>,
    levels: Vec<u8>,
    classes: Vec<String>,
    layout: Layout,
    forwarding: Option<Forwarding>,
    topology: Option<&'static Entry>,
    names: Option<Arc<Given>>,
    made: Option<Arc<Made>>,
    parts: OnceLock<Arc<Parts>>,
    /// The first plane, if the others are copies of it.
    plane: OnceLock<Option<Arc<Self>>>,
    /// It is a fabric by endpoint, whose parts may be joined by hosts with several adapters.
    of_endpoints: bool,
}

impl Graph {
    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.host_ports.len() - 1
    }

    /// How many switches there are.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.switch_ports.len() - 1
    }

    /// Every link, in order of id.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// The same fabric where some links have other bandwidths, which are above zero.
    #[must_use]
    pub(crate) fn with_bandwidths(&self, bandwidths: &BTreeMap<LinkId, BitsPerSec>) -> Self {
        let mut graph = self.clone();
        for (link, bandwidth) in bandwidths {
            graph.links[link.index()].bandwidth = *bandwidth;
        }
        graph
    }

    /// The same hosts and switches without some links, and what the ids of the links that are left were. A fabric of several rails
    /// is one of one rail then, and one that came with forwarding tables has none.
    #[must_use]
    pub(crate) fn without(&self, removed: &BTreeSet<LinkId>) -> (Self, Vec<LinkId>) {
        let all = (0..).map(LinkId).take(self.links.len());
        let left: Vec<LinkId> = all.filter(|link| !removed.contains(link)).collect();
        let number = |id: usize| u32::try_from(id).expect("invariant: links have 27-bit numbers");
        let new = |old: LinkId| LinkId(number(left.partition_point(|link| *link < old)));
        let starts = |ports: &[u32]| ports.iter().map(|first| new(LinkId(*first)).0).collect();
        let links = left.iter().map(|old| Link { reverse: new(self.link(*old).reverse), ..*self.link(*old) });
        let names = self.names.as_deref().map(|names| {
            let ports = left.iter().map(|link| names.ports[link.index()]).collect();
            Arc::new(Given { hosts: names.hosts.clone(), switches: names.switches.clone(), ports })
        });
        let graph = Self {
            links: links.collect(),
            host_ports: starts(&self.host_ports),
            switch_ports: starts(&self.switch_ports),
            levels: self.levels.clone(),
            classes: self.classes.clone(),
            layout: self.layout.clone(),
            forwarding: None,
            topology: self.topology,
            names,
            made: None,
            parts: OnceLock::new(),
            plane: OnceLock::new(),
            of_endpoints: self.of_endpoints,
        };
        (graph, left)
    }

    /// The same fabric where each adapter is a host, with links in the order of their new ends. Forwarding tables are by
    /// endpoint already: `order` are the endpoints in the order of the new hosts.
    pub(super) fn single_homed(&self, links: Vec<Link>, names: Option<Arc<Given>>, order: &[usize]) -> Self {
        let number = |id: usize| u32::try_from(id).expect("invariant: links have 27-bit numbers");
        Self {
            links,
            host_ports: (0..=number(order.len())).collect(),
            names,
            made: None,
            parts: OnceLock::new(),
            plane: OnceLock::new(),
            of_endpoints: true,
            forwarding: self.forwarding.as_ref().map(|tables| tables.reordered(order)),
            ..self.clone()
        }
    }

    /// Whether it is a fabric by endpoint; see [`Graph::by_endpoint`].
    pub(super) fn is_of_endpoints(&self) -> bool {
        self.of_endpoints
    }

    /// The number of the first endpoint of a host, which is that of its first link; of the host after the last, the number of endpoints.
    #[inline]
    pub(super) fn first_endpoint(&self, host: HostId) -> u32 {
        self.host_ports[host.index()]
    }

    /// Where the parts of the fabric are kept once they are known.
    pub(super) fn parts_cell(&self) -> &OnceLock<Arc<Parts>> {
        &self.parts
    }

    /// Where the first of several equal planes is kept once it is known.
    pub(super) fn plane_cell(&self) -> &OnceLock<Option<Arc<Self>>> {
        &self.plane
    }

    /// All hosts with their first adapter, and the first `switches` switches, if their links are numbered as if there were no
    /// others.
    pub(super) fn first_plane(&self, rails: u32, switches: usize) -> Option<Self> {
        let hosts = u32::try_from(self.hosts()).ok()?;
        let (first, end) = (self.switch_ports[0], self.switch_ports[switches]);
        let shift = first - hosts;
        let number = |link: LinkId| LinkId(if link.0 < first { link.0 / rails } else { link.0 - shift });
        let old: Vec<usize> = (0..first as usize).step_by(rails as usize).chain(first as usize..end as usize).collect();
        let links = old.iter().map(|old| Link { reverse: number(self.links[*old].reverse), ..self.links[*old] });
        let inside = |end: Vertex| matches!(end, Vertex::Switch(switch) if switch.index() < switches);
        let names = self.names.as_deref().map(|names| {
            let ports = old.iter().map(|old| names.ports[*old]).collect();
            let switches = names.switches[..switches].to_vec();
            Arc::new(Given { hosts: names.hosts.clone(), switches, ports })
        });
        let plane = Self {
            links: links.collect(),
            host_ports: (0..=hosts).collect(),
            switch_ports: self.switch_ports[..=switches].iter().map(|port| port - shift).collect(),
            levels: self.levels[..switches].to_vec(),
            names,
            parts: OnceLock::new(),
            plane: OnceLock::new(),
            ..self.clone()
        };
        plane.links.iter().all(|link| matches!(link.to, Vertex::Host(_)) || inside(link.to)).then_some(plane)
    }

    /// The links that leave `vertex`, in order of port number.
    pub fn ports(&self, vertex: Vertex) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        let (first, end) = match vertex {
            Vertex::Host(host) => (self.host_ports[host.index()], self.host_ports[host.index() + 1]),
            Vertex::Switch(switch) => (self.switch_ports[switch.index()], self.switch_ports[switch.index() + 1]),
        };
        (first..end).map(LinkId)
    }

    /// The level of a switch in a tree: 1 for leaves, growing towards the roots; 0 where the fabric has no levels.
    #[must_use]
    pub fn level(&self, switch: SwitchId) -> u8 {
        self.levels[switch.index()]
    }

    /// The names of the link classes, by [`Link::class`].
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The entry that built it, if one did.
    #[must_use]
    pub fn topology(&self) -> Option<&'static Entry> {
        self.topology
    }

    pub(super) fn built_by(self, topology: &'static Entry) -> Self {
        Self { topology: Some(topology), ..self }
    }

    /// The names that the fabric was given, if it was.
    pub(super) fn given(&self) -> Option<&Given> {
        self.names.as_deref()
    }

    /// The same fabric with other names.
    pub(super) fn with_names(self, hosts: Vec<String>, switches: Vec<String>) -> Self {
        let ports = (0..).map(LinkId).take(self.links.len()).map(|link| self.port_number(link)).collect();
        Self { names: Some(Arc::new(Given { hosts, switches, ports })), ..self }
    }

    /// The specification that a graph of several rails was made by.
    pub(super) fn made(&self) -> Option<&Made> {
        self.made.as_deref()
    }

    /// The graph of these links, which join `hosts` hosts and `copies` times this graph's switches; `names` if there are.
    pub(super) fn multiplied(
        self,
        rails: RailsSpec,
        hosts: usize,
        copies: usize,
        links: Vec<Link>,
        names: Option<Arc<Given>>,
    ) -> Self {
        let starts = |count: usize, place: &dyn Fn(Vertex) -> Option<usize>| {
            let mut first = vec![0_u32; count + 1];
            links.iter().filter_map(|link| place(link.from)).for_each(|place| first[place + 1] += 1);
            (0..count).for_each(|place| first[place + 1] += first[place]);
            first
        };
        let host_ports = starts(hosts, &|end| if let Vertex::Host(host) = end { Some(host.index()) } else { None });
        let switch = |end| if let Vertex::Switch(switch) = end { Some(switch.index()) } else { None };
        let of_switches = starts(copies * self.switches(), &switch);
        Self {
            switch_ports: of_switches.into_iter().map(|first| first + host_ports[hosts]).collect(),
            host_ports,
            levels: self.levels.repeat(copies),
            classes: self.classes.clone(),
            layout: self.layout.clone(),
            forwarding: None,
            topology: self.topology,
            links,
            names,
            made: Some(Arc::new(Made { plane: (rails.wiring == Wiring::Planes).then_some(self), rails })),
            parts: OnceLock::new(),
            plane: OnceLock::new(),
            of_endpoints: false,
        }
    }

    /// How the switches are laid out.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The forwarding tables that came with the fabric, if any did: by endpoint.
    #[must_use]
    pub fn forwarding(&self) -> Option<&Forwarding> {
        self.forwarding.as_ref()
    }

    /// The role of a link: by its ends, their levels, and the plan.
    #[must_use]
    pub fn role(&self, link: LinkId) -> LinkRole {
        let (Vertex::Switch(from), Vertex::Switch(to)) = (self.link(link).from, self.link(link).to) else {
            return LinkRole::Host;
        };
        match &self.layout {
            Layout::Groups { switches, .. } if from.0 / switches != to.0 / switches => return LinkRole::Global,
            Layout::Grid(grid) => {
                let number = grid.dimension(from, to).and_then(|number| u8::try_from(number).ok());
                return number.map_or(LinkRole::Local, LinkRole::Dimension);
            }
            _ => {}
        }
        match self.level(to).cmp(&self.level(from)) {
            std::cmp::Ordering::Greater => LinkRole::Up,
            std::cmp::Ordering::Equal => LinkRole::Local,
            std::cmp::Ordering::Less => LinkRole::Down,
        }
    }
}
