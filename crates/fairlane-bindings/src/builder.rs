//! Programs from Python: one script per rank, written operation by operation.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::open_loop::JobLoad;
use fairlane_core::program::script::Line;
use fairlane_core::program::{
    self, Collective, CollectiveKind, Comm, CommHandle, NeighborKind, Op, P2p, RequestId, Rma, RmaKind, SendMode, Tag,
    Topology, Volume, WindowHandle,
};
use fairlane_core::units::{Bytes, Picoseconds};
use pyo3::prelude::*;

use crate::errors;

/// The program of each rank of a job.
#[pyclass(frozen, module = "fairlane._core")]
pub struct Program {
    /// The program itself.
    pub inner: program::Program,
}

#[pymethods]
impl Program {
    /// How many ranks it has.
    #[getter]
    fn ranks(&self) -> usize {
        self.inner.ranks.len()
    }

    /// The names that its ranks give to communicators, sorted.
    #[getter]
    fn communicators(&self) -> Vec<String> {
        self.inner.communicators().iter().map(ToString::to_string).collect()
    }
}

/// The program of a job that generates open-loop load, from JSON.
#[pyfunction]
pub fn open_loop(spec: &str) -> PyResult<Program> {
    let load: JobLoad = serde_json::from_str(spec).map_err(|error| errors::shape("workload", error))?;
    Ok(Program { inner: load.program().map_err(|error| errors::build(&error))? })
}

/// The program of a job whose messages are given while the simulation runs, on one of these communicators or none.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "of Python")]
pub fn stepped(ranks: u32, communicators: Vec<String>) -> Program {
    Program { inner: program::stepped::Stepped::program(ranks, &communicators) }
}

/// A job's program in the making.
#[pyclass(module = "fairlane._core")]
pub struct ProgramBuilder {
    inner: program::ProgramBuilder,
}

impl ProgramBuilder {
    fn push(&mut self, rank: u32, line: Line) -> PyResult<()> {
        self.inner.push(rank, line).map_err(|error| errors::program(&error))
    }

    fn op(&mut self, rank: u32, op: Op) -> PyResult<()> {
        self.push(rank, Line::Op(op))
    }
}

fn mode(synchronous: bool) -> SendMode {
    if synchronous { SendMode::Synchronous } else { SendMode::Standard }
}

#[derive(FromPyObject)]
enum VolumeArgument {
    Uniform(u64),
    PerRank(Vec<u64>),
}

impl From<VolumeArgument> for Volume {
    fn from(volume: VolumeArgument) -> Self {
        match volume {
            VolumeArgument::Uniform(bytes) => Self::Uniform(Bytes(bytes)),
            VolumeArgument::PerRank(bytes) => Self::PerRank(bytes.into()),
        }
    }
}

fn ranks(numbers: Vec<u32>) -> Arc<[Rank]> {
    numbers.into_iter().map(Rank).collect()
}

fn named<K: Copy>(all: &[K], name_of: impl Fn(&K) -> &'static str, what: &'static str, name: &str) -> PyResult<K> {
    fairlane_core::table::find(what, all, name_of, name).copied().map_err(|error| errors::build(&error))
}

#[pymethods]
#[allow(clippy::too_many_arguments, reason = "an MPI call has as many")]
impl ProgramBuilder {
    #[new]
    fn new(ranks: usize) -> Self {
        Self { inner: program::ProgramBuilder::new(ranks) }
    }

    fn compute(&mut self, rank: u32, picoseconds: u64) -> PyResult<()> {
        self.op(rank, Op::Compute(Picoseconds(picoseconds)))
    }

