//! Eager and rendezvous: a transfer's messages, one after the other.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::matching::{Envelope, Pattern};
use super::messaging::Messaging;
use super::rank::{Blocked, RankState};
use super::request::{PENDING, Request};
use super::transfer::{Message, Place, Send, Stage, Transfer};
use crate::ids::{JobId, Rank};
use crate::kernel::NONE;
use crate::network::{Delivery, Injection};
use crate::observe::{Latencies, MessageRecord};
use crate::program::{RequestId, SendMode};
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant, Picoseconds};

/// The kind of a payload.
#[inline]
const fn payload_kind(eager: bool, collective: bool) -> TrafficKind {
    match (eager, collective) {
        (true, false) => TrafficKind::Eager,
        (true, true) => TrafficKind::CollectiveEager,
        (false, false) => TrafficKind::Bulk,
        (false, true) => TrafficKind::Collective,
    }
}

/// The kind of the control messages of a collective's transfers, or of others.
fn control(collective: bool) -> TrafficKind {
    if collective { TrafficKind::CollectiveControl } else { TrafficKind::Control }
}

impl Messaging {
    /// Whether a send of so much is sent at once.
    #[inline]
    pub(super) fn is_eager(&self, bytes: Bytes, mode: SendMode) -> bool {
        mode == SendMode::Standard && bytes <= self.parameters.eager_threshold
    }

    /// Starts a send. Returns its request, which is complete already if it is eager; `None` if its name is in use.
    #[inline(always)]
    pub(super) fn send(&mut self, send: &Send) -> Option<u32> {
        let Send { from, to, bytes, context, eager, .. } = *send;
        let state = &mut self.ranks[from as usize];
        let place = self.places[(self.jobs[state.job.index()].first + to.0) as usize];
        let numbered = self.numbering || place.host == self.host;
        let request = Request::send(send.called_at, if eager { send.handed_at } else { PENDING });
        let request = state.requests.start(send.name, request)?;
        let (job, sender) = (state.job, state.rank);
        let number = if numbered { state.matching.number(context, to.0) } else { state.record.messages_sent };
        state.record.messages_sent += 1;
        state.record.bytes_sent += bytes.0;
        let transfer = self.transfers.insert(Transfer {
            from,
            to: self.naming.translate(place.id),
            receiver: to,
            bytes: bytes.0,
            envelope: Envelope { context, source: sender.0, tag: send.tag },
            number,
            numbered,
            arrived: false,
            send: if eager { NONE } else { request },
            receive: NONE,
            sent_at: send.called_at,
            eager,
            payload_done: false,
            collective: send.collective,
            kind: payload_kind(eager, send.collective),
            parts: 0,
            begun: false,
        });
        if self.record.is_some() {
            self.record_sent(transfer);
        }
        let (stage, bytes, kind) = match (eager, send.collective) {
            (true, collective) => (Stage::Eager, bytes, payload_kind(true, collective)),
            (false, collective) => (Stage::Request, self.parameters.control_bytes, control(collective)),
        };
        let at = send.handed_at;
        self.transmit(job, Message { from, sender, receiver: to, to: place, bytes, kind, transfer, stage, at });
        Some(request)
    }

    /// Sends a message that nobody receives.
    pub(super) fn send_datagram(&mut self, send: &Send) {
        let Send { from, to, bytes, context, called_at, .. } = *send;
        let state = &mut self.ranks[from as usize];
        let (job, sender) = (state.job, state.rank);
        state.record.messages_sent += 1;
        state.record.bytes_sent += bytes.0;
        let envelope = Envelope { context, source: sender.0, tag: send.tag };
        let place = self.place(job, to);
        let ends = (from, self.naming.translate(place.id));
        // It matches nothing either.
        let mut transfer = Transfer::one_sided(ends, to, bytes.0, envelope, (NONE, NONE), called_at);
        transfer.eager = true;
        transfer.carry(TrafficKind::Eager);
        let transfer = self.transfers.insert(transfer);
        if self.record.is_some() {
            self.record_sent(transfer);
        }
        let (stage, kind, at) = (Stage::Datagram, TrafficKind::Eager, called_at);
        self.transmit(job, Message { from, sender, receiver: to, to: place, bytes, kind, transfer, stage, at });
    }

