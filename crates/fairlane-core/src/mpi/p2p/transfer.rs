//! Transfers: the messages between two ranks for one send or one-sided operation.

use super::matching::Envelope;
use crate::ids::{HostId, Rank};
use crate::kernel::{Pool, prefetch_at};
use crate::mpi::naming::Naming;
use crate::program::{RequestId, Tag};
use crate::qos::levels::TrafficKind;
use crate::units::Bytes;

/// How many entries of a list are accepted between the fetching of what one needs and its turn.
const AHEAD: usize = 6;

/// The message of a transfer that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(in crate::mpi) enum Stage {
    /// Eager: the payload.
    Eager,
    /// Rendezvous: the sender announces the payload.
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
    /// One-sided: request for a shared lock.
    LockShared,
    /// One-sided: request for an exclusive lock.
    LockExclusive,
    /// One-sided: the lock is granted.
    Grant,
    /// One-sided: the lock is released.
    Unlock,
    /// No message: operands have been combined.
    Combined,
    /// No message: operands have been combined; something comes back.
    Exchanged,
    /// No message: a step of a non-blocking operation is due.
    Step,
    /// No message: one is handed over to its sender's memory link.
    Leaving,
    /// No message: one comes to its receiver's memory link.
    Entering,
    /// No message: work on a device is complete.
    Offloaded,
    /// No message: a time has passed.
    Delayed,
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

    /// Whether a message of this stage goes to the sender, or origin, of the transfer.
    #[inline]
    pub const fn goes_back(self) -> bool {
        matches!(self, Self::Get | Self::Acknowledgement | Self::Reply | Self::Done | Self::Grant)
    }

    /// Whether a message of this stage is the first of its transfer.
    #[inline]
    pub const fn begins(self) -> bool {
        !self.goes_back() && !matches!(self, Self::Bulk)
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

/// A message between two ranks, from the send call to its completion on both sides, or a one-sided operation. One cache line.
///
/// At any time one of the two ends has it. It goes to the other with each message of the transfer: within a shard both use the
/// same record; to another shard the record goes as [`Mail`](crate::mpi::Mail).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in crate::mpi) struct Transfer {
    /// The names of the sender, or origin, and the receiver, or target; see [`crate::mpi::naming`].
    pub from: u32,
    pub to: u32,
    /// The receiver, or target, as a rank of the job.
    pub receiver: Rank,
    /// Payload.
    pub bytes: u64,
    pub envelope: Envelope,
    /// Modulo 2^32: its number among the messages from `from` to `to` on the same context, if they are numbered; else among all
    /// that `from` sent.
    pub number: u32,
    pub progress: Progress,
    /// The sender's request, for a rendezvous; the origin's for a one-sided operation.
    pub send: u32,
    /// The receiver's request, once matched; the origin's own for a one-sided operation.
    pub receive: u32,
    pub sent_at: u64,
    /// When the receiver, or target, had done its part: posted its receive, or released the lock.
    pub partner_at: u64,
    /// Of its payload, the one in flight if there are two.
    pub kind: TrafficKind,
    /// Parts of its payload that have not come whole, if it was cut; [`Transfer::BEGUN`] is added once any packet of them has come.
    pub parts: u8,
    /// The number of its rail pair where rails are used in turn; see [`crate::mpi::p2p::rails`].
    pub rail: u8,
}

const _: () = assert!(size_of::<Transfer>() == 64);

/// How far a transfer is, as its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) enum Progress {
    /// It is under way; it has no number, for it cannot overtake or be overtaken.
    Unnumbered,
    /// It is under way, and matched in the order of its number.
    Numbered,
    /// Its envelope has come.
    Arrived,
    /// So has its payload, of an eager message.
    Complete,
}

impl Transfer {
    /// See [`Transfer::parts`].
    const BEGUN: u8 = 0x80;
    /// The most parts of a payload.
    pub const MOST_PARTS: u8 = Self::BEGUN - 1;

    /// A transfer that matches nothing: `requests` are the origin's, and its program's own if it has one.
    pub fn one_sided(
        (from, to): (u32, u32),
        receiver: Rank,
        (bytes, kind): (u64, TrafficKind),
        envelope: Envelope,
        (send, receive): (u32, u32),
        sent_at: u64,
    ) -> Self {
        Self {
            from,
            to,
            receiver,
            bytes,
            envelope,
            number: 0,
            progress: Progress::Arrived,
            send,
            receive,
            sent_at,
            partner_at: sent_at,
            kind,
            parts: 0,
            rail: 0,
        }
    }

