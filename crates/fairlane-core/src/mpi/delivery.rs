//! Deliveries: which rule takes a message of a transfer that has come to its host.

use rustc_hash::FxHashMap;

use super::messaging::Messaging;
use super::transfer::{Stage, Transfer};
use crate::kernel::NONE;
use crate::network::Delivery;
use crate::observe::Latencies;
use crate::units::{Bytes, Instant, Picoseconds};

impl Messaging {
    /// The first or last packet of a message has come through the network.
    #[inline(always)]
    pub(super) fn delivered(&mut self, delivery: &Delivery) {
        let (record, stage) = (self.naming.translate(delivery.token), Stage::of(delivery.stage));
        if delivery.last {
            self.record_latency(record, stage, delivery.at);
        }
        self.arrived(record, stage, delivery.at.0, delivery.first, delivery.last);
    }

    /// A message of a transfer has come whole through the network: counts how long the transfer's payload took since its send
    /// was called, if that is all of it.
    #[inline(always)]
    fn record_latency(&mut self, record: u32, stage: Stage, at: Instant) {
        let transfer = &self.transfers[record];
        if stage.is_payload() && transfer.parts_left() <= 1 {
            let job = self.ranks[transfer.end(stage) as usize].job;
            if self.jobs[job.index()].failed {
                return;
            }
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
            if *count == transfer.parts_left().max(1) {
                let job = self.ranks[transfer.end(stage) as usize].job;
                if self.jobs[job.index()].failed {
                    continue;
                }
                latencies.record(job, transfer.kind, Picoseconds(last.0 - transfer.sent_at));
            }
        }
        latencies
    }

    /// (Part of) a transfer's message has come at `now`.
    #[inline(always)]
    pub(super) fn arrived(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        let job = self.ranks[self.transfers[record].end(stage) as usize].job;
        self.count_arrival(job, last);
        if stage == Stage::Eager && first && last && self.is_next(record) {
            self.take_eager(record, now);
        } else {
            self.take_part(record, stage, now, first, last);
        }
    }

    /// Whether a message that came whole can be taken at once: it is not numbered, or the next of its sender, and no other
    /// is held back.
    #[inline]
    fn is_next(&mut self, record: u32) -> bool {
        let Transfer { to, envelope, number, numbered, parts, .. } = self.transfers[record];
        !numbered || parts == 0 && self.ranks[to as usize].matching.is_next(number, &envelope)
    }

    /// (Part of) a message has come, with all that may follow from it.
    #[inline(never)]
    fn take_part(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        let transfer = &mut self.transfers[record];
        let (first, last) = if transfer.parts == 0 { (first, last) } else { transfer.part_came(first, last) };
        transfer.payload_done |= last && stage.is_payload() && transfer.eager;
        let Transfer { from, to, bytes, send, receive, kind, number: partner_at, eager, .. } = *transfer;
        match stage {
            Stage::Request if eager => self.answer(record, Stage::Get, now),
            Stage::Get if eager => self.send_next(record, Stage::Bulk, (Bytes(bytes), kind), now),
            Stage::Bulk if !eager && !last => {}
            Stage::Eager | Stage::Request | Stage::Bulk if eager || stage == Stage::Request => {
                if first {
                    self.envelope(record, now);
                }
                if last && receive != NONE {
                    self.finish_receive(record, (to, receive), now);
                }
            }
            Stage::Get => {
                self.rank(from).requests.get_mut(send).partner_at = partner_at;
                self.send_next(record, Stage::Bulk, (Bytes(bytes), kind), now);
            }
            Stage::Bulk => {
                self.answer(record, Stage::Acknowledgement, now);
                if let Some(of) = &mut self.record {
                    of.received(record, receive, Instant(now));
                }
                self.complete(to, receive, now);
            }
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

    /// A message of a one-sided operation has come whole, or a combination has ended.
    pub(super) fn take_one_sided(&mut self, record: u32, stage: Stage, now: u64) {
        let Transfer { to, bytes, .. } = self.transfers[record];
        match stage {
            Stage::Put => {
                self.record_landed(record, now);
                self.done(record, now);
            }
            Stage::Fetch | Stage::Exchanged => {
                let load = (Bytes(bytes), self.payload(Bytes(bytes)));
                self.count_payload(to, Bytes(bytes));
                self.transfers[record].carry(load.1);
                self.send_next(record, Stage::Reply, load, now);
            }
            Stage::Accumulate => self.combine(record, Stage::Combined, now),
            Stage::Exchange => self.combine(record, Stage::Exchanged, now),
            Stage::Combined => self.done(record, now),
            Stage::Reply | Stage::Done | Stage::Grant => self.end_one_sided(record, now),
            Stage::LockShared => self.lock_asked(record, false, now),
            Stage::LockExclusive => self.lock_asked(record, true, now),
            Stage::Unlock => self.lock_released(record, now),
            _ => unreachable!("invariant: a stage of messages of two sides"),
        }
    }
}
