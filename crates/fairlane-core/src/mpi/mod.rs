//! Message passing between the ranks of a job: what an MPI library does above the network.
//!
//! [`Mpi`] is the network's [`Endpoint`](crate::network::Endpoint): it runs the ranks' programs, cuts sends into
//! protocol messages, matches, and carries out collectives.
//!
//! The path of an eager message: `endpoint` resumes a rank that is due; `interpreter` runs its operations; a send becomes a
//! transfer in `p2p`, whose message `p2p::transmit` hands to the network. At the other end `p2p::delivery` takes the delivery,
//! finds the receive with `p2p::matching`, and completes its request; if it was the last that the rank waited for, `p2p::wait`
//! resumes the rank.
//!
//! There is a folder for each kind of operation: point-to-point messages (`p2p`), communicators (`comm`), collectives
//! (`collective`, with the table of algorithms) and one-sided communication (`rma`). `messaging` is the state of a shard that
//! all of them act on, `rank` that of a rank.
//!
//! The ranks are divided into shards that run in parallel. A rank reaches one of another shard only by network messages and
//! by what travels with them as `mail`. At the end of each window the shards `report` to each other, so that all know
//! which jobs can still make progress.

pub mod collective;

mod build;
mod comm;
mod endpoint;
mod errors;
mod interpreter;
mod laws;
mod messaging;
mod naming;
mod p2p;
mod parameters;
mod prefetch;
mod rank;
mod recording;
mod report;
mod rma;
mod stepping;
mod stream;
mod words;

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use p2p::rails::RailPolicy;
pub use parameters::Parameters;
pub use report::Mail;

use crate::error::RunError;
use crate::ids::{HostId, JobId};
use crate::network::Delivery;
use crate::observe::{JobMarks, JobRecord, Latencies, PendingMarks, RankRecord, RecordOf};
use crate::program::Program;
use crate::qos::levels::{Levels, Sl2Vl};
use crate::topology::RailMap;
use crate::units::{Bytes, Instant, Picoseconds};
use collective::agreement::Agreements;
use collective::algorithms::{Phase, Preferences};
use collective::nccl;
use comm::context::Contexts;
use comm::{Communicator, WORLD_CONTEXT};
use messaging::{Job, Messaging};
use naming::Naming;
use p2p::memory::MemoryLinks;
use p2p::rails::RailSelection;
use p2p::transfer::{RankPlace, Transfers, Transits};
use rank::{NEVER, RankState};
use report::{Fault, JobTotal, Report};
use stream::Stream;

/// All ranks of all jobs, and what is in flight between them: in shards, each with the ranks of some hosts.
pub struct Mpi {
    shards: Vec<MpiShard>,
}

/// The ranks of one shard's hosts. It knows of those of other shards what messages and [`Mail`] bring.
#[derive(Clone)]
pub struct MpiShard {
    /// The operations of each rank.
    sources: Vec<Stream>,
    messaging: Messaging,
    /// Sums of the reports of all shards, by job.
    totals: Vec<JobTotal>,
    /// This shard's report of the window that has been run.
    report: Report,
    /// Those of the others.
    reports: Vec<(usize, Report)>,
    /// Why the run must end, if it must.
    faults: Vec<Fault>,
    /// The error that has ended the run of a host.
    failed: Option<(HostId, RunError)>,
    /// The run pauses after a window in which a message that was given from outside is complete.
    pauses: bool,
}

/// A job to be run.
pub struct JobSetup {
    /// Its name, for errors and tables.
    pub name: String,
    /// The operations of its ranks.
    pub program: Program,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// How its messages are shared among the adapters of its hosts.
    pub rails: RailPolicy,
    /// Its collectives are NCCL's, on these hosts.
    pub nccl: Option<nccl::Setup>,
    /// When its ranks begin.
    pub start: Instant,
    /// When it ends, whatever its programs say.
    pub stop: Option<Instant>,
    /// Whether the instant of every mark is kept.
    pub marks: bool,
}

/// The shard of each host.
pub struct Shards<'h> {
    /// How many there are.
    pub count: usize,
    /// The shard of each host.
    pub of_hosts: &'h [usize],
}

