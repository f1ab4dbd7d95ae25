//! Reassembly: packets that arrive at a host become deliveries of messages.

use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::in_flight::InFlight;
use crate::network::packet::{Delivery, Packet};
use crate::network::probe::Probe;
use crate::units::Instant;

impl InFlight {
    /// Takes the packets that arrive at a host before `until`: in order of time, then NIC port.
    #[inline(always)]
    pub(super) fn deliver<P: Probe>(
        &mut self,
        config: &Config,
        probe: &mut P,
        nics: std::ops::Range<u32>,
        until: u64,
        deliveries: &mut Vec<Delivery>,
    ) {
        deliveries.clear();
        let several = nics.len() > 1;
        for nic in nics {
            let mut record = self.receive_queues[nic as usize].0;
            if record == NONE {
                continue;
            }
            while record != NONE {
                let packet = &self.packets[record];
                if packet.time >= until {
                    break;
                }
                let next = packet.next;
                probe.delivered(packet);
                self.receive::<P>(config, record, deliveries);
                record = next;
            }
            let queue = &mut self.receive_queues[nic as usize];
            queue.0 = record;
            if record == NONE {
                queue.1 = NONE;
            }
        }
        if several {
            deliveries.sort_by_key(|delivery| delivery.at);
        }
    }

    /// A packet is received; of a message that is more than this packet see [`InFlight::receive_part`].
    #[inline(always)]
    fn receive<P: Probe>(&mut self, config: &Config, record: u32, deliveries: &mut Vec<Delivery>) {
        let Packet { time, message, bytes, flags, .. } = self.packets[record];
        self.packets.remove(record);
        if flags.whole() {
            let payload = u64::from(bytes - config.fabric.header);
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += payload;
            self.single_packet.remove(payload);
            let stage = flags.stage();
            deliveries.push(Delivery { at: Instant(time), token: message, stage, first: true, last: true });
        } else {
            self.receive_part::<P>(config, record, deliveries);
        }
    }

    /// One of several packets of a message is received.
    fn receive_part<P: Probe>(&mut self, config: &Config, record: u32, deliveries: &mut Vec<Delivery>) {
        let Packet { time, message: sent, origin, number, .. } = self.packets[record];
        let elsewhere = P::SHARDED && usize::from(origin) != config.naming.shard;
        let record = if elsewhere { self.out.mirror(origin, sent) } else { sent };
        let message = &mut self.messages[record];
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
            let (token, stage) = (message.token, message.flags.stage());
            deliveries.push(Delivery { at: Instant(time), token, stage, first, last });
        }
        if last {
            self.totals.messages_delivered += 1;
            self.totals.bytes_delivered += message.bytes;
            self.messages.remove(record);
            if elsewhere {
                self.out.received(origin, sent);
            }
        }
    }
}
