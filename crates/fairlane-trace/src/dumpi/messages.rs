//! Point-to-point calls and requests as operations.

use fairlane_core::ids::Rank;
use fairlane_core::program::{CommHandle, Op, P2p, RequestId, SendMode};
use fairlane_core::units::Bytes;
use smallvec::SmallVec;

use super::calls::Call;
use super::completions::Completions;
use super::cursor::Fault;
use super::record::{ANY, Record};
use super::requests::{Direction, Posting, completed, succeeded};
use super::source::RankReader;
use crate::lookahead::{Lookahead, Outcome};

impl RankReader {
    pub(super) fn point_to_point(&mut self, record: &Record) -> Result<(), Fault> {
        match record.call() {
            Call::Send(mode) => self.send(&Posting::new(record, 0, Direction::Send(mode))),
            Call::Bsend => {
                let sent = self.start(&Posting::new(record, 0, Direction::Buffered))?;
                debug_assert!(sent.is_none(), "a buffered send is complete at once");
                Ok(())
            }
            Call::Recv => self.receive(record, &Posting::new(record, 0, Direction::Receive)),
            Call::Probe => self.probe(record),
            Call::Iprobe if succeeded(record) => self.probe(record),
            Call::Sendrecv => {
                let n = |i| record.number(i);
                let mode = Direction::Send(SendMode::Standard);
                let send = Posting { direction: mode, count: n(0), datatype: n(1), peer: n(2), tag: n(3), comm: n(8) };
                let receive = Posting { direction: Direction::Receive, ..Posting::new(record, 4, Direction::Receive) };
                self.exchange(record, &send, &receive)
            }
            Call::SendrecvReplace => {
                let n = |i| record.number(i);
                let send = Posting {
                    direction: Direction::Send(SendMode::Standard),
                    count: n(0),
                    datatype: n(1),
                    peer: n(2),
                    tag: n(3),
                    comm: n(6),
                };
                let receive = Posting { direction: Direction::Receive, peer: n(4), tag: n(5), ..send };
                self.exchange(record, &send, &receive)
            }
            _ => Ok(()),
        }
    }

    fn send(&mut self, posting: &Posting) -> Result<(), Fault> {
        let Direction::Send(mode) = posting.direction else { return Ok(()) };
        let Some((to, bytes, comm)) = self.destination(posting)? else { return Ok(()) };
        self.out.op(Op::P2p(P2p::Send { to, bytes, tag: posting.tag, comm, mode }));
        Ok(())
    }

    /// Where a send goes, and its size; nowhere, to `MPI_PROC_NULL`, which DUMPI records as a negative rank.
    fn destination(&self, posting: &Posting) -> Result<Option<(Rank, Bytes, CommHandle)>, Fault> {
        let Ok(to) = u32::try_from(posting.peer) else { return Ok(None) };
        let bytes = self.state.sizes.bytes(posting.count, posting.datatype)?;
        Ok(Some((Rank(to), Bytes(bytes), self.state.communicators.handle_with(posting.comm, Rank(to))?)))
    }

    /// A receive's source and tag, after the status where it was posted with wildcards; `None` from `MPI_PROC_NULL`.
    fn source(posting: &Posting, told: Option<(i32, i32)>) -> Option<(Option<Rank>, Option<i32>)> {
        let (source, tag) = told.unwrap_or((ANY, ANY));
        let tag = if posting.tag == ANY { tag } else { posting.tag };
        let tag = (tag != ANY).then_some(tag);
        match (posting.peer, told.is_some()) {
            (ANY, false) => Some((None, tag)),
            (ANY, true) => Some((Some(Rank(u32::try_from(source).ok()?)), tag)),
            (peer, _) => Some((Some(Rank(u32::try_from(peer).ok()?)), tag)),
        }
    }

    fn receive(&mut self, record: &Record, posting: &Posting) -> Result<(), Fault> {
        let told = record.statuses.first().map(|status| (status.source, status.tag));
        let Some((from, tag)) = Self::source(posting, told) else { return Ok(()) };
        let comm = self.state.communicators.handle(posting.comm)?;
        self.out.op(Op::P2p(P2p::Recv { from, tag, comm }));
        Ok(())
    }

    fn probe(&mut self, record: &Record) -> Result<(), Fault> {
        let (peer, tag, comm) = (record.number(0), record.number(1), record.number(2));
        let posting = Posting { direction: Direction::Receive, count: 0, datatype: 0, peer, tag, comm };
        let told = record.statuses.first().map(|status| (status.source, status.tag));
        let Some((from, tag)) = Self::source(&posting, told) else { return Ok(()) };
        let comm = self.state.communicators.handle(comm)?;
        self.out.op(Op::P2p(P2p::Probe { from, tag, comm }));
        Ok(())
    }

