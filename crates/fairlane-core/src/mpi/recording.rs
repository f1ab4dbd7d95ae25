//! Recording of transfers that begin, of operations, and of requests that waits end.

use std::sync::Arc;

use super::interpreter::BURST_BYTES;
use super::messaging::Messaging;
use super::p2p::request::{NamedRequest, Request};
use super::p2p::transfer::Transfer;
use super::rank::RankState;
use crate::ids::Rank;
use crate::observe::{COMPUTE, MARK, MessageRecord, Operation, RequestEnd, call_of};
use crate::program::{COMM_WORLD, Collective, Comm, CommHandle, Op, P2p, RequestId, Rma, Volume};
use crate::units::{Bytes, Instant};

/// How an operation is recorded: the index of its call; `None` for what takes no time and is no call.
fn recorded_call(op: &Op) -> Option<u8> {
    match op {
        Op::Compute(_) => Some(COMPUTE),
        Op::MarkProgress => Some(MARK),
        op => call_of(op),
    }
}

/// The communicator that an operation names, the partner, and the bytes and blocks of [`Operation::bytes`].
fn particulars(op: &Op) -> (Option<CommHandle>, Option<u32>, u64, u32) {
    let size = |volume: &Volume| match volume {
        Volume::Uniform(bytes) => (bytes.0, 0),
        Volume::PerRank(blocks) => (blocks.iter().sum(), u32::try_from(blocks.len()).unwrap_or(u32::MAX)),
    };
    let none = (None, None, 0, 0);
    match *op {
        Op::P2p(ref op) => match *op {
            P2p::Send { to, bytes, comm, .. } | P2p::Isend { to, bytes, comm, .. } => {
                (Some(comm), Some(to.0), bytes.0, 0)
            }
            P2p::Recv { from, comm, .. } | P2p::Irecv { from, comm, .. } | P2p::Probe { from, comm, .. } => {
                (Some(comm), from.map(|rank| rank.0), 0, 0)
            }
            _ => none,
        },
        Op::Collective(ref op) => {
            let (comm, root, volume) = match *op {
                Collective::Blocking { comm, root, ref volume, .. }
                | Collective::Nonblocking { comm, root, ref volume, .. } => (comm, Some(root.0), volume),
                Collective::Neighbor { comm, ref volume, .. }
                | Collective::NonblockingNeighbor { comm, ref volume, .. } => (comm, None, volume),
            };
            let (bytes, blocks) = size(volume);
            (Some(comm), root, bytes, blocks)
        }
        Op::Comm(
            Comm::Dup { comm, .. } | Comm::Split { comm, .. } | Comm::Create { comm, .. } | Comm::Topology { comm, .. },
        )
        | Op::Rma(Rma::Create { comm, .. }) => (Some(comm), None, 0, 0),
        Op::EndBurst(_) => (Some(COMM_WORLD), Some(0), BURST_BYTES, 0),
        Op::Rma(Rma::Access { target, bytes, .. }) => (None, Some(target.0), bytes.0, 0),
        _ => none,
    }
}

/// The program's name for the request that an operation starts.
fn started(op: &Op) -> Option<RequestId> {
    match *op {
        Op::P2p(P2p::Isend { request, .. } | P2p::Irecv { request, .. })
        | Op::Collective(Collective::Nonblocking { request, .. } | Collective::NonblockingNeighbor { request, .. }) => {
            Some(request)
        }
        Op::Rma(Rma::Access { request, .. }) => request,
        _ => None,
    }
}

