//! Queue pairs: connections whose messages an adapter sends one after another. Only the first message of a queue pair that has
//! not been sent completely stands in the queue of its lane; those behind it follow, in order. Not used where all messages of a
//! lane take turns ([`Turns::Messages`](crate::network::Turns)).
//!
//! `InfiniBand` starts the work requests of a send queue in the order in which they were posted (Architecture Specification,
//! volume 1, section 10.8.3), and an adapter arbitrates between its send queues.

use rustc_hash::FxHashMap;

use crate::ids::{JobId, Rank};
use crate::kernel::{NONE, Pool};
use crate::network::packet::{Injection, Message};
use crate::network::parameters::Turns;

/// What identifies a queue pair: adapter, job, virtual lane, and the ranks at both ends. With [`Turns::Fifo`] an adapter has one
/// for each lane, with [`Turns::AdapterFifo`] only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    nic: u32,
    ranks: [Rank; 2],
    job: JobId,
    vl: u8,
}

/// A queue pair with messages that have not been sent completely.
#[derive(Clone, Debug)]
struct QueuePair {
    key: Key,
    /// How many messages it has, among them those that will be handed over later.
    messages: u32,
    /// The message whose packets are sent, or [`NONE`].
    first: u32,
    /// The messages behind it: a list.
    second: u32,
    last: u32,
}

/// The queue pairs of a shard's NICs that have messages to send.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct QueuePairs {
    places: FxHashMap<Key, u32>,
    pairs: Pool<QueuePair>,
}

impl QueuePairs {
    /// A message has been made. Returns its queue pair.
    pub fn add(&mut self, turns: Turns, nic: u32, injection: &Injection) -> u32 {
        let &Injection { job, vl, sender, receiver, .. } = injection;
        let key = match turns {
            Turns::Messages => return NONE,
            Turns::QueuePairs => Key { nic, ranks: [sender, receiver], job, vl: vl.0 },
            Turns::Fifo => Key { nic, ranks: [Rank(0); 2], job: JobId(0), vl: vl.0 },
            Turns::AdapterFifo => Key { nic, ranks: [Rank(0); 2], job: JobId(0), vl: 0 },
        };
        let empty = QueuePair { key, messages: 0, first: NONE, second: NONE, last: NONE };
        let place = *self.places.entry(key).or_insert_with(|| self.pairs.insert(empty));
        self.pairs[place].messages += 1;
        place
    }

    /// The first of the messages behind the one that a queue pair sends, or [`NONE`].
    pub fn second(&self, pair: u32) -> u32 {
        self.pairs[pair].second
    }

    /// Messages of all queue pairs.
    pub fn messages(&self) -> usize {
        self.places.values().map(|pair| self.pairs[*pair].messages as usize).sum()
    }

    /// A message joins its queue pair, or is back after its transport has held it back. Returns whether it is the first.
    pub fn join(&mut self, pair: u32, record: u32, messages: &mut Pool<Message>) -> bool {
        let pair = &mut self.pairs[pair];
        if pair.first == NONE {
            pair.first = record;
        }
        if pair.first == record {
            return true;
        }
        messages[record].next = NONE;
        if pair.second == NONE {
            pair.second = record;
        } else {
            messages[pair.last].next = record;
        }
        pair.last = record;
        false
    }

    /// The last packet of the first message of a queue pair has started. Returns the message that follows, or [`NONE`].
    pub fn follow(&mut self, place: u32, messages: &Pool<Message>) -> u32 {
        let pair = &mut self.pairs[place];
        pair.messages -= 1;
        if pair.messages == 0 {
            self.places.remove(&pair.key);
            self.pairs.remove(place);
            return NONE;
        }
        pair.first = pair.second;
        if pair.first != NONE {
            pair.second = messages[pair.first].next;
        }
        pair.first
    }
}
