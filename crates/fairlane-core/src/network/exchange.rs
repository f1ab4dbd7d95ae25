//! Traffic between shards: mail, into which everything goes that leaves a shard while a window runs, and out of which it is taken before
//! the next one opens. That is early enough: nothing of it takes effect sooner than one link latency after it was sent, and a window is
//! not longer.

use super::config::Config;
use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{LaneIdx, MessageIdx, PacketIdx, PortIdx, TelemetryIdx};
use super::nic::flows::Tag;
use super::nic::transport::LinkTelemetry;
use super::packet::{Message, Packet};
use super::partition::PortPlace;
use super::prefetch::{MAIL_AHEAD, prefetch_credited};
use super::shard::Shard;
use crate::ids::{LinkId, SwitchId, TrafficId};
use crate::units::Instant;

/// Mail from one shard to another.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// Packets, with the times at which they arrive.
    pub packets: Vec<Packet>,
    /// The receiver of each.
    pub to: Vec<Receiver>,
    /// The tag of each, and its telemetry; empty if there is no congestion control.
    pub tags: Vec<(Tag, Vec<LinkTelemetry>)>,
    pub credits: Vec<Returned>,
    /// Messages of several packets, by their index in the shard that sends them.
    pub announced: Vec<(MessageIdx, Message)>,
    /// Those of which all packets have been delivered.
    pub received: Vec<MessageIdx>,
}

/// Where a packet goes in the shard that receives it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Receiver {
    /// The queue of a port.
    Port(PortIdx),
    /// A switch, which routes it.
    Switch(SwitchId),
    /// The host of a NIC.
    Nic(PortIdx),
    /// Back to its sender: it was lost at this link, and its timeout passes when it arrives.
    Sender(LinkId),
    /// The host of a NIC, although it is given up.
    GivenUp(PortIdx),
}

/// Credits on their way back to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    /// In the shard that it belongs to.
    pub port: PortIdx,
    pub lane: LaneIdx,
    pub traffic: TrafficId,
    pub bytes: u32,
    /// When the buffer was freed, ps; they arrive one link latency later.
    pub freed: Instant,
}

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
