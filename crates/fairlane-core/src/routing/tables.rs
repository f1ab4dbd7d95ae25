//! Forwarding tables: at each switch a port for each destination, as a subnet manager sets them and as `dump_lfts` and
//! `ibroute` print them.
//!
//! A table is taken as it is: nothing is balanced or mended. It is refused if a packet would get lost or go in a circle,
//! or if packets on their way to different hosts could wait for each other in a cycle: there is one virtual channel.

use schemars::schema_for;

use super::parts::Ends;
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Forwarding, Graph, Vertex};

const NAME: &str = "tables";

/// Forwarding tables' line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "forwarding tables that came with an imported fabric",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(Tables::new(graph)?))
    },
};

struct Tables {
    forwarding: Forwarding,
    /// The first link of each switch.
    first: Vec<LinkId>,
}

impl Tables {
    fn new(graph: &Graph) -> Result<Self, BuildError> {
        let Some(forwarding) = graph.forwarding() else {
            return Err(BuildError::value("fabric.routing", NAME, "needs a fabric with forwarding tables"));
        };
        let first = |switch| graph.ports(Vertex::Switch(SwitchId(switch))).next().unwrap_or_default();
        let tables = Self { forwarding: forwarding.clone(), first: (0..).take(graph.switches()).map(first).collect() };
        tables.check(graph)?;
        Ok(tables)
    }

    fn link(&self, at: SwitchId, to: HostId) -> Option<LinkId> {
        self.forwarding.port(at, to).map(|port| LinkId(self.first[at.index()].0 + u32::from(port)))
    }

    /// Follows packets from every switch with hosts to every host.
    fn check(&self, graph: &Graph) -> Result<(), BuildError> {
        let ends = Ends::new(graph, NAME)?;
        let leaves = ends.leaves();
        let mut waits: Vec<Vec<LinkId>> = vec![Vec::new(); graph.links().len()];
        // The last host for which a switch was passed.
        let mut passed: Vec<Option<HostId>> = vec![None; graph.switches()];
        for to in (0..).take(graph.hosts()).map(HostId) {
            for leaf in leaves.iter().filter(|leaf| ends.reaches(**leaf, to)) {
                self.follow(graph, *leaf, to, &mut passed, &mut waits)?;
            }
        }
        waits.iter_mut().for_each(|links| {
            links.sort_unstable();
            links.dedup();
        });
        circle(&waits).map_or(Ok(()), |link| {
            let problem = format!(
                "the forwarding tables can deadlock: packets that wait for {} wait for themselves",
                graph.link_name(link)
            );
            Err(BuildError::Shape { path: "fabric.tables".to_owned(), problem })
        })
    }

    /// Follows a packet until it is there or where another was before.
    fn follow(
        &self,
        graph: &Graph,
        leaf: SwitchId,
        to: HostId,
        passed: &mut [Option<HostId>],
        waits: &mut [Vec<LinkId>],
    ) -> Result<(), BuildError> {
        let lost = |at: SwitchId, what: &str| {
            let problem = format!(
                "a packet from {:?} to {:?} {what} at {:?}",
                graph.switch_name(leaf),
                graph.host_name(to),
                graph.switch_name(at)
            );
            Err(BuildError::Shape { path: "fabric.tables".to_owned(), problem })
        };
        let (mut at, mut last, mut own) = (leaf, None, Vec::new());
        loop {
            let Some(link) = self.link(at, to) else { return lost(at, "finds no entry") };
            if let Some(last) = last {
                let list: &mut Vec<LinkId> = &mut waits[LinkId::index(last)];
                if list.last() != Some(&link) {
                    list.push(link);
                }
            }
            if own.contains(&at) {
                return lost(at, "loops");
            }
            if passed[at.index()] == Some(to) {
                return Ok(());
            }
            own.push(at);
            passed[at.index()] = Some(to);
            match graph.link(link).to {
                Vertex::Host(host) if host == to => return Ok(()),
                Vertex::Host(_) => return lost(at, "is delivered to another host"),
                Vertex::Switch(next) => (at, last) = (next, Some(link)),
            }
        }
    }
}

