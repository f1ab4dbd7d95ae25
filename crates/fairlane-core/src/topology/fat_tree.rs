//! Fat-trees of one, two or three levels: full bisection or tapered, any number of hosts that fits.
//!
//! The wiring is that of a parallel-port generalised fat-tree (PGFT; E. Zahavi, "Fat-tree routing and node ordering
//! providing contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72, 2012). A *group* of
//! level `l` is what hangs below one set of alternative switches: a leaf with its hosts, a pod, the whole tree. Each
//! switch of a group has the same children; each has `parents` switches above it, and `trunk` parallel cables to each.
//!
//! Hosts are numbered leaf by leaf; where their number does not fill the tree, the last leaf and the last pod are
//! partly filled, and the switches above them keep their ports free. Ports of a switch: first down, child by child and
//! the cables of a trunk side by side; then up, so that up port `q` leads to parent `q mod parents`.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

use super::preset::{self, Preset};
use super::size::{product, sum};
use super::{Build, Entry, Graph, GraphBuilder, Size, Vertex};
use crate::error::BuildError;
use crate::ids::HostId;
use crate::units::{BitsPerSec, Picoseconds};

/// The fat-tree's line in the table.
pub const ENTRY: Entry = Entry {
    name: "fat_tree",
    summary: "fat-tree of one to three levels of switches, full bisection or tapered",
    schema: || preset::schema(schema_for!(Params), PRESETS),
    build: Build {
        routing: "d_mod_k",
        size: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.size(),
        graph: |json| crate::table::params::<Params>("fabric", &preset::apply(json, PRESETS)?)?.build(),
    },
};

const PRESETS: &[Preset] = &[
    // T. Patki, E. Ates, A. Coskun and J. Thiagarajan, "Understanding simultaneous impact of network QoS and power on HPC
    // application performance", 2016. QDR: four lanes of 10 Gb/s with 8b/10b code.
    Preset {
        name: "catalyst",
        summary: "one rail of Catalyst (Patki et al. 2016): 324 hosts, 18 leaves of 18 hosts, 9 spines, InfiniBand QDR",
        params: || json!({ "hosts": 324, "levels": 2, "radix": 36, "bandwidth": 32_000_000_000_u64 }),
    },
    // J. J. Wilke and J. P. Kenny, "Opportunities and limitations of quality-of-service in message passing applications
    // on adaptively routed dragonfly and fat tree networks", IPDPS 2020.
    Preset {
        name: "wilke2020",
        summary: "8192 hosts, 640 switches of 64 ports: 256 leaves, 256 aggregation, 128 core (Wilke and Kenny, IPDPS 2020)",
        params: || json!({ "hosts": 8192, "levels": 3, "radix": 64 }),
    },
    Preset {
        name: "wilke2020-tapered",
        summary: "8192 hosts, 480 switches with 36 ports down and 27 up: 228 leaves, 171 aggregation, 81 core",
        params: || {
            json!({ "hosts": 8192, "levels": 3, "radix": 64, "leaf_down": 36, "leaf_up": 27, "aggregation_down": 36,
                    "aggregation_up": 27, "leaves_per_pod": 12 })
        },
    },
];

const MAX_HOSTS: u32 = 1 << 20;
const MAX_RADIX: u32 = 4096;
/// Two levels are the default as long as switches of this many ports are enough for them.
const USUAL_RADIX: u32 = 64;
/// Links are classed by the lower of their two ends, hosts first.
const CLASSES: [[&str; 2]; 3] =
    [["host up", "host down"], ["leaf up", "leaf down"], ["aggregation up", "aggregation down"]];

