//! Deliveries: which rule takes a message of a transfer that has come to its host.

use rustc_hash::FxHashMap;

use super::transfer::{Progress, Stage, Transfer};
use crate::kernel::NONE;
use crate::mpi::messaging::Messaging;
use crate::network::Delivery;
use crate::observe::Latencies;
use crate::units::{Bytes, Instant, Picoseconds};

impl Messaging {
    /// The first or last packet of a message has come through the network.
    #[inline(always)]
    pub fn delivered(&mut self, delivery: &Delivery) {
        let whole = delivery.stage == Stage::Eager as u8 && delivery.first && delivery.last;
        if !(whole && self.record.is_none() && self.take_eager(delivery)) {
            self.take(delivery);
        }
    }

    /// Takes what has come. If it is the last of a transfer's payload, counts how long that took since its send was called.
    #[inline(never)]
    fn take(&mut self, &Delivery { at, token, traffic, stage, first, last }: &Delivery) {
        let (record, stage) = (self.naming.translate(token), Stage::of(stage));
        let transfer = &self.transfers[record];
        let job = self.ranks[transfer.end(stage) as usize].job;
        if last && stage.is_payload() && transfer.parts_left() <= 1 && !self.jobs[job.index()].failed {
            self.latencies.record(traffic, transfer.kind, Picoseconds(at.0 - transfer.sent_at));
        }
        self.count_arrival(job, last);
        self.take_part(record, stage, at.0, first, last);
    }

    /// The latencies of all messages whose payload came through the network whole so far, each from the call of its send to the
    /// delivery of its last byte. `unseen` has come to hosts that have not looked at it yet.
    pub fn latencies(&self, unseen: &[Delivery]) -> Latencies {
        let mut latencies = self.latencies.clone();
        let mut parts: FxHashMap<u32, (u8, Instant)> = FxHashMap::default();
        for Delivery { at, token, traffic, stage, .. } in unseen {
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
                latencies.record(*traffic, transfer.kind, Picoseconds(last.0 - transfer.sent_at));
            }
        }
        latencies
    }

    /// A transfer's message, which a rank of this host has sent, has come whole through memory.
    pub fn came_through_memory(&mut self, record: u32, stage: Stage, now: u64) {
        let job = self.ranks[self.transfers[record].end(stage) as usize].job;
        self.count_arrival(job, true);
        self.take_part(record, stage, now, true, true);
    }

    /// A whole eager message has come. Takes it, unless it is a part of a payload, or numbered and not the next of its sender, or
    /// another is held back.
    /// As [`Self::take`], of which this is the most frequent case.
    #[inline(always)]
    fn take_eager(&mut self, &Delivery { at: Instant(now), token, traffic, .. }: &Delivery) -> bool {
        let record = self.naming.translate(token);
        let transfer = &mut self.transfers[record];
        let Transfer { to, sent_at, .. } = *transfer;
        let state = &mut self.ranks[to as usize];
        let numbered = transfer.progress == Progress::Numbered;
        if transfer.parts > 0 || numbered && !state.matching.is_next(transfer.number, &transfer.envelope) {
            return false;
        }
        let job = &mut self.jobs[state.job.index()];
        job.in_flight -= 1;
        if job.active == 0 {
            job.note_quiescent(state.job, self.host, &mut self.quiescent);
        }
        if !job.failed {
            self.latencies.record(traffic, transfer.kind, Picoseconds(now - sent_at));
        }
        let Some(receive) = state.matching.arrive(&transfer.envelope, record) else {
            transfer.progress = Progress::Complete;
            self.end_probe(to, now);
            return true;
        };
        self.transfers.remove(record);
        let completion = state.complete(receive, Some(sent_at), now);
        self.follow(completion, to, receive, now);
        true
    }

    /// (Part of) a message has come, with all that may follow from it.
    #[inline(never)]
    fn take_part(&mut self, record: u32, stage: Stage, now: u64, first: bool, last: bool) {
        let transfer = &mut self.transfers[record];
        let (first, last) = if transfer.parts == 0 { (first, last) } else { transfer.part_came(first, last) };
        let Transfer { from, to, bytes, send, receive, kind, partner_at, .. } = *transfer;
        let eager = transfer.eager();
        match stage {
            Stage::Request if eager => self.answer(record, Stage::Get, now),
            Stage::Get if eager => self.send_next(record, Stage::Bulk, (Bytes(bytes), kind), now),
            Stage::Bulk if !eager && !last => {}
            Stage::Eager | Stage::Request | Stage::Bulk if eager || stage == Stage::Request => {
                let complete = last && stage.is_payload() && eager;
                if first {
                    self.envelope(record, complete, now);
                } else if complete {
                    transfer.progress = Progress::Complete;
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
    pub fn take_one_sided(&mut self, record: u32, stage: Stage, now: u64) {
        let Transfer { to, bytes, .. } = self.transfers[record];
        match stage {
            Stage::Put => {
                self.record_landed(record, now);
                self.done(record, now);
            }
            Stage::Fetch | Stage::Exchanged => {
                let load = (Bytes(bytes), self.payload(Bytes(bytes)));
                self.count_payload(to, Bytes(bytes));
                self.transfers[record].kind = load.1;
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
