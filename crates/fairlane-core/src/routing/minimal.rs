//! Minimal routing: of fabrics of groups (dragonfly, Cascade, Dragonfly+) as described here, of graphs without a plan as in
//! [`super::shortest`].
//!
//! In a fabric of groups a packet takes at most one global link. Of all such paths it takes one of the shortest: within
//! the group to a switch with a global link to the destination's group, over it, and within that group to the
//! destination's switch. Where groups are joined all to all, a global link of the switch itself comes first; else,
//! among equal ones, the destination decides, alike at every switch, so that a packet never changes its mind on the
//! way. Among parallel links of a trunk it decides differently at each switch.
//!
//! **Within a group** a packet takes a shortest path; of several first steps it takes one of the lowest rank. Ranks order
//! links by role (up, local, global, down) and then by class in the order in which the fabric's builder named them: in
//! a Cascade that is row first (green), then column (black).
//!
//! **Virtual channels**: a packet starts on channel 0 and rises by one wherever the next link's rank is not above the
//! last one's. So the pair (channel, rank) grows with every hop, and no cycle of channel dependencies can be, whatever
//! the groups look like. A dragonfly needs two channels, a Cascade two (green, black, blue; green, black), a Dragonfly+
//! one (up, global, down).
//!
//! Tables are small: a step for each pair of switches of one group, the global links by pair of groups, and those of a switch
//! by group. Fabrics of up to a thousand switches have one more, of the link between each two where there is but one.

pub(super) mod gateways;
pub(super) mod local;
pub(super) mod only;

use schemars::schema_for;

use self::gateways::Gateways;
use self::local::Local;
use self::only::OnlyLinks;
use super::choices::spread;
use super::parts::Ends;
use super::shortest::{Shortest, Targets};
use super::{Entry, Hop, NoParams, Routing};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::{Graph, Layout, LinkRole};

const NAME: &str = "minimal";

/// Minimal routing's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "shortest paths, with at most one global link in dragonflies and other fabrics of groups",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        match graph.layout() {
            Layout::Free => Ok(Box::new(Shortest::new(graph, NAME, Targets::Hosts)?)),
            _ => Ok(Box::new(Minimal::new(graph, NAME)?)),
        }
    },
};

/// Minimal routing of fabrics of groups, and what routings are made of that sometimes take another path.
pub(super) struct Minimal {
    pub ends: Ends,
    /// Switches of a group.
    pub size: u32,
    pub local: Local,
    pub gateways: Gateways,
    /// By link.
    pub ranks: Vec<u8>,
    channels: u8,
    only: OnlyLinks,
}

impl Minimal {
    /// Measures the fabric; `routing` is for the error.
    pub fn new(graph: &Graph, routing: &'static str) -> Result<Self, BuildError> {
        let &Layout::Groups { switches: size, .. } = graph.layout() else {
            return Err(BuildError::value("fabric.routing", routing, "needs a fabric of groups"));
        };
        let ends = Ends::new(graph, routing)?;
        let ranks = ranks(graph)?;
        let local = Local::new(graph, size, &ranks, routing)?;
        let gateways = Gateways::new(graph, &local, routing)?;
        let leaves = ends.leaves();
        let channels = channels(graph, &local, &gateways, &ranks, &leaves)?;
        let mut minimal = Self { ends, size, local, gateways, ranks, channels, only: OnlyLinks::default() };
        minimal.only = OnlyLinks::new(graph, |at, target| minimal.only_link(at, target));
        Ok(minimal)
    }
}

impl Routing for Minimal {
    fn virtual_channels(&self) -> u8 {
        self.channels
    }

    #[inline]
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (target, down) = self.ends.of(to);
        if at == target {
            return Hop { link: down, channel: 0 };
        }
        let link = self.link(at, target, to);
        Hop { link, channel: previous.channel + self.rise(previous.link, link) }
    }
}

impl Minimal {
    /// The link from `at` towards another switch, `target`, at which `to` hangs.
    #[inline]
    pub fn link(&self, at: SwitchId, target: SwitchId, to: HostId) -> LinkId {
        self.only.get(at, target).unwrap_or_else(|| self.search(at, target, to))
    }

