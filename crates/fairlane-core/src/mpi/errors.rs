//! The error that ends a run: the first of those that the shards have found in its last window.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::collective::agreement::Mismatch;
use super::report::{Fault, FaultKind};
use super::{Mpi, MpiShard, words};
use crate::error::{RunError, StuckRank};
use crate::ids::{JobId, Rank};
use crate::network::Endpoint;
use crate::units::Instant;

impl Mpi {
    /// How a run has ended for which the network has returned `result`: the error of the host that comes first is that of the
    /// run, whichever shard has found it.
    ///
    /// # Errors
    /// That error.
    pub fn conclude(&mut self, result: Result<bool, RunError>) -> Result<bool, RunError> {
        if result.is_ok() && self.shards[0].faults.is_empty() {
            return result;
        }
        let until = self.shards.iter().map(|shard| shard.messaging.until).max().unwrap_or(Instant::ZERO);
        if result.is_err() {
            self.end_window(until);
        }
        let failed = self.shards.iter().filter_map(|shard| Some((shard.failed.as_ref()?.0, shard)));
        let failed = failed.min_by_key(|(host, _)| *host);
        let fault = self.shards[0].faults.iter().min_by_key(|fault| (fault.host, fault.what.place()));
        match (failed, fault) {
            (None, None) => result,
            (_, Some(fault)) if failed.is_none_or(|(host, _)| (fault.host, fault.what.place()) < (host, (1, 0))) => {
                Err(self.fault(fault, until))
            }
            (Some((_, shard)), _) => Err(shard.failure()),
            (None, Some(fault)) => Err(self.fault(fault, until)),
        }
    }

    /// Checks that no more messages are under way than may be.
    ///
    /// # Errors
    /// [`RunError::TooManyMessages`] names the rank that has sent most of them.
    pub fn check_messages(&self, at: Instant) -> Result<(), RunError> {
        let messages = self.messages();
        let limit = self.shards[0].messaging.parameters.max_messages;
        if messages <= limit {
            return Ok(());
        }
        let mut sent: BTreeMap<(JobId, Rank), u64> = BTreeMap::new();
        for messaging in self.shards.iter().map(|shard| &shard.messaging) {
            for transfer in messaging.transfers.under_way() {
                let sender = &messaging.ranks[transfer.from as usize];
                *sent.entry((sender.job, sender.rank)).or_default() += 1;
            }
        }
        let most = sent.into_iter().max_by_key(|((job, rank), count)| (*count, Reverse((*job, *rank))));
        let ((job, rank), own) = most.unwrap_or_default();
        Err(RunError::TooManyMessages { at, messages, limit, job: self.job_name(job).to_owned(), rank, own })
    }

    /// How many messages have been sent and not received.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.kept()))
    }

    /// All shards tell each other what has happened in the window that ends at `until`, if they have not.
    pub fn end_window(&mut self, until: Instant) -> bool {
        let mut mail = super::Mail::default();
        for from in 0..self.shards.len() {
            for to in (0..self.shards.len()).filter(|to| *to != from) {
                self.shards[from].post(to, &mut mail);
                self.shards[to].accept(from, &mut mail);
            }
        }
        let ends: Vec<bool> = self.shards.iter_mut().map(|shard| shard.end_window(until)).collect();
        ends.contains(&true)
    }

    /// A fault as an error.
    fn fault(&self, fault: &Fault, until: Instant) -> RunError {
        let messaging = &self.shards[0].messaging;
        let shown = |job, context| messaging.contexts.shown(job, context);
        match &fault.what {
            FaultKind::Stuck(job) => self.stuck(*job, until),
            FaultKind::Mismatch(Mismatch { key: (job, context, number), first, second, .. }) => {
                RunError::CollectiveMismatch {
                    job: self.job_name(*job).to_owned(),
                    communicator: shown(*job, *context),
                    number: *number,
                    first: first.clone(),
                    second: second.clone(),
                }
            }
            FaultKind::Deserted(job) => {
                let deserted = messaging.agreements.deserted(*job, |context| shown(*job, context));
                let ((_, context, number), first, arrived) = deserted.expect("invariant: it was found before");
                let second = format!("only {arrived} of its ranks ever called a collective there");
                let communicator = shown(*job, context);
                RunError::CollectiveMismatch {
                    job: self.job_name(*job).to_owned(),
                    communicator,
                    number,
                    first,
                    second,
                }
            }
        }
    }

    /// A job that cannot make progress: its unfinished ranks and their operations.
    fn stuck(&self, id: JobId, at: Instant) -> RunError {
        let mut ranks = Vec::new();
        for (shard, number, _) in self.ranks(id).filter(|(shard, number, _)| !shard.messaging.ranks[*number].finished) {
            let rank = shard.messaging.ranks[number].rank;
            let op = shard.sources[number].current();
            let own = shard.sources[number].waits_for().or_else(|| op.map(words::of)).unwrap_or_default();
            let name = super::count(number);
            let asked = op.and_then(|op| shard.messaging.lock_asked_for(name, op));
            let lock = asked.and_then(|(context, target)| {
                let (home, number) = self.locate(shard.messaging.jobs[id.index()].first + target.0);
                self.shards[home].messaging.describe_lock(super::count(number), context)
            });
            let background = shard.messaging.describe_background(name);
            let operation: Vec<String> = std::iter::once(own).chain(lock).chain(background).collect();
            ranks.push(StuckRank { job: id, rank, operation: operation.join(", ") });
        }
        RunError::Stuck { job: self.job_name(id).to_owned(), at, ranks }
    }
}

impl MpiShard {
    /// The error that has ended the run of a host. Of two different calls of a collective the first may be another shard's.
    fn failure(&self) -> RunError {
        let mut error = self.failed.as_ref().expect("invariant: the shard has failed").1.clone();
        if let (RunError::CollectiveMismatch { communicator, first, .. }, Some(key)) =
            (&mut error, self.messaging.disagreement)
        {
            *communicator = self.messaging.contexts.shown(key.0, key.1);
            *first = self.messaging.agreements.first(key).unwrap_or_else(|| first.clone());
        }
        error
    }
}
