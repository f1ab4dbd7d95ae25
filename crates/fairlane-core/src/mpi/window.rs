//! Windows: memory of each rank of a communicator that the others read and write.

use super::communicator::Communicator;
use super::interpreter::Over;
use super::messaging::Messaging;
use crate::error::RunError;
use crate::program::{Op, WindowHandle};

/// A window as one rank sees it.
#[derive(Clone)]
pub(super) struct Window {
    /// Its ranks, with a context of its own.
    pub span: Communicator,
}

impl Messaging {
    pub(super) fn window(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<&Window, Box<RunError>> {
        let found = self.ranks[rank as usize].more.as_ref().and_then(|more| more.windows.get(&win));
        found.ok_or_else(|| self.misuse(rank, op, format!("no window {win} at this rank")))
    }

    pub(super) fn execute_one_sided(&mut self, rank: u32, op: &Op, _now: u64) -> Over {
        Err(self.misuse(rank, op, "one-sided operations cannot be simulated"))
    }
}
