//! Message passing between the ranks of a job: what an MPI library does above the network.
//!
//! [`Mpi`] is the network's [`Endpoint`](crate::network::Endpoint): it runs the ranks' programs, cuts sends into
//! protocol messages, matches, and carries out collectives.

pub mod collectives;

mod collective;
mod communicator;
mod endpoint;
mod interpreter;
mod matching;
mod parameters;
mod protocol;
mod request;
mod wait;
mod words;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use parameters::Parameters;

use crate::error::RunError;
use crate::ids::{HostId, JobId, Rank};
use crate::kernel::Pool;
use crate::network::Injection;
use crate::observe::RankRecord;
use crate::program::{CommHandle, Op, Program, Source};
use crate::qos::levels::{Levels, Sl2Vl};
use crate::units::Bytes;
use collective::Running;
use communicator::{Agreements, Communicator};
use matching::{Matching, Pattern};
use protocol::Transfer;
use request::{Awaited, Requests, Wait};

/// A rank's program does not run now.
const NEVER: u64 = u64::MAX;

/// All ranks of all jobs, and what is under way between them.
#[derive(Clone)]
pub struct Mpi {
    parameters: Arc<Parameters>,
    /// A send of more is an error.
    largest_message: Bytes,
    levels: Levels,
    sl2vl: Sl2Vl,
    jobs: Vec<Job>,
    ranks: Vec<RankState>,
    /// By rank over all jobs.
    records: Vec<RankRecord>,
    /// Where each host's ranks start in `residents`; one more at the end.
    first_resident: Vec<u32>,
    /// Ranks over all jobs, by host, ascending.
    residents: Vec<u32>,
    /// Transfers through the memory of each host.
    memory: Vec<BinaryHeap<Reverse<MemoryEnd>>>,
    /// Messages of one rank to another can overtake each other, so they are numbered.
    numbering: bool,
    transfers: Pool<Transfer>,
    /// What the host that runs now sends.
    outbox: Vec<Injection>,
    /// Order of transfers through memory.
    sequence: u64,
}

/// A job: its ranks are consecutive in [`Mpi::ranks`].
#[derive(Clone)]
struct Job {
    name: String,
    first: u32,
    size: u32,
    /// Ranks that will go on by themselves.
    active: u32,
    finished: u32,
    /// Messages between its ranks that are under way.
    in_flight: u64,
    agreements: Agreements,
}

/// A rank of a job.
#[derive(Clone)]
struct RankState {
    job: JobId,
    rank: Rank,
    host: HostId,
    source: Box<dyn Source>,
    /// When its program goes on, or [`NEVER`].
    due: u64,
    finished: bool,
    requests: Requests,
    matching: Matching,
    /// The requests it waits for, while it is blocked on requests.
    awaited: Vec<Awaited>,
    wait: Option<Wait>,
    probe: Option<Pattern>,
    collective: Option<Running>,
    world: Communicator,
    communicators: FxHashMap<CommHandle, Communicator>,
    /// The operation it is blocked in.
    blocked: Option<Op>,
    /// What the time since then is counted as.
    activity: Activity,
    since: u64,
    /// How many operations it has begun at the instant `since`.
    at_once: u32,
}

/// The end of a transfer through memory: time, order, transfer, stage.
type MemoryEnd = (u64, u64, u32, protocol::Stage);

/// What a rank's time is counted as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Nothing,
    Compute,
    /// A call, by its index in [`RankRecord::calls`].
    Call(u8),
}

/// A job to be run.
pub struct JobPlan {
    /// Its name, for errors and tables.
    pub name: String,
    /// What its ranks do.
    pub program: Program,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
}

impl Mpi {
    /// All ranks at the start of their programs, due at instant zero. No send may be larger than `largest_message`.
    ///
    /// # Panics
    /// If a job has not as many hosts as ranks.
    #[must_use]
    pub fn new(
        largest_message: Bytes,
        parameters: Parameters,
        levels: Levels,
        sl2vl: Sl2Vl,
        hosts: usize,
        plans: Vec<JobPlan>,
    ) -> Self {
        let mut mpi = Self {
            parameters: Arc::new(parameters),
            largest_message,
            levels,
            sl2vl,
            jobs: Vec::new(),
            ranks: Vec::new(),
            records: Vec::new(),
            first_resident: Vec::new(),
            residents: Vec::new(),
            memory: vec![BinaryHeap::new(); hosts],
            numbering: false,
            transfers: Pool::default(),
            outbox: Vec::new(),
            sequence: 0,
        };
        for (number, plan) in plans.into_iter().enumerate() {
            let job = JobId(u16::try_from(number).expect("invariant: fewer than 2^16 jobs"));
            mpi.add_job(job, plan);
        }
        mpi.settle(hosts);
        mpi
    }

