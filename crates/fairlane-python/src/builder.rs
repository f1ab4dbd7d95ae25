//! Programs from Python: one script per rank, written operation by operation.

use std::collections::HashSet;
use std::sync::Arc;

use fairlane_core::ids::Rank;
use fairlane_core::program::open_loop::{Arrivals, OpenLoop};
use fairlane_core::program::script::{Line, Script};
use fairlane_core::program::{
    self, CollectiveKind, CommHandle, NeighborKind, Op, RequestId, RmaKind, SendMode, Tag, Topology, Volume,
    WindowHandle,
};
use fairlane_core::rng;
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

/// The load that one rank of an open-loop program generates: mean gap in picoseconds, and which list of targets it has.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenLoopRank {
    gap: f64,
    targets: usize,
}

/// An open-loop program: the same for all ranks but for the gaps and the targets.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenLoopSpec {
    arrivals: Arrivals,
    sizes: Vec<u64>,
    /// Lists of targets; ranks share them.
    targets: Vec<Vec<u32>>,
    fraction: f64,
    messages: Option<u64>,
    seed: u64,
    ranks: Vec<OpenLoopRank>,
}

impl OpenLoopSpec {
    /// What is wrong with it, if anything.
    fn problem(&self) -> Option<String> {
        let size = self.ranks.len();
        let sends_to_self = |(rank, of): (usize, &OpenLoopRank)| {
            self.targets.get(of.targets).is_none_or(|list| list.iter().any(|to| *to as usize == rank))
        };
        let beyond = |to: &u32| *to as usize >= size;
        if self.sizes.is_empty() {
            Some("sizes: at least one".to_owned())
        } else if !(0.0..=1.0).contains(&self.fraction) {
            Some(format!("fraction = {}: 0 to 1", self.fraction))
        } else if let Some(rank) = self.ranks.iter().find(|rank| !(rank.gap > 0.0 && rank.gap.is_finite())) {
            Some(format!("gap = {}: more than 0 ps", rank.gap))
        } else if let Some(to) = self.targets.iter().flatten().find(|to| beyond(to)) {
            Some(format!("targets: rank {to} of {size}"))
        } else {
            let rank = self.ranks.iter().enumerate().position(sends_to_self)?;
            Some(format!("targets of rank {rank}: one of the lists, without the rank itself"))
        }
    }
}

