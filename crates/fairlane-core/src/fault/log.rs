//! Log of route recomputations and failed jobs.

use crate::ids::{HostId, JobId};
use crate::units::Instant;

/// A packet that has been given up, by which its job has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenUp {
    /// When its last timeout passes; once the job has failed, when its ranks were stopped.
    pub at: Instant,
    /// Its job.
    pub job: JobId,
    /// The host that sent it.
    pub from: HostId,
    /// The host that it was for.
    pub to: HostId,
}

/// New routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Packets that start from then on take them.
    pub at: Instant,
    /// The routing that was built; nothing if none fits what is left of the fabric, and the old routes stay.
    pub routing: Option<String>,
    /// Why it is not the scenario's.
    pub reason: Option<String>,
    /// Links that are down.
    pub down: usize,
    /// The hosts that are cut off from most others.
    pub cut_off: Vec<HostId>,
}

/// The effects of faults on the fabric and on jobs.
#[derive(Clone, Debug, Default)]
pub struct FaultLog {
    /// When routes were computed anew.
    pub sweeps: Vec<Sweep>,
    /// The jobs that have failed, each with the packet that was given up first.
    pub failures: Vec<GivenUp>,
}
