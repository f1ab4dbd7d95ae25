//! Operations in phases that a rank is in: collectives, and what synchronises windows.

use std::ops::Range;
use std::sync::Arc;

use super::algorithms::{Algorithm, Call, Phase};
use super::nccl::Schedule;
use crate::ids::Rank;
use crate::program::{CommHandle, Tag, Topology, WindowHandle};

/// An operation that a rank is in.
#[derive(Clone)]
pub(in crate::mpi) struct Running {
    pub phases: PhaseSource,
    pub phase: u32,
    /// Time to combine what the last phase brought; spent once its messages have come.
    pub combining: u64,
    pub scope: Scope,
    /// The context of what it is over, and the tag of its messages.
    pub context: u32,
    pub tag: Tag,
    /// Its number among the collectives of its communicator; `None` if the ranks need not agree on it.
    pub number: Option<u64>,
    pub members: Arc<[u32]>,
    pub effect: Effect,
}

/// The lane is in the tag from this bit on: two collectives share a tag only if there are 2^16 others between them.
const LANE: u32 = 20;

/// Where its phases come from.
#[derive(Clone)]
pub(in crate::mpi) enum PhaseSource {
    /// The schedule of a collective's algorithm.
    Algorithm(&'static Algorithm, Call),
    /// A lane of a collective of NCCL; as begun, the first.
    Nccl(Box<Schedule>),
    /// One phase, given.
    Once(Phase),
}

/// The communicator, or the window, that an operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) enum Scope {
    Communicator(CommHandle),
    Window(WindowHandle),
}

/// The consequence of an operation, when its last phase is over.
#[derive(Clone)]
pub(in crate::mpi) enum Effect {
    Nothing,
    Dup {
        new: CommHandle,
    },
    Split {
        new: CommHandle,
        color: Option<i32>,
        key: i32,
    },
    Create {
        new: CommHandle,
        members: Arc<[Rank]>,
    },
    Topology {
        new: CommHandle,
        topology: Arc<Topology>,
    },
    /// The rank learns whether the burst is over.
    Burst,
    Window {
        win: WindowHandle,
    },
    FreeWindow {
        win: WindowHandle,
    },
    /// Locks of these targets of the operation's window are released.
    Release {
        targets: Range<u32>,
    },
}

impl Running {
    /// Messages that the ranks need not agree on.
    pub fn signals(phases: PhaseSource, scope: Scope, (context, tag): (u32, Tag), members: Arc<[u32]>) -> Self {
        let effect = Effect::Nothing;
        Self { phases, phase: 0, combining: 0, scope, context, tag, number: None, members, effect }
    }

    /// Advances to the next phase that is not empty. False when there is none.
    pub fn next_phase(&mut self, phase: &mut Phase) -> bool {
        match &mut self.phases {
            PhaseSource::Algorithm(algorithm, call) => {
                while algorithm.phase(call, self.phase, phase) {
                    self.phase += 1;
                    if !phase.is_empty() {
                        return true;
                    }
                }
                false
            }
            PhaseSource::Nccl(schedule) => {
                phase.clear();
                while schedule.phase(self.phase, phase) {
                    self.phase += 1;
                    if !phase.is_empty() {
                        return true;
                    }
                }
                false
            }
            PhaseSource::Once(only) => {
                *phase = std::mem::take(only);
                !phase.is_empty()
            }
        }
    }

    /// The lanes of a collective of NCCL, each an operation that makes progress by itself; none of other operations.
    pub fn lanes(&self) -> Vec<Self> {
        let PhaseSource::Nccl(schedule) = &self.phases else { return Vec::new() };
        let lane = |lane: u32| Self {
            phases: PhaseSource::Nccl(Box::new(schedule.in_lane(lane))),
            tag: self.tag ^ Tag::try_from(lane << LANE).unwrap_or(0),
            combining: schedule.launch(),
            ..self.clone()
        };
        (0..schedule.lanes()).map(lane).collect()
    }

    /// Whether its messages are those of a collective; else they are like point-to-point messages that are sent eagerly.
    pub fn is_collective(&self) -> bool {
        self.number.is_some()
    }
}
