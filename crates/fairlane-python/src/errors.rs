//! Errors of the simulator as Python exceptions with fields.

use fairlane_core::error;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{create_exception, intern};

create_exception!(fairlane._core, BuildError, PyValueError, "A simulation cannot be built from what was given.");
create_exception!(fairlane._core, RunError, PyRuntimeError, "A run had to end.");

/// A [`error::BuildError`] with the attributes `slug`, `path`, `value` and `allowed`.
pub fn build(error: &error::BuildError) -> PyErr {
    let (slug, path, value, allowed) = match error {
        error::BuildError::UnknownName { kind, given, allowed } => {
            ("unknown_name", (*kind).to_owned(), Some(given.clone()), Some(allowed.join(", ")))
        }
        error::BuildError::Value { path, value, allowed } => {
            ("value", path.clone(), Some(value.clone()), Some(allowed.clone()))
        }
        error::BuildError::Shape { path, problem } => ("shape", path.clone(), None, Some(problem.clone())),
    };
    Python::attach(|py| {
        let raised = BuildError::new_err(error.to_string());
        let object = raised.value(py);
        let set = || -> PyResult<()> {
            object.setattr(intern!(py, "slug"), slug)?;
            object.setattr(intern!(py, "path"), path)?;
            object.setattr(intern!(py, "value"), value)?;
            object.setattr(intern!(py, "allowed"), allowed)
        };
        set().err().unwrap_or(raised)
    })
}

/// A [`error::RunError`] with the attribute `slug`.
pub fn run(error: &error::RunError) -> PyErr {
    let slug = match error {
        error::RunError::Stuck { .. } => "stuck",
        error::RunError::CollectiveMismatch { .. } => "collective_mismatch",
        error::RunError::Program { .. } => "program",
        error::RunError::Source { .. } => "source",
        error::RunError::Deadlock { .. } => "deadlock",
        error::RunError::Law { .. } => "law",
    };
    Python::attach(|py| {
        let raised = RunError::new_err(error.to_string());
        raised.value(py).setattr(intern!(py, "slug"), slug).err().unwrap_or(raised)
    })
}

/// JSON that does not have the shape asked for.
pub fn shape(what: &str, problem: impl std::fmt::Display) -> PyErr {
    build(&error::BuildError::Shape { path: what.to_owned(), problem: problem.to_string() })
}
