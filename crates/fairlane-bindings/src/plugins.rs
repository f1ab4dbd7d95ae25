//! The crates whose entries the extension module has besides the built-in ones. They are compiled into it: types and
//! functions of Rust have no stable binary interface, so that a library that is loaded into a simulator of another build is
//! not sound.

use std::sync::{LazyLock, OnceLock};

use fairlane_core::error::BuildError;
use fairlane_core::registry::Registry;
use serde_json::Value;

/// A crate that adds entries to a registry.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// The name of the crate.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Adds its entries.
    pub register: fn(&mut Registry) -> Result<(), BuildError>,
}

/// The entries by name, and their crates.
struct Known {
    registry: Registry,
    /// All tables as JSON; an entry of a plug-in has its `crate`, with the version.
    tables: Value,
}

static KNOWN: OnceLock<Known> = OnceLock::new();
static BUILT_IN: LazyLock<Registry> = LazyLock::new(Registry::default);

/// Adds the entries of plug-ins to the built-in ones, once a process.
///
/// # Errors
/// [`BuildError::DuplicateName`] if a name is taken.
pub fn register(plugins: &[Plugin]) -> Result<(), BuildError> {
    if KNOWN.get().is_none() && !plugins.is_empty() {
        let mut registry = Registry::default();
        let mut tables = registry.describe();
        for plugin in plugins {
            (plugin.register)(&mut registry)?;
            mark(&mut tables, registry.describe(), plugin);
        }
        let _ = KNOWN.set(Known { registry, tables });
    }
    Ok(())
}

/// Adds those entries to `tables` that only `with` has, and says of which crate they are.
fn mark(tables: &mut Value, with: Value, plugin: &Plugin) {
    let Value::Object(with) = with else { return };
    for (kind, entries) in with {
        let (Some(known), Value::Array(entries)) = (tables[&kind].as_array_mut(), entries) else { continue };
        let count = known.len();
        known.extend(entries.into_iter().skip(count).map(|mut entry| {
            entry["crate"] = format!("{} {}", plugin.name, plugin.version).into();
            entry
        }));
    }
}

/// All that scenarios can ask for by name.
pub fn registry() -> &'static Registry {
    KNOWN.get().map_or_else(|| &*BUILT_IN, |known| &known.registry)
}

/// All tables as JSON.
pub fn tables() -> Value {
    KNOWN.get().map_or_else(|| BUILT_IN.describe(), |known| known.tables.clone())
}
