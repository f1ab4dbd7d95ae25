//! Mail of shards to each other when a window ends: transfers, and reports, of which each shard keeps the sums by job.
//!
//! A message in the network carries a number only. The transfer that the number stands for is sent as mail, which is delivered when the
//! window ends, before the message.
//!
//! A shard counts the active ranks and the messages of its own part of each job. Whether a job can still make progress depends
//! on all shards: each keeps the same sums, to which every shard reports its changes.

use super::MpiShard;
use super::collective::agreement::{AgreementReport, Mismatch};
use super::messaging::{Job, Messaging};
use super::naming::Naming;
use super::p2p::transfer::Transits;
use crate::ids::{HostId, JobId};
use crate::observe::{JobMarks, Mark};
use crate::units::Instant;

/// Stands for ranks that are active: more than there are messages in flight.
const ACTIVE: i64 = 1 << 48;

/// Mail from one shard to another when a window ends.
#[derive(Clone, Debug, Default)]
pub struct Mail {
    /// Transfers with a message in flight to the other shard.
    transfers: Transits,
    /// The numbers of transfers of the receiving shard that have ended in the sending one.
    ended: Vec<u32>,
    /// Iterations that the ranks of this shard have completed; to the first shard only.
    completed: Vec<(JobId, u64, Mark)>,
    report: Report,
}

impl MpiShard {
    /// Moves to `mail`, which is empty, what another shard must know of the window that has been run.
    pub(super) fn write(&mut self, shard: usize, mail: &mut Mail) {
        mail.report.clone_from(self.report());
        std::mem::swap(&mut self.messaging.departing[shard], &mut mail.transfers);
        self.messaging.transfers.take_ended(shard, &mut mail.ended);
        if shard == 0 {
            std::mem::swap(&mut self.messaging.completed, &mut mail.completed);
        }
    }

    /// Takes everything out of the mail of another shard.
    pub(super) fn read(&mut self, shard: usize, mail: &mut Mail) {
        let messaging = &mut self.messaging;
        let there = Naming::new(shard, messaging.departing.len());
        messaging.transfers.accept_all(&mut mail.transfers, there);
        messaging.transfers.end(&mut mail.ended);
        messaging.completed.append(&mut mail.completed);
        if !mail.report.is_empty() {
            self.reports.push((shard, std::mem::take(&mut mail.report)));
        }
    }
}

/// Report of one shard to all others.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    jobs: Vec<JobReport>,
    agreements: Vec<AgreementReport>,
    /// The messages of its ranks are numbered from this window on.
    numbering: bool,
}

/// How much more a shard adds to the sums of a job than before.
#[derive(Clone, Copy, Debug)]
struct JobReport {
    job: JobId,
    /// See [`JobTotal::left`].
    left: i64,
    finished: u32,
    /// The last of the shard's hosts that has changed it.
    host: HostId,
}

/// A job over all shards.
#[derive(Clone, Debug)]
pub(super) struct JobTotal {
    /// The sum of what may still happen by itself in each shard: [`ACTIVE`] if the shard has an active rank, else the messages that
    /// its ranks have sent less those that they have received. At zero, nothing is left to happen.
    pub left: i64,
    pub finished: u32,
    /// It has been stopped, and nothing of it is left to happen.
    pub ended: bool,
    /// The iterations that it completed; kept by the first shard.
    pub completed: JobMarks,
}

/// Why a run must end, as seen when a window has been run, and the host whose run shows it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub host: HostId,
    pub what: FaultKind,
}

/// The kinds of faults, by which one comes first of those of a host.
#[derive(Clone, Debug)]
pub(super) enum FaultKind {
    /// Ranks of different shards have called different collectives.
    Mismatch(Mismatch),
    /// A job has ended and left a collective that not all members had called.
    Deserted(JobId),
    /// A job cannot make progress.
    Stuck(JobId),
}

impl Report {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.agreements.is_empty() && !self.numbering
    }
}