    /// Hands one message of a transfer to the network, or to memory.
    #[inline(always)]
    pub(super) fn transmit(&mut self, job: JobId, message: Message) {
        let Message { from: rank, sender, receiver, to: Place { id, host: to }, bytes, kind, transfer, stage, at } =
            message;
        self.jobs[job.index()].in_flight += 1;
        let from = self.host;
        if from == to {
            self.transmit_through_memory(bytes, transfer, stage, at);
            return;
        }
        let vl = self.sl2vl.lane(self.levels.of(job, sender, receiver, kind));
        let urgent = !matches!(stage, Stage::Eager | Stage::Datagram);
        let (token, stage) = (self.naming.translate(transfer), stage as u8);
        let injection = Injection { at: Instant(at), from, to, bytes, rail: 0, vl, job, kind, token, stage, urgent };
        if self.rails.trivial() {
            self.outbox.push(injection);
        } else {
            self.send_over_rails(injection, transfer, rank, [sender, receiver]);
        }
        if !self.naming.is_own(self.naming.translate(id)) {
            self.depart(transfer, id);
        }
    }

    /// A transfer goes to another shard, where the rank with this id is.
    #[cold]
    fn depart(&mut self, transfer: u32, id: u32) {
        let (shard, _) = self.naming.place(self.naming.translate(id));
        self.departing[shard].push((self.naming.translate(transfer), self.transfers[transfer].clone()));
    }

    #[cold]
    fn transmit_through_memory(&mut self, bytes: Bytes, record: u32, stage: Stage, at: u64) {
        let parameters = &self.parameters;
        let done = at + parameters.memory_latency.0 + parameters.memory_bandwidth.serialization(bytes).0;
        self.end_in_memory_at(done, record, stage);
    }

    /// At `at`, something ends in the memory of the host that runs.
    pub(super) fn end_in_memory_at(&mut self, at: u64, record: u32, stage: Stage) {
        let end = Reverse((at, self.sequence, record, stage));
        self.own_memory().push(end);
        self.in_memory += 1;
        self.sequence += 1;
    }

    /// The first or last packet of a message has come through the network.
    #[inline(always)]
    pub(super) fn delivered(&mut self, delivery: &Delivery) {
        let (record, stage) = (self.naming.translate(delivery.token), Stage::of(delivery.stage));
        if delivery.last {
            self.note_latency(record, stage, delivery.at);
        }
        self.arrived(record, stage, delivery.at.0, delivery.first, delivery.last);
    }

    /// A message of a transfer has come whole through the network: counts how long the transfer's payload took since its send
    /// was called, if that is all of it.
    #[inline(always)]
    fn note_latency(&mut self, record: u32, stage: Stage, at: Instant) {
        let transfer = &self.transfers[record];
        if stage.is_payload() && transfer.parts <= 1 {
            let job = self.ranks[transfer.end(stage) as usize].job;
            self.latencies.record(job, transfer.kind, Picoseconds(at.0 - transfer.sent_at));
        }
    }

    /// The latencies of all messages whose payload came through the network whole so far, each from the call of its send to the
    /// delivery of its last byte. `unseen` has come to hosts that have not looked at it yet.
    pub(super) fn latencies(&self, unseen: &[Delivery]) -> Latencies {
        let mut latencies = self.latencies.clone();
        let mut parts: FxHashMap<u32, (u8, Instant)> = FxHashMap::default();
        for Delivery { at, token, stage, .. } in unseen {
            let (transfer, stage) = (&self.transfers[self.naming.translate(*token)], Stage::of(*stage));
            if !stage.is_payload() {
                continue;
            }
            let (count, last) = parts.entry(*token).or_default();
            (*count, *last) = (*count + 1, *at.max(last));
            if *count == transfer.parts.max(1) {
                let job = self.ranks[transfer.end(stage) as usize].job;
                latencies.record(job, transfer.kind, Picoseconds(last.0 - transfer.sent_at));
            }
        }
        latencies
    }

    /// (Part of) a transfer's message has come at `now`.
    #[inline(always)]
    pub(super) fn arrived(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        if stage == Stage::Eager && first && last && self.is_next(record) {
            self.take_eager(record, now);
            return;
        }
        let job = self.ranks[self.transfers[record].end(stage) as usize].job;
        self.arrived_at(job, last);
        self.take_part(record, stage, now, first, last);
    }

    /// Whether a message that came whole can be taken at once: it is not numbered, or the next of its sender, and no other
    /// is held back.
    #[inline]
    fn is_next(&mut self, record: u32) -> bool {
        let Transfer { to, envelope, number, numbered, parts, .. } = self.transfers[record];
        !numbered || parts == 0 && self.ranks[to as usize].matching.is_next(number, &envelope)
    }

