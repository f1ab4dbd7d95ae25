//! Random regular graph: every switch has equally many cables to other switches, drawn at random (A. Singla et al., "Jellyfish:
//! networking data centers randomly", NSDI 2012).
//!
//! The graph is drawn by the pairing model (N. C. Wormald, "Models of random regular graphs", 1999): the ports of all switches are
//! paired at random, and what makes a loop, a second cable between two switches or a graph in several parts is mended by swapping
//! the ends of two cables chosen at random, as Jellyfish does. Where a switch has cables to more than half of the others, the graph of
//! the missing cables is drawn in the same way. The same seed gives the same graph on every platform.
//!
//! Hosts are numbered switch by switch. Ports of a switch: hosts, then cables to others in the order of their numbers.

use std::collections::BTreeSet;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lattice::{self, Wires};
use super::size::product;
use super::{Build, Entry, Graph, GraphBuilder, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// The random regular graph's line in the table.
pub const ENTRY: Entry = Entry {
    name: "random_regular",
    summary: "Jellyfish: every switch has equally many cables to others, drawn at random",
    schema: || schema_for!(Params),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", json)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", json)?.build(),
    },
};

/// A random regular graph of switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Number of switches ("N").
    #[schemars(range(min = 2, max = 1_048_576))]
    switches: u32,
    /// Cables of a switch to other switches ("r"). Switches x degree is even.
    #[schemars(range(min = 1))]
    degree: u32,
    /// Hosts of a switch ("k - r").
    #[schemars(range(min = 1))]
    hosts_per_switch: u32,
    /// Seed of the graph: another seed, another graph. Default: 0.
    #[serde(default)]
    seed: u64,
    /// Expected number of hosts, as a check: switches x hosts of a switch.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and switches. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
}

/// Sparse and dense, odd and even, and one that is all switches joined with all.
fn examples() -> Value {
    json!([
        { "switches": 16, "degree": 4, "hosts_per_switch": 2 },
        { "switches": 20, "degree": 3, "hosts_per_switch": 1, "seed": 7 },
        { "switches": 11, "degree": 8, "hosts_per_switch": 1 },
        { "switches": 5, "degree": 4, "hosts_per_switch": 3 },
    ])
}

impl Params {
    fn check(&self) -> Result<(), BuildError> {
        lattice::at_least_one(&[("hosts_per_switch", self.hosts_per_switch), ("degree", self.degree)])?;
        let (count, degree) = (u64::from(self.switches), self.degree);
        if !(2..=lattice::MAX_SWITCHES).contains(&count) {
            let allowed = format!("2 to {} switches", lattice::MAX_SWITCHES);
            return Err(BuildError::value("fabric.switches", count, allowed));
        }
        let refuse = |allowed: String| Err(BuildError::value("fabric.degree", degree, allowed));
        if u64::from(degree) >= count {
            return refuse(format!("at most {}: {count} switches have that many others to be joined with", count - 1));
        }
        if (count * u64::from(degree)) % 2 == 1 {
            let near = [degree - 1, degree + 1].map(|near| near.to_string()).join(" or ");
            return refuse(format!(
                "an even number, as {near}, because the number of switches, {count}, is odd: a cable has two ends"
            ));
        }
        if degree == 1 && count > 2 {
            return refuse("2 or more: with one cable each, only two switches are connected".to_owned());
        }
        Ok(())
    }

    fn size(&self) -> Result<Size, BuildError> {
        self.check()?;
        let switches = u64::from(self.switches);
        let hosts = product([switches, self.hosts_per_switch.into()]);
        let cables = product([switches, self.degree.into()]) / 2;
        Size::of(
            hosts,
            switches,
            [
                ("hosts_per_switch", self.hosts_per_switch.to_string(), hosts),
                ("degree", self.degree.to_string(), cables),
            ],
        )
    }

    fn build(&self) -> Result<Graph, BuildError> {
        self.check()?;
        lattice::check_hosts(self.hosts, self.switches.into(), self.hosts_per_switch, "switches")?;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, self.switches, self.hosts_per_switch, wires);
        for (a, b) in cables(self.switches, self.degree, self.seed) {
            let [a, b] = [a, b].map(|switch| Vertex::Switch(SwitchId(switch)));
            wires.join(&mut graph, a, b, "between switches");
        }
        graph.build()
    }
}

