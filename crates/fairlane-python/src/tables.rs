//! What can be asked for by name, with schemas, for checks, help and the reference pages.

use fairlane_core::qos::arbiter;
use fairlane_core::simulation::Spec;
use fairlane_core::{mpi, routing, topology};
use pyo3::prelude::*;
use serde_json::json;

/// Every table of names as JSON: topology, routing, arbiter, collective; and the schema of a simulation.
#[pyfunction]
pub fn tables() -> String {
    let topologies: Vec<_> = topology::TABLE
        .iter()
        .map(|entry| {
            let usual = entry.routing;
            json!({"name": entry.name, "summary": entry.summary, "routing": usual, "schema": (entry.schema)()})
        })
        .collect();
    let routings: Vec<_> = routing::TABLE
        .iter()
        .map(|entry| json!({"name": entry.name, "summary": entry.summary, "schema": (entry.schema)()}))
        .collect();
    let arbiters: Vec<_> = arbiter::TABLE
        .iter()
        .map(|entry| json!({"name": entry.name, "summary": entry.summary, "schema": (entry.schema)()}))
        .collect();
    let collectives: Vec<_> = mpi::collectives::TABLE
        .iter()
        .map(|entry| json!({"kind": entry.kind.name(), "name": entry.name, "summary": entry.summary}))
        .collect();
    json!({
        "topology": topologies,
        "routing": routings,
        "arbiter": arbiters,
        "collective": collectives,
        "simulation": schemars::schema_for!(Spec),
    })
    .to_string()
}
