//! Python bindings of the fairlane simulator: convert, release the interpreter's lock, map errors. Nothing else.
//!
//! Quantities are plain integers: picoseconds, bytes, bits per second. What is nested comes as JSON. [`extension!`] makes an
//! extension module of them, with the entries of any plug-in crates.

#[cfg(target_os = "linux")]
mod allocator;
mod build;
mod builder;
mod columns;
mod errors;
mod fabric;
mod plugins;
mod simulation;
mod tables;
mod trace;

pub use plugins::Plugin;
pub use pyo3;
use pyo3::prelude::*;

/// Defines the extension module `_core`: with the built-in entries, and with those of plug-in crates.
///
/// Each plug-in is its crate's name and version, and the function that adds its entries to a registry:
///
/// ```ignore
/// fairlane_bindings::extension! { "my-plugin" "1.0.0" my_plugin::register }
/// ```
#[macro_export]
macro_rules! extension {
    ($($name:literal $version:literal $register:path)*) => {
        /// The compiled part of the package.
        #[$crate::pyo3::pymodule]
        #[pyo3(crate = "::fairlane_bindings::pyo3")]
        fn _core(module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>) -> $crate::pyo3::PyResult<()> {
            const PLUGINS: &[$crate::Plugin] =
                &[$($crate::Plugin { name: $name, version: $version, register: $register }),*];
            $crate::fill(module, PLUGINS)
        }
    };
}

/// Adds every class and function to an extension module; for [`extension!`].
///
/// # Errors
/// `BuildError` if two plug-ins, or a plug-in and fairlane, have entries of one name; errors of the interpreter.
pub fn fill(module: &Bound<'_, PyModule>, plugins: &'static [Plugin]) -> PyResult<()> {
    plugins::register(plugins).map_err(|error| errors::build(&error))?;
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