impl FaultKind {
    /// Its place among the faults of one host, between which those lie that end the host's run: they have place 1.
    pub const fn place(&self) -> (u8, u16) {
        match self {
            Self::Mismatch(_) => (0, 0),
            Self::Deserted(job) => (2, job.0),
            Self::Stuck(job) => (3, job.0),
        }
    }
}

impl Job {
    /// This shard's part of [`JobTotal::left`].
    pub fn left(&self) -> i64 {
        if self.active > 0 { ACTIVE } else { self.in_flight }
    }
}

impl Messaging {
    /// Adds to a report what has changed since the last, but for what is reported only to the first shard.
    pub fn report(&mut self, report: &mut Report) {
        report.numbering |= std::mem::take(&mut self.numbering_started);
        self.agreements.report(&mut report.agreements);
        let jobs = &mut self.jobs;
        report.jobs.extend(self.quiescent.drain(..).filter_map(|id| {
            let job = &mut jobs[id.index()];
            let (left, finished) = (job.left(), job.finished);
            let before = std::mem::replace(&mut job.reported, (left, finished));
            let host = job.quiescent_at.take()?;
            Some(JobReport { job: id, left: left - before.0, finished: finished - before.1, host })
        }));
    }
}

impl MpiShard {
    /// This shard's report of the window that has been run.
    pub(super) fn report(&mut self) -> &Report {
        self.messaging.report(&mut self.report);
        &self.report
    }

    /// Adds what all shards have reported of the window that ends at `until`. Returns whether the run must end.
    pub(super) fn add_reports(&mut self, until: Instant) -> bool {
        self.report();
        if self.report.is_empty() && self.reports.is_empty() && self.messaging.completed.is_empty() {
            return !self.faults.is_empty();
        }
        let own = std::mem::take(&mut self.report);
        let others = std::mem::take(&mut self.reports);
        let (shard, _) = self.messaging.naming.place(0);
        for (from, report) in std::iter::once((shard, &own)).chain(others.iter().map(|(from, report)| (*from, report)))
        {
            if report.numbering {
                self.messaging.number_under_way(from);
            }
            for JobReport { job, left, finished, .. } in &report.jobs {
                let total = &mut self.totals[job.index()];
                (total.left, total.finished) = (total.left + left, total.finished + finished);
            }
            if from != shard {
                report.agreements.iter().for_each(|report| self.messaging.agreements.merge(report));
            }
        }
        for (job, iteration, mark) in self.messaging.completed.drain(..) {
            self.totals[job.index()].completed.mark(iteration, mark);
        }
        let all = || std::iter::once(&own).chain(others.iter().map(|(_, report)| report));
        let changed: Vec<JobReport> = all().flat_map(|report| report.jobs.iter().copied()).collect();
        self.find_faults(&changed, until);
        for report in all().flat_map(|report| &report.agreements) {
            if let Some(key) = self.messaging.agreements.end(report) {
                self.messaging.contexts.over(key);
            }
        }
        !self.faults.is_empty()
    }

    /// Looks at the jobs that may have run out of what happens by itself.
    fn find_faults(&mut self, changed: &[JobReport], until: Instant) {
        if let Some(mismatch) = self.messaging.agreements.mismatch() {
            self.faults.push(Fault { host: mismatch.host, what: FaultKind::Mismatch(mismatch) });
        }
        for JobReport { job: id, finished, .. } in changed {
            let (total, job) = (&mut self.totals[id.index()], &self.messaging.jobs[id.index()]);
            let what = if total.finished == job.size {
                let deserted = *finished > 0
                    && until.0 < job.stop
                    && self.messaging.agreements.deserted(*id, |context| context).is_some();
                deserted.then_some(FaultKind::Deserted(*id))
            } else {
                // A rank of a job that has been stopped may wait for ever for one that does nothing more.
                let over = total.left == 0;
                total.ended |= over && job.stop <= until.0;
                (over && !total.ended).then_some(FaultKind::Stuck(*id))
            };
            let hosts = changed.iter().filter(|report| report.job == *id).map(|report| report.host);
            self.faults.extend(what.zip(hosts.max()).map(|(what, host)| Fault { host, what }));
        }
    }
}
