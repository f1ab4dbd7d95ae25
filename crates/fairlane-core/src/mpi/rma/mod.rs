//! One-sided operations: what goes to the target's memory and what comes back, without the target's program.

pub(in crate::mpi) mod lock;
mod passive_target;
mod synchronization;
pub(in crate::mpi) mod window;

use crate::error::RunError;
use crate::ids::Rank;
use crate::kernel::NONE;
use crate::mpi::messaging::{Messaging, Over};
use crate::mpi::p2p::request::{PENDING, Request};
use crate::mpi::p2p::transfer::{Stage, Transfer};
use crate::mpi::p2p::transmit::Opening;
use crate::program::{Op, RequestId, RmaKind, WindowHandle};
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};
use lock::Lock;
use window::Window;

impl Messaging {
    /// Starts a one-sided operation.
    pub fn one_sided(
        &mut self,
        rank: u32,
        op: &Op,
        (kind, bytes): (RmaKind, Bytes),
        (win, target): (WindowHandle, Rank),
        name: Option<RequestId>,
        now: u64,
    ) -> Over {
        let member = self.target(rank, op, win, target)?;
        let sent = match kind {
            RmaKind::Get => self.parameters.control_bytes,
            RmaKind::CompareAndSwap => Bytes(bytes.0.saturating_mul(2)),
            RmaKind::Put | RmaKind::Accumulate | RmaKind::GetAccumulate => bytes,
        };
        if sent.max(bytes) > self.largest_message {
            return Err(self.too_large(rank, op));
        }
        let own = match name {
            None => NONE,
            Some(name) => match self.rank(rank).requests.start(Some(name), Request::send(now, PENDING)) {
                Some(slot) => slot,
                None => return Err(self.in_use(rank, op, name)),
            },
        };
        let slot = self.rank(rank).requests.start(None, Request::send(now, PENDING));
        let slot = slot.expect("invariant: a request without a name has a slot");
        let span = &mut self.window_mut(rank, op, win)?;
        span.pending.push((member, slot));
        let (context, target) = (span.span.context, span.span.members[member as usize]);
        let (stage, traffic) = match kind {
            RmaKind::Put => (Stage::Put, self.payload(sent)),
            RmaKind::Get => (Stage::Fetch, TrafficKind::Control),
            RmaKind::Accumulate => (Stage::Accumulate, self.payload(sent)),
            RmaKind::GetAccumulate | RmaKind::CompareAndSwap => (Stage::Exchange, self.payload(sent)),
        };
        let handed_at = now + self.parameters.send_overhead_of(sent.0);
        let to = Rank(target);
        if kind != RmaKind::Get {
            self.count_payload(rank, sent);
        }
        let transfer = self.open(Opening {
            from: rank,
            to,
            bytes: bytes.0,
            context,
            requests: (slot, own),
            stage,
            load: (sent, traffic),
            called_at: now,
            handed_at,
        });
        if self.record.is_some() {
            self.record_one_sided(transfer, kind == RmaKind::Get, Instant(now));
        }
        Ok(handed_at)
    }

    /// The kind of an operation's payload: by its size, as if it were a message of two sides.
    pub fn payload(&self, bytes: Bytes) -> TrafficKind {
        if bytes <= self.parameters.eager_threshold { TrafficKind::Eager } else { TrafficKind::Bulk }
    }

    pub fn count_payload(&mut self, rank: u32, bytes: Bytes) {
        let record = &mut self.rank(rank).record;
        record.messages_sent += 1;
        record.bytes_sent += bytes.0;
    }

    /// The target confirms that an operation is complete.
    pub fn done(&mut self, record: u32, now: u64) {
        let load = (self.parameters.control_bytes, TrafficKind::Control);
        self.send_next(record, Stage::Done, load, now);
    }

    /// The target's rank combines operands in the order in which they come, one after another and without its CPU; then the
    /// operation continues with `stage`.
    pub fn combine(&mut self, record: u32, stage: Stage, now: u64) {
        self.record_landed(record, now);
        let Transfer { to, bytes, .. } = self.transfers[record];
        let time = self.parameters.reduction_bandwidth.serialization(Bytes(bytes)).0;
        let state = self.rank(to);
        let free_at = &mut state.needed().combining_until;
        let end = now.max(*free_at) + time;
        *free_at = end;
        let job = state.job;
        self.jobs[job.index()].in_flight += 1;
        self.end_in_memory_at(end, record, stage);
    }

