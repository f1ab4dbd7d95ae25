//! Locks of windows: each rank keeps a queue for its own part of a window and grants in the order in which requests come.

use std::collections::VecDeque;
use std::ops::Range;

use super::interpreter::Over;
use super::messaging::Messaging;
use super::one_sided::Opening;
use super::rank::NEVER;
use super::request::{PENDING, Request};
use super::transfer::Stage;
use crate::ids::Rank;
use crate::kernel::NONE;
use crate::program::{Op, WindowHandle};
use crate::qos::levels::TrafficKind;

/// The lock of one rank's part of a window.
#[derive(Clone, Default)]
pub(super) struct Lock {
    /// The origins that hold it, as ranks of the job.
    holders: Vec<u32>,
    /// The one holder has it for itself.
    exclusive: bool,
    /// Requests that wait, in the order in which they came: transfer, origin, whether exclusive.
    queue: VecDeque<(u32, u32, bool)>,
}

impl Lock {
    fn free_for(&self, exclusive: bool) -> bool {
        self.holders.is_empty() || !self.exclusive && !exclusive
    }

    /// A request has come. Returns whether it is granted at once.
    fn ask(&mut self, transfer: u32, origin: u32, exclusive: bool) -> bool {
        self.queue.push_back((transfer, origin, exclusive));
        self.queue.len() == 1 && self.grant().is_some()
    }

    /// Grants the first request of the queue if that is possible now.
    fn grant(&mut self) -> Option<u32> {
        let (transfer, origin, exclusive) = *self.queue.front()?;
        if !self.free_for(exclusive) {
            return None;
        }
        self.queue.pop_front();
        self.holders.push(origin);
        self.exclusive = exclusive;
        Some(transfer)
    }

    fn release(&mut self, origin: u32) {
        if let Some(place) = self.holders.iter().position(|holder| *holder == origin) {
            self.holders.swap_remove(place);
        }
    }
}

impl Messaging {
    /// Asks for the locks of these targets, one after another, and waits for them.
    pub(super) fn lock(
        &mut self,
        rank: u32,
        op: &Op,
        win: WindowHandle,
        targets: Range<u32>,
        exclusive: bool,
        now: u64,
    ) -> Over {
        self.claim(rank, op, win, targets.clone())?;
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

    /// Gives the locks of these targets up, one after another. Returns when the last message has been handed over.
    pub(super) fn release(&mut self, rank: u32, op: &Op, win: WindowHandle, targets: Range<u32>, now: u64) -> Over {
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

    /// The lock of the part of a window that is at the target of a transfer.
    fn lock_of(&mut self, record: u32) -> &mut Lock {
        let (to, context) = self.transfers[record].place();
        self.rank(to).more.get_or_insert_default().locks.entry(context).or_default()
    }

    /// A request for a lock has come.
    pub(super) fn lock_asked(&mut self, record: u32, exclusive: bool, now: u64) {
        let origin = self.transfers[record].origin();
        if self.lock_of(record).ask(record, origin, exclusive) {
            self.grant(record, now);
        }
    }

    /// A lock has been given up: others may have it now.
    pub(super) fn lock_released(&mut self, record: u32, now: u64) {
        let origin = self.transfers[record].origin();
        self.lock_of(record).release(origin);
        while let Some(next) = self.lock_of(record).grant() {
            self.transfers[next].set_partner_at(now);
            self.grant(next, now);
        }
        self.transfers.remove(record);
    }

    fn grant(&mut self, record: u32, now: u64) {
        let load = (self.parameters.control_bytes, TrafficKind::Control);
        self.go_on_with(record, Stage::Grant, load, now);
    }

    /// The window and the target whose lock `rank` asks for in `op`: the context, and the target as a rank of the job.
    pub(super) fn lock_asked_for(&self, rank: u32, op: &Op) -> Option<(u32, Rank)> {
        let Op::WinLock { win, target, .. } = op else { return None };
        let span = &self.window(rank, op, *win).ok()?.span;
        Some((span.context, Rank(span.member(*target)?)))
    }

    /// Who holds the lock of the part of the window with this context that is at `rank`, in words.
    pub(super) fn lock_in_words(&self, rank: u32, context: u32) -> Option<String> {
        let lock = self.ranks[rank as usize].more.as_ref()?.locks.get(&context)?;
        let holders: Vec<String> = lock.holders.iter().take(8).map(u32::to_string).collect();
        (!holders.is_empty()).then(|| format!("a lock that rank {} holds", holders.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_granted_in_the_order_in_which_they_come() {
        let mut lock = Lock::default();
        assert!(lock.ask(10, 0, false) && lock.ask(11, 1, false), "shared locks go together");
        assert!(!lock.ask(12, 2, true));
        assert!(!lock.ask(13, 3, false), "a shared request does not overtake an exclusive one");
        lock.release(0);
        assert_eq!(lock.grant(), None);
        lock.release(1);
        assert_eq!((lock.grant(), lock.grant()), (Some(12), None));
        lock.release(2);
        assert_eq!((lock.grant(), lock.grant()), (Some(13), None));
    }
}
