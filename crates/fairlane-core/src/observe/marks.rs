//! When a job completed its iterations: iteration `k` is complete when the last of its ranks has marked it.
//!
//! Two runs of one program are compared by the times at which they completed the same iteration, so what is kept of both
//! must have iterations in common. All of them are kept up to [`MOST_MARKS`]; of more, those whose numbers are multiples of
//! the smallest power of two that leaves no more than that. Two such lists share every number that both reached and that
//! is a multiple of the larger power.

use std::collections::VecDeque;

use crate::units::Instant;

/// The most instants that are kept of a job. Of longer runs at least half as many are.
pub const MOST_MARKS: usize = 4096;

/// An iteration that some ranks have marked and others have not.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Ranks that have yet to mark it.
    missing: u32,
    /// The latest instant at which a rank marked it. Ranks of one window are not run in order of time.
    latest: Instant,
}

/// The instants at which a job completed its iterations.
#[derive(Clone, Debug)]
pub struct JobMarks {
    ranks: u32,
    completed: u64,
    stride: u64,
    kept: Vec<Instant>,
    /// Iterations after `completed` that at least one rank has marked, in order.
    pending: VecDeque<Pending>,
}

impl JobMarks {
    /// Nothing marked yet, of a job with so many ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self { ranks, completed: 0, stride: 1, kept: Vec::new(), pending: VecDeque::new() }
    }

    /// One of the ranks marks its iteration number `iteration`, counted from 1, at `now`.
    pub(crate) fn mark(&mut self, iteration: u64, now: Instant) {
        let ahead = usize::try_from(iteration - self.completed - 1).unwrap_or(usize::MAX);
        if ahead == self.pending.len() {
            self.pending.push_back(Pending { missing: self.ranks, latest: now });
        }
        let pending = &mut self.pending[ahead];
        pending.missing -= 1;
        pending.latest = pending.latest.max(now);
        // A later iteration cannot be complete before an earlier one: every rank marks them in order.
        if pending.missing == 0 {
            let at = pending.latest;
            self.pending.pop_front();
            self.complete(at);
        }
    }

    fn complete(&mut self, at: Instant) {
        self.completed += 1;
        if self.completed.is_multiple_of(self.stride) {
            self.kept.push(at);
        }
        if self.kept.len() > MOST_MARKS {
            self.stride *= 2;
            self.kept = self.kept.iter().copied().skip(1).step_by(2).collect();
        }
    }

    /// Iteration numbers, from 1, and when they were completed, in order.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = (u64, Instant)> {
        let stride = self.stride;
        (1..).zip(&self.kept).map(move |(place, at): (u64, _)| (place * stride, *at)).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(marks: &JobMarks) -> Vec<(u64, u64)> {
        marks.kept().map(|(iteration, at)| (iteration, at.0)).collect()
    }

    #[test]
    fn an_iteration_is_complete_when_its_last_rank_has_marked_it() {
        let mut marks = JobMarks::new(3);
        for (iteration, at) in [(1, 10), (2, 20), (1, 15), (3, 30), (2, 40)] {
            marks.mark(iteration, Instant(at));
        }
        assert_eq!(kept(&marks), []);
        // Of the window in which rank 1 marked at 15 the third is run last, and its mark is of an earlier instant.
        marks.mark(1, Instant(12));
        assert_eq!(kept(&marks), [(1, 15)]);
        marks.mark(2, Instant(50));
        marks.mark(3, Instant(60));
        assert_eq!(kept(&marks), [(1, 15), (2, 50)]);
    }

    #[test]
    fn of_many_iterations_every_second_or_fourth_is_kept() {
        let most = u64::try_from(MOST_MARKS).unwrap();
        for (iterations, stride) in [(most, 1), (most + 1, 2), (2 * most + 1, 2), (2 * most + 2, 4), (3 * most, 4)] {
            let mut marks = JobMarks::new(1);
            (1..=iterations).for_each(|iteration| marks.mark(iteration, Instant(7 * iteration)));
            let expected: Vec<_> = (1..=iterations / stride).map(|n| (n * stride, 7 * n * stride)).collect();
            assert_eq!(kept(&marks), expected, "{iterations} iterations");
        }
    }
}
