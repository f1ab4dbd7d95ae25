//! The events of a location, read in batches.

use std::collections::VecDeque;
use std::sync::Arc;

use super::library::Archive;

/// Events read at once.
const BATCH: u64 = 2048;

/// When something happened: ticks of the wall clock, nanoseconds of the CPU clock if recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub wall: u64,
    pub cpu: Option<u64>,
}

/// A message as its sender or its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The partner, as a rank of the communicator.
    pub peer: u32,
    pub comm: u32,
    pub tag: i32,
    pub bytes: u64,
}

/// A finished collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// OTF2's number of the operation.
    pub operation: u8,
    pub comm: u32,
    pub root: u32,
    pub sent: u64,
    pub received: u64,
}

/// OTF2's number of a window.
pub type Window = u32;

/// A one-sided operation and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Put {
        bytes: u64,
    },
    Get {
        bytes: u64,
    },
    /// An atomic operation that returns nothing.
    Accumulate {
        bytes: u64,
    },
    /// An atomic operation that returns what was there.
    Fetch {
        sent: u64,
        received: u64,
    },
    CompareAndSwap {
        received: u64,
    },
}

/// A lock of a window at a target rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    pub window: Window,
    pub target: u32,
    pub exclusive: bool,
}

/// Records of one-sided communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSided {
    Create(Window),
    Destroy(Window),
    /// A collective call on a window has ended.
    Collective {
        operation: u8,
        window: Window,
    },
    /// A call that synchronises with a group: post, start, complete or wait; not `done`: a test that found it open.
    GroupSync {
        window: Window,
        group: u32,
        done: bool,
    },
    Lock(Lock),
    Unlock {
        window: Window,
        target: u32,
    },
    /// An operation starts; `matching` names it until it is complete.
    Start {
        operation: Operation,
        window: Window,
        target: u32,
        matching: u64,
    },
    /// An operation is complete at the origin; if not `local`, also at the target.
    Complete {
        window: Window,
        matching: u64,
        local: bool,
    },
}

/// The events that matter for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter(u32, Moment),
    Leave(u32, Moment),
    Send(Message),
    Recv(Message),
    /// A send begins; the request's number.
    Isend(Message, u64),
    IsendComplete(u64),
    /// A receive is posted; the request's number.
    IrecvRequest(u64),
    /// A posted receive has completed, and this is what it got.
    Irecv(Message, u64),
    /// A probe found a message; its number, which a matched receive names.
    Probe(Message, u64),
    /// A message that a probe has found is received; its number.
    Mrecv(u64),
    /// The same without blocking: the message's number, the request's.
    ImrecvRequest(u64, u64),
    ImrecvComplete(u64),
    /// A test found a request incomplete.
    RequestTest(u64),
    RequestCancelled(u64),
    CollectiveEnd(Collective),
    /// A non-blocking collective starts; the request's number.
    CollectiveRequest(u64),
    /// A non-blocking collective is complete; the request's number.
    CollectiveComplete(Collective, u64),
    Rma(OneSided),
}

/// A position in the events of a location. A copy is a position only.
pub struct Events {
    archive: Arc<Archive>,
    /// The location, and how many events it has.
    location: (u64, u64),
    /// The number of the first event that has not been read.
    next: u64,
    batch: VecDeque<(u64, Event)>,
}

impl Clone for Events {
    fn clone(&self) -> Self {
        let next = self.batch.front().map_or(self.next, |(position, _)| *position);
        Self { archive: Arc::clone(&self.archive), location: self.location, next, batch: VecDeque::new() }
    }
}

impl Events {
    /// At the first of a location's so many events.
    pub const fn new(archive: Arc<Archive>, location: (u64, u64)) -> Self {
        Self { archive, location, next: 1, batch: VecDeque::new() }
    }

    /// The next event and its number; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, Event)>, String> {
        let (location, count) = self.location;
        while self.batch.is_empty() && self.next <= count {
            let wanted = BATCH.min(count - self.next + 1);
            let mut batch = Vec::from(std::mem::take(&mut self.batch));
            let read = self.archive.read(location, self.next, wanted, &mut batch)?;
            if read == 0 {
                return Err(format!("the events end after {} of {count}: the file is cut off", self.next - 1));
            }
            self.next += read;
            self.batch = batch.into();
        }
        Ok(self.batch.pop_front())
    }
}
