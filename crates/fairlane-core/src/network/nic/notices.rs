//! Notices: what a NIC answers to packets of a transport with [`Feedback`](super::transport::Feedback), and what becomes of
//! the answers at the sender. See [`transport`](super::transport) for the whole.

use super::flows::{Event, Expected, Key, Remains, Tag};
use super::pull_rate::Congestion;
use super::pulls::{Asked, Source};
use super::transport::{Label, Notice, Notices};
use crate::ids::{TrafficId, VirtualLane};
use crate::network::config::Config;
use crate::network::fabric::narrow;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{PacketIdx, PairIdx, PortIdx, TelemetryIdx};
use crate::network::packet::{AtSource, Packet, Resend};
use crate::network::port::ActivePort;
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
        let payload = narrow(feedback.bytes);
        self.send_notice(config, nic, (notice, payload), feedback.vl.unwrap_or(vl), (traffic, source), time);
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
        config: &Config,
        nic: PortIdx,
        notice: (Tag, u32),
        vl: VirtualLane,
        (traffic, to): (TrafficId, u32),
        time: Instant,
    ) {
        let order = self.next_order();
        let packet = self.make_notice(config, nic, notice, (to, traffic, vl), (time, order));
        self.send_packet(nic, packet, time);
    }

    /// Makes the packet of a notice, with this payload, to an address, by the time at which it is offered and its order.
    pub fn make_notice(
        &mut self,
        config: &Config,
        nic: PortIdx,
        (notice, payload): (Tag, u32),
        (to, traffic, vl): (u32, TrafficId, VirtualLane),
        (offered, order): (Instant, u64),
    ) -> PacketIdx {
        self.totals.control_packets += 1;
        self.totals.control_bytes += u64::from(payload);
        let packet = Packet { to, traffic, ..Packet::offered_by(config, nic, (payload, vl), offered) };
        let packet = self.packets.insert(packet);
        self.keep_at_source(config, packet, AtSource { order, pair: PairIdx::NONE, again: Resend::None }, notice);
        packet
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
        let payload = tag.whole - config.fabric.header;
        let packet = Packet {
            offered,
            owner,
            to: tag.to,
            number,
            traffic,
            kind,
            flags,
            ..Packet::offered_by(config, nic, (payload, tag.vl), time)
        };
        let packet = self.packets.insert(packet);
        self.set_tag(packet, Tag::default());
        self.totals.packets_retransmitted += 1;
        self.totals.bytes_retransmitted += u64::from(payload);
        self.hand_over(config, packet, (Resend::Trimmed, config.naming.link_of(nic)), time);
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
        self.totals.control_packets_received += 1;
        self.totals.control_bytes_received += payload;
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
    /// A packet that is no notice starts at this NIC at `now`, with this label. `psn`: its number in its flow.
    pub(super) fn tag(&mut self, packet: PacketIdx, (label, psn): (Label, u32), now: Instant) {
        let in_flight = &mut *self.in_flight;
        in_flight.forget_telemetry(packet);
        let Label { pull_target: pull, entropy } = label;
        in_flight.packets[packet].note = entropy.map_or(0, |entropy| u32::from(entropy) + 1);
        in_flight.set_tag(packet, Tag { sent: now, psn, pull, entropy: entropy.unwrap_or(0), ..Tag::default() });
    }
}
