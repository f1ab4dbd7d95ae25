//! A simulation: a fabric, jobs on it, and the clock. Puts the floors together.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::error::{BuildError, RunError};
use crate::ids::{HostId, JobId, Rank, ServiceLevel, SwitchId};
use crate::mpi::collectives::Preferences;
use crate::mpi::{self, JobSetup, Mpi, RailPolicy, Shards};
use crate::network::{self, Network};
use crate::observe::{self, Latencies, RecordOf};
use crate::program::Program;
use crate::qos::arbiter::{self, MAX_LANES};
use crate::qos::levels::{Levels, Sl2Vl, TrafficKind};
use crate::registry::Registry;
use crate::results::{self, Measured};
use crate::routing::Routing;
pub use crate::table::Named;
use crate::table::Table;
use crate::topology::{Graph, RailsSpec, Size, Vertex};
use crate::units::{Bytes, Instant, Picoseconds};

/// The interference matrix has a cell for every pair of jobs: 128 MiB for this many.
const MOST_JOBS: usize = 4096;

/// Which fabric, and how packets find their way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricSpec {
    /// Name of the topology.
    pub topology: String,
    /// Its parameters.
    #[serde(default)]
    pub params: serde_json::Value,
    /// Name of the routing.
    pub routing: String,
    /// Its parameters.
    #[serde(default)]
    pub routing_params: serde_json::Value,
    /// Adapters of each host, where there are several.
    #[serde(default)]
    pub rails: Option<RailsSpec>,
}

impl FabricSpec {
    /// How large the graph will be: nothing is built.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn size(&self, registry: &Registry) -> Result<Size, BuildError> {
        let size = registry.topologies().size(&self.topology, &self.params)?;
        Ok(self.rails.as_ref().map_or(size, |rails| rails.size(size)))
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn build(&self, registry: &Registry) -> Result<Graph, BuildError> {
        let size = self.size(registry)?;
        if let Some(rails) = &self.rails {
            size.check_as("fabric.rails.count", rails.count)?;
        }
        let graph = registry.topologies().build(&self.topology, &self.params, ())?;
        self.rails.iter().try_fold(graph, Graph::with_rails)
    }

    /// Prepares the routing for the graph.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn route(&self, registry: &Registry, graph: &Graph) -> Result<Box<dyn Routing>, BuildError> {
        registry.routings().build(&self.routing, &self.routing_params, graph)
    }
}

/// Service levels, virtual lanes and arbitration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QosSpec {
    /// Virtual lanes of every port; those of `sl2vl` if absent.
    #[serde(default)]
    pub lanes: Option<u8>,
    /// The virtual lane of each service level; levels beyond the list take lane 0.
    #[serde(default)]
    pub sl2vl: Vec<u8>,
    /// How lanes share a link.
    pub arbiter: Named,
    /// The service level of messages that have no other.
    #[serde(default)]
    pub default: u8,
    /// Service levels of traffic kinds: "control", "eager", "bulk", "collective".
    #[serde(default)]
    pub kinds: BTreeMap<String, Option<u8>>,
}

/// A job: where its ranks live, and their service levels. Its program is given beside the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Its name, for errors and tables.
    pub name: String,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// The job's service level.
    #[serde(default)]
    pub service_level: Option<u8>,
    /// Service levels of single ranks.
    #[serde(default)]
    pub ranks: BTreeMap<u32, u8>,
    /// How its messages are shared among the adapters of its hosts; by default round robin where the fabric has rails,
    /// else over each host's first adapter.
    #[serde(default)]
    pub rails: Option<RailPolicy>,
    /// When its ranks begin.
    #[serde(default)]
    pub start: Picoseconds,
    /// When it ends, whatever its programs say: a rank does nothing more once it would go on at this instant or later.
    #[serde(default)]
    pub stop: Option<Picoseconds>,
    /// Keep the instant of every iteration that its ranks mark.
    #[serde(default)]
    pub marks: bool,
}