impl Mpi {
    /// Memory that every rank takes besides its program and its messages.
    pub const BYTES_PER_RANK: usize = size_of::<RankState>() + size_of::<Stream>() + 2 * size_of::<u64>();

    /// All ranks at the start of their programs, due when their jobs begin. No send may be larger than `largest_message`;
    /// `rails`: which adapters hosts exchange messages through.
    ///
    /// # Panics
    /// If a job has not as many hosts as ranks.
    #[must_use]
    pub fn new(
        largest_message: Bytes,
        parameters: Parameters,
        levels: Levels,
        sl2vl: Sl2Vl,
        rails: &Arc<RailMap>,
        shards: &Shards<'_>,
        plans: Vec<JobSetup>,
    ) -> Self {
        let residence = Arc::new(build::residence(shards, &plans));
        let places = build::places(shards, &plans);
        let policies: Arc<[_]> = plans.iter().map(|plan| plan.rails.clone()).collect();
        let contexts = Arc::new(Contexts::new(plans.len()));
        let (parameters, levels) = (Arc::new(parameters), Arc::new(levels));
        let shard = |shard: usize| {
            let naming = Naming::new(shard, shards.count);
            let own = |id: &RankPlace| naming.is_own(naming.translate(id.id));
            let ranks = places.iter().filter(|place| own(place)).count();
            let rails = RailSelection::new(Arc::clone(&policies), Arc::clone(rails), ranks);
            let hosts = shards.of_hosts.iter().filter(|of| **of == shard).count();
            let messaging = Messaging {
                parameters: Arc::clone(&parameters),
                preferences: Preferences::default(),
                largest_message,
                numbering: levels.depend_on_message() || rails.overtake() || parameters.overtake(),
                levels: Arc::clone(&levels),
                sl2vl,
                rails,
                naming,
                places: Arc::clone(&places),
                slow: FxHashMap::default(),
                residence: Arc::clone(&residence),
                jobs: Vec::new(),
                agreements: Agreements::default(),
                disagreement: None,
                layouts: FxHashMap::default(),
                contexts: Arc::clone(&contexts),
                ranks: Vec::with_capacity(ranks),
                host: HostId(0),
                until: Instant::ZERO,
                memory: vec![BinaryHeap::new(); hosts],
                in_memory: 0,
                memory_links: MemoryLinks::default(),
                numbering_started: false,
                quiescent: Vec::new(),
                transfers: Transfers::new(naming, shards.count),
                departing: vec![Transits::default(); shards.count],
                outbox: Vec::new(),
                sequence: 0,
                latencies: Latencies::default(),
                completed: Vec::new(),
                completed_outside: false,
                record: None,
                phase: Phase::default(),
                slots: Vec::new(),
            };
            MpiShard {
                sources: Vec::with_capacity(ranks),
                messaging,
                totals: Vec::new(),
                report: Report::default(),
                reports: Vec::new(),
                faults: Vec::new(),
                failed: None,
                pauses: false,
            }
        };
        let mut mpi = Self { shards: (0..shards.count).map(shard).collect() };
        for (number, plan) in plans.into_iter().enumerate() {
            let job = JobId(u16::try_from(number).expect("invariant: fewer than 2^16 jobs"));
            mpi.add_job(job, plan);
        }
        mpi
    }

