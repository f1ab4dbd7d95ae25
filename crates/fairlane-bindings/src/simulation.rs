//! The simulation: run, steer, read out.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlane_core::ids::{JobId, Rank, ServiceLevel};
use fairlane_core::program::stepped::{Message, Stepped};
use fairlane_core::program::{COMM_WORLD, SendMode};
use fairlane_core::qos::levels::TrafficKind;
use fairlane_core::simulation as core;
use fairlane_core::units::{Bytes, Instant};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::builder::Program;
use crate::columns::into_dict;
use crate::errors;
use crate::fabric::Fabric;
use crate::plugins::registry;

/// Jobs at work on a fabric.
#[pyclass(module = "fairlane._core")]
pub struct Simulation {
    inner: core::Simulation,
}

#[pymethods]
impl Simulation {
    /// `fabric`: that of `spec`, if it is built already. `threads`: how many run it, or, if `automatic`, at most: then one if the fabric is too small to gain. `shards`: into how
    /// many parts the fabric is divided for them, by default one for each. Nothing that is measured depends on any of it.
    #[new]
    #[pyo3(signature = (spec, programs, *, fabric = None, threads = 1, automatic = false, shards = None))]
    fn new(
        py: Python<'_>,
        spec: &str,
        programs: Vec<Py<Program>>,
        fabric: Option<&Fabric>,
        threads: usize,
        automatic: bool,
        shards: Option<usize>,
    ) -> PyResult<Self> {
        let spec: core::Spec = serde_json::from_str(spec).map_err(|error| errors::shape("scenario", error))?;
        let programs = programs.iter().map(|program| program.get().inner.clone()).collect();
        let built = fabric.map(|fabric| Arc::clone(&fabric.graph));
        let inner = py.detach(|| {
            let registry = registry();
            let graph = built.map_or_else(|| spec.fabric.build(registry).map(Arc::new), Ok)?;
            let parallelism = if automatic {
                core::Parallelism::up_to(threads, graph.hosts())
            } else {
                core::Parallelism { shards: shards.unwrap_or(threads), threads }
            };
            core::Simulation::parallel(registry, graph, spec, programs, parallelism)
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

    /// Runs all windows that end at this instant or before, or about so many packet-hops; with `first`, no further than the first
    /// window in which a message that was sent is complete. True when there is nothing more to run.
    fn step(&mut self, py: Python<'_>, picoseconds: u64, max_hops: u64, first: bool) -> PyResult<bool> {
        let inner = &mut self.inner;
        py.detach(|| inner.step(Instant(picoseconds), max_hops, first)).map_err(|error| errors::run(&error))
    }

    /// Has a message of a job whose workload is stepped be sent `at` this instant; `communicator` is the place of a name of its.
    #[allow(clippy::too_many_arguments, reason = "a message has so many parts")]
    fn send(
        &mut self,
        job: u16,
        handle: u64,
        from_rank: u32,
        to: u32,
        bytes: u64,
        tag: i32,
        eager: bool,
        at: u64,
        communicator: Option<u16>,
    ) -> PyResult<()> {
        let mode = if eager { SendMode::Eager } else { SendMode::Standard };
        let comm = communicator.map_or(COMM_WORLD, Stepped::communicator);
        let message = Message { handle, from: Rank(from_rank), to: Rank(to), bytes: Bytes(bytes), tag, mode, comm };
        self.inner.send(JobId(job), message, Instant(at)).map_err(|error| errors::build(&error))
    }

    /// Times and handles of the messages that have become complete since the last call.
    fn take_completed(&mut self) -> Vec<(u64, u64)> {
        self.inner.take_completed().into_iter().map(|(at, handle)| (at.0, handle)).collect()
    }

    /// How long a window is, in picoseconds.
    #[getter]
    fn window(&self) -> u64 {
        self.inner.network().window().0
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

    /// Messages that have been sent and not received.
    #[getter]
    fn messages(&self) -> u64 {
        self.inner.messages()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.finished()
    }

    /// Iterations by job and rank.
    fn progress(&self) -> Vec<Vec<u64>> {
        self.inner.progress()
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

    #[pyo3(signature = (name, level))]
    fn set_class_service_level(&mut self, name: &str, level: Option<u8>) -> PyResult<()> {
        let level = level.map(ServiceLevel);
        self.inner.change_levels(|levels| levels.set_class(name, level)).map_err(|error| errors::build(&error))
    }

    fn set_arbiter(&mut self, spec_json: &str) -> PyResult<()> {
        let arbiter = serde_json::from_str(spec_json).map_err(|error| errors::shape("qos.arbiter", error))?;
        self.inner.set_arbiter(&arbiter).map_err(|error| errors::build(&error))
    }

    fn add_fault(&mut self, spec_json: &str) -> PyResult<()> {
        let fault = serde_json::from_str(spec_json).map_err(|error| errors::shape("fault", error))?;
        self.inner.add_fault(&fault).map_err(|error| errors::build(&error))
    }

    /// A copy that goes on by itself from the same instant.
    fn fork(&self) -> Self {
        Self { inner: self.inner.clone() }
    }

    /// Checks the conservation laws on the whole state.
    fn check_laws(&self) -> PyResult<()> {
        self.inner.check_laws().map_err(|error| errors::run(&error))
    }

    /// A table of what was measured; see `fairlane_core::results::TABLES`.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let columns = self.inner.table(name).map_err(|error| PyKeyError::new_err(error.to_string()))?;
        into_dict(py, &columns)
    }

    /// A hash of all that was measured: the same for the same scenario and seed, on every platform.
    fn digest(&self) -> String {
        self.inner.digest()
    }
}