/// All of a simulation but the programs. All quantities are picoseconds, bytes and bits per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The fabric.
    pub fabric: FabricSpec,
    /// The network's parameters.
    #[serde(default)]
    pub network: network::Parameters,
    /// Quality of service.
    pub qos: QosSpec,
    /// The MPI library's parameters.
    #[serde(default)]
    pub mpi: mpi::Parameters,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
    /// What to keep.
    #[serde(default)]
    pub observe: observe::Parameters,
}

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
    arbiters: Table<arbiter::Entry>,
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
        let Parts { plan, mpi: parameters, levels, sl2vl, preferences, jobs, arbiters } =
            Parts::new(registry, graph, routing, spec, programs)?;
        let observe = plan.observe;
        let partition = network::Partition::new(&plan.graph, parallelism.shards.min(plan.most_shards()));
        let of_hosts = partition.of_hosts(&plan.graph);
        let mut network = Network::new(&plan, partition);
        network.set_threads(parallelism.threads);
        let shards = Shards { count: network.shards(), of_hosts: &of_hosts };
        let mut mpi = Mpi::new(plan.parameters.largest_message(), parameters, levels, sl2vl, &shards, jobs);
        mpi.prefer(&preferences);
        if network.adaptive() || network.paces() {
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
        Ok(Self { network, mpi, arbiters, failed: None })
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
        let result = self.network.run_until(end, hops, self.mpi.shards());
        let reached = self.mpi.conclude(result)?;
        if let Some(deadlock) = self.network.deadlock() {
            return Err(deadlock);
        }
        if cfg!(debug_assertions) {
            self.check_laws()?;
        }
        Ok(reached || self.finished())
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
        Measured { network: &self.network, mpi: &self.mpi }
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
    /// What `change` returns.
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

    /// Replaces the arbiter, or its weights, on every port, from the next decision on.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn set_arbiter(&mut self, arbiter: &Named) -> Result<(), BuildError> {
        let lanes = self.network.virtual_lanes();
        self.network.set_arbiter(&self.arbiters.build(&arbiter.name, &arbiter.params, lanes)?.into());
        Ok(())
    }
}

/// What a simulation is built from, all of it checked.
struct Parts {
    plan: network::Plan,
    mpi: mpi::Parameters,
    levels: Levels,
    sl2vl: Sl2Vl,
    preferences: Preferences,
    jobs: Vec<JobSetup>,
    arbiters: Table<arbiter::Entry>,
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
        let Named { name, params } = &spec.network.transport;
        let transport = registry.transports().build(name, params, ())?.into();
        let architecture = registry.architecture(&spec.network)?;
        spec.mpi.check()?;
        let preferences = Preferences::new(&spec.mpi.collectives, registry.collectives())?;
        if spec.mpi.control_bytes > spec.network.mtu {
            let allowed =
                format!("at most network.mtu ({} bytes): a control message is one packet", spec.network.mtu.0);
            return Err(BuildError::value("mpi.control_bytes", spec.mpi.control_bytes.0, allowed));
        }
        let sl2vl = Sl2Vl::new(&spec.qos.sl2vl)?;
        let virtual_lanes = sl2vl.lanes();
        let lanes = required_virtual_lanes(&*routing, virtual_lanes);
        check_lanes(&lanes, &spec.qos)?;
        if routing.adaptive() {
            check_occupancy(&graph, lanes.len(), spec.network.buffer, architecture.output_buffer())?;
        }
        let arbiters = registry.arbiters().clone();
        let arbiter = arbiters.build(&spec.qos.arbiter.name, &spec.qos.arbiter.params, virtual_lanes)?.into();
        if spec.jobs.len() > MOST_JOBS {
            return Err(BuildError::value("jobs", spec.jobs.len(), format!("at most {MOST_JOBS} jobs on one fabric")));
        }
        check_observation(&spec)?;
        let levels = levels(&spec)?;
        let number = spec.jobs.len();
        let jobs = plans(spec.jobs, programs, &graph)?;
        let (parameters, observe) = (spec.network, spec.observe);
        let plan = network::Plan {
            graph,
            routing,
            arbiter,
            transport,
            architecture,
            virtual_lanes,
            jobs: number,
            parameters,
            observe,
        };
        Ok(Self { plan, mpi: spec.mpi, levels, sl2vl, preferences, jobs, arbiters })
    }
}

/// The lanes that a port needs: every pair of a virtual lane in use and a virtual channel that the routing has for it.
#[must_use]
pub fn required_virtual_lanes(routing: &dyn Routing, virtual_lanes: u8) -> Vec<(u8, u8)> {
    (0..virtual_lanes).flat_map(|vl| (0..routing.channels_of(vl)).map(move |channel| (vl, channel))).collect()
}

