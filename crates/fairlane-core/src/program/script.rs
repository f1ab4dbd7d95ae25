//! Programs held in memory: operations and counted or endless loops. Workloads are written as scripts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thin_vec::ThinVec;

use super::{Op, Source};
use crate::units::Picoseconds;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// An operation.
    Op(Op),
    /// Repeat up to the matching [`Line::End`]: this many times, or for ever. Zero times skips the body.
    Repeat(Option<u64>),
    /// For each of these times: a computation so long, then what follows up to the matching [`Line::End`]. As if all of it were
    /// written out, but what follows is kept once.
    Each(Vec<Picoseconds>),
    /// The end of the innermost open loop.
    End,
}

/// A rank's script, shared among copies, with every loop closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The operations alone, in the order of their lines; one stands for the computations of each [`Line::Each`].
    ops: Arc<[Op]>,
    turns: Arc<Vec<Turn>>,
    /// The computations of all [`Line::Each`].
    times: Arc<[Picoseconds]>,
}

/// The start or end of a loop: before the operation of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    before: u32,
    kind: TurnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnKind {
    /// The start of a loop that is run so often (`None`: for ever).
    Repeat(Option<u64>),
    /// The start of a loop that is not run; the turn behind its end.
    Skip(u32),
    /// The start of a loop that is run once for each of so many times, from the first of them in the list of times on.
    Each {
        first: u32,
        count: u32,
    },
    End,
}

impl Script {
    /// Checks that loops nest and that no endless loop is empty.
    ///
    /// # Errors
    /// Names the line whose loop is not closed, closes nothing, or repeats nothing for ever.
    pub fn new(lines: Vec<Line>) -> Result<Self, String> {
        if u32::try_from(lines.len()).is_err() {
            return Err(format!("a script of {} lines", lines.len()));
        }
        let (mut ops, mut turns, mut times): (_, Vec<Turn>, _) = (Vec::new(), Vec::new(), Vec::new());
        // Loops not closed yet: where they start, their turns, and whether they have an operation that is reached.
        let mut open: Vec<(usize, usize, bool)> = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            let before = number(ops.len());
            match line {
                Line::Op(op) => {
                    ops.push(op);
                    mark(&mut open);
                }
                Line::Repeat(count) => {
                    open.push((place, turns.len(), false));
                    turns.push(Turn { before, kind: TurnKind::Repeat(count) });
                }
                Line::Each(spans) => {
                    open.push((place, turns.len(), true));
                    let kind = TurnKind::Each { first: number(times.len()), count: number(spans.len()) };
                    turns.push(Turn { before, kind });
                    ops.push(Op::Compute(Picoseconds(0)));
                    times.extend(spans);
                }
                Line::End => {
                    let (start, turn, yields) =
                        open.pop().ok_or_else(|| format!("line {place}: an end without a loop"))?;
                    turns.push(Turn { before, kind: TurnKind::End });
                    match turns[turn].kind {
                        TurnKind::Repeat(None) if !yields => {
                            return Err(format!("line {start}: an endless loop without an operation"));
                        }
                        TurnKind::Repeat(None | Some(1..)) | TurnKind::Each { count: 1.., .. } if yields => {
                            mark(&mut open);
                        }
                        // A loop that does nothing is skipped, however often it would be run.
                        _ => turns[turn].kind = TurnKind::Skip(number(turns.len())),
                    }
                }
            }
        }
        match open.last() {
            Some((start, ..)) => Err(format!("line {start}: a loop without an end")),
            None => Ok(Self { ops: ops.into(), turns: turns.into(), times: times.into() }),
        }
    }

    /// The same, with the parts that it has in common with `other` held in memory once.
    #[must_use]
    pub fn sharing(self, other: &Self) -> Self {
        fn shared<T: PartialEq + ?Sized>(part: Arc<T>, other: &Arc<T>) -> Arc<T> {
            if part == *other { Arc::clone(other) } else { part }
        }
        let Self { ops, turns, times } = self;
        Self { ops: shared(ops, &other.ops), turns: shared(turns, &other.turns), times: shared(times, &other.times) }
    }

    /// A source that runs the script from its first line.
    #[must_use]
    pub fn source(&self) -> Box<dyn Source> {
        if self.ops.is_empty() {
            return Box::new(Nothing);
        }
        let Self { ops, turns, times } = self.clone();
        let mut player = Player { ops, turns, times, next: 0, end: 0, turn: 0, open: ThinVec::new() };
        player.end = player.turn_at();
        Box::new(player)
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: fewer than 2^32 lines")
}

