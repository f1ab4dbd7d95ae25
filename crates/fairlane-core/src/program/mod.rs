//! Programs: what each rank of a job does. One representation for workloads and recorded traces.
//!
//! A job's program is one [`Source`] per rank; a source yields one [`Op`] after another, and lends them, so that none
//! is copied. [`script::Script`] holds operations with loops in memory (workloads); [`open_loop`] makes them as they
//! are needed; trace readers implement [`Source`] over a file and keep only their position. A source is cloned when a
//! simulation is forked, so it must be cheap to clone.

mod builder;
pub mod graph;
mod neighborhood;
mod one_sided;
mod op;
pub mod open_loop;
pub mod script;
pub mod stepped;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use builder::{ProgramBuilder, ProgramError};
pub(crate) use neighborhood::Neighbors;
pub use neighborhood::{NeighborKind, Topology};
pub use one_sided::{RmaKind, WindowHandle};
pub use op::{Collective, Comm, GraphOp, Op, P2p, Rma};

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Instant};

/// A request handle of a rank: any number the program chooses, free again once the request is completed. Until it is given
/// again, a wait for it asks for nothing, as for `MPI_REQUEST_NULL`.
pub type RequestId = u32;

/// A communicator handle of a rank: any number the program chooses, free again after [`Comm::Free`].
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
    /// Always eager, as into the buffers that a library has at the receiver: whoever receives only after sending does not wait for
    /// ever.
    Eager,
}

/// Payload of one rank in a collective, in bytes. Which fields are used depends on the [`CollectiveKind`].
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

    /// These requests, for which it has asked by [`GraphOp::Report`], are complete and free again, in the order of their completion;
    /// the rank goes on at `now`. Returns whether somebody outside of the simulation waits for one of them.
    fn completed(&mut self, requests: &[RequestId], now: Instant) -> bool {
        let _ = (requests, now);
        false
    }

    /// In words, what it waits for at [`GraphOp::WaitReport`].
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// The names that it gives to communicators.
    fn communicators(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// A copy that goes on from the same place.
    fn boxed_clone(&self) -> Box<dyn Source>;

    /// The messages that it is given from outside, if that is what it does.
    fn stepped(&mut self) -> Option<&mut stepped::Stepped> {
        None
    }

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

impl Program {
    /// The names that its ranks give to communicators, sorted.
    #[must_use]
    pub fn communicators(&self) -> BTreeSet<Arc<str>> {
        self.ranks.iter().flat_map(|source| source.communicators()).collect()
    }
}

/// The names that operations give to communicators.
fn names_in(ops: &[Op]) -> Vec<Arc<str>> {
    let name = |op: &Op| if let Op::Comm(Comm::SetName { name, .. }) = op { Some(Arc::clone(name)) } else { None };
    ops.iter().filter_map(name).collect()
}
