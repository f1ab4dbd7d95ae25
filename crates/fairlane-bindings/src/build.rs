//! How the compiled part was built, for reports of problems and for checks of an installation.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Version, target, compiler, optimisation level and debug assertions of the build, and the CPU features it requires.
#[pyfunction]
pub fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("version", env!("CARGO_PKG_VERSION"))?;
    found.set_item("target", env!("FAIRLANE_TARGET"))?;
    found.set_item("compiler", env!("FAIRLANE_RUSTC"))?;
    found.set_item("opt_level", env!("FAIRLANE_OPT_LEVEL"))?;
    found.set_item("debug_assertions", cfg!(debug_assertions))?;
    let features = env!("FAIRLANE_CPU_FEATURES").split(',').filter(|feature| !feature.is_empty());
    found.set_item("cpu_features", features.collect::<Vec<_>>())?;
    Ok(found)
}
