//! Slim Fly: a network of diameter 2 on a McKay-Miller-Siran graph, whose number of switches is near the most that the degree
//! allows, the Moore bound (M. Besta and T. Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014;
//! B. D. McKay, M. Miller and J. Siran, "A note on large graphs of diameter two and given maximum degree", J. Combinatorial
//! Theory B 74, 1998; the even sizes: P. R. Hafner, "Geometric realisation of the graphs of McKay-Miller-Siran", J.
//! Combinatorial Theory B 90, 2004).
//!
//! For a prime power `q = 4w + delta` with `delta` in -1, 0, 1, the switches are `(0, x, y)` and `(1, m, c)` with coordinates
//! in the field of `q` elements. With `g` the powers of a primitive element divided into two sets `X` and `X'`:
//!
//! - `(0, x, y)` and `(0, x, y')` are joined if `y - y'` is in `X`,
//! - `(1, m, c)` and `(1, m, c')` are joined if `c - c'` is in `X'`,
//! - `(0, x, y)` and `(1, m, c)` are joined if `y = m x + c`.
//!
//! That makes `2 q^2` switches with `(3q - delta) / 2` cables to others each. Switches are numbered rack by rack: rack `r` has
//! the switches `(0, r, 0)`, `(0, r, 1)` and so on, then `(1, r, 0)`, `(1, r, 1)` and so on. Two racks are joined by `2 q` cables.
//! Hosts are numbered switch by switch. Ports of a switch: hosts, then cables within the rack and between racks.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lattice::{self, Wires};
use super::size::product;
use super::{Build, Entry, Graph, GraphBuilder, Size, Vertex};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::units::{BitsPerSec, Picoseconds};

/// The Slim Fly's line in the table.
pub const ENTRY: Entry = Entry {
    name: "slim_fly",
    summary: "diameter 2 with nearly as many switches as the degree allows: McKay-Miller-Siran graphs",
    schema: || schema_for!(Params),
    build: Build {
        routing: "minimal",
        size: |json| crate::table::params::<Params>("fabric", json)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", json)?.build(),
    },
};

/// The largest field: its Slim Fly has 131,072 switches.
const MAX_Q: u32 = 256;

/// A network of diameter 2 with nearly as many switches as the degree allows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Size of the field, a prime power from 3 on: 3, 4, 5, 7, 8, 9, 11, 13 ... There are 2 q x q switches with about
    /// 1.5 q cables to others each.
    #[schemars(range(min = 3, max = 256))]
    q: u32,
    /// Hosts of a switch. Default: half as many as its cables to other switches, rounded up, which balances a Slim Fly.
    #[serde(default)]
    #[schemars(range(min = 1))]
    hosts_per_switch: Option<u32>,
    /// Expected number of hosts, as a check: 2 q x q x hosts of a switch.
    #[serde(default)]
    hosts: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "lattice::default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "lattice::default_latency")]
    latency: Picoseconds,
    /// Latency of the links between racks. Default: `latency`.
    #[serde(default)]
    global_latency: Option<Picoseconds>,
    /// Bandwidth of the links between hosts and switches. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
}

/// All three kinds of fields, one of them not of a prime number of elements; balanced or not.
fn examples() -> Value {
    json!([{ "q": 3, "hosts_per_switch": 1 }, { "q": 4, "hosts_per_switch": 2 }, { "q": 5 }, { "q": 9, "hosts_per_switch": 1 }])
}

impl Params {
    /// Cables of a switch to others, once `q` has been checked.
    fn degree(&self) -> Result<u32, BuildError> {
        let is_size = |q: &u32| prime_of(*q).is_some() && q % 4 != 2;
        if (3..=MAX_Q).contains(&self.q) && is_size(&self.q) {
            return Ok(match self.q % 4 {
                1 => (3 * self.q - 1) / 2,
                3 => (3 * self.q).div_ceil(2),
                _ => 3 * self.q / 2,
            });
        }
        let below = (3..self.q.min(MAX_Q + 1)).rev().find(is_size);
        let above = (self.q.max(3)..=MAX_Q).find(is_size);
        let near: Vec<String> = [below, above].into_iter().flatten().map(|q| q.to_string()).collect();
        let allowed = format!("a prime power from 3 to {MAX_Q}; the nearest: {}", near.join(" and "));
        Err(BuildError::value("fabric.q", self.q, allowed))
    }

    /// Hosts of a switch, and its cables to others.
    fn ports(&self) -> Result<[u32; 2], BuildError> {
        let degree = self.degree()?;
        let hosts = self.hosts_per_switch.unwrap_or(degree.div_ceil(2));
        lattice::at_least_one(&[("hosts_per_switch", hosts)])?;
        Ok([hosts, degree])
    }

