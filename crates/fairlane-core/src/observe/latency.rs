//! Latencies by job and traffic kind, as histograms: log-linear buckets, as in Gil Tene's HdrHistogram.
//!
//! Count, sum, minimum and maximum are exact. A bucket is as wide as a 256th of its lowest value or narrower, so a quantile is
//! known within 0.4%. All histograms have the same buckets: those of several jobs or runs are merged exactly by adding counts.

use crate::ids::TrafficId;
use crate::qos::levels::TrafficKind;
use crate::units::Picoseconds;

/// Buckets of a row, which are of one width. Latencies of the first two rows are counted picosecond by picosecond.
const ROW: u64 = 1 << ROW_BITS;
const ROW_BITS: u32 = 8;

/// How often each latency occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    sum: u128,
    max: u64,
    /// The complement of the minimum, so that zero stands for none.
    min: u64,
    /// The counts of consecutive rows, from that of the first bucket on.
    counts: Vec<u64>,
    first: usize,
}

/// Latencies from `low` to `high`, both included, occurred `count` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The least latency that is counted here.
    pub low: Picoseconds,
    /// The greatest.
    pub high: Picoseconds,
    /// How many there were.
    pub count: u64,
}

impl Histogram {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Picoseconds) {
        let value = latency.0;
        self.sum += u128::from(value);
        if value > self.max {
            self.max = value;
        }
        if !value > self.min {
            self.min = !value;
        }
        let bucket = bucket_of(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.record_in_new_row(bucket),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_in_new_row(&mut self, bucket: usize) {
        let row = bucket & !(ROW as usize - 1);
        if self.counts.is_empty() {
            self.first = row;
        }
        if row < self.first {
            let more = std::iter::repeat_n(0, self.first - row);
            self.counts.splice(0..0, more);
            self.first = row;
        }
        let end = row + ROW as usize - self.first;
        self.counts.resize(end.max(self.counts.len()), 0);
        self.counts[bucket - self.first] += 1;
    }

    /// Counts all that another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.min = self.min.max(other.min);
        for (bucket, &count) in (other.first..).zip(&other.counts).filter(|(_, count)| **count > 0) {
            if self.counts.get(bucket.wrapping_sub(self.first)).is_none() {
                self.record_in_new_row(bucket);
                self.counts[bucket - self.first] -= 1;
            }
            self.counts[bucket - self.first] += count;
        }
    }

    /// How many latencies have been counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their exact sum, in picoseconds.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The least; `None` if there is none.
    #[must_use]
    pub fn min(&self) -> Option<Picoseconds> {
        (!self.counts.is_empty()).then_some(Picoseconds(!self.min))
    }

    /// The greatest; `None` if there is none.
    #[must_use]
    pub fn max(&self) -> Option<Picoseconds> {
        (!self.counts.is_empty()).then_some(Picoseconds(self.max))
    }

    /// The buckets in which something has been counted, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let counts = (self.first..).zip(&self.counts).filter(|(_, count)| **count > 0);
        counts.map(|(bucket, &count)| {
            let (low, high) = bounds(bucket);
            Bucket { low, high, count }
        })
    }
}

/// The number of a value's bucket: a row number, followed by the bits of the value that follow the first.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "below 58 rows")]
fn bucket_of(value: u64) -> usize {
    let shift = (value | ROW).ilog2() - ROW_BITS;
    // The first bit of a value of more bits than a row number is not cut off: it makes the row one greater than the shift.
    ((u64::from(shift) << ROW_BITS) + (value >> shift)) as usize
}

/// The least and the greatest value of a bucket.
fn bounds(bucket: usize) -> (Picoseconds, Picoseconds) {
    let (row, column) = (bucket as u64 >> ROW_BITS, bucket as u64 & (ROW - 1));
    let (shift, scaled) = if row == 0 { (0, column) } else { (row - 1, column + ROW) };
    let low = scaled << shift;
    (Picoseconds(low), Picoseconds(low + ((1 << shift) - 1)))
}

/// A histogram for each [`TrafficId`] and traffic kind; none at all where latencies are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(Vec<Histogram>);

