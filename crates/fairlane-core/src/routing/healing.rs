//! Routes around links that are down.
//!
//! A routing is built anew on the fabric without the links that are down, with the parameters that it had. If it does not
//! support the remaining fabric, or needs more virtual channels than the routing of the whole fabric, up/down routing replaces it,
//! as `OpenSM` falls back to another engine. Failed links that connect otherwise separate parts stay in the routed graph, so that
//! it remains connected: packets to a host that is cut off are routed to a failed link and lost there.

use std::collections::{BTreeMap, BTreeSet};

use super::renumbered::{OnPlanes, Renumbered, Without};
use super::{Routing, Routings, by_endpoint, up_down};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId};
use crate::table::{Named, Table};
use crate::topology::{Graph, Vertex};

/// Routes around links that are down, and how they came about.
pub struct Healed {
    /// The routes.
    pub routing: Box<dyn Routing>,
    /// The name of the routing that was built.
    pub name: String,
    /// Why it is not the one that was asked for.
    pub instead: Option<BuildError>,
    /// The hosts that are cut off from most others.
    pub cut_off: Vec<HostId>,
}

/// Routes a fabric of which some links, always both of a cable, are down. `before` is the routing of the whole fabric.
///
/// # Errors
/// [`BuildError`] if up/down routing does not fit, either.
pub fn heal(
    routings: &Table<Routings>,
    named: &Named,
    graph: &Graph,
    down: &BTreeSet<LinkId>,
    before: &dyn Routing,
) -> Result<Healed, BuildError> {
    let cut_off = Parts::new(graph, down).cut_off(graph);
    let Some((plane, planes)) = graph.plane() else {
        let (base, numbers) = graph.by_endpoint();
        let endpoint = |link: &LinkId| match &numbers {
            Some(numbers) => numbers.get(link.index()).map_or(*link, |number| LinkId(*number)),
            None => *link,
        };
        let (routing, name, instead) = heal_one(routings, named, &base, &down.iter().map(endpoint).collect(), before)?;
        return Ok(Healed { routing: by_endpoint(routing, numbers), name, instead, cut_off });
    };
    let rails = graph.rails();
    let each = (0..rails).map(|rail| {
        let own = down.iter().filter(|link| graph.rail(**link).map(u32::from) == Some(rail));
        heal_one(routings, named, plane, &own.map(|link| planes.link_inside(rail, *link)).collect(), before)
    });
    let each: Vec<_> = each.collect::<Result<_, _>>()?;
    let name = each.iter().find(|(_, _, instead)| instead.is_some()).unwrap_or(&each[0]).1.clone();
    let (mut inner, mut instead) = (Vec::new(), None);
    for (routing, _, reason) in each {
        instead = instead.or(reason);
        inner.push(routing);
    }
    let routing = Box::new(Renumbered::new(inner, OnPlanes { planes, rails }));
    Ok(Healed { routing, name, instead, cut_off })
}

/// A routing, its name, and why it is not the one that was asked for.
type Rerouted = (Box<dyn Routing>, String, Option<BuildError>);

/// Routes a fabric by endpoint, or one plane of it.
fn heal_one(
    routings: &Table<Routings>,
    named: &Named,
    graph: &Graph,
    down: &BTreeSet<LinkId>,
    before: &dyn Routing,
) -> Result<Rerouted, BuildError> {
    let mut parts = Parts::new(graph, down);
    let mut removed = down.clone();
    for link in down {
        let reverse = graph.link(*link).reverse;
        if parts.join(graph, *link) {
            removed.remove(link);
            removed.remove(&reverse);
        }
    }
    let (rest, ids) = graph.without(&removed);
    let build = |name: &str, params: &serde_json::Value| {
        let routing = Renumbered::new(vec![routings.build(name, params, &rest)?], Without::new(graph, ids.clone()));
        let channels = |routing: &dyn Routing| (0..=u8::MAX).map(|vl| routing.channels_of(vl)).collect::<Vec<_>>();
        let fits = channels(&routing).iter().zip(channels(before)).all(|(needed, given)| *needed <= given);
        let allowed = "not on what is left of the fabric: it needs more virtual channels there";
        if fits { Ok(routing) } else { Err(BuildError::value("fabric.routing", name, allowed)) }
    };
    let (routing, name, instead) = match build(&named.name, &named.params) {
        Ok(routing) => (routing, &named.name[..], None),
        Err(error) => (build(up_down::ENTRY.name, &serde_json::json!({}))?, up_down::ENTRY.name, Some(error)),
    };
    Ok((Box::new(routing), name.to_owned(), instead))
}

/// The parts into which a fabric has fallen, as a forest of switches and adapters. Hosts join nothing.
struct Parts {
    parent: Vec<usize>,
    switches: usize,
}

impl Parts {
    fn new(graph: &Graph, down: &BTreeSet<LinkId>) -> Self {
        let switches = graph.switches();
        let mut parts = Self { parent: (0..switches + graph.links().len()).collect(), switches };
        for link in (0..).map(LinkId).take(graph.links().len()) {
            if !down.contains(&link) {
                parts.join(graph, link);
            }
        }
        parts
    }

    /// The place of the sending end of a link: of a switch, or of the adapter of this link.
    fn place(&self, graph: &Graph, link: LinkId) -> usize {
        match graph.link(link).from {
            Vertex::Host(_) => self.switches + link.index(),
            Vertex::Switch(switch) => switch.index(),
        }
    }

    fn root(&mut self, mut place: usize) -> usize {
        while self.parent[place] != place {
            self.parent[place] = self.parent[self.parent[place]];
            place = self.parent[place];
        }
        place
    }

    /// Joins the parts of the ends of a link. Returns whether they were two.
    fn join(&mut self, graph: &Graph, link: LinkId) -> bool {
        let ends = [link, graph.link(link).reverse].map(|end| self.place(graph, end));
        let [one, other] = ends.map(|place| self.root(place));
        self.parent[one.max(other)] = one.min(other);
        one != other
    }

    /// The hosts without an adapter in a part that has most of the adapters that the whole fabric joins to it.
    fn cut_off(&mut self, graph: &Graph) -> Vec<HostId> {
        let mut whole = Self::new(graph, &BTreeSet::new());
        let hosts = (0..).map(HostId).take(graph.hosts());
        let links = hosts.flat_map(|host| graph.ports(Vertex::Host(host)).map(move |link| (host, link)));
        let of_adapter = |(host, link)| {
            let place = self.place(graph, link);
            (host, whole.root(place), self.root(place))
        };
        let adapters: Vec<(HostId, usize, usize)> = links.map(of_adapter).collect();
        let mut sizes: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        adapters.iter().for_each(|(_, whole, part)| *sizes.entry((*whole, *part)).or_default() += 1);
        let mut largest: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for ((whole, part), size) in sizes {
            let most = largest.entry(whole).or_insert((part, size));
            *most = if size > most.1 { (part, size) } else { *most };
        }
        let of_hosts = adapters.chunk_by(|one, other| one.0 == other.0);
        let is_cut_off = |own: &&[(HostId, usize, usize)]| own.iter().all(|(_, whole, part)| largest[whole].0 != *part);
        of_hosts.filter(is_cut_off).map(|own| own[0].0).collect()
    }
}
