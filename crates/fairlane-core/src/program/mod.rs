//! Programs: what each rank of a job does. One representation for workloads and recorded traces.
//!
//! A job's program is one [`Source`] per rank; a source yields one [`Op`] after another, and lends them, so that none is copied. [`script::Script`] holds
//! operations with loops in memory (workloads); [`open_loop`] makes them as they are needed; trace readers implement [`Source`] over a file and keep only their
//! position. A source is cloned when a simulation is forked, so it must be cheap to clone.

mod builder;
mod neighborhood;
mod one_sided;
pub mod open_loop;
pub mod script;

use std::sync::Arc;

pub use builder::{ProgramBuilder, ProgramError};
pub(crate) use neighborhood::Neighbors;
pub use neighborhood::{NeighborKind, Topology};
pub use one_sided::{RmaKind, WindowHandle};

use serde::{Deserialize, Serialize};

use crate::ids::Rank;
use crate::units::{Bytes, Picoseconds};

/// A request handle of a rank: any number the program chooses, free again once the request is completed. Until it is given
/// again, a wait for it asks for nothing, as for `MPI_REQUEST_NULL`.
pub type RequestId = u32;

/// A communicator handle of a rank: any number the program chooses, free again after [`Op::CommFree`].
pub type CommHandle = u32;

/// The communicator of all ranks of the job. Predefined.
pub const COMM_WORLD: CommHandle = 0;

/// The communicator of the rank alone. Predefined.
pub const COMM_SELF: CommHandle = 1;

/// A point-to-point message tag.
pub type Tag = i32;

/// How a send completes (MPI 4.1, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub enum SendMode {
    /// Eager up to the threshold, rendezvous above it.
    #[default]
    Standard,
    /// Always rendezvous: completes only once the receive has been matched.
    Synchronous,
}

/// What one rank hands to a collective, in bytes. Which fields are used depends on the [`CollectiveKind`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Volume {
    /// The same number for every member: the whole buffer of bcast, reduce, allreduce and scan; the block per rank
    /// of allgather, alltoall, gather, scatter and reduce_scatter.
    Uniform(Bytes),
    /// A number for every member, in order of rank in the communicator: blocks *sent to* each member in alltoallv,
    /// blocks *contributed by* each member in allgatherv, gatherv, and blocks *received by* each in scatterv and
    /// reduce_scatter. In gatherv and scatterv only the root must know every block; a member that does not gives its
    /// own block as the only entry.
    PerRank(Arc<[u64]>),
}

/// The collective operations. The v-variants are the same kind with [`Volume::PerRank`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectiveKind {
    /// MPI_Barrier.
    Barrier,
    /// MPI_Bcast.
    Bcast,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    Allreduce,
    /// MPI_Gather, MPI_Gatherv.
    Gather,
    /// MPI_Scatter, MPI_Scatterv.
    Scatter,
    /// MPI_Allgather, MPI_Allgatherv.
    Allgather,
    /// MPI_Alltoall, MPI_Alltoallv.
    Alltoall,
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
    ReduceScatter,
    /// MPI_Scan, MPI_Exscan.
    Scan,
}

impl CollectiveKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 10] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Alltoall,
        Self::ReduceScatter,
        Self::Scan,
    ];

    /// The kind's name in lower case, as in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
        }
    }
}