impl Messaging {
    #[cold]
    pub fn record_sent(&mut self, token: u32) {
        let transfer = &self.transfers[token];
        let Transfer { from, receiver, bytes, envelope, sent_at, .. } = *transfer;
        let (collective, eager) = (transfer.collective(), transfer.eager());
        let job = self.ranks[from as usize].job;
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
            job,
            token,
            from: Rank(envelope.source),
            to: receiver,
            bytes: Bytes(bytes),
            tag: if collective { crate::mpi::collective::number_of(envelope.tag) } else { envelope.tag },
            collective,
            eager,
            sent_at: Instant(sent_at),
            posted_at: None,
            received_at: None,
            acknowledged_at: None,
        });
    }

    /// A one-sided operation that moves payload from its origin, or to it if `back`.
    #[cold]
    pub fn record_one_sided(&mut self, token: u32, back: bool, now: Instant) {
        let Transfer { from, receiver: target, envelope, bytes, .. } = self.transfers[token];
        let origin = Rank(envelope.source);
        let job = self.ranks[from as usize].job;
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
            job,
            token,
            from: if back { target } else { origin },
            to: if back { origin } else { target },
            bytes: Bytes(bytes),
            tag: 0,
            collective: false,
            eager: back,
            sent_at: now,
            posted_at: Some(now),
            received_at: None,
            acknowledged_at: None,
        });
    }

    /// `rank` begins an operation.
    #[cold]
    pub fn record_begin(&mut self, rank: u32, op: &Op, now: u64) {
        let Some(call) = recorded_call(op) else { return };
        if self.record_of(rank).and_then(|record| record.operations_mut()).is_none() {
            return;
        }
        let (comm, peer, bytes, blocks) = particulars(op);
        let named = comm.and_then(|comm| self.communicator(rank, op, comm).ok());
        let named = named.map(|communicator| (communicator.context, Arc::clone(&communicator.members)));
        let (job, own) = (self.ranks[rank as usize].job, self.ranks[rank as usize].rank);
        let Some(of) = self.record.as_mut().and_then(|record| record.operations_mut()) else { return };
        let context = named.map(|(context, members)| {
            of.communicator(job, context, &members);
            context
        });
        let (since, end, slot) = (Instant(now), None, None);
        of.begin(Operation { job, rank: own, number: 0, call, since, end, bytes, blocks, peer, context, slot });
    }

    /// `rank` has begun an operation, which may be over at once.
    #[cold]
    pub fn record_begun(&mut self, rank: u32, op: &Op, at_once: bool, now: u64) {
        if recorded_call(op).is_none() {
            return;
        }
        let state = self.rank(rank);
        let slot = started(op).and_then(|name| match state.requests.named(name) {
            NamedRequest::Open(slot, _) => Some(slot),
            NamedRequest::Null | NamedRequest::Nothing => None,
        });
        let (job, own) = (state.job, state.rank);
        let Some(of) = self.record_of(rank).and_then(|record| record.operations_mut()) else { return };
        if let Some(last) = of.last(job, own) {
            last.slot = slot;
            last.end = at_once.then_some(Instant(now));
        }
    }

    /// The operation of `rank` that lasted is over.
    #[cold]
    pub fn record_end(&mut self, rank: u32, now: u64) {
        let (job, own) = (self.ranks[rank as usize].job, self.ranks[rank as usize].rank);
        if let Some(of) = self.record_of(rank).and_then(|record| record.operations_mut()) {
            of.end(job, own, Instant(now));
        }
    }

    /// A wait of `rank` ends the requests in `awaited`. Returns the message that completed the last of them, if that is known,
    /// and whether the rank received it.
    #[cold]
    pub fn record_ended(&mut self, rank: u32, at: u64) -> Option<(u64, bool)> {
        let RankState { job, rank: own, ref requests, ref awaited, .. } = self.ranks[rank as usize];
        let record = self.record.as_deref_mut().filter(|record| record.includes(job))?;
        let (mut last, mut decisive) = (0, None);
        for &slot in awaited {
            let &Request { receive, complete_at, .. } = requests.get(slot);
            let message = record.completed_by(job, own, slot);
            if complete_at >= last {
                (last, decisive) = (complete_at, message.map(|number| (number, receive)));
            }
            if let Some(of) = record.operations_mut() {
                of.end_request(RequestEnd { job, rank: own, operation: 0, slot, at: Instant(at), receive, message });
            }
        }
        decisive
    }

    /// Nobody waits for a request that is complete: its slot is free.
    #[cold]
    pub fn record_given_up(&mut self, rank: u32, slot: u32) {
        let (job, own) = (self.ranks[rank as usize].job, self.ranks[rank as usize].rank);
        if let Some(record) = self.record_of(rank) {
            record.completed_by(job, own, slot);
        }
    }
}
