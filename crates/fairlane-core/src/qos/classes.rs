//! Traffic classes: messages by job, communicator, operation and payload. The first class of the list that selects a message is
//! the message's.

use std::ops::RangeInclusive;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;
use crate::ids::ServiceLevel;

/// Name of the communicator of all ranks of a job.
pub const WORLD: &str = "world";

/// Name that stands for all collectives.
const COLLECTIVE: &str = "collective";

/// The operation that a message belongs to. The value has four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Sends, and the messages of post and complete.
    PointToPoint,
    /// Operations and locks of windows.
    OneSided,
    /// MPI_Barrier, MPI_Win_fence, MPI_Win_free.
    Barrier,
    /// MPI_Bcast.
    Bcast,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    Allreduce,
    /// MPI_Gather.
    Gather,
    /// MPI_Scatter.
    Scatter,
    /// MPI_Allgather.
    Allgather,
    /// MPI_Alltoall.
    Alltoall,
    /// MPI_Reduce_scatter.
    ReduceScatter,
    /// MPI_Scan, MPI_Exscan.
    Scan,
    /// MPI_Neighbor_allgather.
    NeighborAllgather,
    /// MPI_Neighbor_alltoall.
    NeighborAlltoall,
}

impl Operation {
    /// Every operation with its name in scenario files, in the order of declaration.
    pub const ALL: [(Self, &str); 14] = [
        (Self::PointToPoint, "point_to_point"),
        (Self::OneSided, "one_sided"),
        (Self::Barrier, "barrier"),
        (Self::Bcast, "bcast"),
        (Self::Reduce, "reduce"),
        (Self::Allreduce, "allreduce"),
        (Self::Gather, "gather"),
        (Self::Scatter, "scatter"),
        (Self::Allgather, "allgather"),
        (Self::Alltoall, "alltoall"),
        (Self::ReduceScatter, "reduce_scatter"),
        (Self::Scan, "scan"),
        (Self::NeighborAllgather, "neighbor_allgather"),
        (Self::NeighborAlltoall, "neighbor_alltoall"),
    ];

    /// The operation with this value; point-to-point for values that none has.
    #[must_use]
    pub fn of(value: u8) -> Self {
        Self::ALL.get(usize::from(value)).map_or(Self::PointToPoint, |(operation, _)| *operation)
    }

    /// The operations that a name stands for, as bits: one, or all collectives.
    fn named(name: &str) -> Result<u16, BuildError> {
        if name == COLLECTIVE {
            return Ok(((1 << Self::ALL.len()) - 1) & !(Self::PointToPoint.bit() | Self::OneSided.bit()));
        }
        let mut names = Self::ALL.iter();
        let known = names.find_map(|(operation, known)| (*known == name).then(|| operation.bit()));
        known.ok_or_else(|| BuildError::UnknownName {
            kind: "operation",
            given: name.to_owned(),
            allowed: std::iter::once(COLLECTIVE).chain(Self::ALL.map(|(_, name)| name)).map(str::to_owned).collect(),
        })
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A traffic class: the messages that all of its selectors select. A selector that is absent selects every message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Its name.
    pub name: String,
    /// Names of jobs.
    #[serde(default)]
    pub jobs: Option<Vec<String>>,
    /// Names of communicators; "world": that of all ranks of a job.
    #[serde(default)]
    pub communicators: Option<Vec<String>>,
    /// "point_to_point", "one_sided", "collective", or a collective by name.
    #[serde(default)]
    pub operations: Option<Vec<String>>,
    /// Payload of more bytes.
    #[serde(default)]
    pub above: Option<u64>,
    /// Payload of at most so many bytes.
    #[serde(default)]
    pub up_to: Option<u64>,
    /// The service level of its messages.
    #[serde(default)]
    pub service_level: Option<u8>,
}

/// A set of classes, as bits.
pub type ClassSet = u64;

/// Maximum number of classes: the bits of a [`ClassSet`].
pub const MAX_CLASSES: usize = 64;

/// A class as messages are compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub name: Arc<str>,
    jobs: Option<Vec<String>>,
    communicators: Option<Vec<String>>,
    operations: u16,
    payload: RangeInclusive<u64>,
    pub level: Option<ServiceLevel>,
}

impl Class {
    /// # Errors
    /// [`BuildError`] for an operation that does not exist.
    pub fn new(spec: ClassSpec, level: Option<ServiceLevel>) -> Result<Self, BuildError> {
        let ClassSpec { name, jobs, communicators, operations, above, up_to, .. } = spec;
        let operations = match &operations {
            None => u16::MAX,
            Some(names) => names.iter().try_fold(0, |bits, name| Operation::named(name).map(|more| bits | more))?,
        };
        let payload = above.map_or(0, |above| above.saturating_add(1))..=up_to.unwrap_or(u64::MAX);
        Ok(Self { name: name.into(), jobs, communicators, operations, payload, level })
    }

    pub fn has_job(&self, name: &str) -> bool {
        self.jobs.as_ref().is_none_or(|jobs| jobs.iter().any(|job| job == name))
    }

    /// Whether it selects the messages of a communicator, which may have no name.
    pub fn has_communicator(&self, name: Option<&str>) -> bool {
        let Some(names) = &self.communicators else { return true };
        name.is_some_and(|name| names.iter().any(|known| known == name))
    }

    pub fn has_message(&self, operation: Operation, payload: u64) -> bool {
        self.operations & operation.bit() != 0 && self.payload.contains(&payload)
    }
}
