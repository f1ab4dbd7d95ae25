//! Locks of windows: each rank keeps a queue for its own part of a window and grants in the order in which requests come.

use std::collections::VecDeque;

/// The lock of one rank's part of a window.
#[derive(Clone, Default)]
pub(in crate::mpi) struct Lock {
    /// The origins that hold it, as ranks of the job.
    pub holders: Vec<u32>,
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
    pub fn ask(&mut self, transfer: u32, origin: u32, exclusive: bool) -> bool {
        self.queue.push_back((transfer, origin, exclusive));
        self.queue.len() == 1 && self.grant().is_some()
    }

    /// Grants the first request of the queue if that is possible now.
    pub fn grant(&mut self) -> Option<u32> {
        let (transfer, origin, exclusive) = *self.queue.front()?;
        if !self.free_for(exclusive) {
            return None;
        }
        self.queue.pop_front();
        self.holders.push(origin);
        self.exclusive = exclusive;
        Some(transfer)
    }

    pub fn release(&mut self, origin: u32) {
        if let Some(place) = self.holders.iter().position(|holder| *holder == origin) {
            self.holders.swap_remove(place);
        }
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
