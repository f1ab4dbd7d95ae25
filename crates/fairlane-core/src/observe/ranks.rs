//! What a rank has done with its time.

use crate::kernel::prefetch;
use crate::program::{CollectiveKind, Op};
use crate::units::{Instant, Picoseconds};

/// The MPI calls that are told apart, by index; see [`call_name`].
pub const CALLS: usize = NAMES.len() + CollectiveKind::ALL.len();

/// The calls that are no collectives; these come behind.
const NAMES: [&str; FIRST_COLLECTIVE as usize] = [
    "send",
    "isend",
    "recv",
    "irecv",
    "probe",
    "wait",
    "wait_all",
    "wait_any",
    "wait_some",
    "comm_dup",
    "comm_split",
    "comm_create",
];

const FIRST_COLLECTIVE: u8 = 12;

/// The name of a call, in lower case.
#[must_use]
pub fn call_name(call: usize) -> &'static str {
    NAMES.get(call).copied().unwrap_or_else(|| CollectiveKind::ALL[call - NAMES.len()].name())
}

/// The index of an operation's call; `None` for what is no call or takes no time.
#[inline]
#[must_use]
pub fn call_of(op: &Op) -> Option<u8> {
    Some(match op {
        Op::Send { .. } => 0,
        Op::Isend { .. } => 1,
        Op::Recv { .. } => 2,
        Op::Irecv { .. } => 3,
        Op::Probe { .. } => 4,
        Op::Wait(_) => 5,
        Op::WaitAll(_) => 6,
        Op::WaitAny(_) => 7,
        Op::WaitSome(_) => 8,
        Op::CommDup { .. } => 9,
        Op::CommSplit { .. } => 10,
        Op::CommCreate { .. } => 11,
        Op::Collective { kind, .. } => FIRST_COLLECTIVE + *kind as u8,
        _ => return None,
    })
}

/// Number of calls and time in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Calls that have returned.
    pub count: u64,
    /// Time from call to return.
    pub time: Picoseconds,
}

/// What is kept of a rank. What changes with every message fills the first cache line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct RankRecord {
    /// Time in [`Op::Compute`].
    pub compute: Picoseconds,
    /// Messages sent, collectives' included.
    pub messages_sent: u64,
    /// Their payload in bytes.
    pub bytes_sent: u64,
    /// Iterations marked.
    pub iterations: u64,
    /// By call. The first are the sends.
    pub calls: [CallTime; CALLS],
    /// Blocked time before the partner had made its send call, or posted its receive.
    pub late_partner: Picoseconds,
    /// The rest of the blocked time: the network, or the protocol, was at work.
    pub network: Picoseconds,
    /// When the first iteration was marked.
    pub first_mark: Instant,
    /// When the last was marked.
    pub last_mark: Instant,
    /// When the program ended, if it has.
    pub finished: Option<Instant>,
    /// When each iteration was marked, if that is kept.
    pub marks: Vec<Instant>,
}

impl RankRecord {
    /// The rank will run soon: fetches what is written most often.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.compute);
    }

    /// Time in all calls.
    #[must_use]
    pub fn communication(&self) -> Picoseconds {
        Picoseconds(self.calls.iter().map(|call| call.time.0).sum())
    }
}
