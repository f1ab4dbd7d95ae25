//! Notices: what a NIC answers to packets of a transport with [`Feedback`](super::transport::Feedback), and what becomes of
//! the answers at the sender. See [`transport`](super::transport) for the whole.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::pacing::Key;
use super::transport::{Notice, Notices, RECENT};
use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::in_flight::InFlight;
use crate::network::packet::{Content, Message, Packet, PacketFlags, PacketNumber};
use crate::network::partition::Place;
use crate::network::port::ActivePort;
use crate::network::probe::Probe;
use crate::qos::levels::TrafficKind;
use crate::routing::Step;
use crate::units::{Bytes, Instant};

/// What is known of a packet besides its record, if there is congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct Tag {
    /// When it started at its NIC, ps; of a notice, when the packet that it answers did.
    sent: u64,
    /// Of a notice: when the packet that it answers arrived, ps.
    received: u64,
    /// Of a notice: the address to which that packet went, its bytes on the wire, and its virtual lane.
    to: u32,
    bytes: u32,
    /// Of a notice: flows that have come lately.
    flows: u32,
    /// Of a packet that has been trimmed, or a notice of it: its bytes on the wire before; else 0. Its virtual lane was `vl`.
    whole: u32,
    /// Of a notice of a trimmed packet: what else is needed to make that packet again.
    trimmed: Option<Remains>,
    vl: u8,
    /// A switch has marked it; of a notice, the packet that it answers.
    pub marked: bool,
    /// It is a notice.
    pub control: bool,
}

/// What a notice says of a packet that has been trimmed, so that its sender can send it again.
#[derive(Clone, Copy, Debug)]
struct Remains {
    message: u32,
    number: PacketNumber,
    offered: u64,
    kind: TrafficKind,
    flags: PacketFlags,
}

/// A notice that will arrive, and the flow that it is for.
#[derive(Clone, Copy)]
pub(in crate::network) struct Expected {
    pub key: Key,
    pub notice: Notice,
}

/// A flow at its receiver: the sending address, job, virtual lane.
type Source = (u32, u16, u8);

/// The flows of which packets have come to a NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Heard {
    /// The last packet and the last notice of each, ps; no notice yet is [`u64::MAX`].
    last: FxHashMap<Source, (u64, u64)>,
    /// Those of the last [`RECENT`] time, by their last packet.
    recent: BTreeMap<(u64, Source), ()>,
    /// Notices that have come to the host for this NIC.
    count: u64,
}

impl Heard {
    /// A packet of a flow arrives at `time`. Returns how many flows have come lately, and the last notice of this one.
    fn hear(&mut self, source: Source, time: u64) -> (u32, &mut u64) {
        let (packet, notice) = self.last.entry(source).or_insert((time, u64::MAX));
        self.recent.remove(&(*packet, source));
        *packet = time;
        self.recent.insert((time, source), ());
        while let Some((&(oldest, _), ())) = self.recent.first_key_value()
            && oldest + RECENT.0 < time
        {
            self.recent.pop_first();
        }
        (u32::try_from(self.recent.len()).unwrap_or(u32::MAX), notice)
    }
}

impl InFlight {
    /// Whether a packet is a notice.
    pub fn is_control(&self, record: u32) -> bool {
        self.tags.get(record as usize).is_some_and(|tag| tag.control)
    }

    /// A packet that another shard sent has the tag that it had there, if any.
    #[inline(always)]
    pub fn retag(&mut self, record: u32, tag: Option<&Tag>) {
        if let Some(tag) = tag {
            self.set_tag(record, *tag);
        }
    }

    fn set_tag(&mut self, record: u32, tag: Tag) {
        let place = record as usize;
        if place >= self.tags.len() {
            self.tags.resize(place + 1, Tag::default());
        }
        self.tags[place] = tag;
    }

    /// A packet arrives with its tail at NIC `nic` at instant `time`, which is after the open window. If it is a notice, its
    /// flow will be updated then, and nothing is left of it. If it is to be answered, the notice is handed to the NIC's port.
    /// Returns whether the packet was a notice.
    #[cold]
    pub fn answer(&mut self, config: &Config, nic: u32, record: u32, time: u64) -> bool {
        let tag = self.tags[record as usize];
        let &Packet { job, bytes, to, source, vl, .. } = &self.packets[record];
        if tag.control {
            self.end_notice(config, record);
            self.expect(config, nic, job, &tag, time);
            return true;
        }
        let Some(feedback) = &config.feedback[config.transport_place(job)] else { return false };
        let trimmed = (tag.whole > 0).then(|| self.take_trimmed(record));
        let (vl, bytes) = if trimmed.is_some() { (tag.vl, tag.whole) } else { (vl, bytes) };
        let (flows, last) = self.flows[nic as usize].heard.hear((source, job, vl), time);
        let answered = match feedback.notices {
            Notices::EveryPacket => true,
            Notices::Marked(gap) => trimmed.is_some() || tag.marked && (*last == u64::MAX || time - *last >= gap.0),
        };
        if !answered {
            return false;
        }
        *last = time;
        let notice = self.notices.insert(Tag { received: time, to, bytes, flows, trimmed, vl, control: true, ..tag });
        let payload = feedback.bytes.0;
        let message = self.messages.insert(Message {
            offered: time,
            sequence: self.sequence,
            bytes: payload,
            left: payload,
            undelivered: 1,
            sent: 0,
            next: NONE,
            to: source,
            token: notice,
            pair: NONE,
            job,
            kind: TrafficKind::Control,
            vl: feedback.vl.map_or(vl, |vl| vl.0),
            flags: PacketFlags::new(0, true, false),
            any_delivered: false,
            mirror: false,
            content: Content::Notice,
        });
        self.sequence += 1;
        self.totals.control_packets += 1;
        self.totals.control_bytes += payload;
        self.send_message(nic, message);
        trimmed.is_some()
    }

