//! One-sided communication: windows by the handles of a DUMPI file.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::{Op, Rma, RmaKind, WindowHandle};
use fairlane_core::units::Bytes;
use rustc_hash::FxHashMap;

use super::calls::Call;
use super::communicators::Group;
use super::cursor::Fault;
use super::record::Record;
use super::source::RankReader;
use crate::slots::Slots;

/// DUMPI's number of an exclusive lock.
const EXCLUSIVE: i32 = 2;

/// A window of a rank.
#[derive(Clone)]
struct Window {
    handle: WindowHandle,
    /// The ranks that it spans.
    group: Group,
}

/// All windows of a rank.
#[derive(Clone)]
pub struct Windows {
    open: FxHashMap<i32, Window>,
    handles: Slots,
}

impl Windows {
    /// None.
    pub fn new() -> Self {
        Self { open: FxHashMap::default(), handles: Slots::starting_at(0) }
    }

    fn get(&self, id: i32) -> Result<&Window, Fault> {
        self.open.get(&id).ok_or_else(|| format!("window {id} was made by no call that the trace records"))
    }

    /// Forgets everything; returns the handles that were open, in their order, which is the same for all of a window's ranks
    /// that make their windows in the same order.
    pub fn clear(&mut self) -> Vec<WindowHandle> {
        let mut open: Vec<_> = self.open.values().map(|window| window.handle).collect();
        open.sort_unstable();
        *self = Self::new();
        open
    }
}

impl RankReader {
    pub(super) fn windows(&mut self, record: &Record) -> Result<(), Fault> {
        let n = |i: usize| record.number(i);
        let window = |i: usize| self.state.windows.get(n(i)).map(|window| window.handle);
        let op = match record.call() {
            Call::WinCreate => return self.create_window(n(3), n(4)),
            Call::WinFree => {
                let win = window(0)?;
                self.state.windows.open.remove(&n(0));
                self.state.windows.handles.give_back(win);
                Op::Rma(Rma::Free { win })
            }
            Call::WinGroup => {
                let group = self.state.windows.get(n(0))?.group.clone();
                self.state.communicators.set_group(n(1), group);
                return Ok(());
            }
            Call::WinFence => Op::Rma(Rma::Fence { win: window(1)? }),
            Call::WinLock => {
                let exclusive = n(0) == EXCLUSIVE;
                // MPI_PROC_NULL has no lock.
                let Ok(target) = u32::try_from(n(1)) else { return Ok(()) };
                Op::Rma(Rma::Lock { win: window(3)?, target: Rank(target), exclusive })
            }
            Call::WinUnlock => {
                let Ok(target) = u32::try_from(n(0)) else { return Ok(()) };
                Op::Rma(Rma::Unlock { win: window(1)?, target: Rank(target) })
            }
            Call::WinPost => Op::Rma(Rma::Post { win: window(2)?, group: self.ranks_of(n(0), n(2))? }),
            Call::WinStart => Op::Rma(Rma::Start { win: window(2)?, group: self.ranks_of(n(0), n(2))? }),
            Call::WinComplete => Op::Rma(Rma::Complete { win: window(0)? }),
            Call::WinWait => Op::Rma(Rma::Wait { win: window(0)? }),
            // A test that fails is a poll.
            Call::WinTest if n(1) != 0 => Op::Rma(Rma::Wait { win: window(0)? }),
            Call::Put => return self.transfer(record, RmaKind::Put, 6),
            Call::Get => return self.transfer(record, RmaKind::Get, 6),
            Call::Accumulate => return self.transfer(record, RmaKind::Accumulate, 7),
            _ => return Ok(()),
        };
        self.out.op(op);
        Ok(())
    }

    fn create_window(&mut self, comm: i32, id: i32) -> Result<(), Fault> {
        let group = self.state.communicators.group_of(comm)?;
        let comm = self.state.communicators.handle(comm)?;
        let win = self.state.windows.handles.take();
        self.out.op(Op::Rma(Rma::Create { comm, win }));
        self.state.windows.open.insert(id, Window { handle: win, group });
        Ok(())
    }

    /// The members of a group, as ranks of a window.
    fn ranks_of(&self, group: i32, window: i32) -> Result<Arc<[Rank]>, Fault> {
        let within = &self.state.windows.get(window)?.group;
        let group = self.state.communicators.group(group)?;
        group.within(within, || format!("window {window}"))
    }

    /// An operation on a window; `window` is the argument that names it. To `MPI_PROC_NULL` there is nothing to do.
    fn transfer(&mut self, record: &Record, kind: RmaKind, window: usize) -> Result<(), Fault> {
        let n = |i: usize| record.number(i);
        let Ok(target) = u32::try_from(n(2)) else { return Ok(()) };
        let win = self.state.windows.get(n(window))?.handle;
        let bytes = Bytes(self.state.sizes.bytes(n(0), n(1))?);
        self.out.op(Op::Rma(Rma::Access { kind, win, target: Rank(target), bytes, request: None }));
        Ok(())
    }
}
