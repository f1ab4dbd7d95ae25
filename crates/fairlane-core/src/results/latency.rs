//! Tables of latencies, of messages from the call of the send and of packets from the offer to the adapter, to the delivery.

use std::borrow::Cow;

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

/// What a histogram is of: "message" or "packet", of a job or one of its classes, and of a traffic kind.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    of: &'static str,
    job: JobId,
    class: Option<usize>,
    kind: TrafficKind,
}

/// Every histogram of messages, then of packets, by job, class if `by_class`, and traffic kind.
fn histograms(measured: Measured<'_>, by_class: bool) -> Vec<(Key, Histogram)> {
    let traffic = measured.mpi.levels().traffic();
    let mut all: Vec<(Key, Histogram)> = Vec::new();
    for (of, latencies) in [("message", message_latencies(measured)), ("packet", measured.network.latencies())] {
        let first = all.len();
        for (counted, kind, histogram) in latencies.histograms() {
            let (job, class) = traffic[counted.index()];
            let key = Key { of, job, class: class.filter(|_| by_class), kind };
            // What is counted of a job stands side by side.
            let mut of_job = all[first..].iter_mut().rev().take_while(|(other, _)| other.job == job);
            match of_job.find(|(other, _)| *other == key) {
                Some((_, sum)) => sum.merge(histogram),
                None => all.push((key, histogram.clone())),
            }
        }
        all[first..].sort_by_key(|(key, _)| (key.job, key.class, key.kind));
    }
    all
}

/// Every bucket of them in which something was counted.
fn buckets(histograms: &[(Key, Histogram)]) -> Vec<(Key, Bucket)> {
    histograms.iter().flat_map(|(key, histogram)| histogram.buckets().map(move |bucket| (*key, bucket))).collect()
}

/// The columns of keys; the class, "" without one, if `classes` has the names of all.
fn keys<'k>(keys: impl Iterator<Item = &'k Key> + Clone, classes: Option<&[String]>) -> Columns {
    let columns = Columns::default().text("of", keys.clone().map(|key| key.of)).u32(
        "job",
        Number,
        keys.clone().map(|key| u32::from(key.job.0)),
    );
    let columns = match classes {
        Some(names) => columns.text("class", keys.clone().map(|key| class_name(names, key.class))),
        None => columns,
    };
    columns.text("kind", keys.map(|key| key.kind.name()))
}

/// The name of a class, "" for none.
pub(super) fn class_name(names: &[String], class: Option<usize>) -> Cow<'static, str> {
    class.map_or(Cow::Borrowed(""), |class| Cow::Owned(names[class].clone()))
}

/// Counts, sums and extremes of histograms, in columns after those of their keys.
fn exact(columns: Columns, rows: &[(Key, Histogram)]) -> Columns {
    let low = |sum: u128| u64::try_from(sum & u128::from(u64::MAX)).expect("invariant: 64 bits");
    columns
        .u64("count", Count, rows.iter().map(|row| row.1.count()))
        .u64("sum_low", Picoseconds, rows.iter().map(|row| low(row.1.sum())))
        .u64("sum_high", Picoseconds, rows.iter().map(|row| low(row.1.sum() >> 64)))
        .u64("min", Picoseconds, rows.iter().map(|row| row.1.min().unwrap_or_default().0))
        .u64("max", Picoseconds, rows.iter().map(|row| row.1.max().unwrap_or_default().0))
}

/// Bounds and counts of buckets, in columns after those of their keys.
fn bounds(columns: Columns, rows: &[(Key, Bucket)]) -> Columns {
    columns
        .u64("low", Picoseconds, rows.iter().map(|row| row.1.low.0))
        .u64("high", Picoseconds, rows.iter().map(|row| row.1.high.0))
        .u64("count", Count, rows.iter().map(|row| row.1.count))
}

/// One row per job and traffic kind, `of` messages and of packets: their `count`, and the exact sum, minimum and maximum of
/// their latencies, ps. The sum has 128 bits: `sum_high` is in units of 2^64 ps. `kind_number` counts the traffic kinds.
pub(super) fn latency(of: Measured<'_>) -> Columns {
    let rows = histograms(of, false);
    let columns = keys(rows.iter().map(|row| &row.0), None);
    exact(columns.u8("kind_number", Number, rows.iter().map(|row| number(row.0.kind))), &rows)
}

/// The buckets in which something was counted: how many latencies (`count`) were from `low` to `high`, ps, both included.
pub(super) fn histogram(of: Measured<'_>) -> Columns {
    let rows = buckets(&histograms(of, false));
    bounds(keys(rows.iter().map(|row| &row.0), None), &rows)
}

/// The histograms by class, too; none if messages are not counted by class.
fn class_histograms(of: Measured<'_>) -> Vec<(Key, Histogram)> {
    if of.mpi.levels().count_classes() { histograms(of, true) } else { Vec::new() }
}

/// As [`latency`], by job, class and traffic kind, where messages are counted by class. `class` is "" for those that have none.
pub(super) fn class_latency(of: Measured<'_>) -> Columns {
    let rows = class_histograms(of);
    exact(keys(rows.iter().map(|row| &row.0), Some(&of.mpi.levels().class_names())), &rows)
}

/// As [`histogram`], by job, class and traffic kind.
pub(super) fn class_histogram(of: Measured<'_>) -> Columns {
    let rows = buckets(&class_histograms(of));
    bounds(keys(rows.iter().map(|row| &row.0), Some(&of.mpi.levels().class_names())), &rows)
}

fn number(kind: TrafficKind) -> u8 {
    u8::try_from(kind.index()).expect("invariant: there are six traffic kinds")
}

/// The rows of `histogram` in numbers alone, to be read often while a simulation runs: `of` is 0 for messages and 1 for
/// packets.
pub(super) fn counts(of: Measured<'_>) -> Columns {
    let rows = buckets(&histograms(of, false));
    Columns::default()
        .u8("of", Number, rows.iter().map(|row| u8::from(row.0.of == "packet")))
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0.job.0)))
        .u8("kind_number", Number, rows.iter().map(|row| number(row.0.kind)))
        .u64("high", Picoseconds, rows.iter().map(|row| row.1.high.0))
        .u64("count", Count, rows.iter().map(|row| row.1.count))
}
