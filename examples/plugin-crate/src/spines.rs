//! Two routings of trees of two levels, both up to any spine and down again: each job over a spine of its own, or by the
//! occupancy of the packet's own lane.
//!
//! One virtual channel is enough, because no packet goes up after it has gone down.

use fairlane_core::error::BuildError;
use fairlane_core::ids::{HostId, LinkId, SwitchId};
use fairlane_core::routing::{Entry, Hop, Loads, Routing, Visit};
use fairlane_core::table::NoParams;
use fairlane_core::topology::{Graph, Vertex};
use schemars::schema_for;

/// The jobs are shared out to the spines: job `j` takes up port `j` modulo their number.
pub static SPINE_BY_JOB: Entry = Entry {
    name: "spine_by_job",
    summary: "jobs are assigned to the spine switches round-robin",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(SpineByJob(Tree::new(graph, "spine_by_job")?)))
    },
};

/// Every packet takes the up port whose lane of this packet holds the fewest bytes.
pub static LIGHTEST_LANE: Entry = Entry {
    name: "lightest_lane",
    summary: "the up port with the lowest occupancy of the packet's own lane",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(LightestLane(Tree::new(graph, "lightest_lane")?)))
    },
};

/// What both need of the fabric.
struct Tree {
    /// The switch of each host, and its link to the host.
    hosts: Vec<(SwitchId, LinkId)>,
    /// Of each switch: its links up, or, of a spine, none.
    up: Vec<Vec<LinkId>>,
    /// Of each spine: its link to each leaf, by number of switch.
    down: Vec<Vec<Option<LinkId>>>,
}

impl Tree {
    fn new(graph: &Graph, routing: &str) -> Result<Self, BuildError> {
        let unfit = || BuildError::value("fabric.routing", routing, "needs a tree of two levels");
        let switches = graph.switches();
        let mut tree = Self { hosts: Vec::new(), up: vec![Vec::new(); switches], down: vec![Vec::new(); switches] };
        for host in (0..).take(graph.hosts()).map(HostId) {
            let first = graph.ports(Vertex::Host(host)).next().map(|link| graph.link(link)).ok_or_else(unfit)?;
            let Vertex::Switch(leaf) = first.to else { return Err(unfit()) };
            tree.hosts.push((leaf, first.reverse));
        }
        for at in (0..).take(switches).map(SwitchId) {
            for link in graph.ports(Vertex::Switch(at)) {
                let Vertex::Switch(to) = graph.link(link).to else { continue };
                match (graph.level(at), graph.level(to)) {
                    (1, 2) => tree.up[at.index()].push(link),
                    (2, 1) => {
                        let down = &mut tree.down[at.index()];
                        down.resize(switches, None);
                        down[to.index()] = Some(link);
                    }
                    _ => return Err(unfit()),
                }
            }
        }
        Ok(tree)
    }

    /// The links that a packet may take.
    fn links(&self, at: SwitchId, to: HostId) -> &[LinkId] {
        let (leaf, last) = &self.hosts[to.index()];
        if at == *leaf {
            return std::slice::from_ref(last);
        }
        self.down[at.index()]
            .get(leaf.index())
            .and_then(Option::as_ref)
            .map_or(&self.up[at.index()], std::slice::from_ref)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        self.links(at, visit.to).iter().map(|&link| (Hop { link, channel: 0 }, visit.note)).collect()
    }

    /// A packet where nothing waits anywhere: by destination.
    fn next_hop(&self, at: SwitchId, to: HostId) -> Hop {
        let links = self.links(at, to);
        Hop { link: links[to.index() % links.len()], channel: 0 }
    }
}

struct SpineByJob(Tree);

impl Routing for SpineByJob {
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        self.0.next_hop(at, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, _loads: &Loads) -> Hop {
        let links = self.0.links(at, visit.to);
        Hop { link: links[visit.job.index() % links.len()], channel: 0 }
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        self.0.options(at, visit)
    }
}

struct LightestLane(Tree);

impl Routing for LightestLane {
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        self.0.next_hop(at, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_lanes(&self) -> bool {
        true
    }

    fn sees_own_ports_only(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let links = self.0.links(at, visit.to);
        let lightest = links.iter().min_by_key(|link| loads.on_lane(**link, visit.vl, 0)).unwrap_or(&links[0]);
        Hop { link: *lightest, channel: 0 }
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        self.0.options(at, visit)
    }
}
