//! Mail: what leaves a shard in a window. Packets, credits, and, of messages of several packets, an announcement to the shard of
//! the receiver and a receipt. It is accepted before the next window opens, which is early enough: nothing of it takes effect
//! sooner than one link latency after it was sent, and a window is not longer.

use std::collections::VecDeque;

use super::index::{LaneIdx, MessageIdx, PortIdx, SwitchIdx};
use super::nic::flows::Tag;
use super::nic::transport::LinkTelemetry;
use super::packet::{Packet, PacketFlags};
use crate::ids::{LinkId, TrafficId};
use crate::kernel::Indexed;
use crate::qos::levels::TrafficKind;
use crate::units::Instant;

/// Mail from one shard to another.
#[derive(Clone, Default)]
pub(super) struct Mail {
    /// Packets that arrive at ports, at switches that route them, and at NICs' ports.
    pub to_ports: Parcels<PortIdx>,
    pub to_switches: Parcels<SwitchIdx>,
    pub to_nics: Parcels<PortIdx>,
    /// Packets of this shard's NICs that were lost, by the link at which they were, and whose timeouts pass at their `time`.
    pub lost: Parcels<LinkId>,
    /// Packets for its NICs that are given up.
    pub given_up: Parcels<PortIdx>,
    pub credits: Vec<Returned>,
    pub announced: Vec<Announcement>,
    /// Messages, by their index in the shard that sent them, of which all packets have been delivered.
    pub received: Vec<MessageIdx>,
}

/// Packets for one kind of receivers.
#[derive(Clone)]
pub(super) struct Parcels<I> {
    pub packets: Vec<Packet>,
    /// The receiver of each.
    pub to: Vec<I>,
    /// The tag of each; empty if there is no congestion control.
    pub tags: Vec<Tag>,
    /// Telemetry, by the place of its packet, in the order in which it was written.
    pub telemetry: VecDeque<(usize, LinkTelemetry)>,
}

impl<I> Default for Parcels<I> {
    fn default() -> Self {
        Self { packets: Vec::new(), to: Vec::new(), tags: Vec::new(), telemetry: VecDeque::new() }
    }
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

/// Announces a message of several packets to the shard of its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement {
    /// Its index in the shard of its sender.
    pub message: MessageIdx,
    pub packets: u32,
    pub bytes: u64,
    pub token: u32,
    pub traffic: TrafficId,
    pub kind: TrafficKind,
    pub flags: PacketFlags,
}

/// The mail of the open window.
#[derive(Clone, Default)]
pub(super) struct Outboxes {
    /// By shard; empty with one shard.
    pub to: Vec<Mail>,
    /// The earliest instant at which anything in the mail of the open window takes effect, ps.
    pub earliest: Instant,
    /// By sending shard, then the message there: the message in this shard.
    pub mirrors: Vec<Indexed<MessageIdx, MessageIdx>>,
}

impl Outboxes {
    /// Empty, in a network of so many shards.
    pub fn new(shards: usize) -> Self {
        let others = if shards == 1 { 0 } else { shards };
        Self { to: vec![Mail::default(); others], earliest: Instant::MAX, mirrors: vec![Vec::new().into(); others] }
    }

    /// The message in this shard that another shard sends.
    #[inline]
    pub fn mirror(&self, shard: u8, message: MessageIdx) -> MessageIdx {
        self.mirrors[usize::from(shard)][message]
    }

    /// Returns credits to a port of another shard, where they arrive at `time`.
    #[inline]
    pub fn return_credits(&mut self, shard: usize, returned: Returned, time: Instant) {
        self.earliest = self.earliest.min(time);
        self.to[shard].credits.push(returned);
    }

    /// Announces a message.
    pub fn announce(&mut self, shard: usize, announcement: Announcement) {
        self.to[shard].announced.push(announcement);
    }

    /// Reports to the shard of a message's sender that all its packets have been delivered.
    pub fn received(&mut self, shard: u8, message: MessageIdx) {
        self.to[usize::from(shard)].received.push(message);
    }
}