    fn add_job(&mut self, job: JobId, plan: JobSetup) {
        assert_eq!(plan.program.ranks.len(), plan.hosts.len(), "invariant: the simulation has checked its plan");
        let first = self.shards[0].messaging.jobs.last().map_or(0, |last| last.first + last.size);
        let size = count(plan.hosts.len());
        let nccl = plan.nccl.map(Arc::new);
        let (name, members): (Arc<str>, Arc<[u32]>) = (plan.name.into(), (0..size).collect());
        let homes: Vec<usize> = (0..size).map(|rank| self.locate(first + rank).0).collect();
        for (rank, (source, &home)) in (0..).zip(plan.program.ranks.into_iter().zip(&homes)) {
            let world = Communicator::new(WORLD_CONTEXT, rank, Arc::clone(&members));
            let shard = &mut self.shards[home];
            shard.messaging.ranks.push(RankState::new(job, world, plan.start));
            if shard.messaging.parameters.memory_contention {
                shard.messaging.memory_links.busy.push([0; 2]);
            }
            shard.sources.push(Stream::new(source));
        }
        let mut left = 0;
        for (number, shard) in self.shards.iter_mut().enumerate() {
            let own = count(homes.iter().filter(|home| **home == number).count());
            let mut part = Job {
                name: Arc::clone(&name),
                nccl: nccl.clone(),
                first,
                size,
                start: plan.start,
                stop: plan.stop.map_or(NEVER, |stop| stop.0),
                failed: false,
                marks: plan.marks,
                active: own,
                finished: 0,
                in_flight: 0,
                quiescent_at: None,
                reported: (0, 0),
                marked: PendingMarks::new(own),
            };
            part.reported = (part.left(), 0);
            left += part.left();
            shard.messaging.jobs.push(part);
        }
        let groups = (0..self.shards.len()).filter(|shard| homes.contains(shard)).count();
        let completed = JobMarks::new(count(groups));
        let total = JobTotal { left, finished: 0, ended: false, completed };
        self.shards.iter_mut().for_each(|shard| shard.totals.push(total.clone()));
    }

    /// The shards, to be run by the network.
    pub fn shards(&mut self) -> &mut [MpiShard] {
        &mut self.shards
    }

    /// How many shards there are.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The shard of a rank over all jobs, and its number there.
    fn locate(&self, rank: u32) -> (usize, usize) {
        let first = &self.shards[0].messaging;
        first.naming.place(first.naming.translate(first.places[rank as usize].id))
    }

    /// The ranks of a job, in order: shard, number in it, host.
    fn ranks(&self, job: JobId) -> impl ExactSizeIterator<Item = (&MpiShard, usize, HostId)> {
        let first = &self.shards[0].messaging;
        let Job { first: start, size, .. } = first.jobs[job.index()];
        first.places[start as usize..(start + size) as usize].iter().map(|place| {
            let (shard, number) = first.naming.place(first.naming.translate(place.id));
            (&self.shards[shard], number, place.host)
        })
    }

    /// A job fails at `at`: its ranks do nothing more, and the latencies of its messages are no longer recorded.
    pub fn fail(&mut self, job: JobId, at: Instant) {
        for shard in &mut self.shards {
            let job = &mut shard.messaging.jobs[job.index()];
            job.stop = at.0.min(job.stop);
            job.failed = true;
        }
    }

    /// Has computations that begin from now on take longer on these hosts, and on no others; so many thousandths of their time.
    pub fn slow_down(&mut self, hosts: &BTreeMap<HostId, u32>) {
        self.shards.iter_mut().for_each(|shard| shard.messaging.slow.clear());
        let places = Arc::clone(&self.shards[0].messaging.places);
        for (rank, place) in (0..).zip(&*places) {
            if let Some(thousandths) = hosts.get(&place.host) {
                let (shard, number) = self.locate(rank);
                self.shards[shard].messaging.slow.insert(count(number), *thousandths);
            }
        }
    }

    /// Has messages that are sent from now on go through these adapters. Returns, by job, whether its messages do.
    pub fn set_rails(&mut self, rails: &Arc<RailMap>) -> Vec<bool> {
        self.shards.iter_mut().for_each(|shard| shard.messaging.rails.follow(rails));
        self.shards[0].messaging.rails.fails_over().collect()
    }

