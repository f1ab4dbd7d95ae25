//! ECMP, equal-cost multipath: every flow keeps to one shortest path, which a hash chooses (C. Hopps, "Analysis of an
//! equal-cost multi-path algorithm", RFC 2992, 2000), so that its packets stay in order.
//!
//! At each switch a packet takes one of the `n` links on shortest paths to its destination, in order of port: number
//! `floor(n h / 2^32)`, where `h` hashes the flow (source, destination, job, virtual lane; [`Visit::flow`]) together with the
//! switch and the parameter `seed`. Without the switch in the hash, all flows that a switch gets from below would have made the
//! same choice there, and would make the same one again (polarisation). Loads play no part.
//!
//! With `by = "packet"` each packet draws its own path instead (*spraying*; A. Dixit et al., "On the impact of packet spraying in data
//! center networks", INFOCOM 2013). Receivers put packets in order. If the packet's transport has set an entropy, this is in the
//! hash of its flow instead, so that packets of a flow with one entropy take one path.
//!
//! Paths and virtual channels are those of [`super::shortest`]: one channel on trees.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::choices::{scatter, share};
use super::equal_cost::{EqualCost, Selection};
use super::{Entry, Loads, Visit};
use crate::ids::{LinkId, SwitchId};

const NAME: &str = "ecmp";

/// ECMP's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "equal-cost multipath: each flow keeps to one shortest path, chosen by a hash",
    schema: || schema_for!(Params),
    build: |graph, json, _| {
        let Params { seed, by } = crate::table::params("fabric.routing", json)?;
        Ok(Box::new(EqualCost::new(graph, NAME, Ecmp { seed, by })?))
    },
};

/// Equal-cost multipath routing.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{}, { "seed": 7 }, { "by": "packet" }]))]
struct Params {
    /// Seed of the hash: another seed spreads the same flows over other paths. Default: 0.
    seed: u32,
    /// The unit that keeps to one path: flows, or single packets, which are sprayed over all paths and overtake each
    /// other. Default: `flow`.
    by: By,
}

/// The unit that keeps to one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    /// A flow.
    #[default]
    Flow,
    /// A packet.
    Packet,
}

/// Selection by the hash of a packet's flow, or by the packet's random number.
struct Ecmp {
    seed: u32,
    by: By,
}

impl Ecmp {
    /// The hash of a flow at a switch.
    #[inline]
    fn hash(&self, at: SwitchId, flow: u32) -> u32 {
        scatter(flow ^ scatter(at.0.wrapping_mul(0x9E37_79B9) ^ self.seed))
    }
}

impl Selection for Ecmp {
    #[inline]
    fn select(&self, at: SwitchId, visit: &Visit, links: &[LinkId], _loads: &Loads) -> LinkId {
        let count = u32::try_from(links.len()).expect("invariant: links have 27-bit numbers");
        let draw = match self.by {
            By::Flow => self.hash(at, visit.flow()),
            By::Packet if visit.note == 0 => visit.random,
            By::Packet => self.hash(at, visit.flow() ^ scatter(visit.note)),
        };
        links[share(draw, count) as usize]
    }

