//! Routes around links that are down.
//!
//! A routing is built anew on the fabric without the links that are down, with the parameters that it had. If it does not
//! support the remaining fabric, or needs more virtual channels than the routing of the whole fabric, up/down routing replaces it,
//! as `OpenSM` falls back to another engine. Failed links that connect otherwise separate parts stay in the routed graph, so that
//! it remains connected: packets to a host that is cut off are routed to a failed link and lost there.

use std::collections::{BTreeMap, BTreeSet};

use super::planes::OnPlanes;
use super::{Entry, Hop, Loads, Routing, Visit, up_down};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
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
    routings: &Table<Entry>,
    named: &Named,
    graph: &Graph,
    down: &BTreeSet<LinkId>,
    before: &dyn Routing,
) -> Result<Healed, BuildError> {
    let rails = graph.rails();
    let (base, planes) = graph.base();
    let mut healed = match planes {
        // Where adapters share switches, each is a host of the fabric that is routed.
        None => heal_one(routings, named, base, down, before)?,
        Some(planes) => {
            let each = (0..rails).map(|plane| {
                let own = down.iter().filter(|link| graph.rail(**link).map(u32::from) == Some(plane));
                heal_one(routings, named, base, &own.map(|link| planes.link_inside(plane, *link)).collect(), before)
            });
            let each: Vec<Healed> = each.collect::<Result<_, _>>()?;
            let name = each.iter().find(|plane| plane.instead.is_some()).unwrap_or(&each[0]).name.clone();
            let (mut inner, mut instead, mut cut_off) = (Vec::new(), None, BTreeSet::new());
            for plane in each {
                cut_off.extend(plane.cut_off);
                instead = instead.or(plane.instead);
                inner.push(plane.routing);
            }
            let routing = Box::new(OnPlanes { inner, planes, rails });
            return Ok(Healed { routing, name, instead, cut_off: cut_off.into_iter().collect() });
        }
    };
    healed.cut_off.iter_mut().for_each(|host| host.0 /= rails);
    healed.cut_off.dedup();
    Ok(healed)
}

/// Routes a fabric, or one plane of it.
fn heal_one(
    routings: &Table<Entry>,
    named: &Named,
    graph: &Graph,
    down: &BTreeSet<LinkId>,
    before: &dyn Routing,
) -> Result<Healed, BuildError> {
    let mut parts = Parts::new(graph, down);
    let cut_off = parts.cut_off(graph);
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
        let routing = Around::new(routings.build(name, params, &rest)?, graph, ids.clone());
        let channels = |routing: &dyn Routing| (0..=u8::MAX).map(|vl| routing.channels_of(vl)).collect::<Vec<_>>();
        let fits = channels(&routing).iter().zip(channels(before)).all(|(needed, given)| *needed <= given);
        let allowed = "not on what is left of the fabric: it needs more virtual channels there";
        if fits { Ok(routing) } else { Err(BuildError::value("fabric.routing", name, allowed)) }
    };
    let (routing, name, instead) = match build(&named.name, &named.params) {
        Ok(routing) => (routing, &named.name[..], None),
        Err(error) => (build(up_down::ENTRY.name, &serde_json::json!({}))?, up_down::ENTRY.name, Some(error)),
    };
    Ok(Healed { routing: Box::new(routing), name: name.to_owned(), instead, cut_off })
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

    /// The hosts with an adapter outside the part that has most of those that the whole fabric joins to it.
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
        let mut cut_off: Vec<HostId> =
            adapters.iter().filter(|(_, whole, part)| largest[whole].0 != *part).map(|(host, ..)| *host).collect();
        cut_off.dedup();
        cut_off
    }
}

/// A routing of the fabric without some links, whose numbers there are not their ids.
struct Around {
    inner: Box<dyn Routing>,
    /// The ids of its links.
    ids: Vec<LinkId>,
    /// Its numbers of links, by id; of links that it does not have, 0.
    numbers: Vec<LinkId>,
}

impl Around {
    fn new(inner: Box<dyn Routing>, graph: &Graph, ids: Vec<LinkId>) -> Self {
        let mut numbers = vec![LinkId(0); graph.links().len()];
        (0..).map(LinkId).zip(&ids).for_each(|(number, id)| numbers[id.index()] = number);
        Self { inner, ids, numbers }
    }

    fn inside(&self, hop: Hop) -> Hop {
        Hop { link: self.numbers[hop.link.index()], ..hop }
    }

    fn outside(&self, hop: Hop) -> Hop {
        Hop { link: self.ids[hop.link.index()], ..hop }
    }

    fn visit(&self, visit: &Visit) -> Visit {
        Visit { previous: self.inside(visit.previous), ..*visit }
    }
}

impl Routing for Around {
    fn virtual_channels(&self) -> u8 {
        self.inner.virtual_channels()
    }

    fn channels_of(&self, vl: u8) -> u8 {
        self.inner.channels_of(vl)
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.outside(self.inner.next_hop(at, self.inside(previous), to))
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.inner.reaches(at, to)
    }

    fn routed_lanes(&self) -> u8 {
        self.inner.routed_lanes()
    }

    fn adaptive(&self) -> bool {
        self.inner.adaptive()
    }

    fn sees_lanes(&self) -> bool {
        self.inner.sees_lanes()
    }

    fn sees_own_ports_only(&self) -> bool {
        self.inner.sees_own_ports_only()
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let mut own = self.visit(visit);
        let hop = self.inner.choose(at, &mut own, &Loads { ids: &self.ids, ..*loads });
        visit.note = own.note;
        self.outside(hop)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let options = self.inner.options(at, &self.visit(visit));
        options.into_iter().map(|(hop, note)| (self.outside(hop), note)).collect()
    }
}
