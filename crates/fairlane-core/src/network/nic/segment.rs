//! Segmentation: a message is sent as packets of at most one MTU. Its NIC holds one at a time: the first is created at injection, each
//! further one when the previous one starts.

use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{PacketIdx, PairIdx};
use crate::network::nic::flows::Tag;
use crate::network::packet::{AtSource, Owner, Packet, PacketNumber, Resend};
use crate::network::port::{ActivePort, kind};

impl InFlight {
    /// Adds a packet to those at its NIC, with the next order.
    #[inline(always)]
    pub(super) fn make<I: Instance>(&mut self, config: &Config, packet: Packet, pair: PairIdx) -> PacketIdx {
        let index = self.packets.insert(packet);
        if config.has::<I>().keeps_at_source() {
            let order = self.next_order();
            self.keep_at_source(config, index, AtSource { order, pair, again: Resend::None }, Tag::default());
        }
        index
    }

    /// The order of the next packet that is made.
    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// What its NIC keeps of a packet.
    pub fn at_source(&self, packet: PacketIdx) -> AtSource {
        self.at_source.get(packet).copied().unwrap_or_default()
    }

    /// What its NIC keeps of a new packet, and its tag, if packets have tags.
    #[cold]
    pub fn keep_at_source(&mut self, config: &Config, packet: PacketIdx, kept: AtSource, tag: Tag) {
        self.at_source.grow_to(packet, AtSource::default());
        self.at_source[packet] = kept;
        if config.conditions.features.controls {
            self.set_tag(packet, tag);
        }
    }

    /// Bytes on the wire that are left to send: of a packet that waits at its NIC, and of the packets of its message that do not exist
    /// yet. A packet that is sent again counts alone.
    pub fn left_to_send(&self, config: &Config, packet: PacketIdx) -> u64 {
        let bytes = u64::from(self.packets[packet].bytes);
        match self.packets[packet].owner() {
            Owner::Part(message) if self.at_source(packet).again == Resend::None && self.messages[message].left > 0 => {
                let left = self.messages[message].left;
                bytes + left + config.fabric.packets_of(left) * u64::from(config.fabric.header)
            }
            _ => bytes,
        }
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Makes the packet that follows at this NIC when `packet`, which is in no queue, starts: the next of its message or, after the last,
    /// the first of the next message of its queue pair. None if nothing follows.
    #[inline(always)]
    pub(in crate::network) fn next_of(&mut self, packet: PacketIdx) -> PacketIdx {
        let paired = self.config.has::<I>().pairs;
        if !paired && self.in_flight.packets[packet].flags.whole() {
            return PacketIdx::NONE;
        }
        if self.config.has::<I>().keeps_at_source() && self.in_flight.at_source(packet).again != Resend::None {
            return PacketIdx::NONE;
        }
        let pair = if paired { self.take_pair(packet) } else { PairIdx::NONE };
        let next = self.next_of_message(packet, pair);
        if pair.is_none() {
            return next;
        }
        self.in_flight.queue_pairs.proceed(pair, next, &self.in_flight.packets)
    }

    /// Makes the next packet of a message, if it has one.
    #[inline(always)]
    fn next_of_message(&mut self, packet: PacketIdx, pair: PairIdx) -> PacketIdx {
        let before = self.in_flight.packets[packet];
        let Owner::Part(message) = before.owner() else { return PacketIdx::NONE };
        let message = &mut self.in_flight.messages[message];
        if message.left == 0 {
            return PacketIdx::NONE;
        }
        let payload = self.config.fabric.payload(message.left);
        let number = PacketNumber::new(message.made);
        message.left -= u64::from(payload);
        message.made += 1;
        let next = Packet { bytes: payload + self.config.fabric.header, number, next: PacketIdx::NONE, ..before };
        let next = self.in_flight.packets.insert(next);
        if self.config.has::<I>().keeps_at_source() {
            // In the place of the one before it.
            let order = self.in_flight.at_source(packet).order;
            self.in_flight.keep_at_source(
                self.config,
                next,
                AtSource { order, pair, again: Resend::None },
                Tag::default(),
            );
        }
        next
    }

    /// The packet is no longer that which its queue pair sends.
    #[cold]
    fn take_pair(&mut self, packet: PacketIdx) -> PairIdx {
        match self.in_flight.at_source.get_mut(packet) {
            Some(kept) => std::mem::take(&mut kept.pair),
            None => PairIdx::NONE,
        }
    }

    /// A packet comes to its lane. Returns whether it joins its queue: not if it follows others of its queue pair.
    #[inline(always)]
    pub(in crate::network) fn goes_first(&mut self, packet: PacketIdx) -> bool {
        if KIND != kind::NIC || !self.config.has::<I>().pairs {
            return true;
        }
        let pair = self.in_flight.at_source(packet).pair;
        pair.is_none() || self.in_flight.queue_pairs.join(pair, packet, &mut self.in_flight.packets)
    }
}
