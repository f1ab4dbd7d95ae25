//! Matching of messages and receives at one rank, in MPI's order.
//!
//! On the receiver's side in the order of posting; on the sender's side in the order of sending, for each sender and
//! context: an envelope that has overtaken an earlier one in the network is held back until that one has come.

use std::collections::VecDeque;

use super::numbers::Numbers;
use crate::kernel::prefetch;
use crate::program::Tag;

/// The messages that a receive or a probe accepts. Ranks are ranks of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) struct Pattern {
    pub context: u32,
    pub source: Option<u32>,
    pub tag: Option<Tag>,
}

/// The attributes of a message by which it is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) struct Envelope {
    pub context: u32,
    pub source: u32,
    pub tag: Tag,
}

impl Pattern {
    #[inline]
    fn accepts(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}

/// The posted receives and unexpected messages of one rank.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(in crate::mpi) struct Matching {
    /// Receives in the order of posting, and how many of the first have been taken.
    posted: Vec<(Pattern, u32)>,
    taken: usize,
    unexpected: VecDeque<(Envelope, u32)>,
    /// Only where messages are numbered, or have to be looked at.
    order: Option<Box<MessageOrder>>,
}

/// The order of messages that can overtake each other.
#[derive(Clone, Debug, Default)]
struct MessageOrder {
    numbers: Numbers,
    /// Messages that have overtaken: number, envelope, transfer.
    early: Vec<(u32, Envelope, u32)>,
    /// Active non-blocking operations, which make progress when a message arrives.
    progressing: u32,
}

impl Matching {
    /// Messages will come, or be sent.
    #[inline]
    pub fn prefetch(&self) {
        if let Some(receive) = self.oldest() {
            prefetch(receive);
        }
        if let Some(order) = &self.order {
            prefetch(&**order);
        }
    }

    /// A message will be sent to this rank.
    #[inline]
    pub fn prefetch_number(&self, context: u32, receiver: u32) {
        if let Some(order) = &self.order {
            order.numbers.prefetch(context, receiver);
        }
    }

    /// The receive that has been posted for longest.
    #[inline]
    pub fn oldest(&self) -> Option<&(Pattern, u32)> {
        self.posted.get(self.taken)
    }

    /// The number of a message to `receiver` that is sent now.
    pub fn number(&mut self, context: u32, receiver: u32) -> u32 {
        let peer = self.order().numbers.of(context, receiver);
        let number = peer.sent;
        peer.sent = number.wrapping_add(1);
        number
    }

    /// The messages of the sender of `envelope` are numbered now, and the next that comes from it has this number.
    pub fn expect_from(&mut self, envelope: &Envelope, number: u32) {
        let peer = self.order().numbers.of(envelope.context, envelope.source);
        debug_assert!(peer.due == 0, "messages of this sender are numbered already");
        peer.due = number;
    }

    /// Whether an arriving message can have consequences before the program resumes: it may release others that are held
    /// back, or a non-blocking operation may proceed.
    #[inline]
    pub fn is_attentive(&self) -> bool {
        self.order.as_ref().is_some_and(|order| !order.early.is_empty() || order.progressing > 0)
    }

    /// A non-blocking operation begins.
    pub fn begin_progress(&mut self) {
        self.order().progressing += 1;
    }

    /// A non-blocking operation is over.
    pub fn end_progress(&mut self) {
        self.order().progressing -= 1;
    }

    #[inline]
    fn order(&mut self) -> &mut MessageOrder {
        self.order.get_or_insert_default()
    }

    /// An envelope has arrived: whether it is the next of its sender, and no other is held back. If so, the one after it is next.
    #[inline]
    pub fn is_next(&mut self, number: u32, envelope: &Envelope) -> bool {
        let order = self.order();
        if !order.early.is_empty() {
            return false;
        }
        order.numbers.of(envelope.context, envelope.source).takes(number)
    }

    /// An envelope has arrived. Returns whether it is the next of its sender; if not, it is held back.
    pub fn take_number(&mut self, number: u32, envelope: Envelope, transfer: u32) -> bool {
        let order = self.order();
        let next = order.numbers.of(envelope.context, envelope.source).takes(number);
        if !next {
            order.early.push((number, envelope, transfer));
        }
        next
    }

