//! Paths between hosts where nothing waits anywhere, and what links carry if all traffic takes them.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Hop, Routing};
use crate::ids::{HostId, LinkId};
use crate::topology::{Graph, RailMap, Vertex};

/// More hops than any path has.
const MOST_HOPS: usize = 10_000;

/// There is no such path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// A host that the fabric does not have.
    #[error("no host {host}: the fabric has {hosts} hosts, numbered from 0")]
    Host {
        /// The host given.
        host: HostId,
        /// How many there are.
        hosts: usize,
    },
    /// An adapter that a host does not have.
    #[error("{host} has no adapter {rail}: it has {adapters}, numbered from 0")]
    Adapter {
        /// The host's name.
        host: String,
        /// The adapter given.
        rail: u32,
        /// How many it has.
        adapters: usize,
    },
    /// No path between switches joins the adapters.
    #[error("no path joins adapter {rail} of {from} with {other}")]
    Apart {
        /// The sending host's name.
        from: String,
        /// Its adapter.
        rail: u32,
        /// The receiving adapter.
        other: String,
    },
    /// The routing leads packets on for ever: a defect of the routing, or of forwarding tables that came with a fabric.
    #[error("the path from {from} to {to} does not end")]
    Endless {
        /// The sending host's name.
        from: String,
        /// The receiving host's name.
        to: String,
    },
}

/// The links of the path from one host to another, each with its adapter. A host needs none to itself. Without an adapter of
/// the receiver it is the one that the sender's is paired with in `map`, the fabric's rail pairs.
///
/// # Errors
/// [`PathError`] names what there is none of.
pub fn path(
    graph: &Graph,
    routing: &dyn Routing,
    map: &RailMap,
    (from, rail): (HostId, u32),
    (to, other): (HostId, Option<u32>),
) -> Result<Vec<LinkId>, PathError> {
    check(graph, &[from, to])?;
    let adapters = |host: HostId| graph.ports(Vertex::Host(host)).len();
    for (host, rail) in std::iter::once((from, rail)).chain(other.map(|rail| (to, rail))) {
        if rail as usize >= adapters(host) {
            return Err(PathError::Adapter { host: graph.host_name(host), rail, adapters: adapters(host) });
        }
    }
    if from == to {
        return Ok(Vec::new());
    }
    let narrow = |rail: u32| u8::try_from(rail).unwrap_or(u8::MAX);
    let paired = || map.pairs(from, to).iter().find(|pair| pair[0] == narrow(rail)).map(|pair| pair[1]);
    let end = other.map(narrow).or_else(paired).filter(|other| map.joins((from, narrow(rail)), (to, *other)));
    let Some(end) = end else {
        let name = graph.host_name(to);
        let other = other.map_or_else(|| format!("any of {name}"), |other| format!("adapter {other} of {name}"));
        return Err(PathError::Apart { from: graph.host_name(from), rail, other });
    };
    let mut path = Vec::new();
    walk(graph, routing, (from, rail), (to, end.into()), |link| path.push(link))?;
    Ok(path)
}

/// The load of each link, in bytes, if the rank at `hosts[i]` sends `bytes[i * hosts.len() + j]` to that at `hosts[j]`, in equal
/// parts over the `pairs` of adapters of the two.
///
/// # Errors
/// [`PathError`] names what there is none of.
///
/// # Panics
/// If `bytes` has not a number for each pair of ranks.
pub fn link_loads<P: IntoIterator<Item = [u8; 2], IntoIter: ExactSizeIterator>>(
    graph: &Graph,
    routing: &dyn Routing,
    hosts: &[HostId],
    bytes: &[f64],
    pairs: impl Fn(usize, usize) -> P,
) -> Result<Vec<f64>, PathError> {
    assert_eq!(bytes.len(), hosts.len() * hosts.len(), "a number for each pair of ranks");
    check(graph, hosts)?;
    let mut loads = vec![0.0; graph.links().len()];
    for (place, bytes) in bytes.iter().enumerate().filter(|(_, bytes)| **bytes != 0.0) {
        let [sender, receiver] = [place / hosts.len(), place % hosts.len()];
        let [from, to] = [hosts[sender], hosts[receiver]];
        if from == to {
            continue;
        }
        let rails = pairs(sender, receiver).into_iter();
        #[allow(clippy::cast_precision_loss, reason = "a few rails")]
        let part = bytes / rails.len() as f64;
        for [rail, other] in rails {
            walk(graph, routing, (from, rail.into()), (to, other.into()), |link| loads[link.index()] += part)?;
        }
    }
    Ok(loads)
}

/// Forwarding tables: by switch and endpoint, the number of the port by which packets to the endpoint leave the switch, 0 where none
/// pass. None if that depends on where packets come from. The routing must not go by loads.
#[must_use]
pub fn forwarding(graph: &Graph, routing: &dyn Routing) -> Option<Vec<u32>> {
    let endpoints = graph.endpoints();
    let mut by_switch: BTreeMap<Vertex, Vec<LinkId>> = BTreeMap::new();
    for link in (0..).map(LinkId).take(endpoints) {
        let first = by_switch.entry(graph.link(link).to).or_default();
        // Two of different hosts: each is a destination of the other.
        if first.iter().all(|other| graph.link(*other).from != graph.link(link).from) && first.len() < 2 {
            first.push(link);
        }
    }
    let mut ports = vec![0; graph.switches() * endpoints];
    for to in (0..).map(HostId).take(endpoints) {
        let host = Vertex::Host(graph.host_of(to));
        for source in by_switch.values().filter_map(|links| links.iter().find(|link| graph.link(**link).from != host)) {
            let mut hop = Hop { link: *source, channel: 0 };
            for _ in 0..MOST_HOPS {
                let Vertex::Switch(at) = graph.link(hop.link).to else { break };
                if !routing.reaches(at, to) {
                    break;
                }
                hop = routing.next_hop(at, hop, to);
                let port = graph.port_number(hop.link);
                let known = &mut ports[at.index() * endpoints + to.index()];
                if *known != 0 && *known != port {
                    return None;
                }
                *known = port;
            }
        }
    }
    Some(ports)
}

