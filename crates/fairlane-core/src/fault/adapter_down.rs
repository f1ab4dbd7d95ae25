//! An adapter that is dead: its cable is down. A host with several adapters keeps the others, but the messages that are for the dead
//! one are not given to them.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{Condition, Entry, Fault, PATH};
use crate::error::BuildError;
use crate::ids::LinkId;
use crate::table;
use crate::topology::{Graph, Vertex};

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "adapter_down",
    summary: "a host's adapter that is dead: its cable is down",
    schema: || schema_for!(Params),
    build: |json, graph| Ok(Arc::new(AdapterDown(adapter(table::params(PATH, json)?, graph)?))),
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The host, by its name: `host12`.
    pub host: String,
    /// The number of the adapter, from 0. Default: 0.
    #[serde(default)]
    pub rail: usize,
}

struct AdapterDown(LinkId);

/// The link that leaves the adapter.
pub(super) fn adapter(Params { host, rail }: Params, graph: &Graph) -> Result<LinkId, BuildError> {
    let mut adapters = graph.ports(Vertex::Host(graph.host_named("fault.host", &host)?));
    let count = adapters.len();
    let allowed = || format!("0 to {}: {host} has {count}", count - 1);
    adapters.nth(rail).ok_or_else(|| BuildError::value("fault.rail", rail, allowed()))
}

impl Fault for AdapterDown {
    fn apply(&self, graph: &Graph, condition: &mut Condition) {
        condition.cut(graph, self.0);
    }

    fn loses_packets(&self) -> bool {
        true
    }
}