    fn size(&self) -> Result<Size, BuildError> {
        let [hosts, degree] = self.ports()?.map(u64::from);
        let switches = 2 * u64::from(self.q * self.q);
        let hosts = product([switches, hosts]);
        let cables = product([switches, degree]) / 2;
        let per_switch = hosts / switches;
        Size::of(
            hosts,
            switches,
            [("hosts_per_switch", per_switch.to_string(), hosts), ("q", self.q.to_string(), cables)],
        )
    }

    fn build(&self) -> Result<Graph, BuildError> {
        let [hosts, _] = self.ports()?;
        let (q, field) = (self.q, Field::new(self.q));
        lattice::check_hosts(self.hosts, 2 * u64::from(q * q), hosts, "2 q x q")?;
        let wires = Wires::new(self.bandwidth, self.latency, self.host_bandwidth);
        let mut graph = GraphBuilder::default();
        lattice::add_switches(&mut graph, 2 * q * q, hosts, wires);
        let switch = |part: u32, rack: u32, place: u32| Vertex::Switch(SwitchId((2 * rack + part) * q + place));
        for rack in 0..q {
            for (part, set) in (0..).zip(field.generators()) {
                for place in 0..q {
                    let others = set.iter().map(|step| field.add(place, *step)).filter(|other| *other > place);
                    others.for_each(|other| {
                        wires.join(&mut graph, switch(part, rack, place), switch(part, rack, other), "local")
                    });
                }
            }
        }
        let between = wires.with_latency(self.global_latency);
        for (x, m) in (0..q).flat_map(|x| (0..q).map(move |m| (x, m))) {
            let (wires, class) = if x == m { (wires, "local") } else { (between, "global") };
            let slope = field.product(m, x);
            (0..q).for_each(|c| wires.join(&mut graph, switch(0, x, field.add(slope, c)), switch(1, m, c), class));
        }
        graph.build()
    }
}

/// The prime of which `q` is a power, if it is one.
fn prime_of(q: u32) -> Option<u32> {
    let prime = (2..=q).find(|factor| q.is_multiple_of(*factor))?;
    let mut rest = q;
    while rest.is_multiple_of(prime) {
        rest /= prime;
    }
    (rest == 1).then_some(prime)
}

/// The field of `q` elements, `q` a prime power. Elements are numbered by their coefficients: those of the polynomial
/// `a + b z + c z^2 ...` are the digits of its number in base `p`.
struct Field {
    q: u32,
    p: u32,
    /// The powers of a primitive element.
    powers: Vec<u32>,
    /// By element other than zero: which power it is.
    logarithms: Vec<u32>,
}

impl Field {
    fn new(q: u32) -> Self {
        let p = prime_of(q).expect("invariant: a prime power");
        // A prime field: the first number whose powers are all elements but zero. Any other: `z` is primitive modulo the first
        // monic polynomial for which that holds; no polynomial that can be factored has that property.
        let powers = (1..q).find_map(|choice| {
            let next = |element: u32| if q == p { element * choice % p } else { times_z(element, choice, q, p) };
            let powers: Vec<u32> =
                std::iter::successors(Some(1), |last| Some(next(*last))).take(q as usize - 1).collect();
            let mut sorted = powers.clone();
            sorted.sort_unstable();
            sorted.iter().copied().eq(1..q).then_some(powers)
        });
        let powers = powers.expect("invariant: every field has a primitive element");
        let mut logarithms = vec![0; q as usize];
        (0..).zip(&powers).for_each(|(power, element)| logarithms[*element as usize] = power);
        Self { q, p, powers, logarithms }
    }

    fn add(&self, a: u32, b: u32) -> u32 {
        let (mut a, mut b, mut place, mut sum) = (a, b, 1, 0);
        while a + b > 0 {
            sum += (a % self.p + b % self.p) % self.p * place;
            (a, b, place) = (a / self.p, b / self.p, place * self.p);
        }
        sum
    }

    fn product(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        let power = self.logarithms[a as usize] + self.logarithms[b as usize];
        self.powers[(power % (self.q - 1)) as usize]
    }

    /// The sets `X` and `X'`: the even and the odd powers, where an even `q` counts the power `q - 1`, which is 1, among the odd ones,
    /// too. Of `q = 4w - 1` they are the first `w` of each, and the negatives of these, `2w - 1` powers further on.
    fn generators(&self) -> [Vec<u32>; 2] {
        let of_parity = |odd: usize| self.powers.iter().skip(odd).step_by(2).copied();
        if self.q % 4 != 3 {
            let last = self.q.is_multiple_of(2).then_some(1);
            return [of_parity(0).collect(), of_parity(1).chain(last).collect()];
        }
        let w = self.q.div_ceil(4) as usize;
        let negative = |element: u32| self.product(element, self.powers[2 * w - 1]);
        [0, 1].map(|odd| of_parity(odd).take(w).flat_map(|element| [element, negative(element)]).collect())
    }
}

