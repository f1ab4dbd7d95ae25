//! Eager and rendezvous: a transfer's messages, one after the other.

use std::cmp::Reverse;

use super::Mpi;
use super::matching::{Envelope, Pattern};
use crate::kernel::NONE;
use crate::network::{Delivery, Injection};
use crate::program::{SendMode, Tag};
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};

/// Which message of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// The payload at once.
    Eager,
    /// Rendezvous: may I send?
    Request,
    /// Rendezvous: the receiver fetches the payload.
    Get,
    /// Rendezvous: the payload.
    Bulk,
    /// Rendezvous: the payload has come.
    Acknowledgement,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Eager, Self::Request, Self::Get, Self::Bulk, Self::Acknowledgement];

    fn goes_back(self) -> bool {
        matches!(self, Self::Get | Self::Acknowledgement)
    }
}

/// A message between two ranks, from the send call to its completion on both sides.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    /// Ranks over all jobs.
    from: u32,
    to: u32,
    bytes: u64,
    envelope: Envelope,
    /// Its number among the messages from `from` to `to` on the same context, if messages are numbered; else among all
    /// that `from` sent.
    number: u64,
    /// Its envelope has come.
    arrived: bool,
    /// The sender's request, for a rendezvous.
    send: u32,
    /// The receiver's request, once matched.
    receive: u32,
    sent_at: u64,
    eager: bool,
    payload_done: bool,
    collective: bool,
}

/// A send as the interpreter asks for it.
pub(super) struct Send {
    pub from: u32,
    pub to: u32,
    pub bytes: Bytes,
    pub tag: Tag,
    pub context: u32,
    pub mode: SendMode,
    pub collective: bool,
    /// When the call was made.
    pub called_at: u64,
    /// When the CPU is done with it.
    pub handed_at: u64,
}

impl Mpi {
    /// Starts a send. Returns its request, complete already if it is eager.
    pub(super) fn send(&mut self, send: &Send) -> u32 {
        let eager = send.mode == SendMode::Standard && send.bytes <= self.parameters.eager_threshold;
        let receiver = self.ranks[send.to as usize].rank.0;
        if send.from == send.to {
            // Through memory a short message overtakes a long one.
            self.start_numbering();
        }
        let numbering = self.numbering;
        let sender = self.rank(send.from);
        let source = sender.rank.0;
        let request = sender.requests.start(false, send.called_at);
        let numbered = numbering.then(|| sender.matching.number(send.context, receiver));
        if eager {
            sender.requests.get_mut(request).complete_at = send.handed_at;
        }
        let record = &mut self.records[send.from as usize];
        let number = numbered.unwrap_or(record.messages_sent);
        record.messages_sent += 1;
        record.bytes_sent += send.bytes.0;
        let transfer = self.transfers.insert(Transfer {
            from: send.from,
            to: send.to,
            bytes: send.bytes.0,
            envelope: Envelope { context: send.context, source, tag: send.tag },
            number,
            arrived: false,
            send: if eager { NONE } else { request },
            receive: NONE,
            sent_at: send.called_at,
            eager,
            payload_done: false,
            collective: send.collective,
        });
        self.transmit(transfer, if eager { Stage::Eager } else { Stage::Request }, send.handed_at);
        request
    }

    /// Sends one message of a transfer at `at`.
    fn transmit(&mut self, record: u32, stage: Stage, at: u64) {
        let transfer = &self.transfers[record];
        let (from, to) = if stage.goes_back() { (transfer.to, transfer.from) } else { (transfer.from, transfer.to) };
        let (bytes, kind) = match stage {
            Stage::Eager | Stage::Bulk => {
                let point_to_point = if stage == Stage::Eager { TrafficKind::Eager } else { TrafficKind::Bulk };
                (Bytes(transfer.bytes), if transfer.collective { TrafficKind::Collective } else { point_to_point })
            }
            _ => (self.parameters.control_bytes, TrafficKind::Control),
        };
        let (sender, receiver) = (&self.ranks[from as usize], &self.ranks[to as usize]);
        let job = sender.job;
        self.jobs[job.index()].in_flight += 1;
        if sender.host == receiver.host {
            let parameters = &self.parameters;
            let done = at + parameters.memory_latency.0 + parameters.memory_bandwidth.serialization(bytes).0;
            self.memory[sender.host.index()].push(Reverse((done, self.sequence, record, stage)));
            self.sequence += 1;
            return;
        }
        let vl = self.sl2vl.lane(self.levels.of(job, sender.rank, receiver.rank, kind));
        self.outbox.push(Injection {
            at: Instant(at),
            from: sender.host,
            to: receiver.host,
            bytes,
            vl,
            job,
            token: record,
            stage: stage as u8,
        });
    }

