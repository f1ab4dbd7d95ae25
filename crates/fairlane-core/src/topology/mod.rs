//! Topologies: pure graphs of hosts, switches and links. They know nothing of queues, packets or routes.
//!
//! A topology is one file that exports an [`Entry`]; [`TABLE`] lists them. See `CONTRIBUTING.md` for how to add one.

mod arrangement;
mod cascade;
mod dragonfly;
mod dragonfly_plus;
mod fat_tree;
mod forwarding;
mod graph;
mod hyperx;
mod imported;
mod lattice;
mod layout;
mod links;
mod names;
mod preset;
mod rails;
mod rails_spec;
mod random_regular;
mod size;
mod slim_fly;
mod tiers;
mod torus;

use schemars::Schema;
use serde_json::json;

use crate::error::BuildError;
use crate::table::{self, Buildable, Table};
pub use forwarding::Forwarding;
pub use graph::{Graph, GraphBuilder, Link, Vertex};
pub use layout::{Grid, Layout, LineCabling, LinkRole};
pub use rails::Planes;
pub use rails_spec::{Adapter, RailsSpec, Wiring};
pub use size::Size;
pub use tiers::is_tree;

/// A topology that can be asked for by name.
#[derive(Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The routing that it is usually run with, and that a scenario gets which names none.
    pub routing: &'static str,
    /// The JSON schema of its parameters, with descriptions, defaults and units.
    pub schema: fn() -> Schema,
    /// Counts hosts, switches and links from parameters that follow the schema, without building anything.
    pub size: fn(&serde_json::Value) -> Result<Size, BuildError>,
    /// Builds the graph from parameters that follow the schema, whose [`Entry::size`] has been checked.
    pub build: fn(&serde_json::Value) -> Result<Graph, BuildError>,
}

/// The built-in topologies.
pub const TABLE: &[Entry] = &[
    cascade::ENTRY,
    dragonfly::ENTRY,
    dragonfly_plus::ENTRY,
    fat_tree::ENTRY,
    hyperx::ENTRY,
    imported::ENTRY,
    random_regular::ENTRY,
    slim_fly::ENTRY,
    torus::ENTRY,
];

impl table::Entry for Entry {
    const KIND: &'static str = "topology";
    const BUILT_IN: &'static [Self] = TABLE;

    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn describe(&self) -> serde_json::Value {
        let Self { name, summary, routing, schema, .. } = self;
        json!({ "name": name, "summary": summary, "routing": routing, "schema": schema() })
    }
}

impl Buildable for Entry {
    const PATH: &'static str = "fabric";
    type Given<'a> = ();
    type Built = Graph;

    fn build(&'static self, _table: &Table<Self>, params: &serde_json::Value, (): ()) -> Result<Graph, BuildError> {
        (self.size)(params)?.check()?;
        (self.build)(params).map(|graph| graph.built_by(self))
    }
}

impl Table<Entry> {
    /// How large the topology `name` is with `params`: nothing is built.
    ///
    /// # Errors
    /// [`BuildError`] when the name or a parameter is wrong.
    pub fn size(&self, name: &str, params: &serde_json::Value) -> Result<Size, BuildError> {
        (self.find(name)?.size)(params)
    }
}

/// Builds a built-in topology; see [`Table::build`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn build(name: &str, params: &serde_json::Value) -> Result<Graph, BuildError> {
    Table::<Entry>::default().build(name, params, ())
}

/// How large a built-in topology is; see [`Table::size`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn size(name: &str, params: &serde_json::Value) -> Result<Size, BuildError> {
    Table::<Entry>::default().size(name, params)
}
