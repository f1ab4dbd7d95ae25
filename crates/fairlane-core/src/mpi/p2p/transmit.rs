//! Hands the messages of transfers to the network, over one or several rails, or to the host's memory.

use std::cmp::Reverse;

use super::matching::Envelope;
use super::memory::Crossing;
use super::transfer::{Outgoing, RankPlace, Stage, Transfer};
use crate::ids::{HostId, JobId, Rank};
use crate::mpi::messaging::Messaging;
use crate::mpi::rank::RankState;
use crate::network::Injection;
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};

/// A message that begins a transfer which matches no receive: from the origin to the target of a one-sided operation, or a datagram.
pub(in crate::mpi) struct Opening {
    /// The origin's name, and the target as a rank of the job.
    pub from: u32,
    pub to: Rank,
    /// Payload of the operation.
    pub bytes: u64,
    /// The window's.
    pub context: u32,
    /// The origin's request, and the program's own, or [`NONE`](crate::kernel::NONE).
    pub requests: (u32, u32),
    pub stage: Stage,
    /// Payload and kind of this message.
    pub load: (Bytes, TrafficKind),
    pub called_at: u64,
    pub handed_at: u64,
}

impl Messaging {
    /// Makes a transfer that matches no receive, and its first message.
    pub fn open(&mut self, opening: Opening) -> u32 {
        let Opening { from, to, bytes, context, requests, stage, load, called_at, handed_at } = opening;
        let RankState { job, rank, .. } = self.ranks[from as usize];
        let envelope = Envelope { context, source: rank.0, tag: 0 };
        let ends = (from, self.naming.translate(self.place(job, to).id));
        let payload = (bytes, load.1);
        let transfer = self.transfers.insert(Transfer::one_sided(ends, to, payload, envelope, requests, called_at));
        self.send_next(transfer, stage, load, handed_at);
        transfer
    }

    /// Hands one message of a transfer to the network, or to memory.
    #[inline(always)]
    pub fn transmit(&mut self, job: JobId, message: Outgoing) {
        let Outgoing { from: rank, sender, receiver, to: RankPlace { id, host: to }, bytes, kind, transfer, stage, at } =
            message;
        self.jobs[job.index()].in_flight += 1;
        let from = self.host;
        if from == to {
            let ends = [rank, self.naming.translate(id)];
            self.transmit_through_memory(job, ends, bytes, (transfer, stage), at);
            return;
        }
        let at = at + self.parameters.adapter_delay_of(bytes.0);
        let class = || self.class_of(rank, transfer, stage);
        let (level, traffic) = self.levels.of(job, sender, receiver, kind, class);
        let vl = self.sl2vl.lane(level);
        let urgent = !matches!(stage, Stage::Eager | Stage::Datagram);
        let (token, stage) = (self.naming.translate(transfer), stage as u8);
        self.outbox.push(Injection {
            at: Instant(at),
            from,
            to,
            bytes,
            rails: [0, 0],
            vl,
            job,
            traffic,
            kind,
            sender,
            receiver,
            token,
            stage,
            urgent,
        });
        if !self.rails.trivial() {
            self.choose_rails(transfer, rank);
        }
        if !self.naming.is_own(self.naming.translate(id)) {
            self.depart(transfer, id);
        }
    }

    /// A transfer goes to another shard, where the rank with this id is.
    #[cold]
    fn depart(&mut self, transfer: u32, id: u32) {
        let (shard, _) = self.naming.place(self.naming.translate(id));
        self.departing[shard].push(self.naming.translate(transfer), self.transfers[transfer]);
    }

    /// A message of a transfer is handed to memory at `at`; `ranks` are the names of sender and receiver.
    #[cold]
    fn transmit_through_memory(
        &mut self,
        job: JobId,
        ranks: [u32; 2],
        bytes: Bytes,
        (transfer, stage): (u32, Stage),
        at: u64,
    ) {
        let (bandwidth, latency) = match &self.jobs[job.index()].nccl {
            Some(setup) => (setup.nccl.scale_up_bandwidth, setup.nccl.scale_up_latency.0),
            None => (self.parameters.memory_bandwidth, self.parameters.memory_latency.0),
        };
        let time = bandwidth.serialization(bytes).0;
        if self.memory_links.carry(ranks) {
            let crossing = self.memory_links.begin(Crossing { ranks, time, latency, transfer, stage });
            self.end_in_memory_at(at, crossing, Stage::Leaving);
        } else {
            self.end_in_memory_at(at + latency + time, transfer, stage);
        }
    }