fn check(graph: &Graph, given: &[HostId]) -> Result<(), PathError> {
    let hosts = graph.hosts();
    let beyond = given.iter().find(|host| host.index() >= hosts);
    beyond.map_or(Ok(()), |host| Err(PathError::Host { host: *host, hosts }))
}

/// Goes from an adapter of one host to one of another, and hands over every link of the path.
fn walk(
    graph: &Graph,
    routing: &dyn Routing,
    (from, rail): (HostId, u32),
    (to, other): (HostId, u32),
    mut visit: impl FnMut(LinkId),
) -> Result<(), PathError> {
    let address = graph.endpoint(to, other);
    let mut hop = Hop { link: LinkId(graph.endpoint(from, rail).0), channel: 0 };
    for _ in 0..MOST_HOPS {
        visit(hop.link);
        match graph.link(hop.link).to {
            Vertex::Host(_) => return Ok(()),
            Vertex::Switch(at) => hop = routing.next_hop(at, hop, address),
        }
    }
    Err(PathError::Endless { from: graph.host_name(from), to: graph.host_name(to) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::ids::SwitchId;

    fn torus() -> (Graph, Box<dyn Routing>, RailMap) {
        let graph = crate::topology::build("torus", &json!({ "sides": [4, 3] })).unwrap();
        let routing = super::super::build("dimension_order", &json!({}), &graph).unwrap();
        let map = RailMap::new(&graph, &BTreeSet::new());
        (graph, routing, map)
    }

    /// Links between two hosts of the torus: those of the hosts, and along each ring the shorter way round.
    fn distance(a: u32, b: u32) -> usize {
        let ring = |a: u32, b: u32, side: u32| a.abs_diff(b).min(side - a.abs_diff(b)) as usize;
        if a == b { 0 } else { 2 + ring(a % 4, b % 4, 4) + ring(a / 4, b / 4, 3) }
    }

    #[test]
    fn paths_join_their_hosts_and_loads_are_their_sums() {
        let (graph, routing, map) = torus();
        let hosts: Vec<HostId> = (0..12).map(HostId).collect();
        let bytes: Vec<f64> = (0..144).map(|pair| f64::from(pair * 7 % 5)).collect();
        let mut expected = vec![0.0; graph.links().len()];
        for from in 0..12 {
            for to in 0..12 {
                let path = path(&graph, &*routing, &map, (HostId(from), 0), (HostId(to), None)).unwrap();
                assert_eq!(path.len(), distance(from, to), "{from} to {to}");
                assert!(path.windows(2).all(|pair| graph.link(pair[0]).to == graph.link(pair[1]).from));
                let ends = path.first().zip(path.last()).map(|(a, b)| (graph.link(*a).from, graph.link(*b).to));
                let of_hosts = (Vertex::Host(HostId(from)), Vertex::Host(HostId(to)));
                assert!(ends.is_none_or(|ends| ends == of_hosts));
                path.iter().for_each(|link| expected[link.index()] += bytes[(from * 12 + to) as usize]);
            }
        }
        assert_eq!(link_loads(&graph, &*routing, &hosts, &bytes, |_, _| [[0, 0]]), Ok(expected));
    }

    #[test]
    fn what_there_is_none_of_is_named() {
        let (graph, routing, map) = torus();
        let of =
            |to, rail| path(&graph, &*routing, &map, (HostId(1), rail), (HostId(to), None)).unwrap_err().to_string();
        assert_eq!(of(12, 0), "no host 12: the fabric has 12 hosts, numbered from 0");
        assert_eq!(of(3, 1), "host1 has no adapter 1: it has 1, numbered from 0");
        let loads = link_loads(&graph, &*routing, &[HostId(0), HostId(99)], &[0.0; 4], |_, _| [[0, 0]]);
        assert_eq!(loads, Err(PathError::Host { host: HostId(99), hosts: 12 }));
    }

    #[test]
    fn a_path_that_does_not_end_is_an_error() {
        /// Sends every packet back to where it came from.
        struct Back<'g>(&'g Graph);
        impl Routing for Back<'_> {
            fn next_hop(&self, at: SwitchId, previous: Hop, _to: HostId) -> Hop {
                let inner = |link: &LinkId| matches!(self.0.link(*link).to, Vertex::Switch(_));
                let link = self.0.link(previous.link).reverse;
                let other = self.0.ports(Vertex::Switch(at)).find(inner);
                Hop { link: if inner(&link) { link } else { other.unwrap() }, channel: 0 }
            }
        }
        let (graph, _, map) = torus();
        let error = path(&graph, &Back(&graph), &map, (HostId(0), 0), (HostId(5), None)).unwrap_err();
        assert_eq!(error.to_string(), "the path from host0 to host5 does not end");
    }
}
