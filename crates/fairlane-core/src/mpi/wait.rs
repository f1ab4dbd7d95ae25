//! Waits: until enough of a list of requests is complete.

use super::messaging::Messaging;
use super::rank::{Activity, Blocked, RankState};
use super::request::{PENDING, Quorum, Wait};
use crate::observe::WaitRecord;
use crate::units::{Instant, Picoseconds};

impl Messaging {
    /// `rank` waits for the requests it has listed in `awaited`; it is `now`. If the wait is over at once, the rank is
    /// resumed.
    #[inline]
    pub(super) fn wait(&mut self, rank: u32, wait: Wait, now: u64) {
        if wait.missing > 0 {
            self.rank(rank).blocked = Blocked::Requests(wait);
        } else {
            self.end_wait(rank, wait, now);
        }
    }

    /// `rank` waits for all the requests it has listed in `awaited`, from `since` on.
    pub(super) fn wait_for_all(&mut self, rank: u32, now: u64, since: u64) {
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
    pub(super) fn end_wait(&mut self, rank: u32, wait: Wait, now: u64) {
        let RankState { requests, awaited, blocked, .. } = &mut self.ranks[rank as usize];
        *blocked = Blocked::Not;
        if wait.quorum != Quorum::All {
            let mut taken = false;
            awaited.retain(|slot| {
                let request = requests.get_mut(*slot);
                request.waited = false;
                let ends = request.complete_at != PENDING && !(taken && wait.quorum == Quorum::Any);
                taken |= ends;
                ends
            });
        }
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
        self.account_wait(rank, (wait.since, end), partner_at, message);
        self.resume(rank, end + receives * self.parameters.receive_overhead.0);
    }

    /// Splits blocked time into the part before the partner had done its own, and the rest. `message` is what ended it, if there
    /// is a record that knows it, and whether the rank received that.
    #[inline]
    pub(super) fn account_wait(
        &mut self,
        rank: u32,
        (since, end): (u64, u64),
        partner_at: u64,
        message: Option<(u64, bool)>,
    ) {
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
