//! Rotation: each switch sends successive packets over its links on shortest paths in turn, whatever the loads and whosever the
//! packets. So do the fat trees of SST/macro.
//!
//! The `k`-th packet, from 0, that a switch routes to one of `n` links takes number `k mod n`, in order of port. Packets count
//! together whose first such link is the same: in a fat-tree all that go up, and all that go down to one switch.
//!
//! Paths and virtual channels are those of [`super::shortest`]: one channel on trees.

use schemars::schema_for;

use super::equal_cost::{EqualCost, Selection};
use super::{Entry, Loads, NoParams, Visit};
use crate::ids::{LinkId, SwitchId};

const NAME: &str = "rotation";

/// Rotation's line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "each switch sends successive packets over its links on shortest paths in turn",
    schema: || schema_for!(NoParams),
    build: |graph, json, _| {
        NoParams::check("fabric.routing", json)?;
        Ok(Box::new(EqualCost::new(graph, NAME, Rotation)?))
    },
};

/// Selection of the next link in turn.
struct Rotation;

impl Selection for Rotation {
    #[inline]
    fn select(&self, _at: SwitchId, _visit: &Visit, links: &[LinkId], loads: &Loads) -> LinkId {
        links[loads.turn(links[0]) as usize % links.len()]
    }
}
