//! Arbiters: which virtual lane a free port serves next.
//!
//! An arbiter is one file that exports an [`Entry`]; [`TABLE`] lists them. One [`Arbiter`] holds the tables and serves every port
//! of the fabric; what differs from port to port is its [`Arbiter::State`]. [`Ports`] keeps that of each port.

mod oldest_first;
mod strict_priority;
mod vlarb;
mod weighted_round_robin;

use std::sync::Arc;

use dyn_clone::DynClone;

use crate::error::BuildError;
use crate::ids::VirtualLane;
use crate::kernel::prefetch_at;
use crate::table::{Constructor, Item, Kind, Table};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// At most this many virtual lanes a port.
pub const MAX_VIRTUAL_LANES: usize = 32;

/// At most this many lanes a port: pairs of a virtual lane and a virtual channel, each with a queue of its own.
pub const MAX_LANES: usize = 64;

/// A set of virtual lanes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lanes(pub u32);

impl Lanes {
    /// Whether the set is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `lane` is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, lane: VirtualLane) -> bool {
        self.0 >> lane.0 & 1 == 1
    }

    /// The lanes of the set, in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = VirtualLane> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            #[allow(clippy::cast_possible_truncation, reason = "below 32")]
            let lane = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
            (usize::from(lane) < MAX_VIRTUAL_LANES).then_some(VirtualLane(lane))
        })
    }

    /// The first lane of the set at or after `start`, cyclically. `None` if the set is empty.
    #[must_use]
    #[inline]
    pub const fn next_from(self, start: VirtualLane) -> Option<VirtualLane> {
        if self.0 == 0 {
            return None;
        }
        let behind = if start.0 as usize >= MAX_VIRTUAL_LANES { 0 } else { self.0 >> start.0 << start.0 };
        let set = if behind == 0 { self.0 } else { behind };
        #[allow(clippy::cast_possible_truncation, reason = "below 32")]
        Some(VirtualLane(set.trailing_zeros() as u8))
    }
}

/// The queues of a port, for an arbiter that looks at them: by virtual lane, over all its virtual channels. At a NIC a
/// queue holds one packet of each message: bytes are those of the rest of its message, too, and its age counts from its offer.
pub trait Queues {
    /// Packets that wait.
    fn packets(&self, lane: VirtualLane) -> u32;

    /// Bytes on the wire of the packets that wait. Walks through the queue.
    fn bytes(&self, lane: VirtualLane) -> Bytes;

    /// For how long the first packet has waited in the queue; of several virtual channels the one that has waited longest.
    /// Zero where none waits.
    fn age(&self, lane: VirtualLane) -> Picoseconds;

    /// How long ago the packet was injected (offered to the port of the NIC that sent it) that would be sent if the lane were
    /// picked: the first one, and of several virtual channels that are ready of the one that has waited longest.
    fn since_injection(&self, lane: VirtualLane) -> Picoseconds;
}

/// The queues of a port at which a packet of this many bytes has just come, on a lane that alone is ready.
pub struct Single(pub Bytes);

impl Queues for Single {
    fn packets(&self, _lane: VirtualLane) -> u32 {
        1
    }

    fn bytes(&self, _lane: VirtualLane) -> Bytes {
        self.0
    }

    fn age(&self, _lane: VirtualLane) -> Picoseconds {
        Picoseconds(0)
    }

    fn since_injection(&self, _lane: VirtualLane) -> Picoseconds {
        Picoseconds(0)
    }
}

/// Shares a port's link among its virtual lanes.
pub trait Arbiter: Send + Sync + 'static {
    /// The state of a port.
    type State: Clone + Send + Sync;

    /// The state of a port whose link has this bandwidth, at the start and after a change of weights or of the bandwidth.
    fn begin(&self, bandwidth: BitsPerSec) -> Self::State;

    /// The lane to serve at `now`. `ready` is not empty: these lanes have a packet and credits enough for it.
    fn pick(&self, state: &mut Self::State, ready: Lanes, queues: &dyn Queues, now: Instant) -> VirtualLane;

    /// [`Arbiter::pick`] and [`Arbiter::sent`] in one, where only `lane` is ready. The queues are not looked at then.
    fn serve_alone(&self, state: &mut Self::State, lane: VirtualLane, bytes: Bytes, now: Instant) {
        let picked = self.pick(state, Lanes(1 << lane.0), &Single(bytes), now);
        self.sent(state, picked, bytes, now);
    }

    /// Accounts the packet that the picked lane sends, `bytes` on the wire, starting at `now`.
    fn sent(&self, state: &mut Self::State, lane: VirtualLane, bytes: Bytes, now: Instant);
}