impl Latencies {
    /// Empty histograms for this many jobs, or classes of jobs.
    #[must_use]
    pub fn new(counted: usize) -> Self {
        Self(vec![Histogram::default(); counted * TrafficKind::ALL.len()])
    }

    /// Counts one latency, if latencies are kept.
    #[inline]
    pub fn record(&mut self, traffic: TrafficId, kind: TrafficKind, latency: Picoseconds) {
        if let Some(histogram) = self.0.get_mut(traffic.index() * TrafficKind::ALL.len() + kind.index()) {
            histogram.record(latency);
        }
    }

    /// Counts all that a histogram has counted.
    pub fn merge_into(&mut self, traffic: TrafficId, kind: TrafficKind, more: &Histogram) {
        self.0[traffic.index() * TrafficKind::ALL.len() + kind.index()].merge(more);
    }

    /// Counts all that has been counted elsewhere, of the same jobs.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(histogram, more)| histogram.merge(more));
    }

    /// The histograms in which something has been counted, in order of [`TrafficId`], then traffic kind.
    pub fn histograms(&self) -> impl Iterator<Item = (TrafficId, TrafficKind, &Histogram)> {
        let places = (0..u16::MAX).flat_map(|traffic| TrafficKind::ALL.map(|kind| (TrafficId(traffic), kind)));
        places
            .zip(&self.0)
            .filter(|(_, histogram)| !histogram.counts.is_empty())
            .map(|((traffic, kind), found)| (traffic, kind, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_on_each_other_without_gaps() {
        let mut next = 0;
        for bucket in 0..57 * ROW as usize {
            let (low, high) = bounds(bucket);
            assert_eq!(low.0, next);
            assert_eq!((bucket_of(low.0), bucket_of(high.0)), (bucket, bucket));
            next = high.0.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends with the last value");
    }

    proptest! {
        #[test]
        fn counts_and_sums_are_exact_and_buckets_narrow(values in prop::collection::vec(any::<u64>(), 1..50), cut in 0..64) {
            let values: Vec<u64> = values.into_iter().map(|value| value >> cut).collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(Picoseconds(*value)));
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.sum(), values.iter().map(|value| u128::from(*value)).sum());
            prop_assert_eq!(histogram.min().map(|it| it.0), values.iter().min().copied());
            prop_assert_eq!(histogram.max().map(|it| it.0), values.iter().max().copied());
            let mut found = 0;
            for Bucket { low, high, count } in histogram.buckets() {
                prop_assert!((high.0 - low.0) <= low.0 >> ROW_BITS);
                prop_assert_eq!(count, values.iter().filter(|value| (low.0..=high.0).contains(value)).count() as u64);
                found += count;
            }
            prop_assert_eq!(found, histogram.count());
        }
    }

    proptest! {
        #[test]
        fn merging_is_counting_all_in_one(values in prop::collection::vec(any::<u64>(), 0..50), cut in 0..64, split in 0..50_usize) {
            let values: Vec<u64> = values.into_iter().map(|value| value >> cut).collect();
            let histogram = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|value| histogram.record(Picoseconds(*value)));
                histogram
            };
            let (one, other) = values.split_at(split.min(values.len()));
            let mut merged = histogram(one);
            merged.merge(&histogram(other));
            let expected = histogram(&values);
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), expected.buckets().collect::<Vec<_>>());
            prop_assert_eq!((merged.sum(), merged.min(), merged.max()), (expected.sum(), expected.min(), expected.max()));
        }
    }

    #[test]
    fn what_is_not_kept_is_not_counted() {
        let mut latencies = Latencies::default();
        latencies.record(TrafficId(0), TrafficKind::Bulk, Picoseconds(7));
        assert_eq!(latencies.histograms().count(), 0);
        let mut latencies = Latencies::new(2);
        latencies.record(TrafficId(1), TrafficKind::Bulk, Picoseconds(7));
        let found: Vec<_> = latencies.histograms().map(|(traffic, kind, it)| (traffic, kind, it.sum())).collect();
        assert_eq!(found, [(TrafficId(1), TrafficKind::Bulk, 7)]);
    }
}
