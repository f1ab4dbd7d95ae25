//! A host's own events in order of time: deliveries, transfers through memory, and the ranks that are due.

use std::cmp::Reverse;
use std::ops::Range;

use super::MpiShard;
use super::collective::nonblocking;
use super::messaging::Messaging;
use super::p2p::transfer::Stage;
use super::rank::{NEVER, RankState};
use super::report::Mail;
use crate::error::RunError;
use crate::ids::HostId;
use crate::kernel::NONE;
use crate::network::{Delivery, Endpoint, Injection, Pause};
use crate::units::Instant;

impl Endpoint for MpiShard {
    type Mail = Mail;

    #[inline(always)]
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Pause, Box<RunError>> {
        (self.messaging.host, self.messaging.until) = (host, until);
        let alone = self.messaging.residence.alone[host.index()];
        let result = if alone == NONE {
            self.run_several(until.0, deliveries)
        } else {
            self.run_through(until.0, deliveries, |messaging| (messaging.ranks[alone as usize].due, alone))
        };
        if !self.messaging.outbox.is_empty() {
            debug_assert!(injections.is_empty(), "what a host sent before has been taken");
            std::mem::swap(&mut self.messaging.outbox, injections);
        }
        let next = match result {
            Ok(next) => next,
            Err(error) => {
                self.failed = Some((host, (*error).clone()));
                return Err(error);
            }
        };
        // A rank that is not blocked processes deliveries when it resumes. Not while it holds back a message that has
        // overtaken others: those may release it, and it may need an answer at once.
        let deferrable = self.messaging.ranks.get(alone as usize).is_some_and(RankState::is_deferrable);
        Ok(Pause { at: (next != NEVER).then_some(Instant(next)), deferrable })
    }

    fn post(&mut self, shard: usize, mail: &mut Mail) {
        self.write(shard, mail);
    }

    fn accept(&mut self, shard: usize, mail: &mut Mail) {
        self.read(shard, mail);
    }

    fn kept(&self) -> u64 {
        self.messaging.transfers.count()
    }

    fn most_kept(&self) -> u64 {
        self.messaging.parameters.max_messages
    }

    fn pauses(&self) -> bool {
        self.pauses && self.messaging.completed_outside
    }

    fn end_window(&mut self, until: Instant) -> bool {
        self.add_reports(until)
    }
}

impl MpiShard {
    /// Runs the host through all that is due before `until`. `due`: the rank that is due first, and when. Returns when the host
    /// has something to do next.
    #[inline(always)]
    fn run_through(
        &mut self,
        until: u64,
        deliveries: &[Delivery],
        due: impl Fn(&Messaging) -> (u64, u32),
    ) -> Result<u64, Box<RunError>> {
        let mut coming = deliveries;
        loop {
            let (due_at, rank) = due(&self.messaging);
            let memory_at = self.messaging.next_in_memory();
            let next = memory_at.map_or(due_at, |at| at.min(due_at));
            if let [first, rest @ ..] = coming
                && first.at.0 <= next
            {
                self.messaging.delivered(first);
                coming = rest;
            } else if next >= until {
                return Ok(next);
            } else if memory_at.is_some_and(|at| at <= due_at) {
                self.messaging.end_in_memory();
            } else {
                self.run_rank(rank, due_at)?;
            }
        }
    }

    /// Runs a host that has several ranks, or none.
    #[inline(never)]
    fn run_several(&mut self, until: u64, deliveries: &[Delivery]) -> Result<u64, Box<RunError>> {
        let residents = self.messaging.residents(self.messaging.host);
        self.run_through(until, deliveries, |messaging| messaging.next_due(residents.clone()))
    }
}

impl Messaging {
    /// Of the ranks of one host, which stand at `places` of the list of residents, the one that is due first, and when.
    #[inline]
    fn next_due(&self, places: Range<usize>) -> (u64, u32) {
        let mut first = (NEVER, 0);
        for &rank in &self.residence.residents[places] {
            let due = self.ranks[rank as usize].due;
            if due < first.0 {
                first = (due, rank);
            }
        }
        first
    }

    /// When the first transfer through the memory of the host that runs ends.
    #[inline]
    fn next_in_memory(&mut self) -> Option<u64> {
        if self.in_memory == 0 {
            return None;
        }
        self.own_memory().peek().map(|Reverse(end)| end.0)
    }

    /// The first transfer through the memory of the host that runs ends, or the first step there is due.
    fn end_in_memory(&mut self) {
        let Some(Reverse((at, key, transfer, stage))) = self.own_memory().pop() else { return };
        self.in_memory -= 1;
        match stage {
            Stage::Step => {
                let rank = nonblocking::rank_of_step(key);
                self.count_arrival(self.ranks[rank as usize].job, true);
                self.next_in_background(rank, transfer, at);
            }
            Stage::Offloaded | Stage::Delayed => self.end_timer(key, transfer, stage, at),
            Stage::Leaving => self.leave_through_memory(transfer, key, at),
            Stage::Entering => self.enter_through_memory(transfer, key, at),
            _ => self.came_through_memory(transfer, stage, at),
        }
    }
}
