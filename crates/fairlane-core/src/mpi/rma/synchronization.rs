//! Synchronisation of windows: creation, fences, post-start-complete-wait, locks.

use std::sync::Arc;

use super::window::Window;
use crate::error::RunError;
use crate::ids::Rank;
use crate::mpi::collective::algorithms::Phase;
use crate::mpi::collective::running::{Effect, PhaseSource, Running, Scope};
use crate::mpi::comm::Communicator;
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::rank::NEVER;
use crate::program::{CollectiveKind, CommHandle, Op, Rma, Tag, Volume, WindowHandle};
use crate::units::Bytes;

/// Address and size of a rank's part of a new window, which it sends to the others.
const DESCRIPTION: Bytes = Bytes(16);
/// The tags of MPI_Win_post's and MPI_Win_complete's messages.
const POST: Tag = 0;
const COMPLETE: Tag = 1;

impl Messaging {
    /// Operations on windows, and those that make and free them.
    pub fn execute_one_sided(&mut self, rank: u32, op: &Op, call: &Rma, now: u64) -> Over {
        match *call {
            Rma::Create { comm, win } => self.create_window(rank, op, comm, win, now),
            Rma::Free { win } => self.free_window(rank, op, win, now),
            Rma::Access { kind, win, target, bytes, request } => {
                self.one_sided(rank, op, (kind, bytes), (win, target), request, now)
            }
            Rma::Fence { win } => {
                let running = self.window_barrier(rank, op, win, Effect::Nothing)?;
                self.after_own(rank, win, None, running, now)
            }
            Rma::Lock { win, target, exclusive } => {
                let target = self.target(rank, op, win, target)?;
                self.lock(rank, op, win, target..target + 1, exclusive, now)
            }
            Rma::LockAll { win } => {
                let size = self.window_size(rank, op, win)?;
                self.lock(rank, op, win, 0..size, false, now)
            }
            Rma::Unlock { win, target } => {
                let target = self.target(rank, op, win, target)?;
                self.unlock(rank, op, win, target..target + 1, now)
            }
            Rma::UnlockAll { win } => {
                let size = self.window_size(rank, op, win)?;
                self.unlock(rank, op, win, 0..size, now)
            }
            Rma::Flush { win, target } => {
                let target = target.map(|target| self.target(rank, op, win, target)).transpose()?;
                self.window(rank, op, win)?;
                self.await_own(rank, win, |of| target.is_none_or(|target| target == of), now);
                Ok(NEVER)
            }
            Rma::Post { win, ref group } => self.post_window(rank, op, win, group, now),
            Rma::Start { win, ref group } => self.start_access(rank, op, win, group, now),
            Rma::Complete { win } => {
                let Some(group) = self.window_mut(rank, op, win)?.started.take() else {
                    return Err(self.misuse(rank, op, "no access has been started: MPI_Win_start comes first"));
                };
                let running = self.signals(rank, op, win, COMPLETE, self.signal(&group))?;
                self.after_own(rank, win, None, running, now)
            }
            Rma::Wait { win } => {
                let Some(group) = self.window_mut(rank, op, win)?.posted.take() else {
                    return Err(self.misuse(rank, op, "the window has not been opened: MPI_Win_post comes first"));
                };
                let running = self.signals(rank, op, win, COMPLETE, await_signal(&group))?;
                self.begin(rank, op, running, now)
            }
        }
    }

    fn post_window(&mut self, rank: u32, op: &Op, win: WindowHandle, group: &Arc<[Rank]>, now: u64) -> Over {
        let running = self.signals(rank, op, win, POST, self.signal(group))?;
        if self.window_mut(rank, op, win)?.posted.replace(Arc::clone(group)).is_some() {
            return Err(self.misuse(rank, op, "the window is open already: MPI_Win_wait comes first"));
        }
        self.begin(rank, op, running, now)
    }

    fn start_access(&mut self, rank: u32, op: &Op, win: WindowHandle, group: &Arc<[Rank]>, now: u64) -> Over {
        let running = self.signals(rank, op, win, POST, await_signal(group))?;
        if self.window_mut(rank, op, win)?.started.replace(Arc::clone(group)).is_some() {
            return Err(self.misuse(rank, op, "an access has been started already: MPI_Win_complete comes first"));
        }
        self.begin(rank, op, running, now)
    }

    fn create_window(&mut self, rank: u32, op: &Op, comm: CommHandle, win: WindowHandle, now: u64) -> Over {
        if self.window(rank, op, win).is_ok() {
            return Err(self.misuse(rank, op, format!("window {win} is in use at this rank")));
        }
        let call = (CollectiveKind::Allgather, Rank(0), Volume::Uniform(DESCRIPTION));
        let running = self.collective(rank, op, Scope::Communicator(comm), call, Effect::Window { win })?;
        self.begin(rank, op, running, now)
    }

    fn free_window(&mut self, rank: u32, op: &Op, win: WindowHandle, now: u64) -> Over {
        let Window { locked, started, posted, .. } = self.window(rank, op, win)?;
        let open = [
            (!locked.is_empty(), "a lock of the window is held: MPI_Win_unlock comes first"),
            (started.is_some(), "an access has been started: MPI_Win_complete comes first"),
            (posted.is_some(), "the window is open: MPI_Win_wait comes first"),
        ];
        if let Some((_, problem)) = open.iter().find(|(open, _)| *open) {
            return Err(self.misuse(rank, op, *problem));
        }
        let running = self.window_barrier(rank, op, win, Effect::FreeWindow { win })?;
        self.after_own(rank, win, None, running, now)
    }

    fn window_barrier(
        &mut self,
        rank: u32,
        op: &Op,
        win: WindowHandle,
        effect: Effect,
    ) -> Result<Running, Box<RunError>> {
        let call = (CollectiveKind::Barrier, Rank(0), Volume::Uniform(Bytes::ZERO));
        self.collective(rank, op, Scope::Window(win), call, effect)
    }

    /// A message without a content of its own to each of these ranks.
    fn signal(&self, group: &[Rank]) -> Phase {
        let sends = group.iter().map(|rank| (*rank, self.parameters.control_bytes)).collect();
        Phase { sends, ..Phase::default() }
    }

    /// Messages of this tag between ranks of a window.
    fn signals(&self, rank: u32, op: &Op, win: WindowHandle, tag: Tag, phase: Phase) -> Result<Running, Box<RunError>> {
        for peer in phase.receives.iter().chain(phase.sends.iter().map(|(to, _)| to)) {
            self.target(rank, op, win, *peer)?;
        }
        let Communicator { context, ref members, .. } = self.window(rank, op, win)?.span;
        Ok(Running::signals(PhaseSource::Once(phase), Scope::Window(win), (context, tag), Arc::clone(members)))
    }
}

/// The receives of such messages from these ranks.
fn await_signal(group: &[Rank]) -> Phase {
    Phase { receives: group.to_vec(), ..Phase::default() }
}
