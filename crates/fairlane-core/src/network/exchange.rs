//! Traffic between shards: into mail while a window runs, and out of it before the next one opens.

use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{MessageIdx, PacketIdx, PairIdx, TelemetryIdx};
use super::mail::{Announcement, Mail, Parcels};
use super::nic::flows::Tag;
use super::packet::{Content, Message, Packet};
use super::prefetch::{MAIL_AHEAD, prefetch_credited};
use super::shard::Shard;
use crate::ids::VirtualLane;
use crate::kernel::NONE;
use crate::units::Instant;

impl InFlight {
    /// Sends a packet to another shard, to one of its `list`, where it arrives at instant `time`.
    #[inline]
    pub fn send_to_shard<I>(
        &mut self,
        (shard, list): (usize, impl FnOnce(&mut Mail) -> &mut Parcels<I>),
        to: I,
        packet: PacketIdx,
        time: Instant,
    ) {
        let parcels = list(&mut self.out.to[shard]);
        if let Some(tag) = self.tags.get_mut(packet) {
            parcels.tags.push(*tag);
            if tag.telemetry.is_some() {
                let path = self.telemetry.take(std::mem::take(&mut tag.telemetry));
                parcels.telemetry.extend(path.into_iter().map(|link| (parcels.to.len(), link)));
            }
        }
        parcels.packets.push(Packet { time, ..self.packets.take(packet) });
        parcels.to.push(to);
        self.out.earliest = self.out.earliest.min(time);
    }

    /// Hands each packet that another shard has sent to `deliver`, and those that will follow to `prefetch`.
    fn unpack<I: Copy>(
        &mut self,
        parcels: &mut Parcels<I>,
        prefetch: Option<fn(&Self, &Packet, I)>,
        deliver: impl Fn(&mut Self, PacketIdx, I, Instant),
    ) {
        for (place, &to) in parcels.to.iter().enumerate() {
            if let (Some(prefetch), Some(coming)) = (prefetch, parcels.to.get(place + MAIL_AHEAD)) {
                prefetch(self, &parcels.packets[place + MAIL_AHEAD], *coming);
            }
            let packet = self.packets.insert(parcels.packets[place]);
            if let Some(tag) = parcels.tags.get(place) {
                let mut telemetry = TelemetryIdx::NONE;
                while let Some(&(_, link)) = parcels.telemetry.front().filter(|(of, _)| *of == place) {
                    telemetry = self.telemetry.insert(link, telemetry);
                    parcels.telemetry.pop_front();
                }
                self.set_tag(packet, Tag { telemetry, ..*tag });
            }
            deliver(self, packet, to, parcels.packets[place].time);
        }
        parcels.packets.clear();
        parcels.to.clear();
        parcels.tags.clear();
    }

    /// Another shard has announced a message: keeps in this shard what reassembly needs of it.
    fn announce(&mut self, from: usize, announcement: Announcement) {
        let Announcement { message, packets, bytes, token, traffic, kind, flags } = announcement;
        let own = self.messages.insert(Message {
            offered: Instant::ZERO,
            sequence: 0,
            bytes,
            left: 0,
            undelivered: packets,
            sent: 0,
            next: MessageIdx::NONE,
            to: NONE,
            pair: PairIdx::NONE,
            traffic,
            kind,
            vl: VirtualLane(0),
            flags,
            any_delivered: false,
            mirror: true,
            packed: Content::Payload(token).into(),
        });
        let mirrors = &mut self.out.mirrors[from];
        mirrors.grow_to(message, MessageIdx::NONE);
        mirrors[message] = own;
    }
}

impl Shard {
    /// Accepts the mail of another shard of the window that has just been run, and leaves it empty.
    pub fn accept<I: Instance>(&mut self, from: usize, mail: &mut Mail) {
        let Self { config, in_flight, lanes, .. } = self;
        for announcement in mail.announced.drain(..) {
            in_flight.announce(from, announcement);
        }
        in_flight.unpack(&mut mail.to_ports, Some(InFlight::prefetch_inbox), |in_flight, packet, port, time| {
            in_flight.send_packet(port, packet, time);
        });
        in_flight.unpack(&mut mail.to_switches, None, |in_flight, packet, switch, time| {
            in_flight.send_to_switch(switch, packet, time);
        });
        in_flight.unpack(&mut mail.to_nics, None, |in_flight, packet, nic, time| {
            in_flight.arrive::<I>(config, nic, packet, time);
        });
        if config.has::<I>().loses {
            in_flight.unpack(&mut mail.lost, None, |in_flight, packet, link, due| {
                in_flight.retransmit(config, packet, link, due);
            });
            in_flight.unpack(&mut mail.given_up, None, |in_flight, packet, nic, time| {
                in_flight.arrive_given_up(config, nic, packet, time);
            });
        }
        for message in mail.received.drain(..) {
            in_flight.messages.take(message);
        }
        let opening = in_flight.calendar.opening(in_flight.calendar.window());
        for (place, returned) in mail.credits.iter().enumerate() {
            prefetch_credited(config, lanes, &mail.credits, place);
            in_flight.return_credits::<I>(config, lanes, returned, opening);
        }
        mail.credits.clear();
    }

    /// The first window from `from` on in which anything is due in this shard, or in which its mail takes effect in another;
    /// [`u64::MAX`] if there is none.
    pub fn next_due(&self, from: u64) -> u64 {
        let calendar = &self.in_flight.calendar;
        let sent = match self.in_flight.out.earliest {
            Instant::MAX => u64::MAX,
            time => calendar.window_of(time),
        };
        calendar.next(from).min(sent)
    }
}