fn check_observation(spec: &Spec) -> Result<(), BuildError> {
    let observe = &spec.observe;
    if observe.interference_by_port && !observe.counters {
        let allowed = "only with observe.counters, of which it is a part";
        return Err(BuildError::value("observe.interference_by_port", true, allowed));
    }
    let Some(RecordOf { job, from, to }) = observe.record else { return Ok(()) };
    if job.index() >= spec.jobs.len() {
        return Err(BuildError::value(
            "observe.record.job",
            job,
            format!("a job, 0 to {}", spec.jobs.len().max(1) - 1),
        ));
    }
    if from >= to {
        return Err(BuildError::value("observe.record.to", to, "an instant after observe.record.from"));
    }
    Ok(())
}

/// Refuses more lanes than a switch has, and says what needs them: service levels, each with the channels of its lane.
fn check_lanes(pairs: &[(u8, u8)], qos: &QosSpec) -> Result<(), BuildError> {
    let most = qos.lanes.map_or(MAX_LANES, usize::from).min(MAX_LANES);
    if pairs.len() <= most {
        return Ok(());
    }
    let words: Vec<String> =
        pairs.iter().map(|(vl, channel)| format!("({}, {channel})", users(&qos.sl2vl, *vl))).collect();
    let allowed = format!(
        "at least {}, one for each pair of service level and virtual channel: {}; a simulated switch has at most \
         {MAX_LANES}",
        pairs.len(),
        words.join(" ")
    );
    Err(BuildError::value("qos.lanes", most, allowed))
}

/// Refuses buffers that the occupancy table of adaptive routing has no number for. All that its input buffers hold may wait
/// for one port of a switch, and is counted in 32 bits.
fn check_occupancy(graph: &Graph, lanes: usize, buffer: Bytes, output: Bytes) -> Result<(), BuildError> {
    let ports = |switch| graph.ports(Vertex::Switch(SwitchId(switch))).len();
    let most = (0..).take(graph.switches()).max_by_key(|switch| ports(*switch));
    let Some(largest) = most else { return Ok(()) };
    let buffers = (ports(largest) * lanes).max(1) as u64;
    let limit = (u64::from(u32::MAX) / buffers).saturating_sub(output.0);
    if buffer.0 <= limit {
        return Ok(());
    }
    let name = graph.switch_name(SwitchId(largest));
    let allowed = format!(
        "at most {limit} bytes with a routing that looks at loads: the buffers of {name:?}, {} ports of {lanes} lanes{}, \
         must hold less than 4 GiB together",
        ports(largest),
        if output.0 == 0 { String::new() } else { format!(" with output buffers of {} bytes", output.0) }
    );
    Err(BuildError::value("network.buffer", buffer.0, allowed))
}

/// The service levels of a virtual lane in words. Levels at the end of the map that take lane 0 are as those beyond it.
fn users(sl2vl: &[u8], vl: u8) -> String {
    let end = sl2vl.iter().rposition(|lane| *lane != 0).map_or(1, |last| last + 1);
    let lanes = (0..end).map(|level| sl2vl.get(level).copied().unwrap_or(0));
    let levels: Vec<String> =
        lanes.enumerate().filter(|(_, lane)| *lane == vl).map(|(level, _)| level.to_string()).collect();
    if levels.is_empty() { format!("none on lane {vl}") } else { levels.join("+") }
}

fn levels(spec: &Spec) -> Result<Levels, BuildError> {
    let sizes: Vec<u32> = spec.jobs.iter().map(|job| u32::try_from(job.hosts.len()).unwrap_or(u32::MAX)).collect();
    let mut levels = Levels::new(&sizes);
    levels.set_default(ServiceLevel(spec.qos.default))?;
    for (name, level) in &spec.qos.kinds {
        let kind = crate::table::find("traffic kind", &TrafficKind::ALL, |kind| kind.name(), name)?;
        levels.set_kind(*kind, level.map(ServiceLevel))?;
    }
    for (number, job) in spec.jobs.iter().enumerate() {
        let id = JobId(u16::try_from(number).expect("invariant: at most 4096 jobs"));
        levels.set_job(id, job.service_level.map(ServiceLevel))?;
        for (&rank, &level) in &job.ranks {
            levels.set_rank(id, Rank(rank), Some(ServiceLevel(level)))?;
        }
    }
    Ok(levels)
}

