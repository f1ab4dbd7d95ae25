//! What go-back-N does at receivers and senders; see [`go_back_n`](super::go_back_n).

use super::flows::{Event, Expected, Key, Tag};
use super::go_back_n::{Returned, Sequence};
use crate::ids::LinkId;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{MessageIdx, PacketIdx, PortIdx};
use crate::network::packet::{Content, Message, Packet};
use crate::network::port::ActivePort;
use crate::units::{Bytes, Instant};

/// Payload of a NAK: an AETH.
const NAK: u64 = 4;

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
            self.send_notice(nic, (notice, NAK), lane, (traffic, source), time);
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
        let message = self.message_of(config, Content::Lost(packet), (packet, link), returned);
        let sequence = self.messages[message].sequence;
        for (time, event) in [(returned, Event::Returned(psn, message)), (due, Event::Timeout(psn, sequence))] {
            self.flows[nic].expected.insert((time, nic, sequence), Expected { key, event });
            self.wake_port(nic, time);
        }
    }

    /// The number of a message that is a packet which its flow has gone back to.
    pub fn psn_to_send_again(&self, config: &Config, message: &Message) -> Option<u32> {
        match message.content() {
            Content::Lost(packet) if config.fabric.go_back_n && !self.is_control(packet) => Some(self.tags[packet].psn),
            _ => None,
        }
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet of a flow has come back to its sender.
    pub(super) fn take_returned(&mut self, key: Key, psn: u32, message: MessageIdx, now: Instant) {
        let back = &mut self.flow_of(key).back;
        back.returned.insert(psn, Returned { message, released: false });
        if back.cursor.is_some_and(|cursor| cursor <= psn) {
            self.note_returned(key, &[message], now);
        }
    }

    /// A flow learns at `now` that the packet `psn` is missing.
    pub(super) fn go_back(&mut self, key: Key, psn: u32, now: Instant) {
        let flow = self.flow_of(key);
        let messages = flow.back.begin(psn);
        if messages.is_empty() {
            return;
        }
        let released = std::mem::replace(&mut flow.released, MessageIdx::NONE);
        self.note_returned(key, &messages, now);
        if released.is_none() {
            return;
        }
        let record = &self.in_flight.messages[released];
        let (due, again) = (record.offered, self.in_flight.psn_to_send_again(self.config, record));
        let arrival = (due, record.sequence, released.into());
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
    pub(super) fn expire(&mut self, key: Key, psn: u32, sequence: u64, now: Instant) {
        let Some(&Returned { message, .. }) = self.flow_of(key).back.returned.get(&psn) else { return };
        if self.in_flight.messages[message].sequence != sequence {
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
    fn note_returned(&mut self, key: Key, messages: &[MessageIdx], now: Instant) {
        for message in messages {
            let bytes = self.in_flight.messages[*message].left + u64::from(self.config.fabric.header);
            let control = &mut self.flow_of(key).control;
            control.lost(Bytes(bytes), now);
            control.offered(Bytes(bytes));
        }
    }
}