/// A fat-tree of one to three levels of switches: hosts, leaf, (aggregation,) top.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = examples()))]
struct Params {
    /// Number of hosts. They are numbered leaf by leaf; the last leaf and the last pod may be partly filled.
    #[schemars(range(min = 1, max = 1_048_576))]
    hosts: u32,
    /// Levels of switches, 1 to 3. Default: 2 if the hosts fit (in switches of up to 64 ports, unless `radix` says
    /// otherwise), else 3; 3 if a parameter of pods or aggregation switches is given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 3))]
    levels: Option<u8>,
    /// Ports of each switch. Default: the smallest even number that fits.
    #[serde(default)]
    #[schemars(range(min = 2, max = 4096))]
    radix: Option<u32>,
    /// Ports of a leaf that lead to hosts. Default: half of the radix, or what `leaf_up` leaves over.
    #[serde(default)]
    leaf_down: Option<u32>,
    /// Ports of a leaf that lead up; fewer than `leaf_down` make a tapered tree. Default: as many as `leaf_down`, or
    /// what that leaves over.
    #[serde(default)]
    leaf_up: Option<u32>,
    /// Ports of an aggregation switch that lead to leaves. Default: as for `leaf_down`.
    #[serde(default)]
    aggregation_down: Option<u32>,
    /// Ports of an aggregation switch that lead to the top. Default: as for `leaf_up`.
    #[serde(default)]
    aggregation_up: Option<u32>,
    /// Leaves in a pod of a three-level tree; it divides `aggregation_down`, and the quotient, the number of parallel
    /// cables from a leaf to an aggregation switch, divides `leaf_up`. Default: `aggregation_down`, single cables.
    #[serde(default)]
    leaves_per_pod: Option<u32>,
    /// Bandwidth of every link. Default: 100 Gb/s.
    #[serde(default = "default_bandwidth")]
    bandwidth: BitsPerSec,
    /// Latency of every link. Default: 100 ns.
    #[serde(default = "default_latency")]
    latency: Picoseconds,
    /// Bandwidth of the links between hosts and leaves. Default: `bandwidth`.
    #[serde(default)]
    host_bandwidth: Option<BitsPerSec>,
    /// Latency of the links between hosts and leaves. Default: `latency`.
    #[serde(default)]
    host_latency: Option<Picoseconds>,
}

const fn default_bandwidth() -> BitsPerSec {
    BitsPerSec(100_000_000_000)
}

const fn default_latency() -> Picoseconds {
    Picoseconds::from_nanos(100)
}

/// Shapes known from machines and studies, as the schema shows them.
fn examples() -> Value {
    json!([
        // 8 leaves of 8 hosts, 4 spines, trunks of 2.
        { "hosts": 64, "levels": 2, "radix": 16 },
        // 18 leaves of 18 hosts, 9 spines, trunks of 2.
        { "hosts": 324, "levels": 2, "radix": 36 },
        // 4 pods of 18 leaves and 18 aggregation switches, 36 core switches.
        { "hosts": 1296, "levels": 3, "radix": 36 },
        // The "k = 8 fat-tree": 8 pods of 4 and 4 switches, 16 core switches.
        { "hosts": 128, "levels": 3, "radix": 8 },
    ])
}

/// One level of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// Children (hosts at level 1) of each switch, as many as there may be.
    children: u32,
    /// Switches above each switch; 0 at the top.
    parents: u32,
    /// Parallel cables to each of them.
    trunk: u32,
}

impl Params {
    fn build(&self) -> Result<Graph, BuildError> {
        self.wire(&self.checked()?)
    }

    fn size(&self) -> Result<Size, BuildError> {
        let (mut groups, mut width) = (u64::from(self.hosts), 1_u64);
        let (mut switches, mut cables, mut lower) = (0_u64, 0_u64, Level { children: 0, parents: 1, trunk: 1 });
        for level in self.checked()? {
            let up = product([groups, width, lower.parents.into(), lower.trunk.into()]);
            (groups, width) = (groups.div_ceil(level.children.max(1).into()), width * u64::from(lower.parents));
            switches = sum([switches, product([groups, width])]);
            cables = sum([cables, up]);
            lower = level;
        }
        Ok(Size::new(self.hosts.into(), switches, cables))
    }

    /// The levels, if all is in order.
    fn checked(&self) -> Result<Vec<Level>, BuildError> {
        if !(1..=MAX_HOSTS).contains(&self.hosts) {
            return Err(BuildError::value("fabric.hosts", self.hosts, format!("1 to {MAX_HOSTS} hosts")));
        }
        if let Some(radix) = self.radix.filter(|radix| !(2..=MAX_RADIX).contains(radix)) {
            return Err(BuildError::value("fabric.radix", radix, format!("2 to {MAX_RADIX} ports")));
        }
        self.shape()
    }

