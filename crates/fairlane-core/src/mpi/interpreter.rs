//! Runs a rank's program: one operation after another, as far as it goes at one instant.

use std::sync::Arc;

use super::collective::After;
use super::communicator::Communicator;
use super::matching::Pattern;
use super::protocol::Send;
use super::request::{Named, Quorum};
use super::{Activity, Mpi, NEVER};
use crate::error::RunError;
use crate::ids::Rank;
use crate::observe::call_of;
use crate::program::{COMM_SELF, COMM_WORLD, CollectiveKind, CommHandle, Op, RequestId, SendMode, Tag, Volume};
use crate::units::{Bytes, Instant, Picoseconds};

/// So many operations of a rank at one instant mean that it never lets time pass.
const SPINNING: u32 = 10_000_000;

/// How an operation has left its rank.
pub(super) enum Flow {
    /// It took no time.
    Done,
    /// It is over at this instant, a later one.
    Until(u64),
    /// The rank is blocked, or has been resumed already.
    Blocked,
}

impl Flow {
    fn until(now: u64, end: u64) -> Self {
        if end == now { Self::Done } else { Self::Until(end) }
    }
}

/// What a point-to-point operation names.
struct Peer {
    rank: Rank,
    tag: Tag,
    comm: CommHandle,
}

impl Mpi {
    /// The program of `rank`, which is due, goes on.
    pub(super) fn go_on(&mut self, rank: u32, now: u64) -> Result<(), RunError> {
        let state = self.rank(rank);
        state.due = NEVER;
        let blocked = state.blocked.take();
        self.job_of(rank).active -= 1;
        if let (true, Some(op)) = (self.ranks[rank as usize].collective.is_some(), blocked) {
            let flow = self.advance_collective(rank, &op, now)?;
            if self.suspend(rank, op, flow) {
                return Ok(());
            }
        }
        loop {
            self.end_call(rank, now);
            let Some(op) = self.next_op(rank)? else {
                return self.finish(rank, now);
            };
            let state = self.rank(rank);
            state.at_once = if state.since == now { state.at_once + 1 } else { 0 };
            state.since = now;
            state.activity = activity(&op);
            if state.at_once > SPINNING {
                return Err(self.misuse(
                    rank,
                    &op,
                    format!("more than {SPINNING} operations without any time passing"),
                ));
            }
            let flow = self.execute(rank, &op, now)?;
            if self.suspend(rank, op, flow) {
                return Ok(());
            }
        }
    }

    /// Leaves the rank as its operation has left it. Returns whether it goes on later, not now.
    fn suspend(&mut self, rank: u32, op: Op, flow: Flow) -> bool {
        match flow {
            Flow::Done => return false,
            Flow::Until(end) => {
                if self.ranks[rank as usize].collective.is_some() {
                    self.rank(rank).blocked = Some(op);
                }
                self.resume(rank, end);
            }
            Flow::Blocked => self.rank(rank).blocked = Some(op),
        }
        true
    }

    fn next_op(&mut self, rank: u32) -> Result<Option<Op>, RunError> {
        let state = &mut self.ranks[rank as usize];
        state.source.next_op().map_err(|problem| RunError::Source {
            job: self.jobs[state.job.index()].name.clone(),
            rank: state.rank,
            problem,
        })
    }

    fn end_call(&mut self, rank: u32, now: u64) {
        let state = self.rank(rank);
        let span = Picoseconds(now - state.since);
        let activity = std::mem::replace(&mut state.activity, Activity::Nothing);
        let record = &mut self.records[rank as usize];
        match activity {
            Activity::Nothing => {}
            Activity::Compute => record.compute += span,
            Activity::Call(call) => {
                let call = &mut record.calls[usize::from(call)];
                call.count += 1;
                call.time += span;
            }
        }
    }

    /// The program of `rank` has ended. When it was the job's last, no collective may be left that some rank never called.
    fn finish(&mut self, rank: u32, now: u64) -> Result<(), RunError> {
        let state = self.rank(rank);
        state.finished = true;
        self.records[rank as usize].finished = Some(Instant(now));
        let job = self.job_of(rank);
        job.finished += 1;
        if job.finished < job.size {
            return Ok(());
        }
        let Some((communicator, number, first, words, arrived)) = job.agreements.deserted() else { return Ok(()) };
        Err(RunError::CollectiveMismatch {
            job: job.name.clone(),
            communicator,
            number,
            first: format!("rank {first} called {words}"),
            second: format!("only {arrived} of its ranks ever called a collective there"),
        })
    }

