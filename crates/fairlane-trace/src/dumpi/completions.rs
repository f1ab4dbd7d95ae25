//! The scan that reads ahead: which message each open receive got.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::calls::Call;
use super::cursor::Cursor;
use super::file::TraceFile;
use super::record::{Record, Status};
use super::requests::{Direction, Posting, Requests, completed};
use crate::lookahead::{Found, Outcome, Scan};

/// A started operation as the scan keeps it.
#[derive(Clone, Copy)]
struct Started {
    /// Its number among the open operations, if it is one of them.
    number: Option<u64>,
    receive: bool,
}

/// Follows the open operations of a rank to their completion.
#[derive(Clone)]
pub struct Completions {
    version: [u8; 3],
    cancels: bool,
    cursor: Cursor,
    record: Record,
    requests: Requests<Started>,
    numbered: u64,
    cancelled: HashSet<i32>,
    found: VecDeque<(u64, Outcome<Status>)>,
}

impl Completions {
    /// From the first record on. `cancels`: the trace has calls of `MPI_Cancel`, so every operation is open.
    pub fn new(file: &Arc<TraceFile>, cancels: bool) -> Self {
        Self {
            version: file.version,
            cancels,
            cursor: file.records(),
            record: Record::default(),
            requests: Requests::new(),
            numbered: 0,
            cancelled: HashSet::new(),
            found: VecDeque::new(),
        }
    }

    fn start(&mut self, handle: i32, posting: &Posting) {
        let number = posting.is_open(self.cancels).then(|| {
            self.numbered += 1;
            self.numbered - 1
        });
        self.requests.start(handle, Started { number, receive: posting.direction == Direction::Receive });
    }

    /// A handle that is not known is not followed: the reader itself reports it.
    fn start_persistent(&mut self, handle: i32) {
        if let Ok(posting) = self.requests.persistent(handle) {
            self.start(handle, &posting);
        }
    }

    fn take_record(&mut self) -> Result<(), String> {
        let record = std::mem::take(&mut self.record);
        let call = record.call();
        match call {
            Call::Isend(mode) => self.start(record.number(5), &Posting::new(&record, 0, Direction::Send(mode))),
            Call::Ibsend => self.start(record.number(5), &Posting::new(&record, 0, Direction::Buffered)),
            Call::Irecv => self.start(record.number(5), &Posting::new(&record, 0, Direction::Receive)),
            Call::SendInit(mode) => {
                self.requests.define(record.number(5), Posting::new(&record, 0, Direction::Send(mode)));
            }
            Call::BsendInit => self.requests.define(record.number(5), Posting::new(&record, 0, Direction::Buffered)),
            Call::RecvInit => self.requests.define(record.number(5), Posting::new(&record, 0, Direction::Receive)),
            Call::Start => self.start_persistent(record.number(0)),
            Call::Startall => record.list(0).iter().for_each(|&handle| self.start_persistent(handle)),
            Call::Cancel => drop(self.cancelled.insert(record.number(0))),
            Call::RequestFree => {
                let handle = record.number(0);
                let cancelled = self.cancelled.remove(&handle);
                if let Ok(Some(started)) = self.requests.free(handle) {
                    self.finish(started, None, cancelled);
                }
            }
            _ => {
                for (handle, status) in completed(&record)? {
                    let cancelled = self.cancelled.remove(&handle);
                    if let Ok(Some(started)) = self.requests.complete(handle) {
                        self.finish(started, status, cancelled);
                    }
                }
            }
        }
        self.record = record;
        Ok(())
    }

    /// A cancelled receive whose status nobody asked for never met a message: programs cancel what they no longer expect.
    fn finish(&mut self, started: Started, status: Option<Status>, cancelled: bool) {
        let outcome = match status {
            Some(status) if cancelled && status.cancelled => Outcome::Cancelled,
            Some(status) => Outcome::Completed(status),
            None if cancelled && started.receive => Outcome::Cancelled,
            None => Outcome::Unknown,
        };
        self.found.extend(started.number.map(|number| (number, outcome)));
    }
}

impl Scan for Completions {
    type Answer = Status;

    fn next_outcome(&mut self) -> Found<Status> {
        while self.found.is_empty() {
            if !self.record.read(&mut self.cursor, self.version)? || self.record.call() == Call::Finalize {
                return Ok(None);
            }
            self.take_record()?;
        }
        Ok(self.found.pop_front())
    }
}
