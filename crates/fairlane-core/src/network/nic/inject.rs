//! Injection: a host hands a message to its NIC.

use crate::ids::{LinkId, TrafficId, VirtualLane};
use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{MessageIdx, PacketIdx, PairIdx, PortIdx};
use crate::network::naming::Nics;
use crate::network::packet::{Injection, Message, Packet, PacketFlags, PacketNumber};
use crate::network::partition::PortPlace;
use crate::qos::levels::TrafficKind;
use crate::routing::Step;
use crate::units::{Bytes, Instant, Picoseconds};

impl InFlight {
    /// Hands a message to a NIC: its first packet goes to the port's inbox, once the adapter takes another message. Returns whether
    /// that is before `until`, the end of the open window; then the port must be run.
    #[inline(always)]
    pub(super) fn inject<I: Instance>(
        &mut self,
        config: &Config,
        nics: &Nics,
        injection: &Injection,
        until: Instant,
    ) -> bool {
        let Injection { at, from, to, bytes, rails: [rail, other], vl, traffic, kind, token, stage, urgent, .. } =
            *injection;
        let nic = nics.rail(rail);
        debug_assert!(at >= self.calendar.opened(), "host {from} sends in the past");
        let packets = config.fabric.packets_of(bytes.0);
        let has = config.has::<I>();
        let offered = if has.gaps { self.offer(config, nic, at) } else { at };
        let pair = if has.pairs {
            self.queue_pairs.add(config.fabric.parameters.injection, nic, injection)
        } else {
            PairIdx::NONE
        };
        let to = config.fabric.endpoint(to, other);
        let payload = config.fabric.payload(bytes.0);
        let owner =
            if packets == 1 { token } else { self.create_record(config, (bytes, payload, packets), token, to).0 };
        let packet = Packet {
            owner,
            to,
            traffic,
            kind,
            flags: PacketFlags::new(stage, packets == 1, urgent),
            ..Packet::offered_by(config, nic, (payload, vl), offered)
        };
        let packet = self.make::<I>(config, packet, pair);
        self.totals.messages_injected += 1;
        self.totals.bytes_injected += bytes.0;
        if offered >= until {
            self.send_packet(nic, packet, offered);
            return false;
        }
        self.packets[packet].next = self.inboxes.push(self.calendar.window(), nic, packet);
        true
    }

    /// Creates the record of a message of several packets, the first of which has this payload. It is announced to the shard of the
    /// adapter `to`.
    fn create_record(
        &mut self,
        config: &Config,
        (bytes, first, packets): (Bytes, u32, u64),
        token: u32,
        to: u32,
    ) -> MessageIdx {
        let undelivered = u32::try_from(packets).expect("invariant: a message has fewer than 2^25 packets");
        let left = bytes.0 - u64::from(first);
        let message = Message { bytes: bytes.0, left, made: 1, undelivered, token, any_delivered: false };
        let index = self.messages.insert(message);
        if let Err(PortPlace { shard, .. }) = config.port_of(LinkId(to)) {
            self.mail[usize::from(shard)].announced.push((index, Message { made: 0, ..message }));
        }
        index
    }

    /// When a message that is handed over at `at` is offered: at least the adapter's gap after the message before it.
    #[inline]
    fn offer(&mut self, config: &Config, nic: PortIdx, at: Instant) -> Instant {
        let gap = config.naming.gaps.get(nic).map_or(Picoseconds::ZERO, |gap| *gap);
        if gap == Picoseconds::ZERO {
            return at;
        }
        let next = &mut self.next_offer[nic];
        let offered = at.max(*next);
        *next = offered + gap;
        offered
    }
}

impl Packet {
    /// A packet with this payload, on this virtual lane, that NIC `nic` offers to its port at `offered`; its message and destination are
    /// not set.
    #[inline(always)]
    pub(super) fn offered_by(
        config: &Config,
        nic: PortIdx,
        (payload, vl): (u32, VirtualLane),
        offered: Instant,
    ) -> Self {
        let lane = config.fabric.lane(vl, 0);
        Self {
            time: offered,
            offered,
            next: PacketIdx::NONE,
            owner: NONE,
            bytes: payload + config.fabric.header,
            to: NONE,
            source: config.naming.link_of(nic).0,
            number: PacketNumber::new(0),
            traffic: TrafficId(0),
            kind: TrafficKind::Control,
            vl,
            lane,
            held: lane,
            flags: PacketFlags::new(0, true, false),
            came: Step::NONE,
            credited: PortIdx::NONE,
            next_step: Step::NONE,
            note: 0,
        }
    }
}
