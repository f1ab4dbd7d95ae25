//! What a run needs of the engine besides carrying packets. [`Config::has`] decides it once a run: where a probe is
//! [`Probe::PLAIN`], every question is answered when the engine is compiled.

use super::Plan;
use super::config::Config;
use super::parameters::{Switching, Turns};
use super::probe::Probe;

/// The features that a network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a set, read by name")]
pub(super) struct Features {
    /// Some transport can hold packets back: [`Transport::paces`](super::transport::Transport::paces).
    pub paces: bool,
    /// Some transport has [`Feedback`](super::transport::Feedback).
    pub controls: bool,
    /// Some transport has switches mark packets.
    pub marks: bool,
    /// The bytes in the queues of switches are counted: packets are marked, or lost at full queues.
    pub measures_queues: bool,
    /// Some lane is lossy.
    pub lossy: bool,
    /// Packets can be lost: a lane is lossy, or links go down.
    pub loses: bool,
    /// Some link has errors.
    pub errors: bool,
    /// The lanes of a port share a part of its memory.
    pub pool: bool,
    /// Packets wait at inputs of switches.
    pub input_queued: bool,
    /// A packet can join a queue later than its head arrives: links differ in bandwidth, or packets are stored.
    pub late: bool,
    /// Adapters wait between two messages.
    pub gaps: bool,
    /// Messages of an adapter do not all take turns: [`Turns`].
    pub pairs: bool,
    /// Records of single packets are kept: departures, or waiting by upstream link.
    pub details: bool,
}

impl Features {
    /// Those of a plain network.
    pub const NONE: Self = Self {
        paces: false,
        controls: false,
        marks: false,
        measures_queues: false,
        lossy: false,
        loses: false,
        errors: false,
        pool: false,
        input_queued: false,
        late: false,
        gaps: false,
        pairs: false,
        details: false,
    };

    /// Those of a plan. What faults bring is added when they are expected.
    pub fn new(plan: &Plan, config: &Config) -> Self {
        let marks = config.feedback.iter().flatten().any(|feedback| feedback.marking.is_some());
        let lossy = !plan.lossy.is_empty();
        Self {
            paces: config.transports.iter().any(|transport| transport.paces()),
            controls: config.feedback.iter().any(Option::is_some),
            marks,
            measures_queues: marks || lossy,
            lossy,
            loses: lossy,
            errors: false,
            pool: config.pool.is_some(),
            input_queued: config.input_queued.is_some(),
            late: !config.one_rate || plan.parameters.switching == Switching::StoreAndForward,
            gaps: !config.gaps.is_empty(),
            pairs: plan.parameters.injection != Turns::Messages,
            details: plan.observe.onward_waiting || !plan.observe.departs().is_empty(),
        }
    }

    /// Whether there are none.
    pub fn is_plain(self) -> bool {
        self == Self::NONE
    }
}

impl Config {
    /// The features of the network, known when the engine is compiled if it has none.
    #[inline(always)]
    pub const fn has<P: Probe>(&self) -> Features {
        if P::PLAIN { Features::NONE } else { self.features }
    }
}
