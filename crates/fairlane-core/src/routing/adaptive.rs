//! Minimal adaptive routing: at each hop the least loaded of the ports that lead along a shortest path.
//!
//! In a regular fat-tree that is any port up on the path up, below the common ancestor any cable of the trunk down. A packet keeps to
//! the port that D-mod-K would take unless that carries more than `threshold` bytes above the least loaded one. One virtual
//! channel is enough: no packet goes up after it went down.
//!
//! In a fabric of groups, as a Dragonfly+ whose switches choose among the cables to the other group, and in any other graph without a
//! grid, a packet keeps to the port of minimal routing in the same way, and its virtual channels are those of [`super::shortest`].

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::d_mod_k::{self, Span};
use super::equal_cost::{EqualCost, Selection};
use super::shortest::own;
use super::{Entry, Hop, Loads, Routing, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Layout};
use crate::units::Bytes;

const NAME: &str = "adaptive";

/// Adaptive routing's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the least loaded port on a shortest path at each hop, for fat-trees, fabrics of groups and other graphs without grid",
    schema: || schema_for!(Params),
    build: |graph, json, _| {
        let Params { threshold, ties } = crate::table::params("fabric.routing", json)?;
        let threshold = u32::try_from(threshold.0).unwrap_or(u32::MAX);
        match (spans(graph), graph.layout()) {
            (Ok(switches), _) => Ok(Box::new(Adaptive { switches, threshold, ties })),
            (Err(_), Layout::Free | Layout::Groups { .. }) => {
                Ok(Box::new(EqualCost::new(graph, NAME, OfGraph { threshold, ties })?))
            }
            (Err(error), _) => Err(error),
        }
    },
};

/// Minimal adaptive routing.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// Load by which the port of D-mod-k (of a graph that is no regular fat-tree: of minimal routing) may exceed the
    /// least loaded port and still be taken. Default: 0.
    threshold: Bytes,
    /// The choice among several least loaded ports.
    ties: EqualLoads,
}

/// The choice among equals.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum EqualLoads {
    /// Any, each as likely as the others.
    #[default]
    Random,
    /// The first from the port of D-mod-k or minimal routing on, going round.
    DModK,
}

/// Adaptive routing of regular fat-trees.
struct Adaptive {
    switches: Vec<Span>,
    threshold: u32,
    ties: EqualLoads,
}

/// The ports that lead to each host, by switch of a regular fat-tree.
fn spans(graph: &Graph) -> Result<Vec<Span>, BuildError> {
    let regular = |(number, span): (usize, Option<Span>)| {
        span.ok_or_else(|| {
            let name = graph.switch_name(SwitchId(u32::try_from(number).unwrap_or(u32::MAX)));
            let allowed =
                format!("needs a regular fat-tree, and {name:?} differs from the other switches of its level");
            BuildError::value("fabric.routing", NAME, allowed)
        })
    };
    d_mod_k::spans(graph)?.into_iter().enumerate().map(regular).collect()
}

impl Routing for Adaptive {
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        Hop { link: self.switches[at.index()].link(to), channel: 0 }
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_own_ports_only(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (first, count, own) = self.switches[at.index()].candidates(visit.to);
        if count == 1 {
            return Hop { link: first, channel: 0 };
        }
        let own_link = LinkId(first.0 + own);
        let lightest = match self.ties {
            EqualLoads::Random => {
                let links = (first.0..first.0 + count).map(LinkId);
                loads.any_lightest(links, visit.random).unwrap_or(own_link)
            }
            EqualLoads::DModK => loads.lightest(first, count, own),
        };
        let stays = self.threshold > 0 && loads.here(own_link) <= loads.here(lightest).saturating_add(self.threshold);
        Hop { link: if stays { own_link } else { lightest }, channel: 0 }
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let (first, count, _) = self.switches[at.index()].candidates(visit.to);
        (first.0..first.0 + count).map(|link| (Hop { link: LinkId(link), channel: 0 }, visit.note)).collect()
    }
}

/// Selection of a link in any other graph.
struct OfGraph {
    threshold: u32,
    ties: EqualLoads,
}

impl Selection for OfGraph {
    #[inline]
    fn select(&self, at: SwitchId, visit: &Visit, links: &[LinkId], loads: &Loads) -> LinkId {
        let own = own(at, visit.to, links.len());
        let lightest = match self.ties {
            EqualLoads::Random => loads.any_lightest(links.iter().copied(), visit.random),
            EqualLoads::DModK => links[own..].iter().chain(&links[..own]).copied().min_by_key(|link| loads.here(*link)),
        };
        let lightest = lightest.unwrap_or(links[own]);
        let limit = loads.here(lightest).saturating_add(self.threshold);
        let stays = self.threshold > 0 && loads.here(links[own]) <= limit;
        if stays { links[own] } else { lightest }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::routing::PortLoads;
    use crate::table::Table;

    /// Choices of switch 0 (a leaf of 4 hosts and 4 ports up) for host 9, whose port is up 1, by random number.
    fn choices(params: serde_json::Value, queued: [u32; 4]) -> Vec<u32> {
        let graph = crate::topology::build("fat_tree", &json!({ "hosts": 16, "levels": 2, "radix": 8, "spines": 4 }))
            .or_else(|_| crate::topology::build("fat_tree", &json!({ "hosts": 32, "levels": 2, "radix": 8 })))
            .unwrap();
        let routing = (ENTRY.build)(&graph, &params, &Table::default()).unwrap();
        let previous = Hop { link: LinkId(0), channel: 0 };
        let own = routing.next_hop(SwitchId(0), previous, HostId(9)).link;
        let first = own.0 - 1;
        let mut all = vec![0; graph.links().len()];
        all[first as usize..first as usize + 4].copy_from_slice(&queued);
        let ports = PortLoads { all, ..Default::default() };
        let loads = Loads::of(&ports);
        let choose = |random| {
            let mut visit = Visit { random, ..Visit::new(previous, HostId(9)) };
            routing.choose(SwitchId(0), &mut visit, &loads).link.0 - first
        };
        (0..4).map(choose).collect()
    }

    #[test]
    fn the_least_loaded_port_is_taken() {
        assert_eq!(choices(json!({}), [5, 9, 3, 7]), [2; 4]);
        assert_eq!(choices(json!({}), [5, 9, 5, 7]), [0, 2, 0, 2]);
        assert_eq!(choices(json!({ "ties": "d_mod_k" }), [0, 0, 0, 0]), [1; 4]);
    }

    #[test]
    fn a_threshold_keeps_a_packet_on_its_path() {
        assert_eq!(choices(json!({ "threshold": 4 }), [5, 7, 3, 9]), [1; 4]);
        assert_eq!(choices(json!({ "threshold": 3 }), [5, 7, 3, 9]), [2; 4]);
    }

    #[test]
    fn a_grid_is_refused() {
        let graph = crate::topology::build("torus", &json!({ "sides": [4, 4], "hosts_per_switch": 1 })).unwrap();
        assert!((ENTRY.build)(&graph, &json!({}), &Table::default()).is_err());
    }
}
