//! A cable that has lost lanes: a 4x link that retrains at 1x has a quarter of its bandwidth and the same latency. Any number
//! of lanes is accepted; `InfiniBand` (Architecture Specification, volume 2) negotiates widths of 1x, 2x, 4x, 8x and 12x.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};

use super::{Condition, Entry, Fault, PATH};
use crate::error::BuildError;
use crate::ids::LinkId;
use crate::table;
use crate::topology::Graph;
use crate::units::BitsPerSec;

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: "degraded_link",
    summary: "a cable that works with fewer lanes: a share of its bandwidth, in both directions or in one",
    schema: || schema_for!(Params),
    build: |json, graph| Ok(Arc::new(DegradedLink::new(table::params(PATH, json)?, graph)?)),
};

/// Parameters.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// One direction of the cable, by its name: `leaf4 port 7 to spine2`. The other is affected, too, unless `one_way` is set.
    pub link: String,
    /// Only the direction `link` is affected. Default: `false`.
    #[serde(default)]
    pub one_way: bool,
    /// Lanes that are left, 1 to `width`. Default: 1.
    #[serde(default = "one")]
    pub lanes: u8,
    /// Lanes that the cable has, 1 to 12. Default: 4.
    #[serde(default = "four")]
    pub width: u8,
}

const fn one() -> u8 {
    1
}

const fn four() -> u8 {
    4
}

struct DegradedLink {
    link: LinkId,
    one_way: bool,
    lanes: u8,
    width: u8,
}

impl DegradedLink {
    fn new(Params { link, one_way, lanes, width }: Params, graph: &Graph) -> Result<Self, BuildError> {
        let link = graph.link_named("fault.link", &link)?;
        if !(1..=12).contains(&width) {
            return Err(BuildError::value("fault.width", width, "1 to 12 lanes"));
        }
        if !(1..=width).contains(&lanes) {
            return Err(BuildError::value("fault.lanes", lanes, format!("1 to {width}, the lanes of the cable")));
        }
        Ok(Self { link, one_way, lanes, width })
    }
}

impl Fault for DegradedLink {
    fn apply(&self, graph: &Graph, condition: &mut Condition) {
        let directions = [self.link, graph.link(self.link).reverse];
        for &link in &directions[..if self.one_way { 1 } else { 2 }] {
            let whole = u128::from(graph.link(link).bandwidth.0);
            let left = (whole * u128::from(self.lanes) / u128::from(self.width)).max(1);
            condition.limit(link, BitsPerSec(u64::try_from(left).expect("invariant: at most the bandwidth")));
        }
    }
}
