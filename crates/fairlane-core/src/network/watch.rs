//! What the network keeps for those who look at it.

use std::ops::Range;

use crate::observe::{Departure, Interference, Latencies};

#[derive(Clone)]
pub(super) struct Watch {
    pub interference: Interference,
    /// By link and lane, the waiting of the packets that came that way at the switch behind, ps; empty if not asked for.
    pub onward: Vec<u64>,
    /// The instants at which departures are kept, ps.
    pub departs: Range<u64>,
    pub departures: Vec<Departure>,
    /// Of packets that their hosts have looked at.
    pub latencies: Latencies,
}
