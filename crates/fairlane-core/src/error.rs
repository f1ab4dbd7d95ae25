//! Errors of the simulator, one type for each phase: reading a value, building a simulation, running it.
//!
//! The library never prints and never exits; whoever called it decides what to show.

use thiserror::Error;

use crate::ids::{JobId, LinkId, Rank, VirtualLane};
use crate::units::Instant;

/// The name in `allowed` that is nearest to `given`, if one is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(given: &str, allowed: &[&'a str]) -> Option<&'a str> {
    allowed
        .iter()
        .map(|name| (strsim::jaro_winkler(&given.to_lowercase(), &name.to_lowercase()), *name))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A simulation cannot be built from what was given.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// A name that no table knows.
    #[error("unknown {kind} {given:?}; allowed: {}{}", allowed.join(", "), suggestion(given, allowed))]
    UnknownName {
        /// The kind of entry that was looked up: "topology", "routing", "arbiter" ...
        kind: &'static str,
        /// The name given.
        given: String,
        /// Every name of the table.
        allowed: Vec<String>,
    },
    /// A name that a table has already.
    #[error("{kind} {name:?} is registered already ({known}); the one added ({added}) needs another name")]
    DuplicateName {
        /// The kind of entry that was added: "topology", "routing", "arbiter" ...
        kind: &'static str,
        /// The name of both.
        name: String,
        /// The summary of the entry that the table has.
        known: String,
        /// The summary of the entry that was to be added.
        added: String,
    },
    /// A parameter whose value is out of its range or contradicts another.
    #[error("{path} = {value}: {allowed}")]
    Value {
        /// Where the value stands, as `fabric.levels`.
        path: String,
        /// The value given.
        value: String,
        /// The allowed values, in words.
        allowed: String,
    },
    /// Parameters that do not have the shape the named thing asks for.
    #[error("{path}: {problem}")]
    Shape {
        /// Where the value stands.
        path: String,
        /// The problem with it.
        problem: String,
    },
}

fn suggestion(given: &str, allowed: &[String]) -> String {
    let names: Vec<&str> = allowed.iter().map(String::as_str).collect();
    nearest(given, &names).map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

impl BuildError {
    /// A [`BuildError::Value`] from anything displayable.
    pub fn value(path: impl Into<String>, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Value { path: path.into(), value: value.to_string(), allowed: allowed.into() }
    }

    /// The same error with `words` after its own, unless it says them already.
    #[must_use]
    pub fn and(mut self, words: &str) -> Self {
        match &mut self {
            Self::Value { allowed: text, .. } | Self::Shape { problem: text, .. } if !text.contains(words) => {
                text.push_str("; ");
                text.push_str(words);
            }
            _ => {}
        }
        self
    }

    /// The same error of what was built for another: of `name`, which stands at `to`, where it is about what stands at `from`.
    #[must_use]
    pub fn of(self, from: &str, to: &str, name: &str) -> Self {
        match self {
            Self::Value { path, allowed, .. } if path == from => Self::value(to, name, allowed),
            Self::Value { path, value, allowed } => Self::Value { path: path.replacen(from, to, 1), value, allowed },
            Self::Shape { path, problem } => Self::Shape { path: path.replacen(from, to, 1), problem },
            Self::UnknownName { .. } | Self::DuplicateName { .. } => {
                Self::Shape { path: to.to_owned(), problem: self.to_string() }
            }
        }
    }
}

/// The operation of a rank when a run ended with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckRank {
    /// The job's index.
    pub job: JobId,
    /// The rank in its job.
    pub rank: Rank,
    /// The operation, as `Recv(from 3, tag 7, communicator 0)`.
    pub operation: String,
}

