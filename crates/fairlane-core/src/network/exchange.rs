//! Traffic between shards: into mail while a window runs, and out of it before the next one opens.

use super::config::Config;
use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{PacketIdx, TelemetryIdx};
use super::mail::{Mail, Receiver, Returned};
use super::nic::flows::Tag;
use super::packet::Packet;
use super::partition::PortPlace;
use super::prefetch::{MAIL_AHEAD, prefetch_credited};
use super::shard::Shard;
use crate::ids::LinkId;
use crate::units::Instant;

impl InFlight {
    /// The mail to a shard, for something that takes effect there at `time`.
    pub fn mail_to(&mut self, shard: u8, time: Instant) -> &mut Mail {
        self.earliest_mail = self.earliest_mail.min(time);
        &mut self.mail[usize::from(shard)]
    }

    /// Sends a packet to another shard, where it arrives at instant `time`.
    #[cold]
    #[inline(never)]
    pub fn send_to_shard(&mut self, config: &Config, shard: u8, to: Receiver, packet: PacketIdx, time: Instant) {
        let tag = self.tags.get_mut(packet).map(|tag| {
            let path = self.telemetry.take(std::mem::take(&mut tag.telemetry));
            (*tag, path)
        });
        let packet = self.packets.take(packet);
        let credited = PortPlace { shard: config.naming.shard, port: packet.credited }.name_in(shard);
        let packet = Packet { time, credited, ..packet };
        let mail = self.mail_to(shard, time);
        mail.packets.push(packet);
        mail.to.push(to);
        mail.tags.extend(tag);
    }

    /// Returns credits over a link to a port of another shard.
    #[cold]
    #[inline(never)]
    pub fn return_to_shard(&mut self, config: &Config, link: LinkId, shard: u8, returned: Returned) {
        let time = returned.freed + config.conditions.latency_of(link);
        self.mail_to(shard, time).credits.push(returned);
    }
}

impl Shard {
    /// Accepts the mail of another shard of the window that has just been run, and leaves it empty.
    pub fn accept<I: Instance>(&mut self, from: u8, mail: &mut Mail) {
        let Self { config, in_flight, lanes, .. } = self;
        in_flight.announced.extend(mail.announced.drain(..).map(|(index, message)| ((from, index), message)));
        let mut tags = mail.tags.drain(..);
        for (place, (&packet, &to)) in mail.packets.iter().zip(&mail.to).enumerate() {
            if let Some(Receiver::Port(port)) = mail.to.get(place + MAIL_AHEAD) {
                in_flight.prefetch_inbox(&mail.packets[place + MAIL_AHEAD], *port);
            }
            let (index, time) = (in_flight.packets.insert(packet), packet.time);
            if let Some((tag, path)) = tags.next() {
                let add = |before, link| in_flight.telemetry.insert(link, before);
                let telemetry = path.into_iter().fold(TelemetryIdx::NONE, add);
                in_flight.set_tag(index, Tag { telemetry, ..tag });
            }
            match to {
                Receiver::Port(port) => in_flight.send_packet(port, index, time),
                Receiver::Switch(switch) => in_flight.send_to_switch(switch, index, time),
                Receiver::Nic(nic) => in_flight.arrive::<I>(config, nic, index, time),
                Receiver::Sender(link) => in_flight.retransmit(config, index, link, time),
                Receiver::GivenUp(nic) => in_flight.arrive_given_up(config, nic, index, time),
            }
        }
        drop(tags);
        mail.packets.clear();
        mail.to.clear();
        for message in mail.received.drain(..) {
            in_flight.messages.take(message);
        }
        let opening = in_flight.calendar.opened();
        for (place, returned) in mail.credits.iter().enumerate() {
            prefetch_credited(config, lanes, &mail.credits, place);
            in_flight.return_credits::<I>(config, lanes, returned, opening);
        }
        mail.credits.clear();
    }

    /// The first window from `from` on in which anything is due in this shard, or in which its mail takes effect in another.
    pub fn next_due(&self, from: u64) -> Option<u64> {
        let calendar = &self.in_flight.calendar;
        let sent = Some(self.in_flight.earliest_mail).filter(|time| *time != Instant::MAX);
        let due = Some(calendar.next(from)).filter(|window| *window != u64::MAX);
        due.into_iter().chain(sent.map(|time| calendar.window_of(time))).min()
    }
}
