//! The record of one job, or of every job, in a stretch of time: messages, what ranks waited for, and what they did.

use rustc_hash::FxHashMap;

use super::{Operations, RecordOf};
use crate::ids::{JobId, Rank};
use crate::kernel::NONE;
use crate::program::Tag;
use crate::units::{Bytes, Instant};

/// A message between two ranks of a recorded job. It was in flight for a part of the stretch at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Its number among all messages of the recorded jobs: by the order in which the simulation came to their send calls.
    pub number: u64,
    /// The job.
    pub job: JobId,
    /// The token that its packets have in the log of departures from `sent_at` on; another message has it later.
    pub token: u32,
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// Payload.
    pub bytes: Bytes,
    /// Its tag.
    pub tag: Tag,
    /// It is part of a collective.
    pub collective: bool,
    /// It was sent at once, without a rendezvous.
    pub eager: bool,
    /// When its send was called.
    pub sent_at: Instant,
    /// When the receive that takes it was posted, once they have met.
    pub posted_at: Option<Instant>,
    /// When that receive was complete: the payload was there, and the receive posted; when a datagram was delivered.
    pub received_at: Option<Instant>,
    /// When the sender's request was complete, if it had to wait for the receiver.
    pub acknowledged_at: Option<Instant>,
}

/// A rank of a recorded job was blocked, until an instant in the stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRecord {
    /// The job.
    pub job: JobId,
    /// The rank.
    pub rank: Rank,
    /// The call that it was in, by index; see [`call_name`](super::call_name).
    pub call: u8,
    /// From when on.
    pub since: Instant,
    /// Until when.
    pub end: Instant,
    /// When the partner had done its part of the request that ended it: made its send call, or posted its receive.
    pub partner_at: Instant,
    /// The [`MessageRecord::number`] of that request's message, if it is in the record.
    pub message: Option<u64>,
    /// The rank was that message's receiver.
    pub receiver: bool,
}

/// The record. Its memory grows with the messages and waits of the stretch.
#[derive(Clone, Debug)]
pub struct JobRecord {
    of: RecordOf,
    /// Messages that have been sent so far.
    sent: u64,
    /// Those in flight, by token, from the beginning of the run on: nobody knows yet which will see the stretch.
    under_way: FxHashMap<u32, MessageRecord>,
    over: Vec<MessageRecord>,
    /// Requests that are complete and not waited for yet: the message, by job, rank and slot.
    complete: FxHashMap<(JobId, Rank, u32), u64>,
    waits: Vec<WaitRecord>,
    operations: Option<Operations>,
}

impl JobRecord {
    /// An empty record.
    #[must_use]
    pub fn new(of: RecordOf) -> Self {
        let (sent, under_way, over) = (0, FxHashMap::default(), Vec::new());
        let operations = of.operations.then(|| Operations::new(of));
        Self { of, sent, under_way, over, complete: FxHashMap::default(), waits: Vec::new(), operations }
    }

    /// Whether a job is recorded.
    #[inline]
    #[must_use]
    pub fn includes(&self, job: JobId) -> bool {
        self.of.job.is_none_or(|only| only == job)
    }

    /// The operations of ranks, if they are recorded.
    #[must_use]
    pub fn operations(&self) -> Option<&Operations> {
        self.operations.as_ref()
    }

    /// The same, to record.
    #[inline]
    pub(crate) fn operations_mut(&mut self) -> Option<&mut Operations> {
        self.operations.as_mut()
    }

    /// The messages, those that are still in flight included, by number.
    #[must_use]
    pub fn messages(&self) -> Vec<MessageRecord> {
        let under_way = self.under_way.values().filter(|message| message.sent_at.0 < self.of.to.0);
        let mut all: Vec<_> = self.over.iter().chain(under_way).cloned().collect();
        all.sort_unstable_by_key(|message| message.number);
        all
    }

