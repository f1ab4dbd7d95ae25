//! Links: one direction of a cable, with a rate and a latency.

use crate::units::BitsPerSec;

/// Rate and latency of a link. Links that are alike share one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    /// Latency, ps.
    pub latency: u64,
    pub bandwidth: BitsPerSec,
    /// Serialization time of a full packet, ps.
    pub full_wire_time: u64,
}