    #[pyo3(signature = (rank, to, bytes, tag = 0, comm = 0, synchronous = false))]
    fn send(&mut self, rank: u32, to: u32, bytes: u64, tag: Tag, comm: CommHandle, synchronous: bool) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Send { to: Rank(to), bytes: Bytes(bytes), tag, comm, mode: mode(synchronous) }))
    }

    #[pyo3(signature = (rank, to, bytes, request, tag = 0, comm = 0, synchronous = false))]
    fn isend(
        &mut self,
        rank: u32,
        to: u32,
        bytes: u64,
        request: RequestId,
        tag: Tag,
        comm: CommHandle,
        synchronous: bool,
    ) -> PyResult<()> {
        self.op(
            rank,
            Op::P2p(P2p::Isend { to: Rank(to), bytes: Bytes(bytes), tag, comm, mode: mode(synchronous), request }),
        )
    }

    #[pyo3(signature = (rank, source, tag = None, comm = 0))]
    fn recv(&mut self, rank: u32, source: Option<u32>, tag: Option<Tag>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Recv { from: source.map(Rank), tag, comm }))
    }

    #[pyo3(signature = (rank, source, request, tag = None, comm = 0))]
    fn irecv(
        &mut self,
        rank: u32,
        source: Option<u32>,
        request: RequestId,
        tag: Option<Tag>,
        comm: CommHandle,
    ) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Irecv { from: source.map(Rank), tag, comm, request }))
    }

    fn datagram(&mut self, rank: u32, to: u32, bytes: u64) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Datagram { to: Rank(to), bytes: Bytes(bytes) }))
    }

    #[pyo3(signature = (rank, source, tag = None, comm = 0))]
    fn probe(&mut self, rank: u32, source: Option<u32>, tag: Option<Tag>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Probe { from: source.map(Rank), tag, comm }))
    }

    fn wait(&mut self, rank: u32, request: RequestId) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::Wait(request)))
    }

    fn wait_all(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.inner.share(requests);
        self.op(rank, Op::P2p(P2p::WaitAll(requests)))
    }

    fn wait_any(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.inner.share(requests);
        self.op(rank, Op::P2p(P2p::WaitAny(requests)))
    }

    fn wait_some(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.inner.share(requests);
        self.op(rank, Op::P2p(P2p::WaitSome(requests)))
    }

    /// See `fairlane_core::program::ProgramBuilder::exchange`. One call for what else takes two for each message.
    fn exchange(
        &mut self,
        rank: u32,
        sources: Vec<u32>,
        targets: Vec<u32>,
        bytes: u64,
        first: RequestId,
    ) -> PyResult<()> {
        let written = self.inner.exchange(rank, &ranks(sources), &ranks(targets), Bytes(bytes), first);
        written.map_err(|error| errors::program(&error))
    }

    fn request_free(&mut self, rank: u32, request: RequestId) -> PyResult<()> {
        self.op(rank, Op::P2p(P2p::RequestFree(request)))
    }

    #[pyo3(signature = (rank, kind, volume = VolumeArgument::Uniform(0), comm = 0, root = 0))]
    fn collective(
        &mut self,
        rank: u32,
        kind: &str,
        volume: VolumeArgument,
        comm: CommHandle,
        root: u32,
    ) -> PyResult<()> {
        let kind = named(&CollectiveKind::ALL, |kind| kind.name(), "collective", kind)?;
        self.op(rank, Op::Collective(Collective::Blocking { kind, comm, root: Rank(root), volume: volume.into() }))
    }

    #[pyo3(signature = (rank, kind, request, volume = VolumeArgument::Uniform(0), comm = 0, root = 0))]
    fn icollective(
        &mut self,
        rank: u32,
        kind: &str,
        request: RequestId,
        volume: VolumeArgument,
        comm: CommHandle,
        root: u32,
    ) -> PyResult<()> {
        let kind = named(&CollectiveKind::ALL, |kind| kind.name(), "collective", kind)?;
        self.op(
            rank,
            Op::Collective(Collective::Nonblocking { kind, comm, root: Rank(root), volume: volume.into(), request }),
        )
    }

    fn neighbor(&mut self, rank: u32, kind: &str, volume: VolumeArgument, comm: CommHandle) -> PyResult<()> {
        let kind = named(&NeighborKind::ALL, |kind| kind.name(), "neighborhood collective", kind)?;
        self.op(rank, Op::Collective(Collective::Neighbor { kind, comm, volume: volume.into() }))
    }

    fn ineighbor(
        &mut self,
        rank: u32,
        kind: &str,
        request: RequestId,
        volume: VolumeArgument,
        comm: CommHandle,
    ) -> PyResult<()> {
        let kind = named(&NeighborKind::ALL, |kind| kind.name(), "neighborhood collective", kind)?;
        self.op(rank, Op::Collective(Collective::NonblockingNeighbor { kind, comm, volume: volume.into(), request }))
    }

    #[pyo3(signature = (rank, new, dimensions, comm = 0))]
    fn cart_create(
        &mut self,
        rank: u32,
        new: CommHandle,
        dimensions: Vec<(u32, bool)>,
        comm: CommHandle,
    ) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Topology { comm, new, topology: Arc::new(Topology::Cart { dimensions }) }))
    }

    #[pyo3(signature = (rank, new, neighbors, comm = 0))]
    fn graph_create(&mut self, rank: u32, new: CommHandle, neighbors: Vec<Vec<u32>>, comm: CommHandle) -> PyResult<()> {
        let neighbors = neighbors.into_iter().map(|of_rank| of_rank.into_iter().map(Rank).collect()).collect();
        self.op(rank, Op::Comm(Comm::Topology { comm, new, topology: Arc::new(Topology::Graph { neighbors }) }))
    }

    #[pyo3(signature = (rank, new, sources, destinations, comm = 0))]
    fn dist_graph_create_adjacent(
        &mut self,
        rank: u32,
        new: CommHandle,
        sources: Vec<u32>,
        destinations: Vec<u32>,
        comm: CommHandle,
    ) -> PyResult<()> {
        let topology = Topology::Adjacent { sources: ranks(sources), destinations: ranks(destinations) };
        self.op(rank, Op::Comm(Comm::Topology { comm, new, topology: Arc::new(topology) }))
    }

    #[pyo3(signature = (rank, win, comm = 0))]
    fn win_create(&mut self, rank: u32, win: WindowHandle, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Create { comm, win }))
    }

    fn win_free(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Free { win }))
    }

    #[pyo3(signature = (rank, kind, win, target, bytes, request = None))]
    fn rma(
        &mut self,
        rank: u32,
        kind: &str,
        win: WindowHandle,
        target: u32,
        bytes: u64,
        request: Option<RequestId>,
    ) -> PyResult<()> {
        let kind = named(&RmaKind::ALL, |kind| kind.name(), "one-sided operation", kind)?;
        self.op(rank, Op::Rma(Rma::Access { kind, win, target: Rank(target), bytes: Bytes(bytes), request }))
    }

    fn win_fence(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Fence { win }))
    }

    #[pyo3(signature = (rank, win, target, exclusive = false))]
    fn win_lock(&mut self, rank: u32, win: WindowHandle, target: u32, exclusive: bool) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Lock { win, target: Rank(target), exclusive }))
    }

    fn win_unlock(&mut self, rank: u32, win: WindowHandle, target: u32) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Unlock { win, target: Rank(target) }))
    }

    fn win_lock_all(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::LockAll { win }))
    }

    fn win_unlock_all(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::UnlockAll { win }))
    }

    #[pyo3(signature = (rank, win, target = None))]
    fn win_flush(&mut self, rank: u32, win: WindowHandle, target: Option<u32>) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Flush { win, target: target.map(Rank) }))
    }

    fn win_post(&mut self, rank: u32, win: WindowHandle, group: Vec<u32>) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Post { win, group: ranks(group) }))
    }

    fn win_start(&mut self, rank: u32, win: WindowHandle, group: Vec<u32>) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Start { win, group: ranks(group) }))
    }

    fn win_complete(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Complete { win }))
    }

    fn win_wait(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::Rma(Rma::Wait { win }))
    }

    #[pyo3(signature = (rank, new, comm = 0))]
    fn comm_dup(&mut self, rank: u32, new: CommHandle, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Dup { comm, new }))
    }

    #[pyo3(signature = (rank, new, color, key, comm = 0))]
    fn comm_split(
        &mut self,
        rank: u32,
        new: CommHandle,
        color: Option<i32>,
        key: i32,
        comm: CommHandle,
    ) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Split { comm, new, color, key }))
    }

    #[pyo3(signature = (rank, new, members, comm = 0))]
    fn comm_create(&mut self, rank: u32, new: CommHandle, members: Vec<u32>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Create { comm, new, members: ranks(members) }))
    }

    fn comm_define(&mut self, rank: u32, new: CommHandle, members: Vec<u32>) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Define { new, members: ranks(members) }))
    }

    fn comm_set_name(&mut self, rank: u32, comm: CommHandle, name: &str) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::SetName { comm, name: name.into() }))
    }

    fn comm_free(&mut self, rank: u32, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Comm(Comm::Free(comm)))
    }

    fn begin_timing(&mut self, rank: u32) -> PyResult<()> {
        self.op(rank, Op::BeginTiming)
    }

    fn mark_progress(&mut self, rank: u32) -> PyResult<()> {
        self.op(rank, Op::MarkProgress)
    }

    fn end_burst(&mut self, rank: u32, after: u64) -> PyResult<()> {
        self.op(rank, Op::EndBurst(Picoseconds(after)))
    }

    fn pause(&mut self, rank: u32, time: u64) -> PyResult<()> {
        self.op(rank, Op::Pause(Picoseconds(time)))
    }

    #[pyo3(signature = (rank, times))]
    fn repeat(&mut self, rank: u32, times: Option<u64>) -> PyResult<()> {
        self.push(rank, Line::Repeat(times))
    }

    /// For each of these times, in picoseconds: a computation so long, and what follows up to the matching `end`.
    fn each(&mut self, rank: u32, times: Vec<u64>) -> PyResult<()> {
        self.push(rank, Line::Each(times.into_iter().map(Picoseconds).collect()))
    }

    fn end(&mut self, rank: u32) -> PyResult<()> {
        self.push(rank, Line::End)
    }

    /// The program; the builder is empty afterwards.
    fn build(&mut self) -> PyResult<Program> {
        Ok(Program { inner: self.inner.build().map_err(|error| errors::program(&error))? })
    }
}
