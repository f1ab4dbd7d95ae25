//! A simulation: a fabric, jobs on it, and the clock. Assembles the layers.

mod checks;
mod faults;
mod spec;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::columns::Columns;
use crate::error::{BuildError, RunError};
use crate::fault::{FaultLog, FaultSpec};
use crate::ids::{JobId, Rank, ServiceLevel};
use crate::mpi::collective::algorithms::Preferences;
use crate::mpi::{self, JobSetup, Mpi, Shards};
use crate::network::{self, Network};
use crate::observe::Latencies;
use crate::program::Program;
use crate::program::stepped::Message;
use crate::qos::arbiter::Arbiters;
use crate::qos::levels::{Levels, Sl2Vl};
use crate::registry::Registry;
use crate::results::{self, Measured};
use crate::routing::Routing;
pub use crate::table::Named;
use crate::table::Table;
use crate::topology::{Graph, RailMap};
use crate::units::Instant;
use faults::{Limits, Routes, Schedule};
pub use spec::{FabricSpec, JobSpec, QosSpec, Spec};

/// The interference matrix has a cell for every pair of jobs: 128 MiB for this many.
const MOST_JOBS: usize = 4096;

/// How a simulation is divided among threads. Results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// Parts of the fabric that run in parallel, up to [`Partition::MOST_SHARDS`](network::Partition::MOST_SHARDS). It is one
    /// all the same where single packets or messages are recorded, or where switches look at the loads of other switches.
    pub shards: usize,
    /// Threads, of which each runs about as many shards.
    pub threads: usize,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self::threads(1)
    }
}

impl Parallelism {
    /// The least hosts of a fabric on which two threads gain (`benches/threads.rs`).
    const LEAST_HOSTS: usize = 1000;

    /// So many threads with one shard each.
    #[must_use]
    pub const fn threads(threads: usize) -> Self {
        Self { shards: threads, threads }
    }

    /// Up to so many threads on a fabric of so many hosts: one where more would not gain.
    #[must_use]
    pub fn up_to(threads: usize, hosts: usize) -> Self {
        let gains = hosts >= Self::LEAST_HOSTS;
        Self::threads(if gains { threads.min(network::Partition::MOST_SHARDS) } else { 1 })
    }

    fn check(self) -> Result<(), BuildError> {
        let most = network::Partition::MOST_SHARDS;
        for (name, value) in [("shards", self.shards), ("threads", self.threads)] {
            if !(1..=most).contains(&value) {
                return Err(BuildError::value(name, value, format!("1 to {most}")));
            }
        }
        Ok(())
    }
}

/// Jobs on a fabric, at some instant. A clone goes on by itself from the same instant.
#[derive(Clone)]
pub struct Simulation {
    network: Network,
    mpi: Mpi,
    /// Those that the arbiter can be replaced by.
    arbiters: Table<Arbiters>,
    faults: Schedule,
    /// The error that ended the run.
    failed: Option<RunError>,
}

