//! A cable that is down: unplugged, broken, or shut by an operator. No packet passes in either direction; packets on it and those
//! routed to it are lost.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{Condition, Entry, Fault, PATH};
use crate::ids::LinkId;
use crate::table;
use crate::topology::Graph;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "link_down",
    summary: "a cable that carries nothing: packets are lost until routes avoid it",
    schema: || schema_for!(Params),
    build: |json, graph| {
        let Params { link } = table::params(PATH, json)?;
        Ok(Arc::new(LinkDown(graph.link_named("fault.link", &link)?)))
    },
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// One direction of the cable, by its name: `leaf4 port 7 to spine2`. The other is down, too.
    pub link: String,
}

struct LinkDown(LinkId);

impl Fault for LinkDown {
    fn apply(&self, graph: &Graph, condition: &mut Condition) {
        condition.cut(graph, self.0);
    }

    fn loses_packets(&self) -> bool {
        true
    }
}
