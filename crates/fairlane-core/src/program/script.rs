//! Programs held in memory: operations and counted or endless loops. Workloads are written as scripts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Op, Source};
use crate::kernel::prefetch;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// An operation.
    Op(Op),
    /// Repeat up to the matching [`Line::End`]: this many times, or for ever. Zero times skips the body.
    Repeat(Option<u64>),
    /// The end of the innermost open loop.
    End,
}

/// A rank's script: its lines, shared among copies, with every loop closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    lines: Arc<[Line]>,
}

impl Script {
    /// Checks that loops nest and that no endless loop is empty.
    ///
    /// # Errors
    /// Names the line whose loop is not closed, closes nothing, or repeats nothing for ever.
    pub fn new(lines: Vec<Line>) -> Result<Self, String> {
        let mut lines = lines;
        // Loops not closed yet: where they start, and whether they have an operation that is reached.
        let mut open: Vec<(usize, bool)> = Vec::new();
        for number in 0..lines.len() {
            match lines[number] {
                Line::Repeat(_) => open.push((number, false)),
                Line::Op(_) => mark(&mut open),
                Line::End => {
                    let (start, yields) = open.pop().ok_or_else(|| format!("line {number}: an end without a loop"))?;
                    match lines[start] {
                        Line::Repeat(None) if !yields => {
                            return Err(format!("line {start}: an endless loop without an operation"));
                        }
                        // A loop that does nothing is skipped, however often it would be run.
                        _ if !yields => lines[start] = Line::Repeat(Some(0)),
                        Line::Repeat(Some(0)) => {}
                        _ => mark(&mut open),
                    }
                }
            }
        }
        match open.last() {
            Some((start, _)) => Err(format!("line {start}: a loop without an end")),
            None => Ok(Self { lines: lines.into() }),
        }
    }

    /// The script's lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// A source that runs the script from its first line.
    #[must_use]
    pub fn source(&self) -> Box<dyn Source> {
        Box::new(Player { lines: Arc::clone(&self.lines), next: 0, open: Vec::new() })
    }
}

/// The innermost open loop has an operation.
fn mark(open: &mut [(usize, bool)]) {
    if let Some((_, yields)) = open.last_mut() {
        *yields = true;
    }
}

/// An open loop: where its body starts and how often it is still to be run after this time (`None`: for ever).
#[derive(Clone, Copy)]
struct Loop {
    body: usize,
    left: Option<u64>,
}

/// A script being run. One cache line.
#[derive(Clone)]
#[repr(align(64))]
struct Player {
    lines: Arc<[Line]>,
    /// The line behind the operation at which it stands.
    next: usize,
    open: Vec<Loop>,
}

impl Player {
    /// Goes past the line of a loop's start or end, which is at `next`.
    fn turn(&mut self) -> Result<(), String> {
        let line = &self.lines[self.next];
        self.next += 1;
        match line {
            Line::Op(_) => {}
            Line::Repeat(Some(0)) => self.skip(),
            Line::Repeat(times) => self.open.push(Loop { body: self.next, left: times.map(|n| n - 1) }),
            Line::End => {
                let innermost = self.open.last_mut().ok_or("invariant: a script's loops nest")?;
                match &mut innermost.left {
                    Some(0) => {
                        self.open.pop();
                    }
                    Some(left) => {
                        *left -= 1;
                        self.next = innermost.body;
                    }
                    None => self.next = innermost.body,
                }
            }
        }
        Ok(())
    }

    /// Skips a loop that is run zero times: to just behind its end.
    fn skip(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.lines[self.next] {
                Line::Repeat(_) => depth += 1,
                Line::End => depth -= 1,
                Line::Op(_) => {}
            }
            self.next += 1;
        }
    }
}

impl Source for Player {
    fn next_op(&mut self) -> Result<Option<&Op>, String> {
        while matches!(self.lines.get(self.next), Some(Line::Repeat(_) | Line::End)) {
            self.turn()?;
        }
        match self.lines.get(self.next) {
            Some(Line::Op(op)) => {
                self.next += 1;
                Ok(Some(op))
            }
            _ => Ok(None),
        }
    }

    fn current(&self) -> Option<&Op> {
        match self.lines.get(self.next.checked_sub(1)?)? {
            Line::Op(op) => Some(op),
            Line::Repeat(_) | Line::End => None,
        }
    }

    fn prefetch(&self) {
        if let Some(line) = self.lines.get(self.next) {
            prefetch(line);
        }
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Picoseconds;

    fn compute(n: u64) -> Line {
        Line::Op(Op::Compute(Picoseconds(n)))
    }

    fn run(lines: Vec<Line>, at_most: usize) -> Vec<u64> {
        let mut source = Script::new(lines).unwrap().source();
        let mut seen = Vec::new();
        while let Some(Op::Compute(span)) = source.next_op().unwrap() {
            seen.push(span.0);
            if seen.len() == at_most {
                break;
            }
        }
        seen
    }

    #[test]
    fn loops_nest_and_count() {
        let lines = vec![
            Line::Repeat(Some(2)),
            compute(1),
            Line::Repeat(Some(3)),
            compute(2),
            Line::End,
            Line::Repeat(Some(0)),
            compute(9),
            Line::Repeat(None),
            compute(9),
            Line::End,
            Line::End,
            Line::End,
            compute(3),
        ];
        assert_eq!(run(lines, 100), [1, 2, 2, 2, 1, 2, 2, 2, 3]);
        assert_eq!(run(vec![Line::Repeat(None), compute(1), compute(2), Line::End], 5), [1, 2, 1, 2, 1]);
    }

    #[test]
    fn bad_scripts_are_refused_with_the_line() {
        assert!(Script::new(vec![Line::End]).unwrap_err().contains("line 0"));
        assert!(Script::new(vec![compute(1), Line::Repeat(None)]).unwrap_err().contains("line 1"));
        let empty = vec![Line::Repeat(None), Line::Repeat(Some(1)), Line::End, Line::End];
        assert!(Script::new(empty).unwrap_err().contains("line 0"));
        let never = vec![Line::Repeat(None), Line::Repeat(Some(0)), compute(1), Line::End, Line::End];
        assert!(Script::new(never).unwrap_err().contains("line 0"));
        assert_eq!(run(vec![Line::Repeat(Some(1 << 60)), Line::End, compute(1)], 5), [1]);
    }
}
