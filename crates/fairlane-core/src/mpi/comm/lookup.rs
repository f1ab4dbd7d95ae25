//! The communicator that an operation names, and its ranks.

use super::{Communicator, WORLD_CONTEXT};
use crate::error::RunError;
use crate::ids::Rank;
use crate::mpi::collective::running::Scope;
use crate::mpi::messaging::Messaging;
use crate::program::{COMM_WORLD, CommHandle, Op, RequestId};

impl Messaging {
    #[cold]
    pub fn too_large(&self, rank: u32, op: &Op) -> Box<RunError> {
        self.misuse(rank, op, format!("a message may have at most {} bytes", self.largest_message.0))
    }

    /// The context of a communicator, and which rank of the job `peer` of the communicator is.
    #[inline]
    pub fn address(&self, rank: u32, op: &Op, comm: CommHandle, peer: Rank) -> Result<(u32, u32), Box<RunError>> {
        if comm != COMM_WORLD {
            return self.look_up(rank, op, comm, peer);
        }
        let size = self.ranks[rank as usize].size;
        if peer.0 < size { Ok((WORLD_CONTEXT, peer.0)) } else { Err(self.outside(rank, op, size as usize)) }
    }

    /// As [`Self::address`], in the communicator's list of members.
    #[inline(never)]
    fn look_up(&self, rank: u32, op: &Op, comm: CommHandle, peer: Rank) -> Result<(u32, u32), Box<RunError>> {
        let communicator = self.communicator(rank, op, comm)?;
        let member = communicator.member(peer).ok_or_else(|| self.outside(rank, op, communicator.members.len()))?;
        Ok((communicator.context, member))
    }

    pub fn communicator(&self, rank: u32, op: &Op, comm: CommHandle) -> Result<&Communicator, Box<RunError>> {
        let state = &self.ranks[rank as usize];
        if comm == COMM_WORLD {
            return Ok(&state.world);
        }
        let found = state.communicators().get(&comm);
        found.ok_or_else(|| self.misuse(rank, op, format!("no communicator {comm} at this rank")))
    }

    #[cold]
    pub fn in_use(&self, rank: u32, op: &Op, request: RequestId) -> Box<RunError> {
        self.misuse(rank, op, format!("request {request} is in use"))
    }

    #[cold]
    pub fn outside(&self, rank: u32, op: &Op, size: usize) -> Box<RunError> {
        self.misuse(rank, op, format!("the communicator has {size} ranks, numbered from 0"))
    }

    /// The communicator of an operation, or of its window, as its rank sees it.
    pub fn spanning(&self, rank: u32, op: &Op, scope: Scope) -> Result<&Communicator, Box<RunError>> {
        match scope {
            Scope::Communicator(comm) => self.communicator(rank, op, comm),
            Scope::Window(win) => self.window(rank, op, win).map(|window| &window.span),
        }
    }

    /// As [`Self::spanning`], to count with.
    pub fn span_mut(&mut self, rank: u32, scope: Scope) -> Option<&mut Communicator> {
        let state = self.rank(rank);
        match scope {
            Scope::Communicator(COMM_WORLD) => Some(&mut state.world),
            Scope::Communicator(comm) => state.needed().communicators.get_mut(&comm),
            Scope::Window(win) => Some(&mut state.more_mut()?.windows.get_mut(&win)?.span),
        }
    }
}
