//! Mail: what leaves a shard in a window. Packets, credits, and, of messages of several packets, an announcement to the shard of
//! the receiver and a receipt. It is accepted before the next window opens, which is early enough: nothing of it takes effect
//! sooner than one link latency after it was sent, and a window is not longer.

use super::nic::flows::Tag;
use super::packet::{Packet, PacketFlags};
use crate::ids::JobId;
use crate::qos::levels::TrafficKind;

/// Mail from one shard to another.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// Packets that arrive at ports, at switches that route them, and at NICs' ports: their `next` is the number of that port
    /// or switch in its shard.
    pub to_ports: Vec<Packet>,
    pub to_switches: Vec<Packet>,
    pub to_nics: Vec<Packet>,
    /// Lost packets of this shard's NICs, whose timeouts pass at their `time`; and those for its NICs that are given up.
    pub lost: Vec<Packet>,
    pub given_up: Vec<Packet>,
    /// What is known besides of each packet of these five lists, in their order; empty if there is no congestion control.
    pub tags: [Vec<Tag>; 5],
    pub credits: Vec<Returned>,
    pub announced: Vec<Announcement>,
    /// Messages, by the record of the shard that sent them, of which all packets have been delivered.
    pub received: Vec<u32>,
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
    pub mirrors: Vec<Vec<u32>>,
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
