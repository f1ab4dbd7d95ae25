//! The state of message passing in one shard: its ranks, and the transfers that they take part in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::collective::agreement::{Agreements, Key};
use super::collective::algorithms::{Phase, Preferences};
use super::collective::nccl::{Layout, Setup};
use super::comm::context::{Contexts, Order};
use super::naming::Naming;
use super::p2p::memory::MemoryLinks;
use super::p2p::rails::RailSelection;
use super::p2p::transfer::{RankPlace, Stage, Transfers, Transits};
use super::parameters::Parameters;
use super::rank::{NEVER, RankState};
use super::words;
use crate::error::RunError;
use crate::ids::{HostId, JobId, Rank};
use crate::network::Injection;
use crate::observe::{JobRecord, Latencies, Mark, PendingMarks};
use crate::program::Op;
use crate::qos::levels::{Levels, Sl2Vl};
use crate::units::{Bytes, Instant};

/// State of the MPI library for the ranks of one shard: everything but their programs. Ranks and transfers have the names
/// that [`super::naming`] describes.
#[derive(Clone)]
pub(super) struct Messaging {
    pub parameters: Arc<Parameters>,
    pub preferences: Preferences,
    /// A send of more is an error.
    pub largest_message: Bytes,
    pub levels: Arc<Levels>,
    pub sl2vl: Sl2Vl,
    pub rails: RailSelection,
    pub naming: Naming,
    /// Where the ranks of all jobs are, by job, then rank.
    pub places: Arc<[RankPlace]>,
    /// Ranks of this shard whose computations take longer, and how many times as long, in thousandths.
    pub slow: FxHashMap<u32, u32>,
    pub residence: Arc<Residence>,
    pub jobs: Vec<Job>,
    pub agreements: Agreements,
    /// The collective on which a rank of this shard has disagreed, which ends the run.
    pub disagreement: Option<Key>,
    /// The members of a communicator that share a host: of jobs whose collectives are NCCL's. By job, context and number of members,
    /// as a wrong program can give two ranks different members.
    pub layouts: FxHashMap<(JobId, u32, u32), Arc<Layout>>,
    pub contexts: Arc<Contexts>,
    /// The shard's ranks, by job, then rank.
    pub ranks: Vec<RankState>,
    /// The host that runs, and the end of the window.
    pub host: HostId,
    pub until: Instant,
    /// Transfers through the memory of each host, and how many there are in all.
    pub memory: Vec<BinaryHeap<Reverse<MemoryEnd>>>,
    pub in_memory: u32,
    pub memory_links: MemoryLinks,
    /// Messages of one rank of this shard to another can overtake each other in the network, so they are numbered. Those within
    /// a host always are: through memory a short message overtakes a long one.
    pub numbering: bool,
    /// Numbering has started since the last report.
    pub numbering_started: bool,
    /// Jobs of which a rank has stopped being active, or a message has come while none was, since the last report.
    pub quiescent: Vec<JobId>,
    pub transfers: Transfers,
    /// Transfers that go to other shards with a message: by shard, their ids and records.
    pub departing: Vec<Transits>,
    /// Messages that the host that runs now sends.
    pub outbox: Vec<Injection>,
    /// Order of transfers through memory, and of requests for contexts.
    pub sequence: u64,
    /// Of messages that came through the network and that their hosts have looked at.
    pub latencies: Latencies,
    /// Iterations that the shard's ranks of a job have completed since the last report.
    pub completed: Vec<(JobId, u64, Mark)>,
    /// A message that was given from outside is complete.
    pub completed_outside: bool,
    /// Records of single messages, waits and operations, if these are asked for.
    pub record: Option<Box<JobRecord>>,
    /// The phase of a collective that starts now, and its requests; the buffers are used again.
    pub phase: Phase,
    pub slots: Vec<u32>,
}

/// The end of a transfer through memory: time, order, transfer, stage. Or a step that is due: time, key, number, stage.
pub(super) type MemoryEnd = (u64, u64, u32, Stage);

/// The ranks of each host, as names in the host's shard.
#[derive(Debug)]
pub(super) struct Residence {
    /// Where each host's ranks start in `residents`; one more at the end.
    pub first: Vec<u32>,
    /// Ranks by host, ascending.
    pub residents: Vec<u32>,
    /// The rank of each host that has just one; [`crate::kernel::NONE`] for the others.
    pub alone: Vec<u32>,
    /// The number of each host among those of its shard; empty where there is one shard.
    pub numbers: Vec<u32>,
}

