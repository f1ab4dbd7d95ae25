//! Transmission: a packet starts on the link, takes credits, returns those of the buffer that it leaves, and is sent to its next
//! port, switch or host. All of it is computed at the start, with the later times at which it takes effect.

use super::{ActivePort, kind};
use crate::fault::LinkErrors;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::network::mail::{Receiver, Returned};
use crate::network::naming::NO_SWITCH;
use crate::network::observation::Transmission;
use crate::network::packet::Packet;
use crate::network::partition::PortPlace;
use crate::rng::draw;
use crate::routing::{Hop, Step};
use crate::units::{Bytes, Instant, Picoseconds};

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet that is in no queue, and that the arbiter has granted, starts on the link.
    #[inline(always)]
    pub(in crate::network) fn transmit(&mut self, lane: LaneIdx, index: PacketIdx, now: Instant) {
        let config = self.config;
        let packet = &mut self.in_flight.packets[index];
        let (bytes, traffic, joined, held, credited) =
            (packet.bytes, packet.traffic, packet.time, packet.held, packet.credited);
        let at = if KIND == kind::TO_HOST { NO_SWITCH } else { config.naming.to_switch[self.number] };
        let to_switch = KIND == kind::TO_SWITCH || at != NO_SWITCH;
        let upstream = if KIND == kind::NIC { None } else { Some(packet.came.link()) };
        let mut next = LinkId(0);
        if to_switch {
            let link = config.naming.link_of(self.number);
            let came = Hop { link, channel: config.fabric.channel(packet.vl, lane) };
            packet.came = Step::new(came);
            packet.held = lane;
            packet.credited = self.number;
            if KIND == kind::NIC {
                packet.number = packet.number.on(config.conditions.routes.tag);
            }
            if !config.fabric.by_switch {
                let hop = config.conditions.routes.of(packet).next_hop(at, came, HostId(packet.to));
                packet.lane = config.fabric.lane(packet.vl, hop.channel);
                next = hop.link;
            }
        }
        let wire = config.conditions.wire(self.port.wire);
        let wire_time = if bytes == config.fabric.full {
            wire.full_wire_time
        } else {
            wire.bandwidth.serialization(Bytes(u64::from(bytes)))
        };
        let repeated = self.repetitions(bytes, wire_time, now);
        let start = now + repeated.unwrap_or(Picoseconds::ZERO);
        let done = start + wire_time;
        self.port.busy_until = done;
        self.port.traffic = traffic;
        self.in_flight.totals.packet_hops += 1;
        self.take_credits(lane, bytes, start + wire.latency);
        let taken = done - now;
        let sent = Transmission { packet: index, time: now, bytes, traffic, wire_time: taken, waited: now - joined };
        self.observation.transmitted::<I>(self.number, self.port, &mut self.lanes[self.base + lane.index()], &sent);
        if config.has::<I>().details {
            let upstream = upstream.map(|link| config.fabric.onward_place(link, held));
            self.observation.detail(
                self.in_flight,
                self.config.fabric.job_of(traffic),
                (self.number, lane),
                &sent,
                upstream,
            );
        }
        if let Some(upstream) = upstream
            && KIND != kind::BUFFERED
        {
            self.return_upstream(upstream, Returned { port: credited, lane: held, traffic, bytes, freed: done });
        }
        if repeated.is_none() {
            self.lose_on_link(lane, index, done + wire.latency);
            return;
        }
        if to_switch {
            let time = start + wire.latency + config.fabric.parameters.switch_latency;
            if config.fabric.by_switch {
                self.send_to_switch(at, index, time);
                return;
            }
            let delay = config.forwarding_delay::<I>(|| wire_time, bytes, next);
            match config.port_of(next) {
                Ok(port) => self.in_flight.send_packet(port, index, time + delay),
                Err(PortPlace { shard, port }) => {
                    self.in_flight.send_to_shard(self.config, shard, Receiver::Port(port), index, time + delay);
                }
            }
        } else {
            let time = done + wire.latency;
            self.return_credits(&Returned { port: self.number, lane, traffic, bytes, freed: time });
            self.send_to_nic(index, time);
        }
    }

    /// The time that the repetitions of a packet take that starts at `now`, if its link has errors: each its time on the wire and the
    /// time until the sender knows of the error. `None` if the packet has an error and is lost.
    #[inline(always)]
    fn repetitions(&self, bytes: u32, wire_time: Picoseconds, now: Instant) -> Option<Picoseconds> {
        if !self.config.has::<I>().errors {
            return Some(Picoseconds::ZERO);
        }
        let errors = self.errors(bytes, now)?;
        Some(errors * (wire_time + 2 * self.config.conditions.latency(self.number)))
    }

    /// How often a packet that starts at `now` has an error, and is repeated, before it comes without, if its link has errors; `None` if
    /// it has one and is lost.
    #[cold]
    fn errors(&self, bytes: u32, now: Instant) -> Option<u64> {
        let link = self.config.naming.link_of(self.number);
        let Some(LinkErrors { rate, lost }) = self.config.conditions.errors_of(link) else { return Some(0) };
        let chance = rate.chance_of_error(bytes);
        let failures = (0..)
            .map(|attempt: u64| draw(u64::from(draw(now.0, link.0)) << 32 | attempt, link.0))
            .take_while(|draw| u64::from(*draw) < chance);
        let failures = failures.count() as u64;
        (failures == 0 || !lost).then_some(failures)
    }

    /// A packet with an error comes to the end of its link at `time`, and is lost there.
    #[cold]
    fn lose_on_link(&mut self, lane: LaneIdx, index: PacketIdx, time: Instant) {
        let &Packet { traffic, bytes, .. } = &self.in_flight.packets[index];
        self.return_credits(&Returned { port: self.number, lane, traffic, bytes, freed: time });
        self.in_flight.lose(self.config, index, self.config.naming.link_of(self.number), time);
    }

    /// The packet arrives at instant `time` at the switch at the far end, which routes it.
    #[inline(always)]
    fn send_to_switch(&mut self, switch: SwitchId, packet: PacketIdx, time: Instant) {
        match self.config.other_shard_of(switch) {
            Some(shard) => self.in_flight.send_to_shard(self.config, shard, Receiver::Switch(switch), packet, time),
            None => self.in_flight.send_to_switch(switch, packet, time),
        }
    }

    /// The packet is at the NIC at the far end at instant `time`.
    #[inline(always)]
    fn send_to_nic(&mut self, packet: PacketIdx, time: Instant) {
        match self.config.port_of(LinkId(self.in_flight.packets[packet].to)) {
            Ok(nic) => self.in_flight.arrive::<I>(self.config, nic, packet, time),
            Err(PortPlace { shard, port }) => {
                self.in_flight.send_to_shard(self.config, shard, Receiver::Nic(port), packet, time)
            }
        }
    }
}
