//! The state of ports and their lanes.

use crate::ids::TrafficId;
use crate::network::credits::Credits;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::observe::Waiters;
use crate::units::{Instant, Picoseconds};

/// The kinds of port.
pub(in crate::network) mod kind {
    /// A NIC's.
    pub const NIC: u8 = 0;
    /// A switch's towards a switch.
    pub const TO_SWITCH: u8 = 1;
    /// A switch's towards a host.
    pub const TO_HOST: u8 = 2;
    /// An input-queued switch's, whose queues are output buffers.
    pub const BUFFERED: u8 = 3;
}

/// The state of a port. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(in crate::network) struct Port {
    /// The link carries a packet until then. While the port is stalled: the instant up to which its idle time has been
    /// accounted for.
    pub busy_until: Instant,
    /// Time in which the link has carried packets.
    pub active: Picoseconds,
    /// Time in which it was idle although packets waited.
    pub idle_stalled: Picoseconds,
    /// The packets that wait, by job. Kept only if counters are.
    pub waiters: Waiters,
    /// Lanes whose queue is not empty.
    pub waiting: u64,
    /// Its [`Wire`](crate::network::conditions::Wire).
    pub wire: u32,
    /// The job of the packet that the link carries, or carried last.
    pub traffic: TrafficId,
    /// Idle, with packets that lack credits.
    pub stalled: bool,
    /// A set: [`DOWN`], [`UNCHARGED`].
    pub unusual: u8,
}

/// The link is down.
pub(in crate::network) const DOWN: u8 = 1;
/// A stall has not been charged yet: see [`CreditReturns::uncharged`](crate::network::credits::CreditReturns::uncharged).
pub(in crate::network) const UNCHARGED: u8 = 2;

impl Port {
    pub fn new(wire: u32) -> Self {
        Self {
            busy_until: Instant::ZERO,
            active: Picoseconds::ZERO,
            idle_stalled: Picoseconds::ZERO,
            waiters: Waiters::default(),
            waiting: 0,
            wire,
            traffic: TrafficId(0),
            stalled: false,
            unusual: 0,
        }
    }
}

/// A lane of a port: its queue, its credits, and what is counted of it. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(in crate::network) struct Lane {
    pub head: PacketIdx,
    pub tail: PacketIdx,
    pub credits: Credits,
    pub depth: u32,
    pub max_depth: u32,
    pub packets: u64,
    pub bytes: u64,
    /// Sum of the waiting times of its packets.
    pub waited: Picoseconds,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: Picoseconds,
}

const _: () = assert!(size_of::<Port>() == 64 && size_of::<Lane>() == 64);

impl Lane {
    pub const fn new(buffer: u32) -> Self {
        Self {
            head: PacketIdx::NONE,
            tail: PacketIdx::NONE,
            credits: Credits::new(buffer),
            depth: 0,
            max_depth: 0,
            packets: 0,
            bytes: 0,
            waited: Picoseconds::ZERO,
            stalled: Picoseconds::ZERO,
        }
    }
}

/// State of a lane of a switch's output for marks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct LaneMarking {
    /// Bytes in its queue.
    pub queued: u64,
    /// The last instant at which the lane was known to lack credits, ps.
    pub short_until: Instant,
    /// At its last decision the lane lacked credits.
    pub short: bool,
    /// The lane has lacked credits before.
    pub was_short: bool,
}

/// An arrival at a port: time, order among those of one time, what arrives.
pub(in crate::network) type Arrival = (Instant, u64, PacketIdx);

/// The lanes of a set.
pub(in crate::network) fn each_lane(mut set: u64) -> impl Iterator<Item = LaneIdx> {
    std::iter::from_fn(move || {
        let lane = (set != 0).then(|| LaneIdx::first_of(set));
        set &= set.wrapping_sub(1);
        lane
    })
}
