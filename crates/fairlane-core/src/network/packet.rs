//! Messages, their packets, and their deliveries to hosts.

use super::index::{LaneIdx, MessageIdx, PacketIdx, PairIdx, PortIdx};
use crate::ids::{HostId, JobId, Rank, TrafficId, VirtualLane};
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
    /// The adapters that send and receive it: their places among the ports of their hosts.
    pub rails: [u8; 2],
    /// Its virtual lane.
    pub vl: VirtualLane,
    /// Its job.
    pub job: JobId,
    /// What it is counted for: its job, or a class of its job.
    pub traffic: TrafficId,
    /// The traffic kind it is counted for.
    pub kind: TrafficKind,
    /// The rank that sends it, in its job.
    pub sender: Rank,
    /// The rank that receives it, in its job.
    pub receiver: Rank,
    /// The caller's identifier, returned in the [`Delivery`].
    pub token: u32,
    /// A number of the caller's below 64, returned in the [`Delivery`].
    pub stage: u8,
    /// The receiving host runs when it is delivered, even if the host defers deliveries; see [`Pause`](super::Pause).
    pub urgent: bool,
}

/// A packet that has been delivered to its host: the first or the last of its message to arrive, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its tail arrived.
    pub at: Instant,
    /// The injection's token.
    pub token: u32,
    /// What the message is counted for.
    pub traffic: TrafficId,
    /// The injection's stage.
    pub stage: u8,
    /// It is the first packet of its message to arrive.
    pub first: bool,
    /// It is the last packet of its message to arrive: the message is complete.
    pub last: bool,
}

/// A message of several packets, from its injection to the delivery of its last packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Payload, bytes.
    pub bytes: u64,
    /// Payload of which no packet has been made yet, bytes.
    pub left: u64,
    /// Packets that have been made.
    pub made: u32,
    /// Packets not yet delivered.
    pub undelivered: u32,
    /// The injection's token.
    pub token: u32,
    /// A packet of it has been delivered.
    pub any_delivered: bool,
}

/// The stage of a message and two flags, in a byte, as each of its packets carries them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketFlags(u8);

impl PacketFlags {
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

    /// See [`Injection::urgent`].
    #[inline]
    pub const fn urgent(self) -> bool {
        self.0 & Self::URGENT != 0
    }
}

/// The message that a packet is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// It is all of a message with this token, which has no record.
    Whole(u32),
    /// A message of several packets, by its index in the shard that sent it.
    Part(MessageIdx),
}

/// A packet. One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Packet {
    /// From when its wait for the next link counts, ps: when it joins the queue that it is in or on its way to; in the output buffer
    /// of an input-queued switch earlier, by what it has waited at the input. At the end: when it is delivered.
    pub time: Instant,
    /// When it was offered to the NIC's port, ps.
    pub offered: Instant,
    /// The packet after it in the list or queue that it is in.
    pub next: PacketIdx,
    /// See [`Packet::owner`].
    pub owner: u32,
    /// On the wire.
    pub bytes: u32,
    /// The address of its destination, see [`Fabric::endpoint`](super::fabric::Fabric::endpoint).
    pub to: u32,
    /// The address of the adapter that sent it.
    pub source: u32,
    pub number: PacketNumber,
    pub traffic: TrafficId,
    pub kind: TrafficKind,
    pub vl: VirtualLane,
    /// The lane whose queue it is in or on its way to.
    pub lane: LaneIdx,
    /// The lane it took on the upstream link: the buffer that it occupies.
    pub held: LaneIdx,
    pub flags: PacketFlags,
    /// The hop over the upstream link.
    pub came: Step,
    /// The port of the upstream link, to which it returns the credits of the buffer that it occupies; see
    /// [`PortPlace`](super::partition::PortPlace).
    pub credited: PortIdx,
    /// At an input-queued switch: the next hop, chosen when it arrived.
    pub next_step: Step,
    /// See [`Visit::note`](crate::routing::Visit::note).
    pub note: u32,
}

impl Packet {
    /// Its message.
    #[inline(always)]
    pub const fn owner(&self) -> Owner {
        if self.flags.whole() { Owner::Whole(self.owner) } else { Owner::Part(MessageIdx(self.owner)) }
    }

    /// From its offer to the NIC's port to its delivery. Valid once it is on its way to its host.
    #[inline]
    pub fn latency(&self) -> Picoseconds {
        self.time - self.offered
    }
}

/// What the NIC that sends a packet keeps of it until it starts, if the network has
/// [`Features::keeps_at_source`](super::features::Features::keeps_at_source).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtSource {
    /// Order among the packets that are offered at one instant: the order in which they were made, then those that are sent again.
    pub order: u64,
    /// The queue pair of its message, if it has one; see [`queue_pairs`](super::nic::queue_pairs).
    pub pair: PairIdx,
    pub again: Resend,
}

/// Why a packet is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resend {
    /// It has not been sent before.
    #[default]
    None,
    /// It was lost, see [`loss`](super::loss).
    Lost,
    /// A switch has trimmed it.
    Trimmed,
    /// It was lost, and is given up.
    GivenUp,
}

const _: () = assert!(size_of::<Packet>() == 64 && size_of::<Message>() == 32);

/// A packet's place in its message, how often it has been lost, and the generation of routes that it takes, in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketNumber(u32);

impl PacketNumber {
    const PLACE_BITS: u32 = 25;
    const LOSS_BITS: u32 = 3;
    /// A message has fewer packets than this.
    pub const PLACES: u32 = 1 << Self::PLACE_BITS;
    /// The largest number of losses that can be counted.
    pub const MOST_LOSSES: u8 = (1 << Self::LOSS_BITS) - 1;
    /// How many generations of routes can be in use at a time.
    pub const GENERATIONS: usize = 1 << (u32::BITS - Self::PLACE_BITS - Self::LOSS_BITS);

    /// The packet in this place of its message.
    #[inline(always)]
    pub const fn new(place: u32) -> Self {
        Self(place)
    }

    /// A generation of routes, where numbers have it.
    pub fn routes(generation: usize) -> u32 {
        let generation = u32::try_from(generation % Self::GENERATIONS).expect("invariant: a few bits");
        generation << (Self::PLACE_BITS + Self::LOSS_BITS)
    }

    /// Its place in its message.
    #[inline(always)]
    pub const fn place(self) -> u32 {
        self.0 & (Self::PLACES - 1)
    }

    /// How often it has been lost.
    #[allow(clippy::cast_possible_truncation, reason = "three bits")]
    pub const fn losses(self) -> u8 {
        (self.0 >> Self::PLACE_BITS) as u8 & Self::MOST_LOSSES
    }

    /// The generation of routes that it takes.
    #[inline(always)]
    pub const fn generation(self) -> usize {
        (self.0 >> (Self::PLACE_BITS + Self::LOSS_BITS)) as usize
    }

    /// It is lost once more.
    pub const fn lost(self) -> Self {
        Self(self.0 + (1 << Self::PLACE_BITS))
    }

    /// It starts anew, on these routes.
    pub const fn on(self, routes: u32) -> Self {
        Self(self.0 & ((1 << (Self::PLACE_BITS + Self::LOSS_BITS)) - 1) | routes)
    }
}