    pub fn record_landed(&mut self, record: u32, now: u64) {
        if let Some(of) = &mut self.record {
            of.landed(record, Instant(now));
        }
    }

    /// The origin has the last message of an operation.
    pub fn end_one_sided(&mut self, record: u32, now: u64) {
        let Transfer { from, send, receive, partner_at, .. } = self.transfers[record];
        self.rank(from).requests.get_mut(send).partner_at = partner_at;
        self.transfers.remove(record);
        if let Some(of) = &mut self.record {
            of.fetched(record, &[send, receive], Instant(now));
        }
        self.complete(from, send, now);
        if receive != NONE {
            self.complete(from, receive, now);
        }
    }

    /// The lock of the part of a window that is at the target of a transfer.
    fn lock_of(&mut self, record: u32) -> &mut Lock {
        let Transfer { to, envelope, .. } = self.transfers[record];
        self.rank(to).needed().locks.entry(envelope.context).or_default()
    }

    /// A request for a lock has come.
    pub fn lock_asked(&mut self, record: u32, exclusive: bool, now: u64) {
        let origin = self.transfers[record].envelope.source;
        if self.lock_of(record).ask(record, origin, exclusive) {
            self.grant(record, now);
        }
    }

    /// A lock has been released: it is granted to the next in the queue.
    pub fn lock_released(&mut self, record: u32, now: u64) {
        let origin = self.transfers[record].envelope.source;
        self.lock_of(record).release(origin);
        while let Some(next) = self.lock_of(record).grant() {
            self.transfers[next].partner_at = now;
            self.grant(next, now);
        }
        self.transfers.remove(record);
    }

    fn grant(&mut self, record: u32, now: u64) {
        let load = (self.parameters.control_bytes, TrafficKind::Control);
        self.send_next(record, Stage::Grant, load, now);
    }

    /// Who holds the lock of the part of the window with this context that is at `rank`, in words.
    pub fn describe_lock(&self, rank: u32, context: u32) -> Option<String> {
        let lock = self.ranks[rank as usize].more()?.locks.get(&context)?;
        let holders: Vec<String> = lock.holders.iter().take(8).map(u32::to_string).collect();
        (!holders.is_empty()).then(|| format!("a lock that rank {} holds", holders.join(", ")))
    }
}

impl Messaging {
    pub fn window(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<&Window, Box<RunError>> {
        let found = self.ranks[rank as usize].more().and_then(|more| more.windows.get(&win));
        found.ok_or_else(|| self.no_window(rank, op, win))
    }

    pub fn window_mut(&mut self, rank: u32, op: &Op, win: WindowHandle) -> Result<&mut Window, Box<RunError>> {
        self.window(rank, op, win)?;
        let found = self.rank(rank).more_mut().and_then(|more| more.windows.get_mut(&win));
        Ok(found.expect("invariant: it has just been found"))
    }

    #[cold]
    fn no_window(&self, rank: u32, op: &Op, win: WindowHandle) -> Box<RunError> {
        let mut known: Vec<u32> =
            self.ranks[rank as usize].more().into_iter().flat_map(|more| more.windows.keys().copied()).collect();
        known.sort_unstable();
        let known = if known.is_empty() { "none".to_owned() } else { format!("{known:?}") };
        self.misuse(rank, op, format!("no window {win} at this rank; it has {known}"))
    }

    pub fn window_size(&self, rank: u32, op: &Op, win: WindowHandle) -> Result<u32, Box<RunError>> {
        let members = self.window(rank, op, win)?.span.members.len();
        Ok(u32::try_from(members).expect("invariant: 32-bit ranks"))
    }

    /// A rank of the window that an operation names.
    pub fn target(&self, rank: u32, op: &Op, win: WindowHandle, target: Rank) -> Result<u32, Box<RunError>> {
        let size = self.window_size(rank, op, win)?;
        if target.0 < size {
            return Ok(target.0);
        }
        Err(self.misuse(rank, op, format!("the window has {size} ranks, numbered from 0")))
    }
}