    /// The waits, by job and rank, then time.
    #[must_use]
    pub fn waits(&self) -> Vec<WaitRecord> {
        let mut all = self.waits.clone();
        all.sort_unstable_by_key(|wait| (wait.job, wait.rank, wait.end, wait.since));
        all
    }

    /// A send has been called. Its number is given here.
    pub(crate) fn sent(&mut self, message: MessageRecord) {
        let number = self.sent;
        self.sent += 1;
        self.under_way.insert(message.token, MessageRecord { number, ..message });
    }

    /// A message has met a receive that was posted at `at`.
    pub(crate) fn met(&mut self, token: u32, at: Instant) {
        if let Some(message) = self.under_way.get_mut(&token) {
            message.posted_at = Some(at);
        }
    }

    /// The receive of a message, in this slot of the receiver's requests, is complete.
    pub(crate) fn received(&mut self, token: u32, slot: u32, at: Instant) {
        let Some(message) = self.under_way.get_mut(&token) else { return };
        message.received_at = Some(at);
        self.complete.insert((message.job, message.to, slot), message.number);
        if message.eager {
            self.end(token, at);
        }
    }

    /// A message that nobody receives has come whole.
    pub(crate) fn delivered(&mut self, token: u32, at: Instant) {
        if let Some(message) = self.under_way.get_mut(&token) {
            message.received_at = Some(at);
            self.end(token, at);
        }
    }

    /// The send of a message, in this slot of the sender's requests, is complete: the receiver has everything.
    pub(crate) fn acknowledged(&mut self, token: u32, slot: u32, at: Instant) {
        let Some(message) = self.under_way.get_mut(&token) else { return };
        message.acknowledged_at = Some(at);
        self.complete.insert((message.job, message.from, slot), message.number);
        self.end(token, at);
    }

    fn end(&mut self, token: u32, at: Instant) {
        let message = self.under_way.remove(&token).expect("invariant: it was under way");
        if at.0 >= self.of.from.0 && message.sent_at.0 < self.of.to.0 {
            self.over.push(message);
        }
    }

    /// The message whose completion completed a request; the request is over.
    pub(crate) fn completed_by(&mut self, job: JobId, rank: Rank, slot: u32) -> Option<u64> {
        self.complete.remove(&(job, rank, slot))
    }

    /// The payload of a one-sided operation is in the target's memory.
    pub(crate) fn landed(&mut self, token: u32, at: Instant) {
        if let Some(message) = self.under_way.get_mut(&token) {
            message.received_at = Some(at);
        }
    }

    /// A one-sided operation is complete, and with it these requests of its origin.
    pub(crate) fn fetched(&mut self, token: u32, slots: &[u32], at: Instant) {
        let Some(message) = self.under_way.get_mut(&token) else { return };
        let origin = if message.eager { message.to } else { message.from };
        let done = if message.eager { &mut message.received_at } else { &mut message.acknowledged_at };
        *done = Some(at);
        let (job, number) = (message.job, message.number);
        let slots = slots.iter().filter(|slot| **slot != NONE);
        self.complete.extend(slots.map(|slot| ((job, origin, *slot), number)));
        self.end(token, at);
    }

    /// The message that completed one request of a rank was the last but for which another was not complete.
    pub(crate) fn passed_on(&mut self, job: JobId, rank: Rank, slot: u32, to: u32) {
        if let Some(number) = self.complete.remove(&(job, rank, slot)) {
            self.complete.insert((job, rank, to), number);
        }
    }

    /// The message with this token, if it is in flight.
    pub(crate) fn number(&self, token: u32) -> Option<u64> {
        self.under_way.get(&token).map(|message| message.number)
    }

    /// A rank goes on.
    pub(crate) fn waited(&mut self, wait: WaitRecord) {
        if wait.since < wait.end && (self.of.from.0..self.of.to.0).contains(&wait.end.0) {
            self.waits.push(wait);
        }
    }
}
