//! Mail: what leaves a shard in a window. Packets, credits, and, of messages of several packets, an announcement to the shard of
//! the receiver and a receipt. It is accepted before the next window opens, which is early enough: nothing of it takes effect
//! sooner than one link latency after it was sent, and a window is not longer.

use super::index::{LaneIdx, MessageIdx, PortIdx};
use super::nic::flows::Tag;
use super::nic::transport::LinkTelemetry;
use super::packet::{Message, Packet};
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
