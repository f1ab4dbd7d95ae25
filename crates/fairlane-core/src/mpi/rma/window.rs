//! Windows: memory of each rank of a communicator that the others read and write.

use std::sync::Arc;

use crate::ids::Rank;
use crate::mpi::comm::Communicator;

/// A window as one rank sees it. Targets are ranks of the window.
#[derive(Clone)]
pub(in crate::mpi) struct Window {
    /// Its ranks, with a context of its own.
    pub span: Communicator,
    /// The rank's operations that no call has waited for yet: target and request.
    pub pending: Vec<(u32, u32)>,
    /// Targets whose lock the rank has or has asked for.
    pub locked: Vec<u32>,
    /// The targets of MPI_Win_start.
    pub started: Option<Arc<[Rank]>>,
    /// The origins of MPI_Win_post.
    pub posted: Option<Arc<[Rank]>>,
}

impl Window {
    pub fn new(span: Communicator) -> Self {
        Self { span, pending: Vec::new(), locked: Vec::new(), started: None, posted: None }
    }
}