/// The program of a job that generates open-loop load, from JSON.
#[pyfunction]
pub fn open_loop(spec: &str) -> PyResult<Program> {
    let spec: OpenLoopSpec = serde_json::from_str(spec).map_err(|error| crate::errors::shape("workload", error))?;
    if let Some(problem) = spec.problem() {
        return Err(PyValueError::new_err(problem));
    }
    let targets: Vec<Arc<[u32]>> = spec.targets.into_iter().map(Arc::from).collect();
    let sizes: Arc<[Bytes]> = spec.sizes.into_iter().map(Bytes).collect();
    let size = u32::try_from(spec.ranks.len()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let source = |(rank, of): (u32, OpenLoopRank)| {
        let load = OpenLoop {
            ranks: size,
            rank,
            arrivals: spec.arrivals,
            gap: of.gap,
            sizes: Arc::clone(&sizes),
            targets: Arc::clone(&targets[of.targets]),
            fraction: spec.fraction,
            messages: spec.messages,
        };
        load.source(rng::stream(spec.seed, "open loop", u64::from(rank)))
    };
    Ok(Program { inner: program::Program { ranks: (0..size).zip(spec.ranks).map(source).collect() } })
}

/// A job's program in the making.
#[pyclass(module = "fairlane._core")]
pub struct ProgramBuilder {
    ranks: Vec<Vec<Line>>,
    /// Lists of requests, which most ranks have in common.
    lists: HashSet<Arc<[RequestId]>>,
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

    /// The list, shared with all that are equal.
    fn shared(&mut self, requests: Vec<RequestId>) -> Arc<[RequestId]> {
        if let Some(known) = self.lists.get(&requests[..]) {
            return Arc::clone(known);
        }
        let list: Arc<[RequestId]> = requests.into();
        self.lists.insert(Arc::clone(&list));
        list
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
    fairlane_core::table::find(what, all, name_of, name).copied().map_err(|error| crate::errors::build(&error))
}

#[pymethods]
#[allow(clippy::too_many_arguments, reason = "an MPI call has as many")]
impl ProgramBuilder {
    #[new]
    fn new(ranks: usize) -> Self {
        Self { ranks: vec![Vec::new(); ranks], lists: HashSet::new() }
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

    fn datagram(&mut self, rank: u32, to: u32, bytes: u64) -> PyResult<()> {
        self.op(rank, Op::Datagram { to: Rank(to), bytes: Bytes(bytes) })
    }

    #[pyo3(signature = (rank, source, tag = None, comm = 0))]
    fn probe(&mut self, rank: u32, source: Option<u32>, tag: Option<Tag>, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::Probe { from: source.map(Rank), tag, comm })
    }

    fn wait(&mut self, rank: u32, request: RequestId) -> PyResult<()> {
        self.op(rank, Op::Wait(request))
    }

    fn wait_all(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.shared(requests);
        self.op(rank, Op::WaitAll(requests))
    }

    fn wait_any(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.shared(requests);
        self.op(rank, Op::WaitAny(requests))
    }

    fn wait_some(&mut self, rank: u32, requests: Vec<RequestId>) -> PyResult<()> {
        let requests = self.shared(requests);
        self.op(rank, Op::WaitSome(requests))
    }

    /// For each place: a receive from `sources` and a send of so many bytes to `targets`, with the place as tag; requests are
    /// numbered from `first` on in this order. Then a wait for all of them. One call for what else takes two for each message.
    fn exchange(
        &mut self,
        rank: u32,
        sources: Vec<u32>,
        targets: Vec<u32>,
        bytes: u64,
        first: RequestId,
    ) -> PyResult<()> {
        if sources.len() != targets.len() {
            return Err(PyValueError::new_err("as many sources as targets"));
        }
        let count = u32::try_from(2 * sources.len()).ok().and_then(|count| first.checked_add(count));
        let end = count.ok_or_else(|| PyValueError::new_err("fewer than 2^32 requests"))?;
        let (mut request, mut tag) = (first, 0);
        for (source, target) in sources.into_iter().zip(targets) {
            self.op(rank, Op::Irecv { from: Some(Rank(source)), tag: Some(tag), comm: 0, request })?;
            let (to, bytes, mode, sent) = (Rank(target), Bytes(bytes), SendMode::Standard, request + 1);
            self.op(rank, Op::Isend { to, bytes, tag, comm: 0, mode, request: sent })?;
            (request, tag) = (request + 2, tag + 1);
        }
        let requests = self.shared((first..end).collect());
        self.op(rank, Op::WaitAll(requests))
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
        let kind = named(&CollectiveKind::ALL, |kind| kind.name(), "collective", kind)?;
        self.op(rank, Op::Collective { kind, comm, root: Rank(root), volume: volume.into() })
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
        self.op(rank, Op::Icollective { kind, comm, root: Rank(root), volume: volume.into(), request })
    }

    fn neighbor(&mut self, rank: u32, kind: &str, volume: VolumeArgument, comm: CommHandle) -> PyResult<()> {
        let kind = named(&NeighborKind::ALL, |kind| kind.name(), "neighborhood collective", kind)?;
        self.op(rank, Op::Neighbor { kind, comm, volume: volume.into() })
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
        self.op(rank, Op::Ineighbor { kind, comm, volume: volume.into(), request })
    }

    #[pyo3(signature = (rank, new, dimensions, comm = 0))]
    fn cart_create(
        &mut self,
        rank: u32,
        new: CommHandle,
        dimensions: Vec<(u32, bool)>,
        comm: CommHandle,
    ) -> PyResult<()> {
        self.op(rank, Op::CommTopology { comm, new, topology: Arc::new(Topology::Cart { dimensions }) })
    }

    #[pyo3(signature = (rank, new, neighbors, comm = 0))]
    fn graph_create(&mut self, rank: u32, new: CommHandle, neighbors: Vec<Vec<u32>>, comm: CommHandle) -> PyResult<()> {
        let neighbors = neighbors.into_iter().map(|of_rank| of_rank.into_iter().map(Rank).collect()).collect();
        self.op(rank, Op::CommTopology { comm, new, topology: Arc::new(Topology::Graph { neighbors }) })
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
        self.op(rank, Op::CommTopology { comm, new, topology: Arc::new(topology) })
    }

    #[pyo3(signature = (rank, win, comm = 0))]
    fn win_create(&mut self, rank: u32, win: WindowHandle, comm: CommHandle) -> PyResult<()> {
        self.op(rank, Op::WinCreate { comm, win })
    }

    fn win_free(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinFree { win })
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
        self.op(rank, Op::Rma { kind, win, target: Rank(target), bytes: Bytes(bytes), request })
    }

    fn win_fence(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinFence { win })
    }

    #[pyo3(signature = (rank, win, target, exclusive = false))]
    fn win_lock(&mut self, rank: u32, win: WindowHandle, target: u32, exclusive: bool) -> PyResult<()> {
        self.op(rank, Op::WinLock { win, target: Rank(target), exclusive })
    }

    fn win_unlock(&mut self, rank: u32, win: WindowHandle, target: u32) -> PyResult<()> {
        self.op(rank, Op::WinUnlock { win, target: Rank(target) })
    }

    fn win_lock_all(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinLockAll { win })
    }

    fn win_unlock_all(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinUnlockAll { win })
    }

    #[pyo3(signature = (rank, win, target = None))]
    fn win_flush(&mut self, rank: u32, win: WindowHandle, target: Option<u32>) -> PyResult<()> {
        self.op(rank, Op::WinFlush { win, target: target.map(Rank) })
    }

    fn win_post(&mut self, rank: u32, win: WindowHandle, group: Vec<u32>) -> PyResult<()> {
        self.op(rank, Op::WinPost { win, group: ranks(group) })
    }

    fn win_start(&mut self, rank: u32, win: WindowHandle, group: Vec<u32>) -> PyResult<()> {
        self.op(rank, Op::WinStart { win, group: ranks(group) })
    }

    fn win_complete(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinComplete { win })
    }

    fn win_wait(&mut self, rank: u32, win: WindowHandle) -> PyResult<()> {
        self.op(rank, Op::WinWait { win })
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
        self.op(rank, Op::CommCreate { comm, new, members: ranks(members) })
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

    /// For each of these times, in picoseconds: a computation so long, and what follows up to the matching `end`.
    fn each(&mut self, rank: u32, times: Vec<u64>) -> PyResult<()> {
        self.push(rank, Line::Each(times.into_iter().map(Picoseconds).collect()))
    }

    fn end(&mut self, rank: u32) -> PyResult<()> {
        self.push(rank, Line::End)
    }

    /// The program; the builder is empty afterwards, so that never both take memory.
    fn build(&mut self) -> PyResult<Program> {
        self.lists.clear();
        let mut ranks = Vec::with_capacity(self.ranks.len());
        let mut previous: Option<Script> = None;
        for (rank, lines) in std::mem::take(&mut self.ranks).into_iter().enumerate() {
            let script =
                Script::new(lines).map_err(|problem| PyValueError::new_err(format!("rank {rank}, {problem}")))?;
            // Ranks of a job mostly have the same loops.
            let script = previous.iter().fold(script, Script::sharing);
            ranks.push(script.source());
            previous = Some(script);
        }
        Ok(Program { inner: program::Program { ranks } })
    }
}