    /// A send and a receive at once.
    fn exchange(&mut self, record: &Record, send: &Posting, receive: &Posting) -> Result<(), Fault> {
        let Some((to, bytes, comm)) = self.destination(send)? else { return self.receive(record, receive) };
        let request = self.state.request_ids.take();
        self.out.op(Op::P2p(P2p::Isend { to, bytes, tag: send.tag, comm, mode: SendMode::Standard, request }));
        self.receive(record, receive)?;
        self.out.op(Op::P2p(P2p::Wait(request)));
        self.state.request_ids.give_back(request);
        Ok(())
    }

    pub(super) fn requests(&mut self, record: &Record) -> Result<(), Fault> {
        let direction = match record.call() {
            Call::Isend(mode) | Call::SendInit(mode) => Direction::Send(mode),
            Call::Ibsend | Call::BsendInit => Direction::Buffered,
            _ => Direction::Receive,
        };
        match record.call() {
            Call::Isend(_) | Call::Ibsend | Call::Irecv => {
                let started = self.start_open(&Posting::new(record, 0, direction))?;
                self.state.requests.start(record.number(5), started);
            }
            Call::SendInit(_) | Call::BsendInit | Call::RecvInit => {
                self.state.requests.define(record.number(5), Posting::new(record, 0, direction));
            }
            Call::Start => self.start_persistent(record.number(0))?,
            Call::Startall => record.list(0).iter().try_for_each(|&handle| self.start_persistent(handle))?,
            Call::RequestFree => {
                if let Some(Some(request)) = self.state.requests.free(record.number(0))? {
                    self.out.op(Op::P2p(P2p::RequestFree(request)));
                    self.state.request_ids.give_back(request);
                }
            }
            _ => self.complete(record)?,
        }
        Ok(())
    }

    fn complete(&mut self, record: &Record) -> Result<(), Fault> {
        let mut waited = SmallVec::<[RequestId; 8]>::new();
        let mut fault = Ok(());
        for (handle, _) in completed(record)? {
            match self.state.requests.complete(handle) {
                Ok(operation) => waited.extend(operation.flatten()),
                Err(problem) => fault = fault.and(Err(problem)),
            }
        }
        self.out.wait(&waited);
        waited.into_iter().for_each(|request| self.state.request_ids.give_back(request));
        fault
    }

    fn start_persistent(&mut self, handle: i32) -> Result<(), Fault> {
        let posting = self.state.requests.persistent(handle)?;
        let started = self.start_open(&posting)?;
        self.state.requests.start(handle, started);
        Ok(())
    }

    /// Starts an operation, after a look at what will become of it if its arguments do not say.
    fn start_open(&mut self, posting: &Posting) -> Result<Option<RequestId>, Fault> {
        if !posting.is_open(self.cancels) {
            return self.start(posting);
        }
        let number = self.state.opened;
        self.state.opened += 1;
        let (file, cancels) = (&self.file, self.cancels);
        let ahead = self.state.ahead.get_or_insert_with(|| Box::new(Lookahead::new(Completions::new(file, cancels))));
        let outcome = ahead.outcome(number).map_err(|problem| format!("reading ahead to its completion: {problem}"))?;
        match outcome {
            Outcome::Cancelled => Ok(None),
            Outcome::Unknown => self.start(posting),
            Outcome::Completed(status) if posting.direction == Direction::Receive => {
                self.post(posting, Some((status.source, status.tag)))
            }
            Outcome::Completed(_) => self.start(posting),
        }
    }

    /// Starts an operation; `None` if there is nothing to wait for.
    fn start(&mut self, posting: &Posting) -> Result<Option<RequestId>, Fault> {
        let mode = match posting.direction {
            Direction::Receive => return self.post(posting, None),
            Direction::Send(mode) => mode,
            Direction::Buffered => SendMode::Standard,
        };
        let Some((to, bytes, comm)) = self.destination(posting)? else { return Ok(None) };
        let request = self.state.request_ids.take();
        self.out.op(Op::P2p(P2p::Isend { to, bytes, tag: posting.tag, comm, mode, request }));
        if posting.direction == Direction::Buffered {
            self.out.op(Op::P2p(P2p::RequestFree(request)));
            self.state.request_ids.give_back(request);
            return Ok(None);
        }
        Ok(Some(request))
    }

    fn post(&mut self, posting: &Posting, told: Option<(i32, i32)>) -> Result<Option<RequestId>, Fault> {
        let Some((from, tag)) = Self::source(posting, told) else { return Ok(None) };
        let comm = self.state.communicators.handle(posting.comm)?;
        let request = self.state.request_ids.take();
        self.out.op(Op::P2p(P2p::Irecv { from, tag, comm, request }));
        Ok(Some(request))
    }
}
