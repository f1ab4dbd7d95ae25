//! Python bindings of the fairlane simulator: convert, release the interpreter's lock, map errors. Nothing else.
//!
//! Quantities are plain integers: picoseconds, bytes, bits per second. What is nested comes as JSON.

#[cfg(target_os = "linux")]
mod allocator;
mod build;
mod builder;
mod columns;
mod errors;
mod fabric;
mod simulation;
mod tables;
mod trace;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<builder::ProgramBuilder>()?;
    module.add_class::<builder::Program>()?;
    module.add_class::<fabric::Fabric>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(fabric::fabric_size, module)?)?;
    module.add_function(wrap_pyfunction!(fabric::footprint, module)?)?;
    module.add_function(wrap_pyfunction!(trace::open_trace, module)?)?;
    module.add_function(wrap_pyfunction!(trace::describe_trace, module)?)?;
    module.add_function(wrap_pyfunction!(trace::is_graph, module)?)?;
    module.add_function(wrap_pyfunction!(builder::open_loop, module)?)?;
    module.add_function(wrap_pyfunction!(builder::stepped, module)?)?;
    module.add_function(wrap_pyfunction!(tables::tables, module)?)?;
    module.add_function(wrap_pyfunction!(build::build_info, module)?)?;
    Ok(())
}