    /// The first or last packet of a message has come through the network.
    pub(super) fn delivered(&mut self, delivery: &Delivery) {
        let stage = Stage::ALL[usize::from(delivery.stage)];
        self.arrived(delivery.token, stage, delivery.at.0, delivery.first, delivery.last);
    }

    /// (Part of) a transfer's message has come at `now`.
    pub(super) fn arrived(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        let transfer = &mut self.transfers[record];
        let (from, to) = (transfer.from, transfer.to);
        if last {
            transfer.payload_done |= stage == Stage::Eager;
            self.job_of(from).in_flight -= 1;
        }
        match stage {
            Stage::Eager | Stage::Request => {
                let matched = self.transfers[record].receive != NONE;
                if first {
                    self.envelope(record, now);
                }
                if last && matched {
                    self.finish_receive(record, now);
                }
            }
            Stage::Get => self.transmit(record, Stage::Bulk, now),
            Stage::Bulk if last => {
                self.transmit(record, Stage::Acknowledgement, now);
                let receive = self.transfers[record].receive;
                self.complete(to, receive, now);
            }
            Stage::Bulk => {}
            Stage::Acknowledgement => {
                let send = self.transfers[record].send;
                self.transfers.remove(record);
                self.complete(from, send, now);
            }
        }
    }

    /// The envelope of a transfer has come: matches it, and those that it had held back, in the order of sending.
    fn envelope(&mut self, record: u32, now: u64) {
        self.transfers[record].arrived = true;
        let Transfer { to, envelope, number, .. } = self.transfers[record];
        if self.numbering && !self.rank(to).matching.in_turn(number, envelope, record) {
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

    /// From now on messages can overtake each other. Those under way are numbered in the order of sending.
    pub(super) fn start_numbering(&mut self) {
        if std::mem::replace(&mut self.numbering, true) {
            return;
        }
        let under_way = self.transfers.slots().filter(|(_, transfer)| !transfer.arrived);
        let mut under_way: Vec<_> =
            under_way.map(|(record, transfer)| (transfer.from, transfer.number, record)).collect();
        under_way.sort_unstable();
        for (from, _, record) in under_way {
            let Transfer { to, envelope, .. } = self.transfers[record];
            let receiver = self.ranks[to as usize].rank.0;
            self.transfers[record].number = self.rank(from).matching.number(envelope.context, receiver);
        }
    }

    /// Posts a receive.
    pub(super) fn post(&mut self, rank: u32, pattern: Pattern, now: u64) -> u32 {
        let state = self.rank(rank);
        let receive = state.requests.start(true, now);
        if let Some(record) = state.matching.post(pattern, receive) {
            self.matched(record, receive, now);
        }
        receive
    }

    /// A transfer has found its receive.
    fn matched(&mut self, record: u32, receive: u32, now: u64) {
        let transfer = &mut self.transfers[record];
        transfer.receive = receive;
        let Transfer { to, from, sent_at, eager, payload_done, send, .. } = *transfer;
        let request = self.rank(to).requests.get_mut(receive);
        request.partner_at = sent_at;
        let posted_at = request.posted_at;
        if !eager {
            self.rank(from).requests.get_mut(send).partner_at = posted_at;
            self.transmit(record, Stage::Get, now);
        } else if payload_done {
            self.finish_receive(record, now);
        }
    }

    fn finish_receive(&mut self, record: u32, now: u64) {
        let Transfer { to, receive, .. } = self.transfers[record];
        self.transfers.remove(record);
        self.complete(to, receive, now);
    }

    /// A probe that waits ends if its message has come.
    fn end_probe(&mut self, rank: u32, now: u64) {
        let state = self.rank(rank);
        let Some(pattern) = state.probe else { return };
        let Some(record) = state.matching.probe(pattern) else { return };
        state.probe = None;
        let since = state.since;
        let sent_at = self.transfers[record].sent_at;
        self.account_wait(rank, since, now, sent_at);
        self.resume(rank, now);
    }

    /// Begins a probe. Returns whether its message is there already.
    pub(super) fn probe(&mut self, rank: u32, pattern: Pattern) -> bool {
        let state = self.rank(rank);
        if state.matching.probe(pattern).is_some() {
            return true;
        }
        state.probe = Some(pattern);
        false
    }

    /// A request of `rank` is complete.
    fn complete(&mut self, rank: u32, slot: u32, now: u64) {
        let requests = &mut self.rank(rank).requests;
        let request = requests.get_mut(slot);
        request.complete_at = now;
        if request.detached {
            requests.release(slot);
        } else if request.waited {
            self.one_less(rank, now);
        }
    }
}
