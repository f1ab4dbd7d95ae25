//! Notices: what a NIC answers to packets of a transport with [`Feedback`](super::transport::Feedback), and what becomes of
//! the answers at the sender. See [`transport`](super::transport) for the whole.

use super::flows::{Event, Expected, Key, Remains, Tag};
use super::pull_rate::Congestion;
use super::pulls::{Asked, Source};
use super::transport::{Label, Notice, Notices};
use crate::ids::{TrafficId, VirtualLane};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, MessageIdx, NoticeIdx, PacketIdx, PairIdx, PortIdx, TelemetryIdx};
use crate::network::packet::{Content, Message, Packet, PacketFlags};
use crate::network::port::ActivePort;
use crate::qos::levels::TrafficKind;
use crate::routing::Step;
use crate::units::{Bytes, Instant};

impl InFlight {
    /// Whether a packet is a notice.
    pub fn is_control(&self, packet: PacketIdx) -> bool {
        self.tags.get(packet).is_some_and(|tag| tag.control)
    }

    pub fn set_tag(&mut self, packet: PacketIdx, tag: Tag) {
        self.tags.grow_to(packet, Tag::default());
        self.tags[packet] = tag;
    }

    /// A packet arrives with its tail at NIC `nic` at instant `time`, which is after the open window. If it is a notice, its
    /// flow will be updated then, and nothing is left of it. If it is to be answered, the notice is handed to the NIC's port.
    /// Returns whether nothing is left to deliver: it was a notice, was trimmed, or came after a gap.
    #[cold]
    pub fn answer(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx, time: Instant) -> bool {
        let tag = self.tags[packet];
        self.tags[packet].telemetry = TelemetryIdx::NONE;
        let Packet { traffic, bytes, to, source, vl, .. } = self.packets[packet];
        if tag.control {
            self.end_notice(config, packet);
            self.expect(config, nic, traffic, &tag, time);
            return true;
        }
        let discarded = config.fabric.go_back_n && self.discards(config, nic, packet, time);
        let Some(feedback) = config.fabric.feedback_of(config.fabric.job_of(traffic)) else { return discarded };
        let trimmed = (tag.whole > 0).then(|| self.take_trimmed(packet));
        let (vl, bytes) = if trimmed.is_some() { (tag.vl, tag.whole) } else { (vl, bytes) };
        let source_flow: Source = (source, config.fabric.job_of(traffic), vl);
        let pull = self.ask(config, nic, (source_flow, traffic, to), &tag, trimmed.is_some(), time);
        let (flows, last) = self.flows[nic].heard.hear(source_flow, time);
        let answered = match feedback.notices {
            Notices::EveryPacket => !discarded,
            Notices::Marked(gap) => trimmed.is_some() || tag.marked && (*last == Instant::MAX || time - *last >= gap),
        };
        if !answered {
            self.telemetry.take(tag.telemetry);
            return discarded;
        }
        *last = time;
        let notice = Tag { received: time, to, bytes, flows, pull, trimmed, vl, control: true, ..tag };
        self.send_notice(nic, (notice, feedback.bytes.0), feedback.vl.unwrap_or(vl), (traffic, source), time);
        discarded || trimmed.is_some()
    }

    /// A packet of a flow that asks NIC `nic` for credit comes at `time`. Returns the highest target of its flow.
    fn ask(
        &mut self,
        config: &Config,
        nic: PortIdx,
        (source, traffic, to): (Source, TrafficId, u32),
        tag: &Tag,
        trimmed: bool,
        time: Instant,
    ) -> u64 {
        let (_, job, vl) = source;
        if config.fabric.pulls_of(job).is_none() {
            return 0;
        }
        let Tag { pull: target, marked, last_hop, .. } = *tag;
        let asked = Asked { source, traffic, to, target, congestion: Congestion { marked, trimmed, last_hop } };
        self.expect_event(nic, Expected { key: Key { to, job, vl }, event: Event::Asked(asked) }, time);
        self.flows[nic].pacer.know(&asked)
    }

    /// Hands a notice, with its payload, to a NIC's port at `time`: of this traffic, to this address.
    pub fn send_notice(
        &mut self,
        nic: PortIdx,
        (notice, payload): (Tag, u64),
        vl: VirtualLane,
        (traffic, to): (TrafficId, u32),
        time: Instant,
    ) {
        let notice = self.notices.insert(notice);
        let message = self.notice_message(notice, (to, traffic, vl), payload, (time, self.sequence));
        self.sequence += 1;
        self.send_message(nic, message);
    }

    /// The message of a notice, with this payload, to an address, by the time at which it is offered and its order.
    pub fn notice_message(
        &mut self,
        notice: NoticeIdx,
        (to, traffic, vl): (u32, TrafficId, VirtualLane),
        payload: u64,
        (offered, sequence): (Instant, u64),
    ) -> MessageIdx {
        self.totals.control_packets += 1;
        self.totals.control_bytes += payload;
        self.messages.insert(Message {
            offered,
            sequence,
            bytes: payload,
            left: payload,
            undelivered: 1,
            sent: 0,
            next: MessageIdx::NONE,
            to,
            pair: PairIdx::NONE,
            traffic,
            kind: TrafficKind::Control,
            vl,
            flags: PacketFlags::new(0, true, false),
            any_delivered: false,
            packed: Content::Notice(notice).into(),
        })
    }

