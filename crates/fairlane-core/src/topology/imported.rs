//! Fabrics given link by link: real clusters, or anything that no other topology describes.
//!
//! Hosts are numbered in the order of `hosts`; every other name in the links is a switch, numbered in order of first
//! appearance. The levels of the switches are inferred, see [`super::tiers`]. Ports of a vertex are numbered in the order
//! of its links. Cables between the same two ends are a trunk; a host may have several.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tiers::Cabling;
use super::{Build, Entry, Forwarding, Graph, GraphBuilder, Layout, Size, Vertex, lattice};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::units::{BitsPerSec, Picoseconds};

/// The imported fabric's line in the table.
pub const ENTRY: Entry = Entry {
    name: "imported",
    summary: "a fabric given link by link, as `fairlane fabric import` writes it",
    schema: || schema_for!(Params),
    build: Build {
        routing: "up_down",
        size: |json| crate::table::params::<Params>("fabric", json)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", json)?.build(),
    },
};

/// A fabric given link by link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// A file that holds the other keys, as JSON; `fairlane fabric import` writes one.
    #[serde(default)]
    #[schemars(extend("x-parameters-of-file" = true))]
    file: Option<String>,
    /// The hosts' names, in the order in which they are numbered.
    #[serde(default)]
    hosts: Vec<String>,
    /// The cables. A name that is not among the hosts is a switch.
    #[serde(default)]
    links: Vec<CableParams>,
    /// Forwarding tables, for the routing `tables`: for each switch the number of the port for each adapter, in the order
    /// of `hosts`, those of a host in the order of its cables; 0 where there is none. They need links with port numbers.
    #[serde(default)]
    tables: BTreeMap<String, Vec<u32>>,
    /// For a fabric of groups, as a dragonfly: how large they are. The first switches that the links name are the first
    /// group, and so on. Levels are not inferred then, and the routings of fabrics of groups can be used.
    #[serde(default)]
    groups: Option<GroupsParams>,
    /// Bandwidth of cables that have none of their own. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of cables that have none of their own. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
}

/// The groups of a fabric.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GroupsParams {
    /// Switches of a group.
    #[schemars(range(min = 1))]
    switches: u32,
    /// Switches of a row, where a group is a grid of rows. Default: all of a group.
    #[serde(default)]
    #[schemars(range(min = 1))]
    row: Option<u32>,
}

/// A cable.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CableParams {
    /// The ends that it joins: a host and a switch, or two switches, by name.
    ends: [String; 2],
    /// The numbers of the ports at the two ends. A port has one cable.
    #[serde(default)]
    ports: Option<[u32; 2]>,
    /// The class of its links, if both ends are switches. Default: by the levels of the ends, as "level 1 up".
    #[serde(default)]
    class: Option<String>,
    /// Bandwidth. Default: that of the fabric.
    #[serde(default)]
    bandwidth: Option<BitsPerSec>,
    /// Latency. Default: that of the fabric.
    #[serde(default)]
    latency: Option<Picoseconds>,
}

/// Shapes that differ in kind: a tree with a trunk, mixed speeds and a host with two cables; a ring, with tables; groups.
fn examples() -> Value {
    let cable = |a: &str, b: &str| json!({ "ends": [a, b] });
    let numbered = |a: &str, b: &str, ports: [u32; 2]| json!({ "ends": [a, b], "ports": ports });
    json!([
        {
            "hosts": ["h0", "h1", "h2", "h3", "h4"],
            "links": [
                cable("h0", "leaf0"), cable("h1", "leaf0"), cable("h2", "leaf1"), cable("h3", "leaf1"),
                cable("h4", "leaf2"), cable("h4", "leaf1"),
                cable("leaf0", "spine0"), cable("leaf0", "spine0"), cable("leaf1", "spine0"), cable("leaf2", "spine0"),
                { "ends": ["leaf0", "spine1"], "bandwidth": 40_000_000_000_u64 }, cable("spine1", "leaf1"),
            ],
        },
        {
            "hosts": ["a", "b", "c", "d"],
            "links": [
                numbered("a", "s", [1, 1]), numbered("b", "t", [1, 1]), numbered("c", "u", [1, 1]),
                numbered("d", "v", [1, 1]), numbered("s", "t", [2, 2]), numbered("t", "u", [3, 2]),
                numbered("u", "v", [3, 2]), numbered("v", "s", [3, 3]),
            ],
            "tables": { "s": [1, 2, 2, 3], "t": [2, 1, 3, 2], "u": [2, 2, 1, 3], "v": [3, 3, 2, 1] },
        },
        {
            "hosts": ["a", "b", "c", "d"],
            "groups": { "switches": 2 },
            "links": [
                cable("a", "s"), cable("b", "t"), cable("c", "u"), cable("d", "v"),
                { "ends": ["s", "t"], "class": "local" }, { "ends": ["u", "v"], "class": "local" },
                { "ends": ["t", "u"], "class": "global" }, { "ends": ["s", "v"], "class": "global" },
            ],
        },
    ])
}

