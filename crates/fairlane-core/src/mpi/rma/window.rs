//! Windows: memory of each rank of a communicator that the others read and write.

use std::sync::Arc;

use crate::error::RunError;
use crate::ids::Rank;
use crate::mpi::comm::Communicator;
use crate::mpi::messaging::Messaging;
use crate::program::{Op, WindowHandle};

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

impl Messaging {
    pub fn window(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<&Window, Box<RunError>> {
        let found = self.ranks[rank as usize].more().and_then(|more| more.windows.get(&win));
        found.ok_or_else(|| self.no_window(rank, op, win))
    }

    pub fn window_mut(&mut self, rank: u32, op: &Op, win: WindowHandle) -> Result<&mut Window, Box<RunError>> {
        self.window(rank, op, win)?;
        let found = self.rank(rank).more_mut().and_then(|more| more.windows.get_mut(&win));
        Ok(found.expect("invariant: it has just been found"))
    }

    #[cold]
    fn no_window(&self, rank: u32, op: &Op, win: WindowHandle) -> Box<RunError> {
        let mut known: Vec<u32> =
            self.ranks[rank as usize].more().into_iter().flat_map(|more| more.windows.keys().copied()).collect();
        known.sort_unstable();
        let known = if known.is_empty() { "none".to_owned() } else { format!("{known:?}") };
        self.misuse(rank, op, format!("no window {win} at this rank; it has {known}"))
    }

    pub fn window_size(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<u32, Box<RunError>> {
        let members = self.window(rank, op, win)?.span.members.len();
        Ok(u32::try_from(members).expect("invariant: 32-bit ranks"))
    }

    /// A rank of the window that an operation names.
    pub fn target(&self, rank: u32, op: &Op, win: WindowHandle, target: Rank) -> Result<u32, Box<RunError>> {
        let size = self.window_size(rank, op, win)?;
        if target.0 < size {
            return Ok(target.0);
        }
        Err(self.misuse(rank, op, format!("the window has {size} ranks, numbered from 0")))
    }
}
