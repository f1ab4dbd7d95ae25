//! Valiant's routing: every packet takes a non-minimal path, drawn at random, so that any traffic loads the fabric like uniform
//! traffic of twice the amount.

use schemars::schema_for;

use super::non_minimal::{self, Path, Paths};
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
        Ok(Box::new(Valiant(non_minimal::paths_of(graph, NAME)?)))
    },
};

struct Valiant(Box<dyn Paths>);

impl Routing for Valiant {
    fn virtual_channels(&self) -> u8 {
        self.0.channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.0.step(at, previous, Path::MINIMAL, to).0
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
        let mut path = Path::noted(visit.note);
        if path == Path::UNDECIDED {
            path = self.0.draw(at, visit.to, visit.random).unwrap_or(Path::MINIMAL);
        }
        self.0.go(at, visit, path)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let path = Path::noted(visit.note);
        let mut paths = if path == Path::UNDECIDED { self.0.all(at, visit.to) } else { vec![path] };
        if paths.is_empty() {
            paths.push(Path::MINIMAL);
        }
        self.0.hops(at, visit, paths)
    }
}
