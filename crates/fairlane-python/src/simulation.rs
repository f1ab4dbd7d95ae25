//! The simulation: run, steer, read out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_core::ids::{HostId, JobId, LinkId, ServiceLevel, VirtualLane};
use fairlane_core::observe::{self, JobRecord, MessageRecord, RankRecord};
use fairlane_core::qos::levels::TrafficKind;
use fairlane_core::simulation as core;
use fairlane_core::units::Instant;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sha2::{Digest, Sha256};

use crate::builder::Program;
use crate::columns::Columns;
use crate::errors;
use crate::tables::registry;

/// Tables that [`Simulation::table`] knows and that enter the digest.
const MEASURED: [&str; 4] = ["ranks", "calls", "ports", "interference"];

/// In a column of instants or numbers: there is none.
const NOT_YET: u64 = u64::MAX;

/// Jobs at work on a fabric.
#[pyclass(module = "fairlane._core")]
pub struct Simulation {
    inner: core::Simulation,
}

#[pymethods]
impl Simulation {
    /// `threads`: how many run it, or, if `automatic`, at most: then one if the fabric is too small to gain. `shards`: into how
    /// many parts the fabric is divided for them, by default one for each. Nothing that is measured depends on any of it.
    #[new]
    #[pyo3(signature = (spec, programs, *, threads = 1, automatic = false, shards = None))]
    fn new(
        py: Python<'_>,
        spec: &str,
        programs: Vec<Py<Program>>,
        threads: usize,
        automatic: bool,
        shards: Option<usize>,
    ) -> PyResult<Self> {
        let spec: core::Spec = serde_json::from_str(spec).map_err(|error| errors::shape("scenario", error))?;
        let programs = programs.iter().map(|program| program.get().inner.clone()).collect();
        let inner = py.detach(|| {
            let registry = registry();
            let graph = Arc::new(spec.fabric.build(&registry)?);
            let parallelism = if automatic {
                core::Parallelism::up_to(threads, graph.hosts())
            } else {
                core::Parallelism { shards: shards.unwrap_or(threads), threads }
            };
            core::Simulation::parallel(&registry, graph, spec, programs, parallelism)
        });
        Ok(Self { inner: inner.map_err(|error| errors::build(&error))? })
    }

    /// Runs to this instant. True when every rank has finished.
    fn run_until(&mut self, py: Python<'_>, picoseconds: u64) -> PyResult<bool> {
        self.run_window_budget(py, picoseconds, u64::MAX)?;
        Ok(self.inner.finished())
    }

    /// Runs to this instant, or until about so many packet-hops more. True when there is nothing left to do before it.
    fn run_window_budget(&mut self, py: Python<'_>, picoseconds: u64, max_hops: u64) -> PyResult<bool> {
        let inner = &mut self.inner;
        py.detach(|| inner.run_until(Instant(picoseconds), max_hops)).map_err(|error| errors::run(&error))
    }

    #[getter]
    fn now(&self) -> u64 {
        self.inner.now().0
    }

    /// Parts into which the fabric is divided for threads.
    #[getter]
    fn shards(&self) -> usize {
        self.inner.network().shards()
    }

    #[getter]
    fn packet_hops(&self) -> u64 {
        self.inner.network().totals().packet_hops
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.finished()
    }

    /// Iterations by job and rank.
    fn progress(&self) -> Vec<Vec<u64>> {
        self.jobs().map(|job| self.inner.mpi().records(job).map(|(_, record)| record.iterations).collect()).collect()
    }

    /// Gives the ranks of a job service levels of their own; ranks that are left out lose theirs.
    fn set_service_levels(&mut self, job: u16, ranks: BTreeMap<u32, u8>) -> PyResult<()> {
        self.inner.set_rank_levels(JobId(job), &ranks).map_err(|error| errors::build(&error))
    }

    #[pyo3(signature = (job, level))]
    fn set_job_service_level(&mut self, job: u16, level: Option<u8>) -> PyResult<()> {
        let level = level.map(ServiceLevel);
        self.inner.change_levels(|levels| levels.set_job(JobId(job), level)).map_err(|error| errors::build(&error))
    }

    #[pyo3(signature = (kind, level))]
    fn set_kind_service_level(&mut self, kind: &str, level: Option<u8>) -> PyResult<()> {
        let kind = *fairlane_core::table::find("traffic kind", &TrafficKind::ALL, |kind| kind.name(), kind)
            .map_err(|error| errors::build(&error))?;
        let level = level.map(ServiceLevel);
        self.inner.change_levels(|levels| levels.set_kind(kind, level)).map_err(|error| errors::build(&error))
    }