/// A job's rail policy, and how many adapters all of its hosts have.
fn rails(graph: &Graph, number: usize, job: &JobSpec) -> Result<(RailPolicy, u8), BuildError> {
    let of_host = |host: &HostId| graph.ports(Vertex::Host(*host)).len();
    let fewest = job.hosts.iter().min_by_key(|host| of_host(host));
    let adapters = fewest.map_or(1, |host| u8::try_from(of_host(host)).unwrap_or(u8::MAX));
    let usual = if graph.rails() > 1 { RailPolicy::RoundRobin } else { RailPolicy::Only { only: 0 } };
    let policy = job.rails.clone().unwrap_or(usual);
    let (key, most) = match &policy {
        RailPolicy::Only { only } => ("only", Some(only)),
        RailPolicy::BySource { ranks } => ("ranks", ranks.iter().max()),
        _ => return Ok((policy, adapters)),
    };
    match (most, fewest) {
        (Some(rail), Some(host)) if *rail >= adapters => {
            let path = format!("jobs[{number}].rails.{key}");
            Err(BuildError::value(path, rail, format!("a rail of {:?}, 0 to {}", graph.host_name(*host), adapters - 1)))
        }
        _ => Ok((policy, adapters)),
    }
}

fn plans(jobs: Vec<JobSpec>, programs: Vec<Program>, graph: &Graph) -> Result<Vec<JobSetup>, BuildError> {
    let hosts = graph.hosts();
    if jobs.len() != programs.len() {
        return Err(BuildError::value("jobs", jobs.len(), format!("as many as programs ({})", programs.len())));
    }
    let mut plans = Vec::new();
    for (number, (job, program)) in jobs.into_iter().zip(programs).enumerate() {
        let path = format!("jobs[{number}].hosts");
        if job.hosts.len() != program.ranks.len() {
            let allowed = format!("one host for each of the program's {} ranks", program.ranks.len());
            return Err(BuildError::value(path, job.hosts.len(), allowed));
        }
        if let Some(host) = job.hosts.iter().find(|host| host.index() >= hosts) {
            return Err(BuildError::value(path, host, format!("a host of the fabric, 0 to {}", hosts - 1)));
        }
        if job.stop.is_some_and(|stop| stop <= job.start) {
            let path = format!("jobs[{number}].stop");
            return Err(BuildError::value(path, job.stop.unwrap_or_default(), "an instant after jobs[].start"));
        }
        let (rails, adapters) = rails(graph, number, &job)?;
        let (start, stop) = (Instant(job.start.0), job.stop.map(|stop| Instant(stop.0)));
        let JobSpec { name, hosts, marks, .. } = job;
        plans.push(JobSetup { name, program, hosts, rails, adapters, start, stop, marks });
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_a_switch_does_not_have_are_named_by_service_level() {
        let qos = |sl2vl: &[u8], lanes| QosSpec {
            lanes: Some(lanes),
            sl2vl: sl2vl.to_vec(),
            arbiter: Named { name: String::new(), params: serde_json::Value::Null },
            default: 0,
            kinds: BTreeMap::new(),
        };
        let pairs = [(0, 0), (0, 1), (1, 0), (2, 0)];
        assert_eq!(check_lanes(&pairs, &qos(&[0, 1, 2, 0], 4)), Ok(()));
        let error = check_lanes(&pairs, &qos(&[0, 0, 2, 0], 3)).unwrap_err().to_string();
        assert!(error.starts_with("qos.lanes = 3: at least 4, one for each pair of service level"), "{error}");
        assert!(error.contains(": (0+1, 0) (0+1, 1) (none on lane 1, 0) (2, 0);"), "{error}");
        let error = check_lanes(&pairs[..2], &qos(&[0; 16], 1)).unwrap_err().to_string();
        assert!(error.contains(": (0, 0) (0, 1);"), "{error}");
    }

    #[test]
    fn buffers_that_occupancy_cannot_count_are_refused() {
        // Leaves of 8 ports: with 4 lanes, 32 buffers.
        let params = serde_json::json!({ "hosts": 32, "levels": 2, "radix": 8 });
        let graph = crate::topology::build("fat_tree", &params).unwrap();
        let limit = u64::from(u32::MAX) / 32;
        assert_eq!(check_occupancy(&graph, 4, Bytes(limit), Bytes(0)), Ok(()));
        let error = check_occupancy(&graph, 4, Bytes(limit - 9_000), Bytes(9_001)).unwrap_err().to_string();
        assert!(error.contains("with output buffers of 9001 bytes"), "{error}");
        let error = check_occupancy(&graph, 4, Bytes(limit + 1), Bytes(0)).unwrap_err().to_string();
        assert!(error.starts_with("network.buffer = 134217728: at most 134217727 bytes"), "{error}");
        assert!(error.contains("8 ports of 4 lanes"), "{error}");
    }
}
