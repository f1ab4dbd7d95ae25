//! The table of pauses.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Count, Number, Picoseconds};

/// One row per link and lane that priority flow control has paused, in order of the first pause: where pauses spread, the root comes
/// first.
///
/// | column | unit | |
/// |---|---|---|
/// | `link`, `lane` | number | what was paused: the port that sends on the link, by the buffer at its end |
/// | `first` | ps | when the first PAUSE took effect |
/// | `pauses` | count | how often one did |
/// | `paused`, `longest` | ps | time in which the lane was paused, and the longest pause |
/// | `peak` | bytes | the most in the buffer at the end of the link |
/// | `storm` | flag | whether a host has paused it without a reason (fault `pause_storm`) |
/// | `expired`, `dropped` | pauses, packets | those in which the watchdog dropped packets, and the packets |
pub(super) fn pauses(of: Measured<'_>) -> Columns {
    let mut rows = of.network.pauses();
    rows.sort_by_key(|(link, lane, counters)| (counters.first, *link, *lane));
    Columns::default()
        .u32("link", Number, rows.iter().map(|row| row.0.0))
        .u8("lane", Number, rows.iter().map(|row| row.1))
        .u64("first", Picoseconds, rows.iter().map(|row| row.2.first.0))
        .u64("pauses", Count, rows.iter().map(|row| row.2.pauses))
        .u64("paused", Picoseconds, rows.iter().map(|row| row.2.paused.0))
        .u64("longest", Picoseconds, rows.iter().map(|row| row.2.longest.0))
        .u32("peak", Bytes, rows.iter().map(|row| row.2.peak))
        .flag("storm", rows.iter().map(|row| row.2.storm))
        .u64("expired", Count, rows.iter().map(|row| row.2.expired))
        .u64("dropped", Count, rows.iter().map(|row| row.2.dropped))
}