/// The innermost open loop has an operation.
fn mark(open: &mut [(usize, usize, bool)]) {
    if let Some((.., yields)) = open.last_mut() {
        *yields = true;
    }
}

/// An open loop: the turn behind its start, and how often it is still to be run after this time (`None`: for ever). Of a [`Line::Each`]
/// also the place of this time in the list of times, and the computation.
#[derive(Clone)]
struct Loop {
    body: u32,
    time: u32,
    left: Option<u64>,
    computation: Op,
}

/// A script being run. One cache line.
#[derive(Clone)]
#[repr(align(64))]
pub struct Player {
    ops: Arc<[Op]>,
    times: Arc<[Picoseconds]>,
    turns: Arc<Vec<Turn>>,
    open: ThinVec<Loop>,
    /// The operation that comes next, and the end of its stretch: the next turn. At a computation of a [`Line::Each`], which is a
    /// stretch of its own, the end is before it.
    next: u32,
    end: u32,
    turn: u32,
}

impl Player {
    /// The operations that come next, as far as that is known without any work: they may be fetched ahead of time.
    #[inline(always)]
    #[must_use]
    pub fn coming(&self) -> &[Op] {
        self.ops.get(self.next as usize..self.end as usize).unwrap_or_default()
    }

    /// Before which operation the next turn is.
    fn turn_at(&self) -> u32 {
        self.turns.get(self.turn as usize).map_or_else(|| number(self.ops.len()), |turn| turn.before)
    }

    /// At the end of a stretch: the next that has an operation; nothing at the end of the script.
    #[cold]
    fn take_turns(&mut self) -> &[Op] {
        if self.next > self.end {
            self.end = self.turn_at();
        }
        while self.next == self.end {
            if self.end < self.turn_at() {
                let innermost = self.open.len() - 1;
                return std::slice::from_ref(&self.open[innermost].computation);
            }
            let Some(&Turn { kind, .. }) = self.turns.get(self.turn as usize) else { break };
            self.turn += 1;
            match kind {
                TurnKind::Skip(behind) => self.go_to(behind),
                TurnKind::Repeat(times) => self.begin_loop(times.map(|n| n - 1), 0),
                TurnKind::Each { first, count } => self.begin_loop(Some(u64::from(count) - 1), first),
                TurnKind::End => self.end_loop(),
            }
        }
        &self.ops[self.next as usize..self.end as usize]
    }

    /// Behind the start of a loop: begins it.
    fn begin_loop(&mut self, left: Option<u64>, time: u32) {
        self.open.reserve_exact(1);
        self.open.push(Loop { body: self.turn, time, left, computation: Op::MarkProgress });
        self.go_to(self.turn);
    }