/// `z` times an element, modulo the polynomial `z^m - rest` whose `rest` has this number.
fn times_z(element: u32, rest: u32, q: u32, p: u32) -> u32 {
    let top = q / p;
    let (leading, mut shifted) = (element / top, element % top * p);
    let (mut sum, mut rest, mut place) = (0, rest, 1);
    while place < q {
        sum += (shifted % p + leading * (rest % p)) % p * place;
        (shifted, rest, place) = (shifted / p, rest / p, place * p);
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn neighbours(graph: &Graph, switch: u32) -> BTreeSet<u32> {
        let far = graph.ports(Vertex::Switch(SwitchId(switch))).filter_map(|link| match graph.link(link).to {
            Vertex::Switch(to) => Some(to.0),
            Vertex::Host(_) => None,
        });
        far.collect()
    }

    /// Besta and Hoefler, table II: degree (3q - delta) / 2 and diameter 2. A set of neighbours has no repetition, so there are
    /// no parallel cables and no loops.
    #[test]
    fn every_size_has_diameter_two_and_the_degree_of_the_paper() {
        for (q, delta) in
            [(3, -1), (4, 0), (5, 1), (7, -1), (8, 0), (9, 1), (11, -1), (13, 1), (16, 0), (25, 1), (27, -1)]
        {
            let graph = crate::topology::build("slim_fly", &json!({ "q": q, "hosts_per_switch": 1 })).unwrap();
            let degree = usize::try_from((3 * q - delta) / 2).unwrap();
            let count = u32::try_from(graph.switches()).unwrap();
            assert_eq!(i64::from(count), 2 * q * q);
            let around: Vec<BTreeSet<u32>> = (0..count).map(|switch| neighbours(&graph, switch)).collect();
            for (switch, own) in (0..count).zip(&around) {
                assert_eq!(own.len(), degree, "q = {q}");
                assert_eq!(graph.ports(Vertex::Switch(SwitchId(switch))).len(), degree + 1, "q = {q}");
                let mut reached: BTreeSet<u32> = own.iter().flat_map(|near| &around[*near as usize]).copied().collect();
                reached.extend(own.iter().copied().chain([switch]));
                assert_eq!(reached.len(), 2 * (q * q) as usize, "q = {q}");
            }
        }
    }

    /// The graph of q = 5 is the Hoffman-Singleton graph: it meets the Moore bound, 1 + 7 + 7 x 6 = 50, so no two switches have more
    /// than one shortest path.
    #[test]
    fn five_is_the_hoffman_singleton_graph() {
        let graph = crate::topology::build("slim_fly", &json!({ "q": 5 })).unwrap();
        assert_eq!((graph.switches(), graph.hosts()), (50, 200));
        let around: Vec<BTreeSet<u32>> = (0..50).map(|switch| neighbours(&graph, switch)).collect();
        for (a, b) in (0..50_usize).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let common = around[a].intersection(&around[b]).count();
            assert_eq!(common, usize::from(!around[a].contains(&u32::try_from(b).unwrap())), "{a} and {b}");
        }
    }

    #[test]
    fn two_racks_are_joined_by_two_q_cables() {
        let graph = crate::topology::build("slim_fly", &json!({ "q": 7, "global_latency": 5000 })).unwrap();
        let mut between = std::collections::BTreeMap::new();
        for link in graph.links() {
            if let (Vertex::Switch(a), Vertex::Switch(b)) = (link.from, link.to) {
                assert_eq!(link.latency.0 == 5000, a.0 / 14 != b.0 / 14);
                *between.entry((a.0 / 14, b.0 / 14)).or_insert(0) += 1;
            }
        }
        assert!(between.iter().all(|((a, b), links)| a == b || *links == 14), "{between:?}");
        assert_eq!(between.len(), 49);
    }

    #[test]
    fn errors_name_the_nearest_size() {
        for (params, expected) in [
            (json!({ "q": 6 }), "fabric.q = 6: a prime power from 3 to 256; the nearest: 5 and 7"),
            (json!({ "q": 2 }), "fabric.q = 2: a prime power from 3 to 256; the nearest: 3"),
            (json!({ "q": 4_000_000_000_u32 }), "fabric.q = 4000000000: a prime power from 3 to 256; the nearest: 256"),
            (json!({ "q": 5, "hosts_per_switch": 0 }), "fabric.hosts_per_switch = 0: at least 1"),
            (json!({ "q": 5, "hosts": 100 }), "fabric.hosts = 100: 2 q x q x hosts_per_switch is 200"),
        ] {
            let message = crate::topology::build("slim_fly", &params).unwrap_err().to_string();
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
