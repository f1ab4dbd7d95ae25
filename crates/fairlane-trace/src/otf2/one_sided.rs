//! One-sided communication: the records on windows as operations.
//!
//! An archive's windows keep their numbers. Records that come in pairs, as the request and the grant of a lock, are one
//! operation; completions end the calls that wait for them: a flush, and the wait for an operation with a request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{CommHandle, Op, RequestId, Rma, RmaKind};
use fairlane_core::units::Bytes;

use super::definitions::Members;
use super::event::{Lock, OneSided, Operation, Window};
use super::source::RankReader;

/// OTF2's numbers of the collective operations on windows: a fence, and those that make and free windows.
const BARRIER: u8 = 0;
const CREATE: [u8; 3] = [17, 19, 21];
const DESTROY: [u8; 3] = [18, 20, 22];
/// The calls whose operation has a request.
const WITH_REQUEST: [&str; 4] = ["MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate"];
/// The target of a lock of all ranks.
const ALL: u32 = u32::MAX;

/// An operation that has started.
#[derive(Clone, Copy)]
struct Started {
    target: u32,
    /// The request of `MPI_Rput` and the like.
    request: Option<RequestId>,
    /// It is complete at the target once the data that it brings back is at the origin.
    reads: bool,
}

/// The windows of a rank, and what is open on them.
#[derive(Clone, Default)]
pub struct Windows {
    open: BTreeSet<Window>,
    started: HashMap<(Window, u64), Started>,
    locked: BTreeSet<(Window, u32)>,
    /// Windows between start and complete, and between post and wait.
    accessed: BTreeSet<Window>,
    exposed: BTreeSet<Window>,
    /// The operations that the call of the rank has flushed.
    flushed: BTreeSet<(Window, u32)>,
}

impl RankReader {
    pub(super) fn one_sided(&mut self, record: OneSided) -> Result<(), String> {
        match record {
            OneSided::Create(win) => self.create_window(win),
            OneSided::Destroy(win) => {
                self.free_window(win);
                Ok(())
            }
            OneSided::Collective { operation, window } => match operation {
                BARRIER => {
                    self.forget(window, None);
                    self.out.op(Op::Rma(Rma::Fence { win: window }));
                    Ok(())
                }
                made if CREATE.contains(&made) => self.create_window(window),
                freed if DESTROY.contains(&freed) => {
                    self.free_window(window);
                    Ok(())
                }
                other => Err(format!("the collective operation {other} on a window is not supported")),
            },
            OneSided::GroupSync { done: false, .. } => Ok(()),
            OneSided::GroupSync { window, group, done: true } => self.group_sync(window, group),
            OneSided::Lock(lock) => self.lock(lock),
            OneSided::Unlock { window, target } => {
                self.unlock(window, target);
                Ok(())
            }
            OneSided::Start { operation, window, target, matching } => {
                self.transfer(operation, window, target, matching)
            }
            OneSided::Complete { window, matching, local } => {
                self.complete(window, matching, local);
                Ok(())
            }
        }
    }

    /// The call that the rank is in ends: a flush has waited for what it has completed.
    pub(super) fn flush(&mut self) {
        let flushed = std::mem::take(&mut self.windows().flushed);
        if self.is_in("MPI_Win_flush_all") || self.is_in("MPI_Win_flush_local_all") {
            let windows: BTreeSet<Window> = flushed.into_iter().map(|(win, _)| win).collect();
            windows.into_iter().for_each(|win| self.out.op(Op::Rma(Rma::Flush { win, target: None })));
        } else if self.is_in("MPI_Win_flush") || self.is_in("MPI_Win_flush_local") {
            let flush = |(win, target)| Op::Rma(Rma::Flush { win, target: Some(Rank(target)) });
            flushed.into_iter().for_each(|one| self.out.op(flush(one)));
        }
    }

    /// The trace ends: locks that are still held are given up, accesses that are open are completed, and windows that are
    /// still there are freed, in the order of their numbers, as all ranks do it.
    pub(super) fn free_windows(&mut self) {
        let (held, exposed) = (self.windows().locked.clone(), std::mem::take(&mut self.windows().exposed));
        held.into_iter().for_each(|(win, target)| self.give_lock_up(win, target));
        let started = std::mem::take(&mut self.windows().accessed);
        started.into_iter().for_each(|win| self.out.op(Op::Rma(Rma::Complete { win })));
        exposed.into_iter().for_each(|win| self.out.op(Op::Rma(Rma::Wait { win })));
        let open = self.windows().open.clone();
        open.into_iter().for_each(|win| self.free_window(win));
    }

    fn window_comm(&mut self, win: Window) -> Result<(u32, CommHandle), String> {
        let comm = self.definitions().windows.get(&win).ok_or_else(|| format!("window {win} is not defined"))?.comm;
        Ok((comm, self.handle(comm)?))
    }

    fn create_window(&mut self, win: Window) -> Result<(), String> {
        let (_, comm) = self.window_comm(win)?;
        if self.windows().open.insert(win) {
            self.out.op(Op::Rma(Rma::Create { comm, win }));
        }
        Ok(())
    }

    fn free_window(&mut self, win: Window) {
        if self.windows().open.remove(&win) {
            self.forget(win, None);
            self.out.op(Op::Rma(Rma::Free { win }));
        }
    }

