//! Topologies: pure graphs of hosts, switches and links. They know nothing of queues, packets or routes.
//!
//! A topology is one file that exports an [`Entry`]; [`TABLE`] lists them. See `CONTRIBUTING.md` for how to add one.

mod arrangement;
mod by_leaf;
mod cascade;
mod dragonfly;
mod dragonfly_plus;
mod endpoints;
mod fat_tree;
mod forwarding;
mod graph;
mod hyperx;
mod imported;
mod lattice;
mod layout;
mod leonardo;
mod links;
mod names;
mod parts;
mod preset;
mod rails;
mod rails_spec;
mod random_regular;
mod size;
mod slim_fly;
mod tiers;
mod torus;

use crate::error::BuildError;
use crate::table::{Item, Kind, Table};
pub use endpoints::RailMap;
pub use forwarding::Forwarding;
pub use graph::{Graph, GraphBuilder, Link, Vertex};
pub use layout::{Grid, Layout, LineCabling, LinkRole};
pub use rails::Planes;
pub use rails_spec::{Adapter, RailsSpec, Wiring};
pub use size::Size;
pub use tiers::is_tree;

/// The kind of entry that topologies are.
#[derive(Debug)]
pub enum Topologies {}

/// A topology that can be named in a scenario.
pub type Entry = Item<Topologies>;

/// The builder of a topology.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The routing that it is usually run with, and that a scenario gets which names none.
    pub routing: &'static str,
    /// Counts hosts, switches and links from parameters that follow the schema, without building anything.
    pub size: fn(&serde_json::Value) -> Result<Size, BuildError>,
    /// Builds the graph from parameters that follow the schema, whose [`Build::size`] has been checked.
    pub graph: fn(&serde_json::Value) -> Result<Graph, BuildError>,
}

impl Entry {
    /// The routing that it is usually run with; see [`Build::routing`].
    #[must_use]
    pub const fn routing(&self) -> &'static str {
        self.build.routing
    }
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

impl Kind for Topologies {
    const KIND: &'static str = "topology";
    const PATH: &'static str = "fabric";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = ();
    type Built = Graph;
    type Build = Build;

    fn build(
        entry: &'static Entry,
        _table: &Table<Topologies>,
        params: &serde_json::Value,
        (): (),
    ) -> Result<Graph, BuildError> {
        (entry.build.size)(params)?.check()?;
        (entry.build.graph)(params).map(|graph| graph.built_by(entry))
    }

    fn details(entry: &Entry) -> Vec<(&'static str, serde_json::Value)> {
        vec![("routing", entry.routing().into())]
    }
}

impl Table<Topologies> {
    /// How large the topology `name` is with `params`: nothing is built.
    ///
    /// # Errors
    /// [`BuildError`] when the name or a parameter is wrong.
    pub fn size(&self, name: &str, params: &serde_json::Value) -> Result<Size, BuildError> {
        (self.find(name)?.build.size)(params)
    }
}

/// Builds a built-in topology; see [`Table::build`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn build(name: &str, params: &serde_json::Value) -> Result<Graph, BuildError> {
    Table::<Topologies>::default().build(name, params, ())
}

/// How large a built-in topology is; see [`Table::size`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn size(name: &str, params: &serde_json::Value) -> Result<Size, BuildError> {
    Table::<Topologies>::default().size(name, params)
}