impl Routing for Tables {
    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.link(at, to).is_some()
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
        let link = self.link(at, to).expect("invariant: every way was followed when the tables were read");
        Hop { link, channel: 0 }
    }
}

/// A link on or downstream of a cycle of links that wait for each other, if there is a cycle.
fn circle(waits: &[Vec<LinkId>]) -> Option<LinkId> {
    let mut waiters = vec![0_u32; waits.len()];
    waits.iter().flatten().for_each(|link| waiters[link.index()] += 1);
    let mut free: Vec<usize> = (0..waits.len()).filter(|link| waiters[*link] == 0).collect();
    while let Some(link) = free.pop() {
        for next in &waits[link] {
            waiters[next.index()] -= 1;
            if waiters[next.index()] == 0 {
                free.push(next.index());
            }
        }
    }
    (0..).zip(waiters).find_map(|(link, waiters)| (waiters > 0).then_some(LinkId(link)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topology;

    /// Four switches in a ring, a host each: port 1 to the host, 2 to the next switch, 3 to the previous.
    fn ring(tables: Value) -> Result<Tables, BuildError> {
        let params = json!({
            "hosts": ["a", "b", "c", "d"],
            "links": [
                { "ends": ["a", "s"], "ports": [1, 1] }, { "ends": ["b", "t"], "ports": [1, 1] },
                { "ends": ["c", "u"], "ports": [1, 1] }, { "ends": ["d", "v"], "ports": [1, 1] },
                { "ends": ["s", "t"], "ports": [2, 3] }, { "ends": ["t", "u"], "ports": [2, 3] },
                { "ends": ["u", "v"], "ports": [2, 3] }, { "ends": ["v", "s"], "ports": [2, 3] },
            ],
            "tables": tables,
        });
        Tables::new(&topology::build("imported", &params).unwrap())
    }

    #[test]
    fn tables_are_followed_to_the_letter() {
        let tables = json!({ "s": [1, 2, 2, 3], "t": [3, 1, 2, 3], "u": [3, 3, 1, 2], "v": [2, 2, 3, 1] });
        let routing = ring(tables).unwrap();
        // Ports in order of links: the host's, then those to the next and the previous switch; switch 3 has its link to
        // switch 2 before that to switch 0.
        let fresh = Hop { link: LinkId(0), channel: 0 };
        let port =
            |at: u32, to| routing.next_hop(SwitchId(at), fresh, HostId(to)).link.0 - routing.first[at as usize].0;
        assert_eq!((0..4).map(|to| port(1, to)).collect::<Vec<_>>(), [1, 0, 2, 1]);
        assert_eq!((0..4).map(|to| port(3, to)).collect::<Vec<_>>(), [2, 2, 1, 0]);
    }

    #[test]
    fn tables_that_lose_packets_or_deadlock_are_refused() {
        for (tables, expected) in [
            (
                json!({ "s": [1, 2, 2, 0], "t": [3, 1, 2, 3], "u": [3, 3, 1, 2], "v": [2, 2, 3, 1] }),
                "a packet from \"s\" to \"d\" finds no entry at \"s\"",
            ),
            (
                json!({ "s": [1, 2, 2, 2], "t": [3, 1, 2, 3], "u": [3, 3, 1, 2], "v": [2, 2, 3, 1] }),
                "a packet from \"s\" to \"d\" loops at \"s\"",
            ),
            (
                json!({ "s": [1, 2, 2, 1], "t": [3, 1, 2, 3], "u": [3, 3, 1, 2], "v": [2, 2, 3, 1] }),
                "a packet from \"s\" to \"d\" is delivered to another host at \"s\"",
            ),
            // Everything clockwise.
            (
                json!({ "s": [1, 2, 2, 2], "t": [2, 1, 2, 2], "u": [2, 2, 1, 2], "v": [2, 2, 2, 1] }),
                "the forwarding tables can deadlock",
            ),
        ] {
            let message = ring(tables).err().unwrap().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