impl Simulation {
    /// A simulation at instant zero, of built-in parts. `programs` are those of the specification's jobs, in order.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn new(spec: Spec, programs: Vec<Program>) -> Result<Self, BuildError> {
        Self::with(&Registry::default(), spec, programs)
    }

    /// A simulation of parts that `registry` has.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn with(registry: &Registry, spec: Spec, programs: Vec<Program>) -> Result<Self, BuildError> {
        let graph = spec.fabric.build(registry)?;
        Self::on(registry, Arc::new(graph), spec, programs)
    }

    /// A simulation of parts that `registry` has, on a fabric that is built already.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn on(registry: &Registry, graph: Arc<Graph>, spec: Spec, programs: Vec<Program>) -> Result<Self, BuildError> {
        Self::parallel(registry, graph, spec, programs, Parallelism::default())
    }

    /// A simulation of parts that `registry` has, on a fabric that is built already, divided among threads.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn parallel(
        registry: &Registry,
        graph: Arc<Graph>,
        spec: Spec,
        programs: Vec<Program>,
        parallelism: Parallelism,
    ) -> Result<Self, BuildError> {
        parallelism.check()?;
        let routing = spec.fabric.route(registry, &graph)?.into();
        let Parts { plan, mpi: parameters, levels, sl2vl, preferences, jobs, rails, arbiters, faults } =
            Parts::new(registry, graph, routing, spec, programs)?;
        let observe = plan.observe;
        let partition = network::Partition::new(&plan.graph, parallelism.shards.min(plan.most_shards()));
        let of_hosts = partition.of_hosts(&plan.graph);
        let mut network = Network::new(&plan, partition);
        network.set_threads(parallelism.threads);
        let shards = Shards { count: network.shards(), of_hosts: &of_hosts };
        let mut mpi = Mpi::new(plan.parameters.largest_message(), parameters, levels, sl2vl, &rails, &shards, jobs);
        mpi.prefer(&preferences);
        if network.adaptive() || network.paces() || network.loses() {
            mpi.expect_overtaking();
        }
        if observe.counters {
            mpi.keep_latencies();
        }
        if let Some(record) = observe.record {
            mpi.keep(record);
        }
        for host in mpi.used_hosts() {
            network.wake(host, Instant::ZERO);
        }
        let mut simulation = Self { network, mpi, arbiters, faults, failed: None };
        simulation.expect_faults();
        Ok(simulation)
    }

    /// Checks that there can be a simulation of these parts on a fabric and routing of the specification, and builds none: no memory
    /// is taken for the state of ports and ranks.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn check(
        registry: &Registry,
        graph: Arc<Graph>,
        routing: Arc<dyn Routing>,
        spec: Spec,
        programs: Vec<Program>,
    ) -> Result<(), BuildError> {
        Parts::new(registry, graph, routing, spec, programs).map(|_| ())
    }

    /// Runs to the end of the window in which `end` lies (a window is at most one link latency wide), or until about
    /// `hops` packets have started on a link. Returns whether `end` was reached or every rank has finished.
    ///
    /// # Errors
    /// [`RunError`], and the same again at every later call: the run has ended. What was measured so far stays readable.
    pub fn run_until(&mut self, end: Instant, hops: u64) -> Result<bool, RunError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(end.min(Instant::HORIZON), hops);
        self.failed = result.as_ref().err().cloned();
        result
    }

    fn advance(&mut self, end: Instant, hops: u64) -> Result<bool, RunError> {
        let last = self.network.totals().packet_hops.saturating_add(hops);
        loop {
            while self.faults.next().is_some_and(|at| at <= self.network.now()) {
                self.faults.advance(self.network.now(), &mut self.network, &mut self.mpi);
            }
            let pause = self.faults.next().map_or(end, |at| at.min(end));
            let hops = last.saturating_sub(self.network.totals().packet_hops);
            let result = self.network.run_until(pause, hops, self.mpi.shards());
            let reached = self.mpi.conclude(result)?;
            self.mpi.check_messages(self.network.now())?;
            let given_up = self.network.take_given_up();
            given_up.iter().for_each(|given_up| self.faults.fail(*given_up));
            // A storm that ends frees what has stopped.
            let may_go_on = |network: &Network| network.storms() && self.faults.next().is_some();
            if let Some(deadlock) = self.network.deadlock().filter(|_| !may_go_on(&self.network)) {
                return Err(deadlock);
            }
            if cfg!(debug_assertions) {
                self.check_laws()?;
            }
            if given_up.is_empty() && (pause == end || !reached || self.now() < pause) {
                return Ok(reached || self.finished());
            }
        }
    }

    /// Runs all windows that end at `end` or before, or as many as [`Simulation::run_until`] would; with `first`, no further than
    /// the window in which a message that was [sent](Self::send) is complete. Returns whether nothing more is to be run before `end`.
    /// Everything that has not been run yet lies after [`Simulation::now`], which is at most `end`.
    ///
    /// # Errors
    /// As [`Simulation::run_until`].
    pub fn step(&mut self, end: Instant, hops: u64, first: bool) -> Result<bool, RunError> {
        let last = Instant((end.min(Instant::HORIZON).0 + 1).saturating_sub(self.network.window().0));
        if last <= self.now() {
            return Ok(true);
        }
        self.mpi.pause_on_completion(first);
        let result = self.run_until(last, hops);
        let paused = self.mpi.completed_outside();
        self.mpi.pause_on_completion(false);
        result.map(|_| first && paused || self.now() >= last)
    }

    /// Has a message of a job that takes such ([`crate::program::stepped`]) be sent at `at`.
    ///
    /// # Errors
    /// [`BuildError::Value`] names what does not fit: a job that takes none, a rank, a size, or an instant that has passed or at which
    /// the job has stopped.
    pub fn send(&mut self, job: JobId, message: Message, at: Instant) -> Result<(), BuildError> {
        let Some(ranks) = self.mpi.stepped_ranks(job) else {
            let allowed = "a job whose workload is stepped";
            return Err(BuildError::value("job", self.mpi.job_name(job), allowed));
        };
        for (key, rank) in [("source", message.from), ("destination", message.to)] {
            if rank.0 >= ranks {
                return Err(BuildError::value(key, rank, format!("0 to {}", ranks - 1)));
            }
        }
        let largest = self.mpi.largest_message();
        if message.bytes > largest {
            return Err(BuildError::value("size", message.bytes.0, format!("at most {} bytes", largest.0)));
        }
        let (start, last) = self.mpi.first_and_last(job);
        let earliest = self.now().max(start);
        let refused = |allowed: String| Err(BuildError::value("at", format!("{} ps", at.0), allowed));
        if at < earliest {
            let reason = "what lies before has been simulated, or the job has not begun";
            return refused(format!("{} ps or later: {reason}", earliest.0));
        }
        if at > last {
            return refused(format!("at most {} ps: the job has stopped, or the clock goes no further", last.0));
        }
        for host in self.mpi.give(job, message, at) {
            self.network.wake(host, at);
        }
        Ok(())
    }

    /// Messages that were [sent](Self::send) and have become complete since the last call: when, and their handles, in this order.
    pub fn take_completed(&mut self) -> Vec<(Instant, u64)> {
        self.mpi.take_completed()
    }

    /// Checks the laws on the whole state; see [`Network::check_laws`] and [`Mpi::check_laws`].
    ///
    /// # Errors
    /// [`RunError::Law`].
    pub fn check_laws(&self) -> Result<(), RunError> {
        self.network.check_laws()?;
        let mpi = self.mpi.check_laws(self.network.messages_in_flight());
        mpi.map_err(|law| RunError::Law { at: self.now(), law })
    }

    /// How many messages have been sent and not received.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.mpi.messages()
    }

    /// Whether every rank of every job has finished and nothing is on its way.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.mpi.finished() && self.network.is_at_rest()
    }

    /// The instant up to which everything has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.network.now()
    }

    /// The network: counters, interference, log.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The latencies of messages delivered so far: from the call of the send to the delivery of the last byte.
    #[must_use]
    pub fn message_latencies(&self) -> Latencies {
        results::message_latencies(self.measured())
    }

    fn measured(&self) -> Measured<'_> {
        Measured { network: &self.network, mpi: &self.mpi, faults: &self.faults.log }
    }

    /// Iterations that ranks have marked so far, by job and rank.
    #[must_use]
    pub fn progress(&self) -> Vec<Vec<u64>> {
        let of_job = |job| self.mpi.records(job).map(|(_, record)| record.iterations).collect();
        self.measured().jobs().map(of_job).collect()
    }

    /// One of the tables of what was measured so far; see [`results::TABLES`].
    ///
    /// # Errors
    /// [`BuildError::UnknownName`] lists all tables.
    pub fn table(&self, name: &str) -> Result<Columns, BuildError> {
        Ok((results::find(name)?.columns)(self.measured()))
    }

    /// A hash of all that was measured so far, in hexadecimal: the same for the same specification and programs, on every
    /// platform, in any number of shards and threads. It changes with the instant until nothing is left to happen.
    #[must_use]
    pub fn digest(&self) -> String {
        results::digest(self.measured())
    }

    /// The ranks: records.
    #[must_use]
    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// Replaces the own service levels of a job's ranks, for messages from now on.
    ///
    /// # Errors
    /// [`BuildError::Value`] for a job, rank or level that does not exist; nothing is changed then.
    pub fn set_rank_levels(&mut self, job: JobId, ranks: &BTreeMap<u32, u8>) -> Result<(), BuildError> {
        let mut levels = self.mpi.levels().clone();
        levels.clear_ranks(job)?;
        for (&rank, &level) in ranks {
            levels.set_rank(job, Rank(rank), Some(ServiceLevel(level)))?;
        }
        self.replace_levels(levels);
        Ok(())
    }

    /// Changes which service level messages have from now on. Nothing changes if `change` fails.
    ///
    /// # Errors
    /// The value that `change` returns.
    pub fn change_levels<R>(
        &mut self,
        change: impl FnOnce(&mut Levels) -> Result<R, BuildError>,
    ) -> Result<R, BuildError> {
        let mut levels = self.mpi.levels().clone();
        let result = change(&mut levels)?;
        self.replace_levels(levels);
        Ok(result)
    }

    /// Levels that are the same are not set again: then nothing changes, the numbers of messages in logs neither.
    fn replace_levels(&mut self, levels: Levels) {
        if levels != *self.mpi.levels() {
            self.mpi.set_levels(levels);
            self.network.wake_all();
        }
    }

    /// Adds a fault, which begins at the end of the open window if `at` has passed.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong; nothing is changed then.
    pub fn add_fault(&mut self, fault: &FaultSpec) -> Result<(), BuildError> {
        self.faults.add(fault, "fault")?;
        self.expect_faults();
        Ok(())
    }

    /// Prepares for what the faults, if there are any, may bring.
    fn expect_faults(&mut self) {
        if !self.faults.is_empty() {
            self.network.expect_faults(self.faults.loses_packets());
            self.mpi.expect_overtaking();
        }
    }

    /// The effects of faults on the fabric and on jobs so far.
    #[must_use]
    pub const fn fault_log(&self) -> &FaultLog {
        &self.faults.log
    }

    /// Replaces the arbiter, or its weights, on every port, from the next decision on.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn set_arbiter(&mut self, arbiter: &Named) -> Result<(), BuildError> {
        let lanes = self.network.virtual_lanes();
        self.network.set_arbiter(&*self.arbiters.build(&arbiter.name, &arbiter.params, lanes)?);
        Ok(())
    }
}

