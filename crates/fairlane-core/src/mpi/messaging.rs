//! The state of message passing: jobs, ranks, and the transfers between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::collectives::{Phase, Preferences};
use super::communicator::Agreements;
use super::rails::Rails;
use super::rank::{NEVER, RankState};
use super::transfer::{Stage, Transfer};
use super::{Parameters, words};
use crate::error::RunError;
use crate::ids::{HostId, JobId};
use crate::kernel::Pool;
use crate::network::Injection;
use crate::observe::{JobMarks, Latencies, Record};
use crate::program::Op;
use crate::qos::levels::{Levels, Sl2Vl};
use crate::units::Bytes;

/// What the MPI library knows of all ranks: everything but their programs.
#[derive(Clone)]
pub(super) struct Messaging {
    pub parameters: Arc<Parameters>,
    pub preferences: Preferences,
    /// A send of more is an error.
    pub largest_message: Bytes,
    pub levels: Levels,
    pub sl2vl: Sl2Vl,
    pub rails: Rails,
    pub jobs: Vec<Job>,
    pub ranks: Vec<RankState>,
    /// The host of each rank, by rank over all jobs.
    pub hosts: Vec<HostId>,
    /// Where each host's ranks start in `residents`; one more at the end.
    pub first_resident: Vec<u32>,
    /// Ranks over all jobs, by host, ascending.
    pub residents: Vec<u32>,
    /// The rank of each host that has just one; [`crate::kernel::NONE`] for the others.
    pub alone: Vec<u32>,
    /// Transfers through the memory of each host, and how many there are in all.
    pub memory: Vec<BinaryHeap<Reverse<MemoryEnd>>>,
    pub in_memory: u32,
    /// Messages of one rank to another can overtake each other in the network, so they are numbered. Those within a host
    /// always are: through memory a short message overtakes a long one.
    pub numbering: bool,
    /// A job has run out of active ranks or of messages under way since this was looked at.
    pub quiescent: bool,
    pub transfers: Pool<Transfer>,
    /// What the host that runs now sends.
    pub outbox: Vec<Injection>,
    /// Order of transfers through memory.
    pub sequence: u64,
    /// Of messages that came through the network and that their hosts have looked at.
    pub latencies: Latencies,
    /// What is kept of the messages and waits of one job, if that is asked for.
    pub record: Option<Box<Record>>,
    /// The phase of a collective that starts now, and its requests; the buffers are used again.
    pub phase: Phase,
    pub slots: Vec<u32>,
}

/// The end of a transfer through memory: time, order, transfer, stage. Or a step that is due: time, key, number, stage.
pub(super) type MemoryEnd = (u64, u64, u32, Stage);

/// A job: its ranks are consecutive in [`Messaging::ranks`].
#[derive(Clone)]
pub(super) struct Job {
    pub name: String,
    pub first: u32,
    pub size: u32,
    /// Ranks that will go on by themselves.
    pub active: u32,
    pub finished: u32,
    /// Messages between its ranks that are under way.
    pub in_flight: u64,
    pub agreements: Agreements,
    /// The instant from which on its ranks do nothing more, or [`NEVER`].
    pub stop: u64,
    /// It has been stopped, and nothing of it is left to happen.
    pub ended: bool,
    /// The instants of every rank's marks are kept.
    pub marks: bool,
    /// When it completed its iterations.
    pub completed: JobMarks,
}

impl Messaging {
    /// Where the ranks of a host stand in the list of residents.
    #[inline]
    pub fn places(&self, host: HostId) -> Range<usize> {
        self.first_resident[host.index()] as usize..self.first_resident[host.index() + 1] as usize
    }

    /// The rank, as an index over all jobs, that is rank `rank` of the job of `of`.
    #[inline]
    pub fn peer(&self, of: u32, rank: u32) -> u32 {
        of - self.ranks[of as usize].rank.0 + rank
    }

    #[inline]
    pub fn rank(&mut self, rank: u32) -> &mut RankState {
        &mut self.ranks[rank as usize]
    }

    #[inline]
    pub fn job_of(&mut self, rank: u32) -> &mut Job {
        let job = self.ranks[rank as usize].job;
        &mut self.jobs[job.index()]
    }

    /// Has the program of `rank`, which is blocked or runs now, go on at `at`.
    #[inline]
    pub fn resume(&mut self, rank: u32, at: u64) {
        let state = &mut self.ranks[rank as usize];
        if state.due == NEVER {
            self.jobs[state.job.index()].active += 1;
        }
        state.due = at;
    }

    /// A message between ranks of `job` is no longer under way.
    #[inline]
    pub fn landed(&mut self, job: JobId) {
        let job = &mut self.jobs[job.index()];
        job.in_flight -= 1;
        self.quiescent |= job.in_flight == 0;
    }

    /// The record, if it is of the job of `rank`.
    #[inline(always)]
    pub fn record_of(&mut self, rank: u32) -> Option<&mut Record> {
        let record = self.record.as_deref_mut()?;
        (record.job() == self.ranks[rank as usize].job).then_some(record)
    }

    /// What `rank` did wrong in `op`, as an error.
    #[cold]
    #[inline(never)]
    pub fn misuse(&self, rank: u32, op: &Op, problem: impl Into<String>) -> Box<RunError> {
        let state = &self.ranks[rank as usize];
        Box::new(RunError::Program {
            job: self.jobs[state.job.index()].name.clone(),
            rank: state.rank,
            operation: words::of(op),
            problem: problem.into(),
        })
    }
}
