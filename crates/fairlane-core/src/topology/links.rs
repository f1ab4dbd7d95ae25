//! The links of a fabric as a table, and means over them.

use rustc_hash::FxHashMap;

use super::graph::{Graph, Link, Vertex};
use super::layout::LinkRole;
use crate::columns::Columns;
use crate::columns::Unit::{BitsPerSecond, Number, Picoseconds};
use crate::ids::LinkId;

/// The properties that links of a kind have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LinkKind {
    class: u8,
    role: LinkRole,
    /// Of both ends.
    levels: [u32; 2],
    to_host: bool,
    /// Bits per second.
    bandwidth: u64,
    /// Picoseconds.
    latency: u64,
}

impl Graph {
    /// One row per link.
    ///
    /// | column | unit | |
    /// |---|---|---|
    /// | `link` | number | |
    /// | `from_host`, `from_switch`, `to_host`, `to_switch` | number | the ends; -1 where the end is of the other kind |
    /// | `from_level`, `to_level` | number | levels of switches; 0 for hosts, and where there are no levels |
    /// | `class` | number | of [`Graph::classes`] |
    /// | `rail` | number | the adapter whose plane it is in; -1 if it is in none |
    /// | `role` | name | see [`LinkRole`] |
    /// | `from_name`, `to_name` | name | the ends |
    /// | `from_port`, `to_port` | number | ports at the ends |
    /// | `bandwidth` | bit/s | |
    /// | `latency` | ps | |
    #[must_use]
    pub fn link_table(&self) -> Columns {
        let (hosts, switches) = (self.host_names(), self.switch_names());
        let name = |vertex| match vertex {
            Vertex::Host(host) => hosts[host.index()].clone(),
            Vertex::Switch(switch) => switches[switch.index()].clone(),
        };
        let all = || self.links().iter();
        let ids = || (0..).map(LinkId).take(self.links().len());
        Columns::default()
            .u32("link", Number, ids().map(|link| link.0))
            .i64("from_host", Number, all().map(|link| host(link.from)))
            .i64("from_switch", Number, all().map(|link| switch(link.from)))
            .i64("to_host", Number, all().map(|link| host(link.to)))
            .i64("to_switch", Number, all().map(|link| switch(link.to)))
            .u32("from_level", Number, all().map(|link| self.level_of(link.from)))
            .u32("to_level", Number, all().map(|link| self.level_of(link.to)))
            .u32("class", Number, all().map(|link: &Link| u32::from(link.class)))
            .i64("rail", Number, ids().map(|link| self.rail(link).map_or(-1, i64::from)))
            .text("role", ids().map(|link| self.role(link).to_string()))
            .text("from_name", all().map(|link| name(link.from)))
            .text("to_name", all().map(|link| name(link.to)))
            .u32("from_port", Number, ids().map(|link| self.port_number(link)))
            .u32("to_port", Number, all().map(|link| self.port_number(link.reverse)))
            .u64("bandwidth", BitsPerSecond, all().map(|link| link.bandwidth.0))
            .u64("latency", Picoseconds, all().map(|link| link.latency.0))
    }

    /// One row per kind of link, in the order of their first links. A fabric of millions of links has few kinds.
    ///
    /// | column | unit | |
    /// |---|---|---|
    /// | `class`, `role`, `from_level`, `to_level`, `bandwidth`, `latency` | | what links of a kind have in common |
    /// | `to_host` | number | 1 if they lead to hosts, else 0 |
    /// | `links` | number | how many there are |
    #[must_use]
    pub fn link_kinds(&self) -> Columns {
        let mut numbers = FxHashMap::default();
        let mut kinds: Vec<(LinkKind, u64)> = Vec::new();
        for (id, link) in (0..).map(LinkId).zip(self.links()) {
            let kind = LinkKind {
                class: link.class,
                role: self.role(id),
                levels: [link.from, link.to].map(|end| self.level_of(end)),
                to_host: matches!(link.to, Vertex::Host(_)),
                bandwidth: link.bandwidth.0,
                latency: link.latency.0,
            };
            let number = *numbers.entry(kind).or_insert_with(|| {
                kinds.push((kind, 0));
                kinds.len() - 1
            });
            kinds[number].1 += 1;
        }
        let all = || kinds.iter().map(|(kind, _)| kind);
        Columns::default()
            .u32("class", Number, all().map(|kind| kind.class.into()))
            .text("role", all().map(|kind| kind.role.to_string()))
            .u32("from_level", Number, all().map(|kind| kind.levels[0]))
            .u32("to_level", Number, all().map(|kind| kind.levels[1]))
            .u32("to_host", Number, all().map(|kind| kind.to_host.into()))
            .u64("bandwidth", BitsPerSecond, all().map(|kind| kind.bandwidth))
            .u64("latency", Picoseconds, all().map(|kind| kind.latency))
            .u64("links", Number, kinds.iter().map(|(_, links)| *links))
    }

