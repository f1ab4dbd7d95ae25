//! Waits: until enough of a list of requests is complete.

use super::Mpi;
use super::request::{PENDING, Quorum, Wait};
use crate::units::Picoseconds;

impl Mpi {
    /// `rank` waits for the requests it has listed in `awaited`, from `since` on; it is `now`. If the wait is over at once,
    /// the rank is resumed.
    pub(super) fn wait(&mut self, rank: u32, quorum: Quorum, now: u64, since: u64) {
        let state = self.rank(rank);
        let mut pending = 0;
        for (slot, _) in &state.awaited {
            let request = state.requests.get_mut(*slot);
            request.waited = true;
            pending += usize::from(request.complete_at == PENDING);
        }
        let wait = Wait { quorum, count: state.awaited.len(), pending, since };
        state.wait = Some(wait);
        if wait.is_over() {
            self.end_wait(rank, now);
        }
    }

    /// `rank` waits for one request.
    pub(super) fn wait_one(&mut self, rank: u32, slot: u32, now: u64, since: u64) {
        self.rank(rank).awaited.push((slot, None));
        self.wait(rank, Quorum::All, now, since);
    }

    /// One of the requests that `rank` waits for has become complete.
    pub(super) fn one_less(&mut self, rank: u32, now: u64) {
        let Some(wait) = &mut self.rank(rank).wait else { return };
        wait.pending -= 1;
        if wait.is_over() {
            self.end_wait(rank, now);
        }
    }

    fn end_wait(&mut self, rank: u32, now: u64) {
        let receive_overhead = self.parameters.receive_overhead.0;
        let state = self.rank(rank);
        let Some(wait) = state.wait.take() else { return };
        let mut receives = 0;
        let (mut last, mut partner_at) = (0, 0);
        let mut taken = false;
        for (slot, name) in state.awaited.drain(..) {
            let request = state.requests.get_mut(slot);
            request.waited = false;
            if request.complete_at == PENDING || (wait.quorum == Quorum::Any && taken) {
                continue;
            }
            taken = true;
            receives += u64::from(request.receive);
            if request.complete_at >= last {
                (last, partner_at) = (request.complete_at, request.partner_at);
            }
            if let Some(name) = name {
                state.requests.forget_name(name);
            }
            state.requests.release(slot);
        }
        let end = now.max(wait.since);
        self.account_wait(rank, wait.since, end, partner_at);
        self.resume(rank, end + receives * receive_overhead);
    }

    /// Splits blocked time into the part before the partner had done its own, and the rest.
    pub(super) fn account_wait(&mut self, rank: u32, since: u64, end: u64, partner_at: u64) {
        let late = partner_at.clamp(since, end) - since;
        let record = &mut self.records[rank as usize];
        record.late_partner += Picoseconds(late);
        record.network += Picoseconds(end - since - late);
    }
}
