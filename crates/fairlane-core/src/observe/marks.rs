//! When a job completed its iterations, and how long they took: iteration `k` is complete when the last of its ranks has marked
//! it, and takes as long as the timed part of the rank that needed longest.
//!
//! Two runs of one program are compared by the times at which they completed the same iteration, so what is kept of both
//! must have iterations in common. All of them are kept up to [`MOST_MARKS`]; of more, those whose numbers are multiples of
//! the smallest power of two that leaves no more than that. Two such lists share every number that both reached and that
//! is a multiple of the larger power.
//!
//! Ranks may be far apart, and one may never mark. So of the iterations that are not complete only those are followed that
//! will be kept when they are, or that change what is kept: some thousands, however many there are.

use std::collections::VecDeque;

use crate::units::{Instant, Picoseconds};

/// The most instants that are kept of a job. Of longer runs at least half as many are.
pub const MOST_MARKS: usize = 4096;

/// The end of an iteration, of one rank or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// When it was marked; by the last of them.
    pub at: Instant,
    /// How long its timed part took; the longest of them.
    pub elapsed: Picoseconds,
    /// One of them began the timed part by [`Op::BeginTiming`](crate::program::Op::BeginTiming).
    pub timed: bool,
}

impl Mark {
    /// That of the ranks of both. Ranks of one window are not run in order of time.
    fn with(self, other: Self) -> Self {
        Self { at: self.at.max(other.at), elapsed: self.elapsed.max(other.elapsed), timed: self.timed || other.timed }
    }
}

/// An iteration that some ranks have marked and others have not.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// Ranks that have yet to mark it.
    missing: u32,
    /// Of those that have.
    mark: Mark,
}

/// The iterations that some of a number of ranks, or of groups of ranks, have marked and others have not.
#[derive(Clone, Debug)]
pub struct PendingMarks {
    ranks: u32,
    /// How many of the iterations that are followed are complete.
    completed: usize,
    /// Those after them that at least one rank has marked, in order.
    pending: VecDeque<Pending>,
}

impl PendingMarks {
    /// Nothing marked yet, of so many ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self { ranks, completed: 0, pending: VecDeque::new() }
    }

    /// One of the ranks marks its iteration number `iteration`, counted from 1. Returns the mark of all of them if the
    /// iteration is followed, and complete with this.
    pub(crate) fn mark(&mut self, iteration: u64, mark: Mark) -> Option<Mark> {
        let ahead = place(iteration)? - self.completed;
        if ahead == self.pending.len() {
            self.pending.push_back(Pending { missing: self.ranks, mark });
        }
        let pending = &mut self.pending[ahead];
        pending.missing -= 1;
        pending.mark = pending.mark.with(mark);
        if pending.missing > 0 {
            return None;
        }
        // A later iteration cannot be complete before an earlier one: every rank marks them in order.
        self.completed += 1;
        self.pending.pop_front().map(|complete| complete.mark)
    }
}

/// The iterations that a job completed.
#[derive(Clone, Debug)]
pub struct JobMarks {
    pending: PendingMarks,
    stride: u64,
    kept: Vec<Mark>,
}

impl JobMarks {
    /// Nothing marked yet, of a job with so many ranks, or groups of ranks of which each marks an iteration once all of its
    /// ranks have.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self { pending: PendingMarks::new(ranks), stride: 1, kept: Vec::new() }
    }

    /// One of the ranks marks its iteration number `iteration`, counted from 1.
    pub(crate) fn mark(&mut self, iteration: u64, mark: Mark) {
        if let Some(complete) = self.pending.mark(iteration, mark) {
            self.complete(iteration, complete);
        }
    }

    fn complete(&mut self, iteration: u64, mark: Mark) {
        if self.stride < stride_of(iteration) {
            self.stride *= 2;
            self.kept = self.kept.iter().copied().skip(1).step_by(2).collect();
        }
        if iteration.is_multiple_of(self.stride) {
            self.kept.push(mark);
        }
    }

    /// Iteration numbers, from 1, and their ends, in order.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = (u64, Mark)> {
        let stride = self.stride;
        (1..)
            .zip(&self.kept)
            .map(move |(place, mark): (u64, _)| (place * stride, *mark))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

const MOST: u64 = MOST_MARKS as u64;

/// The power of two whose multiples are kept once `iteration` is complete: the smallest that leaves `MOST_MARKS` at most.
const fn stride_of(iteration: u64) -> u64 {
    (iteration / (MOST + 1) + 1).next_power_of_two()
}