/// The checked parts that a simulation is built from.
struct Parts {
    plan: network::Plan,
    mpi: mpi::Parameters,
    levels: Levels,
    sl2vl: Sl2Vl,
    preferences: Preferences,
    jobs: Vec<JobSetup>,
    rails: Arc<RailMap>,
    arbiters: Table<Arbiters>,
    faults: Schedule,
}

impl Parts {
    fn new(
        registry: &Registry,
        graph: Arc<Graph>,
        routing: Arc<dyn Routing>,
        spec: Spec,
        programs: Vec<Program>,
    ) -> Result<Self, BuildError> {
        spec.network.check()?;
        let architecture = registry.architecture(&spec.network)?;
        spec.mpi.check()?;
        let preferences = Preferences::new(&spec.mpi.collectives, &registry.collectives)?;
        if spec.mpi.control_bytes > spec.network.mtu {
            let allowed =
                format!("at most network.mtu ({} bytes): a control message is one packet", spec.network.mtu.0);
            return Err(BuildError::value("mpi.control_bytes", spec.mpi.control_bytes.0, allowed));
        }
        let sl2vl = Sl2Vl::new(&spec.qos.sl2vl)?;
        let virtual_lanes = sl2vl.lanes();
        let lanes = required_virtual_lanes(&*routing, virtual_lanes);
        checks::lanes(&lanes, &spec.qos)?;
        let buffers = spec.network.lane_buffers(lanes.len())?;
        let input_queued = matches!(architecture, network::Architecture::InputQueued(_));
        let (transport, job_transports) =
            checks::transports(registry, &spec, buffers.lane, &*routing, (virtual_lanes, input_queued))?;
        if routing.adaptive() {
            checks::occupancy(&graph, lanes.len(), &spec.network, architecture.output_buffer())?;
        }
        checks::retransmission(&spec, &*routing)?;
        checks::lossy(&spec, &*routing, buffers.pool, input_queued, (&transport, &job_transports))?;
        checks::flow_control(&spec, &graph, &lanes, buffers, input_queued)?;
        let arbiters = registry.arbiters.clone();
        let arbiter = arbiters.build(&spec.qos.arbiter.name, &spec.qos.arbiter.params, virtual_lanes)?;
        if spec.jobs.len() > MOST_JOBS {
            return Err(BuildError::value("jobs", spec.jobs.len(), format!("at most {MOST_JOBS} jobs on one fabric")));
        }
        checks::observation(&spec)?;
        let mut levels = checks::levels(&spec)?;
        if spec.observe.counters {
            levels.count_by_class();
        }
        let counted = levels.traffic().into_iter().map(|(job, _)| job);
        let traffic = if levels.count_classes() { counted.collect() } else { Vec::new() };
        let routes = Routes {
            table: registry.routings.clone(),
            named: Named { name: spec.fabric.routing.clone(), params: spec.fabric.routing_params.clone() },
            routing: Arc::clone(&routing),
            sweep_time: spec.network.sweep_time,
        };
        let limits = Limits {
            losses: checks::cannot_lose(input_queued),
            packet: spec.network.largest_packet(),
            paused: checks::paused(&spec, virtual_lanes),
        };
        let mut faults = Schedule::new(registry.faults.clone(), Arc::clone(&graph), routes, limits);
        for (number, fault) in spec.faults.iter().enumerate() {
            faults.add(fault, &format!("fault[{number}]"))?;
        }
        let number = spec.jobs.len();
        let rails = Arc::new(RailMap::new(&graph, &BTreeSet::new()));
        let jobs = checks::jobs(spec.jobs, programs, &graph, &rails)?;
        let (parameters, observe) = (spec.network, spec.observe);
        let plan = network::Plan {
            graph,
            routing,
            arbiter,
            transport,
            job_transports,
            architecture,
            virtual_lanes,
            lossy: spec.qos.lossy,
            trim_vl: spec.qos.trim_vl,
            jobs: number,
            traffic,
            parameters,
            observe,
        };
        Ok(Self { plan, mpi: spec.mpi, levels, sl2vl, preferences, jobs, rails, arbiters, faults })
    }
}

/// The lanes that a port needs: every pair of a virtual lane in use and a virtual channel that the routing has for it.
#[must_use]
pub fn required_virtual_lanes(routing: &dyn Routing, virtual_lanes: u8) -> Vec<(u8, u8)> {
    (0..virtual_lanes).flat_map(|vl| (0..routing.channels_of(vl)).map(move |channel| (vl, channel))).collect()
}
