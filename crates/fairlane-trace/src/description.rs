//! The contents of a trace, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A trace in numbers. Names are MPI's; counts are sums over all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// `DUMPI` or `OTF2`.
    pub format: String,
    /// The version of the format.
    pub version: String,
    /// The number of ranks.
    pub ranks: u32,
    /// Records of calls (DUMPI) or events (OTF2).
    pub events: u64,
    /// MPI calls by name.
    pub calls: BTreeMap<String, u64>,
    /// Other regions by name, how often they were entered (OTF2).
    pub regions: BTreeMap<String, u64>,
    /// Tests and probes that found nothing, by call; a part of [`Description::calls`]. For OTF2 only tests that record so.
    pub failed_polls: BTreeMap<String, u64>,
    /// Point-to-point messages sent; none to `MPI_PROC_NULL`.
    pub p2p_messages: u64,
    /// Their payload in bytes.
    pub p2p_bytes: u64,
    /// Receives posted with `MPI_ANY_SOURCE` (DUMPI; OTF2 does not record it).
    pub wildcard_receives: u64,
    /// Collective calls by name.
    pub collectives: BTreeMap<String, CollectiveTotals>,
    /// Communicators by what made them and their size, as `split(8)` (DUMPI), or by name and size (OTF2).
    pub communicators: BTreeMap<String, u64>,
    /// The same by kind, as [`crate::Iteration::Collective`] names it: what can bound iterations.
    pub iteration_collectives: BTreeMap<String, KindTotals>,
    /// Requests by what started them, as `send`, `receive`, `persistent send`.
    pub requests: BTreeMap<String, u64>,
    /// Windows of one-sided communication by what made them and the number of their ranks, as `create(8)` (DUMPI), or by
    /// name and size (OTF2).
    pub windows: BTreeMap<String, u64>,
    /// One-sided operations by kind, as `put`, `get`, `accumulate`.
    pub one_sided: BTreeMap<String, CollectiveTotals>,
    /// The calls that a simulation would refuse, the most frequent first; empty if the trace can be simulated.
    pub unsupported: Vec<Unsupported>,
    /// How many ranks never reach what [`crate::Options::iteration`] names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ranks_without_iterations: u32,
    /// How many ranks have neither computing nor communication: a trace with one cannot be repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ranks_without_operations: u32,
    /// When each iteration begins in rank 0, in seconds of wall time from its first record; none for passes, and without a
    /// wall clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iteration_starts: Vec<f64>,
    /// Point-to-point partners of a rank.
    pub neighbours: Neighbours,
    /// CPU time in seconds between leaving `MPI_Init` and entering `MPI_Finalize`, if the trace has a CPU clock.
    pub cpu_seconds: Option<f64>,
    /// The part of it inside MPI calls.
    pub cpu_seconds_in_mpi: Option<f64>,
    /// Wall time in seconds from the first to the last record, the longest of all ranks; 0 without a wall clock.
    pub duration_seconds: f64,
}

/// Calls of one collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveTotals {
    /// Calls, one for every rank that takes part.
    pub calls: u64,
    /// Bytes that the calls hand in: for DUMPI the send buffer, which bcast and scatter have at the root only, and
    /// alltoall and scatter once for every member; for OTF2 what the events call sent. Of one-sided operations the payload.
    pub bytes: u64,
}

/// Calls of one kind of collective, v-variants and non-blocking calls included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindTotals {
    /// Calls, one for every rank that takes part.
    pub calls: u64,
    /// How many ranks call it.
    pub ranks: u32,
}

/// Records that cannot be simulated, of one call and for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupported {
    /// The call, as `MPI_File_open`.
    pub call: String,
    /// How many of its calls.
    pub count: u64,
    /// How many ranks have such calls.
    pub ranks: u32,
    /// Why they cannot be simulated; numbers in it are those of the first such call.
    pub reason: String,
    /// The first rank that has one.
    pub first_rank: u32,
    /// The number of that rank's first such record, from 1.
    pub first_record: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How many other ranks a rank exchanges point-to-point messages with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Neighbours {
    /// The least of all ranks.
    pub min: u32,
    /// The mean over the ranks.
    pub mean: f64,
    /// The most of all ranks.
    pub max: u32,
}
