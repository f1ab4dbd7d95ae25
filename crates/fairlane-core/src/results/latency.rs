//! Tables of latencies, of messages from the call of the send and of packets from the offer to the adapter, to the delivery.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Count, Number, Picoseconds};
use crate::ids::JobId;
use crate::observe::{Bucket, Histogram, Latencies};
use crate::qos::levels::TrafficKind;

/// The latencies of messages delivered so far: from the call of the send to the delivery of the last byte.
pub(crate) fn message_latencies(of: Measured<'_>) -> Latencies {
    let unseen: Vec<_> = (0..of.mpi.shard_count()).map(|shard| of.network.unseen_deliveries(shard)).collect();
    of.mpi.latencies(&unseen)
}

/// Every histogram: whether it is of messages or of packets, its job, its traffic kind.
fn histograms(measured: Measured<'_>) -> Vec<(&'static str, JobId, TrafficKind, Histogram)> {
    let of = [("message", message_latencies(measured)), ("packet", measured.network.latencies())];
    let rows = of.iter().flat_map(|(of, latencies)| {
        latencies.histograms().map(move |(job, kind, histogram)| (*of, job, kind, histogram.clone()))
    });
    rows.collect()
}

/// Every bucket of them in which something was counted.
fn buckets(measured: Measured<'_>) -> Vec<(&'static str, JobId, TrafficKind, Bucket)> {
    let rows = histograms(measured);
    rows.iter()
        .flat_map(|(of, job, kind, found)| found.buckets().map(move |bucket| (*of, *job, *kind, bucket)))
        .collect()
}

/// One row per job and traffic kind, `of` messages and of packets: their `count`, and the exact sum, minimum and maximum of
/// their latencies, ps. The sum has 128 bits: `sum_high` is in units of 2^64 ps. `kind_number` counts the traffic kinds.
pub(super) fn latency(of: Measured<'_>) -> Columns {
    let rows = histograms(of);
    let low = |sum: u128| u64::try_from(sum & u128::from(u64::MAX)).expect("invariant: 64 bits");
    Columns::default()
        .text("of", rows.iter().map(|row| row.0))
        .u32("job", Number, rows.iter().map(|row| u32::from(row.1.0)))
        .text("kind", rows.iter().map(|row| row.2.name()))
        .u8("kind_number", Number, rows.iter().map(|row| number(row.2)))
        .u64("count", Count, rows.iter().map(|row| row.3.count()))
        .u64("sum_low", Picoseconds, rows.iter().map(|row| low(row.3.sum())))
        .u64("sum_high", Picoseconds, rows.iter().map(|row| low(row.3.sum() >> 64)))
        .u64("min", Picoseconds, rows.iter().map(|row| row.3.min().unwrap_or_default().0))
        .u64("max", Picoseconds, rows.iter().map(|row| row.3.max().unwrap_or_default().0))
}

/// The buckets in which something was counted: how many latencies (`count`) were from `low` to `high`, ps, both included.
pub(super) fn histogram(of: Measured<'_>) -> Columns {
    let rows = buckets(of);
    Columns::default()
        .text("of", rows.iter().map(|row| row.0))
        .u32("job", Number, rows.iter().map(|row| u32::from(row.1.0)))
        .text("kind", rows.iter().map(|row| row.2.name()))
        .u64("low", Picoseconds, rows.iter().map(|row| row.3.low.0))
        .u64("high", Picoseconds, rows.iter().map(|row| row.3.high.0))
        .u64("count", Count, rows.iter().map(|row| row.3.count))
}

fn number(kind: TrafficKind) -> u8 {
    u8::try_from(kind.index()).expect("invariant: there are six traffic kinds")
}

/// The rows of `histogram` in numbers alone, to be read often while a simulation runs: `of` is 0 for messages and 1 for
/// packets.
pub(super) fn counts(of: Measured<'_>) -> Columns {
    let rows = buckets(of);
    Columns::default()
        .u8("of", Number, rows.iter().map(|row| u8::from(row.0 == "packet")))
        .u32("job", Number, rows.iter().map(|row| u32::from(row.1.0)))
        .u8("kind_number", Number, rows.iter().map(|row| number(row.2)))
        .u64("high", Picoseconds, rows.iter().map(|row| row.3.high.0))
        .u64("count", Count, rows.iter().map(|row| row.3.count))
}
