//! The operations of ranks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    CollectiveKind, CommHandle, NeighborKind, RequestId, RmaKind, SendMode, Tag, Topology, Volume, WindowHandle,
};
use crate::ids::Rank;
use crate::units::{Bytes, Picoseconds};

/// One operation of a rank. Ranks in operations are ranks of the communicator named beside them.
///
/// Every operation except [`Op::Compute`] and [`Op::Pause`] costs the CPU overheads of [`crate::mpi::Parameters`] and nothing
/// else by itself; a blocking operation lasts until what it waits for has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Work on the CPU for this long.
    Compute(Picoseconds),
    /// A message between two ranks, or a wait.
    P2p(P2p),
    /// A collective.
    Collective(Collective),
    /// A communicator is made or given up.
    Comm(Comm),
    /// One-sided communication.
    Rma(Rma),
    /// The timed part of the iteration begins: what it did before is not timed. Without it, all since the last mark is.
    BeginTiming,
    /// Counts one finished iteration.
    MarkProgress,
    /// The job works in bursts: MPI_Bcast of 4 bytes from rank 0, which says whether the burst has lasted this long there at its
    /// call. The first burst begins when the job does.
    EndBurst(Picoseconds),
    /// If the last [`Op::EndBurst`] said that the burst is over, sleeps for this long, after which the next one begins.
    Pause(Picoseconds),
    /// Work on a device, a delay, or a completion that the source is told of.
    Graph(GraphOp),
}

/// Point-to-point communication, and waits for requests of every kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum P2p {
    /// A blocking send.
    Send {
        /// Destination rank.
        to: Rank,
        /// Payload.
        bytes: Bytes,
        /// Tag.
        tag: Tag,
        /// Communicator.
        comm: CommHandle,
        /// Completion rule.
        mode: SendMode,
    },
    /// A non-blocking send; a started persistent send is the same.
    Isend {
        /// Destination rank.
        to: Rank,
        /// Payload.
        bytes: Bytes,
        /// Tag.
        tag: Tag,
        /// Communicator.
        comm: CommHandle,
        /// Completion rule.
        mode: SendMode,
        /// The handle by which it is waited for.
        request: RequestId,
    },
    /// A blocking receive.
    Recv {
        /// Source rank, or any.
        from: Option<Rank>,
        /// Tag, or any.
        tag: Option<Tag>,
        /// Communicator.
        comm: CommHandle,
    },
    /// A non-blocking receive; a started persistent receive is the same.
    Irecv {
        /// Source rank, or any.
        from: Option<Rank>,
        /// Tag, or any.
        tag: Option<Tag>,
        /// Communicator.
        comm: CommHandle,
        /// The handle by which it is waited for.
        request: RequestId,
    },
    /// Blocks until a message that matches can be received; receives nothing (MPI_Probe).
    Probe {
        /// Source rank, or any.
        from: Option<Rank>,
        /// Tag, or any.
        tag: Option<Tag>,
        /// Communicator.
        comm: CommHandle,
    },
    /// Blocks until this request is complete, and frees it.
    Wait(RequestId),
    /// Blocks until all these requests are complete, and frees them.
    WaitAll(Arc<[RequestId]>),
    /// Blocks until at least one of these requests is complete, and frees the first complete one in the list's order.
    WaitAny(Arc<[RequestId]>),
    /// Blocks until at least one of these requests is complete, and frees all that are.
    WaitSome(Arc<[RequestId]>),
    /// Hands a message to the NIC at this instant, at no cost to the CPU and whatever its size: the load of a traffic generator.
    /// Nobody receives it; it is over when it has been delivered.
    Datagram {
        /// Destination rank.
        to: Rank,
        /// Payload.
        bytes: Bytes,
    },
    /// Gives a request up: it completes by itself and nobody waits for it (MPI_Request_free).
    RequestFree(RequestId),
}

/// Operations of dependency graphs ([`super::graph`]) and of messages that are given from outside ([`super::stepped`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GraphOp {
    /// Starts work of this long on a device beside the CPU, as on a stream of a GPU: the call takes no time, and the request is
    /// complete when the work is.
    Offload(Picoseconds, RequestId),
    /// The same without work: the request is complete after this long, whatever the rank does.
    Delay(Picoseconds, RequestId),
    /// The source wants to know when this request is complete: [`GraphOp::WaitReport`] ends it. Takes no time.
    Report(RequestId),
    /// Blocks until at least one of the requests to be reported is complete, frees all that are, and tells the source which
    /// ([`super::Source::completed`]). As MPI_Waitsome, without a list.
    WaitReport,
}

