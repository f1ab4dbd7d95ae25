//! Message passing between the ranks of a job: what an MPI library does above the network.
//!
//! [`Mpi`] is the network's [`Endpoint`](crate::network::Endpoint): it runs the ranks' programs, cuts sends into
//! protocol messages, matches, and carries out collectives.
//!
//! The way of an eager message, which most are: `endpoint` has a rank that is due go on; `interpreter` runs its operations; one of
//! them is a send, which `protocol` makes a transfer and hands to the network (`send`); at the other end `endpoint` takes the
//! delivery, and `protocol` finds the receive with `matching` and completes its `request` (`take_eager`); when it was the
//! last that the rank waited for, `wait` has it go on.

pub mod collectives;

mod background;
mod collective;
mod communicator;
mod creation;
mod endpoint;
mod interpreter;
mod laws;
mod lock;
mod matching;
mod messaging;
mod one_sided;
mod parameters;
mod protocol;
mod rails;
mod rank;
mod request;
mod schedule;
mod transfer;
mod wait;
mod window;
mod words;

use std::collections::BinaryHeap;
use std::sync::Arc;

pub use parameters::Parameters;
pub use rails::RailPolicy;

use crate::ids::{HostId, JobId};
use crate::kernel::{NONE, Pool};
use crate::network::Delivery;
use crate::observe::{JobMarks, Latencies, RankRecord, Record, RecordOf};
use crate::program::{Program, Source};
use crate::qos::levels::{Levels, Sl2Vl};
use crate::units::{Bytes, Instant, Picoseconds};
use collectives::{Phase, Preferences};
use communicator::{Agreements, Communicator, WORLD_CONTEXT};
use messaging::{Job, Messaging};
use rails::Rails;
use rank::{NEVER, RankState};

/// All ranks of all jobs, and what is under way between them.
#[derive(Clone)]
pub struct Mpi {
    /// What each rank does, by rank over all jobs.
    sources: Vec<Box<dyn Source>>,
    messaging: Messaging,
}

/// A job to be run.
pub struct JobPlan {
    /// Its name, for errors and tables.
    pub name: String,
    /// What its ranks do.
    pub program: Program,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// How its messages are shared among the adapters of its hosts.
    pub rails: RailPolicy,
    /// How many adapters each of its hosts has.
    pub adapters: u8,
    /// When its ranks begin.
    pub start: Instant,
    /// When it ends, whatever its programs say.
    pub stop: Option<Instant>,
    /// Whether the instant of every mark is kept.
    pub marks: bool,
}

impl Mpi {
    /// Memory that every rank takes besides its program and its messages.
    pub const BYTES_PER_RANK: usize = size_of::<RankState>() + size_of::<Box<dyn Source>>() + 2 * size_of::<u64>();