/// An arbiter at ports, whichever it is. Ports are numbered from 0.
pub trait Arbitration: DynClone + Send + Sync {
    /// The arbiter at other ports: those whose links have these bandwidths.
    fn at(&self, bandwidths: &[BitsPerSec]) -> Box<dyn Arbitration>;

    /// The state of a port begins anew; its link has this bandwidth.
    fn begin(&mut self, port: usize, bandwidth: BitsPerSec);

    /// [`Arbiter::pick`] at a port.
    fn pick(&mut self, port: usize, ready: Lanes, queues: &dyn Queues, now: Instant) -> VirtualLane;

    /// [`Arbiter::serve_alone`] at a port.
    fn serve_alone(&mut self, port: usize, lane: VirtualLane, bytes: Bytes, now: Instant);

    /// [`Arbiter::sent`] at a port.
    fn sent(&mut self, port: usize, lane: VirtualLane, bytes: Bytes, now: Instant);

    /// Fetches the state of a port, which will be needed soon.
    fn prefetch(&self, port: usize);

    /// The size of the state of a port.
    fn state_size(&self) -> usize;
}

dyn_clone::clone_trait_object!(Arbitration);

/// An arbiter with its state of each port.
pub struct Ports<A: Arbiter> {
    arbiter: Arc<A>,
    states: Vec<A::State>,
}

impl<A: Arbiter> Ports<A> {
    /// An arbiter that is at no port yet.
    pub fn none(arbiter: A) -> Box<dyn Arbitration> {
        Box::new(Self { arbiter: Arc::new(arbiter), states: Vec::new() })
    }
}

impl<A: Arbiter> Clone for Ports<A> {
    fn clone(&self) -> Self {
        Self { arbiter: Arc::clone(&self.arbiter), states: self.states.clone() }
    }
}

impl<A: Arbiter> Arbitration for Ports<A> {
    fn at(&self, bandwidths: &[BitsPerSec]) -> Box<dyn Arbitration> {
        let states = bandwidths.iter().map(|bandwidth| self.arbiter.begin(*bandwidth)).collect();
        Box::new(Self { arbiter: Arc::clone(&self.arbiter), states })
    }

    fn begin(&mut self, port: usize, bandwidth: BitsPerSec) {
        self.states[port] = self.arbiter.begin(bandwidth);
    }

    fn pick(&mut self, port: usize, ready: Lanes, queues: &dyn Queues, now: Instant) -> VirtualLane {
        self.arbiter.pick(&mut self.states[port], ready, queues, now)
    }

    fn serve_alone(&mut self, port: usize, lane: VirtualLane, bytes: Bytes, now: Instant) {
        self.arbiter.serve_alone(&mut self.states[port], lane, bytes, now);
    }

    fn sent(&mut self, port: usize, lane: VirtualLane, bytes: Bytes, now: Instant) {
        self.arbiter.sent(&mut self.states[port], lane, bytes, now);
    }

    fn prefetch(&self, port: usize) {
        prefetch_at(&self.states, port);
    }

    fn state_size(&self) -> usize {
        size_of::<A::State>()
    }
}

/// The kind of entry that arbiters are: each is built for ports of some number of virtual lanes.
#[derive(Debug)]
pub enum Arbiters {}

/// An arbiter that can be asked for by name.
pub type Entry = Item<Arbiters>;

/// The built-in arbiters.
pub const TABLE: &[Entry] = &[vlarb::ENTRY, weighted_round_robin::ENTRY, strict_priority::ENTRY, oldest_first::ENTRY];

impl Kind for Arbiters {
    const KIND: &'static str = "arbiter";
    const PATH: &'static str = "qos.arbiter";
    const BUILT_IN: &'static [Entry] = TABLE;
    type Given<'a> = u8;
    type Built = Box<dyn Arbitration>;
    type Build = Constructor<Self>;

    fn build(
        entry: &'static Entry,
        _table: &Table<Arbiters>,
        params: &serde_json::Value,
        given: u8,
    ) -> Result<Box<dyn Arbitration>, BuildError> {
        (entry.build)(params, given)
    }
}

/// Builds a built-in arbiter; see [`Table::build`].
///
/// # Errors
/// [`BuildError`] when the name or a parameter is wrong.
pub fn build(name: &str, params: &serde_json::Value, lanes: u8) -> Result<Box<dyn Arbitration>, BuildError> {
    Table::<Arbiters>::default().build(name, params, lanes)
}