    /// The levels of the smallest tree that follows the parameters, leaves first.
    fn shape(&self) -> Result<Vec<Level>, BuildError> {
        let least = self.least_levels()?;
        let Some(levels) = self.levels else {
            let usual = self.leaf_down.unwrap_or(0).saturating_add(self.leaf_up.unwrap_or(0)).max(USUAL_RADIX);
            let two = if least == 3 { None } else { self.smallest(2, usual.min(MAX_RADIX)).ok() };
            return two.map_or_else(|| self.smallest(3, MAX_RADIX), Ok);
        };
        self.smallest(levels, MAX_RADIX)
    }

    /// How many levels the given parameters speak of, which must not be more than `levels`.
    fn least_levels(&self) -> Result<u8, BuildError> {
        let speaking = [
            (2, "fabric.leaf_down", self.leaf_down),
            (2, "fabric.leaf_up", self.leaf_up),
            (3, "fabric.aggregation_down", self.aggregation_down),
            (3, "fabric.aggregation_up", self.aggregation_up),
            (3, "fabric.leaves_per_pod", self.leaves_per_pod),
        ];
        let levels = self.levels.unwrap_or(3);
        if !(1..=3).contains(&levels) {
            return Err(BuildError::value("fabric.levels", levels, "1, 2 or 3 levels of switches"));
        }
        let given = speaking.into_iter().filter_map(|(least, path, value)| Some((least, path, value?)));
        given.max_by_key(|(least, ..)| *least).map_or(Ok(1), |(least, path, value)| {
            let allowed = || format!("only for trees of at least {least} levels, and fabric.levels is {levels}");
            if least > levels { Err(BuildError::value(path, value, allowed())) } else { Ok(least) }
        })
    }

    /// The tree of switches of `radix` ports or, if that is not given, of the fewest ports that do.
    fn smallest(&self, levels: u8, max_radix: u32) -> Result<Vec<Level>, BuildError> {
        match self.radix {
            Some(radix) => self.tree(levels, radix),
            None => (2..max_radix)
                .step_by(2)
                .find_map(|radix| self.tree(levels, radix).ok())
                .map_or_else(|| self.tree(levels, max_radix), Ok),
        }
    }

    /// The tree of `levels` levels of switches of `radix` ports.
    fn tree(&self, levels: u8, radix: u32) -> Result<Vec<Level>, BuildError> {
        let mut tree = self.below_top(levels, radix)?;
        let per_group: u64 = tree.iter().map(|level| u64::from(level.children)).product();
        let groups = u32::try_from(u64::from(self.hosts).div_ceil(per_group)).unwrap_or(u32::MAX);
        if groups > radix {
            let largest = per_group * u64::from(radix);
            let leaf = tree.first().map_or_else(String::new, |leaf| format!(", {} hosts a leaf", leaf.children));
            let allowed = format!("at most {largest} hosts fit (levels: {levels}, radix: {radix}{leaf})");
            return Err(BuildError::value("fabric.hosts", self.hosts, allowed));
        }
        if let Some(level) = tree.last_mut() {
            // The widest trunks that the top switches have ports for: fewest top switches.
            let up = level.parents;
            level.trunk = (1..=up).rev().find(|trunk| up % trunk == 0 && groups * trunk <= radix).unwrap_or(1);
            level.parents = up / level.trunk;
        }
        tree.push(Level { children: groups, parents: 0, trunk: 0 });
        Ok(tree)
    }

    /// The levels below the top one; the last of them with single cables.
    fn below_top(&self, levels: u8, radix: u32) -> Result<Vec<Level>, BuildError> {
        if levels == 1 {
            return Ok(Vec::new());
        }
        let (leaf_down, leaf_up) = split("leaf", radix, self.leaf_down, self.leaf_up)?;
        if levels == 2 {
            return Ok(vec![Level { children: leaf_down, parents: leaf_up, trunk: 1 }]);
        }
        let (down, up) = split("aggregation", radix, self.aggregation_down, self.aggregation_up)?;
        let leaves = self.leaves_per_pod.unwrap_or(down);
        if leaves == 0 || down % leaves != 0 || leaf_up % (down / leaves) != 0 {
            let allowed = format!(
                "a divisor of aggregation_down ({down}) whose quotient, the cables from a leaf to an aggregation \
                 switch, divides leaf_up ({leaf_up})"
            );
            return Err(BuildError::value("fabric.leaves_per_pod", leaves, allowed));
        }
        let trunk = down / leaves;
        Ok(vec![
            Level { children: leaf_down, parents: leaf_up / trunk, trunk },
            Level { children: leaves, parents: up, trunk: 1 },
        ])
    }

