//! Faults: what happens to a fabric while it runs.
//!
//! A fault is one file that exports an [`Entry`]; [`TABLE`] lists them. It lasts from an instant on, to another or to the end of
//! the run. While it lasts, it adds to the [`Condition`] of the fabric, which is made anew whenever a fault begins or ends: so
//! faults that overlap need not know of each other.
//!
//! Between two changes the fabric is static. Nothing of a fault is asked while packets move.

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

/// What is not as it was built, for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    bandwidths: BTreeMap<LinkId, BitsPerSec>,
}

impl Condition {
    /// A link has this bandwidth at most.
    pub fn limit(&mut self, link: LinkId, bandwidth: BitsPerSec) {
        let known = self.bandwidths.entry(link).or_insert(bandwidth);
        *known = bandwidth.min(*known);
    }

    /// The bandwidth of each link that has another than the one it was built with.
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
