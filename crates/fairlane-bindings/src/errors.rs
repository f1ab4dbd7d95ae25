//! Errors of the simulator as the exceptions of `fairlane.core.errors`, with their parts as attributes.

use fairlane_core::error;
use fairlane_core::program::ProgramError;
use fairlane_core::routing::PathError;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

/// A [`error::BuildError`] as `BuildError` with `slug`, `path`, `value` and `allowed`.
pub fn build(error: &error::BuildError) -> PyErr {
    let (slug, path, value, allowed) = match error {
        error::BuildError::UnknownName { kind, given, allowed } => {
            ("unknown_name", *kind, Some(given.as_str()), allowed.join(", "))
        }
        error::BuildError::DuplicateName { kind, name, .. } => {
            ("duplicate_name", *kind, Some(name.as_str()), "a name that is not taken".to_owned())
        }
        error::BuildError::Value { path, value, allowed } => ("value", &**path, Some(&**value), allowed.clone()),
        error::BuildError::Shape { path, problem } => ("shape", &**path, None, problem.clone()),
    };
    raised("BuildError", &error.to_string(), |py| {
        let parts = [("slug", Some(slug)), ("path", Some(path)), ("value", value), ("allowed", Some(&*allowed))];
        parts.into_py_dict(py)
    })
}

/// A [`error::RunError`] as `RunError` with `slug`.
pub fn run(error: &error::RunError) -> PyErr {
    let slug = match error {
        error::RunError::Stuck { .. } => "stuck",
        error::RunError::CollectiveMismatch { .. } => "collective_mismatch",
        error::RunError::Program { .. } => "program",
        error::RunError::Source { .. } => "source",
        error::RunError::TooManyMessages { .. } => "too_many_messages",
        error::RunError::Deadlock { .. } => "deadlock",
        error::RunError::Storm { .. } => "storm",
        error::RunError::Law { .. } => "law",
    };
    raised("RunError", &error.to_string(), |py| {
        let parts = [("slug", slug)].into_py_dict(py)?;
        if let error::RunError::Deadlock { cycle, .. } = error {
            parts.set_item("cycle", cycle.iter().map(|at| blocked(py, at)).collect::<PyResult<Vec<_>>>()?)?;
        }
        Ok(parts)
    })
}

/// A lane of a deadlock's cycle.
fn blocked<'py>(py: Python<'py>, at: &error::BlockedLane) -> PyResult<Bound<'py, PyDict>> {
    let parts = PyDict::new(py);
    parts.set_item("link", at.link.0)?;
    parts.set_item("name", &at.name)?;
    parts.set_item("lane", at.lane)?;
    parts.set_item("vl", at.vl.0)?;
    parts.set_item("packets", at.packets)?;
    parts.set_item("jobs", at.jobs.iter().map(|job| job.0).collect::<Vec<_>>())?;
    Ok(parts)
}

/// A [`PathError`] as `IndexError` where the arguments are wrong, as `RuntimeError` where the routing is.
pub fn path(error: &PathError) -> PyErr {
    match error {
        PathError::Host { .. } | PathError::Adapter { .. } | PathError::Apart { .. } => {
            PyIndexError::new_err(error.to_string())
        }
        PathError::Endless { .. } => PyRuntimeError::new_err(error.to_string()),
    }
}

/// A [`ProgramError`] as `IndexError` for a rank that there is none of, else as `ValueError`.
pub fn program(error: &ProgramError) -> PyErr {
    match error {
        ProgramError::NoRank { .. } => PyIndexError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// JSON that does not have the shape asked for.
pub fn shape(what: &str, problem: impl std::fmt::Display) -> PyErr {
    build(&error::BuildError::Shape { path: what.to_owned(), problem: problem.to_string() })
}

/// An exception of `fairlane.core.errors`, made from its message and keyword arguments.
fn raised(
    class: &str,
    message: &str,
    parts: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyDict>>,
) -> PyErr {
    Python::attach(|py| {
        let made =
            || py.import(intern!(py, "fairlane.core.errors"))?.getattr(class)?.call((message,), Some(&parts(py)?));
        made().map_or_else(|error| error, PyErr::from_value)
    })
}
