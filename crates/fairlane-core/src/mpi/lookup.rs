//! What operations name: communicators, windows and their ranks.

use super::communicator::{Communicator, WORLD_CONTEXT};
use super::messaging::Messaging;
use super::running::Scope;
use super::window::Window;
use crate::error::RunError;
use crate::ids::Rank;
use crate::program::{COMM_WORLD, CommHandle, Op, RequestId, WindowHandle};

impl Messaging {
    #[cold]
    pub(super) fn too_large(&self, rank: u32, op: &Op) -> Box<RunError> {
        self.misuse(rank, op, format!("a message may have at most {} bytes", self.largest_message.0))
    }

    /// The context of a communicator, and which rank of the job `peer` of the communicator is.
    #[inline]
    pub(super) fn address(
        &self,
        rank: u32,
        op: &Op,
        comm: CommHandle,
        peer: Rank,
    ) -> Result<(u32, u32), Box<RunError>> {
        if comm == COMM_WORLD && peer.0 < self.ranks[rank as usize].size {
            return Ok((WORLD_CONTEXT, peer.0));
        }
        self.look_up(rank, op, comm, peer)
    }

    /// As [`Self::address`], in the communicator's list of members.
    #[inline(never)]
    fn look_up(&self, rank: u32, op: &Op, comm: CommHandle, peer: Rank) -> Result<(u32, u32), Box<RunError>> {
        let communicator = self.communicator(rank, op, comm)?;
        let member = communicator.member(peer).ok_or_else(|| {
            let size = communicator.members.len();
            self.misuse(rank, op, format!("the communicator has {size} ranks, numbered from 0"))
        })?;
        Ok((communicator.context, member))
    }

    pub(super) fn communicator(&self, rank: u32, op: &Op, comm: CommHandle) -> Result<&Communicator, Box<RunError>> {
        let state = &self.ranks[rank as usize];
        if comm == COMM_WORLD {
            return Ok(&state.world);
        }
        let found = state.communicators().get(&comm);
        found.ok_or_else(|| self.misuse(rank, op, format!("no communicator {comm} at this rank")))
    }

    #[cold]
    pub(super) fn in_use(&self, rank: u32, op: &Op, request: RequestId) -> Box<RunError> {
        self.misuse(rank, op, format!("request {request} is in use"))
    }

    #[cold]
    pub(super) fn outside(&self, rank: u32, op: &Op, size: usize) -> Box<RunError> {
        self.misuse(rank, op, format!("the communicator has {size} ranks, numbered from 0"))
    }

    /// What an operation is over, as its rank sees it.
    pub(super) fn spanning(&self, rank: u32, op: &Op, scope: Scope) -> Result<&Communicator, Box<RunError>> {
        match scope {
            Scope::Communicator(comm) => self.communicator(rank, op, comm),
            Scope::Window(win) => self.window(rank, op, win).map(|window| &window.span),
        }
    }

    /// What an operation is over, to count with.
    pub(super) fn span_mut(&mut self, rank: u32, scope: Scope) -> Option<&mut Communicator> {
        let state = self.rank(rank);
        match scope {
            Scope::Communicator(crate::program::COMM_WORLD) => Some(&mut state.world),
            Scope::Communicator(comm) => state.needed().communicators.get_mut(&comm),
            Scope::Window(win) => Some(&mut state.more_mut()?.windows.get_mut(&win)?.span),
        }
    }

    pub(super) fn window(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<&Window, Box<RunError>> {
        let found = self.ranks[rank as usize].more().and_then(|more| more.windows.get(&win));
        found.ok_or_else(|| self.no_window(rank, op, win))
    }

    pub(super) fn window_mut(&mut self, rank: u32, op: &Op, win: WindowHandle) -> Result<&mut Window, Box<RunError>> {
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

    pub(super) fn window_size(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<u32, Box<RunError>> {
        let members = self.window(rank, op, win)?.span.members.len();
        Ok(u32::try_from(members).expect("invariant: 32-bit ranks"))
    }

    /// A rank of the window that an operation names.
    pub(super) fn target(&self, rank: u32, op: &Op, win: WindowHandle, target: Rank) -> Result<u32, Box<RunError>> {
        let size = self.window_size(rank, op, win)?;
        if target.0 < size {
            return Ok(target.0);
        }
        Err(self.misuse(rank, op, format!("the window has {size} ranks, numbered from 0")))
    }
}
