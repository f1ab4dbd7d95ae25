//! Topologies: pure graphs of hosts, switches and links. They know nothing of queues, packets or routes.
//!
//! A topology is one file that exports an [`Entry`]; [`TABLE`] lists them. See `CONTRIBUTING.md` for how to add one.

mod fat_tree;
mod graph;

use schemars::Schema;

use crate::error::BuildError;
pub use graph::{Graph, GraphBuilder, Link, Vertex};

/// A topology that can be asked for by name.
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The JSON schema of its parameters, with descriptions, defaults and units.
    pub schema: fn() -> Schema,
    /// Builds the graph from parameters that follow the schema.
    pub build: fn(&serde_json::Value) -> Result<Graph, BuildError>,
}

/// Every topology that can be asked for by name.
pub const TABLE: &[Entry] = &[fat_tree::ENTRY];

/// Builds the topology `name` with `params`.
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn build(name: &str, params: &serde_json::Value) -> Result<Graph, BuildError> {
    let entry = crate::table::find("topology", TABLE, |entry| entry.name, name)?;
    (entry.build)(params)
}
