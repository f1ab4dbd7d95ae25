//! Paths between hosts where nothing waits anywhere, and what links carry if all traffic takes them.

use thiserror::Error;

use super::{Hop, Routing};
use crate::ids::{HostId, LinkId};
use crate::topology::{Graph, Vertex};

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
    /// An adapter that the sending host does not have.
    #[error("{host} has no adapter {rail}: it has {adapters}, numbered from 0")]
    Adapter {
        /// The host's name.
        host: String,
        /// The adapter given.
        rail: u32,
        /// How many it has.
        adapters: usize,
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

/// The links of the path from one host to another, over the sender's adapter `rail`. A host needs none to itself.
///
/// # Errors
/// [`PathError`] names what there is none of.
pub fn path(
    graph: &Graph,
    routing: &dyn Routing,
    (from, to): (HostId, HostId),
    rail: u32,
) -> Result<Vec<LinkId>, PathError> {
    check(graph, &[from, to])?;
    let mut path = Vec::new();
    walk(graph, routing, (from, to), rail, |link| path.push(link))?;
    Ok(path)
}

/// What each link carries, in bytes, if `hosts[i]` sends `bytes[i * hosts.len() + j]` to `hosts[j]` over its first adapter.
///
/// # Errors
/// [`PathError`] names what there is none of.
///
/// # Panics
/// If `bytes` has not a number for each pair of hosts.
pub fn link_loads(
    graph: &Graph,
    routing: &dyn Routing,
    hosts: &[HostId],
    bytes: &[f64],
) -> Result<Vec<f64>, PathError> {
    assert_eq!(bytes.len(), hosts.len() * hosts.len(), "a number for each pair of hosts");
    check(graph, hosts)?;
    let mut loads = vec![0.0; graph.links().len()];
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to)));
    for (pair, bytes) in pairs.zip(bytes).filter(|(_, bytes)| **bytes != 0.0) {
        walk(graph, routing, pair, 0, |link| loads[link.index()] += bytes)?;
    }
    Ok(loads)
}

fn check(graph: &Graph, given: &[HostId]) -> Result<(), PathError> {
    let hosts = graph.hosts();
    let beyond = given.iter().find(|host| host.index() >= hosts);
    beyond.map_or(Ok(()), |host| Err(PathError::Host { host: *host, hosts }))
}

/// Goes from one host to another, over its adapter `rail`, and hands over every link of the path.
fn walk(
    graph: &Graph,
    routing: &dyn Routing,
    (from, to): (HostId, HostId),
    rail: u32,
    mut visit: impl FnMut(LinkId),
) -> Result<(), PathError> {
    let mut ports = graph.ports(Vertex::Host(from));
    let adapters = ports.len();
    let Some(first) = ports.nth(rail as usize) else {
        return Err(PathError::Adapter { host: graph.host_name(from), rail, adapters });
    };
    if from == to {
        return Ok(());
    }
    let address = graph.endpoint(to, if graph.rails() > 1 { rail } else { 0 });
    let mut hop = Hop { link: first, channel: 0 };
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
    use serde_json::json;

    use super::*;
    use crate::ids::SwitchId;

    fn torus() -> (Graph, Box<dyn Routing>) {
        let graph = crate::topology::build("torus", &json!({ "sides": [4, 3] })).unwrap();
        let routing = super::super::build("dimension_order", &json!({}), &graph).unwrap();
        (graph, routing)
    }

    /// Links between two hosts of the torus: those of the hosts, and along each ring the shorter way round.
    fn distance(a: u32, b: u32) -> usize {
        let ring = |a: u32, b: u32, side: u32| a.abs_diff(b).min(side - a.abs_diff(b)) as usize;
        if a == b { 0 } else { 2 + ring(a % 4, b % 4, 4) + ring(a / 4, b / 4, 3) }
    }

    #[test]
    fn paths_join_their_hosts_and_loads_are_their_sums() {
        let (graph, routing) = torus();
        let hosts: Vec<HostId> = (0..12).map(HostId).collect();
        let bytes: Vec<f64> = (0..144).map(|pair| f64::from(pair * 7 % 5)).collect();
        let mut expected = vec![0.0; graph.links().len()];
        for from in 0..12 {
            for to in 0..12 {
                let path = path(&graph, &*routing, (HostId(from), HostId(to)), 0).unwrap();
                assert_eq!(path.len(), distance(from, to), "{from} to {to}");
                assert!(path.windows(2).all(|pair| graph.link(pair[0]).to == graph.link(pair[1]).from));
                let ends = path.first().zip(path.last()).map(|(a, b)| (graph.link(*a).from, graph.link(*b).to));
                let of_hosts = (Vertex::Host(HostId(from)), Vertex::Host(HostId(to)));
                assert!(ends.is_none_or(|ends| ends == of_hosts));
                path.iter().for_each(|link| expected[link.index()] += bytes[(from * 12 + to) as usize]);
            }
        }
        assert_eq!(link_loads(&graph, &*routing, &hosts, &bytes), Ok(expected));
    }

    #[test]
    fn what_there_is_none_of_is_named() {
        let (graph, routing) = torus();
        let of = |to, rail| path(&graph, &*routing, (HostId(1), HostId(to)), rail).unwrap_err().to_string();
        assert_eq!(of(12, 0), "no host 12: the fabric has 12 hosts, numbered from 0");
        assert_eq!(of(3, 1), "host1 has no adapter 1: it has 1, numbered from 0");
        let loads = link_loads(&graph, &*routing, &[HostId(0), HostId(99)], &[0.0; 4]);
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
        let (graph, _) = torus();
        let error = path(&graph, &Back(&graph), (HostId(0), HostId(5)), 0).unwrap_err();
        assert_eq!(error.to_string(), "the path from host0 to host5 does not end");
    }
}
