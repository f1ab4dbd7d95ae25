//! Traces as programs.

use fairlane_trace::{Options, TraceError};
use pyo3::prelude::*;

use crate::builder::Program;
use crate::errors;

fn options(json: &str) -> PyResult<Options> {
    serde_json::from_str(json).map_err(|error| errors::shape("trace", error))
}

fn map(error: &TraceError) -> PyErr {
    errors::shape("trace", error)
}

/// Opens a trace.
#[pyfunction]
pub fn open_trace(py: Python<'_>, path: &str, options_json: &str) -> PyResult<Program> {
    let options = options(options_json)?;
    let inner = py.detach(|| fairlane_trace::open(path, &options)).map_err(|error| map(&error))?;
    Ok(Program { inner })
}

/// Whether a file is a graph or a list of flows, whatever its name.
#[pyfunction]
pub fn is_graph(path: &str) -> bool {
    fairlane_trace::is_graph(path)
}

/// The contents of a trace, as JSON.
#[pyfunction]
pub fn describe_trace(py: Python<'_>, path: &str, options_json: &str) -> PyResult<String> {
    let options = options(options_json)?;
    let description = py.detach(|| fairlane_trace::describe(path, &options)).map_err(|error| map(&error))?;
    serde_json::to_string(&description).map_err(|error| errors::shape("trace", error))
}
