//! The call that an algorithm carries out, and the phases that it answers with.

use super::blocks::Blocks;
use crate::ids::Rank;
use crate::program::{CollectiveKind, Volume};
use crate::units::Bytes;

/// A call of a collective as one rank sees it. Ranks are ranks of the communicator.
///
/// Every member must come to the same choice of algorithm from its own call. So in a gatherv or scatterv, where only
/// the root knows every block, the others give [`Volume::PerRank`] too, with their own block as its only entry.
#[derive(Clone, Debug)]
pub struct Call {
    /// The operation.
    pub kind: CollectiveKind,
    /// This rank.
    pub rank: Rank,
    /// Ranks in the communicator, at least one.
    pub size: u32,
    /// The root, below `size`; 0 where the kind has none.
    pub root: Rank,
    /// The payload of this rank; see [`Volume`].
    pub volume: Volume,
}

impl Call {
    /// Whether an algorithm can be asked about this call.
    ///
    /// # Errors
    /// Says in words which rank is outside the communicator, or what the list of blocks should be.
    pub fn check(&self) -> Result<(), String> {
        for (what, rank) in [("rank", self.rank), ("root", self.root)] {
            if rank.0 >= self.size {
                return Err(format!("{what} {rank} is not in a communicator of {} ranks", self.size));
            }
        }
        let Volume::PerRank(blocks) = &self.volume else { return Ok(()) };
        let (name, given, size) = (self.kind.name(), blocks.len(), self.size);
        match self.kind {
            CollectiveKind::Barrier
            | CollectiveKind::Bcast
            | CollectiveKind::Reduce
            | CollectiveKind::Allreduce
            | CollectiveKind::Scan => Err(format!("{name} takes one number of bytes, not a block for every rank")),
            CollectiveKind::Gather | CollectiveKind::Scatter if self.rank != self.root && given == 1 => Ok(()),
            _ if given == size as usize => Ok(()),
            _ => Err(format!("{name} over {size} ranks got {given} blocks")),
        }
    }

    /// This rank.
    #[must_use]
    pub const fn me(&self) -> u32 {
        self.rank.0
    }

    /// The rank `distance`, at most `size`, after this one, cyclically.
    #[must_use]
    pub const fn after(&self, distance: u32) -> u32 {
        (self.rank.0 + distance) % self.size
    }

    /// The rank `distance`, at most `size`, before this one, going round before the first.
    #[must_use]
    pub const fn before(&self, distance: u32) -> u32 {
        (self.rank.0 + self.size - distance) % self.size
    }

    /// How far this rank is after the root.
    #[must_use]
    pub const fn position(&self) -> u32 {
        self.before(self.root.0)
    }

    /// The whole buffer of a kind that has one.
    #[must_use]
    pub fn buffer(&self) -> u64 {
        match &self.volume {
            Volume::Uniform(bytes) => bytes.0,
            Volume::PerRank(blocks) => blocks.iter().sum(),
        }
    }

    /// The blocks of the ranks, of a kind that has them.
    pub(super) fn blocks(&self) -> Blocks<'_> {
        match &self.volume {
            Volume::Uniform(bytes) => Blocks::Equal { each: bytes.0, parts: self.size },
            Volume::PerRank(blocks) => Blocks::Listed(blocks),
        }
    }

    /// The block of a rank.
    #[must_use]
    pub fn block(&self, rank: u32) -> u64 {
        self.blocks().of(rank)
    }

    /// This rank's own block, also where it is the only one that is known here.
    #[must_use]
    pub fn own_block(&self) -> u64 {
        match &self.volume {
            Volume::PerRank(blocks) if blocks.len() == 1 => blocks[0],
            _ => self.blocks().of(self.me()),
        }
    }

    /// Whether all blocks have the same size.
    #[must_use]
    pub const fn is_uniform(&self) -> bool {
        matches!(self.volume, Volume::Uniform(_))
    }
}

/// One phase of a rank's schedule. Peers are ranks of the communicator; a message to oneself never appears.
///
/// Two messages from the same sender to the same receiver in one schedule match in the order of phases, and within
/// a phase in the order of the lists. A zero-byte transfer is a real message where the algorithm synchronises by it
/// (barrier) or the receiver cannot know that it is empty (alltoallv); otherwise it is left out on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Sources, in the order in which the receives are posted.
    pub receives: Vec<Rank>,
    /// Destinations and sizes, in the order in which the sends are started.
    pub sends: Vec<(Rank, Bytes)>,
    /// Bytes that this rank combines (reduction operator) after the phase's messages have come.
    pub reduced: Bytes,
}

impl Phase {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.receives.is_empty() && self.sends.is_empty() && self.reduced == Bytes::ZERO
    }

    pub(in crate::mpi) fn clear(&mut self) {
        self.receives.clear();
        self.sends.clear();
        self.reduced = Bytes::ZERO;
    }

    /// Sends `bytes`, or nothing at all if there are none.
    pub fn send(&mut self, to: u32, bytes: u64) {
        if bytes > 0 {
            self.send_even_empty(to, bytes);
        }
    }

    /// Receives `bytes`, or nothing at all if there are none.
    pub fn receive(&mut self, from: u32, bytes: u64) {
        if bytes > 0 {
            self.receive_even_empty(from);
        }
    }

    /// Receives `bytes` and combines them with what is here.
    pub fn combine(&mut self, from: u32, bytes: u64) {
        self.receive(from, bytes);
        self.reduced.0 += bytes;
    }

    /// Sends `bytes`, a message of zero bytes if there are none.
    pub fn send_even_empty(&mut self, to: u32, bytes: u64) {
        self.sends.push((Rank(to), Bytes(bytes)));
    }

    /// Receives a message of any size, zero bytes too.
    pub fn receive_even_empty(&mut self, from: u32) {
        self.receives.push(Rank(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_calls_are_refused_in_words() {
        let call = |kind, rank, root, volume| Call { kind, rank: Rank(rank), size: 4, root: Rank(root), volume };
        let listed = |blocks: &[u64]| Volume::PerRank(blocks.into());
        let uniform = Volume::Uniform(Bytes(8));
        let refused = |call: Call| call.check().unwrap_err();
        assert!(refused(call(CollectiveKind::Bcast, 4, 0, uniform.clone())).contains("rank 4"));
        assert!(refused(call(CollectiveKind::Bcast, 0, 5, uniform.clone())).contains("root 5"));
        assert!(refused(call(CollectiveKind::Scan, 0, 0, listed(&[1; 4]))).contains("scan"));
        assert!(refused(call(CollectiveKind::Alltoall, 0, 0, listed(&[1; 3]))).contains("3 blocks"));
        assert!(refused(call(CollectiveKind::Gather, 1, 1, listed(&[1]))).contains("1 blocks"));
        assert_eq!(call(CollectiveKind::Gather, 0, 1, listed(&[1])).check(), Ok(()));
        assert_eq!(call(CollectiveKind::Allgather, 3, 0, listed(&[1; 4])).check(), Ok(()));
        assert_eq!(call(CollectiveKind::Bcast, 3, 3, uniform).check(), Ok(()));
    }
}
