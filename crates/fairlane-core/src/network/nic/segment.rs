//! Segmentation: a message at a NIC's port becomes packets of at most one MTU, one at a time.

use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, MessageIdx, PacketIdx, PairIdx, PortIdx, Queued};
use crate::network::packet::{Content, Message, Packet, PacketNumber};
use crate::network::port::{ActivePort, kind};
use crate::routing::Step;

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Makes the next packet of a message that is in no queue. Returns the packet, and whether the message has more.
    #[inline(always)]
    pub(in crate::network) fn segment(&mut self, lane: LaneIdx, index: MessageIdx) -> (PacketIdx, bool) {
        let InFlight { messages, packets, single_packet, control_packets, .. } = &mut *self.in_flight;
        let message = &mut messages[index];
        let owner = match message.content() {
            Content::Lost(packet) | Content::Trimmed(packet) => return (self.send_again(lane, index, packet), false),
            Content::Payload(token) if message.flags.whole() => token,
            _ => index.0,
        };
        let payload = self.config.fabric.payload(message.left);
        message.left -= u64::from(payload);
        let number = message.sent;
        message.sent += 1;
        let flags = message.flags;
        let packet = packets.insert(Packet {
            time: message.offered,
            offered: message.offered,
            next: PacketIdx::NONE,
            owner,
            bytes: payload + self.config.fabric.header,
            to: message.to,
            source: self.config.naming.link_of(self.number).0,
            number: PacketNumber::new(number, self.config.conditions.routes.tag),
            traffic: message.traffic,
            kind: message.kind,
            vl: message.vl,
            lane,
            held: lane,
            came: Step::NONE,
            credited: PortIdx::NONE,
            next_step: Step::NONE,
            note: 0,
            flags,
        });
        if flags.whole() {
            // The packet stands for it from now on.
            match message.content() {
                Content::Notice(_) => control_packets.add(message.bytes),
                _ => single_packet.add(message.bytes),
            }
            messages.take(index);
            return (packet, false);
        }
        if message.left == 0 {
            message.pair = PairIdx::NONE;
        }
        (packet, message.left > 0)
    }

    /// A lost packet is retransmitted: the one that stands in the queue as this message.
    #[cold]
    fn send_again(&mut self, lane: LaneIdx, index: MessageIdx, lost: PacketIdx) -> PacketIdx {
        let InFlight { messages, packets, .. } = &mut *self.in_flight;
        let Message { offered, .. } = messages.take(index);
        let packet = &mut packets[lost];
        *packet = Packet {
            time: offered,
            next: PacketIdx::NONE,
            lane,
            held: lane,
            came: Step::NONE,
            credited: PortIdx::NONE,
            next_step: Step::NONE,
            note: 0,
            number: packet.number.on(self.config.conditions.routes.tag),
            ..*packet
        };
        lost
    }

    /// The queue pair of a message at a NIC, if it has one.
    #[inline(always)]
    pub(in crate::network) fn pair_of(&self, queued: Queued) -> PairIdx {
        if KIND == kind::NIC && self.config.has::<I>().pairs {
            self.in_flight.messages[queued.message()].pair
        } else {
            PairIdx::NONE
        }
    }

    /// A message (packet, at a switch) comes to its lane. Returns whether it joins its queue: not if it follows others of its queue
    /// pair.
    #[inline(always)]
    pub(in crate::network) fn goes_first(&mut self, queued: Queued) -> bool {
        let pair = self.pair_of(queued);
        pair.is_none() || self.in_flight.queue_pairs.join(pair, queued.message(), &mut self.in_flight.messages)
    }

    /// The last packet of a message has started: the next of its queue pair follows, like the next packet of a message.
    #[inline(always)]
    pub(in crate::network) fn end_message(&mut self, pair: PairIdx) {
        if KIND == kind::NIC && pair.is_some() {
            let next = self.in_flight.queue_pairs.follow(pair, &self.in_flight.messages);
            if next.is_some() {
                self.requeue(self.entry(next.into()).lane, next);
            }
        }
    }
}