/// The two switches that a cable joins, the lower one first.
type Pair = (u32, u32);

const fn pair(a: u32, b: u32) -> Pair {
    if a < b { (a, b) } else { (b, a) }
}

/// The cables of a connected random graph of `count` switches with `degree` cables each, in ascending order.
fn cables(count: u32, degree: u32, seed: u64) -> BTreeSet<Pair> {
    let mut random = crate::rng::stream(seed, "random_regular", 0);
    let missing = count - 1 - degree;
    if missing < degree {
        // With at least half of all others as neighbours, two switches are joined or have a common neighbour.
        let absent = Draw::new(count, missing, &mut random).cables;
        return (0..count)
            .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
            .filter(|pair| !absent.contains(pair))
            .collect();
    }
    let mut draw = Draw::new(count, degree, &mut random);
    draw.connect(count, &mut random);
    draw.cables
}

/// A graph that is being drawn.
struct Draw {
    /// The cables in no particular order: one at random is one of these.
    list: Vec<Pair>,
    cables: BTreeSet<Pair>,
}

impl Draw {
    /// A graph without loops and parallel cables.
    fn new(count: u32, degree: u32, random: &mut ChaCha8Rng) -> Self {
        let mut ports: Vec<u32> = (0..count).flat_map(|switch| (0..degree).map(move |_| switch)).collect();
        for last in (1..u32::try_from(ports.len()).expect("invariant: links have 32-bit numbers")).rev() {
            ports.swap(last as usize, random.random_range(0..=last) as usize);
        }
        let mut draw = Self { list: Vec::with_capacity(ports.len() / 2), cables: BTreeSet::new() };
        let mut refused = Vec::new();
        for ends in ports.chunks_exact(2) {
            let (a, b) = (ends[0], ends[1]);
            if a != b && draw.cables.insert(pair(a, b)) { draw.list.push(pair(a, b)) } else { refused.push((a, b)) }
        }
        // Each swap lays two cables in place of one that was refused and one that was there.
        for (a, b) in refused {
            while !draw.swap((a, b), random) {}
        }
        draw
    }

    /// Takes a cable away at random and joins its ends with `a` and `b`; not if that makes a loop or a parallel cable.
    fn swap(&mut self, (a, b): Pair, random: &mut ChaCha8Rng) -> bool {
        let number = random.random_range(0..u32::try_from(self.list.len()).unwrap_or(u32::MAX)) as usize;
        let (c, d) = self.list[number];
        let (c, d) = if random.random_range(0..2_u32) == 0 { (c, d) } else { (d, c) };
        let laid = [pair(a, c), pair(b, d)];
        if a == c || b == d || laid[0] == laid[1] || laid.iter().any(|pair| self.cables.contains(pair)) {
            return false;
        }
        self.cables.remove(&pair(c, d));
        self.cables.extend(laid);
        self.list[number] = laid[0];
        self.list.push(laid[1]);
        true
    }

    /// Swaps cables of different parts until there is one part. A part has cables that lie on a cycle; a swap with one of these
    /// makes one part of two.
    fn connect(&mut self, count: u32, random: &mut ChaCha8Rng) {
        let mut parts = self.parts(count);
        while parts.iter().any(|part| *part > 0) {
            let last = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            let numbers = [0, 1].map(|_| random.random_range(0..last) as usize);
            let [(a, b), (c, d)] = numbers.map(|number| self.list[number]);
            if parts[a as usize] == parts[c as usize] {
                continue;
            }
            let before = parts.iter().max().copied();
            let mut exchange = |old: [Pair; 2], new: [Pair; 2]| {
                old.iter().for_each(|pair| {
                    self.cables.remove(pair);
                });
                self.cables.extend(new);
                (self.list[numbers[0]], self.list[numbers[1]]) = (new[0], new[1]);
            };
            let (old, new) = ([(a, b), (c, d)], [pair(a, c), pair(b, d)]);
            exchange(old, new);
            let joined = self.parts(count);
            if joined.iter().max().copied() < before {
                parts = joined;
            } else {
                self.cables.remove(&new[0]);
                self.cables.remove(&new[1]);
                self.cables.extend(old);
                (self.list[numbers[0]], self.list[numbers[1]]) = (old[0], old[1]);
            }
        }
    }

