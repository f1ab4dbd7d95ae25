//! Operations in phases of messages, as collectives are: what a rank has yet to do of one, and how a phase starts.

use std::sync::Arc;

use super::collectives::{Algorithm, Call, Phase};
use super::creation::After;
use super::matching::Pattern;
use super::messaging::Messaging;
use super::transfer::Send;
use crate::ids::Rank;
use crate::program::{CommHandle, SendMode, Tag, WindowHandle};

/// An operation that a rank is in.
#[derive(Clone)]
pub(super) struct Running {
    pub plan: Plan,
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
    pub after: After,
}

/// Where its phases come from.
#[derive(Clone)]
pub(super) enum Plan {
    /// The schedule of a collective's algorithm.
    Algorithm(&'static Algorithm, Call),
    /// One phase, given.
    Once(Phase),
}

/// The communicator, or the window, that an operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Communicator(CommHandle),
    Window(WindowHandle),
}

impl Running {
    /// Messages that the ranks need not agree on.
    pub fn signals(plan: Plan, scope: Scope, (context, tag): (u32, Tag), members: Arc<[u32]>) -> Self {
        let after = After::Nothing;
        Self { plan, phase: 0, combining: 0, scope, context, tag, number: None, members, after }
    }

    /// Goes on to the next phase in which there is something to do. False when there is none.
    pub fn next_phase(&mut self, phase: &mut Phase) -> bool {
        match &mut self.plan {
            Plan::Algorithm(algorithm, call) => {
                while algorithm.phase(call, self.phase, phase) {
                    self.phase += 1;
                    if !phase.is_empty() {
                        return true;
                    }
                }
                false
            }
            Plan::Once(only) => {
                *phase = std::mem::take(only);
                !phase.is_empty()
            }
        }
    }

    /// Whether its messages are those of a collective; else they are like point-to-point messages that are sent eagerly.
    fn is_collective(&self) -> bool {
        self.number.is_some()
    }
}

impl Messaging {
    /// Posts a phase's receives and starts its sends one after another. The requests are added to `slots`. Returns when the
    /// last send has been handed over.
    pub(super) fn start_phase(
        &mut self,
        rank: u32,
        running: &Running,
        phase: &Phase,
        now: u64,
        slots: &mut Vec<u32>,
    ) -> u64 {
        let Running { tag, ref members, .. } = *running;
        let collective = running.is_collective();
        let context = running.context + u32::from(collective);
        for source in &phase.receives {
            let pattern = Pattern { context, source: Some(members[source.index()]), tag: Some(tag) };
            slots.extend(self.post(rank, pattern, None, now));
        }
        let mut handed_at = now;
        for (to, bytes) in &phase.sends {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead.0;
            let send = Send {
                from: rank,
                to: Rank(members[to.index()]),
                bytes: *bytes,
                tag,
                context,
                name: None,
                eager: !collective || self.is_eager(*bytes, SendMode::Standard),
                collective,
                called_at,
                handed_at,
            };
            slots.extend(self.send(&send));
        }
        handed_at
    }
}
