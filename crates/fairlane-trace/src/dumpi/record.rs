//! One record of a DUMPI file: a call with its times, arguments and statuses.

use super::calls::{CALLS, Call, END_OF_STREAM, Format, UNKNOWN};
use super::cursor::{Cursor, Fault};

/// `MPI_ANY_SOURCE` and `MPI_ANY_TAG` in a DUMPI file.
pub const ANY: i32 = -1;

const STATUSES: u8 = 0b11;
const CPU_TIMES: u8 = 1 << 2;
const WALL_TIMES: u8 = 1 << 3;
const THREAD: u8 = 1 << 6;
const COUNTERS: u8 = 1 << 7;

/// The status of a receive: the message that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The source, as a rank of the communicator.
    pub source: i32,
    /// The tag; [`ANY`] in files that do not have it.
    pub tag: i32,
    /// Whether the receive was cancelled.
    pub cancelled: bool,
}

/// Entering and leaving a call, in nanoseconds of a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub enter: u64,
    pub leave: u64,
}

impl Span {
    /// How long it was.
    pub const fn length(self) -> u64 {
        self.leave.saturating_sub(self.enter)
    }
}

/// A record, read into memory that the next one reuses.
#[derive(Clone, Default)]
pub struct Record {
    /// The number of the function; its format is [`Record::format`].
    pub function: u16,
    /// The times on the process's CPU clock, if recorded.
    pub cpu: Option<Span>,
    /// The times on the wall clock, if recorded.
    pub wall: Option<Span>,
    /// The single numbers among the arguments, in order.
    pub numbers: Vec<i32>,
    /// The lists of numbers among the arguments, in order; only the first [`Record::lists_used`] belong to this record.
    lists: Vec<Vec<i32>>,
    lists_used: usize,
    /// The statuses; empty if the program ignored them.
    pub statuses: Vec<Status>,
}