impl Params {
    /// The hosts and switches of the lists: a switch is a name that is not among the hosts.
    fn size(&self) -> Result<Size, BuildError> {
        let hosts: HashSet<&str> = self.hosts.iter().map(String::as_str).collect();
        let ends = self.links.iter().flat_map(|cable| &cable.ends).map(String::as_str);
        let switches: HashSet<&str> = ends.filter(|name| !hosts.contains(name)).collect();
        let [hosts, switches, cables] = [self.hosts.len(), switches.len(), self.links.len()].map(|count| count as u64);
        Ok(Size::new(hosts, switches, cables))
    }

    fn build(&self) -> Result<Graph, BuildError> {
        if let Some(file) = &self.file {
            let problem = format!("{file:?} was not read: the simulator's core takes the links themselves");
            return Err(BuildError::Shape { path: "fabric.file".to_owned(), problem });
        }
        let names = Names::new(self)?;
        names.check_ports(self)?;
        let levels = if self.groups.is_some() { vec![0; names.switches.len()] } else { names.levels() };
        names.check_connected()?;
        let mut graph = GraphBuilder::default();
        graph.add_hosts(u32::try_from(self.hosts.len()).unwrap_or(u32::MAX));
        levels.iter().for_each(|level| _ = graph.add_switch(*level));
        let level = |vertex| match vertex {
            Vertex::Host(_) => None,
            Vertex::Switch(switch) => Some(levels[switch.index()]),
        };
        for (cable, &[a, b]) in self.links.iter().zip(&names.ends) {
            let [ab, ba] = cable.classes(level(a), level(b));
            let bandwidth = cable.bandwidth.unwrap_or(self.bandwidth);
            graph.add_cable(a, b, bandwidth, cable.latency.unwrap_or(self.latency), &ab, &ba);
            cable.ports.into_iter().for_each(|ports| graph.number_ports(ports));
        }
        graph.set_names(self.hosts.clone(), names.switches.iter().map(|name| (*name).to_owned()).collect());
        if let Some(groups) = self.groups {
            graph.set_layout(groups.layout(names.switches.len())?);
        }
        if !self.tables.is_empty() {
            graph.set_forwarding(names.forwarding(self)?);
        }
        graph.build()
    }
}

impl GroupsParams {
    /// The layout of so many switches.
    fn layout(self, switches: usize) -> Result<Layout, BuildError> {
        let row = self.row.unwrap_or(self.switches);
        if self.switches == 0 || !switches.is_multiple_of(self.switches as usize) {
            let allowed = format!("a divisor of the {switches} switches that the links name");
            return Err(BuildError::value("fabric.groups.switches", self.switches, allowed));
        }
        if row == 0 || !self.switches.is_multiple_of(row) {
            let allowed = format!("a divisor of the {} switches of a group", self.switches);
            return Err(BuildError::value("fabric.groups.row", row, allowed));
        }
        Ok(Layout::Groups { switches: self.switches, row })
    }
}

impl CableParams {
    /// The classes of its two links, by the levels of its ends; a host has none.
    fn classes(&self, a: Option<u8>, b: Option<u8>) -> [String; 2] {
        let (Some(a), Some(b)) = (a, b) else {
            return [a, b].map(|from| if from.is_none() { "host up".to_owned() } else { "host down".to_owned() });
        };
        if let Some(class) = &self.class {
            return [class.clone(), class.clone()];
        }
        let low = a.min(b);
        let name = |from: u8, to: u8| match from.cmp(&to) {
            std::cmp::Ordering::Less => format!("level {low} up"),
            std::cmp::Ordering::Equal if low == 0 => "between switches".to_owned(),
            std::cmp::Ordering::Equal => format!("level {low} across"),
            std::cmp::Ordering::Greater => format!("level {low} down"),
        };
        [name(a, b), name(b, a)]
    }
}

/// The meanings of the names in the links.
struct Names<'p> {
    hosts: &'p [String],
    switches: Vec<&'p str>,
    numbers: HashMap<&'p str, Vertex>,
    /// By link.
    ends: Vec<[Vertex; 2]>,
}