    /// At `at`, something ends in the memory of the host that runs.
    pub fn end_in_memory_at(&mut self, at: u64, record: u32, stage: Stage) {
        self.put_in_memory(at, self.sequence, record, stage);
        self.sequence += 1;
    }

    fn put_in_memory(&mut self, at: u64, sequence: u64, record: u32, stage: Stage) {
        self.own_memory().push(Reverse((at, sequence, record, stage)));
        self.in_memory += 1;
    }

    /// A message, with its place in the order of messages, comes to the memory link of its sender.
    pub fn leave_through_memory(&mut self, crossing: u32, sequence: u64, at: u64) {
        let entering = self.memory_links.leave(crossing, at);
        self.put_in_memory(entering, sequence, crossing, Stage::Entering);
    }

    /// The end of a message comes to the memory link of its receiver.
    pub fn enter_through_memory(&mut self, crossing: u32, sequence: u64, at: u64) {
        let (Crossing { transfer, stage, .. }, end) = self.memory_links.enter(crossing, at);
        self.put_in_memory(end, sequence, transfer, stage);
    }

    /// A transfer goes on with another message.
    pub fn send_next(&mut self, transfer: u32, stage: Stage, (bytes, kind): (Bytes, TrafficKind), at: u64) {
        let Transfer { from, to, receiver, envelope, .. } = self.transfers[transfer];
        let (from, receiver) = if stage.goes_back() { (to, Rank(envelope.source)) } else { (from, receiver) };
        let RankState { job, rank: sender, .. } = self.ranks[from as usize];
        let to = self.place(job, receiver);
        self.transmit(job, Outgoing { from, sender, receiver, to, bytes, kind, transfer, stage, at });
    }

    /// Chooses the adapters of the message handed over last, which `from` sends for a transfer, by the job's policy.
    #[inline(never)]
    fn choose_rails(&mut self, transfer: u32, from: u32) {
        let Some(injection) = self.outbox.pop() else { return };
        let Injection { job, from: here, to: there, bytes, stage, sender, receiver, .. } = injection;
        let stage = Stage::of(stage);
        let mut ends = [(sender, here), (receiver, there)];
        if stage.goes_back() {
            ends.reverse();
        }
        let [origin, target] = ends;
        let pairs = self.rails.pairs(origin.1, target.1).len();
        if stage.begins() {
            self.transfers[transfer].rail = self.rails.begin(from, pairs);
        }
        let cut = self.rails.stripes_above(job).is_some_and(|above| bytes > above && stage.is_payload());
        if cut && pairs > 1 {
            self.send_parts(injection, transfer, (origin.1, target.1));
            return;
        }
        let mut rails = self.rails.choose(job, origin, target, self.transfers[transfer].rail);
        if stage.goes_back() {
            rails.reverse();
        }
        self.outbox.push(Injection { rails, ..injection });
    }

    /// Hands a payload over in parts that differ by a byte at most, none of them empty.
    fn send_parts(&mut self, whole: Injection, transfer: u32, (origin, target): (HostId, HostId)) {
        let bytes = whole.bytes.0;
        let back = Stage::of(whole.stage).goes_back();
        let Self { rails, outbox, transfers, jobs, .. } = self;
        let pairs = rails.pairs(origin, target);
        let most = u8::try_from(bytes).unwrap_or(u8::MAX).min(Transfer::MOST_PARTS);
        let parts = u8::try_from(pairs.len()).unwrap_or(u8::MAX).min(most);
        jobs[whole.job.index()].in_flight += i64::from(parts) - 1;
        transfers[transfer].await_parts(parts);
        let end = |part: u8| {
            let end = u128::from(bytes) * u128::from(part) / u128::from(parts);
            u64::try_from(end).expect("invariant: no more than the whole")
        };
        for (part, pair) in (0..parts).zip(pairs) {
            let rails = if back { [pair[1], pair[0]] } else { *pair };
            outbox.push(Injection { rails, bytes: Bytes(end(part + 1) - end(part)), ..whole });
        }
    }
}