/// When an operation is over: now, at a later instant, or [`NEVER`] if its rank is blocked or has been resumed already.
pub(super) type Over = Result<u64, Box<RunError>>;

/// A job, and what the ranks of one shard have done of it.
#[derive(Clone)]
pub(super) struct Job {
    pub name: Arc<str>,
    /// Its collectives are NCCL's.
    pub nccl: Option<Arc<Setup>>,
    /// Its ranks stand at consecutive [`Messaging::places`], from here on.
    pub first: u32,
    /// All of its ranks.
    pub size: u32,
    /// When its programs begin.
    pub start: Instant,
    /// The instant from which on its ranks do nothing more, or [`NEVER`].
    pub stop: u64,
    /// Packets of it were given up: what comes now may not have come.
    pub failed: bool,
    /// The instants of every rank's marks are kept.
    pub marks: bool,
    /// Ranks of this shard whose programs run or are due.
    pub active: u32,
    /// Ranks of this shard that have finished.
    pub finished: u32,
    /// Messages that its ranks in this shard have sent, less those that they have received.
    pub in_flight: i64,
    /// The last host that has noted the job as quiescent since the last report.
    pub quiescent_at: Option<HostId>,
    /// The last report of `active` and `in_flight`; see [`super::report`].
    pub reported: (i64, u32),
    /// The iterations that some of its ranks in this shard have marked.
    pub marked: PendingMarks,
}

impl Job {
    /// No rank of this shard is active, or one has finished, as is seen while `host` runs: whether that is so of all is looked at when
    /// the window ends.
    #[inline]
    pub fn note_quiescent(&mut self, id: JobId, host: HostId, quiescent: &mut Vec<JobId>) {
        if self.quiescent_at.replace(host).is_none() {
            quiescent.push(id);
        }
    }
}

impl Messaging {
    /// Where the ranks of a host stand in the list of residents.
    #[inline]
    pub fn residents(&self, host: HostId) -> Range<usize> {
        self.residence.first[host.index()] as usize..self.residence.first[host.index() + 1] as usize
    }

    /// Where a rank of a job is.
    #[inline(always)]
    pub fn place(&self, job: JobId, rank: Rank) -> RankPlace {
        self.places[(self.jobs[job.index()].first + rank.0) as usize]
    }

    /// The transfers through the memory of the host that runs.
    #[inline]
    pub fn own_memory(&mut self) -> &mut BinaryHeap<Reverse<MemoryEnd>> {
        let number = self.residence.numbers.get(self.host.index()).copied();
        &mut self.memory[number.map_or(self.host.index(), |number| number as usize)]
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

    /// Resumes the program of `rank`, which is blocked or runs now, at `at`.
    #[inline]
    pub fn resume(&mut self, rank: u32, at: u64) {
        let state = &mut self.ranks[rank as usize];
        if state.due == NEVER {
            self.jobs[state.job.index()].active += 1;
        }
        state.due = at;
    }

    /// A message between ranks of `job` has arrived; with its last packet it is no longer in flight.
    pub fn count_arrival(&mut self, job: JobId, last: bool) {
        let state = &mut self.jobs[job.index()];
        state.in_flight -= i64::from(last);
        if state.active == 0 {
            state.note_quiescent(job, self.host, &mut self.quiescent);
        }
    }

    /// The present point of the simulation, of which each is given once.
    pub fn order(&mut self) -> Order {
        self.sequence += 1;
        (self.until.0, self.host, self.sequence)
    }

    /// The record, if the job of `rank` is in it.
    #[inline(always)]
    pub fn record_of(&mut self, rank: u32) -> Option<&mut JobRecord> {
        let record = self.record.as_deref_mut()?;
        record.includes(self.ranks[rank as usize].job).then_some(record)
    }

    /// The error of `rank` in `op`.
    #[cold]
    #[inline(never)]
    pub fn misuse(&self, rank: u32, op: &Op, problem: impl Into<String>) -> Box<RunError> {
        let state = &self.ranks[rank as usize];
        Box::new(RunError::Program {
            job: self.jobs[state.job.index()].name.to_string(),
            rank: state.rank,
            operation: words::of(op),
            problem: problem.into(),
        })
    }
}
