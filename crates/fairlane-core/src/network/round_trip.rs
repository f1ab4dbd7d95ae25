//! Round trips without load: what transports that measure delays take as the delay of an empty fabric.

use std::collections::BTreeSet;

use super::parameters::{Parameters, Switching};
use crate::ids::{HostId, LinkId};
use crate::routing::{Routing, path};
use crate::topology::{Graph, RailMap};
use crate::units::{Bytes, Picoseconds};

/// So many hosts, evenly spaced, are the ends from which the longest path is looked for. On a fabric that looks the same from
/// all hosts one would do.
const ENDS: usize = 16;

/// From the start of a full packet at its adapter until its answer, of `answer` bytes on the wire, has come back, on the path
/// between hosts on which that takes longest. Zero if no host reaches another.
#[must_use]
pub fn longest_round_trip(graph: &Graph, routing: &dyn Routing, parameters: &Parameters, answer: Bytes) -> Picoseconds {
    let (hosts, rails) = (graph.hosts(), RailMap::new(graph, &BTreeSet::new()));
    let all = || (0..).take(hosts).map(HostId);
    let full = parameters.largest_packet();
    let pairs = all().step_by(hosts.div_ceil(ENDS).max(1)).flat_map(|from| all().map(move |to| (from, to)));
    let round_trip = |(from, to): (HostId, HostId)| {
        let between = |from, rail: u8, to, other: u8| {
            path(graph, routing, &rails, (from, rail.into()), (to, Some(other.into()))).ok()
        };
        let [rail, other] = *rails.pairs(from, to).first()?;
        let there = between(from, rail, to, other).filter(|path| path.len() > 1)?;
        let back = between(to, other, from, rail)?;
        Some(time(graph, parameters, &there, full) + time(graph, parameters, &back, answer))
    };
    Picoseconds(pairs.filter_map(round_trip).max().unwrap_or(0))
}

/// From the start of a packet on the first link of a path until its tail has come over the last, ps.
fn time(graph: &Graph, parameters: &Parameters, path: &[LinkId], bytes: Bytes) -> u64 {
    let wire = |link: &LinkId| graph.link(*link).bandwidth.serialization(bytes).0;
    let hops = path.windows(2).map(|pair| {
        let delay = match parameters.switching {
            Switching::StoreAndForward => wire(&pair[0]),
            Switching::CutThrough => wire(&pair[0]).saturating_sub(wire(&pair[1])),
        };
        graph.link(pair[0]).latency.0 + parameters.switch_latency.0 + delay
    });
    let last = path.last().map_or(0, |link| graph.link(*link).latency.0 + wire(link));
    hops.sum::<u64>() + last
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longest_path_counts() {
        // Two levels: hosts of different leaves have four links and three switches between them, at 100 Gb/s 80 ps a byte.
        let graph = crate::topology::build("fat_tree", &json!({ "hosts": 32, "levels": 2, "radix": 8 })).unwrap();
        let routing = crate::routing::build("d_mod_k", &json!({}), &graph).unwrap();
        let latency = graph.link(LinkId(0)).latency.0;
        let per_byte = graph.link(LinkId(0)).bandwidth.serialization(Bytes(1000)).0 / 1000;
        for (switching, times) in [(Switching::CutThrough, 1), (Switching::StoreAndForward, 4)] {
            let parameters = Parameters { switching, ..Default::default() };
            let found = longest_round_trip(&graph, &*routing, &parameters, Bytes(26));
            let fixed = 2 * (4 * latency + 3 * parameters.switch_latency.0);
            assert_eq!(found.0, fixed + times * (4122 + 26) * per_byte);
        }
    }
}
