//! Programs from Python: one script per rank, written operation by operation.

use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{self, CollectiveKind, CommHandle, Op, RequestId, SendMode, Tag, Volume};
use fairlane_core::units::{Bytes, Picoseconds};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

/// What each rank of a job does.
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
}

/// A job's program in the making.
#[pyclass(module = "fairlane._core")]
pub struct ProgramBuilder {
    ranks: Vec<Vec<Line>>,
}

impl ProgramBuilder {
    fn push(&mut self, rank: u32, line: Line) -> PyResult<()> {
        let size = self.ranks.len();
        let lines = self.ranks.get_mut(rank as usize);
        lines.ok_or_else(|| PyIndexError::new_err(format!("rank {rank}: the program has {size} ranks")))?.push(line);
        Ok(())
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

#[pymethods]
#[allow(clippy::too_many_arguments, reason = "an MPI call has as many")]
impl ProgramBuilder {
    #[new]
    fn new(ranks: usize) -> Self {
        Self { ranks: vec![Vec::new(); ranks] }
    }

    fn compute(&mut self, rank: u32, picoseconds: u64) -> PyResult<()> {
        self.op(rank, Op::Compute(Picoseconds(picoseconds)))
    }

    #[pyo3(signature = (rank, to, bytes, tag = 0, comm = 0, synchronous = false))]
    fn send(&mut self, rank: u32, to: u32, bytes: u64, tag: Tag, comm: CommHandle, synchronous: bool) -> PyResult<()> {
        self.op(rank, Op::Send { to: Rank(to), bytes: Bytes(bytes), tag, comm, mode: mode(synchronous) })
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
        self.op(rank, Op::Isend { to: Rank(to), bytes: Bytes(bytes), tag, comm, mode: mode(synchronous), request })
    }

    #[pyo3(signature = (rank, source, tag = None, comm = 0))]
    fn recv(&mut self, rank: u32, source: Option<u32>, tag: Option<Tag>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Recv { from: source.map(Rank), tag, comm })
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
        self.op(rank, Op::Irecv { from: source.map(Rank), tag, comm, request })
    }

    #[pyo3(signature = (rank, source, tag = None, comm = 0))]
    fn probe(&mut self, rank: u32, source: Option<u32>, tag: Option<Tag>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Probe { from: source.map(Rank), tag, comm })
    }

    fn wait(&mut self, rank: u32, request: RequestId) -> PyResult<()> {
        self.op(rank, Op::Wait(request))
    }

    fn wait_all(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        self.op(rank, Op::WaitAll(requests.into()))
    }

    fn wait_any(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        self.op(rank, Op::WaitAny(requests.into()))
    }

    fn wait_some(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        self.op(rank, Op::WaitSome(requests.into()))
    }

    fn request_free(&mut self, rank: u32, request: RequestId) -> PyResult<()> {
        self.op(rank, Op::RequestFree(request))
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
        let kind = *fairlane_core::table::find("collective", &CollectiveKind::ALL, |kind| kind.name(), kind)
            .map_err(|error| crate::errors::build(&error))?;
        let volume = match volume {
            VolumeArgument::Uniform(bytes) => Volume::Uniform(Bytes(bytes)),
            VolumeArgument::PerRank(bytes) => Volume::PerRank(bytes.into()),
        };
        self.op(rank, Op::Collective { kind, comm, root: Rank(root), volume })
    }

    #[pyo3(signature = (rank, new, comm = 0))]
    fn comm_dup(&mut self, rank: u32, new: CommHandle, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::CommDup { comm, new })
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
        self.op(rank, Op::CommSplit { comm, new, color, key })
    }

    #[pyo3(signature = (rank, new, members, comm = 0))]
    fn comm_create(&mut self, rank: u32, new: CommHandle, members: Vec<u32>, comm: CommHandle) -> PyResult<()> {
        let members: Arc<[Rank]> = members.into_iter().map(Rank).collect();
        self.op(rank, Op::CommCreate { comm, new, members })
    }

    fn comm_free(&mut self, rank: u32, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::CommFree(comm))
    }

    fn mark_progress(&mut self, rank: u32) -> PyResult<()> {
        self.op(rank, Op::MarkProgress)
    }

    #[pyo3(signature = (rank, times))]
    fn repeat(&mut self, rank: u32, times: Option<u64>) -> PyResult<()> {
        self.push(rank, Line::Repeat(times))
    }

    fn end(&mut self, rank: u32) -> PyResult<()> {
        self.push(rank, Line::End)
    }

    /// The program; the builder stays as it is.
    fn build(&self) -> PyResult<Program> {
        let mut ranks = Vec::new();
        for (rank, lines) in self.ranks.iter().enumerate() {
            let script = Script::new(lines.clone())
                .map_err(|problem| PyValueError::new_err(format!("rank {rank}, {problem}")))?;
            ranks.push(script.source());
        }
        Ok(Program { inner: program::Program { ranks } })
    }
}
