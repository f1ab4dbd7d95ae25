//! Messages that are given from outside between two windows ([`crate::program::stepped`]).

use super::p2p::request::SOURCE;
use super::p2p::transfer::Stage;
use super::{Mpi, count};
use crate::ids::{HostId, JobId, Rank};
use crate::program::RequestId;
use crate::program::stepped::{Message, Stepped};
use crate::units::{Bytes, Instant};

impl Mpi {
    /// Ranks of a job that take messages from outside; `None` if its program does not.
    pub fn stepped_ranks(&mut self, job: JobId) -> Option<u32> {
        self.stepped(job, Rank(0))?;
        Some(self.shards[0].messaging.jobs[job.index()].size)
    }

    /// The largest message that may be sent.
    #[must_use]
    pub fn largest_message(&self) -> Bytes {
        self.shards[0].messaging.largest_message
    }

    /// Whether a message from outside has become complete since [`Mpi::pause_on_completion`].
    #[must_use]
    pub fn completed_outside(&self) -> bool {
        self.shards.iter().any(|shard| shard.messaging.completed_outside)
    }

    /// When a job's ranks begin, and the last instant at which they do something.
    #[must_use]
    pub fn first_and_last(&self, job: JobId) -> (Instant, Instant) {
        let job = &self.shards[0].messaging.jobs[job.index()];
        (job.start, Instant(job.stop - 1).min(Instant::HORIZON))
    }

    fn stepped(&mut self, job: JobId, rank: Rank) -> Option<&mut Stepped> {
        let first = self.shards[0].messaging.jobs[job.index()].first;
        let (shard, number) = self.locate(first + rank.0);
        self.shards[shard].sources[number].stepped()
    }

    /// Has a message be sent at `at`, which is not before the next window opens. Returns the hosts to be woken then.
    ///
    /// # Panics
    /// If the job does not take messages from outside.
    pub fn give(&mut self, job: JobId, message: Message, at: Instant) -> [HostId; 2] {
        [(message.to, true), (message.from, false)].map(|(rank, receives)| {
            let source = self.stepped(job, rank).expect("invariant: the job takes messages");
            let request = source.schedule(message, receives);
            self.start_timer(job, rank, request, at)
        })
    }

    /// Starts a request of a rank that is complete at `at`, and reported. Returns its host.
    fn start_timer(&mut self, job: JobId, rank: Rank, name: RequestId, at: Instant) -> HostId {
        let (shard, number) = self.locate(self.shards[0].messaging.jobs[job.index()].first + rank.0);
        let messaging = &mut self.shards[shard].messaging;
        messaging.host = messaging.place(job, rank).host;
        let (host, rank) = (messaging.host, count(number));
        let before = messaging.jobs[job.index()].left();
        let slot = messaging.begin_timer(rank, at.0, (name, Stage::Delayed), at.0);
        let request = messaging.rank(rank).requests.get_mut(slot.expect("invariant: the source gives each name once"));
        (request.detached, request.owner) = (true, SOURCE);
        let part = &mut messaging.jobs[job.index()];
        let more = part.left() - before;
        part.reported.0 += more;
        self.shards.iter_mut().for_each(|shard| shard.totals[job.index()].left += more);
        host
    }

    /// Whether runs pause after a window in which a message from outside is complete.
    pub fn pause_on_completion(&mut self, pauses: bool) {
        for shard in &mut self.shards {
            (shard.pauses, shard.messaging.completed_outside) = (pauses, false);
        }
    }

    /// Messages from outside that have become complete since the last call: when, and their handles, in this order.
    pub fn take_completed(&mut self) -> Vec<(Instant, u64)> {
        let mut all = Vec::new();
        let sources = self.shards.iter_mut().flat_map(|shard| &mut shard.sources);
        sources.filter_map(|source| source.stepped()).for_each(|stepped| stepped.take_completed(&mut all));
        all.sort_unstable();
        all
    }
}