    /// The number of the part of every switch.
    fn parts(&self, count: u32) -> Vec<u32> {
        let mut around = vec![Vec::new(); count as usize];
        for &(a, b) in &self.cables {
            around[a as usize].push(b);
            around[b as usize].push(a);
        }
        let mut parts = vec![u32::MAX; count as usize];
        let mut number = 0;
        for first in 0..count {
            let mut open = vec![first];
            let before = parts[first as usize];
            while let Some(at) = open.pop() {
                if parts[at as usize] == u32::MAX {
                    parts[at as usize] = number;
                    open.extend(&around[at as usize]);
                }
            }
            number += u32::from(before == u32::MAX);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(count: u32, cables: &BTreeSet<Pair>) -> Vec<u32> {
        let mut degrees = vec![0; count as usize];
        cables.iter().flat_map(|(a, b)| [a, b]).for_each(|end| degrees[*end as usize] += 1);
        degrees
    }

    #[test]
    fn graphs_of_all_degrees_are_regular_and_connected() {
        for count in 2..=14 {
            for degree in (1..count).filter(|degree| count * degree % 2 == 0 && (*degree > 1 || count == 2)) {
                for seed in 0..8 {
                    let cables = cables(count, degree, seed);
                    assert!(cables.iter().all(|(a, b)| a < b), "{count}, {degree}, {seed}");
                    assert_eq!(degrees(count, &cables), vec![degree; count as usize], "{count}, {degree}, {seed}");
                    let draw = Draw { list: Vec::new(), cables };
                    assert!(draw.parts(count).iter().all(|part| *part == 0), "{count}, {degree}, {seed}");
                }
            }
        }
    }

    /// Cycles are drawn in several parts nearly always: these are joined.
    #[test]
    fn two_cables_a_switch_make_one_cycle() {
        for seed in 0..20 {
            let cables = cables(60, 2, seed);
            let draw = Draw { list: Vec::new(), cables };
            assert!(draw.parts(60).iter().all(|part| *part == 0));
        }
    }

    #[test]
    fn a_seed_is_a_graph() {
        let graph = |seed| cables(8, 3, seed).into_iter().collect::<Vec<_>>();
        assert_eq!(graph(1), graph(1));
        assert_ne!(graph(1), graph(2));
        // The same on every platform and with every later version.
        let expected = [(0, 1), (0, 3), (0, 5), (1, 2), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 6), (4, 7), (6, 7)];
        assert_eq!(graph(1), expected);
    }

    /// Of 8 switches with 3 of 7 possible neighbours each every one of the 28 pairs is joined with probability 3/7.
    #[test]
    fn all_pairs_are_joined_equally_often() {
        let mut joined = std::collections::BTreeMap::new();
        let seeds = 2000;
        (0..seeds).flat_map(|seed| cables(8, 3, seed)).for_each(|pair| *joined.entry(pair).or_insert(0_u32) += 1);
        assert_eq!(joined.len(), 28);
        // Five times the standard deviation, sqrt(2000 x 3/7 x 4/7) = 22.1, around 857.
        assert!(joined.values().all(|times| times.abs_diff(857) < 111), "{joined:?}");
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (switches, degree, hosts, expected) in [
            (1, 1, 1, "fabric.switches = 1: 2 to 1048576 switches"),
            (9, 3, 1, "fabric.degree = 3: an even number, as 2 or 4, because the number of switches, 9, is odd"),
            (9, 9, 1, "fabric.degree = 9: at most 8: 9 switches have"),
            (4, 1, 1, "fabric.degree = 1: 2 or more"),
            (4, 0, 1, "fabric.degree = 0: at least 1"),
            (4, 3, 0, "fabric.hosts_per_switch = 0: at least 1"),
            (1 << 20, 1 << 19, 1, "fabric.degree = 524288: at most 134217728 links"),
        ] {
            let params = json!({ "switches": switches, "degree": degree, "hosts_per_switch": hosts });
            let message = crate::topology::build("random_regular", &params).unwrap_err().to_string();
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
