//! Runs a rank's program: one operation after another, as far as it goes at one instant.

use std::sync::Arc;

use super::MpiShard;
use super::collective::running::{Effect, Scope};
use super::comm::WORLD_CONTEXT;
use super::messaging::{Messaging, Over};
use super::p2p::matching::Pattern;
use super::p2p::request::{NamedRequest, PENDING, Quorum, Wait};
use super::p2p::transfer::Send;
use super::rank::{Activity, NEVER, RUNNING, RankState};
use super::stream::Stream;
use crate::error::RunError;
use crate::ids::Rank;
use crate::observe::{IRECV, ISEND, Mark, call_of};
use crate::program::{
    COMM_SELF, COMM_WORLD, Collective, CollectiveKind, Comm, CommHandle, Op, P2p, RequestId, SendMode, Tag, Volume,
};
use crate::units::{Bytes, Instant, Picoseconds};

/// So many operations of a rank at one instant mean that it never lets time pass.
const SPINNING: u32 = 10_000_000;

/// So many iterations of a rank at one instant mean the same. An iteration may well have many operations, and it is seldom
/// over without any time passing: by this the endless loop of a workload is found in a second.
const TIMELESS: u32 = 100_000;

/// The bytes by which rank 0 tells whether a burst goes on.
pub(super) const BURST_BYTES: u64 = 4;

/// The other end of a point-to-point operation.
struct Peer {
    rank: Rank,
    tag: Tag,
    comm: CommHandle,
}

impl MpiShard {
    /// Resumes the program of `rank`, which is due. Returns when it is due again.
    #[inline(always)]
    pub(super) fn run_rank(&mut self, rank: u32, now: u64) -> Over {
        let Self { sources, messaging, .. } = self;
        messaging.interpret(rank, &mut sources[rank as usize], now)
    }
}

impl Messaging {
    /// Runs the program of `rank` until an operation lasts, or the end. Returns when the rank is due again.
    #[inline(always)]
    fn interpret(&mut self, rank: u32, source: &mut Stream, now: u64) -> Over {
        let state = &mut self.ranks[rank as usize];
        state.due = RUNNING;
        let stop = self.jobs[state.job.index()].stop;
        if now >= stop {
            return Ok(self.stop(rank, stop));
        }
        let mut at_once = if state.collective.is_some()
            && let Some(op) = source.current()
        {
            let over = self.advance_collective(rank, op, now)?;
            if over != now {
                return Ok(self.leave(rank, over));
            }
            self.rank(rank).end_call(now)
        } else {
            state.end_call(now)
        };
        if self.record.is_some() {
            self.record_end(rank, now);
        }
        if let Stream::Other(source) = source
            && let Some(reports) = self.rank(rank).more_mut().and_then(|more| more.reports.as_deref_mut())
        {
            let outside = source.completed(&reports.ended, Instant(now));
            reports.ended.clear();
            self.completed_outside |= outside;
        }
        loop {
            let ops = source.ahead().map_err(|problem| self.unreadable(rank, problem))?;
            if ops.is_empty() {
                return Ok(self.finish(rank, now));
            }
            if at_once > SPINNING {
                return Err(self.spins(rank, &ops[0]));
            }
            // One at a time if they are recorded.
            let ops = if self.record.is_some() {
                self.record_begin(rank, &ops[0], now);
                &ops[..1]
            } else {
                ops
            };
            let (passed, due) = self.run_stretch(rank, ops, &mut at_once, now)?;
            if self.record.is_some() {
                self.record_begun(rank, &ops[0], due.is_none(), now);
            }
            source.pass(passed);
            if let Some(due) = due {
                return Ok(due);
            }
        }
    }

    /// Runs operations until one lasts. Returns how many have been run, and when the rank is due if one lasts.
    #[inline(always)]
    fn run_stretch(
        &mut self,
        rank: u32,
        ops: &[Op],
        at_once: &mut u32,
        now: u64,
    ) -> Result<(usize, Option<u64>), Box<RunError>> {
        for (place, op) in ops.iter().enumerate() {
            let over = self.execute(rank, op, now)?;
            if over != now {
                let begun = *at_once + u32::try_from(place).unwrap_or(SPINNING);
                let activity = self.activity(rank, op);
                let state = &mut self.ranks[rank as usize];
                (state.since, state.activity, state.at_once) = (now, activity, begun);
                if over == NEVER {
                    return Ok((place + 1, Some(self.leave(rank, over))));
                }
                state.due = over;
                return Ok((place + 1, Some(over)));
            }
        }
        *at_once += u32::try_from(ops.len()).unwrap_or(SPINNING);
        Ok((ops.len(), None))
    }

