//! Reassembly: packets that arrive at a host become deliveries of messages.

use crate::ids::LinkId;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{MessageIdx, PacketIdx};
use crate::network::naming::Nics;
use crate::network::observation::Observation;
use crate::network::packet::{Delivery, Owner, Packet};
use crate::network::partition::PortPlace;
use crate::units::Instant;

impl InFlight {
    /// Takes the packets that arrive at a host before `until`: in order of time, then NIC port.
    #[inline(always)]
    pub(super) fn deliver<I: Instance>(
        &mut self,
        config: &Config,
        observation: &mut Observation,
        nics: Nics,
        until: Instant,
        deliveries: &mut Vec<Delivery>,
    ) {
        deliveries.clear();
        let several = nics.several();
        for nic in nics {
            let mut packet = self.receive_queues[nic].0;
            if packet.is_none() {
                continue;
            }
            while packet.is_some() {
                let &Packet { time, next, .. } = &self.packets[packet];
                if time >= until {
                    break;
                }
                observation.delivered::<I>(&self.packets[packet]);
                self.receive::<I>(config, packet, deliveries);
                packet = next;
            }
            let queue = &mut self.receive_queues[nic];
            queue.0 = packet;
            if packet.is_none() {
                queue.1 = PacketIdx::NONE;
            }
        }
        if several {
            deliveries.sort_by_key(|delivery| delivery.at);
        }
    }

    /// A packet is received; of a message that is more than this packet see [`InFlight::receive_part`].
    #[inline(always)]
    fn receive<I: Instance>(&mut self, config: &Config, packet: PacketIdx, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.take(packet);
        match packet.owner() {
            Owner::Whole(token) => {
                let payload = u64::from(packet.bytes - config.fabric.header);
                self.totals.messages_delivered += 1;
                self.totals.bytes_delivered += payload;
                let stage = packet.flags.stage();
                deliveries.push(Delivery {
                    at: packet.time,
                    token,
                    traffic: packet.traffic,
                    stage,
                    first: true,
                    last: true,
                });
            }
            Owner::Part(message) => self.receive_part::<I>(config, &packet, message, deliveries),
        }
    }

    /// One of several packets of a message, which its sender's shard knows as `sent`, is received.
    fn receive_part<I: Instance>(
        &mut self,
        config: &Config,
        &Packet { time, source, number, traffic, flags, .. }: &Packet,
        sent: MessageIdx,
        deliveries: &mut Vec<Delivery>,
    ) {
        let elsewhere = config.port_of(LinkId(source)).err();
        let message = match elsewhere {
            Some(PortPlace { shard, .. }) => self
                .announced
                .get_mut(&(shard, sent))
                .expect("invariant: a message is announced before its packets come"),
            None => &mut self.messages[sent],
        };
        debug_assert!(
            config.fabric.adaptive
                || config.conditions.overtaking
                || u64::from(number.place()) + u64::from(message.undelivered)
                    == config.fabric.packets_of(message.bytes),
            "packets of a message on one path overtake"
        );
        let first = !std::mem::replace(&mut message.any_delivered, true);
        message.undelivered -= 1;
        let last = message.undelivered == 0;
        if first || last {
            let (token, stage) = (message.token, flags.stage());
            deliveries.push(Delivery { at: time, token, traffic, stage, first, last });
        }
        if last {
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += message.bytes;
            if let Some(PortPlace { shard, .. }) = elsewhere {
                self.announced.remove(&(shard, sent));
                self.mail[usize::from(shard)].received.push(sent);
            } else {
                self.messages.take(sent);
            }
        }
    }
}
