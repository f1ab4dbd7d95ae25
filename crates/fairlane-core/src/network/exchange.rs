//! What goes from shard to shard: into mail while a window runs, and out of it before the next one opens.

use super::features::Instance;
use super::in_flight::InFlight;
use super::mail::{Announcement, Destination, Mail};
use super::packet::{Content, Message, Packet};
use super::prefetch::prefetch_credited;
use super::shard::Shard;
use crate::kernel::NONE;
use crate::units::Instant;

impl InFlight {
    /// Sends a packet to another shard, where it arrives at instant `time`.
    #[inline]
    pub fn send_to_shard(&mut self, shard: usize, to: Destination, record: u32, time: u64) {
        let mail = &mut self.out.to[shard];
        let (list, tags, number) = match to {
            Destination::Port(port) => (&mut mail.to_ports, 0, port),
            Destination::Switch(switch) => (&mut mail.to_switches, 1, switch),
            Destination::Nic(nic) => (&mut mail.to_nics, 2, nic),
            Destination::Sender => (&mut mail.lost, 3, NONE),
            Destination::GivenUp(nic) => (&mut mail.given_up, 4, nic),
        };
        if let Some(tag) = self.tags.get(record as usize) {
            mail.tags[tags].push(*tag);
        }
        list.push(Packet { time, next: number, ..self.packets[record].clone() });
        self.packets.remove(record);
        self.out.earliest = self.out.earliest.min(time);
    }

    /// Another shard has announced a message: makes its record in this shard, with what reassembly needs.
    fn announce(&mut self, from: usize, announcement: Announcement) {
        let Announcement { record, packets, bytes, token, job, kind, flags } = announcement;
        let own = self.messages.insert(Message {
            offered: 0,
            sequence: 0,
            bytes,
            left: 0,
            undelivered: packets,
            sent: 0,
            next: NONE,
            to: NONE,
            token,
            pair: NONE,
            job: job.0,
            kind,
            vl: 0,
            flags,
            any_delivered: false,
            mirror: true,
            content: Content::Payload,
        });
        let mirrors = &mut self.out.mirrors[from];
        if mirrors.len() <= record as usize {
            mirrors.resize(record as usize + 1, NONE);
        }
        mirrors[record as usize] = own;
    }
}

impl Shard {
    /// Accepts the mail of another shard of the window that has just been run, and leaves it empty.
    pub fn accept<I: Instance>(&mut self, from: usize, mail: &mut Mail) {
        let Self { config, in_flight, lanes, .. } = self;
        for announcement in mail.announced.drain(..) {
            in_flight.announce(from, announcement);
        }
        for (place, packet) in mail.to_ports.iter().enumerate() {
            in_flight.prefetch_inbox(&mail.to_ports, place);
            let (port, time) = (packet.next, packet.time);
            let record = in_flight.packets.insert(packet.clone());
            in_flight.retag(record, mail.tags[0].get(place));
            in_flight.send_packet(port, record, time);
        }
        mail.to_ports.clear();
        for (place, packet) in mail.to_switches.drain(..).enumerate() {
            let (switch, time) = (packet.next, packet.time);
            let record = in_flight.packets.insert(packet);
            in_flight.retag(record, mail.tags[1].get(place));
            in_flight.send_to_switch(switch, record, time);
        }
        for (place, packet) in mail.to_nics.drain(..).enumerate() {
            let (nic, time) = (packet.next, packet.time);
            let record = in_flight.packets.insert(packet);
            in_flight.retag(record, mail.tags[2].get(place));
            in_flight.arrive::<I>(config, nic, record, time);
        }
        for (place, packet) in mail.lost.drain(..).enumerate() {
            let due = packet.time;
            let record = in_flight.packets.insert(packet);
            in_flight.retag(record, mail.tags[3].get(place));
            in_flight.retransmit(config, record, due);
        }
        for (place, packet) in mail.given_up.drain(..).enumerate() {
            let (nic, time) = (packet.next, packet.time);
            let record = in_flight.packets.insert(packet);
            in_flight.retag(record, mail.tags[4].get(place));
            in_flight.arrive_given_up(config, nic, record, time);
        }
        mail.tags.iter_mut().for_each(Vec::clear);
        for record in mail.received.drain(..) {
            in_flight.messages[record].undelivered = 0;
            in_flight.messages.remove(record);
        }
        let opening = in_flight.calendar.opening(in_flight.calendar.window()).0;
        for (place, returned) in mail.credits.iter().enumerate() {
            prefetch_credited(config, lanes, &mail.credits, place);
            in_flight.return_credits(config, lanes, returned, opening);
        }
        mail.credits.clear();
    }

    /// The first window from `from` on in which anything is due in this shard, or in which its mail takes effect in another;
    /// [`u64::MAX`] if there is none.
    pub fn next_due(&self, from: u64) -> u64 {
        let calendar = &self.in_flight.calendar;
        let sent = match self.in_flight.out.earliest {
            u64::MAX => u64::MAX,
            time => calendar.window_of(Instant(time)),
        };
        calendar.next(from).min(sent)
    }
}
