//! Mail: what leaves a shard in a window. Packets, credits, and, of messages of several packets, an announcement to the shard of
//! the receiver and a receipt. It is accepted before the next window opens, which is early enough: nothing of it takes effect
//! sooner than one link latency after it was sent, and a window is not longer.

use super::in_flight::InFlight;
use super::nic::notices::Tag;
use super::packet::{Content, Message, Packet, PacketFlags};
use super::prefetch::prefetch_credited;
use super::probe::Probe;
use super::shard::Shard;
use crate::ids::JobId;
use crate::kernel::NONE;
use crate::qos::levels::TrafficKind;
use crate::units::Instant;

/// Mail from one shard to another.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// Packets that arrive at ports, at switches that route them, and at NICs' ports: their `next` is the number of that port
    /// or switch in its shard.
    to_ports: Vec<Packet>,
    to_switches: Vec<Packet>,
    to_nics: Vec<Packet>,
    /// Lost packets of this shard's NICs, whose timeouts pass at their `time`; and those for its NICs that are given up.
    lost: Vec<Packet>,
    given_up: Vec<Packet>,
    /// What is known besides of each packet of these five lists, in their order; empty if there is no congestion control.
    tags: [Vec<Tag>; 5],
    credits: Vec<Returned>,
    announced: Vec<Announcement>,
    /// Messages, by the record of the shard that sent them, of which all packets have been delivered.
    received: Vec<u32>,
}

/// Where a packet goes in another shard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    Port(u32),
    Switch(u32),
    Nic(u32),
    /// The NIC that sent it: it was lost.
    Sender,
    /// A NIC to which it does not come by itself: it is given up.
    GivenUp(u32),
}

/// Credits on their way back to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    /// By its number in the shard that it belongs to.
    pub port: u32,
    pub lane: u8,
    pub job: u16,
    pub bytes: u32,
    /// When the buffer was freed, ps; they arrive one link latency later.
    pub freed: u64,
}

/// Announces a message of several packets to the shard of its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    /// Its record in the shard of its sender.
    pub record: u32,
    pub packets: u32,
    pub bytes: u64,
    pub token: u32,
    pub job: JobId,
    pub kind: TrafficKind,
    pub flags: PacketFlags,
}

/// The mail of the open window.
#[derive(Clone, Default)]
pub(super) struct Outboxes {
    /// By shard; empty with one shard.
    pub to: Vec<Mail>,
    /// The earliest instant at which anything in the mail of the open window takes effect, ps.
    pub earliest: u64,
    /// By sending shard, then its record of a message: the record of the message in this shard.
    mirrors: Vec<Vec<u32>>,
}

impl Outboxes {
    /// Empty, in a network of so many shards.
    pub fn new(shards: usize) -> Self {
        let others = if shards == 1 { 0 } else { shards };
        Self { to: vec![Mail::default(); others], earliest: u64::MAX, mirrors: vec![Vec::new(); others] }
    }

    /// The record in this shard of a message that another shard sends.
    #[inline]
    pub fn mirror(&self, shard: u8, record: u32) -> u32 {
        self.mirrors[usize::from(shard)][record as usize]
    }

    /// Returns credits to a port of another shard, where they arrive at `time`.
    #[inline]
    pub fn return_credits(&mut self, shard: usize, returned: Returned, time: u64) {
        self.earliest = self.earliest.min(time);
        self.to[shard].credits.push(returned);
    }

    /// Announces a message.
    pub fn announce(&mut self, shard: usize, announcement: Announcement) {
        self.to[shard].announced.push(announcement);
    }

    /// Reports to the shard of a message's sender that all its packets have been delivered.
    pub fn received(&mut self, shard: u8, record: u32) {
        self.to[usize::from(shard)].received.push(record);
    }
}

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
    pub fn accept<P: Probe>(&mut self, from: usize, mail: &mut Mail) {
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
            in_flight.arrive::<P>(config, nic, record, time);
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