/// One operation of a rank. Ranks in operations are ranks of the communicator named beside them.
///
/// Every operation except [`Op::Compute`] and [`Op::Pause`] costs the CPU overheads of [`crate::mpi::Parameters`] and nothing
/// else by itself; a blocking operation lasts until what it waits for has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Work on the CPU for this long.
    Compute(Picoseconds),
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
    /// A collective operation over a communicator.
    Collective {
        /// Which.
        kind: CollectiveKind,
        /// Communicator.
        comm: CommHandle,
        /// Root rank where the kind has one, else rank 0.
        root: Rank,
        /// What this rank hands in.
        volume: Volume,
    },
    /// Starts a collective operation; the call takes no time (MPI_Ibarrier, MPI_Iallreduce, ...). The operation makes
    /// progress by itself and matches only other non-blocking calls, in the order of the calls on the communicator.
    Icollective {
        /// Which.
        kind: CollectiveKind,
        /// Communicator.
        comm: CommHandle,
        /// Root rank where the kind has one, else rank 0.
        root: Rank,
        /// What this rank hands in.
        volume: Volume,
        /// The handle by which it is waited for.
        request: RequestId,
    },
    /// A neighborhood collective over a communicator with a topology (MPI_Neighbor_allgather, MPI_Neighbor_alltoall and
    /// their v- and w-variants).
    Neighbor {
        /// Which.
        kind: NeighborKind,
        /// Communicator, made by [`Op::CommTopology`].
        comm: CommHandle,
        /// The block for each destination; see [`NeighborKind`].
        volume: Volume,
    },
    /// Starts a neighborhood collective, as [`Op::Icollective`] does a collective.
    Ineighbor {
        /// Which.
        kind: NeighborKind,
        /// Communicator, made by [`Op::CommTopology`].
        comm: CommHandle,
        /// The block for each destination; see [`NeighborKind`].
        volume: Volume,
        /// The handle by which it is waited for.
        request: RequestId,
    },
    /// MPI_Comm_dup: collective over `comm`.
    CommDup {
        /// The communicator to copy.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
    },
    /// MPI_Comm_split: collective over `comm`. Members of one colour form a communicator, ordered by key, then by
    /// rank in `comm`. No colour (MPI_UNDEFINED) means no new communicator for this rank.
    CommSplit {
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
    CommCreate {
        /// The parent communicator.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
        /// The members, as ranks of `comm`.
        members: Arc<[Rank]>,
    },
    /// MPI_Cart_create, MPI_Graph_create, MPI_Dist_graph_create_adjacent without reordering: collective over `comm`. A
    /// rank that the topology has no place for gets no new communicator.
    CommTopology {
        /// The parent communicator.
        comm: CommHandle,
        /// The new handle.
        new: CommHandle,
        /// Who exchanges with whom in neighborhood collectives.
        topology: Arc<Topology>,
    },
    /// A communicator whose members are known beforehand: takes no time and no message. Every member defines it with
    /// the same handle.
    CommDefine {
        /// The handle.
        new: CommHandle,
        /// The members in order, as ranks of the job.
        members: Arc<[Rank]>,
    },
    /// Gives a communicator handle up.
    CommFree(CommHandle),
    /// MPI_Win_create, MPI_Win_allocate and the like: collective over `comm`.
    WinCreate {
        /// The communicator whose ranks the window spans.
        comm: CommHandle,
        /// The new window's handle.
        win: WindowHandle,
    },
    /// MPI_Win_free: collective over the window.
    WinFree {
        /// The window.
        win: WindowHandle,
    },
    /// A one-sided operation: MPI_Put, MPI_Get, MPI_Accumulate, ...; with a request MPI_Rput and so on.
    Rma {
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
    WinFence {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_lock: blocks until the lock is granted.
    WinLock {
        /// The window.
        win: WindowHandle,
        /// Target rank, of the window's communicator.
        target: Rank,
        /// No other rank has a lock of the same target at the same time.
        exclusive: bool,
    },
    /// MPI_Win_unlock: blocks until the rank's operations at the target are complete, and gives the lock up.
    WinUnlock {
        /// The window.
        win: WindowHandle,
        /// Target rank.
        target: Rank,
    },
    /// MPI_Win_lock_all: a shared lock of every rank of the window.
    WinLockAll {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_unlock_all.
    WinUnlockAll {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_flush, MPI_Win_flush_local, or, without a target, the variants for all: blocks until the rank's operations
    /// are complete at the target.
    WinFlush {
        /// The window.
        win: WindowHandle,
        /// Target rank, or all.
        target: Option<Rank>,
    },
    /// MPI_Win_post: opens the window to these ranks.
    WinPost {
        /// The window.
        win: WindowHandle,
        /// The origins, ranks of the window's communicator.
        group: Arc<[Rank]>,
    },
    /// MPI_Win_start: blocks until each of these ranks has opened the window to this one.
    WinStart {
        /// The window.
        win: WindowHandle,
        /// The targets, ranks of the window's communicator.
        group: Arc<[Rank]>,
    },
    /// MPI_Win_complete: ends what MPI_Win_start began.
    WinComplete {
        /// The window.
        win: WindowHandle,
    },
    /// MPI_Win_wait: blocks until each rank that the window was opened to has called MPI_Win_complete.
    WinWait {
        /// The window.
        win: WindowHandle,
    },
    /// The timed part of the iteration begins: what it did before is not timed. Without it, all since the last mark is.
    BeginTiming,
    /// Counts one finished iteration.
    MarkProgress,
    /// The job works in bursts: MPI_Bcast of 4 bytes from rank 0, which says whether the burst has lasted this long there at its
    /// call. The first burst begins when the job does.
    EndBurst(Picoseconds),
    /// If the last [`Op::EndBurst`] said that the burst is over, sleeps for this long, after which the next one begins.
    Pause(Picoseconds),
}

const _: () = assert!(size_of::<Op>() == 32, "two operations in a cache line");

/// Yields a rank's operations, a stretch at a time.
pub trait Source: Send + Sync {
    /// The operations that come next, as many as are at hand; none when the rank has finished.
    ///
    /// # Errors
    /// A message that names file, record and call, when the source cannot go on.
    fn ahead(&mut self) -> Result<&[Op], String>;

    /// Goes past the first `count` of [`Source::ahead`].
    fn pass(&mut self, count: usize);

    /// The last operation that has been passed, until the source is asked for those ahead.
    fn current(&self) -> Option<&Op>;

    /// Passes the next operation and hands out a copy; `None` when the rank has finished.
    ///
    /// # Errors
    /// As [`Source::ahead`].
    fn next_op(&mut self) -> Result<Option<Op>, String> {
        let next = self.ahead()?.first().cloned();
        self.pass(usize::from(next.is_some()));
        Ok(next)
    }

    /// A copy that goes on from the same place.
    fn boxed_clone(&self) -> Box<dyn Source>;

    /// The script that it runs, if that is what it does: most do, and the engine keeps scripts in place.
    fn player(&self) -> Option<&script::Player> {
        None
    }
}

impl Clone for Box<dyn Source> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// A job's program: one source per rank, in order of rank.
#[derive(Clone)]
pub struct Program {
    /// The sources, one per rank.
    pub ranks: Vec<Box<dyn Source>>,
}