/// The place, from 0, of an iteration among those that are followed; `None` if it is not. They are all that are kept when
/// they are complete, and the first with each stride, which thins out what is kept.
fn place(iteration: u64) -> Option<usize> {
    let stride = stride_of(iteration);
    if stride == 1 {
        return usize::try_from(iteration - 1).ok();
    }
    // With each stride but 1, the first, which is no multiple of it, and half of `MOST`.
    let before = MOST + u64::from(stride.trailing_zeros() - 1) * (MOST / 2 + 1);
    if iteration == (MOST + 1) * (stride / 2) {
        return usize::try_from(before).ok();
    }
    let multiple = iteration.is_multiple_of(stride);
    multiple.then(|| usize::try_from(before + iteration / stride - MOST / 2).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(marks: &JobMarks) -> Vec<(u64, u64)> {
        marks.kept().map(|(iteration, mark)| (iteration, mark.at.0)).collect()
    }

    fn at(now: u64) -> Mark {
        Mark { at: Instant(now), ..Mark::default() }
    }

    #[test]
    fn an_iteration_is_complete_when_its_last_rank_has_marked_it() {
        let mut marks = JobMarks::new(3);
        for (iteration, now) in [(1, 10), (2, 20), (1, 15), (3, 30), (2, 40)] {
            marks.mark(iteration, at(now));
        }
        assert_eq!(kept(&marks), []);
        // Of the window in which rank 1 marked at 15 the third is run last, and its mark is of an earlier instant.
        marks.mark(1, at(12));
        assert_eq!(kept(&marks), [(1, 15)]);
        marks.mark(2, at(50));
        marks.mark(3, at(60));
        assert_eq!(kept(&marks), [(1, 15), (2, 50)]);
    }

    #[test]
    fn groups_of_ranks_complete_the_iterations_that_their_ranks_do() {
        let order = [0, 0, 1, 2, 0, 1, 2, 2, 0, 1, 1, 2].into_iter().enumerate();
        let (mut whole, mut groups) = (JobMarks::new(3), JobMarks::new(2));
        let mut parts = [PendingMarks::new(2), PendingMarks::new(1)];
        let mut iterations = [0; 3];
        for (now, rank) in order {
            iterations[rank] += 1;
            let elapsed = Picoseconds(17 * now as u64 % 7);
            let mark = Mark { elapsed, timed: now == 4, ..at(now as u64) };
            whole.mark(iterations[rank], mark);
            if let Some(mark) = parts[rank / 2].mark(iterations[rank], mark) {
                groups.mark(iterations[rank], mark);
            }
        }
        let all: Vec<_> = whole.kept().collect();
        assert_eq!(groups.kept().collect::<Vec<_>>(), all);
        // 17 n modulo 7 of the places at which each was marked: 0, 2, 3; 1, 5, 6; 4, 7, 9; 8, 10, 11.
        let longest: Vec<_> = all.iter().map(|(_, mark)| (mark.elapsed.0, mark.timed)).collect();
        assert_eq!(longest, [(6, false), (4, false), (6, true), (5, false)]);
    }

    #[test]
    fn of_many_iterations_every_second_or_fourth_is_kept() {
        let most = u64::try_from(MOST_MARKS).unwrap();
        for (iterations, stride) in [(most, 1), (most + 1, 2), (2 * most + 1, 2), (2 * most + 2, 4), (3 * most, 4)] {
            let mut marks = JobMarks::new(1);
            (1..=iterations).for_each(|iteration| marks.mark(iteration, at(7 * iteration)));
            let expected: Vec<_> = (1..=iterations / stride).map(|n| (n * stride, 7 * n * stride)).collect();
            assert_eq!(kept(&marks), expected, "{iterations} iterations");
        }
    }

    #[test]
    fn those_that_are_followed_have_one_place_after_the_other() {
        let places: Vec<_> = (1..=20 * MOST).filter_map(place).collect();
        assert_eq!(places, (0..places.len()).collect::<Vec<_>>());
        assert!((1..=MOST * 20).filter(|it| it.is_multiple_of(stride_of(*it))).all(|it| place(it).is_some()));
    }

    #[test]
    fn a_rank_that_never_marks_costs_little_memory() {
        let mut marks = JobMarks::new(2);
        let many = 64 * MOST;
        (1..=many).for_each(|iteration| marks.mark(iteration, at(iteration)));
        assert!(marks.pending.pending.len() < 5 * MOST_MARKS, "{} pending", marks.pending.pending.len());
        assert_eq!(kept(&marks), []);
        // When it marks after all, nothing is missing.
        (1..=many).for_each(|iteration| marks.mark(iteration, at(iteration + 5)));
        // Of 64 times as many as are kept at most.
        assert_eq!(kept(&marks), (1..=MOST).map(|n| (64 * n, 64 * n + 5)).collect::<Vec<_>>());
        assert!(marks.pending.pending.is_empty());
    }
}