/// A run that had to end.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RunError {
    /// Ranks wait for what can no longer come.
    #[error("job {job} can never go on at {at}: {}", list(ranks))]
    Stuck {
        /// The job's name.
        job: String,
        /// The end of the window in which the last thing of that job happened.
        at: Instant,
        /// The ranks that wait, and for what.
        ranks: Vec<StuckRank>,
    },
    /// Ranks of one communicator called different collectives, or with different arguments.
    #[error("job {job}, communicator {communicator}, collective number {number}: {first} but {second}")]
    CollectiveMismatch {
        /// The job's name.
        job: String,
        /// The communicator's context number.
        communicator: u32,
        /// How many collectives this communicator had seen before.
        number: u64,
        /// The first caller and its call.
        first: String,
        /// The caller that differs and its call.
        second: String,
    },
    /// A program asks for what MPI does not allow (an unknown request, a rank outside the communicator ...).
    #[error("job {job}, rank {rank}, operation {operation}: {problem}")]
    Program {
        /// The job's name.
        job: String,
        /// The rank in its job.
        rank: Rank,
        /// The operation, in words.
        operation: String,
        /// The problem.
        problem: String,
    },
    /// The program's source failed: an unreadable trace, for instance.
    #[error("job {job}, rank {rank}: {problem}")]
    Source {
        /// The job's name.
        job: String,
        /// The rank in its job.
        rank: Rank,
        /// The problem, naming file, record and call.
        problem: String,
    },
    /// More messages have been sent and not received than may be.
    #[error(
        "at {at}, {messages} messages have been sent and not received, and at most mpi.max_messages = {limit} may be, to bound \
         memory; rank {rank} of job {job} has sent {own} of them: it sends faster than the network or the receivers take. Let it wait \
         (for a receive, or longer computations), or raise mpi.max_messages: each takes about 200 bytes"
    )]
    TooManyMessages {
        /// The end of the window.
        at: Instant,
        /// How many there are.
        messages: u64,
        /// How many there may be.
        limit: u64,
        /// The name of the job of the rank that has sent most of them.
        job: String,
        /// That rank.
        rank: Rank,
        /// How many of them it has sent.
        own: u64,
    },
    /// Packets are in flight and none can ever move.
    #[error("the fabric is deadlocked at {at}: {}", chain(cycle))]
    Deadlock {
        /// The end of the window in which the last packet moved.
        at: Instant,
        /// The lanes that wait for each other: each for room in the buffer that the next one holds, the last for the first.
        cycle: Vec<BlockedLane>,
    },
    /// Packets are in flight and wait for a host that pauses them without end.
    #[error("packets wait at {at} for a host that sends PAUSE without end: {}", chain(lanes))]
    Storm {
        /// The end of the window in which the last packet moved.
        at: Instant,
        /// The lanes that wait, each for the next one; the link of the last leads to the host.
        lanes: Vec<BlockedLane>,
    },
    /// A law of the simulator was broken: a defect of fairlane, not of the input.
    #[error("law broken at {at}: {law}")]
    Law {
        /// When it was noticed.
        at: Instant,
        /// The law, with both sides.
        law: String,
    },
}

/// Functions that are called for every event return errors in a box, so that their results stay small.
impl From<Box<RunError>> for RunError {
    fn from(error: Box<RunError>) -> Self {
        *error
    }
}

/// A lane whose packets wait for room in the buffer at the far end of its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedLane {
    /// The link.
    pub link: LinkId,
    /// The link's name.
    pub name: String,
    /// The lane of the port: a pair of virtual lane and virtual channel.
    pub lane: u8,
    /// Its virtual lane.
    pub vl: VirtualLane,
    /// Packets in its queue.
    pub packets: usize,
    /// The jobs of these packets, in ascending order.
    pub jobs: Vec<JobId>,
}

fn chain(cycle: &[BlockedLane]) -> String {
    let words: Vec<String> = cycle.iter().map(|at| format!("{} lane {}", at.name, at.lane)).collect();
    words.join(" -> ")
}

fn list(ranks: &[StuckRank]) -> String {
    const SHOWN: usize = 8;
    let mut words: Vec<String> =
        ranks.iter().take(SHOWN).map(|r| format!("rank {} in {}", r.rank, r.operation)).collect();
    if ranks.len() > SHOWN {
        words.push(format!("and {} more", ranks.len() - SHOWN));
    }
    words.join("; ")
}
