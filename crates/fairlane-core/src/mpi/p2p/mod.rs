//! Eager and rendezvous: a transfer's messages, one after the other. A large eager message has those of a rendezvous, but for the
//! acknowledgement, and the receiver's adapter fetches it whether a receive has been posted or not.

mod delivery;
pub(in crate::mpi) mod matching;
pub(in crate::mpi) mod memory;
mod numbering;
mod numbers;
pub(in crate::mpi) mod rails;
pub(in crate::mpi) mod report;
pub(in crate::mpi) mod request;
pub(in crate::mpi) mod transfer;
pub(in crate::mpi) mod transmit;
pub(in crate::mpi) mod wait;

use crate::kernel::NONE;
use crate::mpi::messaging::Messaging;
use crate::mpi::rank::{Blocked, RankState};
use crate::observe::{IRECV, ISEND};
use crate::program::{RequestId, SendMode};
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};
use matching::{Envelope, Pattern};
use request::{PENDING, Request};
use transfer::{Outgoing, Progress, Send, Stage, Transfer};
use transmit::Opening;

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
    pub fn is_eager(&self, bytes: Bytes, mode: SendMode) -> bool {
        if mode == SendMode::Standard { bytes <= self.parameters.eager_threshold } else { mode == SendMode::Eager }
    }

    /// Starts a send, and counts it as a call if it has a name and is over at once. Returns its request, which is complete already
    /// if it is eager; `None` if its name is in use.
    #[inline(always)]
    pub fn send(&mut self, send: &Send) -> Option<u32> {
        let Send { from, to, bytes, context, eager, .. } = *send;
        let state = &mut self.ranks[from as usize];
        let place = self.places[(self.jobs[state.job.index()].first + to.0) as usize];
        let numbered = self.numbering || place.host == self.host;
        let request = Request::send(send.called_at, if eager { send.handed_at } else { PENDING });
        let request = state.requests.start(send.name, request)?;
        let (job, sender) = (state.job, state.rank);
        #[allow(clippy::cast_possible_truncation, reason = "modulo 2^32")]
        let (progress, number) = if numbered {
            (Progress::Numbered, state.matching.number(context, to.0))
        } else {
            (Progress::Unnumbered, state.record.messages_sent as u32)
        };
        state.record.messages_sent += 1;
        state.record.bytes_sent += bytes.0;
        if send.name.is_some() && send.handed_at == send.called_at {
            state.record.call_mut(ISEND).count += 1;
        }
        let transfer = self.transfers.insert(Transfer {
            from,
            to: self.naming.translate(place.id),
            receiver: to,
            bytes: bytes.0,
            envelope: Envelope { context, source: sender.0, tag: send.tag },
            number,
            progress,
            send: if eager { NONE } else { request },
            receive: NONE,
            sent_at: send.called_at,
            partner_at: 0,
            kind: payload_kind(eager, send.collective),
            parts: 0,
            rail: 0,
        });
        if self.record.is_some() {
            self.record_sent(transfer);
        }
        let (stage, bytes, kind) = match (eager && !self.parameters.is_fetched(bytes), send.collective) {
            (true, collective) => (Stage::Eager, bytes, payload_kind(true, collective)),
            (false, collective) => (Stage::Request, self.parameters.control_bytes, control(collective)),
        };
        let at = send.handed_at;
        self.transmit(job, Outgoing { from, sender, receiver: to, to: place, bytes, kind, transfer, stage, at });
        Some(request)
    }

    /// Sends a message that nobody receives.
    pub fn send_datagram(&mut self, send: &Send) {
        let Send { from, to, bytes, context, called_at, .. } = *send;
        self.count_payload(from, bytes);
        let transfer = self.open(Opening {
            from,
            to,
            bytes: bytes.0,
            context,
            requests: (NONE, NONE),
            stage: Stage::Datagram,
            load: (bytes, TrafficKind::Eager),
            called_at,
            handed_at: called_at,
        });
        if self.record.is_some() {
            self.record_sent(transfer);
        }
    }

    /// The receiver of a rendezvous answers.
    pub fn answer(&mut self, record: u32, stage: Stage, now: u64) {
        let load = (self.parameters.control_bytes, control(self.transfers[record].collective()));
        self.send_next(record, stage, load, now);
    }

    /// The envelope of a transfer has come, with all of an eager payload if it is `complete`: matches it, and those that it had
    /// held back, in the order of sending.
    fn envelope(&mut self, record: u32, complete: bool, now: u64) {
        let Transfer { to, envelope, number, ref mut progress, .. } = self.transfers[record];
        let state = if complete { Progress::Complete } else { Progress::Arrived };
        let numbered = std::mem::replace(progress, state) == Progress::Numbered;
        if numbered && !self.rank(to).matching.take_number(number, envelope, record) {
            return;
        }
        let mut next = Some((envelope, record));
        while let Some((envelope, record)) = next {
            if let Some(receive) = self.rank(to).matching.arrive(&envelope, record) {
                self.matched(record, receive, now);
            }
            next = self.rank(to).matching.released(&envelope);
        }
        self.end_probe(to, now);
    }

    /// Posts a receive, and counts it as a call if it has a name. Returns its request; `None` if its name is in use.
    #[inline(always)]
    pub fn post(&mut self, rank: u32, pattern: Pattern, name: Option<RequestId>, now: u64) -> Option<u32> {
        let state = &mut self.ranks[rank as usize];
        let receive = state.requests.start(name, Request::receive(now))?;
        if name.is_some() {
            state.record.call_mut(IRECV).count += 1;
        }
        if let Some(record) = state.matching.post(pattern, receive) {
            self.matched(record, receive, now);
        }
        Some(receive)
    }

    /// A transfer has found its receive, and continues if it can.
    fn matched(&mut self, record: u32, receive: u32, now: u64) {
        let to = self.transfers[record].to;
        let posted_at = self.meet(record, (to, receive));
        let transfer = &mut self.transfers[record];
        if !transfer.eager() {
            transfer.partner_at = posted_at;
            self.answer(record, Stage::Get, now);
        } else if transfer.progress == Progress::Complete {
            self.finish_receive(record, (to, receive), now);
        }
    }

    /// Notes that a transfer and a receive have found each other. Returns when the receive was posted.
    #[inline(always)]
    fn meet(&mut self, record: u32, (to, receive): (u32, u32)) -> u64 {
        let transfer = &mut self.transfers[record];
        transfer.receive = receive;
        let request = self.ranks[to as usize].requests.get_mut(receive);
        let posted_at = std::mem::replace(&mut request.partner_at, transfer.sent_at);
        if let Some(of) = &mut self.record {
            of.met(record, Instant(posted_at));
        }
        posted_at
    }

    /// The payload of an eager message is there, and the receive that takes it posted: both are over.
    #[inline(always)]
    pub fn finish_receive(&mut self, record: u32, (to, receive): (u32, u32), now: u64) {
        self.transfers.remove(record);
        if let Some(of) = &mut self.record {
            of.received(record, receive, Instant(now));
        }
        self.complete(to, receive, now);
    }

    /// A message has been kept as unexpected: a probe that waits for it ends.
    pub fn end_probe(&mut self, rank: u32, now: u64) {
        let RankState { matching, blocked, since, .. } = self.rank(rank);
        let Blocked::Probe(pattern) = *blocked else { return };
        let Some(record) = matching.probe(pattern) else { return };
        *blocked = Blocked::Not;
        let since = *since;
        let sent_at = self.transfers[record].sent_at;
        let message = self.record.as_ref().and_then(|of| of.number(record)).map(|number| (number, true));
        self.account_wait(rank, (since, now), sent_at, message);
        self.resume(rank, now);
    }

    /// Begins a probe. Returns whether its message is there already.
    pub fn probe(&mut self, rank: u32, pattern: Pattern) -> bool {
        let RankState { matching, blocked, .. } = self.rank(rank);
        if matching.probe(pattern).is_some() {
            return true;
        }
        *blocked = Blocked::Probe(pattern);
        false
    }
}
