//! Active non-blocking operations, and the keys that order their steps.

use super::running::Running;
use crate::ids::Rank;

/// The non-blocking operations of a rank.
#[derive(Clone, Default)]
pub(in crate::mpi) struct Background {
    /// By number; `None` is free.
    pub operations: Vec<Option<Box<Operation>>>,
    /// How many have been begun: their order where they are due at the same instant.
    pub begun: u32,
}

/// An active non-blocking operation.
#[derive(Clone)]
pub(in crate::mpi) struct Operation {
    pub running: Running,
    /// Its name, as the program's calls have it.
    pub name: &'static str,
    /// The rank's request for it.
    pub request: u32,
    pub order: u32,
    /// Messages of this phase that are not complete.
    pub missing: u32,
    /// The requests of this phase with the partners, ranks of the communicator: first so many receives, then sends.
    pub awaits: Vec<(u32, Rank)>,
    pub receives: usize,
    /// When the last send of this phase is handed over.
    pub handed_at: u64,
    /// When the partner of the request that was complete last had done its part.
    pub partner_at: u64,
}

impl Background {
    pub fn insert(&mut self, operation: Operation) -> u32 {
        let operation = Some(Box::new(operation));
        let place = self.operations.iter().position(Option::is_none).unwrap_or(self.operations.len());
        match self.operations.get_mut(place) {
            Some(free) => *free = operation,
            None => self.operations.push(operation),
        }
        u32::try_from(place).expect("invariant: fewer than 2^32 operations")
    }
}

/// The key of a step of a rank's operation of this order, by which it is sorted among what is due at the same instant.
pub(in crate::mpi) fn step_key(rank: u32, order: u32) -> u64 {
    STEP | u64::from(rank) << ORDERS.count_ones() | u64::from(order)
}

/// The rank whose operation is due by a step of this key.
pub(in crate::mpi) const fn rank_of_step(key: u64) -> u32 {
    (key >> ORDERS.count_ones()) as u32
}

/// The order of an operation has so many bits set; it wraps.
pub(in crate::mpi) const ORDERS: u32 = (1 << 31) - 1;
/// Keys of steps are greater than those of transfers through memory.
const STEP: u64 = 1 << 63;