    /// The same, found without [`OnlyLinks`].
    #[inline(never)]
    fn search(&self, at: SwitchId, target: SwitchId, to: HostId) -> LinkId {
        let spread = || spread(at, to);
        let (here, there) = (self.local.home(at), self.local.home(target));
        if here.group == there.group {
            self.local.step(at, there.place, spread)
        } else {
            let gateway = self.gateways.nearest(&self.local, at, target, to);
            let near = u32::from(gateway.near_place);
            if near == here.place { gateway.link } else { self.local.step(at, near, spread) }
        }
    }

    /// The link between two switches, if there is but one on shortest paths.
    fn only_link(&self, at: SwitchId, target: SwitchId) -> Option<LinkId> {
        let (here, there) = (self.local.home(at), self.local.home(target));
        if here.group == there.group {
            return self.local.only_step(at, there.place);
        }
        let gateway = self.gateways.only(&self.local, at, target)?;
        let near = u32::from(gateway.near_place);
        if near == here.place { Some(gateway.link) } else { self.local.only_step(at, near) }
    }

    /// Links on a minimal path between two switches, which is equally long by each of the nearest gateways.
    pub fn length(&self, at: SwitchId, target: SwitchId) -> u32 {
        let there = self.local.home(target);
        if self.local.home(at).group == there.group {
            return self.local.distance(at, there.place).into();
        }
        let gateway = self.gateways.nearest(&self.local, at, target, HostId(0));
        let before = self.local.distance(at, gateway.near_place.into());
        u32::from(before) + 1 + u32::from(self.local.distance(target, gateway.far_place.into()))
    }

    /// The increase of the channel from one link to the next.
    #[inline]
    pub fn rise(&self, last: LinkId, next: LinkId) -> u8 {
        u8::from(self.ranks[last.index()] >= self.ranks[next.index()])
    }
}

/// The rank of every link: 0 for those of hosts, then by role and class.
fn ranks(graph: &Graph) -> Result<Vec<u8>, BuildError> {
    let links = || (0..).map(LinkId).take(graph.links().len());
    let kind = |link| match graph.role(link) {
        LinkRole::Host => None,
        role => Some((role, graph.link(link).class)),
    };
    let mut kinds: Vec<_> = links().filter_map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let rank = |link| {
        let place = kind(link).map_or(0, |kind| 1 + kinds.partition_point(|other| *other < kind));
        u8::try_from(place)
            .map_err(|_| BuildError::value("fabric.routing", NAME, "needs a fabric of fewer than 255 classes of links"))
    };
    links().map(rank).collect()
}

