//! The names of hosts, switches and ports: as an imported fabric names them, else by where they are.
//!
//! | fabric | hosts | switches |
//! |---|---|---|
//! | imported | as given | as given |
//! | one level, or none | `host0` | `switch0` |
//! | two levels | `host0` | `leaf0`, `spine0` |
//! | three levels | `host0` | `leaf0`, `aggregation0`, `core0` |
//! | groups | `host0` | `group0-switch0`, in rows `group0-row0-switch0`, in levels `group0-leaf0`, `group0-spine0` |
//! | grid | `host0` | `switch-0-0`, by coordinates |
//!
//! Numbers count from 0. Where each rail has a plane of its own, `rail0-` precedes the names of its switches. Ports of a
//! host or a switch are numbered from 1 in the order of its links; an imported fabric keeps the numbers that it was given.
//! A link is called by its sending end: `leaf4 port 7 to spine2`.

use super::graph::{Graph, Vertex};
use super::layout::Layout;
use crate::error::{BuildError, nearest};
use crate::ids::{HostId, LinkId, SwitchId};

impl Graph {
    /// The name of a host.
    #[must_use]
    pub fn host_name(&self, host: HostId) -> String {
        let given = self.given().or_else(|| self.copied().and_then(|(plane, _)| plane.given()));
        given.map_or_else(|| format!("host{host}"), |given| given.hosts[host.index()].clone())
    }

    /// The name of a switch.
    #[must_use]
    pub fn switch_name(&self, switch: SwitchId) -> String {
        if let Some((plane, planes)) = self.copied() {
            let (rail, inside) = planes.inside(switch);
            return format!("rail{rail}-{}", plane.switch_name(inside));
        }
        if let Some(given) = self.given() {
            return given.switches[switch.index()].clone();
        }
        let same = |first: u32| (first..switch.0).filter(|other| self.level(SwitchId(*other)) == self.level(switch));
        self.generated(switch, self.top(), |first| same(first).count())
    }

    /// The name of either end of a link.
    #[must_use]
    pub fn vertex_name(&self, vertex: Vertex) -> String {
        match vertex {
            Vertex::Host(host) => self.host_name(host),
            Vertex::Switch(switch) => self.switch_name(switch),
        }
    }

    /// The names of all hosts.
    #[must_use]
    pub fn host_names(&self) -> Vec<String> {
        (0..).take(self.hosts()).map(|host| self.host_name(HostId(host))).collect()
    }

    /// The names of all switches.
    #[must_use]
    pub fn switch_names(&self) -> Vec<String> {
        if let Some((plane, _)) = self.copied() {
            let names = plane.switch_names();
            return (0..self.rails())
                .flat_map(|rail| names.iter().map(move |name| format!("rail{rail}-{name}")))
                .collect();
        }
        if let Some(given) = self.given() {
            return given.switches.clone();
        }
        let (mut counts, mut group, top) = (Vec::new(), 0, self.top());
        let each = (0..).take(self.switches()).map(SwitchId).map(|switch| {
            let level = usize::from(self.level(switch));
            if let Layout::Groups { switches, .. } = self.layout()
                && switch.0 / switches != group
            {
                group = switch.0 / switches;
                counts.clear();
            }
            counts.resize(counts.len().max(level + 1), 0);
            counts[level] += 1;
            let before = counts[level] - 1;
            self.generated(switch, top, |_| before)
        });
        each.collect()
    }

    /// The number of the port that feeds a link, as it is known where the link begins.
    #[must_use]
    pub fn port_number(&self, link: LinkId) -> u32 {
        let from = self.link(link).from;
        let given = match (self.copied(), from) {
            (Some((plane, planes)), Vertex::Switch(switch)) => {
                plane.given().map(|given| (given, planes.link_inside(planes.inside(switch).0, link)))
            }
            _ => self.given().map(|given| (given, link)),
        };
        match given {
            Some((given, inside)) => given.ports[inside.index()],
            None => 1 + link.0 - self.ports(from).next().map_or(link.0, |first| first.0),
        }
    }

    /// A link in words: `leaf4 port 7 to spine2`.
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> String {
        let ends = self.link(link);
        format!("{} port {} to {}", self.vertex_name(ends.from), self.port_number(link), self.vertex_name(ends.to))
    }

