//! Readers of recorded traces: a trace becomes a [`Program`] of one source per rank, streaming but for graphs.
//!
//! | format | recorded by | reader |
//! |---|---|---|
//! | DUMPI, binary, versions up to 13 | sst-dumpi | own |
//! | OTF2, MPI events | Score-P and others | OTF2's own library, opened when needed ([`Options::otf2_library`]) |
//! | GOAL, text and binary | Schedgen, ATLAHS | own; see `graphs` |
//! | Chakra execution traces | PyTorch by Chakra's tools, and generators | own; see `graphs` |
//! | SimAI workload files | AICB | own; see `graphs` |
//!
//! A source keeps a position, a small window of its file and the requests and communicators that are open: memory does
//! not grow with the length of the trace. What a replay does:
//!
//! - **Compute** between two calls is the time between leaving the one and entering the other, on the CPU clock of the
//!   trace where it has one, else on its wall clock, times [`Options::compute_scale`]. Time inside calls, and in calls that
//!   do not communicate, is not replayed.
//! - **Bytes** of messages and of what ranks hand to collectives are those of the trace times [`Options::message_scale`], rounded;
//!   what was not empty keeps a byte.
//! - **Receives** are replayed with the source and the tag of the message that they got, as the trace recorded it, so that
//!   the replay matches as the application did; where the trace does not say, they stay wildcards.
//! - **Polls** that found nothing are left out. One that completed requests becomes a wait for exactly these; a probe that
//!   found a message becomes a blocking probe for this message.
//! - **Buffered sends** complete at once. Operations with `MPI_PROC_NULL`, and cancelled ones, are left out.
//! - **Non-blocking collectives** and **one-sided communication** are replayed where the trace has their communicators or
//!   windows, targets and bytes.
//!
//! A replay may be of a part of the trace, from one iteration to another ([`Options::from`], [`Options::to`]): see `window.rs`.
//!
//! A call that cannot be replayed (intercommunicators, MPI-IO, calls whose bytes the trace does not have ...) is a [`TraceError`] that
//! names file, rank, record and call; [`describe`] lists all of it without running anything.

mod description;
mod dumpi;
mod emitter;
mod error;
mod graphs;
mod lookahead;
mod otf2;
mod slots;
mod tally;
mod unsupported;
mod window;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use fairlane_core::program::{CollectiveKind, Program};
use serde::{Deserialize, Serialize};

pub use description::{CollectiveTotals, Description, KindTotals, Neighbours, Unsupported};
pub use error::TraceError;

use window::Window;

/// The mark of one iteration of a trace job, i.e. where [`fairlane_core::program::Op::MarkProgress`] stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Iteration {
    /// One pass through the whole trace.
    #[default]
    Pass,
    /// The stretch from one call of a collective to the next.
    Collective(Bound),
    /// The stretch from one enter of this region to the next: any region of an OTF2 trace, an MPI call in a DUMPI trace.
    Region(String),
}

/// The collective calls that bound iterations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The collective.
    pub kind: CollectiveKind,
    /// Only the first such call, and from then on each one after so many.
    #[serde(default = "Bound::each")]
    pub every: NonZeroU32,
    /// Only calls to which a rank hands in this many bytes, by the trace.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Only calls of all ranks: on the communicator of the world, a duplicate, or another one of all ranks.
    #[serde(default)]
    pub world: bool,
}

impl Bound {
    const fn each() -> NonZeroU32 {
        NonZeroU32::MIN
    }
}

impl From<CollectiveKind> for Bound {
    fn from(kind: CollectiveKind) -> Self {
        Self { kind, every: Self::each(), bytes: None, world: false }
    }
}

/// How to replay a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Compute times are multiplied by this; at least 0.
    pub compute_scale: f64,
    /// And by this of their rank, as ranks on CPUs of different speeds have it; 1 for ranks beyond the list.
    pub rank_scales: Vec<f64>,
    /// Bytes of messages and collectives are multiplied by this; above 0, at most [`Options::LARGEST_MESSAGE_SCALE`].
    pub message_scale: f64,
    /// The mark of an iteration.
    pub iteration: Iteration,
    /// Calls by name, or by the beginning of a name and `*`: their records that cannot be simulated are left out instead of
    /// refused. [`describe`] takes no notice of it.
    pub leave_out: Vec<String>,
    /// The first iteration that is replayed, from 1: it begins at the first call or region that bounds iterations. What is
    /// in front of it is left out, but for communicators that are made there.
    pub from: Option<NonZeroU32>,
    /// The last iteration that is replayed.
    pub to: Option<NonZeroU32>,
    /// Start over at the end of the trace, or of its part, for ever.
    pub repeat: bool,
    /// The library that reads OTF2: `libotf2.so`, or the extension module of the Python package `otf2`.
    pub otf2_library: Option<PathBuf>,
    /// Process groups of Chakra traces: a JSON file with the ranks of each by name.
    pub groups: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            compute_scale: 1.0,
            rank_scales: Vec::new(),
            message_scale: 1.0,
            iteration: Iteration::Pass,
            leave_out: Vec::new(),
            from: None,
            to: None,
            repeat: true,
            otf2_library: None,
            groups: None,
        }
    }
}