    /// Nothing is left of a trimmed packet that has come to its host but what its notice says of it.
    fn take_trimmed(&mut self, record: u32) -> Remains {
        let &Packet { message, number, offered, kind, flags, .. } = &self.packets[record];
        self.packets.remove(record);
        self.trimmed += 1;
        self.totals.packets_trimmed += 1;
        Remains { message, number, offered, kind, flags }
    }

    /// A notice of a trimmed packet will arrive at its sender at instant `time`: the packet is retransmitted then.
    fn restore_trimmed(&mut self, config: &Config, job: u16, tag: &Tag, remains: Remains, (nic, time): (u32, u64)) {
        let Remains { message, number, offered, kind, flags } = remains;
        let record = self.packets.insert(Packet {
            time,
            offered,
            next: NONE,
            message,
            bytes: tag.whole,
            to: tag.to,
            source: config.link_of(nic),
            number,
            job,
            kind,
            vl: tag.vl,
            lane: 0,
            held: 0,
            flags,
            origin: config.origin,
            came: Step::NONE,
            credited: Place::default(),
            next_step: Step::NONE,
            note: 0,
        });
        self.set_tag(record, Tag::default());
        self.packets[record].note = config.link_of(nic);
        self.trimmed -= 1;
        self.totals.packets_retransmitted += 1;
        self.hand_over(config, record, Content::Trimmed, time);
    }

    /// A packet leaves its payload behind at a switch: of `whole` bytes on virtual lane `vl` before.
    pub fn tag_trimmed(&mut self, record: u32, whole: u32, vl: u8) {
        let tag = &mut self.tags[record as usize];
        (tag.whole, tag.vl) = (whole, vl);
    }

    /// A lost packet has its payload again, if it was trimmed.
    pub fn untrim(&mut self, record: u32) {
        let Some(tag) = self.tags.get_mut(record as usize).filter(|tag| tag.whole > 0 && !tag.control) else { return };
        let packet = &mut self.packets[record];
        (packet.bytes, packet.vl) = (tag.whole, tag.vl);
        tag.whole = 0;
    }

    /// A notice has come to the host of its flow.
    fn end_notice(&mut self, config: &Config, record: u32) {
        let payload = u64::from(self.packets[record].bytes - config.header);
        self.packets.remove(record);
        self.control_packets.remove(payload);
        self.totals.control_packets_received += 1;
        self.totals.control_bytes_received += payload;
    }

    /// Whether a message that waits at a NIC is a notice, or one that was lost.
    pub fn is_notice(&self, message: &Message) -> bool {
        match message.content {
            Content::Payload => false,
            Content::Notice => true,
            Content::Lost | Content::Trimmed | Content::GivenUp => self.is_control(message.token),
        }
    }

    /// A notice will arrive at instant `time` at NIC `nic`, of the host whose flow it is for.
    fn expect(&mut self, config: &Config, nic: u32, job: u16, tag: &Tag, time: u64) {
        let &Tag { sent, received, to, bytes, flows, vl, marked, .. } = tag;
        if let Some(remains) = tag.trimmed {
            self.restore_trimmed(config, job, tag, remains, (nic, time));
        }
        let notice = Notice {
            trimmed: tag.trimmed.is_some(),
            marked,
            bytes: Bytes(u64::from(bytes)),
            sent: Instant(sent),
            received: Instant(received),
            flows,
        };
        let flows = &mut self.flows[nic as usize];
        flows.heard.count += 1;
        let place = (time, nic, flows.heard.count);
        flows.expected.insert(place, Expected { key: Key { to, job, vl }, notice });
        self.wake_port(nic, Instant(time));
    }
}

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// A packet starts at this NIC at `now`. `notice`: the record of the notice that it is.
    pub(super) fn tag(&mut self, packet: u32, notice: Option<u32>, now: u64) {
        let in_flight = &mut *self.in_flight;
        let tag = match notice {
            Some(notice) => {
                in_flight.notices.remove(notice);
                in_flight.notices[notice]
            }
            None => Tag { sent: now, ..Tag::default() },
        };
        in_flight.set_tag(packet, tag);
    }
}
