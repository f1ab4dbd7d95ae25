//! Programs held in memory: operations and counted or endless loops. Workloads are written as scripts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Op, Source};

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

/// A rank's script, shared among copies, with every loop closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The operations alone, in the order of their lines.
    ops: Arc<[Op]>,
    turns: Arc<Vec<Turn>>,
}

/// The start or end of a loop: before the operation of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    before: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The start of a loop that is run so often (`None`: for ever).
    Repeat(Option<u64>),
    /// The start of a loop that is not run; the turn behind its end.
    Skip(u32),
    End,
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
            None if u32::try_from(lines.len()).is_err() => Err(format!("a script of {} lines", lines.len())),
            None => Ok(Self::of_closed(lines)),
        }
    }

    /// Separates operations from loops.
    fn of_closed(lines: Vec<Line>) -> Self {
        let (mut ops, mut turns, mut open) = (Vec::new(), Vec::new(), Vec::new());
        let number = |n: usize| u32::try_from(n).expect("invariant: fewer than 2^32 lines");
        for line in lines {
            let before = number(ops.len());
            match line {
                Line::Op(op) => ops.push(op),
                Line::Repeat(times) => {
                    open.push(turns.len());
                    turns.push(Turn { before, kind: Kind::Repeat(times) });
                }
                Line::End => {
                    turns.push(Turn { before, kind: Kind::End });
                    let start = open.pop().expect("invariant: loops nest");
                    if turns[start].kind == Kind::Repeat(Some(0)) {
                        turns[start].kind = Kind::Skip(number(turns.len()));
                    }
                }
            }
        }
        Self { ops: ops.into(), turns: turns.into() }
    }

    /// A source that runs the script from its first line.
    #[must_use]
    pub fn source(&self) -> Box<dyn Source> {
        let Self { ops, turns } = self.clone();
        let mut player = Player { ops, turns, next: 0, end: 0, turn: 0, open: Vec::new() };
        player.end = player.turn_at();
        Box::new(player)
    }
}

/// The innermost open loop has an operation.
fn mark(open: &mut [(usize, bool)]) {
    if let Some((_, yields)) = open.last_mut() {
        *yields = true;
    }
}

/// An open loop: the turn behind its start, and how often it is still to be run after this time (`None`: for ever).
#[derive(Clone, Copy)]
struct Loop {
    body: u32,
    left: Option<u64>,
}

/// A script being run. One cache line.
#[derive(Clone)]
#[repr(align(64))]
pub struct Player {
    ops: Arc<[Op]>,
    /// The operation that comes next, and the end of its stretch: the next turn.
    next: u32,
    end: u32,
    turn: u32,
    turns: Arc<Vec<Turn>>,
    open: Vec<Loop>,
}

impl Player {
    /// The operations that come next, as far as that is known without any work: they may be fetched ahead of time.
    #[inline(always)]
    #[must_use]
    pub fn coming(&self) -> &[Op] {
        &self.ops[self.next as usize..self.end as usize]
    }

    /// Before which operation the next turn is.
    fn turn_at(&self) -> u32 {
        let end = || u32::try_from(self.ops.len()).expect("invariant: fewer than 2^32 lines");
        self.turns.get(self.turn as usize).map_or_else(end, |turn| turn.before)
    }

    /// At the end of a stretch: goes to the next that has an operation, or to the end of the script.
    #[cold]
    fn take_turns(&mut self) {
        while let (true, Some(turn)) = (self.next == self.end, self.turns.get(self.turn as usize)) {
            self.turn += 1;
            match turn.kind {
                Kind::Skip(behind) => self.go_to(behind),
                Kind::Repeat(times) => self.open.push(Loop { body: self.turn, left: times.map(|n| n - 1) }),
                Kind::End => self.end_loop(),
            }
            self.end = self.turn_at();
        }
    }

    /// At the end of the innermost loop: leaves it, or starts it over.
    fn end_loop(&mut self) {
        let innermost = self.open.last_mut().expect("invariant: loops nest");
        let body = innermost.body;
        match &mut innermost.left {
            Some(0) => {
                self.open.pop();
                return;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.go_to(body);
    }

    /// Goes behind the turn before `turn`.
    fn go_to(&mut self, turn: u32) {
        self.turn = turn;
        self.next = self.turns[turn as usize - 1].before;
    }
}

impl Source for Player {
    #[inline(always)]
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.next == self.end {
            self.take_turns();
        }
        Ok(&self.ops[self.next as usize..self.end as usize])
    }

    #[inline(always)]
    fn pass(&mut self, count: usize) {
        debug_assert!(count <= (self.end - self.next) as usize, "more than there are ahead");
        #[allow(clippy::cast_possible_truncation, reason = "at most as many as there are ahead")]
        let count = count as u32;
        self.next += count;
    }

    fn current(&self) -> Option<&Op> {
        self.ops.get((self.next as usize).checked_sub(1)?)
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }

    fn player(&self) -> Option<&Player> {
        Some(self)
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
