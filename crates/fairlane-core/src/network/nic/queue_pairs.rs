//! Queue pairs: connections whose messages an adapter sends one after another. Only the next packet of the first message that has
//! not been sent completely is in the queue of its lane; later messages follow, in order. Not used where all messages of a
//! lane take turns ([`Turns::Messages`](crate::network::Turns)).
//!
//! `InfiniBand` starts the work requests of a send queue in the order in which they were posted (Architecture Specification,
//! volume 1, section 10.8.3), and an adapter arbitrates between its send queues.

use rustc_hash::FxHashMap;

use crate::ids::{JobId, Rank, VirtualLane};
use crate::kernel::Pool;
use crate::network::index::{PacketIdx, PairIdx, PortIdx};
use crate::network::packet::{Injection, Packet};
use crate::network::parameters::Turns;

/// Identity of a queue pair: adapter, job, virtual lane, and the ranks at both ends. With [`Turns::Fifo`] an adapter has one
/// for each lane, with [`Turns::AdapterFifo`] only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    nic: PortIdx,
    ranks: [Rank; 2],
    job: JobId,
    vl: VirtualLane,
}

/// A queue pair with messages that have not been sent completely.
#[derive(Clone, Copy, Debug)]
struct QueuePair {
    key: Key,
    /// How many messages it has, among them those that will be handed over later.
    messages: u32,
    /// The packet that is sent next, of the message whose packets are sent, if there is one.
    first: PacketIdx,
    /// The first packets of the messages behind it: a list.
    second: PacketIdx,
    last: PacketIdx,
}

/// The queue pairs of a shard's NICs that have messages to send.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct QueuePairs {
    places: FxHashMap<Key, PairIdx>,
    pairs: Pool<QueuePair, PairIdx>,
}

impl QueuePairs {
    /// A message has been made. Returns its queue pair.
    pub fn add(&mut self, turns: Turns, nic: PortIdx, injection: &Injection) -> PairIdx {
        let &Injection { job, vl, sender, receiver, .. } = injection;
        let key = match turns {
            Turns::Messages => return PairIdx::NONE,
            Turns::QueuePairs => Key { nic, ranks: [sender, receiver], job, vl },
            Turns::Fifo => Key { nic, ranks: [Rank(0); 2], job: JobId(0), vl },
            Turns::AdapterFifo => Key { nic, ranks: [Rank(0); 2], job: JobId(0), vl: VirtualLane(0) },
        };
        let none = PacketIdx::NONE;
        let empty = QueuePair { key, messages: 0, first: none, second: none, last: none };
        let place = *self.places.entry(key).or_insert_with(|| self.pairs.insert(empty));
        self.pairs[place].messages += 1;
        place
    }

    /// The first packet of the messages behind the one that a queue pair sends.
    pub fn second(&self, pair: PairIdx) -> PacketIdx {
        self.pairs[pair].second
    }

    /// Messages of all queue pairs.
    pub fn messages(&self) -> usize {
        self.places.values().map(|pair| self.pairs[*pair].messages as usize).sum()
    }

    /// Adds a message, given by its first packet, to its queue pair, or a packet that its transport has held back. Returns whether it is
    /// what the queue pair sends next.
    pub fn join(&mut self, pair: PairIdx, packet: PacketIdx, packets: &mut Pool<Packet, PacketIdx>) -> bool {
        let pair = &mut self.pairs[pair];
        if pair.first.is_none() {
            pair.first = packet;
        }
        if pair.first == packet {
            return true;
        }
        packets[packet].next = PacketIdx::NONE;
        if pair.second.is_none() {
            pair.second = packet;
        } else {
            packets[pair.last].next = packet;
        }
        pair.last = packet;
        false
    }

    /// The packet that a queue pair sends starts, and `next` follows in its message; none after the last. Returns the packet that the queue
    /// pair sends next, if there is one.
    pub fn proceed(&mut self, index: PairIdx, next: PacketIdx, packets: &Pool<Packet, PacketIdx>) -> PacketIdx {
        let pair = &mut self.pairs[index];
        pair.first = next;
        if next.is_some() {
            return next;
        }
        pair.messages -= 1;
        if pair.messages == 0 {
            self.places.remove(&pair.key);
            self.pairs.take(index);
            return PacketIdx::NONE;
        }
        pair.first = pair.second;
        if pair.first.is_some() {
            pair.second = packets[pair.first].next;
        }
        pair.first
    }
}