    /// A whole eager message has come, in its turn: the receive that takes it is complete.
    #[inline(always)]
    fn take_eager(&mut self, record: u32, now: u64) {
        let transfer = &mut self.transfers[record];
        // Even of a transfer that is over now: its slot is looked at when numbering starts.
        transfer.arrived = true;
        let to = transfer.to;
        let job = self.ranks[to as usize].job;
        self.arrived_at(job, true);
        let (state, transfer) = (&mut self.ranks[to as usize], &mut self.transfers[record]);
        let Some(receive) = state.matching.arrive(transfer.envelope, record) else {
            transfer.payload_done = true;
            self.end_probe(to, now);
            return;
        };
        let request = state.requests.get_mut(receive);
        let posted_at = std::mem::replace(&mut request.partner_at, transfer.sent_at);
        request.complete_at = now;
        let (detached, waited) = (request.detached, request.waited);
        self.transfers.remove(record);
        if let Some(of) = &mut self.record {
            of.met(record, Instant(posted_at));
            of.received(record, receive, Instant(now));
        }
        if waited {
            self.one_less(to, now);
        } else if detached {
            self.end_detached(to, receive, now);
        }
    }

    /// (Part of) a message has come, with all that may follow from it.
    #[inline(never)]
    fn take_part(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        let transfer = &mut self.transfers[record];
        let (first, last) = if transfer.parts == 0 { (first, last) } else { transfer.part_came(first, last) };
        transfer.payload_done |= last && stage == Stage::Eager;
        let Transfer { from, to, bytes, send, receive, kind, number: partner_at, .. } = *transfer;
        match stage {
            Stage::Eager | Stage::Request => {
                if first {
                    self.envelope(record, now);
                }
                if last && receive != NONE {
                    self.finish_receive(record, now);
                }
            }
            Stage::Get => {
                self.rank(from).requests.get_mut(send).partner_at = partner_at;
                self.go_on_with(record, Stage::Bulk, (Bytes(bytes), kind), now);
            }
            Stage::Bulk if last => {
                self.answer(record, Stage::Acknowledgement, now);
                if let Some(of) = &mut self.record {
                    of.received(record, receive, Instant(now));
                }
                self.complete(to, receive, now);
            }
            Stage::Bulk => {}
            Stage::Datagram if last => {
                self.transfers.remove(record);
                if let Some(of) = &mut self.record {
                    of.delivered(record, Instant(now));
                }
            }
            Stage::Datagram => {}
            Stage::Acknowledgement => {
                self.transfers.remove(record);
                if let Some(of) = &mut self.record {
                    of.acknowledged(record, send, Instant(now));
                }
                self.complete(from, send, now);
            }
            _ if last => self.take_one_sided(record, stage, now),
            _ => {}
        }
    }

