//! The entries that can be asked for by name, with schemas, for checks, help and the reference pages.

use fairlane_core::registry::Registry;
use fairlane_core::simulation::Spec;
use pyo3::prelude::*;

/// All that scenarios can ask for by name. A build with plug-ins adds their entries here.
pub fn registry() -> Registry {
    Registry::default()
}

/// Every table of names as JSON: topology, routing, arbiter, collective; and the schema of a simulation.
#[pyfunction]
pub fn tables() -> String {
    let mut tables = registry().describe();
    tables["simulation"] = schemars::schema_for!(Spec).into();
    tables.to_string()
}
