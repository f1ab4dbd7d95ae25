//! What travels: messages, their packets, and what the network tells a host of them.

use super::partition::Place;
use crate::ids::{HostId, JobId, VirtualLane};
use crate::qos::levels::TrafficKind;
use crate::routing::Step;
use crate::units::{Bytes, Instant, Picoseconds};

/// A message to hand to a host's NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// When it is handed over: in the open window or later.
    pub at: Instant,
    /// The sending host.
    pub from: HostId,
    /// The receiving host, another one.
    pub to: HostId,
    /// Payload.
    pub bytes: Bytes,
    /// The adapter of the sending host that sends it: its place among the host's ports.
    pub rail: u8,
    /// Its virtual lane.
    pub vl: VirtualLane,
    /// The job it is counted for.
    pub job: JobId,
    /// The traffic kind it is counted for.
    pub kind: TrafficKind,
    /// The caller's name for it, given back in the [`Delivery`].
    pub token: u32,
    /// A word of the caller's below 64, given back in the [`Delivery`].
    pub stage: u8,
    /// The receiving host must look at it when it comes, even if it is deferrable; see [`Pause`](super::Pause).
    pub urgent: bool,
}

/// A packet that has come to its host: the first or the last of its message, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its tail was there.
    pub at: Instant,
    /// The injection's token.
    pub token: u32,
    /// The injection's stage.
    pub stage: u8,
    /// It is the first of its message to come.
    pub first: bool,
    /// With it, all of the message has come.
    pub last: bool,
}

/// A message on its way, from its injection to the delivery of its last packet, or, if it is one packet, to its start.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// When its next packet is offered to the NIC's port.
    pub offered: u64,
    /// Order among the messages of one NIC: by creation.
    pub sequence: u64,
    /// Payload.
    pub bytes: u64,
    /// Payload not yet cut into packets.
    pub left: u64,
    /// Packets not yet delivered.
    pub undelivered: u32,
    /// Packets sent so far.
    pub sent: u32,
    pub next: u32,
    pub to: u32,
    pub token: u32,
    pub job: u16,
    pub kind: TrafficKind,
    pub vl: u8,
    pub load: Load,
    pub any_delivered: bool,
    /// Another shard sends it: this is what the receiving shard keeps of it.
    pub mirror: bool,
}

/// What a packet is to its host, in a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load(u8);

impl Load {
    const WHOLE: u8 = 0x80;
    const URGENT: u8 = 0x40;

    #[inline]
    pub fn new(stage: u8, whole: bool, urgent: bool) -> Self {
        debug_assert!(stage < Self::URGENT, "a stage is below 64, not {stage}");
        Self(stage | if whole { Self::WHOLE } else { 0 } | if urgent { Self::URGENT } else { 0 })
    }

    /// The injection's stage.
    #[inline]
    pub const fn stage(self) -> u8 {
        self.0 & (Self::URGENT - 1)
    }

    /// The packet is all of its message.
    #[inline]
    pub const fn whole(self) -> bool {
        self.0 & Self::WHOLE != 0
    }

    /// The host must look at it when it comes.
    #[inline]
    pub const fn urgent(self) -> bool {
        self.0 & Self::URGENT != 0
    }
}

/// Messages on their way that are a single packet, which stands for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SinglePacket {
    /// Counted up where they are sent and down where they are delivered: of a single shard it may be below zero.
    pub messages: i64,
    pub bytes: i64,
}

impl SinglePacket {
    /// A message of this payload becomes a packet.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes.cast_signed();
    }

    /// One has been delivered.
    #[inline(always)]
    pub fn remove(&mut self, bytes: u64) {
        self.messages -= 1;
        self.bytes -= bytes.cast_signed();
    }
}

/// A packet. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Packet {
    /// When it joins the queue it is in, or is going to; at the end, when it is delivered.
    pub time: u64,
    /// When it was offered to the NIC's port.
    pub offered: u64,
    pub next: u32,
    /// The record of its message, of the shard that sent it; if it is all of the message, the message's token.
    pub message: u32,
    /// On the wire.
    pub bytes: u32,
    pub to: u32,
    /// The host that sent it.
    pub source: u32,
    /// Its place in its message.
    pub number: u32,
    pub job: u16,
    pub kind: TrafficKind,
    pub vl: u8,
    /// The lane whose queue it is in, or is going to.
    pub lane: u8,
    /// The lane it took on the link before: the buffer that it holds.
    pub held: u8,
    pub load: Load,
    /// The shard that sent it.
    pub origin: u8,
    /// The hop it came by.
    pub came: Step,
    /// The port that it came by, to which it returns the credits of the buffer that it holds.
    pub credited: Place,
    /// Where packets wait at the inputs of switches: the hop that it waits to take.
    pub next_step: Step,
    /// What an adaptive routing has noted.
    pub note: u32,
}

impl Packet {
    /// From the instant at which it was offered to the NIC's port to that of its delivery, once that is known.
    #[inline]
    pub fn latency(&self) -> Picoseconds {
        Picoseconds(self.time - self.offered)
    }
}

const _: () = assert!(size_of::<Packet>() == 64 && size_of::<Message>() == 64);