    #[cold]
    fn record_sent(&mut self, token: u32) {
        let Transfer { from, receiver, bytes, envelope, collective, eager, sent_at, .. } = self.transfers[token];
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
            token,
            from: Rank(envelope.source),
            to: receiver,
            bytes: Bytes(bytes),
            tag: envelope.tag,
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
    pub(super) fn record_one_sided(&mut self, token: u32, back: bool, now: Instant) {
        let Transfer { from, receiver: target, envelope, bytes, .. } = self.transfers[token];
        let origin = Rank(envelope.source);
        let Some(of) = self.record_of(from) else { return };
        of.sent(MessageRecord {
            number: 0,
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

    /// The receiver of a rendezvous answers.
    fn answer(&mut self, record: u32, stage: Stage, now: u64) {
        let load = (self.parameters.control_bytes, control(self.transfers[record].collective));
        self.go_on_with(record, stage, load, now);
    }

    /// A transfer goes on with another message.
    pub(super) fn go_on_with(&mut self, transfer: u32, stage: Stage, (bytes, kind): (Bytes, TrafficKind), at: u64) {
        let Transfer { from, to, receiver, envelope, .. } = self.transfers[transfer];
        let (from, receiver) = if stage.goes_back() { (to, Rank(envelope.source)) } else { (from, receiver) };
        let RankState { job, rank: sender, .. } = self.ranks[from as usize];
        let to = self.place(job, receiver);
        self.transmit(job, Message { from, sender, receiver, to, bytes, kind, transfer, stage, at });
    }

    /// The envelope of a transfer has come: matches it, and those that it had held back, in the order of sending.
    fn envelope(&mut self, record: u32, now: u64) {
        self.transfers[record].arrived = true;
        let Transfer { to, envelope, number, numbered, .. } = self.transfers[record];
        if numbered && !self.rank(to).matching.in_turn(number, envelope, record) {
            return;
        }
        let mut next = Some((envelope, record));
        while let Some((envelope, record)) = next {
            if let Some(receive) = self.rank(to).matching.arrive(envelope, record) {
                self.matched(record, receive, now);
            }
            next = self.rank(to).matching.released(&envelope);
        }
        self.end_probe(to, now);
    }

    /// From now on messages of this shard's ranks can overtake each other in the network, and are numbered from 0. Those under
    /// way are numbered, too, by the shards that they go to: when the window ends, which is sooner than a numbered message can come.
    pub(super) fn start_numbering(&mut self) {
        self.numbering_started |= !std::mem::replace(&mut self.numbering, true);
    }

    /// The ranks of a shard number their messages from 0 now: those that come here and are not numbered have the numbers before
    /// 0, in the order of sending.
    pub(super) fn number_under_way(&mut self, shard: usize) {
        let transfers = &mut self.transfers;
        let mut coming: Vec<_> = transfers.coming_from(shard);
        let group = |transfer: &Transfer| (transfer.to, transfer.envelope.context, transfer.envelope.source);
        coming.sort_unstable_by_key(|record| (group(&transfers[*record]), transfers[*record].number));
        for same in coming
            .chunk_by(|one, next| group(&transfers[*one]) == group(&transfers[*next]))
            .map(<[u32]>::to_vec)
            .collect::<Vec<_>>()
        {
            let first = 0_u64.wrapping_sub(same.len() as u64);
            let Transfer { to, envelope, .. } = transfers[same[0]];
            self.ranks[to as usize].matching.expect_from(&envelope, first);
            for (place, record) in (0..).zip(same) {
                let transfer = &mut transfers[record];
                (transfer.number, transfer.numbered) = (first.wrapping_add(place), true);
            }
        }
    }

    /// Posts a receive. Returns its request; `None` if its name is in use.
    #[inline(always)]
    pub(super) fn post(&mut self, rank: u32, pattern: Pattern, name: Option<RequestId>, now: u64) -> Option<u32> {
        let state = &mut self.ranks[rank as usize];
        let receive = state.requests.start(name, Request::receive(now))?;
        if let Some(record) = state.matching.post(pattern, receive) {
            self.matched(record, receive, now);
        }
        Some(receive)
    }

    /// A transfer has found its receive.
    fn matched(&mut self, record: u32, receive: u32, now: u64) {
        let transfer = &mut self.transfers[record];
        transfer.receive = receive;
        let Transfer { to, sent_at, eager, payload_done, .. } = *transfer;
        let request = self.rank(to).requests.get_mut(receive);
        let posted_at = std::mem::replace(&mut request.partner_at, sent_at);
        if let Some(of) = &mut self.record {
            of.met(record, Instant(posted_at));
        }
        if !eager {
            self.transfers[record].set_partner_at(posted_at);
            self.answer(record, Stage::Get, now);
        } else if payload_done {
            self.finish_receive(record, now);
        }
    }

    #[inline]
    fn finish_receive(&mut self, record: u32, now: u64) {
        let Transfer { to, receive, .. } = self.transfers[record];
        self.transfers.remove(record);
        if let Some(of) = &mut self.record {
            of.received(record, receive, Instant(now));
        }
        self.complete(to, receive, now);
    }

    /// A message has been kept as unexpected: a probe that waits for it ends.
    fn end_probe(&mut self, rank: u32, now: u64) {
        let RankState { matching, blocked, since, .. } = self.rank(rank);
        let Blocked::Probe(pattern) = *blocked else { return };
        let Some(record) = matching.probe(pattern) else { return };
        *blocked = Blocked::Not;
        let since = *since;
        let sent_at = self.transfers[record].sent_at;
        self.account_wait(rank, (since, now), sent_at, |of, _| of.number(record).map(|number| (number, true)));
        self.resume(rank, now);
    }

    /// Begins a probe. Returns whether its message is there already.
    pub(super) fn probe(&mut self, rank: u32, pattern: Pattern) -> bool {
        let RankState { matching, blocked, .. } = self.rank(rank);
        if matching.probe(pattern).is_some() {
            return true;
        }
        *blocked = Blocked::Probe(pattern);
        false
    }

    /// A request of `rank` is complete.
    #[inline]
    pub(super) fn complete(&mut self, rank: u32, slot: u32, now: u64) {
        let request = self.rank(rank).requests.get_mut(slot);
        request.complete_at = now;
        if request.detached {
            self.end_detached(rank, slot, now);
        } else if request.waited {
            self.one_less(rank, now);
        }
    }
}