    /// Adds switches level by level and group by group, each group cabled to the groups below it.
    fn wire(&self, tree: &[Level]) -> Result<Graph, BuildError> {
        let mut graph = GraphBuilder::default();
        graph.add_hosts(self.hosts);
        let mut groups: Vec<Vec<Vertex>> = (0..self.hosts).map(|host| vec![Vertex::Host(HostId(host))]).collect();
        let mut lower = Level { children: 0, parents: 1, trunk: 1 };
        for ((depth, level), number) in tree.iter().enumerate().zip(1..) {
            let cable = self.cable(depth);
            let width = groups[0].len() * lower.parents as usize;
            let group_above = |children: &[Vec<Vertex>]| {
                let above: Vec<Vertex> = (0..width).map(|_| Vertex::Switch(graph.add_switch(number))).collect();
                children.iter().for_each(|child| cable.join(&mut graph, child, &above, lower));
                above
            };
            groups = groups.chunks(level.children as usize).map(group_above).collect();
            lower = *level;
        }
        graph.build()
    }

    /// The cables below the switches of level `depth + 1`.
    fn cable(&self, depth: usize) -> CableKind {
        let (bandwidth, latency) = match depth {
            0 => (self.host_bandwidth.unwrap_or(self.bandwidth), self.host_latency.unwrap_or(self.latency)),
            _ => (self.bandwidth, self.latency),
        };
        CableKind { bandwidth, latency, classes: CLASSES[depth] }
    }
}

