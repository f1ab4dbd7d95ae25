//! OTF2's collective operations as the program's.
//!
//! An event tells how many bytes its rank sent and received in all, not to and from whom. The v-variants are spread evenly
//! over the members: totals are exact, the blocks of one call are not. In gatherv and scatterv, where the root and the
//! others may so see different blocks, an empty one counts as one byte: whether there is a message, both must agree.

use std::sync::Arc;

use fairlane_core::program::{CollectiveKind, Volume};
use fairlane_core::units::Bytes;

use super::event::Collective;

/// The meaning of an operation of OTF2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A collective; which volume its events tell.
    Collective(CollectiveKind, Sizes),
    /// A communicator was made.
    Make,
    /// A communicator was freed.
    Free,
}

/// How to tell what a rank hands in from the bytes sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// No bytes.
    Nothing,
    /// The buffer is what is received.
    Received,
    /// The buffer is what is sent, or, in place at the root, an equal part of what the others sent.
    Sent,
    /// As [`Sizes::Sent`], of a v-variant: the root has one block for each member, the others have their own.
    SentBlocks,
    /// The block is an equal part of what is received.
    PartReceived,
    /// One block for each member of what is received.
    ReceivedBlocks,
    /// The block is an equal part of what is sent.
    PartSent,
    /// One block for each member of what is sent.
    SentEach,
    /// The block is what is received, or, in place at the root, an equal part of what is sent.
    ReceivedFromRoot,
    /// As [`Sizes::ReceivedFromRoot`], of a v-variant: the root has one block for each member, the others have their own.
    BlocksFromRoot,
}

/// The operations by OTF2's numbers, with MPI's names.
#[rustfmt::skip]
const OPERATIONS: [(&str, Operation); 19] = {
    use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatter, Scan, Scatter};
    use Operation::{Collective, Free, Make};
    [
        ("MPI_Barrier", Collective(Barrier, Sizes::Nothing)),
        ("MPI_Bcast", Collective(Bcast, Sizes::Received)),
        ("MPI_Gather", Collective(Gather, Sizes::Sent)),
        ("MPI_Gatherv", Collective(Gather, Sizes::SentBlocks)),
        ("MPI_Scatter", Collective(Scatter, Sizes::ReceivedFromRoot)),
        ("MPI_Scatterv", Collective(Scatter, Sizes::BlocksFromRoot)),
        ("MPI_Allgather", Collective(Allgather, Sizes::PartReceived)),
        ("MPI_Allgatherv", Collective(Allgather, Sizes::ReceivedBlocks)),
        ("MPI_Alltoall", Collective(Alltoall, Sizes::PartSent)),
        ("MPI_Alltoallv", Collective(Alltoall, Sizes::SentEach)),
        ("MPI_Alltoallw", Collective(Alltoall, Sizes::SentEach)),
        ("MPI_Allreduce", Collective(Allreduce, Sizes::Sent)),
        ("MPI_Reduce", Collective(Reduce, Sizes::Sent)),
        ("MPI_Reduce_scatter", Collective(ReduceScatter, Sizes::SentEach)),
        ("MPI_Scan", Collective(Scan, Sizes::Sent)),
        ("MPI_Exscan", Collective(Scan, Sizes::Sent)),
        ("MPI_Reduce_scatter_block", Collective(ReduceScatter, Sizes::PartSent)),
        ("MPI_Comm_create", Make),
        ("MPI_Comm_free", Free),
    ]
};

/// The names of the operations' non-blocking calls.
const NON_BLOCKING: [&str; 19] = [
    "MPI_Ibarrier",
    "MPI_Ibcast",
    "MPI_Igather",
    "MPI_Igatherv",
    "MPI_Iscatter",
    "MPI_Iscatterv",
    "MPI_Iallgather",
    "MPI_Iallgatherv",
    "MPI_Ialltoall",
    "MPI_Ialltoallv",
    "MPI_Ialltoallw",
    "MPI_Iallreduce",
    "MPI_Ireduce",
    "MPI_Ireduce_scatter",
    "MPI_Iscan",
    "MPI_Iexscan",
    "MPI_Ireduce_scatter_block",
    "MPI_Comm_idup",
    "MPI_Comm_free",
];

