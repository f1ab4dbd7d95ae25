//! Valiant's routing: every packet takes a non-minimal path, drawn at random, so that any traffic loads the fabric like uniform
//! traffic of twice the amount.

use schemars::schema_for;

use super::detours::{self, Detours, Way};
use super::{Entry, Hop, Loads, NoParams, Routing, Visit};
use crate::ids::{HostId, SwitchId};

const NAME: &str = "valiant";

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "through a random intermediate group, or switch where there are no groups, independent of the load",
    schema: || schema_for!(NoParams),
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(Valiant(detours::build(graph, NAME)?)))
    },
};

struct Valiant(Box<dyn Detours>);

impl Routing for Valiant {
    fn virtual_channels(&self) -> u8 {
        self.0.channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.0.step(at, previous, Way::DIRECT, to).0
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.0.reaches(at, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_own_ports_only(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, _loads: &Loads) -> Hop {
        let mut way = Way::noted(visit.note);
        if way == Way::OPEN {
            way = self.0.draw(at, visit.to, visit.random).unwrap_or(Way::DIRECT);
        }
        self.0.go(at, visit, way)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let way = Way::noted(visit.note);
        let mut ways = if way == Way::OPEN { self.0.all(at, visit.to) } else { vec![way] };
        if ways.is_empty() {
            ways.push(Way::DIRECT);
        }
        self.0.hops(at, visit, ways)
    }
}
