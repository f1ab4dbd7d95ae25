//! Reading ahead: a trace tells only when a receive completes what it got, but a replay must know when it is posted.
//!
//! A second cursor over the same trace, the [`Scan`], runs ahead of the first up to the completion that is asked for.
//! Completions found on the way are kept for later questions, up to [`WINDOW`] answers; when a receive stays open for longer
//! than that, a third cursor looks for its completion alone, so that memory stays bounded.

use std::collections::{HashMap, HashSet};

/// Answers kept for later.
const WINDOW: usize = 4096;

/// The outcome of a receive (or send).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It completed, and this is what the trace says about it.
    Completed(T),
    /// It was cancelled: it never met a partner.
    Cancelled,
    /// It completed, was given up, or never completed, and the trace says nothing about it.
    Unknown,
}

/// The next completion of a trace: which request (by its number in the order of starting, from 0), and what became of it;
/// `None` at the end of the trace; an error if the trace cannot be read further.
pub type Found<T> = Result<Option<(u64, Outcome<T>)>, String>;

/// A cursor that follows requests to their completion.
pub trait Scan: Clone {
    /// The trace's record of a completed receive.
    type Answer: Copy;

    /// The next completion; not called again after the end.
    fn next_outcome(&mut self) -> Found<Self::Answer>;
}

/// Answers what will become of a request.
#[derive(Clone)]
pub struct Lookahead<S: Scan> {
    scan: S,
    window: HashMap<u64, Outcome<S::Answer>>,
    /// Requests whose answer was given before the scan came to it.
    answered: HashSet<u64>,
    ended: bool,
}

impl<S: Scan> Lookahead<S> {
    /// Starts where the scan stands.
    pub fn new(scan: S) -> Self {
        Self { scan, window: HashMap::new(), answered: HashSet::new(), ended: false }
    }

    /// The outcome of request `number`; each may be asked for once.
    ///
    /// # Errors
    /// The trace cannot be read as far as that.
    pub fn outcome(&mut self, number: u64) -> Result<Outcome<S::Answer>, String> {
        if let Some(outcome) = self.window.remove(&number) {
            return Ok(outcome);
        }
        while !self.ended && self.window.len() < WINDOW {
            match self.scan.next_outcome()? {
                None => self.ended = true,
                Some((found, outcome)) if found == number => return Ok(outcome),
                Some((found, outcome)) => {
                    if !self.answered.remove(&found) {
                        self.window.insert(found, outcome);
                    }
                }
            }
        }
        if self.ended {
            return Ok(Outcome::Unknown);
        }
        self.answered.insert(number);
        let mut far = self.scan.clone();
        while let Some((found, outcome)) = far.next_outcome()? {
            if found == number {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Request 0 completes last, all others in order.
    #[derive(Clone)]
    struct Pattern {
        next: u64,
        count: u64,
    }

    impl Scan for Pattern {
        type Answer = u64;

        fn next_outcome(&mut self) -> Found<u64> {
            self.next += 1;
            Ok(match self.next {
                n if n < self.count => Some((n, Outcome::Completed(n * 10))),
                n if n == self.count => Some((0, Outcome::Completed(7))),
                _ => None,
            })
        }
    }

    #[test]
    fn a_long_open_request_is_found_in_bounded_memory() {
        let count = 10 * WINDOW as u64;
        let mut ahead = Lookahead::new(Pattern { next: 0, count });
        assert_eq!(ahead.outcome(0), Ok(Outcome::Completed(7)));
        for number in 1..count {
            assert_eq!(ahead.outcome(number), Ok(Outcome::Completed(number * 10)));
            assert!(ahead.window.len() <= WINDOW);
        }
        assert_eq!(ahead.outcome(count), Ok(Outcome::Unknown));
    }
}