    /// Operations on a window, at one target or at all, are complete, whether the trace says so or not.
    fn forget(&mut self, win: Window, target: Option<u32>) {
        let here = |other: Window, at: u32| other == win && target.is_none_or(|target| target == at);
        self.windows().started.retain(|&(other, _), started| started.request.is_some() || !here(other, started.target));
    }

    fn group_sync(&mut self, win: Window, group: u32) -> Result<(), String> {
        let (comm, _) = self.window_comm(win)?;
        let op = if self.is_in("MPI_Win_post") {
            let group = self.ranks_within(group, comm)?;
            self.windows().exposed.insert(win);
            Op::Rma(Rma::Post { win, group })
        } else if self.is_in("MPI_Win_start") {
            let group = self.ranks_within(group, comm)?;
            self.windows().accessed.insert(win);
            Op::Rma(Rma::Start { win, group })
        } else if self.is_in("MPI_Win_complete") {
            self.forget(win, None);
            self.windows().accessed.remove(&win);
            Op::Rma(Rma::Complete { win })
        } else if self.is_in("MPI_Win_wait") || self.is_in("MPI_Win_test") {
            self.windows().exposed.remove(&win);
            Op::Rma(Rma::Wait { win })
        } else {
            return Err("a window is synchronised with a group by an unknown call".to_owned());
        };
        self.out.op(op);
        Ok(())
    }

    /// The members of a group, as ranks of a communicator.
    fn ranks_within(&self, group: u32, comm: u32) -> Result<Arc<[Rank]>, String> {
        let definitions = self.definitions();
        let members =
            definitions.groups.get(&group).ok_or_else(|| format!("the members of group {group} are not known"))?;
        let outside = |rank: &Rank| format!("rank {} of group {group} is not in communicator {comm}", rank.0);
        let place = |rank: &Rank| match &definitions.communicators.get(&comm)?.members {
            Members::World => Some(*rank),
            Members::These(list) => (0..).zip(list.iter()).find(|(_, member)| *member == rank).map(|(at, _)| Rank(at)),
            Members::Alone => (rank.0 == self.rank()).then_some(Rank(0)),
            Members::Between | Members::Unknown => None,
        };
        members.iter().map(|rank| place(rank).ok_or_else(|| outside(rank))).collect()
    }

    fn lock(&mut self, Lock { window: win, target, exclusive }: Lock) -> Result<(), String> {
        let target = if self.is_in("MPI_Win_lock_all") { ALL } else { target };
        if target != ALL && !self.is_target(win, target)? {
            return Ok(());
        }
        if self.windows().locked.insert((win, target)) {
            let one = Op::Rma(Rma::Lock { win, target: Rank(target), exclusive });
            self.out.op(if target == ALL { Op::Rma(Rma::LockAll { win }) } else { one });
        }
        Ok(())
    }

    /// Whether a target is a rank, and not `MPI_PROC_NULL`, which is negative.
    fn is_target(&self, win: Window, target: u32) -> Result<bool, String> {
        let definitions = self.definitions();
        let size = definitions.windows.get(&win).and_then(|window| definitions.size_of(window.comm));
        match size {
            Some(size) if target.cast_signed() >= 0 && target as usize >= size => {
                Err(format!("rank {target} of window {win}, which has {size} ranks"))
            }
            _ => Ok(target.cast_signed() >= 0),
        }
    }

    fn unlock(&mut self, win: Window, target: u32) {
        let target = if self.is_in("MPI_Win_unlock_all") { ALL } else { target };
        self.give_lock_up(win, target);
    }

    fn give_lock_up(&mut self, win: Window, target: u32) {
        if self.windows().locked.remove(&(win, target)) {
            self.forget(win, (target != ALL).then_some(target));
            self.out.op(if target == ALL {
                Op::Rma(Rma::UnlockAll { win })
            } else {
                Op::Rma(Rma::Unlock { win, target: Rank(target) })
            });
        }
    }

    fn transfer(&mut self, operation: Operation, win: Window, target: u32, matching: u64) -> Result<(), String> {
        if !self.is_target(win, target)? {
            return Ok(());
        }
        let (kind, bytes) = match operation {
            Operation::Put { bytes } => (RmaKind::Put, bytes),
            Operation::Get { bytes } => (RmaKind::Get, bytes),
            Operation::Accumulate { bytes } => (RmaKind::Accumulate, bytes),
            // The reading half of MPI_NO_OP sends nothing.
            Operation::Fetch { sent, received } => (RmaKind::GetAccumulate, sent.max(received)),
            Operation::CompareAndSwap { received } => (RmaKind::CompareAndSwap, received),
        };
        let requested = self.call().is_some_and(|call| WITH_REQUEST.contains(&&*call.name));
        let request = requested.then(|| self.take_request());
        self.out.op(Op::Rma(Rma::Access { kind, win, target: Rank(target), bytes: Bytes(bytes), request }));
        let reads = !matches!(kind, RmaKind::Put | RmaKind::Accumulate);
        self.windows().started.insert((win, matching), Started { target, request, reads });
        Ok(())
    }

    fn complete(&mut self, win: Window, matching: u64, local: bool) {
        let Some(Started { target, request, reads }) = self.windows().started.remove(&(win, matching)) else { return };
        self.windows().flushed.insert((win, target));
        if local && !reads {
            // A later flush waits until it is complete at the target, too.
            self.windows().started.insert((win, matching), Started { target, request: None, reads });
        }
        if let Some(request) = request {
            self.completes(request);
        }
    }
}
