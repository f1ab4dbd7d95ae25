//! A routing for each virtual lane: minimal for the latency-bound, adaptive for the rest, say.
//!
//! Packets of different virtual lanes share no buffer, so what each routing proves of its own channels holds for all.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::{Entry, Hop, Loads, Routing, Routings, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::table::{Choice, Table};
use crate::topology::Graph;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "per_lane",
    summary: "a routing of its own for each virtual lane",
    schema: || schema_for!(Params),
    build: |graph, json, routings| {
        Ok(Box::new(PerLane::new(graph, &crate::table::params("fabric.routing", json)?, routings)?))
    },
};

/// A routing for each virtual lane.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "lanes": ["d_mod_k", { "name": "adaptive" }] }]))]
struct Params {
    /// The routings of virtual lanes 0, 1, ...; lanes beyond the list have the last one's. A name, or a name with parameters.
    lanes: Vec<Choice>,
}

struct PerLane {
    /// By virtual lane; the last for all that follow.
    lanes: Vec<Box<dyn Routing>>,
}

impl PerLane {
    fn new(graph: &Graph, params: &Params, routings: &Table<Routings>) -> Result<Self, BuildError> {
        let build = |(lane, choice): (usize, &Choice)| {
            let (name, params) = choice.parts();
            let at = format!("fabric.routing.lanes[{lane}]");
            routings.build(name, params, graph).map_err(|error| error.of("fabric.routing", &at, name))
        };
        let lanes: Vec<_> = params.lanes.iter().enumerate().map(build).collect::<Result<_, _>>()?;
        if lanes.is_empty() {
            return Err(BuildError::value("fabric.routing.lanes", "[]", "at least one routing"));
        }
        Ok(Self { lanes })
    }

    fn of(&self, vl: u8) -> &dyn Routing {
        &*self.lanes[usize::from(vl).min(self.lanes.len() - 1)]
    }
}

impl Routing for PerLane {
    fn virtual_channels(&self) -> u8 {
        self.lanes.iter().map(|routing| routing.virtual_channels()).max().unwrap_or(1)
    }

    fn channels_of(&self, vl: u8) -> u8 {
        self.of(vl).virtual_channels()
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.lanes.iter().all(|routing| routing.reaches(at, to))
    }

    fn routed_lanes(&self) -> u8 {
        u8::try_from(self.lanes.len()).unwrap_or(u8::MAX)
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.of(0).next_hop(at, previous, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_lanes(&self) -> bool {
        self.lanes.iter().any(|routing| routing.sees_lanes())
    }

    fn sees_waiting(&self) -> bool {
        self.lanes.iter().any(|routing| routing.sees_waiting())
    }

    fn sees_own_ports_only(&self) -> bool {
        self.lanes.iter().all(|routing| routing.sees_own_ports_only())
    }

    fn takes_entropies(&self) -> bool {
        self.lanes.iter().all(|routing| routing.takes_entropies())
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        self.of(visit.vl).choose(at, visit, loads)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        self.of(visit.vl).options(at, visit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::LinkId;

    #[test]
    fn each_lane_has_its_own_routing() {
        let graph = crate::topology::build("fat_tree", &json!({ "hosts": 32, "levels": 2, "radix": 8 })).unwrap();
        let routing =
            crate::routing::build("per_lane", &json!({ "lanes": ["d_mod_k", { "name": "adaptive" }] }), &graph)
                .unwrap();
        let visit = |vl| Visit { vl, ..Visit::new(Hop { link: LinkId(0), channel: 0 }, HostId(31)) };
        let options = [0, 1, 5].map(|vl| routing.options(SwitchId(0), &visit(vl)).len());
        assert_eq!(options, [1, 4, 4]);
        assert!(crate::routing::build("per_lane", &json!({ "lanes": [] }), &graph).is_err());
        let problem = |lanes: serde_json::Value| {
            crate::routing::build("per_lane", &json!({ "lanes": lanes }), &graph).err().unwrap().to_string()
        };
        let unknown = problem(json!(["d_mod_k", "d_mod_q"]));
        assert!(unknown.starts_with("fabric.routing.lanes[1]: unknown routing \"d_mod_q\"; allowed: "), "{unknown}");
        let unfit = problem(json!(["dimension_order"]));
        assert!(unfit.starts_with("fabric.routing.lanes[0] = dimension_order: needs a grid of switches"), "{unfit}");
        assert_eq!(unfit.matches("usually routed by").count(), 1, "{unfit}");
    }
}