    /// The level of a switch; 0 for hosts.
    fn level_of(&self, vertex: Vertex) -> u32 {
        match vertex {
            Vertex::Host(_) => 0,
            Vertex::Switch(switch) => self.level(switch).into(),
        }
    }

    /// The mean bandwidth of the links that leave hosts, in bits per second; 0 without hosts.
    #[must_use]
    pub fn mean_host_bandwidth(&self) -> f64 {
        let of_hosts = self.links().iter().take_while(|link| matches!(link.from, Vertex::Host(_)));
        mean(of_hosts.map(|link| link.bandwidth.0))
    }

    /// The mean latency of all links, in picoseconds; 0 without links.
    #[must_use]
    pub fn mean_latency(&self) -> f64 {
        mean(self.links().iter().map(|link| link.latency.0))
    }
}

fn host(vertex: Vertex) -> i64 {
    if let Vertex::Host(host) = vertex { i64::from(host.0) } else { -1 }
}

fn switch(vertex: Vertex) -> i64 {
    if let Vertex::Switch(switch) = vertex { i64::from(switch.0) } else { -1 }
}

#[allow(clippy::cast_precision_loss, reason = "means for estimates")]
fn mean(values: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = values.fold((0_u128, 0_u64), |(sum, count), value| (sum + u128::from(value), count + 1));
    sum as f64 / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::build;
    use crate::columns::Values;

    #[test]
    fn the_table_has_both_ends_of_every_link() {
        // Two leaves of two hosts and two spines: 4 cables of hosts, 4 between switches, two links each.
        let params = json!({ "hosts": 4, "levels": 2, "radix": 4, "bandwidth": 8_000_000_000_u64, "latency": 1000 });
        let graph = build("fat_tree", &params).unwrap();
        let table = graph.link_table();
        assert_eq!(table.rows(), 16);
        let numbers = |name: &str| match table.values(name) {
            Some(Values::I64(numbers)) => numbers.clone(),
            other => panic!("{name}: {other:?}"),
        };
        let ends =
            |host: &str, switch: &str| -> Vec<(i64, i64)> { numbers(host).into_iter().zip(numbers(switch)).collect() };
        let (from, to) = (ends("from_host", "from_switch"), ends("to_host", "to_switch"));
        assert!(from.iter().chain(&to).all(|(host, switch)| (*host == -1) != (*switch == -1)));
        assert_eq!(from.iter().filter(|end| end.0 >= 0).count(), 4);
        // As many links one way as the other, also where a trunk joins two switches.
        let count = |ends: (&(i64, i64), &(i64, i64))| from.iter().zip(&to).filter(|pair| *pair == ends).count();
        assert!(from.iter().zip(&to).all(|(one, other)| count((one, other)) == count((other, one))));
        let Some(Values::Text(names)) = table.values("from_name") else { panic!("no names") };
        assert_eq!(names.iter().filter(|name| name.starts_with("spine")).count(), 4);
        // Up and down of the cables of hosts, and of those between switches.
        let kinds = graph.link_kinds();
        assert_eq!(kinds.values("links"), Some(&Values::U64(vec![4; 4])));
        assert_eq!(kinds.values("to_host"), Some(&Values::U32(vec![0, 1, 0, 0])));
        assert!((graph.mean_host_bandwidth() - 8e9).abs() < 1.0 && (graph.mean_latency() - 1000.0).abs() < 1e-9);
    }
}
