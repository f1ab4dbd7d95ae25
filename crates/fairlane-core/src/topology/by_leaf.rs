//! Parameters of a fabric of leaves that are equal for all, or given by group and leaf.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::error::BuildError;

/// One value for all leaves, or a list by group of lists by leaf.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ByLeaf<T> {
    /// The value of every leaf.
    All(T),
    /// The values by group and leaf.
    Each(Vec<Vec<T>>),
}

impl<T: Copy> ByLeaf<T> {
    /// The value of a leaf, unless the lists omit it.
    pub fn get(&self, group: u32, leaf: u32) -> Option<T> {
        match self {
            Self::All(value) => Some(*value),
            Self::Each(groups) => groups.get(group as usize).and_then(|leaves| leaves.get(leaf as usize)).copied(),
        }
    }

    /// Refuses lists that do not fit so many groups of so many leaves.
    pub fn check(&self, key: &str, groups: u32, leaves: u32) -> Result<(), BuildError> {
        if let Self::Each(lists) = self { check(key, lists, groups, leaves) } else { Ok(()) }
    }
}

impl ByLeaf<u32> {
    /// The sum over all leaves.
    pub fn sum(&self, groups: u32, leaves: u32) -> u64 {
        match self {
            Self::All(value) => u64::from(groups).saturating_mul(u64::from(leaves)).saturating_mul(u64::from(*value)),
            Self::Each(lists) => lists.iter().flatten().map(|value| u64::from(*value)).sum(),
        }
    }
}

impl fmt::Display for ByLeaf<u32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(value) => write!(f, "{value}"),
            Self::Each(lists) => write!(f, "{} lists", lists.len()),
        }
    }
}

/// Refuses lists by group and leaf that do not fit so many groups of so many leaves.
pub(super) fn check<T>(key: &str, lists: &[Vec<T>], groups: u32, leaves: u32) -> Result<(), BuildError> {
    if lists.len() != groups as usize {
        let allowed = format!("one for each of the {groups} groups");
        return Err(BuildError::value(format!("fabric.{key}"), format!("{} lists", lists.len()), allowed));
    }
    let long = lists.iter().position(|list| list.len() > leaves as usize);
    long.map_or(Ok(()), |group| {
        let allowed = format!("at most one for each of the {leaves} leaves of a group");
        Err(BuildError::value(format!("fabric.{key}[{group}]"), format!("{} values", lists[group].len()), allowed))
    })
}

/// The schema of numbers of hosts.
pub(super) fn counts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["integer", "array"], "minimum": 1, "maximum": u32::MAX,
        "items": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": u32::MAX } },
    })
}

/// The schema of bandwidths.
pub(super) fn bandwidths(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["integer", "array", "null"], "minimum": 0, "x-unit": "bits_per_second",
        "items": { "type": "array", "items": { "type": "integer", "minimum": 0, "x-unit": "bits_per_second" } },
    })
}