    /// The end that a message of this stage comes to.
    #[inline]
    pub const fn end(&self, stage: Stage) -> u32 {
        if stage.goes_back() { self.from } else { self.to }
    }

    /// Its payload is sent without asking the receiver.
    #[inline]
    pub const fn eager(&self) -> bool {
        matches!(self.kind, TrafficKind::Eager | TrafficKind::CollectiveEager)
    }

    /// It is part of a collective.
    #[inline]
    pub const fn collective(&self) -> bool {
        matches!(self.kind, TrafficKind::Collective | TrafficKind::CollectiveEager)
    }

    /// Its payload is sent in so many parts.
    pub fn await_parts(&mut self, parts: u8) {
        debug_assert!(parts <= Self::MOST_PARTS, "invariant: parts are counted in seven bits");
        self.parts = parts;
    }

    /// How many parts of its payload have not come whole, if it was cut.
    pub const fn parts_left(&self) -> u8 {
        self.parts & !Self::BEGUN
    }

    /// The first or the last packet of a part of the payload has come: whether it is the first or the last of all.
    pub fn part_came(&mut self, first: bool, last: bool) -> (bool, bool) {
        let first = first && self.parts & Self::BEGUN == 0;
        self.parts = (self.parts | Self::BEGUN) - u8::from(last);
        let whole = last && self.parts == Self::BEGUN;
        if whole {
            self.parts = 0;
        }
        (first, whole)
    }
}

/// Transfers that go to another shard.
#[derive(Clone, Debug, Default)]
pub(in crate::mpi) struct Transits {
    ids: Vec<u32>,
    transfers: Vec<Transfer>,
}

impl Transits {
    /// Adds a transfer with this id.
    pub fn push(&mut self, id: u32, transfer: Transfer) {
        self.ids.push(id);
        self.transfers.push(transfer);
    }
}

/// The transfers that a shard has begun, and those of other shards that have come to it, by name.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct Transfers {
    own: Pool<Transfer>,
    /// Those of other shards, by shard and number; a record that is over has arrived.
    foreign: Vec<Vec<Transfer>>,
    naming: Naming,
    /// By shard, the numbers of its transfers that have ended here.
    ended: Vec<Vec<u32>>,
}

impl Transfers {
    pub fn new(naming: Naming, shards: usize) -> Self {
        Self { own: Pool::default(), foreign: vec![Vec::new(); shards], naming, ended: vec![Vec::new(); shards] }
    }

    /// Begins a transfer. Returns its name.
    #[inline]
    pub fn insert(&mut self, transfer: Transfer) -> u32 {
        let name = self.own.insert(transfer);
        assert!(self.naming.is_own(name), "invariant: the numbers of a shard last for what is under way");
        name
    }

    /// A transfer is over.
    #[inline]
    pub fn remove(&mut self, name: u32) {
        if self.naming.is_own(name) {
            self.own.take(name);
        } else {
            self.remove_foreign(name);
        }
    }

    #[cold]
    fn remove_foreign(&mut self, name: u32) {
        self[name].progress = Progress::Arrived;
        let (shard, number) = self.naming.place(name);
        self.ended[shard].push(u32::try_from(number).expect("invariant: a number has 32 bits"));
    }

    /// How many own transfers are under way, less those of other shards that have ended here and are not known there to have ended.
    #[inline]
    pub fn count(&self) -> u64 {
        let ended: usize = self.ended.iter().map(Vec::len).sum();
        (self.own.len() as u64).wrapping_sub(ended as u64)
    }

    /// Own transfers that are under way, as far as is known here.
    pub fn under_way(&self) -> impl Iterator<Item = &Transfer> {
        self.own.used().map(|(_, transfer)| transfer)
    }

    /// Takes the numbers of transfers of another shard that have ended here.
    pub fn take_ended(&mut self, shard: usize, ended: &mut Vec<u32>) {
        std::mem::swap(&mut self.ended[shard], ended);
    }

