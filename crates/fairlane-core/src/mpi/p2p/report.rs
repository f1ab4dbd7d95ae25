//! Requests of dependency graphs ([`crate::program::graph`]): work on streams, timers, and completions that are reported to the
//! source of the rank.

use std::cmp::Reverse;

use super::request::{NamedRequest, PENDING, Quorum, Reports, Request, SOURCE, Wait};
use super::transfer::Stage;
use crate::mpi::collective::nonblocking::{ORDERS, rank_of_step, step_key};
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::rank::{Blocked, NEVER};
use crate::program::{GraphOp, Op, RequestId};
use crate::units::Picoseconds;

impl Messaging {
    fn reports(&mut self, rank: u32) -> &mut Reports {
        self.rank(rank).needed().reports.get_or_insert_default()
    }

    /// Executes an operation of a graph. Returns when it is over.
    pub fn execute_of_graph(&mut self, rank: u32, op: &Op, call: &GraphOp, now: u64) -> Over {
        match *call {
            GraphOp::Offload(span, request) => self.offload(rank, op, span, request, now),
            GraphOp::Delay(span, request) => self.delay(rank, op, span, request, now),
            GraphOp::Report(request) => self.ask_for_report(rank, op, request, now),
            GraphOp::WaitReport => {
                let missing = u32::from(self.reports(rank).complete.is_empty());
                self.wait(rank, Wait { quorum: Quorum::Reported, missing, since: now }, now);
                Ok(NEVER)
            }
        }
    }

    /// Whether a device works for `rank`: while it waits for reports, it computes.
    #[cold]
    pub fn works_on_device(&self, rank: u32) -> bool {
        let reports = self.ranks[rank as usize].more().and_then(|more| more.reports.as_ref());
        reports.is_some_and(|reports| reports.offloaded > 0)
    }

    /// A slow host slows the work down as it does computation.
    fn offload(&mut self, rank: u32, op: &Op, span: Picoseconds, name: RequestId, now: u64) -> Over {
        let at = self.compute(rank, op, span, now)?;
        self.reports(rank).offloaded += 1;
        self.start_timer(rank, op, at, (name, Stage::Offloaded), now)
    }

    fn delay(&mut self, rank: u32, op: &Op, span: Picoseconds, name: RequestId, now: u64) -> Over {
        let at = self.lasts(rank, op, span, now)?;
        self.start_timer(rank, op, at, (name, Stage::Delayed), now)
    }

    /// Starts a request of `rank` that is complete at `at`.
    fn start_timer(&mut self, rank: u32, op: &Op, at: u64, (name, stage): (RequestId, Stage), now: u64) -> Over {
        match self.begin_timer(rank, at, (name, stage), now) {
            Some(_) => Ok(now),
            None => Err(self.in_use(rank, op, name)),
        }
    }

    /// The same on the host that is set; returns the request's slot, or `None` if its name is in use.
    pub fn begin_timer(&mut self, rank: u32, at: u64, (name, stage): (RequestId, Stage), now: u64) -> Option<u32> {
        let state = self.rank(rank);
        let job = state.job;
        let slot = state.requests.start(Some(name), Request::send(now, PENDING))?;
        let background = &mut state.needed().background;
        background.begun = background.begun.wrapping_add(1) & ORDERS;
        let key = step_key(rank, background.begun);
        self.own_memory().push(Reverse((at, key, slot, stage)));
        self.in_memory += 1;
        self.jobs[job.index()].in_flight += 1;
        Some(slot)
    }

    /// Work on a device is complete, or a time has passed.
    #[inline(never)]
    pub fn end_timer(&mut self, key: u64, slot: u32, stage: Stage, at: u64) {
        let rank = rank_of_step(key);
        self.count_arrival(self.ranks[rank as usize].job, true);
        self.reports(rank).offloaded -= u32::from(stage == Stage::Offloaded);
        self.complete(rank, slot, at);
    }

    fn ask_for_report(&mut self, rank: u32, op: &Op, name: RequestId, now: u64) -> Over {
        let NamedRequest::Open(slot, request) = self.rank(rank).requests.named(name) else {
            return Err(self.misuse(rank, op, format!("no request {name}")));
        };
        (request.detached, request.owner) = (true, SOURCE);
        if request.complete_at != PENDING {
            self.reports(rank).complete.push(slot);
        }
        Ok(now)
    }

    /// A request that is to be reported is complete.
    #[inline(never)]
    pub fn report_completion(&mut self, rank: u32, slot: u32, now: u64) {
        self.reports(rank).complete.push(slot);
        if let Blocked::Requests(Wait { quorum: Quorum::Reported, .. }) = self.ranks[rank as usize].blocked {
            self.end_wait(rank, now);
        }
    }

    /// Hands all requests of `rank` that are complete and to be reported to the wait that ends, and their names to the source.
    #[inline(never)]
    pub fn take_reports(&mut self, rank: u32) {
        let complete = std::mem::take(&mut self.reports(rank).complete);
        let requests = &self.ranks[rank as usize].requests;
        let names: Vec<RequestId> = complete.iter().filter_map(|slot| requests.name(*slot)).collect();
        self.reports(rank).ended.extend(names);
        self.rank(rank).awaited = complete;
    }
}
