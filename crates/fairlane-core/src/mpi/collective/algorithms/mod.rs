//! Collectives: schedules of point-to-point messages.
//!
//! An algorithm is one file that exports an [`Algorithm`] in [`TABLE`]. A schedule is a sequence of phases; in a
//! phase a rank posts its receives, starts its sends, waits for all of them, and then combines what it must. Phases
//! are asked for one at a time, so a schedule of ten thousand phases costs no memory.
//!
//! [`Preferences`] picks the algorithm as MPICH does by default, unless one is preferred by name. What MPICH does within a host
//! only (shared memory, two-level schedules) and the pipelining of a ring's blocks are left out, and so are copies
//! within a rank's memory.

mod allgather_bruck;
mod allgather_neighbor_exchange;
mod allgather_recursive_doubling;
mod allgather_ring;
mod allreduce_rabenseifner;
mod allreduce_recursive_doubling;
mod allreduce_ring;
mod alltoall_bruck;
mod alltoall_linear;
mod alltoall_pairwise;
mod alltoall_scattered;
mod barrier_dissemination;
mod barrier_linear;
mod bcast_binomial;
mod bcast_linear;
mod bcast_scatter_recursive_doubling;
mod bcast_scatter_ring;
mod blocks;
mod call;
mod choice;
mod fold;
mod gather_binomial;
mod gather_linear;
#[cfg(test)]
mod laws;
mod pattern;
mod reduce_binomial;
mod reduce_linear;
mod reduce_rabenseifner;
mod reduce_scatter_pairwise;
mod reduce_scatter_recursive_halving;
mod reduce_scatter_ring;
mod scan_linear;
mod scan_recursive_doubling;
mod scatter_binomial;
mod scatter_linear;
#[cfg(test)]
pub(in crate::mpi::collective) mod trial;

pub(in crate::mpi) use blocks::Blocks;
pub use call::{Call, Phase};
pub use choice::Preferences;

use crate::error::BuildError;
use crate::program::CollectiveKind;
use crate::table::{Item, Kind, NoParams, Table};

/// The kind of entry that algorithms of collectives are.
#[derive(Debug)]
pub enum Collectives {}

/// A way to carry out one kind of collective. Its name in scenario files is unique within the kind; its summary has its source.
pub type Algorithm = Item<Collectives>;

/// The operation of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The kind of collective.
    pub kind: CollectiveKind,
    /// Whether it can carry out this call. The answer is the same at every member.
    pub fits: fn(&Call) -> bool,
    /// Adds phase `k` of the call to an empty phase, or says that the schedule has no such phase.
    pub schedule: fn(&Call, u32, &mut Phase) -> bool,
}

impl Schedule {
    /// The algorithm of this name.
    #[must_use]
    pub const fn named(self, name: &'static str, summary: &'static str) -> Algorithm {
        Algorithm { name, summary, schema: NoParams::schema, build: self }
    }
}

impl Algorithm {
    /// Writes phase `k`, from 0, of the rank's schedule into `phase`, over what was there. False when the schedule has
    /// ended before; `phase` is empty then.
    ///
    /// A pure function of `call` and `k`: phases may be asked for in any order and more than once. A phase may be
    /// empty before the end. A communicator of one rank has no phases. `call` must fit and pass [`Call::check`].
    pub fn phase(&self, call: &Call, k: u32, phase: &mut Phase) -> bool {
        phase.clear();
        call.size > 1 && (self.build.schedule)(call, k, phase)
    }
}

impl Kind for Collectives {
    const KIND: &'static str = "collective algorithm";
    const PATH: &'static str = "mpi.collectives";
    const BUILT_IN: &'static [Algorithm] = TABLE;
    type Given<'a> = ();
    type Built = &'static Algorithm;
    type Build = Schedule;

    fn build(
        entry: &'static Algorithm,
        _table: &Table<Self>,
        params: &serde_json::Value,
        (): (),
    ) -> Result<&'static Algorithm, BuildError> {
        NoParams::check(Self::PATH, params).map(|()| entry)
    }

    fn scope(entry: &Algorithm) -> &'static str {
        entry.build.kind.name()
    }

    fn details(entry: &Algorithm) -> Vec<(&'static str, serde_json::Value)> {
        vec![("kind", entry.build.kind.name().into())]
    }
}

/// Every built-in algorithm, by kind.
pub const TABLE: &[Algorithm] = &[
    barrier_dissemination::ENTRY,
    barrier_linear::ENTRY,
    bcast_binomial::ENTRY,
    bcast_scatter_recursive_doubling::ENTRY,
    bcast_scatter_ring::ENTRY,
    bcast_linear::ENTRY,
    reduce_binomial::ENTRY,
    reduce_rabenseifner::ENTRY,
    reduce_linear::ENTRY,
    allreduce_recursive_doubling::ENTRY,
    allreduce_rabenseifner::ENTRY,
    allreduce_ring::ENTRY,
    gather_binomial::ENTRY,
    gather_linear::ENTRY,
    scatter_binomial::ENTRY,
    scatter_linear::ENTRY,
    allgather_recursive_doubling::ENTRY,
    allgather_bruck::ENTRY,
    allgather_ring::ENTRY,
    allgather_neighbor_exchange::ENTRY,
    alltoall_bruck::ENTRY,
    alltoall_scattered::ENTRY,
    alltoall_pairwise::ENTRY,
    alltoall_linear::ENTRY,
    reduce_scatter_recursive_halving::ENTRY,
    reduce_scatter_pairwise::ENTRY,
    reduce_scatter_ring::ENTRY,
    scan_recursive_doubling::ENTRY,
    scan_linear::ENTRY,
];
