//! An adapter that sends PAUSE without end, as one whose receive pipeline has stopped does (Guo et al., "RDMA over Commodity Ethernet
//! at Scale", SIGCOMM 2016, section 4.3): the switch sends it nothing, its buffers fill, and it pauses others in turn.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::adapter_down::{self, adapter};
use super::{Condition, Entry, Fault, PATH};
use crate::ids::{LinkId, VirtualLane};
use crate::table;
use crate::topology::Graph;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "pause_storm",
    summary: "a host's adapter that sends PAUSE without end, with network.flow_control = pfc",
    schema: || schema_for!(Params),
    build: |json, graph| {
        let Params { host, rail, vl } = table::params(PATH, json)?;
        let link = adapter(adapter_down::Params { host, rail }, graph)?;
        Ok(Arc::new(PauseStorm { link: graph.link(link).reverse, vl: vl.map(VirtualLane) }))
    },
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
    /// The virtual lane that it pauses. Default: all that lose nothing.
    #[serde(default)]
    pub vl: Option<u8>,
}

struct PauseStorm {
    /// The link to the adapter.
    link: LinkId,
    vl: Option<VirtualLane>,
}

impl Fault for PauseStorm {
    fn apply(&self, _graph: &Graph, condition: &mut Condition) {
        condition.pause(self.link, self.vl);
    }
}
