//! Faults: what happens to a fabric while it runs.
//!
//! A fault is one file that exports an [`Entry`]; [`TABLE`] lists them. It begins at an instant, and ends at another or lasts to
//! the end of the run. The [`Condition`] of the fabric is recomputed from all active faults whenever one begins or ends, so
//! faults that overlap need not know of each other.
//!
//! Between two changes the fabric is static: no fault is consulted for a packet.

mod degraded_link;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::ids::LinkId;
use crate::table::{Constructor, Item, Kind, Named, Table};
use crate::topology::Graph;
use crate::units::{BitsPerSec, Picoseconds};

/// Current deviations of the fabric from what was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    bandwidths: BTreeMap<LinkId, BitsPerSec>,
}

impl Condition {
    /// Limits a link to this bandwidth; the lowest of several limits applies.
    pub fn limit(&mut self, link: LinkId, bandwidth: BitsPerSec) {
        let known = self.bandwidths.entry(link).or_insert(bandwidth);
        *known = bandwidth.min(*known);
    }

    /// Links with a limit, and the limit.
    #[must_use]
    pub const fn bandwidths(&self) -> &BTreeMap<LinkId, BitsPerSec> {
        &self.bandwidths
    }
}

/// Something that is wrong with a fabric for a time.
pub trait Fault: Send + Sync {
    /// Adds what it does to the fabric, which is `graph` as it was built.
    fn apply(&self, graph: &Graph, condition: &mut Condition);
}

/// A fault and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Which fault, with its parameters.
    pub fault: Named,
    /// When it begins: at the end of the window in which this instant lies, which is at most one link latency later.
    pub at: Picoseconds,
    /// When it ends, likewise; by default it lasts to the end of the run.
    #[serde(default)]
    pub until: Option<Picoseconds>,
}

/// The kind of entry that faults are.
pub enum Faults {}

/// A fault that can be asked for by name.
pub type Entry = Item<Faults>;

/// Where a fault stands in a specification, for errors.
pub(crate) const PATH: &str = "fault";

/// The built-in faults.
pub const TABLE: &[Entry] = &[degraded_link::ENTRY];

impl Kind for Faults {
    const KIND: &'static str = "fault";
    const PATH: &'static str = PATH;
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = &'a Graph;
    type Built = Arc<dyn Fault>;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Entry>,
        params: &serde_json::Value,
        graph: &Graph,
    ) -> Result<Arc<dyn Fault>, BuildError> {
        (entry.build)(params, graph)
    }
}
