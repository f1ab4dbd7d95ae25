//! Turns a rank's records into operations.

use std::sync::Arc;

use fairlane_core::program::{Collective, Comm, CommHandle, Op, P2p, RequestId, Rma};

use super::calls::Call;
use super::collectives;
use super::communicators::Communicators;
use super::completions::Completions;
use super::cursor::{Cursor, Fault};
use super::file::TraceFile;
use super::record::{Record, Span};
use super::requests::Requests;
use super::sizes::Sizes;
use super::windows::Windows;
use crate::Options;
use crate::emitter::{Emitter, read_in_steps};
use crate::error::TraceError;
use crate::lookahead::Lookahead;
use crate::slots::Slots;

/// The function number of `MPI_Cancel` in a file's counts.
const CANCEL: usize = 24;

/// A rank's file and where the replay stands in it.
#[derive(Clone)]
pub struct RankReader {
    pub(super) file: Arc<TraceFile>,
    rank: u32,
    ranks: u32,
    options: Arc<Options>,
    /// The trace cancels requests, so that each must be followed to know whether it is real.
    pub(super) cancels: bool,
    /// The operations so far.
    pub out: Emitter,
    pub(super) state: State,
}

/// The outcome of a record.
pub struct Step {
    /// It is not the last.
    pub more: bool,
    /// Why it cannot be simulated.
    pub fault: Option<Fault>,
}

/// Everything that starts over with the trace.
#[derive(Clone)]
pub(super) struct State {
    cursor: Cursor,
    record: Record,
    records: u64,
    /// When the previous call was left, on the CPU clock and on the wall clock.
    left: (Option<u64>, Option<u64>),
    /// The operation of the program that a call has started; `None` if it is complete from the start.
    pub(super) requests: Requests<Option<RequestId>>,
    pub(super) request_ids: Slots,
    pub(super) communicators: Communicators,
    pub(super) windows: Windows,
    pub(super) sizes: Sizes,
    pub(super) ahead: Option<Box<Lookahead<Completions>>>,
    pub(super) opened: u64,
    finished: bool,
}

impl State {
    fn new(file: &TraceFile, rank: u32, ranks: u32) -> Self {
        Self {
            cursor: file.records(),
            record: Record::default(),
            records: 0,
            left: (None, None),
            requests: Requests::new(),
            request_ids: Slots::starting_at(0),
            communicators: Communicators::new(rank, ranks),
            windows: Windows::new(),
            sizes: Sizes::new(Arc::clone(&file.sizes)),
            ahead: None,
            opened: 0,
            finished: false,
        }
    }
}

impl RankReader {
    /// None: the names of communicators are not recorded.
    #[allow(clippy::unused_self, reason = "as readers of other formats")]
    fn communicator_names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// At the first record.
    pub fn new(file: Arc<TraceFile>, rank: u32, ranks: u32, options: &Arc<Options>) -> Self {
        let cancels = file.calls.as_ref().is_none_or(|calls| calls[CANCEL] > 0);
        let state = State::new(&file, rank, ranks);
        Self {
            file,
            rank,
            ranks,
            options: Arc::clone(options),
            cancels,
            out: Emitter::new(options, rank, ranks),
            state,
        }
    }

    /// The record that was read last.
    pub const fn record(&self) -> &Record {
        &self.state.record
    }

    /// The rank in the trace.
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// The sizes of datatypes at that record.
    pub const fn sizes(&self) -> &Sizes {
        &self.state.sizes
    }

    /// DUMPI's version.
    pub fn version(&self) -> [u8; 3] {
        self.file.version
    }

    /// The handle of a communicator in the program.
    pub fn handle(&self, comm: i32) -> Option<CommHandle> {
        self.state.communicators.handle(comm).ok()
    }

    /// Reads one record and emits what it means; `false` at the end of the trace.
    fn step(&mut self) -> Result<bool, TraceError> {
        match self.survey()? {
            Step { fault: Some(problem), .. } if !self.options.leaves_out(self.record().format().name) => {
                Err(self.error(problem))
            }
            Step { more, .. } => Ok(more),
        }
    }

    /// As [`RankReader::step`], but a record that cannot be simulated is no error: only a damaged file is.
    pub fn survey(&mut self) -> Result<Step, TraceError> {
        self.state.records += 1;
        let mut record = std::mem::take(&mut self.state.record);
        let read = record.read(&mut self.state.cursor, self.file.version);
        let fault = if matches!(read, Ok(true)) { self.translate(&record).err() } else { None };
        let more = read.map(|read| read && record.call() != Call::Finalize);
        self.state.record = record;
        more.map(|more| Step { more, fault }).map_err(|problem| self.error(problem))
    }

    /// The number of the record that was read last, from 1.
    pub const fn position(&self) -> u64 {
        self.state.records
    }

    fn error(&self, problem: Fault) -> TraceError {
        TraceError::Record {
            file: self.file.path(),
            rank: self.rank,
            record: self.state.records,
            call: self.state.record.format().name.to_owned(),
            problem,
        }
    }

    /// The end of a pass: gives up what is open, and starts over if that is wanted.
    fn end_pass(&mut self) -> Result<(), TraceError> {
        for request in self.state.requests.clear().into_iter().flatten() {
            self.out.op(Op::P2p(P2p::RequestFree(request)));
        }
        for win in self.state.windows.clear() {
            self.out.op(Op::Rma(Rma::Free { win }));
        }
        for handle in self.state.communicators.clear() {
            self.out.op(Op::Comm(Comm::Free(handle)));
        }
        self.out.end_pass(self.options.repeat).map_err(|problem| self.error(problem))?;
        self.state = State::new(&self.file, self.rank, self.ranks);
        self.state.finished = !self.options.repeat;
        Ok(())
    }

    fn translate(&mut self, record: &Record) -> Result<(), Fault> {
        self.compute_before(record);
        self.out.enter(record.format().name);
        if let Call::Unsupported(why) = record.call() {
            return Err(why.to_owned());
        }
        if let Some(collective) = collectives::read(record, &self.state.sizes)? {
            let comm = self.state.communicators.handle(collective.comm)?;
            let collectives::Collective { kind, root, volume, .. } = collective;
            self.out.op(Op::Collective(Collective::Blocking { kind, comm, root, volume }));
            return Ok(());
        }
        self.point_to_point(record)?;
        self.requests(record)?;
        self.communicators(record)?;
        self.groups(record)?;
        self.windows(record)?;
        self.state.sizes.follow(record);
        Ok(())
    }

    /// The application computed since it left the previous call.
    fn compute_before(&mut self, record: &Record) {
        self.out.at(record.wall.map_or(0, |span| span.enter));
        let gap = |left: Option<u64>, span: Option<Span>| Some(span?.enter.saturating_sub(left?));
        let nanoseconds = match record.cpu {
            Some(_) => gap(self.state.left.0, record.cpu),
            None => gap(self.state.left.1, record.wall),
        };
        self.out.compute(nanoseconds.unwrap_or(0).saturating_mul(1000));
        self.state.left = (record.cpu.map(|span| span.leave), record.wall.map(|span| span.leave));
    }
}

read_in_steps!(RankReader);