    fn execute(&mut self, rank: u32, op: &Op, now: u64) -> Result<Flow, RunError> {
        match *op {
            Op::Compute(span) if span.0 > Instant::HORIZON.0 - now.min(Instant::HORIZON.0) => {
                Err(self.misuse(rank, op, "ends beyond what the clock can tell"))
            }
            Op::Compute(span) => Ok(Flow::until(now, now + span.0)),
            Op::MarkProgress => {
                self.mark(rank, now);
                Ok(Flow::Done)
            }
            Op::Send { to, bytes, tag, comm, mode } => {
                let (slot, end) = self.start_send(rank, op, Peer { rank: to, tag, comm }, (bytes, mode), now)?;
                self.wait_one(rank, slot, now, end);
                Ok(Flow::Blocked)
            }
            Op::Isend { to, bytes, tag, comm, mode, request } => {
                let (slot, end) = self.start_send(rank, op, Peer { rank: to, tag, comm }, (bytes, mode), now)?;
                self.name(rank, op, request, slot)?;
                Ok(Flow::until(now, end))
            }
            Op::Recv { from, tag, comm } => {
                let pattern = self.pattern(rank, op, from, tag, comm)?;
                let slot = self.post(rank, pattern, now);
                self.wait_one(rank, slot, now, now);
                Ok(Flow::Blocked)
            }
            Op::Irecv { from, tag, comm, request } => {
                let pattern = self.pattern(rank, op, from, tag, comm)?;
                let slot = self.post(rank, pattern, now);
                self.name(rank, op, request, slot)?;
                Ok(Flow::Done)
            }
            Op::Probe { from, tag, comm } => {
                let pattern = self.pattern(rank, op, from, tag, comm)?;
                Ok(if self.probe(rank, pattern) { Flow::Done } else { Flow::Blocked })
            }
            Op::Wait(request) => self.wait_for(rank, op, Quorum::All, &[request], now),
            Op::WaitAll(ref requests) => self.wait_for(rank, op, Quorum::All, requests, now),
            Op::WaitAny(ref requests) => self.wait_for(rank, op, Quorum::Any, requests, now),
            Op::WaitSome(ref requests) => self.wait_for(rank, op, Quorum::Some, requests, now),
            Op::RequestFree(request) => self.free_request(rank, op, request),
            _ => self.execute_collective(rank, op, now),
        }
    }

    fn execute_collective(&mut self, rank: u32, op: &Op, now: u64) -> Result<Flow, RunError> {
        let agree = Volume::Uniform(Bytes(4));
        match *op {
            Op::Collective { kind, comm, root, ref volume } => {
                self.begin_collective(rank, op, comm, (kind, root, volume.clone()), After::Nothing, now)
            }
            Op::CommDup { comm, new } => {
                let call = (CollectiveKind::Allreduce, Rank(0), agree);
                self.begin_collective(rank, op, comm, call, After::Dup { new }, now)
            }
            Op::CommSplit { comm, new, color, key } => {
                let call = (CollectiveKind::Allgather, Rank(0), Volume::Uniform(Bytes(8)));
                self.begin_collective(rank, op, comm, call, After::Split { new, color, key }, now)
            }
            Op::CommCreate { comm, new, ref members } => {
                let call = (CollectiveKind::Allreduce, Rank(0), agree);
                let members = Arc::clone(members);
                self.begin_collective(rank, op, comm, call, After::Create { new, members }, now)
            }
            Op::CommDefine { new, ref members } => {
                self.define_communicator(rank, op, new, members)?;
                Ok(Flow::Done)
            }
            Op::CommFree(comm) => {
                if comm <= COMM_SELF || self.rank(rank).communicators.remove(&comm).is_none() {
                    return Err(self.misuse(rank, op, "no such communicator, or a predefined one"));
                }
                Ok(Flow::Done)
            }
            _ => unreachable!("invariant: execute has taken every other operation"),
        }
    }

