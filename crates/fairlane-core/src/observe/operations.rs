//! The record of what ranks did: their operations one after another, and the requests that these ended.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{RecordOf, call_name};
use crate::ids::{JobId, Rank};
use crate::units::Instant;

/// [`Operation::call`] of a computation.
pub const COMPUTE: u8 = u8::MAX;
/// [`Operation::call`] of the end of an iteration.
pub const MARK: u8 = u8::MAX - 1;

/// An operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The job.
    pub job: JobId,
    /// The rank.
    pub rank: Rank,
    /// Its number among the operations of the rank.
    pub number: u64,
    /// The call, by index; see [`operation_name`].
    pub call: u8,
    /// When it began.
    pub since: Instant,
    /// When it was over, if it was.
    pub end: Option<Instant>,
    /// Payload of a send; what the rank hands in to a collective, summed over `blocks`.
    pub bytes: u64,
    /// How many blocks `bytes` consists of; 0 if they are the same for every member and `bytes` is one of them.
    pub blocks: u32,
    /// Partner, root or target, as a rank of the communicator or window, if it has one.
    pub peer: Option<u32>,
    /// The context of the communicator, if it has one: the number that messages on the same communicator have.
    pub context: Option<u32>,
    /// The slot of the request that it started; see [`RequestEnd::slot`].
    pub slot: Option<u32>,
}

/// A wait, or a blocking send or receive, ended a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEnd {
    /// The job.
    pub job: JobId,
    /// The rank.
    pub rank: Rank,
    /// The [`Operation::number`] of the call that ended it.
    pub operation: u64,
    /// The request's slot, which a later request may have again.
    pub slot: u32,
    /// When.
    pub at: Instant,
    /// It was a receive.
    pub receive: bool,
    /// The [`MessageRecord::number`](super::MessageRecord::number) of the message that completed it, if that is known: not of eager sends.
    pub message: Option<u64>,
}

/// The name of an operation's call: that of [`call_name`], `compute`, or `mark` for the end of an iteration.
#[must_use]
pub fn operation_name(call: u8) -> &'static str {
    match call {
        COMPUTE => "compute",
        MARK => "mark",
        call => call_name(usize::from(call)),
    }
}

/// The operations within a stretch of time.
#[derive(Clone, Debug)]
pub struct Operations {
    of: RecordOf,
    /// The last operation of each rank, and whether it goes on.
    last: FxHashMap<(JobId, Rank), Operation>,
    over: Vec<Operation>,
    ends: Vec<RequestEnd>,
    known: FxHashSet<(JobId, u32)>,
    /// The members of each communicator as ranks of the job, by job and context.
    communicators: Vec<(JobId, u32, Arc<[u32]>)>,
}

impl Operations {
    /// None yet.
    #[must_use]
    pub fn new(of: RecordOf) -> Self {
        let (last, over, ends) = (FxHashMap::default(), Vec::new(), Vec::new());
        Self { of, last, over, ends, known: FxHashSet::default(), communicators: Vec::new() }
    }

    /// The operations that were active in the stretch, by job, rank and number.
    #[must_use]
    pub fn all(&self) -> Vec<Operation> {
        let last = self.last.values().filter(|operation| self.is_within(operation));
        let mut all: Vec<_> = self.over.iter().chain(last).cloned().collect();
        all.sort_unstable_by_key(|operation| (operation.job, operation.rank, operation.number));
        all
    }

    /// The requests that operations of the stretch ended, in the order in which this happened.
    #[must_use]
    pub fn request_ends(&self) -> &[RequestEnd] {
        &self.ends
    }

    /// The communicators that operations named, by job and context, with their members as ranks of the job.
    #[must_use]
    pub fn communicators(&self) -> &[(JobId, u32, Arc<[u32]>)] {
        &self.communicators
    }

    fn is_within(&self, operation: &Operation) -> bool {
        operation.since.0 < self.of.to.0 && operation.end.is_none_or(|end| end.0 >= self.of.from.0)
    }

    /// An operation begins. Its number is given here.
    pub(crate) fn begin(&mut self, operation: Operation) {
        let key = (operation.job, operation.rank);
        let number = self.last.get(&key).map_or(0, |last| last.number + 1);
        if let Some(last) = self.last.insert(key, Operation { number, ..operation })
            && self.is_within(&last)
        {
            self.over.push(last);
        }
    }

    /// The last operation of a rank.
    pub(crate) fn last(&mut self, job: JobId, rank: Rank) -> Option<&mut Operation> {
        self.last.get_mut(&(job, rank))
    }

    /// The last operation of a rank is over.
    pub(crate) fn end(&mut self, job: JobId, rank: Rank, at: Instant) {
        if let Some(last) = self.last.get_mut(&(job, rank)) {
            last.end.get_or_insert(at);
        }
    }

    /// The last operation of a rank ends a request. Its number is filled in here.
    pub(crate) fn end_request(&mut self, end: RequestEnd) {
        let Some(last) = self.last.get(&(end.job, end.rank)) else { return };
        if (self.of.from.0..self.of.to.0).contains(&end.at.0) {
            self.ends.push(RequestEnd { operation: last.number, ..end });
        }
    }

    /// An operation has named a communicator.
    pub(crate) fn communicator(&mut self, job: JobId, context: u32, members: &Arc<[u32]>) {
        if self.known.insert((job, context)) {
            self.communicators.push((job, context, Arc::clone(members)));
        }
    }
}
