//! A host's own events in order of time: deliveries, transfers through memory, and the ranks that are due.

use std::cmp::Reverse;

use super::{Mpi, NEVER};
use crate::error::{RunError, StuckRank};
use crate::ids::{HostId, JobId};
use crate::kernel::prefetch;
use crate::network::{Delivery, Endpoint, Injection};
use crate::units::Instant;

impl Endpoint for Mpi {
    fn run(
        &mut self,
        host: HostId,
        until: Instant,
        deliveries: &[Delivery],
        injections: &mut Vec<Injection>,
    ) -> Result<Option<Instant>, RunError> {
        std::mem::swap(&mut self.outbox, injections);
        let result = self.run_events(host, until.0, deliveries);
        std::mem::swap(&mut self.outbox, injections);
        let next = result?;
        self.check_progress(host, until)?;
        Ok((next != NEVER).then_some(Instant(next)))
    }

    fn prefetch(&self, host: HostId, step: usize) {
        let Some(&rank) = self.residents(host).first() else { return };
        let state = &self.ranks[rank as usize];
        match step {
            0 => {
                prefetch(state);
                self.records[rank as usize].prefetch();
            }
            1 => {
                prefetch(&*state.source);
                state.requests.prefetch();
                state.matching.prefetch();
            }
            _ => state.source.prefetch(),
        }
    }
}

impl Mpi {
    fn run_events(&mut self, host: HostId, until: u64, deliveries: &[Delivery]) -> Result<u64, RunError> {
        let mut deliveries = deliveries.iter().peekable();
        loop {
            let delivery_at = deliveries.peek().map_or(NEVER, |delivery| delivery.at.0);
            let memory_at = self.memory[host.index()].peek().map_or(NEVER, |Reverse(end)| end.0);
            let (due_at, rank) = self.next_due(host);
            if delivery_at <= memory_at && delivery_at <= due_at && delivery_at != NEVER {
                if let Some(delivery) = deliveries.next() {
                    self.delivered(delivery);
                }
                continue;
            }
            let next = memory_at.min(due_at);
            if next >= until {
                return Ok(next);
            }
            if memory_at <= due_at {
                if let Some(Reverse((at, _, transfer, stage))) = self.memory[host.index()].pop() {
                    self.arrived(transfer, stage, at, true, true);
                }
            } else {
                self.go_on(rank, due_at)?;
            }
        }
    }

    /// The rank of `host` that is due first, and when.
    fn next_due(&self, host: HostId) -> (u64, u32) {
        let mut first = (NEVER, 0);
        for &rank in self.residents(host) {
            let due = self.ranks[rank as usize].due;
            if due < first.0 {
                first = (due, rank);
            }
        }
        first
    }

    /// A job of which no rank will go on and no message is under way, and which has not finished, never will.
    fn check_progress(&self, host: HostId, until: Instant) -> Result<(), RunError> {
        for &rank in self.residents(host) {
            let id = self.ranks[rank as usize].job;
            let job = &self.jobs[id.index()];
            if job.active == 0 && job.in_flight == 0 && job.finished < job.size {
                return Err(self.stuck(id, until));
            }
        }
        Ok(())
    }

    fn stuck(&self, id: JobId, until: Instant) -> RunError {
        let job = &self.jobs[id.index()];
        let members = &self.ranks[job.first as usize..(job.first + job.size) as usize];
        let ranks = members.iter().filter(|rank| !rank.finished).map(|rank| StuckRank {
            job: id,
            rank: rank.rank,
            operation: rank.blocked.as_ref().map_or_else(String::new, super::words::of),
        });
        RunError::Stuck { job: job.name.clone(), at: until, ranks: ranks.collect() }
    }
}