/// The name of an operation's non-blocking call.
pub fn non_blocking_name(number: u8) -> Option<&'static str> {
    NON_BLOCKING.get(usize::from(number)).copied()
}

/// The name and meaning of an operation; `None` for those of one-sided communication.
pub fn operation(number: u8) -> Option<(&'static str, Operation)> {
    OPERATIONS.get(usize::from(number)).copied()
}

/// The payload that a rank hands in to a collective on a communicator of `members` ranks.
pub fn volume(sizes: Sizes, event: &Collective, members: u64, at_root: bool) -> Volume {
    let same = |bytes: u64| Volume::Uniform(Bytes(bytes));
    let own = |bytes: u64| Volume::PerRank([bytes.max(1)].into());
    let at_least_one = |blocks: Arc<[u64]>| Volume::PerRank(blocks.iter().map(|&block| block.max(1)).collect());
    let of_others = |bytes: u64| bytes / members.saturating_sub(1).max(1);
    let (sent, received) = (event.sent, event.received);
    let gathered = if sent > 0 { sent } else { of_others(received) };
    let scattered = if received > 0 { received } else { of_others(sent) };
    match sizes {
        Sizes::Nothing => same(0),
        Sizes::Received => same(received),
        Sizes::Sent => same(gathered),
        Sizes::SentBlocks if at_root => at_least_one(spread(received, members)),
        Sizes::SentBlocks => own(sent),
        Sizes::PartReceived => same(received / members),
        Sizes::ReceivedBlocks => Volume::PerRank(spread(received, members)),
        Sizes::PartSent => same(sent / members),
        Sizes::SentEach => Volume::PerRank(spread(sent, members)),
        Sizes::ReceivedFromRoot => same(scattered),
        Sizes::BlocksFromRoot if at_root => at_least_one(spread(sent, members)),
        Sizes::BlocksFromRoot => own(received),
    }
}

/// Cuts bytes into parts that differ by at most one.
fn spread(bytes: u64, members: u64) -> Arc<[u64]> {
    let (part, rest) = (bytes / members, bytes % members);
    (0..members).map(|member| part + u64::from(member < rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sent: u64, received: u64) -> Collective {
        Collective { operation: 0, comm: 0, root: 0, sent, received }
    }

    #[test]
    fn volumes_follow_from_the_bytes_of_the_events() {
        let uniform = |bytes| Volume::Uniform(Bytes(bytes));
        assert_eq!(volume(Sizes::Received, &event(64, 16), 4, true), uniform(16));
        assert_eq!(volume(Sizes::PartSent, &event(64, 64), 4, false), uniform(16));
        assert_eq!(volume(Sizes::Sent, &event(0, 24), 4, true), uniform(8));
        assert_eq!(volume(Sizes::ReceivedBlocks, &event(9, 11), 4, false), Volume::PerRank([3, 3, 3, 2].into()));
        assert_eq!(volume(Sizes::SentBlocks, &event(5, 20), 4, true), Volume::PerRank([5; 4].into()));
        assert_eq!(volume(Sizes::SentBlocks, &event(5, 0), 4, false), Volume::PerRank([5].into()));
        assert_eq!(volume(Sizes::BlocksFromRoot, &event(0, 7), 4, false), Volume::PerRank([7].into()));
    }

    #[test]
    fn the_root_and_the_others_agree_that_every_block_is_a_message() {
        assert_eq!(volume(Sizes::SentBlocks, &event(0, 2), 4, true), Volume::PerRank([1; 4].into()));
        assert_eq!(volume(Sizes::SentBlocks, &event(0, 0), 4, false), Volume::PerRank([1].into()));
        assert_eq!(volume(Sizes::BlocksFromRoot, &event(3, 0), 4, true), Volume::PerRank([1; 4].into()));
        assert_eq!(volume(Sizes::BlocksFromRoot, &event(0, 0), 4, false), Volume::PerRank([1].into()));
    }
}
