//! Notices: what a NIC answers to packets of a transport with [`Feedback`](super::transport::Feedback), and what becomes of
//! the answers at the sender. See [`transport`](super::transport) for the whole.

use super::flows::{Expected, Key, Remains, Tag};
use super::pulls::{Asked, Source};
use super::transport::{Label, Notice, Notices};
use crate::ids::{JobId, VirtualLane};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, MessageIdx, NoticeIdx, PacketIdx, PairIdx, PortIdx};
use crate::network::packet::{Content, Message, Packet, PacketFlags};
use crate::network::partition::Place;
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
    /// Returns whether the packet was a notice.
    #[cold]
    pub fn answer(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx, time: Instant) -> bool {
        let tag = self.tags[packet];
        let Packet { job, bytes, to, source, vl, .. } = self.packets[packet];
        if tag.control {
            self.end_notice(config, packet);
            self.expect(config, nic, job, &tag, time);
            return true;
        }
        let Some(feedback) = config.fabric.feedback_of(job) else { return false };
        let trimmed = (tag.whole > 0).then(|| self.take_trimmed(packet));
        let (vl, bytes) = if trimmed.is_some() { (tag.vl, tag.whole) } else { (vl, bytes) };
        let mut pull = 0;
        if config.fabric.pulls_of(job).is_some() {
            let asked = Asked {
                source: (source, job, vl),
                to,
                target: tag.pull,
                trimmed: trimmed.is_some(),
                marked: tag.marked,
                last_hop: tag.last_hop,
            };
            pull = self.flows[nic].pacer.know(&asked);
            self.flows[nic].expect(time, nic, Expected::Asked(asked));
            self.wake_port(nic, time);
        }
        let (flows, last) = self.flows[nic].heard.hear((source, job, vl), time);
        let answered = match feedback.notices {
            Notices::EveryPacket => true,
            Notices::Marked(gap) => trimmed.is_some() || tag.marked && (*last == Instant::MAX || time - *last >= gap),
        };
        if !answered {
            return false;
        }
        *last = time;
        let notice =
            self.notices.insert(Tag { received: time, to, bytes, flows, pull, trimmed, vl, control: true, ..tag });
        let vl = feedback.vl.unwrap_or(vl);
        let message = self.notice_message(notice, (source, job, vl), feedback.bytes.0, (time, self.sequence));
        self.sequence += 1;
        self.send_message(nic, message);
        trimmed.is_some()
    }

    /// The message of a notice, with this payload, to a source, by the time at which it is offered and its order.
    pub fn notice_message(
        &mut self,
        notice: NoticeIdx,
        (to, job, vl): Source,
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
            job,
            kind: TrafficKind::Control,
            vl,
            flags: PacketFlags::new(0, true, false),
            any_delivered: false,
            mirror: false,
            packed: Content::Notice(notice).into(),
        })
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
        job: JobId,
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
            job,
            kind,
            vl: tag.vl,
            lane: LaneIdx(0),
            held: LaneIdx(0),
            flags,
            origin: config.naming.origin,
            came: Step::NONE,
            credited: Place::FIRST,
            next_step: Step::NONE,
            note: 0,
        });
        self.set_tag(packet, Tag::default());
        self.trimmed -= 1;
        self.totals.packets_retransmitted += 1;
        self.hand_over(config, Content::Trimmed(packet), (packet, link), time);
    }

    /// A packet leaves its payload behind at a switch, `last_hop`: at the output to its host: of `whole` bytes on virtual lane `vl` before.
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
    fn expect(&mut self, config: &Config, nic: PortIdx, job: JobId, tag: &Tag, time: Instant) {
        let &Tag { sent, received, to, bytes, flows, vl, marked, last_hop, entropy, pull, .. } = tag;
        let key = Key { to, job, vl };
        self.wake_port(nic, time);
        if let Some(trimmed) = tag.credit {
            self.flows[nic].expect(time, nic, Expected::Credit { key, granted: pull, trimmed });
            return;
        }
        if let Some(remains) = tag.trimmed {
            self.restore_trimmed(config, job, tag, remains, (nic, time));
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
        self.flows[nic].expect(time, nic, Expected::Notice { key, notice });
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet starts at this NIC at `now`. `notice`: the notice that it is; other packets have labels.
    pub(super) fn tag(&mut self, packet: PacketIdx, notice: Option<NoticeIdx>, label: Label, now: Instant) {
        let in_flight = &mut *self.in_flight;
        let tag = match notice {
            Some(notice) => in_flight.notices.take(notice),
            None => {
                let Label { pull_target: pull, entropy } = label;
                in_flight.packets[packet].note = entropy.map_or(0, |entropy| u32::from(entropy) + 1);
                Tag { sent: now, pull, entropy: entropy.unwrap_or(0), ..Tag::default() }
            }
        };
        in_flight.set_tag(packet, tag);
    }
}