impl<'p> Names<'p> {
    fn new(params: &'p Params) -> Result<Self, BuildError> {
        let mut names = Self { hosts: &params.hosts, switches: Vec::new(), numbers: HashMap::new(), ends: Vec::new() };
        for (number, host) in (0..).zip(&params.hosts) {
            if names.numbers.insert(host, Vertex::Host(HostId(number))).is_some() {
                let allowed = "every host once";
                return Err(BuildError::value(format!("fabric.hosts[{number}]"), format!("{host:?}"), allowed));
            }
        }
        for (number, cable) in params.links.iter().enumerate() {
            let ends = [0, 1].map(|side| names.vertex(&cable.ends[side]));
            let both_hosts = ends.iter().all(|end| matches!(end, Vertex::Host(_)));
            if both_hosts || ends[0] == ends[1] {
                let allowed = "a cable joins a host and a switch, or two switches";
                return Err(BuildError::value(format!("fabric.links[{number}].ends"), cable.ends.join(", "), allowed));
            }
            names.ends.push(ends);
        }
        Ok(names)
    }

    fn vertex(&mut self, name: &'p str) -> Vertex {
        *self.numbers.entry(name).or_insert_with(|| {
            self.switches.push(name);
            Vertex::Switch(SwitchId(u32::try_from(self.switches.len() - 1).unwrap_or(u32::MAX)))
        })
    }

    fn name(&self, vertex: Vertex) -> &str {
        match vertex {
            Vertex::Host(host) => &self.hosts[host.index()],
            Vertex::Switch(switch) => self.switches[switch.index()],
        }
    }

    /// A port has one cable.
    fn check_ports(&self, params: &Params) -> Result<(), BuildError> {
        let mut used = HashMap::new();
        for (number, (cable, ends)) in params.links.iter().zip(&self.ends).enumerate() {
            for (end, port) in ends.iter().zip(cable.ports.into_iter().flatten()) {
                if let Some(before) = used.insert((*end, port), number) {
                    let name = self.name(*end);
                    let allowed = format!("port {port} of {name:?} has a cable already: links[{before}]");
                    return Err(BuildError::value(format!("fabric.links[{number}].ports"), port, allowed));
                }
            }
        }
        Ok(())
    }

    fn slot(&self, vertex: Vertex) -> usize {
        match vertex {
            Vertex::Host(host) => host.index(),
            Vertex::Switch(switch) => self.hosts.len() + switch.index(),
        }
    }

    /// By vertex, hosts first: how many links it is from the nearest of `sources`.
    fn distances(&self, sources: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
        let mut beside = vec![Vec::new(); self.hosts.len() + self.switches.len()];
        for ends in &self.ends {
            let [a, b] = ends.map(|end| self.slot(end));
            beside[a].push(b);
            beside[b].push(a);
        }
        let mut distances = vec![None; beside.len()];
        let mut fresh: VecDeque<usize> = sources.inspect(|source| distances[*source] = Some(0)).collect();
        while let Some(at) = fresh.pop_front() {
            let beyond = distances[at].map(|distance| distance + 1);
            for &next in &beside[at] {
                if distances[next].is_none() {
                    distances[next] = beyond;
                    fresh.push_back(next);
                }
            }
        }
        distances
    }

    fn levels(&self) -> Vec<u8> {
        let mut hosts = vec![0_u32; self.switches.len()];
        let mut cables: Vec<BTreeMap<usize, u32>> = vec![BTreeMap::new(); self.switches.len()];
        for ends in &self.ends {
            match *ends {
                [Vertex::Switch(a), Vertex::Switch(b)] => {
                    *cables[a.index()].entry(b.index()).or_default() += 1;
                    *cables[b.index()].entry(a.index()).or_default() += 1;
                }
                [Vertex::Switch(switch), _] | [_, Vertex::Switch(switch)] => hosts[switch.index()] += 1,
                [Vertex::Host(_), Vertex::Host(_)] => {}
            }
        }
        Cabling { hosts, neighbours: cables.into_iter().map(|around| around.into_iter().collect()).collect() }.levels()
    }

    fn check_connected(&self) -> Result<(), BuildError> {
        if self.hosts.is_empty() {
            let problem =
                "no hosts: give the names of the hosts, or a file that fairlane fabric import wrote".to_owned();
            return Err(BuildError::Shape { path: "fabric.hosts".to_owned(), problem });
        }
        let lost: Vec<usize> = self
            .distances(std::iter::once(0))
            .iter()
            .enumerate()
            .filter_map(|(slot, distance)| distance.is_none().then_some(slot))
            .collect();
        let Some(first) = lost.first() else { return Ok(()) };
        let name = self.hosts.get(*first).map_or_else(|| self.switches[*first - self.hosts.len()], String::as_str);
        let others = if lost.len() > 1 { format!(" and {} others", lost.len() - 1) } else { String::new() };
        let problem = format!("the fabric is not connected: no way leads from {:?} to {name:?}{others}", self.hosts[0]);
        Err(BuildError::Shape { path: "fabric.links".to_owned(), problem })
    }