    /// The link of that name, with or without its far end: `leaf4 port 7`. `path` is where the name stands, for the error.
    ///
    /// # Errors
    /// [`BuildError`] names the nearest vertex, or the ports that there are.
    pub fn link_named(&self, path: &str, name: &str) -> Result<LinkId, BuildError> {
        let wrong = |allowed: String| BuildError::value(path, format!("{name:?}"), allowed);
        let form = || wrong("a link by its sending end, as \"leaf4 port 7 to spine2\" or \"leaf4 port 7\"".to_owned());
        let (from, rest) = name.rsplit_once(" port ").ok_or_else(form)?;
        let (port, to) = rest.split_once(" to ").map_or((rest, None), |(port, to)| (port, Some(to)));
        let port: u32 = port.parse().map_err(|_| form())?;
        let (hosts, switches) = (self.host_names(), self.switch_names());
        let all = || {
            (0..)
                .map(HostId)
                .map(Vertex::Host)
                .zip(&hosts)
                .chain((0..).map(SwitchId).map(Vertex::Switch).zip(&switches))
        };
        let Some((vertex, _)) = all().find(|(_, known)| *known == from) else {
            let known: Vec<&str> = all().map(|(_, name)| name.as_str()).collect();
            let meant = nearest(from, &known).map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
            return Err(wrong(format!("no host and no switch is called {from:?}{meant}")));
        };
        let link = self.ports(vertex).find(|link| self.port_number(*link) == port).ok_or_else(|| {
            let ports: Vec<String> = self.ports(vertex).map(|link| self.port_number(link).to_string()).collect();
            wrong(format!("ports of {from} with a cable: {}", ports.join(", ")))
        })?;
        match to.filter(|to| self.vertex_name(self.link(link).to) != *to) {
            Some(_) => Err(wrong(format!("that port leads to {}", self.vertex_name(self.link(link).to)))),
            None => Ok(link),
        }
    }

    /// The host of that name. `path` is where the name stands, for the error.
    ///
    /// # Errors
    /// [`BuildError`] names the nearest host.
    pub fn host_named(&self, path: &str, name: &str) -> Result<HostId, BuildError> {
        named(path, "host", name, &self.host_names()).map(HostId)
    }

    /// The switch of that name. `path` is where the name stands, for the error.
    ///
    /// # Errors
    /// [`BuildError`] names the nearest switch.
    pub fn switch_named(&self, path: &str, name: &str) -> Result<SwitchId, BuildError> {
        named(path, "switch", name, &self.switch_names()).map(SwitchId)
    }

    /// The highest level.
    fn top(&self) -> u8 {
        (0..).take(self.switches()).map(|switch| self.level(SwitchId(switch))).max().unwrap_or(0)
    }

    /// The name of a switch by its place; `before` counts the switches of its level, from one on, that precede it.
    fn generated(&self, switch: SwitchId, top: u8, before: impl Fn(u32) -> usize) -> String {
        let level = self.level(switch);
        match *self.layout() {
            Layout::Free if top <= 1 => format!("switch{switch}"),
            Layout::Free => format!("{}{}", level_name(level, top), before(0)),
            Layout::Groups { switches, row } => {
                let (group, place) = (switch.0 / switches, switch.0 % switches);
                match level {
                    1 => format!("group{group}-leaf{}", before(group * switches)),
                    2 => format!("group{group}-spine{}", before(group * switches)),
                    _ if row < switches => format!("group{group}-row{}-switch{}", place / row, place % row),
                    _ => format!("group{group}-switch{place}"),
                }
            }
            Layout::Grid(ref grid) => {
                let places: Vec<String> = grid.coordinates(switch).map(|place| place.to_string()).collect();
                format!("switch-{}", places.join("-"))
            }
        }
    }
}

/// The place of a name among those of all hosts, or all switches.
fn named(path: &str, kind: &str, name: &str, all: &[String]) -> Result<u32, BuildError> {
    if let Some((place, _)) = (0..).zip(all).find(|(_, known)| *known == name) {
        return Ok(place);
    }
    let known: Vec<&str> = all.iter().map(String::as_str).collect();
    let meant = nearest(name, &known).map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
    Err(BuildError::value(path, format!("{name:?}"), format!("the name of a {kind}{meant}")))
}