    /// All ranks at the start of their programs, due when their jobs begin. No send may be larger than `largest_message`.
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
        let messaging = Messaging {
            parameters: Arc::new(parameters),
            preferences: Preferences::default(),
            largest_message,
            levels,
            sl2vl,
            rails: Rails::default(),
            jobs: Vec::new(),
            ranks: Vec::new(),
            hosts: Vec::new(),
            first_resident: Vec::new(),
            residents: Vec::new(),
            alone: Vec::new(),
            memory: vec![BinaryHeap::new(); hosts],
            in_memory: 0,
            numbering: false,
            quiescent: false,
            transfers: Pool::default(),
            outbox: Vec::new(),
            sequence: 0,
            latencies: Latencies::default(),
            record: None,
            phase: Phase::default(),
            slots: Vec::new(),
        };
        let mut mpi = Self { sources: Vec::new(), messaging };
        let policies = plans.iter().map(|plan| (plan.rails.clone(), plan.adapters)).collect();
        for (number, plan) in plans.into_iter().enumerate() {
            let job = JobId(u16::try_from(number).expect("invariant: fewer than 2^16 jobs"));
            mpi.add_job(job, plan);
        }
        mpi.messaging.rails = Rails::new(policies, mpi.sources.len());
        mpi.settle(hosts);
        mpi
    }

    fn add_job(&mut self, job: JobId, plan: JobPlan) {
        assert_eq!(plan.program.ranks.len(), plan.hosts.len(), "invariant: the simulation has checked its plan");
        let Self { sources, messaging } = self;
        let (first, size) = (count(sources.len()), count(plan.hosts.len()));
        let members: Arc<[u32]> = (0..size).collect();
        messaging.jobs.push(Job {
            name: plan.name,
            first,
            size,
            active: size,
            finished: 0,
            in_flight: 0,
            agreements: Agreements::new(4),
            stop: plan.stop.map_or(NEVER, |stop| stop.0),
            ended: false,
            marks: plan.marks,
            completed: JobMarks::new(size),
        });
        for rank in 0..size {
            let members = Arc::clone(&members);
            let world = Communicator::new(WORLD_CONTEXT, rank, members);
            let alone = Communicator::new(2, 0, Arc::new([rank]));
            messaging.ranks.push(RankState::new(job, world, alone, plan.start));
        }
        messaging.hosts.extend(plan.hosts);
        sources.extend(plan.program.ranks);
    }

    /// Lists the ranks of each host.
    fn settle(&mut self, hosts: usize) {
        let messaging = &mut self.messaging;
        messaging.residents = (0..count(messaging.ranks.len())).collect();
        messaging.residents.sort_by_key(|&rank| messaging.hosts[rank as usize]);
        let before =
            |host: usize| messaging.residents.partition_point(|&rank| messaging.hosts[rank as usize].index() < host);
        messaging.first_resident = (0..=hosts).map(|host| count(before(host))).collect();
        let alone =
            |places: &[u32]| if places[1] - places[0] == 1 { messaging.residents[places[0] as usize] } else { NONE };
        messaging.alone = messaging.first_resident.windows(2).map(alone).collect();
        messaging.numbering = messaging.levels.depend_on_kind() || messaging.rails.overtake();
    }

    /// Which service level messages have.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.messaging.levels
    }

    /// Changes which service level messages have from now on. What is sent from now on can overtake what was sent before.
    pub fn set_levels(&mut self, levels: Levels) {
        self.messaging.levels = levels;
        self.messaging.start_numbering();
    }

    /// Carries out collectives by these algorithms where they fit, instead of the default choice.
    pub fn prefer(&mut self, preferences: Preferences) {
        self.messaging.preferences = preferences;
    }

    /// Messages of one rank to another can overtake each other, because packets can.
    pub fn expect_overtaking(&mut self) {
        self.messaging.start_numbering();
    }

    /// Keeps a record from now on. To be called before anything has been sent.
    pub fn keep(&mut self, record: RecordOf) {
        self.messaging.record = Some(Box::new(Record::new(record)));
    }

    /// Keeps the latencies of messages from now on.
    pub fn keep_latencies(&mut self) {
        self.messaging.latencies = Latencies::new(self.messaging.jobs.len());
    }

    /// The latencies of all messages whose payload has come through the network whole, each from the call of its send to the
    /// delivery of its last byte; empty if they are not kept. `unseen`: what has come to hosts that have not looked at it yet.
    #[must_use]
    pub fn latencies(&self, unseen: &[Delivery]) -> Latencies {
        self.messaging.latencies(unseen)
    }

    /// What has been recorded, if that was asked for.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        self.messaging.record.as_deref()
    }

    /// Whether every rank of every job has finished.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.messaging.jobs.iter().all(|job| job.finished == job.size || job.ended)
    }

    /// Hosts that have ranks.
    pub fn used_hosts(&self) -> impl Iterator<Item = HostId> {
        let used = (0..).zip(self.messaging.first_resident.windows(2)).filter(|(_, pair)| pair[1] > pair[0]);
        used.map(|(host, _)| HostId(host))
    }

    /// How many jobs there are.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.messaging.jobs.len()
    }

    /// The name of a job.
    #[must_use]
    pub fn job_name(&self, job: JobId) -> &str {
        &self.messaging.jobs[job.index()].name
    }

    /// When a job completed its iterations.
    #[must_use]
    pub fn marks(&self, job: JobId) -> &JobMarks {
        &self.messaging.jobs[job.index()].completed
    }

    /// What is kept of each rank of a job, in order of rank, with its host.
    pub fn records(&self, job: JobId) -> impl ExactSizeIterator<Item = (HostId, &RankRecord)> {
        let Job { first, size, .. } = self.messaging.jobs[job.index()];
        let range = first as usize..(first + size) as usize;
        let records = self.messaging.ranks[range.clone()].iter().map(|rank| &rank.record);
        self.messaging.hosts[range].iter().copied().zip(records)
    }

    /// Of each rank of a job, for how long the operation has lasted that is under way at `now`: the time in a computation,
    /// and that in a call. Records have an operation's time once it is over.
    pub fn under_way(&self, job: JobId, now: Instant) -> impl Iterator<Item = (Picoseconds, Picoseconds)> {
        let Job { first, size, stop, .. } = self.messaging.jobs[job.index()];
        let until = now.0.min(stop);
        self.messaging.ranks[first as usize..(first + size) as usize].iter().map(move |rank| rank.under_way(until))
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: fewer than 2^32 ranks")
}
