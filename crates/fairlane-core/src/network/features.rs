//! Instances of the engine, and the features of a network that they are compiled for.
//! [`Config::has`](super::config::Config::has) is asked once a run and answered when the engine is compiled, where an instance is
//! [`Instance::PLAIN`].

/// Properties of a run for which an instance of the engine is compiled.
pub(super) trait Instance {
    /// Counters of ports and lanes are kept.
    const COUNTERS: bool;

    /// The network has none of [`Features`].
    const PLAIN: bool;
}

/// An instance with or without these.
pub(super) struct Compiled<const COUNTERS: bool, const PLAIN: bool>;

impl<const COUNTERS: bool, const PLAIN: bool> Instance for Compiled<COUNTERS, PLAIN> {
    const COUNTERS: bool = COUNTERS;
    const PLAIN: bool = PLAIN;
}

/// The features that a network has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a set, read by name")]
pub(super) struct Features {
    /// NICs can hold packets back: some transport does ([`Transport::paces`](super::transport::Transport::paces)), or they go back N.
    pub paces: bool,
    /// NICs answer packets: some transport has [`Feedback`](super::transport::Feedback), or receivers discard packets after a gap.
    pub controls: bool,
    /// Some transport has switches mark packets.
    pub marks: bool,
    /// Some transport has switches write telemetry into packets.
    pub telemetry: bool,
    /// The bytes in the queues of switches are counted: packets are marked, measured, or lost at full queues.
    pub measures_queues: bool,
    /// Some lane is lossy.
    pub lossy: bool,
    /// Packets can be lost: a lane is lossy, or links go down.
    pub loses: bool,
    /// Some link has errors.
    pub errors: bool,
    /// The lanes of a port share a part of its memory.
    pub pool: bool,
    /// Some lanes have priority flow control.
    pub pfc: bool,
    /// Packets wait at inputs of switches.
    pub input_queued: bool,
    /// A packet can join a queue later than its head arrives: links differ in bandwidth, or packets are stored.
    pub late: bool,
    /// Adapters wait between two messages.
    pub gaps: bool,
    /// Messages of an adapter do not all take turns: [`Turns`](super::Turns).
    pub pairs: bool,
    /// Records of single packets are kept: departures, or waiting by upstream link.
    pub details: bool,
    /// Packets are counted by class, so that a [`TrafficId`](crate::ids::TrafficId) is not the number of a job.
    pub classes: bool,
}

impl Features {
    /// Those of a plain network.
    pub const NONE: Self = Self {
        paces: false,
        controls: false,
        marks: false,
        telemetry: false,
        measures_queues: false,
        lossy: false,
        loses: false,
        errors: false,
        pool: false,
        pfc: false,
        input_queued: false,
        late: false,
        gaps: false,
        pairs: false,
        details: false,
        classes: false,
    };

    /// Whether NICs keep more of packets than what is in them: see
    /// [`AtSource`](super::packet::AtSource).
    #[inline(always)]
    pub const fn keeps_at_source(self) -> bool {
        self.paces || self.controls || self.loses || self.pairs
    }

    /// Whether there are none.
    pub fn is_plain(self) -> bool {
        self == Self::NONE
    }
}