/// One more than the highest channel of any path: to a gateway, over a global link, and on; or within a group.
fn channels(
    graph: &Graph,
    local: &Local,
    gateways: &Gateways,
    ranks: &[u8],
    leaves: &[SwitchId],
) -> Result<u8, BuildError> {
    let size = local.size();
    let mates = |at: SwitchId| (at.0 / size * size..(at.0 / size + 1) * size).map(SwitchId);
    let (mut within, mut before, mut after) = (0, 0, 0);
    for &at in leaves {
        for other in mates(at) {
            let there = local.worst(graph, ranks, at, other, (0, 0));
            if leaves.binary_search(&other).is_ok() {
                within = within.max(there.0);
            }
            for global in gateways.ranks_of(other, ranks) {
                before = before.max(there.0 + usize::from(there.1 >= global));
                after = after.max(local.worst(graph, ranks, other, at, (0, global)).0);
            }
        }
    }
    u8::try_from(within.max(before + after) + 1)
        .map_err(|_| BuildError::value("fabric.routing", NAME, "needs more than 255 virtual channels on this fabric"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topology::{self, Vertex};

    fn build(topology: &str, params: Value) -> (Graph, Minimal) {
        let graph = topology::build(topology, &params).unwrap();
        let routing = Minimal::new(&graph, NAME).unwrap();
        (graph, routing)
    }

    /// Roles, or classes, and channels on the way between two hosts, without the links of hosts.
    fn way(graph: &Graph, routing: &Minimal, from: u32, to: u32) -> Vec<(String, u8)> {
        let mut hop = Hop { link: graph.ports(Vertex::Host(HostId(from))).next().unwrap(), channel: 0 };
        let mut way = Vec::new();
        while let Vertex::Switch(at) = graph.link(hop.link).to {
            hop = routing.next_hop(at, hop, HostId(to));
            way.push((graph.classes()[usize::from(graph.link(hop.link).class)].clone(), hop.channel));
        }
        way.pop();
        way
    }

    #[test]
    fn a_dragonfly_needs_two_channels_and_at_most_three_hops() {
        let params = json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 });
        let (graph, routing) = build("dragonfly", params);
        assert_eq!(routing.virtual_channels(), 2);
        let mut lengths = [0; 4];
        for to in 8..72 {
            let way = way(&graph, &routing, 0, to);
            let words: Vec<(&str, u8)> = way.iter().map(|(class, channel)| (class.as_str(), *channel)).collect();
            let whole = [("local", 0), ("global", 0), ("local", 1)];
            assert!(whole.windows(words.len()).any(|part| part == words), "{words:?}");
            lengths[words.len()] += 1;
        }
        // To each of 8 groups of 4 switches of 2 hosts there is one global cable: 2 from the own switch. Over it one of
        // the 4 switches is 1 hop away and 3 are 2; over another switch's, 1 is 2 hops away and 3 are 3.
        assert_eq!(lengths, [0, 2 * 2, 2 * (2 * 3 + 6), 2 * 6 * 3]);
    }

    #[test]
    fn a_cascade_goes_row_first_and_needs_two_channels() {
        let params = json!({ "groups": 4, "columns": 4, "rows": 3, "hosts_per_switch": 1 });
        let (graph, routing) = build("cascade", params);
        assert_eq!(routing.virtual_channels(), 2);
        // From the corner to the opposite corner of the first group.
        assert_eq!(way(&graph, &routing, 0, 11), [("green".to_owned(), 0), ("black".to_owned(), 0)]);
    }

    #[test]
    fn a_dragonfly_plus_needs_one_channel() {
        let params = json!({ "groups": 9, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "global_links": 2 });
        let (graph, routing) = build("dragonfly_plus", params);
        assert_eq!(routing.virtual_channels(), 1);
        let classes: Vec<String> = way(&graph, &routing, 0, 143).into_iter().map(|(class, _)| class).collect();
        assert_eq!(classes, ["leaf up", "global", "leaf down"]);
    }

    #[test]
    fn the_system_of_wilke_and_kenny_has_diameter_two() {
        let (graph, routing) = build("dragonfly", json!({ "preset": "wilke2020" }));
        for to in (0..8192).step_by(41) {
            assert!(way(&graph, &routing, 5, to).len() <= 2, "to {to}");
        }
    }

    #[test]
    fn where_there_is_one_link_only_it_is_the_one_that_is_searched_for() {
        let fabrics = [
            ("dragonfly", json!({ "groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2 })),
            ("dragonfly", json!({ "groups": 3, "switches_per_group": 4, "hosts_per_switch": 1, "global_links": 2 })),
            (
                "dragonfly_plus",
                json!({ "groups": 3, "leaves": 4, "spines": 4, "hosts_per_leaf": 2, "global_links": 2 }),
            ),
            ("cascade", json!({ "groups": 4, "columns": 4, "rows": 3, "hosts_per_switch": 1 })),
        ];
        for (topology, params) in fabrics {
            let (graph, routing) = build(topology, params);
            let mut known = 0;
            for at in (0..).take(graph.switches()).map(SwitchId) {
                for to in (0..).take(graph.hosts()).map(HostId) {
                    let (target, _) = routing.ends.of(to);
                    if at != target
                        && let Some(only) = routing.only.get(at, target)
                    {
                        assert_eq!(only, routing.search(at, target, to), "{topology}: {at} to {to}");
                        known += 1;
                    }
                }
            }
            assert!(known > 0, "{topology}");
        }
    }

    #[test]
    fn trunks_and_bundles_are_all_used() {
        let (graph, routing) = build("cascade", json!({ "preset": "edison" }));
        let mut used = std::collections::BTreeSet::new();
        for from in (0..384).step_by(4) {
            for to in 384..768 {
                let mut hop = Hop { link: graph.ports(Vertex::Host(HostId(from))).next().unwrap(), channel: 0 };
                while let Vertex::Switch(at) = graph.link(hop.link).to {
                    hop = routing.next_hop(at, hop, HostId(to));
                    if graph.role(hop.link) == LinkRole::Global {
                        used.insert(hop.link);
                    }
                }
            }
        }
        assert_eq!(used.len(), 24);
    }
}