    /// The program of `rank` runs no further now: its operation is over at `over`. Returns when the rank is due.
    #[inline(always)]
    fn leave(&mut self, rank: u32, over: u64) -> u64 {
        let state = &mut self.ranks[rank as usize];
        if over != NEVER {
            state.due = over;
        } else if state.due == RUNNING {
            state.due = NEVER;
            let id = state.job;
            let job = &mut self.jobs[id.index()];
            job.active -= 1;
            if job.active == 0 {
                job.note_quiescent(id, self.host, &mut self.quiescent);
            }
            return NEVER;
        }
        state.due
    }

    #[cold]
    fn unreadable(&self, rank: u32, problem: String) -> Box<RunError> {
        let state = &self.ranks[rank as usize];
        let job = self.jobs[state.job.index()].name.to_string();
        Box::new(RunError::Source { job, rank: state.rank, problem })
    }

    #[cold]
    fn spins(&self, rank: u32, op: &Op) -> Box<RunError> {
        self.misuse(rank, op, format!("more than {SPINNING} operations without any time passing"))
    }

    /// The program of `rank` has ended.
    fn finish(&mut self, rank: u32, now: u64) -> u64 {
        self.rank(rank).record.finished = Some(Instant(now));
        self.end_program(rank)
    }

    /// `rank` does nothing more.
    #[cold]
    fn end_program(&mut self, rank: u32) -> u64 {
        let state = self.rank(rank);
        state.finished = true;
        let id = state.job;
        let job = &mut self.jobs[id.index()];
        job.finished += 1;
        job.note_quiescent(id, self.host, &mut self.quiescent);
        self.leave(rank, NEVER)
    }

    /// The job of `rank` has been stopped at `stop`: the rank does nothing more.
    #[cold]
    fn stop(&mut self, rank: u32, stop: u64) -> u64 {
        let state = self.rank(rank);
        let end = stop.max(state.since);
        state.end_call(end);
        self.record_end(rank, end);
        self.end_program(rank)
    }

    /// The activity to which an operation of `rank` that is not over at once is charged.
    #[inline(always)]
    fn activity(&self, rank: u32, op: &Op) -> Activity {
        match op {
            Op::Compute(_) => Activity::Compute,
            Op::Graph(_) if self.works_on_device(rank) => Activity::Compute,
            _ => call_of(op).map_or(Activity::Nothing, Activity::Call),
        }
    }

    /// Runs an operation, and counts it if it is over at once. Returns when it is over.
    #[inline(always)]
    fn execute(&mut self, rank: u32, op: &Op, now: u64) -> Over {
        match *op {
            Op::Compute(span) => self.compute(rank, op, span, now),
            Op::P2p(P2p::Isend { to, bytes, tag, comm: COMM_WORLD, mode, request }) => {
                self.isend(rank, op, Peer { rank: to, tag, comm: COMM_WORLD }, (bytes, mode), request, now)
            }
            Op::P2p(P2p::Irecv { from, tag, comm: COMM_WORLD, request }) => {
                self.irecv(rank, op, (from, tag, COMM_WORLD), request, now)
            }
            Op::P2p(P2p::WaitAll(ref requests)) => self.wait_for(rank, op, Quorum::All, requests, now),
            _ => self.execute_any(rank, op, now),
        }
    }

    /// Runs any operation; `execute` has the frequent ones inlined.
    #[inline(never)]
    fn execute_any(&mut self, rank: u32, op: &Op, now: u64) -> Over {
        let over = match op {
            Op::Compute(span) => return self.compute(rank, op, *span, now),
            Op::P2p(call) => self.execute_point_to_point(rank, op, call, now)?,
            Op::Collective(call) => self.execute_collective(rank, op, call, now)?,
            Op::Comm(call) => self.execute_on_communicator(rank, op, call, now)?,
            Op::Rma(call) => self.execute_one_sided(rank, op, call, now)?,
            Op::MarkProgress => self.mark(rank, op, now)?,
            Op::BeginTiming => {
                self.rank(rank).needed().timed_since = Some(Instant(now));
                now
            }
            Op::EndBurst(after) => self.end_burst(rank, op, *after, now)?,
            Op::Pause(span) => self.pause(rank, op, *span, now)?,
            Op::Graph(call) => self.execute_of_graph(rank, op, call, now)?,
        };
        // Sends and receives count themselves.
        if over == now
            && let Some(call) = call_of(op).filter(|call| ![ISEND, IRECV].contains(call))
        {
            self.rank(rank).record.call_mut(call).count += 1;
        }
        Ok(over)
    }