/// The name of a switch of a level in a tree of so many levels.
fn level_name(level: u8, top: u8) -> String {
    match (level, top) {
        (1, _) => "leaf".to_owned(),
        (2, 2) => "spine".to_owned(),
        (2, 3) => "aggregation".to_owned(),
        (3, 3) => "core".to_owned(),
        _ => format!("level{level}-"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::topology::{RailsSpec, TABLE};

    fn build(name: &str, params: serde_json::Value) -> Graph {
        crate::topology::build(name, &params).unwrap()
    }

    fn some(graph: &Graph, numbers: [u32; 3]) -> [String; 3] {
        numbers.map(|number| graph.switch_name(SwitchId(number)))
    }

    #[test]
    fn switches_are_named_by_their_place() {
        let tree = build("fat_tree", json!({ "hosts": 16, "levels": 2, "radix": 8 }));
        assert_eq!(some(&tree, [0, 3, 4]), ["leaf0", "leaf3", "spine0"]);
        let three = build("fat_tree", json!({ "hosts": 16, "levels": 3, "radix": 4 }));
        assert_eq!(some(&three, [1, 8, 16]), ["leaf1", "aggregation0", "core0"]);
        let plus = build(
            "dragonfly_plus",
            json!({ "groups": 3, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "global_links": 1 }),
        );
        assert_eq!(some(&plus, [0, 4, 7]), ["group0-leaf0", "group1-leaf0", "group1-spine1"]);
        let cascade = build("cascade", json!({ "preset": "edison" }));
        assert_eq!(
            some(&cascade, [15, 16, 1439]),
            ["group0-row0-switch15", "group0-row1-switch0", "group14-row5-switch15"]
        );
        let torus = build("torus", json!({ "sides": [4, 3, 2] }));
        assert_eq!(some(&torus, [0, 5, 23]), ["switch-0-0-0", "switch-1-1-0", "switch-3-2-1"]);
        assert_eq!(torus.host_name(HostId(7)), "host7");
    }

    #[test]
    fn ports_count_from_one_and_planes_have_switches_of_their_own() {
        let graph = build("fat_tree", json!({ "hosts": 16, "levels": 2, "radix": 8 }));
        let words = |graph: &Graph, vertex| graph.ports(vertex).map(|link| graph.link_name(link)).collect::<Vec<_>>();
        assert_eq!(words(&graph, Vertex::Host(HostId(5))), ["host5 port 1 to leaf1"]);
        let leaf = words(&graph, Vertex::Switch(SwitchId(1)));
        assert_eq!(leaf[..2], ["leaf1 port 1 to host4", "leaf1 port 2 to host5"]);
        assert!(leaf[4].starts_with("leaf1 port 5 to spine"));
        let rails =
            |wiring: &str| -> RailsSpec { serde_json::from_value(json!({ "count": 2, "wiring": wiring })).unwrap() };
        let planes = graph.clone().with_rails(&rails("planes")).unwrap();
        assert_eq!(
            words(&planes, Vertex::Host(HostId(5))),
            ["host5 port 1 to rail0-leaf1", "host5 port 2 to rail1-leaf1"]
        );
        assert_eq!(words(&planes, Vertex::Switch(SwitchId(7)))[0], "rail1-leaf1 port 1 to host4");
        let shared = graph.with_rails(&rails("shared")).unwrap();
        assert_eq!(words(&shared, Vertex::Host(HostId(2))), ["host2 port 1 to leaf1", "host2 port 2 to leaf1"]);
    }

    #[test]
    fn an_imported_fabric_keeps_its_names_and_numbers_of_ports() {
        let params = json!({ "hosts": ["cn01", "cn02"], "links": [
            { "ends": ["cn01", "leaf04"], "ports": [1, 3] }, { "ends": ["cn02", "leaf04"] }, { "ends": ["leaf04", "spine02"], "ports": [7, 1] },
        ]});
        let graph = build("imported", params);
        let names: Vec<String> = (0..).map(LinkId).take(6).map(|link| graph.link_name(link)).collect();
        // The cable without numbers has the lowest that is free at each end.
        let expected =
            ["cn01 port 1 to leaf04", "cn02 port 1 to leaf04", "leaf04 port 3 to cn01", "leaf04 port 1 to cn02"];
        assert_eq!(names[..4], expected);
        assert_eq!(names[4..], ["leaf04 port 7 to spine02", "spine02 port 1 to leaf04"]);
    }

    #[test]
    fn names_are_unique_and_alike_one_by_one_and_all_at_once() {
        for entry in TABLE {
            let schema = (entry.schema)();
            let examples =
                schema.as_object().and_then(|schema| schema["examples"].as_array().cloned()).unwrap_or_default();
            for params in examples.iter().filter(|params| params.get("preset").is_none()) {
                let graph = build(entry.name, params.clone());
                let names = graph.switch_names();
                let single: Vec<String> =
                    (0..).take(graph.switches()).map(|at| graph.switch_name(SwitchId(at))).collect();
                assert_eq!(names, single, "{params}");
                let unique: std::collections::BTreeSet<_> = names.into_iter().chain(graph.host_names()).collect();
                assert_eq!(unique.len(), graph.hosts() + graph.switches(), "{params}");
                for vertex in (0..).take(graph.switches()).map(|at| Vertex::Switch(SwitchId(at))) {
                    let ports: std::collections::BTreeSet<u32> =
                        graph.ports(vertex).map(|link| graph.port_number(link)).collect();
                    assert_eq!(ports.len(), graph.ports(vertex).len(), "{params}");
                }
            }
        }
    }
}