    fn mark(&mut self, rank: u32, now: u64) {
        let record = &mut self.records[rank as usize];
        if record.iterations == 0 {
            record.first_mark = Instant(now);
        }
        record.iterations += 1;
        record.last_mark = Instant(now);
    }

    /// Starts a send; returns its request and when the CPU is done with it.
    fn start_send(
        &mut self,
        rank: u32,
        op: &Op,
        peer: Peer,
        (bytes, mode): (Bytes, SendMode),
        now: u64,
    ) -> Result<(u32, u64), RunError> {
        let communicator = self.communicator(rank, op, peer.comm)?;
        let (context, size) = (communicator.context, communicator.members.len());
        let Some(member) = communicator.member(peer.rank) else { return Err(self.no_such_rank(rank, op, size)) };
        if bytes > self.largest_message {
            let problem = format!("a message may have at most {} bytes", self.largest_message.0);
            return Err(self.misuse(rank, op, problem));
        }
        let end = now + self.parameters.send_overhead.0;
        let send = Send {
            from: rank,
            to: self.peer(rank, member),
            bytes,
            tag: peer.tag,
            context,
            mode,
            collective: false,
            called_at: now,
            handed_at: end,
        };
        Ok((self.send(&send), end))
    }

    fn pattern(
        &self,
        rank: u32,
        op: &Op,
        from: Option<Rank>,
        tag: Option<Tag>,
        comm: CommHandle,
    ) -> Result<Pattern, RunError> {
        let communicator = self.communicator(rank, op, comm)?;
        let source = from.map(|from| communicator.member(from));
        if source == Some(None) {
            return Err(self.no_such_rank(rank, op, communicator.members.len()));
        }
        Ok(Pattern { context: communicator.context, source: source.flatten(), tag })
    }

    fn no_such_rank(&self, rank: u32, op: &Op, size: usize) -> RunError {
        self.misuse(rank, op, format!("the communicator has {size} ranks, numbered from 0"))
    }

    pub(super) fn communicator(&self, rank: u32, op: &Op, comm: CommHandle) -> Result<&Communicator, RunError> {
        let state = &self.ranks[rank as usize];
        if comm == COMM_WORLD {
            return Ok(&state.world);
        }
        let found = state.communicators.get(&comm);
        found.ok_or_else(|| self.misuse(rank, op, format!("no communicator {comm} at this rank")))
    }

    fn name(&mut self, rank: u32, op: &Op, request: RequestId, slot: u32) -> Result<(), RunError> {
        if self.rank(rank).requests.name(request, slot) {
            return Ok(());
        }
        Err(self.misuse(rank, op, format!("request {request} is in use")))
    }

    fn wait_for(
        &mut self,
        rank: u32,
        op: &Op,
        quorum: Quorum,
        names: &[RequestId],
        now: u64,
    ) -> Result<Flow, RunError> {
        for &name in names {
            let state = self.rank(rank);
            let slot = match state.requests.named(name) {
                Named::Slot(slot) => slot,
                Named::Null => continue,
                Named::Nothing => return Err(self.misuse(rank, op, format!("no request {name}"))),
            };
            if std::mem::replace(&mut state.requests.get_mut(slot).waited, true) {
                return Err(self.misuse(rank, op, format!("request {name} is listed twice")));
            }
            state.awaited.push((slot, Some(name)));
        }
        self.wait(rank, quorum, now, now);
        Ok(Flow::Blocked)
    }

    fn free_request(&mut self, rank: u32, op: &Op, request: RequestId) -> Result<Flow, RunError> {
        let requests = &mut self.rank(rank).requests;
        let Named::Slot(slot) = requests.named(request) else {
            return Err(self.misuse(rank, op, format!("no request {request}")));
        };
        requests.forget_name(request);
        if requests.get(slot).complete_at == super::request::PENDING {
            requests.get_mut(slot).detached = true;
        } else {
            requests.release(slot);
        }
        Ok(Flow::Done)
    }
}

fn activity(op: &Op) -> Activity {
    match op {
        Op::Compute(_) => Activity::Compute,
        op => call_of(op).map_or(Activity::Nothing, Activity::Call),
    }
}
