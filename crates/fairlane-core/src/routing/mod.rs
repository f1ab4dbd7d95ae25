//! Routing: from a switch, which link and which virtual channel a packet takes next.
//!
//! A routing is one file that exports an [`Entry`]; [`TABLE`] lists them. It sees the topology, never a queue.
//! Hops are looked up ahead, several at once, when a packet is made.

mod choices;
mod d_mod_k;
mod dimension_order;
mod minimal;
mod tables;
mod up_down;

use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Graph;

/// One step of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link it takes.
    pub link: LinkId,
    /// The virtual channel it takes on that link, below [`Routing::virtual_channels`].
    pub channel: u8,
}

/// A routing of one fabric, with everything precomputed that it needs.
pub trait Routing: Send + Sync {
    /// How many virtual channels it needs so that no cycle of channel dependencies exists.
    fn virtual_channels(&self) -> u8 {
        1
    }

    /// The next hop of a packet that stands at `at`, came over `previous`, and goes to `to`.
    ///
    /// Called once for each hop; must be a pure function of its arguments. `previous` is the hop that led here; for
    /// a packet fresh from a host it is the host's link, on channel 0.
    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop;
}

/// A routing that can be asked for by name.
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Prepares the routing for a fabric.
    pub build: fn(&Graph) -> Result<Box<dyn Routing>, BuildError>,
}

/// Every routing that can be asked for by name.
pub const TABLE: &[Entry] = &[d_mod_k::ENTRY, dimension_order::ENTRY, minimal::ENTRY, tables::ENTRY, up_down::ENTRY];

/// Prepares the routing `name` for `graph`.
///
/// # Errors
/// [`BuildError`] when the name is unknown or the routing does not fit the fabric; then it names the topology and the
/// routing that usually goes with it.
pub fn build(name: &str, graph: &Graph) -> Result<Box<dyn Routing>, BuildError> {
    let entry = crate::table::find("routing", TABLE, |entry| entry.name, name)?;
    (entry.build)(graph).map_err(|error| match graph.topology() {
        Some(topology) => error.and(&format!("topology {} is usually routed by {}", topology.name, topology.routing)),
        None => error,
    })
}