    fn execute_point_to_point(&mut self, rank: u32, op: &Op, call: &P2p, now: u64) -> Over {
        match *call {
            P2p::Isend { to, bytes, tag, comm, mode, request } => {
                self.isend(rank, op, Peer { rank: to, tag, comm }, (bytes, mode), request, now)
            }
            P2p::Irecv { from, tag, comm, request } => self.irecv(rank, op, (from, tag, comm), request, now),
            P2p::WaitAll(ref requests) => self.wait_for(rank, op, Quorum::All, requests, now),
            P2p::Wait(request) => self.wait_for(rank, op, Quorum::All, &[request], now),
            P2p::WaitAny(ref requests) => self.wait_for(rank, op, Quorum::Any, requests, now),
            P2p::WaitSome(ref requests) => self.wait_for(rank, op, Quorum::Some, requests, now),
            P2p::Send { to, bytes, tag, comm, mode } => {
                self.blocking_send(rank, op, Peer { rank: to, tag, comm }, (bytes, mode), now)
            }
            P2p::Recv { from, tag, comm } => {
                let pattern = self.pattern(rank, op, from, tag, comm)?;
                self.blocking_receive(rank, pattern, now)
            }
            P2p::Probe { from, tag, comm } => {
                let pattern = self.pattern(rank, op, from, tag, comm)?;
                Ok(if self.probe(rank, pattern) { now } else { NEVER })
            }
            P2p::Datagram { to, bytes } => self.datagram(rank, op, to, bytes, now),
            P2p::RequestFree(request) => self.free_request(rank, op, request, now),
        }
    }

    #[inline(always)]
    pub(super) fn compute(&self, rank: u32, op: &Op, span: Picoseconds, now: u64) -> Over {
        let span = if self.slow.is_empty() { span } else { self.slowed(rank, span) };
        self.lasts(rank, op, span, now)
    }

    /// When what begins now and takes this long is over.
    #[inline(always)]
    pub(super) fn lasts(&self, rank: u32, op: &Op, span: Picoseconds, now: u64) -> Over {
        if span.0 > Instant::HORIZON.0 - now.min(Instant::HORIZON.0) {
            return Err(self.misuse(rank, op, "ends beyond what the clock can tell"));
        }
        Ok(now + span.0)
    }

    /// How long a computation of `rank` takes if its host may be slow.
    #[cold]
    fn slowed(&self, rank: u32, span: Picoseconds) -> Picoseconds {
        let thousandths = self.slow.get(&rank).copied().unwrap_or(1000);
        let slowed = u128::from(span.0) * u128::from(thousandths) / 1000;
        Picoseconds(u64::try_from(slowed).unwrap_or(u64::MAX))
    }

    #[inline(always)]
    fn isend(&mut self, rank: u32, op: &Op, peer: Peer, load: (Bytes, SendMode), name: RequestId, now: u64) -> Over {
        let send = self.checked_send(rank, op, peer, load, Some(name), now)?;
        match self.send(&send) {
            Some(_) => Ok(send.handed_at),
            None => Err(self.in_use(rank, op, name)),
        }
    }

    #[inline(always)]
    fn irecv(
        &mut self,
        rank: u32,
        op: &Op,
        (from, tag, comm): (Option<Rank>, Option<Tag>, CommHandle),
        name: RequestId,
        now: u64,
    ) -> Over {
        let pattern = self.pattern(rank, op, from, tag, comm)?;
        match self.post(rank, pattern, Some(name), now) {
            Some(_) => Ok(now),
            None => Err(self.in_use(rank, op, name)),
        }
    }

    #[inline(never)]
    fn blocking_send(&mut self, rank: u32, op: &Op, peer: Peer, load: (Bytes, SendMode), now: u64) -> Over {
        let send = self.checked_send(rank, op, peer, load, None, now)?;
        let request = self.send(&send);
        self.rank(rank).awaited.extend(request);
        self.wait_for_all(rank, now, send.handed_at);
        Ok(NEVER)
    }

