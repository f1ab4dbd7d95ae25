//! Passive target synchronisation: an origin acquires and releases locks, and waits for its operations.

use std::ops::Range;
use std::sync::Arc;

use super::window::Window;
use crate::ids::Rank;
use crate::kernel::NONE;
use crate::mpi::collective::algorithms::Phase;
use crate::mpi::collective::running::{Effect, PhaseSource, Running, Scope};
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::p2p::request::{PENDING, Request};
use crate::mpi::p2p::transfer::Stage;
use crate::mpi::p2p::transmit::Opening;
use crate::mpi::rank::NEVER;
use crate::program::{Op, Rma, WindowHandle};
use crate::qos::levels::TrafficKind;

impl Messaging {
    /// Asks for the locks of these targets, one after another, and waits for them.
    pub fn lock(
        &mut self,
        rank: u32,
        op: &Op,
        win: WindowHandle,
        targets: Range<u32>,
        exclusive: bool,
        now: u64,
    ) -> Over {
        let locked = &mut self.window_mut(rank, op, win)?.locked;
        if let Some(again) = targets.clone().find(|target| locked.contains(target)) {
            return Err(self.misuse(rank, op, format!("this rank has a lock of target {again} already")));
        }
        locked.extend(targets.clone());
        let stage = if exclusive { Stage::LockExclusive } else { Stage::LockShared };
        let mut handed_at = now;
        for target in targets {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead.0;
            let slot = self.rank(rank).requests.start(None, Request::send(called_at, PENDING));
            let slot = slot.expect("invariant: a request without a name has a slot");
            self.rank(rank).awaited.push(slot);
            self.open_at(rank, op, win, target, (stage, slot), (called_at, handed_at))?;
        }
        self.wait_for_all(rank, now, handed_at);
        Ok(NEVER)
    }

    /// Releases the locks of these targets, one after another. Returns when the last message has been handed over.
    pub fn release(&mut self, rank: u32, op: &Op, win: WindowHandle, targets: Range<u32>, now: u64) -> Over {
        let mut handed_at = now;
        for target in targets {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead.0;
            self.open_at(rank, op, win, target, (Stage::Unlock, NONE), (called_at, handed_at))?;
        }
        Ok(handed_at)
    }

    /// A control message to a target.
    fn open_at(
        &mut self,
        rank: u32,
        op: &Op,
        win: WindowHandle,
        target: u32,
        (stage, slot): (Stage, u32),
        (called_at, handed_at): (u64, u64),
    ) -> Over {
        let span = &self.window(rank, op, win)?.span;
        let (context, target) = (span.context, span.members[target as usize]);
        let (to, requests) = (Rank(target), (slot, NONE));
        let load = (self.parameters.control_bytes, TrafficKind::Control);
        self.open(Opening { from: rank, to, bytes: 0, context, requests, stage, load, called_at, handed_at });
        Ok(handed_at)
    }

    /// The window and the target whose lock `rank` asks for in `op`: the context, and the target as a rank of the job.
    pub fn lock_asked_for(&self, rank: u32, op: &Op) -> Option<(u32, Rank)> {
        let Op::Rma(Rma::Lock { win, target, .. }) = op else { return None };
        let span = &self.window(rank, op, *win).ok()?.span;
        Some((span.context, Rank(span.member(*target)?)))
    }

    /// The locks of `targets` are released once the rank's operations at them are complete.
    pub fn unlock(&mut self, rank: u32, op: &Op, win: WindowHandle, targets: Range<u32>, now: u64) -> Over {
        let Window { locked, span, .. } = self.window_mut(rank, op, win)?;
        let (context, members) = (span.context, Arc::clone(&span.members));
        if let Some(free) = targets.clone().find(|target| !locked.contains(target)) {
            return Err(self.misuse(rank, op, format!("this rank has no lock of target {free}")));
        }
        locked.retain(|target| !targets.contains(target));
        let only = (targets.len() == 1).then_some(targets.start);
        let running = Running {
            effect: Effect::Release { targets },
            ..Running::signals(PhaseSource::Once(Phase::default()), Scope::Window(win), (context, 0), members)
        };
        self.after_own(rank, win, only, running, now)
    }

    /// Waits for the rank's operations on a window at `target`, or at all, and then does `running`.
    pub fn after_own(&mut self, rank: u32, win: WindowHandle, target: Option<u32>, running: Running, now: u64) -> Over {
        self.rank(rank).collective = Some(Box::new(running));
        self.await_own(rank, win, |of| target.is_none_or(|target| target == of), now);
        Ok(NEVER)
    }

    /// Waits for the rank's operations on a window at these targets.
    pub fn await_own(&mut self, rank: u32, win: WindowHandle, at: impl Fn(u32) -> bool, now: u64) {
        let state = self.rank(rank);
        let mut awaited = std::mem::take(&mut state.awaited);
        if let Some(window) = state.more_mut().and_then(|more| more.windows.get_mut(&win)) {
            window.pending.retain(|(target, slot)| {
                if at(*target) {
                    awaited.push(*slot);
                }
                !at(*target)
            });
        }
        state.awaited = awaited;
        self.wait_for_all(rank, now, now);
    }
}