    /// The tables with ports counted from 0, in the order of a switch's links.
    fn forwarding(&self, params: &Params) -> Result<Forwarding, BuildError> {
        let mut next = vec![0_u16; self.switches.len()];
        let mut places: HashMap<(SwitchId, u32), u16> = HashMap::new();
        for (cable, ends) in params.links.iter().zip(&self.ends) {
            for (side, end) in ends.iter().enumerate() {
                let Vertex::Switch(switch) = *end else { continue };
                if let Some(ports) = cable.ports {
                    places.insert((switch, ports[side]), next[switch.index()]);
                }
                next[switch.index()] += 1;
            }
        }
        let of_hosts = self.ends.iter().flatten().filter(|end| matches!(end, Vertex::Host(_)));
        let endpoints = of_hosts.count();
        let mut forwarding = Forwarding::new(self.switches.len(), endpoints);
        for (name, row) in &params.tables {
            let path = || format!("fabric.tables.{name}");
            let Some(Vertex::Switch(switch)) = self.numbers.get(name.as_str()) else {
                return Err(BuildError::Shape {
                    path: path(),
                    problem: "no link has a switch of this name".to_owned(),
                });
            };
            if row.len() != endpoints {
                let allowed = format!("one for each of the {endpoints} adapters of hosts");
                return Err(BuildError::value(path(), format!("{} ports", row.len()), allowed));
            }
            for (endpoint, port) in (0..).map(HostId).zip(row).filter(|(_, port)| **port != 0) {
                let Some(place) = places.get(&(*switch, *port)) else {
                    let allowed = format!("no link ends at port {port} of this switch");
                    return Err(BuildError::value(format!("{}[{endpoint}]", path()), port, allowed));
                };
                forwarding.set(*switch, endpoint, *place);
            }
        }
        Ok(forwarding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(params: Value) -> String {
        crate::topology::build("imported", &params).unwrap_err().to_string()
    }

    #[test]
    fn levels_of_a_tree_are_distances_from_hosts() {
        let graph = crate::topology::build("imported", &examples()[0]).unwrap();
        // leaf0, leaf1, leaf2, spine0, spine1.
        let levels: Vec<u8> = (0..5).map(|switch| graph.level(SwitchId(switch))).collect();
        assert_eq!(levels, [1, 1, 1, 2, 2]);
        assert_eq!(graph.classes(), ["host up", "host down", "level 1 up", "level 1 down"]);
    }

    #[test]
    fn tables_are_translated_to_ports_in_order_of_links() {
        let graph = crate::topology::build("imported", &examples()[1]).unwrap();
        let tables = graph.forwarding().unwrap();
        // Switch "v", number 3, has its cables at ports 1, 2 and 3, added in this order.
        assert_eq!(
            (0..4).map(|host| tables.port(SwitchId(3), HostId(host))).collect::<Vec<_>>(),
            [Some(2), Some(2), Some(1), Some(0)]
        );
    }

    #[test]
    fn wrong_wirings_are_refused_by_name() {
        let link = |a: &str, b: &str| json!({ "ends": [a, b] });
        let port = |a: &str, b: &str, p: u32, q: u32| json!({ "ends": [a, b], "ports": [p, q] });
        for (hosts, links, tables, expected) in [
            (json!(["a", "a"]), json!([]), json!({}), "fabric.hosts[1] = \"a\": every host once"),
            (json!(["a", "b"]), json!([link("a", "b")]), json!({}), "fabric.links[0].ends = a, b: a cable joins"),
            (json!(["a"]), json!([link("a", "s"), link("s", "s")]), json!({}), "fabric.links[1].ends = s, s"),
            (
                json!(["a", "b"]),
                json!([link("a", "s"), link("b", "t")]),
                json!({}),
                "no way leads from \"a\" to \"b\" and 1",
            ),
            (json!(["a", "b"]), json!([link("a", "s")]), json!({}), "no way leads from \"a\" to \"b\""),
            (
                json!(["a", "b"]),
                json!([port("a", "s", 1, 7), port("b", "s", 1, 7)]),
                json!({}),
                "fabric.links[1].ports = 7: port 7 of \"s\" has a cable already: links[0]",
            ),
            (json!([]), json!([link("a", "s")]), json!({}), "fabric.hosts: no hosts"),
            (json!(["a"]), json!([link("a", "s")]), json!({ "t": [1] }), "fabric.tables.t: no link has a switch"),
            (
                json!(["a"]),
                json!([link("a", "s")]),
                json!({ "s": [1] }),
                "fabric.tables.s[0] = 1: no link ends at port 1",
            ),
            (
                json!(["a"]),
                json!([link("a", "s")]),
                json!({ "s": [] }),
                "fabric.tables.s = 0 ports: one for each of the 1 adapters",
            ),
        ] {
            let message = error(json!({ "hosts": hosts, "links": links, "tables": tables }));
            assert!(message.contains(expected), "{expected}: {message}");
        }
        assert!(error(json!({ "file": "x.json" })).contains("fabric.file: \"x.json\" was not read"));
    }
}
