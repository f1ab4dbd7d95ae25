//! The entries that can be asked for by name, with schemas, for checks, help and the reference pages.

use fairlane_core::simulation::Spec;
use pyo3::prelude::*;

use crate::plugins;

/// Every table of names as JSON: topology, routing, arbiter, collective; and the schema of a simulation.
#[pyfunction]
pub fn tables() -> String {
    let mut tables = plugins::tables();
    tables["simulation"] = schemars::schema_for!(Spec).into();
    tables.to_string()
}
