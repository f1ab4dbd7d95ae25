//! Transmission: a packet starts on the link, takes credits, returns those of the buffer that it leaves, and is sent to its next
//! port or to its host.

use super::{ActivePort, kind};
use crate::ids::LinkId;
use crate::kernel::NONE;
use crate::network::probe::{Probe, Transmission};
use crate::routing::{Hop, Step};
use crate::units::Bytes;

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// A packet that is in no queue, and that the arbiter has granted, starts on the link.
    #[inline(always)]
    pub(super) fn transmit(&mut self, lane: u8, record: u32, now: u64) {
        let config = self.config;
        let packet = &mut self.in_flight.packets[record];
        let (bytes, job, joined, held) = (packet.bytes, packet.job, packet.time, packet.held);
        let to_switch = match KIND {
            kind::NIC => config.to_switch[self.number as usize] != NONE,
            _ => KIND == kind::TO_SWITCH,
        };
        let upstream = if KIND == kind::NIC { None } else { Some(packet.came.link()) };
        let mut next = 0;
        if to_switch {
            packet.came = Step::new(Hop { link: LinkId(self.number), channel: config.channel(packet.vl, lane) });
            packet.held = lane;
            if !config.adaptive {
                let precomputed = std::mem::replace(&mut packet.next_step, Step::NONE);
                let step =
                    if precomputed == Step::NONE { config.next_step(packet.came, packet.to) } else { precomputed };
                packet.lane = config.lane(packet.vl, step.channel());
                next = step.link();
            }
        }
        let wire = &config.wires[self.port.wire as usize];
        let wire_time = if bytes == config.full {
            wire.full_wire_time
        } else {
            wire.bandwidth.serialization(Bytes(u64::from(bytes))).0
        };
        let done = now + wire_time;
        self.port.busy_until = done;
        self.port.job = job;
        self.in_flight.totals.packet_hops += 1;
        self.take_credits(lane, bytes);
        let sent = Transmission { record, time: now, bytes, job, wire_time, waited: now - joined };
        self.probe.transmitted(self.number, self.port, &mut self.lanes[self.base + usize::from(lane)], &sent);
        if self.probe.detailed(config) {
            let upstream = upstream.map(|link| link as usize * config.lanes + usize::from(held));
            self.probe.detail(self.in_flight, (self.number, lane), &sent, upstream);
        }
        if let Some(upstream) = upstream {
            self.return_credits(upstream, done, bytes, job, held);
        }
        if to_switch {
            let time = now + wire.latency + config.parameters.switch_latency.0;
            if config.adaptive {
                self.in_flight.send_to_switch(config.to_switch[self.number as usize], record, time);
                return;
            }
            let delay = config.forwarding_delay(|| wire_time, bytes, next);
            self.in_flight.send_packet(next, record, time + delay);
        } else {
            let time = done + wire.latency;
            self.return_credits(self.number, time, bytes, job, lane);
            self.in_flight.arrive(config, config.to_nic[self.number as usize], record, time);
        }
    }
}
