//! Transfers: what goes on between two ranks for one send or one-sided operation, and the messages that it takes.

use super::matching::Envelope;
use crate::ids::Rank;
use crate::program::{RequestId, Tag};
use crate::qos::levels::TrafficKind;
use crate::units::Bytes;

/// Which message of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// The payload at once.
    Eager,
    /// Rendezvous: may I send?
    Request,
    /// Rendezvous: the receiver fetches the payload.
    Get,
    /// Rendezvous: the payload.
    Bulk,
    /// Rendezvous: the payload has come.
    Acknowledgement,
    /// A payload that nobody receives.
    Datagram,
    /// One-sided: the payload of a put.
    Put,
    /// One-sided: the target is asked for a payload.
    Fetch,
    /// One-sided: the payload that comes back.
    Reply,
    /// One-sided: operands to be combined.
    Accumulate,
    /// One-sided: operands to be combined; something comes back.
    Exchange,
    /// One-sided: the operation is complete at the target.
    Done,
    /// One-sided: may others and I have the lock?
    LockShared,
    /// One-sided: may I alone have the lock?
    LockExclusive,
    /// One-sided: you have the lock.
    Grant,
    /// One-sided: I no longer have the lock.
    Unlock,
    /// No message: operands have been combined.
    Combined,
    /// No message: operands have been combined; something comes back.
    Exchanged,
    /// No message: a step of a non-blocking operation is due.
    Step,
}

impl Stage {
    /// The stages of messages, in the order of declaration.
    const MESSAGES: [Self; 16] = [
        Self::Eager,
        Self::Request,
        Self::Get,
        Self::Bulk,
        Self::Acknowledgement,
        Self::Datagram,
        Self::Put,
        Self::Fetch,
        Self::Reply,
        Self::Accumulate,
        Self::Exchange,
        Self::Done,
        Self::LockShared,
        Self::LockExclusive,
        Self::Grant,
        Self::Unlock,
    ];

    /// The stage of a message, given as a number.
    #[inline]
    pub const fn of(message: u8) -> Self {
        Self::MESSAGES[message as usize]
    }

    /// Whether a message of this stage carries payload.
    #[inline]
    pub const fn is_payload(self) -> bool {
        matches!(
            self,
            Self::Eager | Self::Bulk | Self::Datagram | Self::Put | Self::Reply | Self::Accumulate | Self::Exchange
        )
    }
}

/// A message between two ranks, from the send call to its completion on both sides. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Transfer {
    /// Ranks over all jobs.
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub envelope: Envelope,
    /// Its number among the messages from `from` to `to` on the same context, if they are numbered; else among all that
    /// `from` sent.
    pub number: u64,
    pub numbered: bool,
    /// Its envelope has come.
    pub arrived: bool,
    /// The sender's request, for a rendezvous; the origin's for a one-sided operation.
    pub send: u32,
    /// The receiver's request, once matched; the origin's own for a one-sided operation.
    pub receive: u32,
    pub sent_at: u64,
    pub eager: bool,
    pub payload_done: bool,
    pub collective: bool,
    /// Of its payload, that under way if there are two.
    pub kind: TrafficKind,
    /// Parts of its payload that have not come whole, if it was cut, and whether any packet of them has come.
    pub parts: u8,
    pub begun: bool,
}

impl Transfer {
    /// A transfer that matches nothing: `requests` are the origin's, and its program's own if it has one.
    pub fn one_sided(
        (from, to): (u32, u32),
        bytes: u64,
        envelope: Envelope,
        (send, receive): (u32, u32),
        sent_at: u64,
    ) -> Self {
        Self {
            from,
            to,
            bytes,
            envelope,
            number: 0,
            numbered: false,
            arrived: true,
            send,
            receive,
            sent_at,
            eager: false,
            payload_done: false,
            collective: false,
            kind: TrafficKind::Control,
            parts: 0,
            begun: false,
        }
    }

    /// Its next payload is of this kind.
    pub fn carry(&mut self, kind: TrafficKind) {
        self.kind = kind;
    }

    /// The receiver, over all jobs, and the context.
    pub fn place(&self) -> (u32, u32) {
        (self.to, self.envelope.context)
    }

    /// The sender, as a rank of the job.
    pub fn origin(&self) -> u32 {
        self.envelope.source
    }

    /// Its payload is sent in so many parts.
    pub fn await_parts(&mut self, parts: u8) {
        (self.parts, self.begun) = (parts, false);
    }

    /// The first or the last packet of a part of the payload has come: whether it is the first or the last of all.
    pub fn part_came(&mut self, first: bool, last: bool) -> (bool, bool) {
        let first = first && !std::mem::replace(&mut self.begun, true);
        self.parts -= u8::from(last);
        (first, last && self.parts == 0)
    }
}

/// One message of a transfer: between ranks over all jobs, and the same as ranks of their job.
pub(super) struct Message {
    pub from: u32,
    pub sender: Rank,
    pub to: u32,
    pub receiver: Rank,
    pub bytes: Bytes,
    pub kind: TrafficKind,
    pub transfer: u32,
    pub stage: Stage,
    pub at: u64,
}

/// A send as the interpreter asks for it.
pub(super) struct Send {
    pub from: u32,
    pub to: u32,
    pub bytes: Bytes,
    pub tag: Tag,
    pub context: u32,
    /// The program's name for its request.
    pub name: Option<RequestId>,
    pub eager: bool,
    pub collective: bool,
    /// When the call was made.
    pub called_at: u64,
    /// When the CPU is done with it.
    pub handed_at: u64,
}