/// Collective operations over a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Collective {
    /// A collective operation over a communicator.
    Blocking {
        /// Which.
        kind: CollectiveKind,
        /// Communicator.
        comm: CommHandle,
        /// Root rank where the kind has one, else rank 0.
        root: Rank,
        /// The payload of this rank.
        volume: Volume,
    },
    /// Starts a collective operation; the call takes no time (MPI_Ibarrier, MPI_Iallreduce, ...). The operation makes
    /// progress by itself and matches only other non-blocking calls, in the order of the calls on the communicator.
    Nonblocking {
        /// Which.
        kind: CollectiveKind,
        /// Communicator.
        comm: CommHandle,
        /// Root rank where the kind has one, else rank 0.
        root: Rank,
        /// The payload of this rank.
        volume: Volume,
        /// The handle by which it is waited for.
        request: RequestId,
    },
    /// A neighborhood collective over a communicator with a topology (MPI_Neighbor_allgather, MPI_Neighbor_alltoall and
    /// their v- and w-variants).
    Neighbor {
        /// Which.
        kind: NeighborKind,
        /// Communicator, made by [`Comm::Topology`].
        comm: CommHandle,
        /// The block for each destination; see [`NeighborKind`].
        volume: Volume,
    },
    /// Starts a neighborhood collective, as [`Collective::Nonblocking`] does a collective.
    NonblockingNeighbor {
        /// Which.
        kind: NeighborKind,
        /// Communicator, made by [`Comm::Topology`].
        comm: CommHandle,
        /// The block for each destination; see [`NeighborKind`].
        volume: Volume,
        /// The handle by which it is waited for.
        request: RequestId,
    },
}

/// Communicators are made and given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comm {
    /// MPI_Comm_dup: collective over `comm`.
    Dup {
        /// The communicator to copy.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
    },
    /// MPI_Comm_split: collective over `comm`. Members of one colour form a communicator, ordered by key, then by
    /// rank in `comm`. No colour (MPI_UNDEFINED) means no new communicator for this rank.
    Split {
        /// The communicator to split.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
        /// The colour.
        color: Option<i32>,
        /// The key.
        key: i32,
    },
    /// MPI_Comm_create: collective over `comm`; `members` stand in the order of the new communicator.
    /// A rank that is no member gets no new communicator.
    Create {
        /// The parent communicator.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
        /// The members, as ranks of `comm`.
        members: Arc<[Rank]>,
    },
    /// MPI_Cart_create, MPI_Graph_create, MPI_Dist_graph_create_adjacent without reordering: collective over `comm`. A
    /// rank that the topology has no place for gets no new communicator.
    Topology {
        /// The parent communicator.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
        /// Who exchanges with whom in neighborhood collectives.
        topology: Arc<Topology>,
    },
    /// A communicator whose members are known beforehand: takes no time and no message. Every member defines it with
    /// the same handle.
    Define {
        /// The handle.
        new: CommHandle,
        /// The members in order, as ranks of the job.
        members: Arc<[Rank]>,
    },
    /// MPI_Comm_set_name: takes no time. Classes of traffic are named by it.
    SetName {
        /// The communicator.
        comm: CommHandle,
        /// Its name.
        name: Arc<str>,
    },
    /// Gives a communicator handle up.
    Free(CommHandle),
}

/// One-sided communication: windows, the operations on them, and their synchronization (MPI 4.1, chapter 12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rma {
    /// MPI_Win_create, MPI_Win_allocate and the like: collective over `comm`.
    Create {
        /// The communicator whose ranks the window spans.
        comm: CommHandle,
        /// The new window's handle.
        win: WindowHandle,
    },
    /// MPI_Win_free: collective over the window.
    Free {
        /// The window.
        win: WindowHandle,
    },
    /// A one-sided operation: MPI_Put, MPI_Get, MPI_Accumulate, ...; with a request MPI_Rput and so on.
    Access {
        /// Which.
        kind: RmaKind,
        /// The window.
        win: WindowHandle,
        /// Target rank, of the window's communicator.
        target: Rank,
        /// Payload; what comes back of operations that return something.
        bytes: Bytes,
        /// The handle by which it is waited for, if it has one.
        request: Option<RequestId>,
    },
    /// MPI_Win_fence: collective over the window.
    Fence {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_lock: blocks until the lock is granted.
    Lock {
        /// The window.
        win: WindowHandle,
        /// Target rank, of the window's communicator.
        target: Rank,
        /// No other rank has a lock of the same target at the same time.
        exclusive: bool,
    },
    /// MPI_Win_unlock: blocks until the rank's operations at the target are complete, and gives the lock up.
    Unlock {
        /// The window.
        win: WindowHandle,
        /// Target rank.
        target: Rank,
    },
    /// MPI_Win_lock_all: a shared lock of every rank of the window.
    LockAll {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_unlock_all.
    UnlockAll {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_flush, MPI_Win_flush_local, or, without a target, the variants for all: blocks until the rank's operations
    /// are complete at the target.
    Flush {
        /// The window.
        win: WindowHandle,
        /// Target rank, or all.
        target: Option<Rank>,
    },
    /// MPI_Win_post: opens the window to these ranks.
    Post {
        /// The window.
        win: WindowHandle,
        /// The origins, ranks of the window's communicator.
        group: Arc<[Rank]>,
    },
    /// MPI_Win_start: blocks until each of these ranks has opened the window to this one.
    Start {
        /// The window.
        win: WindowHandle,
        /// The targets, ranks of the window's communicator.
        group: Arc<[Rank]>,
    },
    /// MPI_Win_complete: ends what MPI_Win_start began.
    Complete {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_wait: blocks until each rank that the window was opened to has called MPI_Win_complete.
    Wait {
        /// The window.
        win: WindowHandle,
    },
}

const _: () = assert!(size_of::<Op>() == 40, "three operations in two cache lines");
