//! Switches: where packets wait, and how they get from an input to an output port.
//!
//! An architecture is one file that exports an [`Entry`]; [`TABLE`] lists them. [`route`] chooses the output ports of packets
//! when they arrive, where this is not known before.

pub(super) mod input_queued;
mod output_queued;
mod route;

use schemars::Schema;
use serde_json::json;

use crate::error::BuildError;
use crate::table::{self, Named, Table};
use crate::units::Bytes;
pub(super) use input_queued::{Crossbars, InputQueued};
pub(super) use route::Arriving;

/// An architecture with its parameters.
#[derive(Clone, Debug)]
pub enum Architecture {
    /// Packets wait at output ports only.
    OutputQueued,
    /// Packets wait at input ports and cross a crossbar.
    InputQueued(InputQueued),
}

/// An architecture that can be asked for by name.
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The JSON schema of its parameters.
    pub schema: fn() -> Schema,
    /// Builds it from parameters that follow the schema, for full packets of this size.
    pub build: fn(&serde_json::Value, Bytes) -> Result<Architecture, BuildError>,
}

/// The architectures.
pub const TABLE: &[Entry] = &[output_queued::ENTRY, input_queued::ENTRY];

impl table::Entry for Entry {
    const KIND: &'static str = "switch architecture";
    const BUILT_IN: &'static [Self] = TABLE;

    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn describe(&self) -> serde_json::Value {
        let Self { name, summary, schema, .. } = self;
        json!({ "name": name, "summary": summary, "schema": schema() })
    }
}

/// The architecture of a fabric whose scenario names none.
pub(super) fn usual() -> Named {
    Named::new(output_queued::ENTRY.name)
}

/// Builds an architecture for full packets of this size.
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub(super) fn build(given: &Named, full: Bytes) -> Result<Architecture, BuildError> {
    (Table::<Entry>::default().find(&given.name)?.build)(&given.params, full)
}
