//! Indices of the engine. Hosts and ports have numbers in their shard, which with one shard are their ids: types tell
//! them from ids and from each other.

use crate::kernel::{Index, NONE};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub(super) struct $name(pub u32);

        #[allow(dead_code, reason = "the same for all indices")]
        impl $name {
            /// None of them.
            pub const NONE: Self = Self(NONE);

            /// Whether it is one of them.
            #[inline(always)]
            pub const fn is_some(self) -> bool {
                self.0 != NONE
            }

            /// Whether it is none of them.
            #[inline(always)]
            pub const fn is_none(self) -> bool {
                self.0 == NONE
            }

            /// Its place in a table.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl Index for $name {
            #[inline(always)]
            fn from_number(number: u32) -> Self {
                Self(number)
            }

            #[inline(always)]
            fn number(self) -> u32 {
                self.0
            }
        }
    };
}

index!(
    /// A host of the shard.
    HostIdx
);
index!(
    /// An output port of the shard, which sends on one link. Those of NICs come first.
    PortIdx
);
index!(
    /// A packet in flight.
    PacketIdx
);
index!(
    /// A message of several packets in flight.
    MessageIdx
);
index!(
    /// Telemetry of a link that a packet has started on.
    TelemetryIdx
);
index!(
    /// A queue pair with messages to send.
    PairIdx
);

/// A lane of a port: a virtual lane and one of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(super) struct LaneIdx(pub u8);

impl LaneIdx {
    /// Its place among the lanes of a port.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The set of it alone.
    #[inline(always)]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }

    /// The first of a set that is not empty.
    #[inline(always)]
    pub const fn first_of(set: u64) -> Self {
        debug_assert!(set != 0, "invariant: a set with a lane");
        #[allow(clippy::cast_possible_truncation, reason = "below 64")]
        Self(set.trailing_zeros() as u8)
    }
}
