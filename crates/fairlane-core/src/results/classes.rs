//! Tables of traffic classes, in simulations that count messages by class: bytes, and who delays whom.

use super::Measured;
use super::latency::class_name;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Number, Picoseconds};

/// One row per job and class, and per job for its messages without a class (`class` ""): the `bytes` of the packets that have come
/// to their hosts, headers included.
pub(super) fn bytes(of: Measured<'_>) -> Columns {
    let (names, traffic) = (of.mpi.levels().class_names(), of.mpi.levels().traffic());
    let rows: Vec<_> = traffic.iter().zip(of.network.class_bytes()).collect();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0.0.0)))
        .text("class", rows.iter().map(|row| class_name(&names, row.0.1)))
        .u64("bytes", Bytes, rows.iter().map(|row| row.1))
}

/// One row per pair of such rows, unless it is zero: the queueing delay (`waiting`, ps) of the packets of class `delayed_class` of job
/// `delayed` that class `delaying_class` of job `delaying` caused.
pub(super) fn interference(of: Measured<'_>) -> Columns {
    let levels = of.mpi.levels();
    let (names, traffic) = (levels.class_names(), levels.traffic());
    let counted = if levels.count_classes() { traffic.len() } else { 0 };
    let matrix = of.network.interference();
    let cells = (0..counted).flat_map(|a| (0..counted).map(move |b| (a, b)));
    let rows: Vec<_> =
        cells.map(|(a, b)| (traffic[a], traffic[b], matrix.cell(a, b))).filter(|row| row.2 > 0).collect();
    Columns::default()
        .u32("delayed", Number, rows.iter().map(|row| u32::from(row.0.0.0)))
        .text("delayed_class", rows.iter().map(|row| class_name(&names, row.0.1)))
        .u32("delaying", Number, rows.iter().map(|row| u32::from(row.1.0.0)))
        .text("delaying_class", rows.iter().map(|row| class_name(&names, row.1.1)))
        .u64("waiting", Picoseconds, rows.iter().map(|row| row.2))
}
