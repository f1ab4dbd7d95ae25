//! What follows when a request is complete: its rank resumes, or the phase of a non-blocking operation ends.

use std::cmp::Reverse;

use super::messaging::Messaging;
use super::nonblocking::{self, Operation};
use super::rank::Completion;
use super::request::Request;
use super::transfer::Stage;
use crate::kernel::NONE;

impl Messaging {
    /// A request of `rank` is complete.
    #[inline(always)]
    pub(super) fn complete(&mut self, rank: u32, slot: u32, now: u64) {
        let completion = self.rank(rank).complete(slot, now);
        self.follow(completion, rank, slot, now);
    }

    /// What follows when a request of `rank` is complete.
    #[inline(always)]
    pub(super) fn follow(&mut self, completion: Completion, rank: u32, slot: u32, now: u64) {
        match completion {
            Completion::Noted => {}
            Completion::EndsWait(wait) => self.end_wait(rank, wait, now),
            Completion::Detached => self.complete_detached(rank, slot, now),
        }
    }

    pub(super) fn operation(&mut self, rank: u32, number: u32) -> Option<&mut Box<Operation>> {
        self.rank(rank).more_mut()?.background.operations.get_mut(number as usize)?.as_mut()
    }

    /// A request that nobody waits for is complete, and over.
    #[cold]
    fn complete_detached(&mut self, rank: u32, slot: u32, now: u64) {
        let &Request { owner, partner_at, .. } = self.rank(rank).requests.end(slot);
        if owner == NONE {
            self.record_given_up(rank, slot);
            return;
        }
        let Some(operation) = self.operation(rank, owner) else { return };
        operation.missing -= 1;
        operation.partner_at = partner_at;
        let (over, of) = (operation.missing == 0, operation.request);
        let (job, own) = (self.rank(rank).job, self.rank(rank).rank);
        if let Some(record) = self.record_of(rank) {
            record.passed_on(job, own, slot, of);
        }
        if over {
            self.end_phase_in_background(rank, owner, now);
        }
    }

    /// The messages of an operation's phase are complete: what it does with them takes its time.
    pub(super) fn end_phase_in_background(&mut self, rank: u32, number: u32, now: u64) {
        let Some(operation) = self.operation(rank, number) else { return };
        let at = now.max(operation.handed_at) + std::mem::take(&mut operation.running.combining);
        let key = nonblocking::step_key(rank, operation.order);
        let job = self.ranks[rank as usize].job;
        self.own_memory().push(Reverse((at, key, number, Stage::Step)));
        self.in_memory += 1;
        self.jobs[job.index()].in_flight += 1;
    }
}
