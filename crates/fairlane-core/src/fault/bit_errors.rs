//! A cable on which bits flip. The receiving port detects a packet with an error by its CRC. The link is idle for two link latencies,
//! until the sender learns of the error and repeats the packet. This models link-level retry, which also repeats the packets
//! transmitted meanwhile: each error costs the packet's serialization time and two link latencies. Without `retry`, as on Ethernet links
//! that do not repeat packets, a packet with an error is lost at the end of the link.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{BitErrorRate, Condition, Entry, Fault, LinkErrors, PATH};
use crate::error::BuildError;
use crate::ids::LinkId;
use crate::table;
use crate::topology::Graph;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "bit_errors",
    summary: "a cable with a bit error rate: packets with errors are repeated on the link, or lost",
    schema: || schema_for!(Params),
    build: |json, graph| Ok(Arc::new(BitErrors::new(table::params(PATH, json)?, graph)?)),
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// One direction of the cable, by its name: `leaf4 port 7 to spine2`. The other has errors, too.
    pub link: String,
    /// Errors per bit that forward error correction leaves: above 0, at most 1e-4. Default: 1e-8.
    #[serde(default = "rate")]
    pub rate: f64,
    /// The link repeats packets with errors; without, they are lost. Default: true.
    #[serde(default = "retry")]
    pub retry: bool,
}

const fn retry() -> bool {
    true
}

const fn rate() -> f64 {
    1e-8
}

struct BitErrors {
    link: LinkId,
    errors: LinkErrors,
}

impl BitErrors {
    fn new(Params { link, rate, retry }: Params, graph: &Graph) -> Result<Self, BuildError> {
        let link = graph.link_named("fault.link", &link)?;
        if !(rate > 0.0 && rate <= 1e-4) {
            return Err(BuildError::value("fault.rate", rate, "above 0, at most 1e-4"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^64 / 10^4")]
        let rate = BitErrorRate(((rate * 2_f64.powi(64)) as u64).max(1));
        Ok(Self { link, errors: LinkErrors { rate, lost: !retry } })
    }
}

impl Fault for BitErrors {
    fn apply(&self, graph: &Graph, condition: &mut Condition) {
        for link in [self.link, graph.link(self.link).reverse] {
            condition.disturb(link, self.errors);
        }
    }

    fn loses_packets(&self) -> bool {
        self.errors.lost
    }
}
