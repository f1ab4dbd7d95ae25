//! Waits: until enough of a list of requests is complete.

use std::cmp::Reverse;

use super::request::{PENDING, Quorum, Request, SOURCE, Wait};
use super::transfer::Stage;
use crate::kernel::NONE;
use crate::mpi::collective::nonblocking::{self, Operation};
use crate::mpi::messaging::Messaging;
use crate::mpi::rank::{Activity, Blocked, Completion, RankState};
use crate::observe::WaitRecord;
use crate::units::{Instant, Picoseconds};

impl Messaging {
    /// `rank` waits for the requests it has listed in `awaited`; it is `now`. If the wait is over at once, the rank is
    /// resumed.
    #[inline]
    pub fn wait(&mut self, rank: u32, wait: Wait, now: u64) {
        self.rank(rank).blocked = Blocked::Requests(wait);
        if wait.missing == 0 {
            self.end_wait(rank, now);
        }
    }

    /// `rank` waits for all the requests it has listed in `awaited`, from `since` on.
    pub fn wait_for_all(&mut self, rank: u32, now: u64, since: u64) {
        let RankState { requests, awaited, .. } = self.rank(rank);
        let mut pending = 0;
        for slot in awaited.iter() {
            let request = requests.get_mut(*slot);
            request.waited = true;
            pending += u32::from(request.complete_at == PENDING);
        }
        let wait = Wait::new(Quorum::All, awaited.len(), pending, since);
        self.wait(rank, wait, now);
    }

    /// The wait of `rank` is over.
    pub fn end_wait(&mut self, rank: u32, now: u64) {
        let blocked = std::mem::replace(&mut self.rank(rank).blocked, Blocked::Not);
        let Blocked::Requests(wait) = blocked else { unreachable!("invariant: the rank waits") };
        let waited = wait.quorum == Quorum::All || self.choose_awaited(rank, wait.quorum);
        let end = now.max(wait.since);
        let message = if self.record.is_some() { self.record_ended(rank, end) } else { None };
        let RankState { requests, awaited, .. } = &mut self.ranks[rank as usize];
        let (mut receives, mut last, mut partner_at) = (0, 0, 0);
        for slot in &*awaited {
            let request = requests.end(*slot);
            receives += u64::from(request.receive);
            if request.complete_at >= last {
                (last, partner_at) = (request.complete_at, request.partner_at);
            }
        }
        awaited.clear();
        if waited {
            self.account_wait(rank, (wait.since, end), partner_at, message);
        }
        self.resume(rank, end + receives * self.parameters.receive_overhead.0);
    }

    /// Leaves in `awaited` what a wait for less than all ends. Returns whether the rank has waited: while a device works it computes.
    #[inline(never)]
    fn choose_awaited(&mut self, rank: u32, quorum: Quorum) -> bool {
        if quorum == Quorum::Reported {
            self.take_reports(rank);
            return self.ranks[rank as usize].activity != Activity::Compute;
        }
        let RankState { requests, awaited, .. } = &mut self.ranks[rank as usize];
        let mut taken = false;
        awaited.retain(|slot| {
            let request = requests.get_mut(*slot);
            request.waited = false;
            let ends = request.complete_at != PENDING && !(taken && quorum == Quorum::Any);
            taken |= ends;
            ends
        });
        true
    }

    /// Splits blocked time into the part before the partner had done its own, and the rest. `message` is what ended it, if there
    /// is a record that knows it, and whether the rank received that.
    #[inline]
    pub fn account_wait(&mut self, rank: u32, (since, end): (u64, u64), partner_at: u64, message: Option<(u64, bool)>) {
        let late = partner_at.clamp(since, end) - since;
        let state = self.rank(rank);
        state.record.late_partner += Picoseconds(late);
        state.record.network += Picoseconds(end - since - late);
        let (job, name, activity) = (state.job, state.rank, state.activity);
        let (Some(record), Activity::Call(call)) = (self.record_of(rank), activity) else { return };
        let (message, receiver) = message.unzip();
        let (since, end, partner_at) = (Instant(since), Instant(end), Instant(partner_at));
        record.waited(WaitRecord {
            job,
            rank: name,
            call,
            since,
            end,
            partner_at,
            message,
            receiver: receiver == Some(true),
        });
    }
}

impl Messaging {
    /// A request of `rank` is complete.
    #[inline(always)]
    pub fn complete(&mut self, rank: u32, slot: u32, now: u64) {
        let completion = self.rank(rank).complete(slot, None, now);
        self.follow(completion, rank, slot, now);
    }

    /// Carries out the consequence of the completion of a request of `rank`.
    #[inline(always)]
    pub fn follow(&mut self, completion: Completion, rank: u32, slot: u32, now: u64) {
        match completion {
            Completion::Noted => {}
            Completion::EndsWait => self.end_wait(rank, now),
            Completion::Detached => self.complete_detached(rank, slot, now),
        }
    }

    pub fn operation(&mut self, rank: u32, number: u32) -> Option<&mut Box<Operation>> {
        self.rank(rank).more_mut()?.background.operations.get_mut(number as usize)?.as_mut()
    }

    /// A request that nobody waits for is complete, and over.
    #[cold]
    fn complete_detached(&mut self, rank: u32, slot: u32, now: u64) {
        if self.rank(rank).requests.get(slot).owner == SOURCE {
            self.report_completion(rank, slot, now);
            return;
        }
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
    pub fn end_phase_in_background(&mut self, rank: u32, number: u32, now: u64) {
        let Some(operation) = self.operation(rank, number) else { return };
        let at = now.max(operation.handed_at) + std::mem::take(&mut operation.running.combining);
        let key = nonblocking::step_key(rank, operation.order);
        let job = self.ranks[rank as usize].job;
        self.own_memory().push(Reverse((at, key, number, Stage::Step)));
        self.in_memory += 1;
        self.jobs[job.index()].in_flight += 1;
    }
}
