//! Communicators.

mod class;
pub(in crate::mpi) mod context;
mod creation;
mod lookup;

use std::sync::Arc;

use crate::ids::Rank;
use crate::program::Neighbors;

/// The context of the communicator of all ranks of a job.
pub(in crate::mpi) const WORLD_CONTEXT: u32 = 0;
/// The context of the communicators of single ranks, which every rank has.
pub(in crate::mpi) const SELF_CONTEXT: u32 = 2;

/// A communicator as one rank sees it.
#[derive(Clone, Debug)]
pub(in crate::mpi) struct Communicator {
    /// The context of its point-to-point messages; that of its collectives is one more.
    pub context: u32,
    /// This rank in it.
    pub rank: u32,
    /// The members, as ranks of the job.
    pub members: Arc<[u32]>,
    /// Collectives that this rank has begun on it.
    pub collectives: u64,
    /// This rank's neighbours, if it has a topology.
    pub neighbors: Option<Arc<Neighbors>>,
}

impl Communicator {
    /// A communicator without a topology, on which no collective has been called.
    pub fn new(context: u32, rank: u32, members: Arc<[u32]>) -> Self {
        Self { context, rank, members, collectives: 0, neighbors: None }
    }

    /// The same ranks and topology in another context.
    pub fn copy(&self, context: u32) -> Self {
        Self { context, collectives: 0, ..self.clone() }
    }

    /// The rank of the job that `rank` of the communicator is.
    pub fn member(&self, rank: Rank) -> Option<u32> {
        self.members.get(rank.index()).copied()
    }
}
