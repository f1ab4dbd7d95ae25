//! Plug-ins for fairlane, one file for each kind: they are written as the built-in ones are, and used by name like them.

pub mod chain;
pub mod flow_hash;
pub mod leaf_spine;
pub mod longest_queue;
pub mod oldest_first;
pub mod paced;

use fairlane_core::error::BuildError;
use fairlane_core::registry::Registry;

/// The built-in entries and those of this crate.
///
/// # Errors
/// [`BuildError::DuplicateName`] if fairlane has an entry of one of these names.
pub fn registry() -> Result<Registry, BuildError> {
    let mut registry = Registry::default();
    registry
        .add(&leaf_spine::ENTRY)?
        .add(&flow_hash::FLOW_HASH)?
        .add(&flow_hash::LIGHTEST_LANE)?
        .add(&oldest_first::ENTRY)?
        .add(&longest_queue::ENTRY)?
        .add(&chain::ENTRY)?
        .add(&paced::ENTRY)?;
    Ok(registry)
}
