//! Output ports: a queue for each lane, an arbiter, a transmitter.
//!
//! A port with something to do in a window is run through it alone, as an [`ActivePort`]: [`window`] is the loop, [`queue`]
//! what joins and leaves the queues, [`arbitrate`] the choice of a lane, [`transmit`] the start on the link, [`mark`] the marks of
//! congestion control.

mod arbitrate;
mod buffered;
mod mark;
mod queue;
mod transmit;
mod window;

pub(super) use mark::LaneMarking;
pub(super) use queue::Arrival;
pub(super) use window::Forwarded;

use super::config::Config;
use super::credits::Credits;
use super::in_flight::InFlight;
use super::probe::Probe;
use crate::kernel::NONE;
use crate::observe::Waiters;
use crate::qos::arbiter::State;

/// The kinds of port.
pub(super) mod kind {
    /// A NIC's, whose queues hold messages instead of packets.
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
pub(super) struct Port {
    /// The link carries a packet until then. While the port is stalled: the instant up to which its idle time has been
    /// accounted for.
    pub busy_until: u64,
    /// Time in which the link has carried packets.
    pub active: u64,
    /// Time in which it was idle although packets waited.
    pub idle_stalled: u64,
    /// The packets that wait, by job. Kept only if counters are.
    pub waiters: Waiters,
    /// Lanes whose queue is not empty.
    pub waiting: u64,
    /// Its [`Wire`](super::link::Wire).
    pub wire: u32,
    /// The job of the packet that the link carries, or carried last.
    pub job: u16,
    /// Idle, with packets that lack credits.
    pub stalled: bool,
    /// A set: [`DOWN`], [`UNCHARGED`].
    pub unusual: u8,
}

/// The link is down.
pub(super) const DOWN: u8 = 1;
/// A stall has not been charged yet: see [`CreditReturns::uncharged`](super::credits::CreditReturns::uncharged).
pub(super) const UNCHARGED: u8 = 2;

impl Port {
    pub fn new(wire: u32) -> Self {
        Self {
            busy_until: 0,
            active: 0,
            idle_stalled: 0,
            waiters: Waiters::default(),
            waiting: 0,
            wire,
            job: 0,
            stalled: false,
            unusual: 0,
        }
    }
}

/// A lane of a port: its queue, its credits, and what is counted of it. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Lane {
    pub head: u32,
    pub tail: u32,
    pub credits: Credits,
    pub depth: u32,
    pub max_depth: u32,
    pub packets: u64,
    pub bytes: u64,
    /// Sum of the waiting times of its packets.
    pub waited: u64,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: u64,
}

const _: () = assert!(size_of::<Port>() == 64 && size_of::<Lane>() == 64);

impl Lane {
    pub const fn new(buffer: u32) -> Self {
        Self {
            head: NONE,
            tail: NONE,
            credits: Credits::new(buffer),
            depth: 0,
            max_depth: 0,
            packets: 0,
            bytes: 0,
            waited: 0,
            stalled: 0,
        }
    }
}

/// A port that runs through the open window, with all that it touches.
pub(super) struct ActivePort<'a, P: Probe, const KIND: u8> {
    pub number: u32,
    pub port: &'a mut Port,
    /// Of all ports; this one's begin at `base`.
    pub lanes: &'a mut [Lane],
    pub base: usize,
    /// When the open window opened.
    pub opening: u64,
    /// The arbiters' states, of all ports.
    pub states: &'a mut State,
    pub config: &'a Config,
    pub in_flight: &'a mut InFlight,
    pub probe: &'a mut P,
}

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// Whether the link is down.
    #[inline(always)]
    const fn down(&self) -> bool {
        self.config.has::<P>().loses && self.port.unusual & DOWN != 0
    }
}

/// The lanes of a set.
pub(super) fn each_lane(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lane < u64::BITS).then_some(lane as usize)
    })
}