    #[inline(never)]
    fn blocking_receive(&mut self, rank: u32, pattern: Pattern, now: u64) -> Over {
        let request = self.post(rank, pattern, None, now);
        self.rank(rank).awaited.extend(request);
        self.wait_for_all(rank, now, now);
        Ok(NEVER)
    }

    #[inline(never)]
    fn datagram(&mut self, rank: u32, op: &Op, to: Rank, bytes: Bytes, now: u64) -> Over {
        let peer = Peer { rank: to, tag: 0, comm: COMM_WORLD };
        let send = self.checked_send(rank, op, peer, (bytes, SendMode::Standard), None, now)?;
        self.send_datagram(&send);
        Ok(now)
    }

    fn execute_collective(&mut self, rank: u32, op: &Op, call: &Collective, now: u64) -> Over {
        let scope = Scope::Communicator;
        match *call {
            Collective::Blocking { kind, comm, root, ref volume } => {
                let running = self.collective(rank, op, scope(comm), (kind, root, volume.clone()), Effect::Nothing)?;
                self.begin(rank, op, running, now)
            }
            Collective::Nonblocking { kind, comm, root, ref volume, request } => {
                let running = self.collective(rank, op, scope(comm), (kind, root, volume.clone()), Effect::Nothing)?;
                self.begin_in_background(rank, op, running, request, now)
            }
            Collective::Neighbor { kind, comm, ref volume } => {
                let running = self.neighborhood(rank, op, comm, kind, volume)?;
                self.begin(rank, op, running, now)
            }
            Collective::NonblockingNeighbor { kind, comm, ref volume, request } => {
                let running = self.neighborhood(rank, op, comm, kind, volume)?;
                self.begin_in_background(rank, op, running, request, now)
            }
        }
    }

    fn execute_on_communicator(&mut self, rank: u32, op: &Op, call: &Comm, now: u64) -> Over {
        let (comm, effect) = match *call {
            Comm::Dup { comm, new } => (comm, Effect::Dup { new }),
            Comm::Split { comm, new, color, key } => (comm, Effect::Split { new, color, key }),
            Comm::Create { comm, new, ref members } => (comm, Effect::Create { new, members: Arc::clone(members) }),
            Comm::Topology { comm, new, ref topology } => {
                (comm, Effect::Topology { new, topology: Arc::clone(topology) })
            }
            Comm::Define { new, ref members } => {
                self.define_communicator(rank, op, new, members)?;
                return Ok(now);
            }
            Comm::SetName { comm, ref name } => {
                self.name_communicator(rank, op, comm, name)?;
                return Ok(now);
            }
            Comm::Free(comm) => {
                if comm <= COMM_SELF || self.rank(rank).needed().communicators.remove(&comm).is_none() {
                    return Err(self.misuse(rank, op, "no such communicator, or a predefined one"));
                }
                return Ok(now);
            }
        };
        let (kind, bytes) = match effect {
            Effect::Split { .. } => (CollectiveKind::Allgather, Bytes(8)),
            _ => (CollectiveKind::Allreduce, Bytes(4)),
        };
        let call = (kind, Rank(0), Volume::Uniform(bytes));
        let running = self.collective(rank, op, Scope::Communicator(comm), call, effect)?;
        self.begin(rank, op, running, now)
    }

    /// Rank 0 decides, and all learn of it by a broadcast: no bid means that the burst goes on.
    fn end_burst(&mut self, rank: u32, op: &Op, after: Picoseconds, now: u64) -> Over {
        let call = (CollectiveKind::Bcast, Rank(0), Volume::Uniform(Bytes(BURST_BYTES)));
        let running = self.collective(rank, op, Scope::Communicator(COMM_WORLD), call, Effect::Burst)?;
        let RankState { job, rank: own, .. } = self.ranks[rank as usize];
        if own == Rank(0)
            && let Some(number) = running.number
        {
            let begun = self.rank(rank).more().and_then(|more| more.burst_since);
            if now - begun.unwrap_or(self.jobs[job.index()].start.0) >= after.0 {
                self.agreements.bid((job, running.context, number), (0, 0, 0, 0));
            }
        }
        self.begin(rank, op, running, now)
    }