    /// A message from the sender of `envelope` that was held back and is the next now.
    pub fn released(&mut self, envelope: &Envelope) -> Option<(Envelope, u32)> {
        let order = self.order.as_deref_mut().filter(|order| !order.early.is_empty())?;
        let peer = order.numbers.of(envelope.context, envelope.source);
        let same = |held: &Envelope| held.context == envelope.context && held.source == envelope.source;
        let place = order.early.iter().position(|(number, held, _)| *number == peer.due && same(held))?;
        peer.due = peer.due.wrapping_add(1);
        let (_, envelope, transfer) = order.early.swap_remove(place);
        Some((envelope, transfer))
    }

    /// The receive that takes this message; without one the message is kept as unexpected.
    #[inline(always)]
    pub fn arrive(&mut self, envelope: &Envelope, transfer: u32) -> Option<u32> {
        match self.posted.get(self.taken) {
            Some((pattern, slot)) if pattern.accepts(envelope) => {
                let slot = *slot;
                self.taken += 1;
                if self.taken == self.posted.len() {
                    self.taken = 0;
                    self.posted.clear();
                }
                Some(slot)
            }
            _ => self.search(envelope, transfer),
        }
    }

    /// As [`Self::arrive`], when it is not the receive that was posted first.
    #[inline(never)]
    fn search(&mut self, envelope: &Envelope, transfer: u32) -> Option<u32> {
        match self.posted[self.taken..].iter().position(|(pattern, _)| pattern.accepts(envelope)) {
            Some(place) => Some(self.posted.remove(self.taken + place).1),
            None => {
                self.unexpected.push_back((*envelope, transfer));
                None
            }
        }
    }

    /// The message that this receive takes; without one the receive is kept as posted.
    #[inline(always)]
    pub fn post(&mut self, pattern: Pattern, slot: u32) -> Option<u32> {
        if !self.unexpected.is_empty()
            && let Some(earlier) = self.take_unexpected(pattern)
        {
            return Some(earlier);
        }
        if self.posted.len() == self.posted.capacity() && 2 * self.taken > self.posted.len() {
            self.posted.drain(..std::mem::take(&mut self.taken));
        }
        self.posted.push((pattern, slot));
        None
    }

    #[inline(never)]
    fn take_unexpected(&mut self, pattern: Pattern) -> Option<u32> {
        let place = self.unexpected.iter().position(|(envelope, _)| pattern.accepts(envelope))?;
        self.unexpected.remove(place).map(|(_, transfer)| transfer)
    }

    /// The message that a receive of this pattern would take, if it has come.
    pub fn probe(&self, pattern: Pattern) -> Option<u32> {
        self.unexpected.iter().find(|(envelope, _)| pattern.accepts(envelope)).map(|(_, transfer)| *transfer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(source: u32, tag: Tag) -> Envelope {
        Envelope { context: 0, source, tag }
    }

    #[test]
    fn receives_match_in_the_order_of_posting() {
        let mut matching = Matching::default();
        let any = Pattern { context: 0, source: None, tag: None };
        let from_one = Pattern { context: 0, source: Some(1), tag: None };
        assert_eq!(matching.post(from_one, 10), None);
        assert_eq!(matching.post(any, 11), None);
        assert_eq!(matching.arrive(&envelope(1, 5), 100), Some(10));
        assert_eq!(matching.arrive(&envelope(1, 6), 101), Some(11));
        assert_eq!(matching.arrive(&envelope(2, 7), 102), None);
        assert_eq!(matching.arrive(&envelope(1, 8), 103), None);
        assert_eq!(matching.probe(from_one), Some(103));
        assert_eq!(matching.post(Pattern { tag: Some(9), ..any }, 12), None);
        assert_eq!(matching.post(Pattern { context: 1, ..any }, 13), None);
        assert_eq!(matching.post(any, 14), Some(102));
    }

    #[test]
    fn overtaking_envelopes_wait_for_their_turn() {
        let (mut sender, mut receiver) = (Matching::default(), Matching::default());
        let numbers: Vec<u32> = (0..3).map(|_| sender.number(0, 9)).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(!receiver.take_number(2, envelope(4, 2), 102));
        assert!(!receiver.take_number(1, envelope(4, 1), 101));
        assert!(receiver.take_number(0, envelope(5, 0), 200), "other senders have numbers of their own");
        assert!(receiver.take_number(0, envelope(4, 0), 100));
        assert_eq!(receiver.released(&envelope(4, 0)).map(|held| held.1), Some(101));
        assert_eq!(receiver.released(&envelope(4, 0)).map(|held| held.1), Some(102));
        assert_eq!(receiver.released(&envelope(4, 0)), None);
    }
}
