//! UGAL: each packet decides once, at its first switch.

use super::super::{Hop, Loads, Routing, Visit};
use super::rule::{LoadOf, Rule, UgalParams};
use super::{Path, Paths};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::topology::Graph;

/// UGAL: each packet decides at its first switch, with the loads that are seen from there or from above.
pub(in crate::routing) struct Ugal {
    paths: Box<dyn Paths>,
    rule: Rule,
    /// The loads of other switches count.
    global: bool,
}

impl Ugal {
    /// UGAL on a fabric; `routing` is its name, for errors. With `global` it sees the loads of other switches.
    pub fn build(
        graph: &Graph,
        json: &serde_json::Value,
        routing: &'static str,
        global: bool,
    ) -> Result<Box<dyn Routing>, BuildError> {
        let rule = if global {
            Rule::new(crate::table::params::<UgalParams>("fabric.routing", json)?)?
        } else {
            Rule::local(crate::table::params("fabric.routing", json)?, graph.layout())?
        };
        Ok(Box::new(Self { paths: super::paths_of(graph, routing)?, rule, global }))
    }
}

impl Routing for Ugal {
    fn virtual_channels(&self) -> u8 {
        self.paths.channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.paths.step(at, previous, Path::MINIMAL, to).0
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.paths.reaches(at, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_waiting(&self) -> bool {
        self.rule.load == LoadOf::Packets
    }

    fn sees_own_ports_only(&self) -> bool {
        !self.global
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (paths, path) = (&*self.paths, Path::noted(visit.note));
        if path != Path::UNDECIDED {
            return paths.go(at, visit, path);
        }
        let seen = (at, &*visit, loads);
        let (hop, left) = paths.step(at, visit.previous, Path::MINIMAL, visit.to);
        let chosen = if self.global {
            self.rule.decide_globally(paths, seen)
        } else {
            self.rule.decide_locally(paths, seen, hop)
        };
        match chosen {
            Some(path) => paths.go(at, visit, path),
            None => {
                visit.note = left.note();
                hop
            }
        }
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let path = Path::noted(visit.note);
        if path != Path::UNDECIDED {
            return self.paths.hops(at, visit, [path]);
        }
        let others = self.paths.all(at, visit.to);
        self.paths.hops(at, visit, std::iter::once(Path::MINIMAL).chain(others))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::LinkId;
    use crate::routing::PortLoads;
    use crate::topology::{self, Vertex};

    /// The switches on the path from host 0 to host 39 of a dragonfly of nine groups of four switches, under loads. There are a
    /// hundredth as many packets, of ten bytes.
    fn path(routing: &str, params: &Value, load: impl Fn(&Graph, LinkId) -> u32) -> Vec<u32> {
        let shape = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
        let graph = topology::build("dragonfly", &shape).unwrap();
        let routing = crate::routing::build(routing, params, &graph).unwrap();
        let links = u32::try_from(graph.links().len()).unwrap();
        let queued: Vec<u32> = (0..links).map(|link| load(&graph, LinkId(link))).collect();
        let waiting: Vec<u32> = queued.iter().map(|bytes| bytes / 100).collect();
        let ports = PortLoads { all: queued, waiting, full: 10, ..Default::default() };
        let loads = Loads::of(&ports);
        let previous = Hop { link: graph.ports(Vertex::Host(HostId(0))).next().unwrap(), channel: 0 };
        let mut visit = Visit { random: 12_345, ..Visit::new(previous, HostId(39)) };
        let mut switches = Vec::new();
        while let Vertex::Switch(at) = graph.link(visit.previous.link).to {
            switches.push(at.0);
            visit.previous = routing.choose(at, &mut visit, &loads);
        }
        switches
    }

    fn groups(path: &[u32]) -> usize {
        let mut groups: Vec<u32> = path.iter().map(|switch| switch / 4).collect();
        groups.dedup();
        groups.len()
    }

    /// Puts `bytes` on the links of a minimal path that are, or are not, of its first switch.
    fn on_minimal(here: bool, bytes: u32) -> impl Fn(&Graph, LinkId) -> u32 {
        let minimal = path("minimal", &json!({}), |_, _| 0);
        move |graph, link| {
            let ends = (graph.link(link).from, graph.link(link).to);
            let pair = |pair: &[u32]| ends == (Vertex::Switch(SwitchId(pair[0])), Vertex::Switch(SwitchId(pair[1])));
            let loaded = minimal.windows(2).enumerate().any(|(hop, ends)| pair(ends) && (hop == 0) == here);
            if loaded { bytes } else { 0 }
        }
    }

    #[test]
    fn without_loads_paths_are_minimal_and_valiants_are_not() {
        let minimal = path("minimal", &json!({}), |_, _| 0);
        for routing in ["ugal_l", "ugal_g", "progressive"] {
            assert_eq!(path(routing, &json!({}), |_, _| 0), minimal, "{routing}");
        }
        assert_eq!((groups(&minimal), groups(&path("valiant", &json!({}), |_, _| 0))), (2, 3));
    }

    #[test]
    fn a_load_above_the_bias_on_the_first_link_makes_a_detour() {
        for routing in ["ugal_l", "ugal_g", "progressive"] {
            let groups = |bias, bytes| groups(&path(routing, &json!({ "bias": bias }), on_minimal(true, bytes)));
            assert_eq!((groups(5000, 5000), groups(5000, 5001)), (2, 3), "{routing}");
        }
    }

    #[test]
    fn a_load_further_on_is_seen_from_above_or_when_it_is_near() {
        let groups = |routing| groups(&path(routing, &json!({ "bias": 0 }), on_minimal(false, 50_000)));
        let minimal = path("minimal", &json!({}), |_, _| 0);
        assert_eq!(minimal[1] / 4, 0, "the second link is the global one");
        assert_eq!((groups("ugal_l"), groups("ugal_g"), groups("progressive")), (2, 3, 3));
    }

    #[test]
    fn a_load_in_the_last_group_is_seen_if_every_switch_asks() {
        let minimal = path("minimal", &json!({}), |_, _| 0);
        let [.., gateway, last] = minimal[..] else { panic!("no link in the last group") };
        let load = |graph: &Graph, link| {
            let ends = [gateway, last].map(|switch| Vertex::Switch(SwitchId(switch)));
            u32::from([graph.link(link).from, graph.link(link).to] == ends) * 50_000
        };
        let revise = |revise| path("progressive", &json!({ "revise": revise, "bias": 0 }), load);
        assert_eq!(revise("source_group"), minimal);
        let detour = revise("minimal");
        assert_eq!((detour.len(), &detour[..minimal.len() - 1]), (minimal.len() + 1, &minimal[..minimal.len() - 1]));
        assert_eq!(detour[minimal.len() - 1] / 4, last / 4);
    }

    #[test]
    fn packets_that_wait_can_be_the_load() {
        for routing in ["ugal_l", "progressive"] {
            let groups =
                |bytes| groups(&path(routing, &json!({ "load": "packets", "bias": 50 }), on_minimal(true, bytes)));
            // 5 packets of 10 bytes, and 6.
            assert_eq!((groups(599), groups(600)), (2, 3), "{routing}");
        }
    }

    /// Of the minimal path's load 500 counts three times, of the others' five times.
    #[test]
    fn the_longest_path_of_a_kind_can_be_the_measure() {
        let minimal = on_minimal(true, 500);
        for routing in ["ugal_l", "progressive"] {
            let groups = |others| {
                let load = |graph: &Graph, link| minimal(graph, link).max(others);
                groups(&path(routing, &json!({ "links": "longest", "bias": 0 }), load))
            };
            assert_eq!((groups(299), groups(300)), (3, 2), "{routing}");
        }
        let graph = topology::build("torus", &json!({ "sides": [4, 4], "hosts_per_switch": 1 })).unwrap();
        let error = Ugal::build(&graph, &json!({ "links": "longest" }), "ugal_l", false).err().unwrap().to_string();
        assert!(error.contains("fabric.routing.links = longest: path on a fabric without groups"), "{error}");
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let graph = topology::build("dragonfly", &json!({ "preset": "wilke2020" })).unwrap();
        let error = |params| Ugal::build(&graph, &params, "ugal_l", false).err().unwrap().to_string();
        assert!(error(json!({ "samples": 0 })).contains("fabric.routing.samples = 0: 1 to 64 non-minimal paths"));
        assert!(error(json!({ "threshold": 1 })).contains("bias"));
    }
}