    /// Nobody will look at the telemetry of a packet, if it has any.
    pub fn forget_telemetry(&mut self, packet: PacketIdx) {
        if let Some(tag) = self.tags.get_mut(packet) {
            self.telemetry.take(std::mem::take(&mut tag.telemetry));
        }
    }

    /// Nothing is left of a trimmed packet that has come to its host but what its notice says of it.
    fn take_trimmed(&mut self, packet: PacketIdx) -> Remains {
        let Packet { owner, number, offered, kind, flags, .. } = self.packets.take(packet);
        self.trimmed += 1;
        self.totals.packets_trimmed += 1;
        Remains { owner, number, offered, kind, flags }
    }

    /// A notice of a trimmed packet will arrive at its sender at instant `time`: the packet is retransmitted then.
    fn restore_trimmed(
        &mut self,
        config: &Config,
        traffic: TrafficId,
        tag: &Tag,
        remains: Remains,
        (nic, time): (PortIdx, Instant),
    ) {
        let Remains { owner, number, offered, kind, flags } = remains;
        let link = config.naming.link_of(nic);
        let packet = self.packets.insert(Packet {
            time,
            offered,
            next: PacketIdx::NONE,
            owner,
            bytes: tag.whole,
            to: tag.to,
            source: link.0,
            number,
            traffic,
            kind,
            vl: tag.vl,
            lane: LaneIdx(0),
            held: LaneIdx(0),
            flags,
            came: Step::NONE,
            credited: PortIdx::NONE,
            next_step: Step::NONE,
            note: 0,
        });
        self.set_tag(packet, Tag::default());
        self.trimmed -= 1;
        self.totals.packets_retransmitted += 1;
        self.totals.bytes_retransmitted += u64::from(tag.whole - config.fabric.header);
        self.hand_over(config, Content::Trimmed(packet), (packet, link), time);
    }

    /// A packet is trimmed at a switch. Before, it had `whole` bytes and was on virtual lane `vl`; `last_hop`: at the output to its host.
    pub fn tag_trimmed(&mut self, packet: PacketIdx, whole: u32, vl: VirtualLane, last_hop: bool) {
        let tag = &mut self.tags[packet];
        (tag.whole, tag.vl, tag.last_hop) = (whole, vl, last_hop);
    }

    /// A lost packet has its payload again, if it was trimmed.
    pub fn untrim(&mut self, packet: PacketIdx) {
        let Some(tag) = self.tags.get_mut(packet).filter(|tag| tag.whole > 0 && !tag.control) else { return };
        let packet = &mut self.packets[packet];
        (packet.bytes, packet.vl) = (tag.whole, tag.vl);
        tag.whole = 0;
    }

    /// A notice has come to the host of its flow.
    fn end_notice(&mut self, config: &Config, packet: PacketIdx) {
        let payload = u64::from(self.packets.take(packet).bytes - config.fabric.header);
        self.control_packets.remove(payload);
        self.totals.control_packets_received += 1;
        self.totals.control_bytes_received += payload;
    }

    /// Whether a message that waits at a NIC is a notice, or one that was lost.
    pub fn is_notice(&self, message: &Message) -> bool {
        match message.content() {
            Content::Payload(_) => false,
            Content::Notice(_) => true,
            Content::Lost(packet) | Content::Trimmed(packet) | Content::GivenUp(packet) => self.is_control(packet),
        }
    }

    /// A notice will arrive at instant `time` at NIC `nic`, of the host whose flow it is for.
    fn expect(&mut self, config: &Config, nic: PortIdx, traffic: TrafficId, tag: &Tag, time: Instant) {
        let &Tag { sent, received, to, bytes, flows, vl, marked, last_hop, entropy, pull, telemetry, nak, psn, .. } =
            tag;
        if let Some(remains) = tag.trimmed {
            self.restore_trimmed(config, traffic, tag, remains, (nic, time));
        }
        let notice = Notice {
            trimmed: tag.trimmed.is_some(),
            marked,
            last_hop,
            entropy,
            pull_target: pull,
            bytes: Bytes(u64::from(bytes)),
            sent,
            received,
            flows,
        };
        let event = match tag.credit {
            Some(trimmed) => Event::Credit { granted: pull, trimmed },
            None if nak => Event::Nak(psn),
            None => Event::Notice(notice, telemetry),
        };
        let key = Key { to, job: config.fabric.job_of(traffic), vl };
        self.expect_event(nic, Expected { key, event }, time);
    }

    /// Something will happen at instant `time` to a flow at NIC `nic`.
    pub fn expect_event(&mut self, nic: PortIdx, expected: Expected, time: Instant) {
        let flows = &mut self.flows[nic];
        flows.heard.count += 1;
        flows.expected.insert((time, nic, flows.heard.count), expected);
        self.wake_port(nic, time);
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet starts at this NIC at `now`. `notice`: the notice that it is; other packets have labels. `psn`: its number in its flow.
    pub(super) fn tag(
        &mut self,
        packet: PacketIdx,
        notice: Option<NoticeIdx>,
        (label, psn): (Label, u32),
        now: Instant,
    ) {
        let in_flight = &mut *self.in_flight;
        in_flight.forget_telemetry(packet);
        let tag = match notice {
            Some(notice) => in_flight.notices.take(notice),
            None => {
                let Label { pull_target: pull, entropy } = label;
                in_flight.packets[packet].note = entropy.map_or(0, |entropy| u32::from(entropy) + 1);
                Tag { sent: now, psn, pull, entropy: entropy.unwrap_or(0), ..Tag::default() }
            }
        };
        in_flight.set_tag(packet, tag);
    }
}