    fn pause(&mut self, rank: u32, op: &Op, span: Picoseconds, now: u64) -> Over {
        if !self.rank(rank).more().is_some_and(|more| more.burst_over) {
            return Ok(now);
        }
        let over = self.lasts(rank, op, span, now)?;
        let more = self.rank(rank).needed();
        (more.burst_since, more.burst_over) = (Some(over), false);
        Ok(over)
    }

    #[inline(never)]
    fn mark(&mut self, rank: u32, op: &Op, now: u64) -> Over {
        let state = &mut self.ranks[rank as usize];
        let timed = state.more_mut().and_then(|more| more.timed_since.take());
        let (job, record) = (&mut self.jobs[state.job.index()], &mut state.record);
        let last = if record.iterations > 0 { record.last_mark } else { job.start };
        let elapsed = Picoseconds(now - timed.unwrap_or(last).0);
        let mark = Mark { at: Instant(now), elapsed, timed: timed.is_some() };
        if job.marks {
            record.marks.push(mark);
        }
        let again = record.iterations > 0 && record.last_mark == Instant(now);
        state.marks_at_once = if again { state.marks_at_once + 1 } else { 0 };
        if record.iterations == 0 {
            record.first_mark = Instant(now);
        }
        record.iterations += 1;
        record.last_mark = Instant(now);
        let marks_at_once = state.marks_at_once;
        if let Some(mark) = job.marked.mark(record.iterations, mark) {
            self.completed.push((state.job, record.iterations, mark));
        }
        if marks_at_once >= TIMELESS {
            return Err(self.misuse(rank, op, format!("{TIMELESS} iterations without any time passing")));
        }
        Ok(now)
    }

    /// A send that the program may make.
    #[inline(always)]
    fn checked_send(
        &self,
        rank: u32,
        op: &Op,
        peer: Peer,
        (bytes, mode): (Bytes, SendMode),
        name: Option<RequestId>,
        now: u64,
    ) -> Result<Send, Box<RunError>> {
        let (context, member) = self.address(rank, op, peer.comm, peer.rank)?;
        if bytes > self.largest_message {
            return Err(self.too_large(rank, op));
        }
        Ok(Send {
            from: rank,
            to: Rank(member),
            bytes,
            tag: peer.tag,
            context,
            name,
            eager: self.is_eager(bytes, mode),
            collective: false,
            called_at: now,
            handed_at: now + self.parameters.send_overhead_of(bytes.0),
        })
    }

    #[inline(always)]
    fn pattern(
        &self,
        rank: u32,
        op: &Op,
        from: Option<Rank>,
        tag: Option<Tag>,
        comm: CommHandle,
    ) -> Result<Pattern, Box<RunError>> {
        let (context, source) = match from {
            Some(from) => self.address(rank, op, comm, from).map(|(context, member)| (context, Some(member)))?,
            None if comm == COMM_WORLD => (WORLD_CONTEXT, None),
            None => (self.communicator(rank, op, comm)?.context, None),
        };
        Ok(Pattern { context, source, tag })
    }

    fn wait_for(&mut self, rank: u32, op: &Op, quorum: Quorum, names: &[RequestId], now: u64) -> Over {
        let RankState { requests, awaited, .. } = self.rank(rank);
        let (small, mut pending) = requests.wait_for_small(names);
        awaited.extend_from_slice(&names[..small]);
        for &name in &names[small..] {
            let (slot, request) = match requests.named(name) {
                NamedRequest::Open(slot, request) => (slot, request),
                NamedRequest::Null => continue,
                NamedRequest::Nothing => return Err(self.misuse(rank, op, format!("no request {name}"))),
            };
            if std::mem::replace(&mut request.waited, true) {
                return Err(self.misuse(rank, op, format!("request {name} is listed twice")));
            }
            pending += u32::from(request.complete_at == PENDING);
            awaited.push(slot);
        }
        let wait = Wait::new(quorum, awaited.len(), pending, now);
        self.wait(rank, wait, now);
        Ok(NEVER)
    }

    fn free_request(&mut self, rank: u32, op: &Op, request: RequestId, now: u64) -> Over {
        let requests = &mut self.rank(rank).requests;
        let NamedRequest::Open(slot, _) = requests.named(request) else {
            return Err(self.misuse(rank, op, format!("no request {request}")));
        };
        if requests.get(slot).complete_at != PENDING {
            self.record_given_up(rank, slot);
        }
        self.rank(rank).requests.free(slot);
        Ok(now)
    }
}