    fn add_job(&mut self, job: JobId, plan: JobPlan) {
        assert_eq!(plan.program.ranks.len(), plan.hosts.len(), "invariant: the simulation has checked its plan");
        let count = |n: usize| u32::try_from(n).expect("invariant: fewer than 2^32 ranks");
        let (first, size) = (count(self.ranks.len()), count(plan.hosts.len()));
        let members: Arc<[u32]> = (0..size).collect();
        self.jobs.push(Job {
            name: plan.name,
            first,
            size,
            active: size,
            finished: 0,
            in_flight: 0,
            agreements: Agreements::new(4),
        });
        for (rank, (source, host)) in plan.program.ranks.into_iter().zip(plan.hosts).enumerate() {
            let rank = count(rank);
            let world = Communicator { context: 0, rank, members: Arc::clone(&members), collectives: 0 };
            let alone = Communicator { context: 2, rank: 0, members: Arc::new([rank]), collectives: 0 };
            self.ranks.push(RankState {
                job,
                rank: Rank(rank),
                host,
                source,
                due: 0,
                finished: false,
                requests: Requests::default(),
                matching: Matching::default(),
                awaited: Vec::new(),
                wait: None,
                probe: None,
                collective: None,
                world,
                communicators: std::iter::once((crate::program::COMM_SELF, alone)).collect(),
                blocked: None,
                activity: Activity::Nothing,
                since: 0,
                at_once: 0,
            });
            self.records.push(RankRecord::default());
        }
    }

    /// Lists the ranks of each host.
    fn settle(&mut self, hosts: usize) {
        let count = |n: usize| u32::try_from(n).expect("invariant: fewer than 2^32 ranks");
        self.residents = (0..count(self.ranks.len())).collect();
        self.residents.sort_by_key(|&rank| self.ranks[rank as usize].host);
        let before =
            |host: usize| self.residents.partition_point(|&rank| self.ranks[rank as usize].host.index() < host);
        self.first_resident = (0..=hosts).map(|host| count(before(host))).collect();
        let shared = self.first_resident.windows(2).any(|pair| pair[1] - pair[0] > 1);
        self.numbering = shared || self.levels.depend_on_kind();
    }

    /// The ranks of a host, as indices over all jobs.
    fn residents(&self, host: HostId) -> &[u32] {
        &self.residents[self.first_resident[host.index()] as usize..self.first_resident[host.index() + 1] as usize]
    }

    /// Which service level messages have.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Changes which service level messages have from now on. What is sent from now on can overtake what was sent before.
    pub fn set_levels(&mut self, levels: Levels) {
        self.levels = levels;
        self.start_numbering();
    }

    /// Whether every rank of every job has finished.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.jobs.iter().all(|job| job.finished == job.size)
    }

    /// Hosts that have ranks.
    pub fn used_hosts(&self) -> impl Iterator<Item = HostId> {
        let used = (0..).zip(self.first_resident.windows(2)).filter(|(_, pair)| pair[1] > pair[0]);
        used.map(|(host, _)| HostId(host))
    }

    /// How many jobs there are.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// The name of a job.
    #[must_use]
    pub fn job_name(&self, job: JobId) -> &str {
        &self.jobs[job.index()].name
    }

    /// What is kept of each rank of a job, in order of rank, with its host.
    pub fn records(&self, job: JobId) -> impl ExactSizeIterator<Item = (HostId, &RankRecord)> {
        let Job { first, size, .. } = self.jobs[job.index()];
        let range = first as usize..(first + size) as usize;
        self.ranks[range.clone()].iter().map(|rank| rank.host).zip(&self.records[range])
    }

    /// The rank, as an index over all jobs, that is rank `rank` of the job of `of`.
    fn peer(&self, of: u32, rank: u32) -> u32 {
        self.jobs[self.ranks[of as usize].job.index()].first + rank
    }

    fn rank(&mut self, rank: u32) -> &mut RankState {
        &mut self.ranks[rank as usize]
    }

    fn job_of(&mut self, rank: u32) -> &mut Job {
        let job = self.ranks[rank as usize].job;
        &mut self.jobs[job.index()]
    }

    /// Has the program of `rank` go on at `at`.
    fn resume(&mut self, rank: u32, at: u64) {
        debug_assert_eq!(self.ranks[rank as usize].due, NEVER, "a rank that is due is resumed");
        self.rank(rank).due = at;
        self.job_of(rank).active += 1;
    }

    /// What `rank` did wrong in `op`, as an error.
    fn misuse(&self, rank: u32, op: &Op, problem: impl Into<String>) -> RunError {
        let state = &self.ranks[rank as usize];
        RunError::Program {
            job: self.jobs[state.job.index()].name.clone(),
            rank: state.rank,
            operation: words::of(op),
            problem: problem.into(),
        }
    }
}
