//! The numbers of messages between one rank and each of its peers.

use crate::kernel::prefetch_at;

/// By context and peer: a hash table with linear probing, of which a look-up mostly reads one cache line.
#[derive(Clone, Debug, Default)]
pub(in crate::mpi) struct Numbers {
    /// A power of two, of which at most three quarters are in use; or none.
    slots: Vec<Peer>,
    used: usize,
}

/// The messages between a rank and one other on one context: numbers modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) struct Peer {
    key: u64,
    /// The number of the next message that is sent to it.
    pub sent: u32,
    /// The number of the next message that is due from it.
    pub due: u32,
}

/// No context and rank.
const FREE: Peer = Peer { key: u64::MAX, sent: 0, due: 0 };

impl Peer {
    /// The message of this number has come: whether it is the one that is due. Then the next is.
    #[inline]
    pub fn takes(&mut self, number: u32) -> bool {
        let next = self.due == number;
        self.due = self.due.wrapping_add(u32::from(next));
        next
    }
}

impl Numbers {
    /// The numbers of messages to and from `rank` on `context`.
    #[inline]
    pub fn of(&mut self, context: u32, rank: u32) -> &mut Peer {
        let key = key(context, rank);
        let place = self.find(key);
        match self.slots.get(place) {
            Some(peer) if peer.key == key => &mut self.slots[place],
            _ => self.add(key),
        }
    }

    /// Where a key is, or would be.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let last = self.slots.len().wrapping_sub(1);
        let mut place = self.hash(key);
        while self.slots.get(place).is_some_and(|peer| peer.key != key && peer.key != FREE.key) {
            place = (place + 1) & last;
        }
        place
    }

    /// The first place where a key may be: the high bits of a product depend on all bits of the key.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "below the number of slots")]
    fn hash(&self, key: u64) -> usize {
        let product = u128::from(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * self.slots.len() as u128;
        (product >> 64) as usize
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, key: u64) -> &mut Peer {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            let larger = vec![FREE; (2 * self.slots.len()).max(16)];
            for peer in std::mem::replace(&mut self.slots, larger).into_iter().filter(|peer| peer.key != FREE.key) {
                let place = self.find(peer.key);
                self.slots[place] = peer;
            }
        }
        self.used += 1;
        let place = self.find(key);
        self.slots[place].key = key;
        &mut self.slots[place]
    }

    /// The numbers of a peer will be needed soon.
    #[inline]
    pub fn prefetch(&self, context: u32, rank: u32) {
        prefetch_at(&self.slots, self.hash(key(context, rank)));
    }
}

#[inline]
fn key(context: u32, rank: u32) -> u64 {
    u64::from(context) << 32 | u64::from(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_keeps_its_numbers_while_the_table_grows() {
        let mut numbers = Numbers::default();
        for round in 0..3 {
            for (context, rank) in (0..40).map(|of| (of % 3, of * 7)) {
                let peer = numbers.of(context, rank);
                assert_eq!((peer.sent, peer.due), (round, 2 * round), "{context}, {rank}");
                peer.sent += 1;
                assert!(peer.takes(2 * round) && !peer.takes(2 * round) && peer.takes(2 * round + 1));
            }
        }
        assert_eq!(numbers.used, 40);
    }
}
