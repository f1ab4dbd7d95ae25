//! Plug-ins for fairlane, one file for each kind: they are written as the built-in ones are, and used by name like them.

pub mod chain;
pub mod leaf_spine;
pub mod lean_switch;
pub mod longest_queue;
pub mod longest_wait;
pub mod paced;
pub mod smallest_first;
pub mod spines;

use fairlane_core::error::BuildError;
use fairlane_core::registry::Registry;

/// Adds the entries of this crate: `fairlane build` calls the function of this name.
///
/// # Errors
/// [`BuildError::DuplicateName`] if another entry has one of these names.
pub fn register(registry: &mut Registry) -> Result<(), BuildError> {
    registry.topologies.add(&leaf_spine::ENTRY)?;
    registry.routings.add(&spines::SPINE_BY_JOB)?;
    registry.routings.add(&spines::LIGHTEST_LANE)?;
    registry.arbiters.add(&longest_wait::ENTRY)?;
    registry.arbiters.add(&longest_queue::ENTRY)?;
    registry.collectives.add(&chain::ENTRY)?;
    registry.transports.add(&paced::ENTRY)?;
    registry.allocators.add(&smallest_first::ENTRY)?;
    registry.switches.add(&lean_switch::ENTRY)
}
