//! A switch that is dead: all its cables are down, and what waits in it is lost.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{Condition, Entry, Fault, PATH};
use crate::ids::SwitchId;
use crate::table;
use crate::topology::{Graph, Vertex};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "switch_down",
    summary: "a switch that is dead: all its cables are down",
    schema: || schema_for!(Params),
    build: |json, graph| {
        let Params { switch } = table::params(PATH, json)?;
        Ok(Arc::new(SwitchDown(graph.switch_named("fault.switch", &switch)?)))
    },
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The switch, by its name: `spine2`.
    pub switch: String,
}

struct SwitchDown(SwitchId);

impl Fault for SwitchDown {
    fn apply(&self, graph: &Graph, condition: &mut Condition) {
        graph.ports(Vertex::Switch(self.0)).for_each(|link| condition.cut(graph, link));
    }

    fn loses_packets(&self) -> bool {
        true
    }
}