impl Record {
    /// The format of the record's call.
    pub fn format(&self) -> &'static Format {
        &CALLS[usize::from(self.function)]
    }

    /// The call.
    pub fn call(&self) -> Call {
        self.format().call
    }

    /// A single number among the arguments.
    pub fn number(&self, index: usize) -> i32 {
        self.numbers[index]
    }

    /// A list among the arguments; empty if the program passed none.
    pub fn list(&self, index: usize) -> &[i32] {
        if index < self.lists_used { &self.lists[index] } else { &[] }
    }

    /// Reads the next record; `false` at the end of the stream.
    pub fn read(&mut self, cursor: &mut Cursor, version: [u8; 3]) -> Result<bool, Fault> {
        self.function = UNKNOWN;
        if cursor.left() == 0 {
            return Ok(false);
        }
        let (at, function) = (cursor.position(), cursor.u16()?);
        if function == END_OF_STREAM {
            return Ok(false);
        }
        if function > END_OF_STREAM {
            return Err(format!("function number {function} at offset {at}: the file is damaged"));
        }
        self.function = function;
        if self.call() == Call::Unrecorded {
            return Err(format!("no such call is ever recorded (offset {at}): the file is damaged"));
        }
        let mask = cursor.u8()?;
        if mask & THREAD != 0 {
            cursor.u16()?;
        }
        self.cpu = if mask & CPU_TIMES != 0 { Some(read_span(cursor)?) } else { None };
        self.wall = if mask & WALL_TIMES != 0 { Some(read_span(cursor)?) } else { None };
        if mask & COUNTERS != 0 {
            let counters = cursor.u8()?;
            cursor.take(usize::from(counters) * 16)?;
        }
        self.read_arguments(cursor, version, mask & STATUSES != 0)?;
        Ok(true)
    }

    fn read_arguments(&mut self, cursor: &mut Cursor, version: [u8; 3], statuses: bool) -> Result<(), Fault> {
        self.numbers.clear();
        self.statuses.clear();
        self.lists_used = 0;
        let (mut at_root, mut wanted) = (false, true);
        for &letter in self.format().layout.as_bytes() {
            if letter == b'?' {
                wanted = at_root;
                continue;
            }
            if !std::mem::replace(&mut wanted, true) {
                continue;
            }
            match letter {
                b'i' => self.numbers.push(cursor.i32()?),
                b'h' => self.numbers.push(i32::from(cursor.u16()?)),
                b'b' => self.numbers.push(i32::from(cursor.u8()?)),
                b'r' | b'R' => {
                    let root = cursor.i32()?;
                    at_root = self.numbers.get(usize::from(letter == b'R')) == Some(&root);
                    self.numbers.push(root);
                }
                b's' if statuses => self.read_statuses(cursor, version)?,
                b's' => {}
                _ => self.read_list(letter, cursor, version)?,
            }
        }
        Ok(())
    }

    fn read_statuses(&mut self, cursor: &mut Cursor, version: [u8; 3]) -> Result<(), Fault> {
        let with_tag = version >= [0, 6, 3];
        for _ in 0..cursor.count(10)? {
            cursor.take(4)?;
            let source = cursor.i32()?;
            let cancelled = cursor.u8()? != 0;
            cursor.u8()?;
            let tag = if with_tag { cursor.i32()? } else { ANY };
            self.statuses.push(Status { source, tag, cancelled });
        }
        Ok(())
    }

    fn read_list(&mut self, letter: u8, cursor: &mut Cursor, version: [u8; 3]) -> Result<(), Fault> {
        match letter {
            b'I' => self.push_list(4, cursor),
            b'H' => self.push_list(2, cursor),
            b'B' => self.push_list(1, cursor),
            b'J' => {
                let lists = cursor.count(4)?;
                (0..lists).try_for_each(|_| self.push_list(4, cursor))
            }
            b'x' if version < [0, 6, 9] => cursor.i32().map(drop),
            b'y' if version < [0, 6, 8] => cursor.i32().map(drop),
            b'x' | b'y' => self.push_list(4, cursor),
            b'l' => cursor.u64().map(drop),
            b'c' => skip_text(cursor),
            b'K' => {
                let texts = cursor.count(4)?;
                (0..texts).try_for_each(|_| self.read_list(b'C', cursor, version))
            }
            b'C' | b'a' => {
                let texts = cursor.i32()?.max(0);
                if letter == b'a' && version < [0, 6, 2] {
                    cursor.i32()?;
                }
                (0..texts).try_for_each(|_| skip_text(cursor))
            }
            _ => unreachable!("invariant: the table of calls has no letter {:?}", char::from(letter)),
        }
    }

    fn push_list(&mut self, width: u64, cursor: &mut Cursor) -> Result<(), Fault> {
        let count = cursor.count(width)?;
        if self.lists_used == self.lists.len() {
            self.lists.push(Vec::new());
        }
        let list = &mut self.lists[self.lists_used];
        self.lists_used += 1;
        list.clear();
        for _ in 0..count {
            list.push(match width {
                4 => cursor.i32()?,
                2 => i32::from(cursor.u16()?),
                _ => i32::from(cursor.u8()?),
            });
        }
        Ok(())
    }

    /// The lists that stand behind the first `from`, for calls whose number of lists varies.
    pub fn lists_from(&self, from: usize) -> &[Vec<i32>] {
        &self.lists[from.min(self.lists_used)..self.lists_used]
    }
}

fn skip_text(cursor: &mut Cursor) -> Result<(), Fault> {
    let length = cursor.count(1)?;
    cursor.skip(length)
}

fn read_span(cursor: &mut Cursor) -> Result<Span, Fault> {
    let mut moment = || Ok::<u64, Fault>(u64::from(cursor.u16()?) * 1_000_000_000 + u64::from(cursor.u32()?));
    Ok(Span { enter: moment()?, leave: moment()? })
}