    /// At the end of the innermost loop: leaves it, or starts it over.
    fn end_loop(&mut self) {
        let innermost = self.open.last_mut().expect("invariant: loops nest");
        innermost.time = innermost.time.wrapping_add(1);
        let body = innermost.body;
        match &mut innermost.left {
            Some(0) => {
                self.open.pop();
                self.end = self.turn_at();
                return;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.go_to(body);
    }

    /// Goes behind the turn before `turn`: of a loop for each of some times to the computation.
    fn go_to(&mut self, turn: u32) {
        let Turn { before, kind } = self.turns[turn as usize - 1];
        (self.turn, self.next) = (turn, before);
        self.end = self.turn_at();
        if let TurnKind::Each { .. } = kind
            && let Some(Loop { time, computation, .. }) = self.open.last_mut()
        {
            *computation = Op::Compute(self.times[*time as usize]);
            self.end = before;
        }
    }
}

impl Source for Player {
    #[inline(always)]
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.next >= self.end {
            return Ok(self.take_turns());
        }
        Ok(&self.ops[self.next as usize..self.end as usize])
    }

    #[inline(always)]
    fn pass(&mut self, count: usize) {
        debug_assert!(self.ahead().is_ok_and(|ops| count <= ops.len()), "more than there are ahead");
        #[allow(clippy::cast_possible_truncation, reason = "at most as many as there are ahead")]
        let count = count as u32;
        self.next += count;
    }

    fn current(&self) -> Option<&Op> {
        if self.next > self.end {
            return self.open.last().map(|innermost| &innermost.computation);
        }
        self.ops.get((self.next as usize).checked_sub(1)?)
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }

    fn player(&self) -> Option<&Player> {
        Some(self)
    }

    fn communicators(&self) -> Vec<Arc<str>> {
        super::names_in(&self.ops)
    }
}

/// The source of a script without operations: takes no memory.
struct Nothing;

impl Source for Nothing {
    fn ahead(&mut self) -> Result<&[Op], String> {
        Ok(&[])
    }

    fn pass(&mut self, _: usize) {}

    fn current(&self) -> Option<&Op> {
        None
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(Self)
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

    /// Scripts written with [`Line::Each`], and what they stand for.
    #[test]
    fn a_body_for_each_time_is_as_if_it_were_written_out() {
        let each = |times: &[u64]| Line::Each(times.iter().copied().map(Picoseconds).collect());
        let lines = vec![
            compute(100),
            Line::Repeat(Some(2)),
            each(&[10, 20, 30]),
            compute(1),
            compute(2),
            Line::End,
            Line::End,
        ];
        let pass = [10, 1, 2, 20, 1, 2, 30, 1, 2];
        assert_eq!(run(lines, 100), [&[100][..], &pass, &pass].concat());
        // Loops in the body, one that is skipped, and what follows the end.
        let body =
            [Line::Repeat(Some(0)), compute(9), Line::End, Line::Repeat(Some(2)), compute(1), Line::End, compute(2)];
        let lines = [&[each(&[10, 20])][..], &body, &[Line::End, compute(3)]].concat();
        assert_eq!(run(lines.clone(), 100), [10, 1, 1, 2, 20, 1, 1, 2, 3]);
        let nested = [&[each(&[7, 8])][..], &lines, &[Line::End]].concat();
        let inner = [10, 1, 1, 2, 20, 1, 1, 2, 3];
        assert_eq!(run(nested, 100), [&[7][..], &inner, &[8], &inner].concat());
        // For ever, with an empty body, and without any time.
        assert_eq!(run(vec![Line::Repeat(None), each(&[4, 5]), Line::End, Line::End], 5), [4, 5, 4, 5, 4]);
        assert_eq!(run(vec![each(&[]), compute(1), Line::End, compute(2)], 5), [2]);
        assert!(Script::new(vec![Line::Repeat(None), each(&[]), Line::End, Line::End]).is_err());
    }

    #[test]
    fn equal_parts_of_scripts_are_held_once() {
        let script = |wait| Script::new(vec![Line::Repeat(None), compute(wait), Line::End]).unwrap();
        let (first, second) = (script(1), script(2));
        let (same, other) = (script(1).sharing(&first), second.sharing(&first));
        assert!(Arc::ptr_eq(&same.ops, &first.ops) && Arc::ptr_eq(&same.turns, &first.turns));
        assert!(!Arc::ptr_eq(&other.ops, &first.ops) && Arc::ptr_eq(&other.turns, &first.turns));
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
