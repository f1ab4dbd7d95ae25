//! Segmentation: a message at a NIC's port becomes packets of at most one MTU, one at a time.

use crate::kernel::NONE;
use crate::network::in_flight::InFlight;
use crate::network::packet::{Content, Packet, PacketNumber};
use crate::network::partition::Place;
use crate::network::port::{ActivePort, kind};
use crate::network::probe::Probe;
use crate::routing::Step;

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// Makes the next packet of a message that is in no queue. Returns the packet, and whether the message has more.
    #[inline(always)]
    pub(in crate::network) fn segment(&mut self, lane: u8, record: u32) -> (u32, bool) {
        let InFlight { messages, packets, single_packet, control_packets, .. } = &mut *self.in_flight;
        let message = &mut messages[record];
        if matches!(message.content, Content::Lost | Content::Trimmed) {
            return (self.send_again(lane, record), false);
        }
        let payload = self.config.fabric.payload(message.left);
        message.left -= u64::from(payload);
        let number = message.sent;
        message.sent += 1;
        let flags = message.flags;
        let packet = packets.insert(Packet {
            time: message.offered,
            offered: message.offered,
            next: NONE,
            message: if flags.whole() { message.token } else { record },
            bytes: payload + self.config.fabric.header,
            to: message.to,
            source: self.config.naming.link_id::<P>(self.number),
            number: PacketNumber::new(number, self.config.conditions.routes.tag),
            job: message.job,
            kind: message.kind,
            vl: message.vl,
            lane,
            held: lane,
            came: Step::NONE,
            credited: Place::default(),
            next_step: Step::NONE,
            note: 0,
            origin: if P::SHARDED { self.config.naming.origin } else { 0 },
            flags,
        });
        if flags.whole() {
            // The packet stands for it from now on.
            message.undelivered = 0;
            if message.content == Content::Notice {
                control_packets.add(message.bytes);
            } else {
                single_packet.add(message.bytes);
            }
            messages.remove(record);
            return (packet, false);
        }
        if message.left == 0 {
            message.pair = NONE;
        }
        (packet, message.left > 0)
    }

    /// A lost packet is retransmitted: the one that stands in the queue as this message.
    #[cold]
    fn send_again(&mut self, lane: u8, record: u32) -> u32 {
        let InFlight { messages, packets, .. } = &mut *self.in_flight;
        let message = &messages[record];
        let (lost, offered) = (message.token, message.offered);
        messages.remove(record);
        let packet = &mut packets[lost];
        *packet = Packet {
            time: offered,
            next: NONE,
            lane,
            held: lane,
            came: Step::NONE,
            credited: Place::default(),
            next_step: Step::NONE,
            note: 0,
            number: packet.number.on(self.config.conditions.routes.tag),
            ..packet.clone()
        };
        lost
    }

    /// The queue pair of a message at a NIC, or [`NONE`].
    #[inline(always)]
    pub(in crate::network) fn pair_of(&self, record: u32) -> u32 {
        if KIND == kind::NIC && self.config.has::<P>().pairs { self.in_flight.messages[record].pair } else { NONE }
    }

    /// A message (packet, at a switch) comes to its lane. Returns whether it joins its queue: not if it follows others of its queue
    /// pair.
    #[inline(always)]
    pub(in crate::network) fn goes_first(&mut self, record: u32) -> bool {
        let pair = self.pair_of(record);
        pair == NONE || self.in_flight.queue_pairs.join(pair, record, &mut self.in_flight.messages)
    }

    /// The last packet of a message has started: the next of its queue pair follows, like the next packet of a message.
    #[inline(always)]
    pub(in crate::network) fn end_message(&mut self, pair: u32) {
        if KIND == kind::NIC && pair != NONE {
            let next = self.in_flight.queue_pairs.follow(pair, &self.in_flight.messages);
            if next != NONE {
                self.requeue(self.entry(next).lane, next);
            }
        }
    }
}