    /// Own transfers have ended elsewhere.
    pub fn end(&mut self, numbers: &mut Vec<u32>) {
        for (place, &number) in numbers.iter().enumerate() {
            numbers.get(place + AHEAD).into_iter().for_each(|coming| self.own.prefetch(*coming));
            self.own.take(number);
        }
        numbers.clear();
    }

    /// Transfers have come from another shard, whose naming is `there`.
    pub fn accept_all(&mut self, transits: &mut Transits, there: Naming) {
        let (here, Transits { ids, transfers }) = (self.naming, transits);
        for (place, (id, mut transfer)) in ids.iter().zip(transfers.drain(..)).enumerate() {
            ids.get(place + AHEAD).into_iter().for_each(|coming| self.prefetch(here.translate(*coming)));
            (transfer.from, transfer.to) = (here.from(there, transfer.from), here.from(there, transfer.to));
            self.accept(here.translate(*id), transfer);
        }
        ids.clear();
    }

    /// A transfer has come from another shard; it may be an own one.
    fn accept(&mut self, name: u32, transfer: Transfer) {
        if self.naming.is_own(name) {
            self.own[name] = transfer;
            return;
        }
        let (shard, number) = self.naming.place(name);
        let slots = &mut self.foreign[shard];
        if slots.len() <= number {
            let over = Transfer { progress: Progress::Arrived, ..transfer };
            slots.resize((number + 1).next_power_of_two(), over);
        }
        slots[number] = transfer;
    }

    /// A transfer will be needed soon.
    #[inline(always)]
    pub fn prefetch(&self, name: u32) {
        if self.naming.is_own(name) {
            self.own.prefetch(name);
        } else {
            let (shard, number) = self.naming.place(name);
            prefetch_at(&self.foreign[shard], number);
        }
    }

    /// The transfers of ranks of a shard to ranks of this one that are not numbered and whose envelopes have not come.
    pub fn coming_from(&self, shard: usize) -> Vec<u32> {
        let coming = |transfer: &Transfer| transfer.progress == Progress::Unnumbered && self.naming.is_own(transfer.to);
        let of = Naming::new(shard, self.foreign.len());
        let (own, _) = self.naming.place(0);
        let found: Vec<u32> = if shard == own {
            self.own.used().filter(|(_, transfer)| coming(transfer)).map(|(name, _)| name).collect()
        } else {
            (0..).zip(&self.foreign[shard]).filter(|(_, transfer)| coming(transfer)).map(|(number, _)| number).collect()
        };
        found.into_iter().map(|number| self.naming.from(of, number)).collect()
    }

    #[cold]
    #[inline(never)]
    fn foreign(&self, name: u32) -> &Transfer {
        let (shard, number) = self.naming.place(name);
        &self.foreign[shard][number]
    }

    #[cold]
    #[inline(never)]
    fn foreign_mut(&mut self, name: u32) -> &mut Transfer {
        let (shard, number) = self.naming.place(name);
        &mut self.foreign[shard][number]
    }
}

impl std::ops::Index<u32> for Transfers {
    type Output = Transfer;
    #[inline(always)]
    fn index(&self, name: u32) -> &Transfer {
        match self.own.get(name) {
            Some(transfer) => transfer,
            None => self.foreign(name),
        }
    }
}

impl std::ops::IndexMut<u32> for Transfers {
    #[inline(always)]
    fn index_mut(&mut self, name: u32) -> &mut Transfer {
        if self.own.get(name).is_none() {
            return self.foreign_mut(name);
        }
        &mut self.own[name]
    }
}

/// One message of a transfer.
pub(in crate::mpi) struct Outgoing {
    /// The names of the rank that sends it and, after it, the ranks of the job.
    pub from: u32,
    pub sender: Rank,
    pub receiver: Rank,
    pub to: RankPlace,
    pub bytes: Bytes,
    pub kind: TrafficKind,
    pub transfer: u32,
    pub stage: Stage,
    pub at: u64,
}

/// Where a rank is: its id, and its host.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) struct RankPlace {
    pub id: u32,
    pub host: HostId,
}

/// A send as the interpreter asks for it.
pub(in crate::mpi) struct Send {
    /// The sender's name.
    pub from: u32,
    /// The receiver, as a rank of the job.
    pub to: Rank,
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
