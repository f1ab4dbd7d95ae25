//! Names of things as types. An id is an index into a dense table of its kind.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a table of its kind.
            #[must_use]
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A machine with one or more network ports, on which ranks live.
    HostId(u32)
);
id!(
    /// A switch of the fabric.
    SwitchId(u32)
);
id!(
    /// One direction of a cable. The output port that feeds a link has the same id: every port sends on one link.
    LinkId(u32)
);
id!(
    /// A job of the simulation.
    JobId(u16)
);
id!(
    /// What the network counts packets for: a job's messages without a class, or those of one of its classes. The number of the job in
    /// a simulation without classes; see [`Levels::traffic`](crate::qos::levels::Levels::traffic).
    TrafficId(u16)
);
id!(
    /// A rank within its job (`MPI_COMM_WORLD` of the job).
    Rank(u32)
);
id!(
    /// A service level, 0 to 15.
    ServiceLevel(u8)
);
id!(
    /// A virtual lane: one queue of a port, with its own credits.
    VirtualLane(u8)
);

impl ServiceLevel {
    /// How many service levels there are (InfiniBand's four-bit SL field).
    pub const COUNT: usize = 16;
}