impl Options {
    /// The largest factor on bytes: it turns a byte into a megabyte.
    pub const LARGEST_MESSAGE_SCALE: f64 = 1e6;

    fn check(&self) -> Result<(), TraceError> {
        let wrong = |key, value: f64, allowed: &str| {
            Err(TraceError::Option { key, value: value.to_string(), problem: format!("a factor {allowed} is allowed") })
        };
        let of_ranks = self.rank_scales.iter().map(|scale| ("rank_scales", *scale));
        let mut scales = of_ranks.chain([("compute_scale", self.compute_scale)]);
        if let Some((key, scale)) = scales.find(|(_, scale)| !scale.is_finite() || *scale < 0.0) {
            return wrong(key, scale, "of at least 0");
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && to < from
        {
            let problem = format!("the iteration from = {from} or a later one is allowed");
            return Err(TraceError::Option { key: "to", value: to.to_string(), problem });
        }
        if self.window().is_some() && self.iteration == Iteration::Pass {
            let problem = "a part of a trace takes iterations of a collective or a region".to_owned();
            return Err(TraceError::Option { key: "iteration", value: "pass".to_owned(), problem });
        }
        if !(self.message_scale > 0.0 && self.message_scale <= Self::LARGEST_MESSAGE_SCALE) {
            return wrong("message_scale", self.message_scale, "above 0 and of at most 1000000");
        }
        Ok(())
    }

    /// The part that is replayed, if it is not all.
    fn window(&self) -> Option<Window> {
        let from = self.from.unwrap_or(NonZeroU32::MIN);
        (self.from.is_some() || self.to.is_some()).then_some(Window { from, to: self.to, repeat: self.repeat })
    }

    /// Whether records of a call that cannot be simulated are left out.
    fn leaves_out(&self, call: &str) -> bool {
        let names = |pattern: &String| {
            pattern.strip_suffix('*').map_or_else(|| pattern == call, |beginning| call.starts_with(beginning))
        };
        self.leave_out.iter().any(names)
    }

    /// The factor of the compute times of a rank.
    fn scale_of(&self, rank: u32) -> f64 {
        self.compute_scale * self.rank_scales.get(rank as usize).copied().unwrap_or(1.0)
    }
}

/// The kind of trace that a path leads to.
enum Format {
    /// A set of DUMPI files, by rank.
    Dumpi(Vec<PathBuf>),
    /// An OTF2 archive, by its anchor file.
    Otf2(PathBuf),
    /// A GOAL schedule or Chakra execution traces.
    Graph(graphs::Files),
}

/// Whether a file is a graph or a list of flows, whatever its name: a GOAL schedule, a list of flows, a workload file of `SimAI`.
#[must_use]
pub fn is_graph(path: impl AsRef<Path>) -> bool {
    matches!(graphs::find(path.as_ref()), Ok(Some(_)))
}

fn detect(path: &Path) -> Result<Format, TraceError> {
    let anchor = if path.is_dir() { path.join("traces.otf2") } else { path.to_owned() };
    if anchor.is_file() && anchor.extension().is_some_and(|e| e == "otf2") {
        return Ok(Format::Otf2(anchor));
    }
    if let Some(files) = graphs::find(path)? {
        return Ok(Format::Graph(files));
    }
    dumpi::find(path).map(Format::Dumpi)
}

/// Opens a trace: a directory of DUMPI files, a DUMPI `.meta` file, an OTF2 anchor file (`traces.otf2`), or the directory
/// that contains it.
///
/// # Errors
/// The path leads to no trace, a file is damaged, or an option does not fit the trace. Records are read as the program
/// runs; what is wrong with them is an error of the source.
pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Program, TraceError> {
    options.check()?;
    let window = options.window();
    let once = Options { repeat: options.repeat && window.is_none(), ..options.clone() };
    let program = match detect(path.as_ref())? {
        Format::Dumpi(files) => dumpi::open(&files, &once)?,
        Format::Otf2(anchor) => otf2::open(&anchor, &once)?,
        Format::Graph(files) => return files.open(options),
    };
    match window {
        Some(window) => window::cut(&program, window),
        None => Ok(program),
    }
}

/// Reads a trace from one end to the other and says what is in it, and what of it cannot be simulated.
///
/// # Errors
/// As [`open`], and files that are damaged anywhere. A record that a simulation would refuse is not an error: it is
/// counted in [`Description::unsupported`].
pub fn describe(path: impl AsRef<Path>, options: &Options) -> Result<Description, TraceError> {
    options.check()?;
    match detect(path.as_ref())? {
        Format::Dumpi(files) => dumpi::describe(&files, options),
        Format::Otf2(anchor) => otf2::describe(&anchor, options),
        Format::Graph(files) => files.describe(options),
    }
}
