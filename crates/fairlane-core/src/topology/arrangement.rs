//! The groups that the global cables of a dragonfly join, and at which of their ports.
//!
//! A group has `ports` global ports, numbered switch by switch. They are assigned in rounds: in each round a group has
//! one cable to every other group, in the order that the arrangement says (E. Hastings et al., "Comparing global link
//! arrangements for dragonfly networks", IEEE CLUSTER 2015; palm tree: C. Camarero et al., "Topological
//! characterization of Hamming and dragonfly networks and its implications on routing", ACM TACO 11, 2014). Ports that
//! are too few for one more round stay free; a circulant arrangement uses them in pairs.

use schemars::JsonSchema;
use serde::Deserialize;

/// The order in which the global ports of group `i` lead to the `n` other groups, port `k` counted from 0 in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Arrangement {
    /// Group `i - k - 1`, modulo the number of groups.
    #[default]
    PalmTree,
    /// Group `i + k + 1`, modulo the number of groups.
    Relative,
    /// Groups `i + 1`, `i - 1`, `i + 2`, `i - 2` and so on, modulo the number of groups.
    Circulant,
    /// Group `k`, or `k + 1` from the own group on.
    Absolute,
}

/// One end of a global cable: a group and the number of one of its global ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub group: u32,
    pub port: u32,
}

impl Arrangement {
    /// The cables between `groups` groups of `ports` global ports each, every one once.
    pub fn cables(self, groups: u32, ports: u32) -> impl Iterator<Item = [End; 2]> {
        let others = groups.saturating_sub(1);
        let used = if others == 0 { 0 } else { self.used(others, ports) };
        let ends = (0..used).flat_map(move |port| (0..groups).map(move |group| End { group, port }));
        ends.filter_map(move |near| {
            let round = near.port / others * others;
            let far = self.far(groups, End { group: near.group, port: near.port - round });
            let far = End { group: far.group, port: far.port + round };
            (near < far).then_some([near, far])
        })
    }

    /// How many cables there are between `groups` groups of `ports` global ports each.
    pub fn number(self, groups: u32, ports: u32) -> u64 {
        let others = groups.saturating_sub(1);
        let used = if others == 0 { 0 } else { self.used(others, ports) };
        u64::from(used) * u64::from(groups) / 2
    }

    /// How many ports of a group have a cable.
    fn used(self, others: u32, ports: u32) -> u32 {
        let left = ports % others;
        ports - left + if self == Self::Circulant { left / 2 * 2 } else { 0 }
    }

    /// The far end of a cable of the first round.
    fn far(self, groups: u32, near: End) -> End {
        let (own, port, others) = (near.group, near.port, groups - 1);
        match self {
            Self::Relative => End { group: (own + port + 1) % groups, port: others - 1 - port },
            Self::PalmTree => End { group: (own + others - port) % groups, port: others - 1 - port },
            Self::Circulant => {
                let step = port / 2 + 1;
                let forward = port.is_multiple_of(2);
                let group = (own + if forward { step } else { groups - step }) % groups;
                // Half way round forward and back are the same.
                let far = if 2 * step == groups { port } else { port ^ 1 };
                End { group, port: far }
            }
            Self::Absolute if port < own => End { group: port, port: own - 1 },
            Self::Absolute => End { group: port + 1, port: own },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const ALL: [Arrangement; 4] =
        [Arrangement::PalmTree, Arrangement::Relative, Arrangement::Circulant, Arrangement::Absolute];

    #[test]
    fn every_port_has_one_cable_and_every_pair_of_groups_equally_many_in_whole_rounds() {
        for arrangement in ALL {
            for (groups, rounds) in [(2, 1), (2, 3), (3, 2), (4, 1), (5, 1), (9, 2), (16, 3)] {
                let cables: Vec<_> = arrangement.cables(groups, rounds * (groups - 1)).collect();
                let ends: BTreeSet<End> = cables.iter().flatten().copied().collect();
                assert_eq!(ends.len(), (groups * rounds * (groups - 1)) as usize, "{arrangement:?}, {groups}");
                assert_eq!(cables.len() * 2, ends.len(), "{arrangement:?}, {groups}");
                let mut pairs = BTreeMap::new();
                cables.iter().for_each(|[a, b]| *pairs.entry((a.group, b.group)).or_insert(0) += 1);
                assert!(pairs.values().all(|count| *count == rounds) && pairs.keys().all(|(a, b)| a < b));
                assert_eq!(pairs.len() as u32, groups * (groups - 1) / 2);
            }
        }
    }

    #[test]
    fn groups_are_reached_in_the_order_of_the_arrangement() {
        let order = |arrangement: Arrangement, group| {
            let far = (0..4).map(|port| arrangement.far(5, End { group, port }).group);
            far.collect::<Vec<_>>()
        };
        assert_eq!(order(Arrangement::PalmTree, 2), [1, 0, 4, 3]);
        assert_eq!(order(Arrangement::Relative, 2), [3, 4, 0, 1]);
        assert_eq!(order(Arrangement::Circulant, 2), [3, 1, 4, 0]);
        assert_eq!(order(Arrangement::Absolute, 2), [0, 1, 3, 4]);
    }

    #[test]
    fn ports_left_over_are_used_in_pairs_by_a_circulant_only() {
        // 16 groups of 512 ports: 34 whole rounds of 15, and 2 ports over.
        for (arrangement, cables) in [(Arrangement::Circulant, 16 * 512 / 2), (Arrangement::PalmTree, 16 * 510 / 2)] {
            assert_eq!(arrangement.cables(16, 512).count(), cables);
        }
        assert_eq!(Arrangement::Absolute.cables(1, 4).count(), 0);
    }
}
