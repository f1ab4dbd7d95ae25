//! Request handles as a DUMPI file numbers them: reused, shared, persistent or null.
//!
//! MPI libraries give one and the same handle to every send that is complete at once, so a handle can stand for several
//! started operations; they are completed in the order in which they were started.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::calls::Call;
use super::cursor::Fault;
use super::record::{ANY, Record, Status};
use fairlane_core::program::SendMode;

/// `MPI_REQUEST_NULL` in a DUMPI file.
const REQUEST_NULL: i32 = 1;

/// The arguments of a send or receive, as recorded.
#[derive(Clone, Copy, Debug)]
pub struct Posting {
    /// Send or receive.
    pub direction: Direction,
    pub count: i32,
    pub datatype: i32,
    /// Destination or source.
    pub peer: i32,
    pub tag: i32,
    pub comm: i32,
}

/// The direction of a posted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Send(SendMode),
    /// A buffered send: complete as soon as it is called.
    Buffered,
    Receive,
}

impl Posting {
    /// From the six arguments count, datatype, peer, tag, communicator that start at argument `first`.
    pub fn new(record: &Record, first: usize, direction: Direction) -> Self {
        let n = |i| record.number(first + i);
        Self { direction, count: n(0), datatype: n(1), peer: n(2), tag: n(3), comm: n(4) }
    }

    /// Whether only its completion tells with whom it will communicate, or whether it does at all.
    pub const fn is_open(&self, cancels: bool) -> bool {
        cancels || (matches!(self.direction, Direction::Receive) && (self.peer == ANY || self.tag == ANY))
    }
}

#[derive(Clone)]
struct Entry<T> {
    /// The operations that it stands for: the oldest, and the others. Most handles stand for one.
    oldest: Option<T>,
    later: VecDeque<T>,
    persistent: Option<Posting>,
}

impl<T> Entry<T> {
    const fn new(persistent: Option<Posting>) -> Self {
        Self { oldest: None, later: VecDeque::new(), persistent }
    }

    fn start(&mut self, operation: T) {
        if self.oldest.is_none() {
            self.oldest = Some(operation);
        } else {
            self.later.push_back(operation);
        }
    }

    fn complete(&mut self) -> Option<T> {
        std::mem::replace(&mut self.oldest, self.later.pop_front())
    }
}

/// The requests of a rank, by handle; `T` is what the reader keeps for each started operation.
#[derive(Clone)]
pub struct Requests<T> {
    entries: FxHashMap<i32, Entry<T>>,
}

impl<T> Requests<T> {
    /// No requests.
    pub fn new() -> Self {
        Self { entries: FxHashMap::default() }
    }

    /// A started operation.
    pub fn start(&mut self, handle: i32, operation: T) {
        self.entries.entry(handle).or_insert_with(|| Entry::new(None)).start(operation);
    }

    /// A persistent request, not yet started.
    pub fn define(&mut self, handle: i32, posting: Posting) {
        self.entries.insert(handle, Entry::new(Some(posting)));
    }

    /// The arguments of a persistent request.
    pub fn persistent(&self, handle: i32) -> Result<Posting, Fault> {
        let posting = self.entries.get(&handle).and_then(|entry| entry.persistent);
        posting.ok_or_else(|| format!("request {handle} is not a persistent request"))
    }

    /// Completes the oldest operation of a handle; `None` for the null handle and for an inactive request.
    pub fn complete(&mut self, handle: i32) -> Result<Option<T>, Fault> {
        if handle == REQUEST_NULL {
            return Ok(None);
        }
        let unknown = || {
            format!(
                "request {handle} was started by no call that the trace records; DUMPI does not record the calls of \
                 MPI 3, such as MPI_Ibcast"
            )
        };
        let entry = self.entries.get_mut(&handle).ok_or_else(unknown)?;
        let operation = entry.complete();
        if entry.oldest.is_none() && entry.persistent.is_none() {
            self.entries.remove(&handle);
        }
        Ok(operation)
    }

    /// Gives a handle up, with the oldest operation that it stands for.
    pub fn free(&mut self, handle: i32) -> Result<Option<T>, Fault> {
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.persistent = None;
            if entry.oldest.is_none() {
                self.entries.remove(&handle);
                return Ok(None);
            }
        }
        self.complete(handle)
    }

    /// Forgets everything; returns what was started and not completed.
    pub fn clear(&mut self) -> Vec<T> {
        let mut entries: Vec<_> = self.entries.drain().collect();
        entries.sort_by_key(|(handle, _)| *handle);
        entries.into_iter().flat_map(|(_, entry)| entry.oldest.into_iter().chain(entry.later)).collect()
    }
}

/// Completed requests by handle, with their statuses where recorded.
type Done = SmallVec<[(i32, Option<Status>); 8]>;

/// The requests that a wait or successful test has completed.
pub fn completed(record: &Record) -> Result<Done, Fault> {
    let (requests, indices) = (record.list(0), record.list(1));
    let aligned =
        |i: usize, length: usize| if record.statuses.len() == length { Some(record.statuses[i]) } else { None };
    let one = |index: i32| match usize::try_from(index) {
        Err(_) => Ok(None),
        Ok(i) => match requests.get(i) {
            Some(&handle) => Ok(Some(handle)),
            None => Err(format!("index {index} in a list of {} requests", requests.len())),
        },
    };
    let single = record.statuses.first().copied();
    let mut done = Done::new();
    match record.call() {
        Call::Wait => done.push((record.number(0), single)),
        Call::Test if succeeded(record) => done.push((record.number(0), single)),
        Call::Waitany => done.extend(one(record.number(1))?.map(|handle| (handle, single))),
        Call::Testany if succeeded(record) => done.extend(one(record.number(1))?.map(|handle| (handle, single))),
        Call::Waitall => done.extend(requests.iter().enumerate().map(|(i, &h)| (h, aligned(i, requests.len())))),
        Call::Testall if succeeded(record) => {
            done.extend(requests.iter().enumerate().map(|(i, &h)| (h, aligned(i, requests.len()))));
        }
        Call::Waitsome | Call::Testsome => {
            for (i, &index) in indices.iter().enumerate() {
                done.extend(one(index)?.map(|handle| (handle, aligned(i, indices.len()))));
            }
        }
        _ => {}
    }
    Ok(done)
}

/// Whether a test or probe found something; a wait always does.
pub fn succeeded(record: &Record) -> bool {
    match record.call() {
        Call::Test | Call::Testall => record.number(1) != 0,
        Call::Testany => record.number(2) != 0,
        Call::Iprobe => record.number(3) != 0,
        Call::WinTest => record.number(1) != 0,
        Call::Testsome => !record.list(1).is_empty(),
        _ => true,
    }
}
