//! A straggler: a host that computes more slowly than the others, because it is hot, its memory repairs errors, or something else
//! runs on it. Its messages are not slower.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{Condition, Entry, Fault, PATH, Slowness};
use crate::error::BuildError;
use crate::ids::HostId;
use crate::table;
use crate::topology::Graph;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "slow_host",
    summary: "a straggler: computations on a host take longer",
    schema: || schema_for!(Params),
    build: |json, graph| Ok(Arc::new(SlowHost::new(table::params(PATH, json)?, graph)?)),
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The host, by its name: `host12`.
    pub host: String,
    /// How many times as long its computations take, 1 to 1000, rounded to thousandths. Default: 2.
    #[serde(default = "twice")]
    pub factor: f64,
}

const fn twice() -> f64 {
    2.0
}

struct SlowHost {
    host: HostId,
    slowness: Slowness,
}

impl SlowHost {
    fn new(Params { host, factor }: Params, graph: &Graph) -> Result<Self, BuildError> {
        let host = graph.host_named("fault.host", &host)?;
        if !(1.0..=1000.0).contains(&factor) {
            return Err(BuildError::value("fault.factor", factor, "1 to 1000"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a thousand to a million")]
        let slowness = Slowness((factor * 1000.0).round() as u32);
        Ok(Self { host, slowness })
    }
}

impl Fault for SlowHost {
    fn apply(&self, _graph: &Graph, condition: &mut Condition) {
        condition.slow_down(self.host, self.slowness);
    }
}