    fn takes_entropies(&self) -> bool {
        self.by == By::Packet
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::*;
    use crate::ids::{HostId, JobId};
    use crate::routing::PortLoads;
    use crate::routing::Routings;
    use crate::routing::{Hop, Routing};
    use crate::table::Table;
    use crate::topology::{Graph, Vertex};

    fn build(params: &Value) -> (Graph, Box<dyn Routing>) {
        let graph = crate::topology::build("fat_tree", &json!({ "hosts": 128, "levels": 3, "radix": 8 })).unwrap();
        let routing = Table::<Routings>::default().build(NAME, params, &graph).unwrap();
        (graph, routing)
    }

    /// The links of a flow from host 0, whatever the loads and the random numbers.
    fn path(graph: &Graph, routing: &dyn Routing, visit: Visit, random: u32) -> Vec<LinkId> {
        let all: Vec<u32> = (0..).take(graph.links().len()).map(|link: u32| link.wrapping_mul(random) >> 8).collect();
        let ports = PortLoads { all, ..Default::default() };
        let loads = Loads::of(&ports);
        let (mut visit, mut links) = (visit, Vec::new());
        while let Vertex::Switch(at) = graph.link(visit.previous.link).to {
            visit.random = random;
            visit.previous = routing.choose(at, &mut visit, &loads);
            links.push(visit.previous.link);
        }
        links
    }

    fn flow(graph: &Graph, job: u16, to: u32) -> Visit {
        let link = graph.ports(Vertex::Host(HostId(0))).next().unwrap();
        Visit { job: JobId(job), ..Visit::new(Hop { link, channel: 0 }, HostId(to)) }
    }

    #[test]
    fn a_flow_keeps_to_one_path() {
        let (graph, routing) = build(&json!({}));
        for (job, to) in [(0, 127), (3, 64), (9, 5)] {
            let visit = flow(&graph, job, to);
            let first = path(&graph, &*routing, visit, 1);
            assert_eq!(graph.link(*first.last().unwrap()).to, Vertex::Host(HostId(to)));
            assert!((2..1000).all(|random| path(&graph, &*routing, visit, random * 7919) == first));
        }
    }

    /// Sprayed packets take any path, those with one entropy always the same; 64 entropies have more than half of the 16 paths.
    #[test]
    fn an_entropy_is_a_path() {
        let (graph, routing) = build(&json!({ "by": "packet" }));
        let with = |entropy: u32| Visit { note: entropy, ..flow(&graph, 0, 127) };
        let all = |entropy: u32| -> BTreeSet<Vec<LinkId>> {
            (0..64)
                .map(|random: u32| path(&graph, &*routing, with(entropy), random.wrapping_mul(0x9E37_79B9)))
                .collect()
        };
        // One random number at both levels.
        assert_eq!(all(0).len(), 4);
        assert!((1..65).all(|entropy| all(entropy).len() == 1));
        let paths: BTreeSet<_> = (1..65).flat_map(all).collect();
        assert!(paths.len() > 8, "{}", paths.len());
        assert!(routing.takes_entropies() && !build(&json!({})).1.takes_entropies());
    }

    /// Of 4096 flows to hosts of other pods each of the 4 ports up of the leaf gets 4096/4 and each of the 16 paths to the top
    /// 4096/16: within four standard deviations of a fair choice, 4 x sqrt(4096 x 1/4 x 3/4) = 111 and
    /// 4 x sqrt(4096 x 1/16 x 15/16) = 62. Were the choices of the two levels one, 12 of the 16 paths would be idle.
    #[test]
    fn flows_are_spread_over_all_paths() {
        let (graph, routing) = build(&json!({}));
        let (mut ups, mut tops): (BTreeMap<LinkId, u32>, BTreeMap<LinkId, u32>) = Default::default();
        for (job, to) in (0..64).flat_map(|job| (64..128).map(move |to| (job, to))) {
            let links = path(&graph, &*routing, flow(&graph, job, to), 1);
            *ups.entry(links[0]).or_default() += 1;
            *tops.entry(links[1]).or_default() += 1;
        }
        assert!(ups.len() == 4 && ups.values().all(|count| count.abs_diff(1024) <= 111), "{ups:?}");
        assert!(tops.len() == 16 && tops.values().all(|count| count.abs_diff(256) <= 62), "{tops:?}");
    }

    /// Two seeds agree about a quarter of the choices among four ports: of 4096 flows within 4 x sqrt(4096 x 1/4 x 3/4).
    #[test]
    fn the_seed_changes_the_paths() {
        let ((graph, first), (_, second)) = (build(&json!({})), build(&json!({ "seed": 7 })));
        let flows = (0..64).flat_map(|job| (64..128).map(move |to| (job, to)));
        let same = flows.filter(|(job, to)| {
            let visit = flow(&graph, *job, *to);
            path(&graph, &*first, visit, 1)[0] == path(&graph, &*second, visit, 1)[0]
        });
        assert!(same.count().abs_diff(1024) <= 111);
    }

    #[test]
    fn bad_seeds_are_errors() {
        let (graph, _) = build(&json!({}));
        let build = |seed: Value| Table::<Routings>::default().build(NAME, &json!({ "seed": seed }), &graph);
        assert!(build(json!(u32::MAX)).is_ok());
        for wrong in [json!(-1), json!(1_u64 << 32), json!("one")] {
            assert!(build(wrong).err().unwrap().to_string().starts_with("fabric.routing: invalid"));
        }
    }
}
