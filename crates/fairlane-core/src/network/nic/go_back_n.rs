//! Go-back-N: what reliable connections of RoCE adapters do about losses. A flow is a connection, and its packets are numbered in the
//! order in which they start.
//!
//! **Receivers** accept a packet that is the next of its flow. One that comes after a gap is discarded, and the first such packet of a gap
//! answered with a NAK, which carries the number of the missing packet (`InfiniBand` Architecture Specification, volume 1, section
//! 9.7.5.2.8, "NAK codes": PSN sequence error). There is no further NAK before the missing packet has come.
//!
//! **Senders** go back on a NAK: they send the missing packet again and all that they have sent after it, in order, before new ones. They
//! also go back to a lost packet of which the timeout passes before it was sent again: if nothing followed it, or it was lost again.
//!
//! A packet is one record, and its copies are never in the network at the same time: it can be sent again when the record of its loss, or
//! of its arrival after the gap, has come back to the sender, two windows later. The packets before it, which take at least a round trip,
//! are sent in the meantime. A flow keeps its adapters when they fail. There are no acknowledgements but those of transports, and a sender
//! has no limit of its own on packets in flight.

use std::collections::{BTreeMap, BTreeSet};

use super::flows::{Event, Expected, Key, Tag};
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

/// The packets of a flow that have come to its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct Sequence {
    /// The number of the next one.
    next: u32,
    /// A NAK says that it is missing.
    nak: bool,
}

/// A packet that is to be sent again.
#[derive(Clone, Copy, Debug)]
struct Returned {
    /// The message that it is.
    message: MessageIdx,
    /// It has been released: it waits in the NIC's queue, or will join it.
    released: bool,
}

/// The numbers of a flow's packets at its sender, and what it sends again.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct GoBack {
    /// The number of the next new packet.
    next: u32,
    /// While packets are sent again: the number of the next of them.
    cursor: Option<u32>,
    /// Packets that have been lost or discarded since they started last.
    returned: BTreeMap<u32, Returned>,
    /// Packets that have been given up.
    given_up: BTreeSet<u32>,
}

impl GoBack {
    /// Whether packets are sent again.
    pub const fn active(&self) -> bool {
        self.cursor.is_some()
    }

    /// Whether it is the turn of a packet: of one that is sent again, with its number, or of a new one.
    pub fn permits(&self, again: Option<u32>) -> bool {
        self.cursor == again
    }

    /// The number of a packet that starts: of one that is sent again, with its number, or of a new one.
    pub fn number(&mut self, again: Option<u32>) -> u32 {
        let psn = again.unwrap_or(self.next);
        if again.is_some() {
            self.returned.remove(&psn);
            self.proceed(psn + 1);
        } else {
            self.next += 1;
        }
        psn
    }

    /// The next packet to be sent again is this one, or a later one, if there is any.
    fn proceed(&mut self, mut psn: u32) {
        while self.given_up.remove(&psn) {
            psn += 1;
        }
        self.cursor = (psn < self.next).then_some(psn);
    }

    /// Waits for no packet that has not come back. It may come no more: its receiver accepts it if it knows that those before it are
    /// given up, or if it has come over another path.
    fn skip_absent(&mut self) {
        if let Some(cursor) = self.cursor {
            self.cursor = self.returned.range(cursor..).next().map(|(psn, _)| *psn);
        }
    }

    /// Takes the next packet to be sent again, unless it has been released, or has not come back yet.
    pub fn take_next(&mut self) -> Option<MessageIdx> {
        let returned = self.returned.get_mut(&self.cursor?)?;
        let released = std::mem::replace(&mut returned.released, true);
        (!released).then_some(returned.message)
    }

    /// A packet that has been released leaves the NIC's queue.
    pub fn put_back(&mut self, psn: u32) {
        if let Some(returned) = self.returned.get_mut(&psn) {
            returned.released = false;
        }
    }

    /// Goes back to the first packet from `psn` on that has come back, unless it is sent again already. Returns the packets that are
    /// known from now on not to be in flight.
    fn begin(&mut self, psn: u32) -> Vec<MessageIdx> {
        let Some((&first, _)) = self.returned.range(psn..).next() else { return Vec::new() };
        let until = self.cursor.unwrap_or(self.next);
        if self.active() && until <= first {
            return Vec::new();
        }
        self.cursor = Some(first);
        self.returned.range(first..until).map(|(_, returned)| returned.message).collect()
    }
}

impl InFlight {
    /// A packet arrives with its tail at NIC `nic` at instant `time`. Returns whether it comes after a gap: it will be discarded then, and a
    /// NAK is sent if it is the first.
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
        let nic = config.fabric.nic_of_address(record.source).index();
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