    /// The service levels of messages.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.shards[0].messaging.levels
    }

    /// Changes which service level messages have from now on. What is sent from now on can overtake what was sent before.
    pub fn set_levels(&mut self, levels: Levels) {
        let levels = Arc::new(levels);
        self.shards.iter_mut().for_each(|shard| shard.messaging.levels = Arc::clone(&levels));
        self.expect_overtaking();
    }

    /// Carries out collectives by these algorithms where they fit, instead of the default choice.
    pub fn prefer(&mut self, preferences: &Preferences) {
        self.shards.iter_mut().for_each(|shard| shard.messaging.preferences = preferences.clone());
    }

    /// Messages of one rank to another can overtake each other, because packets can.
    pub fn expect_overtaking(&mut self) {
        let shards: Vec<usize> = (0..self.shards.len()).collect();
        let starting =
            shards.iter().filter(|&&shard| !std::mem::replace(&mut self.shards[shard].messaging.numbering, true));
        let starting: Vec<usize> = starting.copied().collect();
        for shard in &mut self.shards {
            starting.iter().for_each(|&from| shard.messaging.number_under_way(from));
        }
    }

    /// Keeps a record from now on. To be called before anything has been sent.
    ///
    /// # Panics
    /// If there are several shards: the numbers of its messages are given in the order of simulation.
    pub fn keep(&mut self, record: RecordOf) {
        assert_eq!(self.shards.len(), 1, "invariant: a simulation with a record has one shard");
        self.shards[0].messaging.record = Some(Box::new(JobRecord::new(record)));
    }

    /// Keeps the latencies of messages from now on.
    pub fn keep_latencies(&mut self) {
        let counted = self.levels().traffic().len();
        self.shards.iter_mut().for_each(|shard| shard.messaging.latencies = Latencies::new(counted));
    }

    /// The latencies of all messages whose payload has come through the network whole, each from the call of its send to the
    /// delivery of its last byte; empty if they are not kept. `unseen`: by shard, what has come to hosts that have not looked
    /// at it yet.
    #[must_use]
    pub fn latencies(&self, unseen: &[Vec<Delivery>]) -> Latencies {
        let mut parts = self.shards.iter().zip(unseen).map(|(shard, unseen)| shard.messaging.latencies(unseen));
        let mut all = parts.next().unwrap_or_default();
        parts.for_each(|part| all.merge(&part));
        all
    }

    /// The record, if one is kept.
    #[must_use]
    pub fn record(&self) -> Option<&JobRecord> {
        self.shards[0].messaging.record.as_deref()
    }

    /// Whether every rank of every job has finished.
    #[must_use]
    pub fn finished(&self) -> bool {
        let MpiShard { messaging, totals, .. } = &self.shards[0];
        messaging.jobs.iter().zip(totals).all(|(job, total)| total.finished == job.size || total.ended)
    }

    /// Hosts that have ranks.
    pub fn used_hosts(&self) -> impl Iterator<Item = HostId> {
        let first = &self.shards[0].messaging.residence.first;
        (0..).zip(first.windows(2)).filter(|(_, pair)| pair[1] > pair[0]).map(|(host, _)| HostId(host))
    }

    /// How many jobs there are.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.shards[0].messaging.jobs.len()
    }

    /// The name of a job.
    #[must_use]
    pub fn job_name(&self, job: JobId) -> &str {
        &self.shards[0].messaging.jobs[job.index()].name
    }

    /// When a job completed its iterations.
    #[must_use]
    pub fn marks(&self, job: JobId) -> &JobMarks {
        &self.shards[0].totals[job.index()].completed
    }

    /// The record of each rank of a job, in order of rank, with its host.
    pub fn records(&self, job: JobId) -> impl ExactSizeIterator<Item = (HostId, &RankRecord)> {
        self.ranks(job).map(|(shard, number, host)| (host, &shard.messaging.ranks[number].record))
    }

    /// Of each rank of a job, for how long the operation has lasted that is in progress at `now`: the time in a computation,
    /// and that in a call. Records have an operation's time once it is over.
    pub fn under_way(&self, job: JobId, now: Instant) -> impl Iterator<Item = (Picoseconds, Picoseconds)> {
        let until = now.0.min(self.shards[0].messaging.jobs[job.index()].stop);
        self.ranks(job).map(move |(shard, number, _)| shard.messaging.ranks[number].under_way(until))
    }
}

impl Clone for Mpi {
    fn clone(&self) -> Self {
        let mut shards = self.shards.clone();
        let contexts = Arc::new(self.shards[0].messaging.contexts.copy());
        shards.iter_mut().for_each(|shard| shard.messaging.contexts = Arc::clone(&contexts));
        Self { shards }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("invariant: fewer than 2^32 ranks")
}