    fn set_arbiter(&mut self, spec_json: &str) -> PyResult<()> {
        let arbiter = serde_json::from_str(spec_json).map_err(|error| errors::shape("qos.arbiter", error))?;
        self.inner.set_arbiter(&arbiter).map_err(|error| errors::build(&error))
    }

    /// A copy that goes on by itself from the same instant.
    fn fork(&self) -> Self {
        Self { inner: self.inner.clone() }
    }

    /// Checks the conservation laws on the whole state.
    fn check_laws(&self) -> PyResult<()> {
        self.inner.check_laws().map_err(|error| errors::run(&error))
    }

    /// A table of what was measured: "ranks", "calls", "ports", "interference", "port_interference", "departures", "marks",
    /// "job_marks", "messages", "waits", "latency", "latency_histogram", "under_way".
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let columns = self.columns(name).ok_or_else(|| PyKeyError::new_err(format!("no table {name:?}")))?;
        columns.into_dict(py)
    }

    /// A hash of all that was measured: the same for the same scenario and seed, on every platform.
    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for column in MEASURED.iter().filter_map(|name| self.columns(name)) {
            column.bytes().for_each(|bytes| hash.update(bytes));
        }
        // Once nothing is left to happen, it does not matter how far the clock was asked to go.
        if !self.inner.finished() {
            hash.update(self.inner.now().0.to_le_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Simulation {
    fn jobs(&self) -> impl Iterator<Item = JobId> + use<> {
        (0..u16::try_from(self.inner.mpi().jobs()).unwrap_or(u16::MAX)).map(JobId)
    }

    fn columns(&self, name: &str) -> Option<Columns> {
        Some(match name {
            "ranks" => self.ranks(),
            "calls" => self.calls(),
            "ports" => self.ports(),
            "interference" => self.interference(),
            "port_interference" => self.port_interference(),
            "departures" => self.departures(),
            "marks" => self.marks(),
            "job_marks" => self.job_marks(),
            "under_way" => self.under_way(),
            "messages" => self.messages(),
            "waits" => self.waits(),
            "latency" => self.latency(),
            "latency_histogram" => self.latency_histogram(),
            _ => return None,
        })
    }

    fn ranks(&self) -> Columns {
        let rows: Vec<(u16, u32, HostId, &RankRecord)> = self
            .jobs()
            .flat_map(|job| {
                (0..).zip(self.inner.mpi().records(job)).map(move |(rank, (host, r))| (job.0, rank, host, r))
            })
            .collect();
        let record = |pick: fn(&RankRecord) -> u64| rows.iter().map(move |row| pick(row.3));
        Columns::default()
            .u32("job", rows.iter().map(|row| u32::from(row.0)))
            .u32("rank", rows.iter().map(|row| row.1))
            .u32("host", rows.iter().map(|row| row.2.0))
            .u64("iterations", record(|r| r.iterations))
            .u64("first_mark", record(|r| r.first_mark.0))
            .u64("last_mark", record(|r| r.last_mark.0))
            .u64("compute", record(|r| r.compute.0))
            .u64("communication", record(|r| r.communication().0))
            .u64("late_partner", record(|r| r.late_partner.0))
            .u64("network", record(|r| r.network.0))
            .u64("messages_sent", record(|r| r.messages_sent))
            .u64("bytes_sent", record(|r| r.bytes_sent))
            .u8("finished", rows.iter().map(|row| u8::from(row.3.finished.is_some())))
            .u64("finished_at", record(|r| r.finished.map_or(0, |at| at.0)))
    }

    fn calls(&self) -> Columns {
        let mut rows = Vec::new();
        for job in self.jobs() {
            for call in 0..observe::CALLS {
                let of_ranks = self.inner.mpi().records(job).map(|(_, record)| record.call(call));
                let (count, time) = of_ranks.fold((0, 0), |sum, one| (sum.0 + one.count, sum.1 + one.time.0));
                if count > 0 {
                    rows.push((u32::from(job.0), observe::call_name(call), count, time));
                }
            }
        }
        Columns::default()
            .u32("job", rows.iter().map(|row| row.0))
            .text("call", rows.iter().map(|row| row.1.to_owned()))
            .u64("count", rows.iter().map(|row| row.2))
            .u64("time", rows.iter().map(|row| row.3))
    }

    fn ports(&self) -> Columns {
        let network = self.inner.network();
        let links = 0..u32::try_from(network.graph().links().len()).unwrap_or(u32::MAX);
        let lanes = 0..u8::try_from(network.lanes()).unwrap_or(u8::MAX);
        let rows: Vec<_> = links
            .flat_map(|link| lanes.clone().map(move |lane| (link, lane)))
            .map(|(link, lane)| {
                let times = network.port_times(LinkId(link));
                (link, lane, network.counters(LinkId(link), VirtualLane(lane)), times)
            })
            .collect();
        let columns = Columns::default()
            .u32("link", rows.iter().map(|row| row.0))
            .u8("lane", rows.iter().map(|row| row.1))
            .u64("bytes", rows.iter().map(|row| row.2.bytes))
            .u64("packets", rows.iter().map(|row| row.2.packets))
            .u64("waiting", rows.iter().map(|row| row.2.waiting.0))
            .u64("stalled", rows.iter().map(|row| row.2.stalled.0))
            .u32("max_queue", rows.iter().map(|row| row.2.max_queue))
            .u64("port_active", rows.iter().map(|row| row.3.0.0))
            .u64("port_stalled", rows.iter().map(|row| row.3.1.0));
        match rows.first().and_then(|row| row.2.onward_waiting) {
            None => columns,
            Some(_) => {
                let waiting = rows.iter().map(|row| row.2.onward_waiting.unwrap_or_default().0);
                columns.u64("onward_waiting", waiting)
            }
        }
    }

    fn interference(&self) -> Columns {
        let matrix = self.inner.network().interference();
        let cells = || (0..matrix.jobs()).flat_map(|a| (0..matrix.jobs()).map(move |b| (a, b)));
        let number = |job: usize| u32::try_from(job).unwrap_or(u32::MAX);
        Columns::default()
            .u32("delayed", cells().map(|cell| number(cell.0)))
            .u32("delaying", cells().map(|cell| number(cell.1)))
            .u64("waiting", cells().map(|(delayed, delaying)| matrix.cell(delayed, delaying)))
    }

    fn port_interference(&self) -> Columns {
        let rows = self.inner.network().interference().by_port();
        Columns::default()
            .u32("link", rows.iter().map(|row| row.0))
            .u32("delayed", rows.iter().map(|row| u32::from(row.1)))
            .u32("delaying", rows.iter().map(|row| u32::from(row.2)))
            .u64("waiting", rows.iter().map(|row| row.3))
    }

    /// Every histogram of latencies: whether it is of messages or of packets, its job, its traffic kind.
    fn histograms(&self) -> Vec<(&'static str, JobId, TrafficKind, observe::Histogram)> {
        let of = [("message", self.inner.message_latencies()), ("packet", self.inner.network().latencies())];
        let rows = of.iter().flat_map(|(of, latencies)| {
            latencies.histograms().map(move |(job, kind, histogram)| (*of, job, kind, histogram.clone()))
        });
        rows.collect()
    }

    /// Exact figures of latency. The sum has 128 bits.
    fn latency(&self) -> Columns {
        let rows = self.histograms();
        let low = |sum: u128| u64::try_from(sum & u128::from(u64::MAX)).expect("invariant: 64 bits");
        Columns::default()
            .text("of", rows.iter().map(|row| row.0.to_owned()))
            .u32("job", rows.iter().map(|row| u32::from(row.1.0)))
            .text("kind", rows.iter().map(|row| row.2.name().to_owned()))
            .u64("count", rows.iter().map(|row| row.3.count()))
            .u64("sum_low", rows.iter().map(|row| low(row.3.sum())))
            .u64("sum_high", rows.iter().map(|row| low(row.3.sum() >> 64)))
            .u64("min", rows.iter().map(|row| row.3.min().unwrap_or_default().0))
            .u64("max", rows.iter().map(|row| row.3.max().unwrap_or_default().0))
    }

    /// The buckets of the histograms in which something was counted, of latencies from `low` to `high`.
    fn latency_histogram(&self) -> Columns {
        let histograms = self.histograms();
        let rows: Vec<_> = histograms
            .iter()
            .flat_map(|(of, job, kind, histogram)| histogram.buckets().map(move |bucket| (*of, *job, *kind, bucket)))
            .collect();
        Columns::default()
            .text("of", rows.iter().map(|row| row.0.to_owned()))
            .u32("job", rows.iter().map(|row| u32::from(row.1.0)))
            .text("kind", rows.iter().map(|row| row.2.name().to_owned()))
            .u64("low", rows.iter().map(|row| row.3.low.0))
            .u64("high", rows.iter().map(|row| row.3.high.0))
            .u64("count", rows.iter().map(|row| row.3.count))
    }

    /// When each iteration was marked, of the jobs of which that is kept.
    fn marks(&self) -> Columns {
        let mpi = self.inner.mpi();
        let of_job = |job: JobId| (0_u32..).zip(mpi.records(job)).map(move |(rank, (_, record))| (job.0, rank, record));
        let rows: Vec<(u16, u32, u32, u64)> = self
            .jobs()
            .flat_map(of_job)
            .flat_map(|(job, rank, record)| (0..).zip(&record.marks).map(move |(number, at)| (job, rank, number, at.0)))
            .collect();
        Columns::default()
            .u32("job", rows.iter().map(|row| u32::from(row.0)))
            .u32("rank", rows.iter().map(|row| row.1))
            .u32("iteration", rows.iter().map(|row| row.2))
            .u64("time", rows.iter().map(|row| row.3))
    }

    /// When the last rank of each job marked each iteration, counted from 1; of many iterations every second, fourth, ...
    /// What each rank is at: for how long it has computed, or been in a call.
    fn under_way(&self) -> Columns {
        let now = self.inner.now();
        let rows: Vec<_> = self
            .jobs()
            .flat_map(|job| (0..).zip(self.inner.mpi().under_way(job, now)).map(move |(rank, it)| (job.0, rank, it)))
            .collect();
        Columns::default()
            .u32("job", rows.iter().map(|row| u32::from(row.0)))
            .u32("rank", rows.iter().map(|row| row.1))
            .u64("compute", rows.iter().map(|row| row.2.0.0))
            .u64("communication", rows.iter().map(|row| row.2.1.0))
    }

    fn job_marks(&self) -> Columns {
        let of_job = |job: JobId| self.inner.mpi().marks(job).kept().map(move |(number, at)| (job.0, number, at.0));
        let rows: Vec<(u16, u64, u64)> = self.jobs().flat_map(of_job).collect();
        Columns::default()
            .u32("job", rows.iter().map(|row| u32::from(row.0)))
            .u64("iteration", rows.iter().map(|row| row.1))
            .u64("time", rows.iter().map(|row| row.2))
    }

    /// The messages of the job that is recorded. Instants that have not come are [`NOT_YET`].
    fn messages(&self) -> Columns {
        let rows = self.inner.mpi().record().map(JobRecord::messages).unwrap_or_default();
        let instant = |pick: fn(&MessageRecord) -> Option<Instant>| {
            rows.iter().map(move |row| pick(row).map_or(NOT_YET, |at| at.0)).collect::<Vec<_>>().into_iter()
        };
        Columns::default()
            .u64("message", rows.iter().map(|row| row.number))
            .u32("token", rows.iter().map(|row| row.token))
            .u32("from_rank", rows.iter().map(|row| row.from.0))
            .u32("to_rank", rows.iter().map(|row| row.to.0))
            .u64("bytes", rows.iter().map(|row| row.bytes.0))
            .i64("tag", rows.iter().map(|row| i64::from(row.tag)))
            .u8("collective", rows.iter().map(|row| u8::from(row.collective)))
            .u8("eager", rows.iter().map(|row| u8::from(row.eager)))
            .u64("sent_at", rows.iter().map(|row| row.sent_at.0))
            .u64("posted_at", instant(|row| row.posted_at))
            .u64("received_at", instant(|row| row.received_at))
            .u64("acknowledged_at", instant(|row| row.acknowledged_at))
    }

    /// The waits of the job that is recorded.
    fn waits(&self) -> Columns {
        let rows = self.inner.mpi().record().map(JobRecord::waits).unwrap_or_default();
        Columns::default()
            .u32("rank", rows.iter().map(|row| row.rank.0))
            .text("call", rows.iter().map(|row| observe::call_name(usize::from(row.call)).to_owned()))
            .u64("since", rows.iter().map(|row| row.since.0))
            .u64("end", rows.iter().map(|row| row.end.0))
            .u64("partner_at", rows.iter().map(|row| row.partner_at.0))
            .u64("message", rows.iter().map(|row| row.message.unwrap_or(NOT_YET)))
            .u8("receiver", rows.iter().map(|row| u8::from(row.receiver)))
    }

    fn departures(&self) -> Columns {
        let rows = self.inner.network().departures();
        Columns::default()
            .u64("time", rows.iter().map(|row| row.time))
            .u64("waited", rows.iter().map(|row| row.waited))
            .u32("link", rows.iter().map(|row| row.link))
            .u8("lane", rows.iter().map(|row| row.lane))
            .u32("job", rows.iter().map(|row| u32::from(row.job)))
            .u32("message", rows.iter().map(|row| row.token))
            .u8("stage", rows.iter().map(|row| row.stage))
            .u32("packet", rows.iter().map(|row| row.packet))
            .u32("bytes", rows.iter().map(|row| row.bytes))
    }
}