/// The cables between two levels.
struct CableKind {
    bandwidth: BitsPerSec,
    latency: Picoseconds,
    classes: [&'static str; 2],
}

impl CableKind {
    /// Joins each member of a group to its parents. The parents are gone round once for each cable of a trunk, so that
    /// up port `q` leads to parent `q mod parents`.
    fn join(&self, graph: &mut GraphBuilder, group: &[Vertex], above: &[Vertex], level: Level) {
        let [up, down] = self.classes;
        for (index, &child) in group.iter().enumerate() {
            for port in 0..level.parents * level.trunk {
                let parent = above[index + group.len() * (port % level.parents) as usize];
                graph.add_cable(child, parent, self.bandwidth, self.latency, up, down);
            }
        }
    }
}

/// How many ports of a switch lead down and up: half and half unless said otherwise, never more than `radix`.
fn split(kind: &str, radix: u32, down: Option<u32>, up: Option<u32>) -> Result<(u32, u32), BuildError> {
    let (down, up) = match (down, up) {
        (Some(down), Some(up)) => (down, up),
        (Some(down), None) => (down, down.min(radix.saturating_sub(down))),
        (None, Some(up)) => (radix.saturating_sub(up), up),
        (None, None) => (radix / 2, radix / 2),
    };
    let fits = down >= 1 && up >= 1 && down.checked_add(up).is_some_and(|ports| ports <= radix);
    if fits {
        return Ok((down, up));
    }
    let path = format!("fabric.{kind}_down, fabric.{kind}_up");
    let allowed = format!("each at least 1, together at most the radix ({radix})");
    Err(BuildError::value(path, format!("{down}, {up}"), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SwitchId;

    fn build(params: Value) -> Graph {
        crate::topology::build("fat_tree", &params).unwrap()
    }

    fn error(params: Value) -> String {
        crate::topology::build("fat_tree", &params).unwrap_err().to_string()
    }

    /// Switches of each level, leaves first.
    fn switches(graph: &Graph) -> Vec<usize> {
        let levels: Vec<u8> = (0..).take(graph.switches()).map(|switch| graph.level(SwitchId(switch))).collect();
        let top = levels.iter().copied().max().unwrap();
        (1..=top).map(|level| levels.iter().filter(|other| **other == level).count()).collect()
    }

    /// Links of each class.
    fn links(graph: &Graph, class: &str) -> usize {
        graph.links().iter().filter(|link| graph.classes()[usize::from(link.class)] == class).count()
    }

    #[test]
    fn the_examples_have_their_known_shapes() {
        let known: [(usize, &[usize]); 7] = [
            (64, &[8, 4]),
            (324, &[18, 9]),
            (1296, &[72, 72, 36]),
            (128, &[32, 32, 16]),
            (324, &[18, 9]),
            (8192, &[256, 256, 128]),
            (8192, &[228, 171, 81]),
        ];
        let mut shapes = examples().as_array().unwrap().clone();
        shapes.extend(PRESETS.iter().map(|preset| json!({ "preset": preset.name })));
        assert_eq!(shapes.len(), known.len());
        for (params, (hosts, expected)) in shapes.iter().zip(known) {
            let graph = build(params.clone());
            assert_eq!((graph.hosts(), switches(&graph).as_slice()), (hosts, expected), "{params}");
        }
        let tapered = build(shapes[6].clone());
        assert_eq!(["leaf up", "aggregation down"].map(|class| links(&tapered, class)), [228 * 27, 171 * 27]);
    }

    #[test]
    fn the_smallest_tree_that_fits_is_the_default() {
        for (hosts, expected) in [(2, vec![2, 1]), (8, vec![4, 2]), (9, vec![3, 3]), (2048, vec![64, 32])] {
            assert_eq!(switches(&build(json!({ "hosts": hosts }))), expected, "{hosts} hosts");
        }
        // 2049 hosts are too many for two levels of 64 ports and, r^3 / 4 for r = 20, for three of 20. With 22 ports: 11
        // hosts a leaf, 11 leaves a pod, and 11 x 11 core switches, for no wider trunk reaches 17 pods.
        let (leaves, pods) = (187, 17);
        assert_eq!((2049_usize.div_ceil(11), 187_usize.div_ceil(11)), (leaves, pods));
        assert_eq!(switches(&build(json!({ "hosts": 2049 }))), [leaves, pods * 11, 121]);
        assert_eq!(switches(&build(json!({ "hosts": 7, "levels": 1 }))), [1]);
    }

    #[test]
    fn full_bisection_is_the_default_and_tapers_are_counted_in_ports() {
        let full = build(json!({ "hosts": 1296, "radix": 36, "levels": 3 }));
        assert!(["host up", "leaf up", "leaf down", "aggregation up"].iter().all(|class| links(&full, class) == 1296));
        let tapered = build(json!({ "hosts": 64, "radix": 20, "leaf_down": 16 }));
        assert_eq!((switches(&tapered), links(&tapered, "leaf up")), (vec![4, 1], 16));
    }

    #[test]
    fn links_follow_their_parameters() {
        let graph = build(json!({
            "hosts": 5, "bandwidth": 8_000, "latency": 7, "host_bandwidth": 4_000, "host_latency": 3
        }));
        for link in graph.links() {
            let host = graph.classes()[usize::from(link.class)].starts_with("host");
            let expected = if host { (4_000, 3) } else { (8_000, 7) };
            assert_eq!((link.bandwidth.0, link.latency.0), expected);
        }
        assert!(error(json!({ "hosts": 5, "latency": 0 })).contains("fabric.latency = 0"));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (params, expected) in [
            (json!({ "hosts": 0 }), "fabric.hosts = 0: 1 to"),
            (json!({ "hosts": 649, "radix": 36, "levels": 2 }), "fabric.hosts = 649: at most 648 hosts fit"),
            (json!({ "hosts": 129, "radix": 8 }), "fabric.hosts = 129: at most 128 hosts fit (levels: 3, radix: 8"),
            (json!({ "hosts": 9, "levels": 4 }), "fabric.levels = 4: 1, 2 or 3"),
            (json!({ "hosts": 9, "radix": 1 }), "fabric.radix = 1: 2 to"),
            (json!({ "hosts": 9, "levels": 2, "leaves_per_pod": 3 }), "fabric.leaves_per_pod = 3: only for trees of"),
            (json!({ "hosts": 9, "levels": 1, "leaf_up": 3 }), "fabric.leaf_up = 3: only for trees of at least 2"),
            (json!({ "hosts": 9, "radix": 8, "leaf_down": 8 }), "fabric.leaf_down, fabric.leaf_up = 8, 0: each at"),
            (json!({ "hosts": 9, "leaf_down": 4, "leaf_up": 0 }), "fabric.leaf_up = 4, 0: each at least 1"),
            (json!({ "hosts": 9, "radix": 8, "leaves_per_pod": 3 }), "fabric.leaves_per_pod = 3: a divisor of"),
            (json!({ "hosts": 9, "host": 1 }), "unknown field `host`"),
            (json!({ "radix": 8 }), "missing field `hosts`"),
        ] {
            let message = error(params.clone());
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
