//! What go-back-N does at receivers and senders; see [`go_back_n`](super::go_back_n).

use super::flows::{Event, Expected, Key, Tag};
use super::go_back_n::{Returned, Sequence};
use crate::ids::LinkId;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{PacketIdx, PortIdx};
use crate::network::packet::{Packet, Resend};
use crate::network::port::ActivePort;
use crate::units::{Bytes, Instant};

/// Payload of a NAK: an AETH.
const NAK: u32 = 4;

impl InFlight {
    /// A packet arrives with its tail at NIC `nic` at instant `time`. Returns whether it comes after a gap: it will be
    /// discarded then, and a NAK is sent if it is the first.
    #[cold]
    pub fn discards(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx, time: Instant) -> bool {
        let Packet { traffic, to, source, vl, .. } = self.packets[packet];
        let job = config.fabric.job_of(traffic);
        let psn = self.tags[packet].psn;
        let sequence = self.flows[nic].heard.sequences.entry((source, job, vl)).or_default();
        let missing = sequence.next;
        if psn == missing {
            *sequence = Sequence { next: psn + 1, nak: false };
        }
        if psn <= missing {
            return false;
        }
        let first = !std::mem::replace(&mut sequence.nak, true);
        self.expect_event(nic, Expected { key: Key { to, job, vl }, event: Event::Discarded(packet) }, time);
        if first {
            let notice = Tag { psn: missing, nak: true, to, vl, control: true, ..Tag::default() };
            let lane = config.fabric.feedback_of(job).and_then(|feedback| feedback.vl).unwrap_or(vl);
            self.send_notice(config, nic, (notice, NAK), lane, (traffic, source), time);
        }
        true
    }

    /// A packet that is given up comes to NIC `nic`: nobody waits for it any more.
    pub fn skip_given_up(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx) {
        let Packet { traffic, source, vl, .. } = self.packets[packet];
        let job = config.fabric.job_of(traffic);
        let psn = self.tags[packet].psn;
        let sequence = self.flows[nic].heard.sequences.entry((source, job, vl)).or_default();
        if sequence.next <= psn {
            *sequence = Sequence { next: psn + 1, nak: false };
        }
    }

    /// A packet is discarded by its receiver at `now`: its sender will send it again.
    pub fn send_back(&mut self, config: &Config, packet: PacketIdx, now: Instant) {
        self.totals.packets_discarded += 1;
        self.tags[packet].discarded = true;
        self.return_to_sender(config, packet, self.packets[packet].came.link(), now);
    }

    /// A packet that this shard sent was lost or discarded at the end of `link`, and waits until its flow goes back. Its timeout passes at
    /// `due`.
    pub fn await_turn(&mut self, config: &Config, packet: PacketIdx, link: LinkId, due: Instant) {
        let tag = &mut self.tags[packet];
        tag.discarded = false;
        let psn = tag.psn;
        let (key, record) = (Key::of_packet(&config.fabric, &self.packets[packet]), self.packets[packet]);
        let nic = config.fabric.nic_of_address(record.source).port;
        self.totals.packets_retransmitted += 1;
        self.totals.bytes_retransmitted += u64::from(record.bytes - config.fabric.header);
        let returned = Instant(due.0 - config.fabric.timeout.0) + 2 * self.calendar.width();
        let order = self.return_to_source(config, packet, (Resend::Lost, link), returned);
        for (time, event) in [(returned, Event::Returned(psn, packet)), (due, Event::Timeout(psn, order))] {
            self.flows[nic].expected.insert((time, nic, order), Expected { key, event });
            self.wake_port(nic, time);
        }
    }

    /// The number of a packet at its NIC to which its flow has gone back.
    pub fn psn_to_send_again(&self, config: &Config, packet: PacketIdx) -> Option<u32> {
        let again = config.fabric.go_back_n && self.at_source(packet).again == Resend::Lost && !self.is_control(packet);
        again.then(|| self.tags[packet].psn)
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet of a flow has come back to its sender.
    pub(super) fn take_returned(&mut self, key: Key, psn: u32, packet: PacketIdx, now: Instant) {
        let back = &mut self.flow_of(key).back;
        back.returned.insert(psn, Returned { packet, released: false });
        if back.cursor.is_some_and(|cursor| cursor <= psn) {
            self.note_returned(key, &[packet], now);
        }
    }

    /// A flow learns at `now` that the packet `psn` is missing.
    pub(super) fn go_back(&mut self, key: Key, psn: u32, now: Instant) {
        let flow = self.flow_of(key);
        let returned = flow.back.begin(psn);
        if returned.is_empty() {
            return;
        }
        let released = std::mem::take(&mut flow.released);
        self.note_returned(key, &returned, now);
        if released.is_none() {
            return;
        }
        let again = self.in_flight.psn_to_send_again(self.config, released);
        let arrival = (self.in_flight.packets[released].time, self.in_flight.at_source(released).order, released);
        if !self.in_flight.flows[self.number].due.remove(&arrival) {
            // It joins its queue in this window, and is taken out of it if it is not its turn.
            return;
        }
        let flow = self.flow_of(key);
        match again {
            Some(psn) => flow.back.put_back(psn),
            None => flow.held.push_front(released),
        }
    }

    /// The timeout of a packet passes at `now`: its flow goes back to it, unless it was sent again since.
    pub(super) fn expire(&mut self, key: Key, psn: u32, order: u64, now: Instant) {
        let Some(&Returned { packet, .. }) = self.flow_of(key).back.returned.get(&psn) else { return };
        if self.in_flight.at_source(packet).order != order {
            return;
        }
        self.go_back(key, psn, now);
        self.flow_of(key).back.skip_absent();
    }

    /// A packet of a flow is given up at `now`.
    pub(super) fn go_on_without(&mut self, key: Key, psn: u32, now: Instant) {
        self.flow_of(key).back.given_up.insert(psn);
        self.go_back(key, psn + 1, now);
        self.flow_of(key).back.skip_absent();
    }

    /// The transport of a flow learns that packets are not in flight any more, and are to be sent again.
    fn note_returned(&mut self, key: Key, packets: &[PacketIdx], now: Instant) {
        for packet in packets {
            let bytes = Bytes(u64::from(self.in_flight.packets[*packet].bytes));
            let control = &mut self.flow_of(key).control;
            control.lost(bytes, now);
            control.offered(bytes);
        }
    }
}
