//! Use of a rank's time.

use super::Mark;
use crate::program::{Collective, CollectiveKind, Comm, GraphOp, NeighborKind, Op, P2p, Rma, RmaKind};
use crate::units::{Instant, Picoseconds};

/// The MPI calls that are distinguished, by index; see [`call_name`].
pub const CALLS: usize = COMMON_CALLS + RARE_CALLS;

/// The first of them: sends, receives and waits, which every rank has counters for.
const MESSAGE_CALLS: usize = 9;
/// Those after them: a rank has counters for collectives, and for what makes communicators, once it makes one of these calls.
const COLLECTIVE_CALLS: usize = COMMON_CALLS - MESSAGE_CALLS;
const COMMON_CALLS: usize = NAMES.len() + COLLECTIVES;
/// The others: again once it makes one of these.
const RARE_CALLS: usize = RARE_NAMES.len() + COLLECTIVES + 2 * NeighborKind::ALL.len() + RmaKind::ALL.len();
const COLLECTIVES: usize = CollectiveKind::ALL.len();

/// The calls that are no collectives; these follow.
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

pub(crate) const ISEND: u8 = 1;
pub(crate) const IRECV: u8 = 3;
const WAIT_SOME: u8 = 8;

const FIRST_COLLECTIVE: u8 = 12;

/// The rare calls that are neither collectives nor one-sided operations. Those follow: [`ICOLLECTIVES`], [`NeighborKind::ALL`],
/// [`INEIGHBORS`] and [`RmaKind::ALL`].
const RARE_NAMES: [&str; 13] = [
    "comm_topology",
    "win_create",
    "win_free",
    "win_fence",
    "win_lock",
    "win_unlock",
    "win_lock_all",
    "win_unlock_all",
    "win_flush",
    "win_post",
    "win_start",
    "win_complete",
    "win_wait",
];
/// The names of non-blocking collectives, in the order of [`CollectiveKind::ALL`].
const ICOLLECTIVES: [&str; COLLECTIVES] = [
    "ibarrier",
    "ibcast",
    "ireduce",
    "iallreduce",
    "igather",
    "iscatter",
    "iallgather",
    "ialltoall",
    "ireduce_scatter",
    "iscan",
];
/// The names of non-blocking neighborhood collectives, in the order of [`NeighborKind::ALL`].
const INEIGHBORS: [&str; NeighborKind::ALL.len()] = ["ineighbor_allgather", "ineighbor_alltoall"];

#[allow(clippy::cast_possible_truncation, reason = "there are fewer than 256 calls")]
const FIRST_RARE: u8 = COMMON_CALLS as u8;
#[allow(clippy::cast_possible_truncation, reason = "there are fewer than 256 calls")]
const FIRST_ICOLLECTIVE: u8 = FIRST_RARE + RARE_NAMES.len() as u8;
#[allow(clippy::cast_possible_truncation, reason = "there are fewer than 256 calls")]
const FIRST_NEIGHBOR: u8 = FIRST_ICOLLECTIVE + COLLECTIVES as u8;
#[allow(clippy::cast_possible_truncation, reason = "there are fewer than 256 calls")]
const FIRST_INEIGHBOR: u8 = FIRST_NEIGHBOR + NeighborKind::ALL.len() as u8;
#[allow(clippy::cast_possible_truncation, reason = "there are fewer than 256 calls")]
const FIRST_RMA: u8 = FIRST_INEIGHBOR + NeighborKind::ALL.len() as u8;

/// The name of a call, in lower case.
#[must_use]
pub fn call_name(call: usize) -> &'static str {
    let mut names = NAMES
        .into_iter()
        .chain(CollectiveKind::ALL.map(CollectiveKind::name))
        .chain(RARE_NAMES)
        .chain(ICOLLECTIVES)
        .chain(NeighborKind::ALL.map(NeighborKind::name))
        .chain(INEIGHBORS)
        .chain(RmaKind::ALL.map(RmaKind::name));
    names.nth(call).expect("invariant: a call has a name")
}

/// The index of an operation's call; `None` for what is no call or takes no time.
#[inline]
#[must_use]
pub fn call_of(op: &Op) -> Option<u8> {
    match op {
        Op::P2p(op) => message_call_of(op),
        Op::Collective(op) => Some(match op {
            Collective::Blocking { kind, .. } => FIRST_COLLECTIVE + *kind as u8,
            Collective::Nonblocking { kind, .. } => FIRST_ICOLLECTIVE + *kind as u8,
            Collective::Neighbor { kind, .. } => FIRST_NEIGHBOR + *kind as u8,
            Collective::NonblockingNeighbor { kind, .. } => FIRST_INEIGHBOR + *kind as u8,
        }),
        Op::Comm(op) => match op {
            Comm::Dup { .. } => Some(9),
            Comm::Split { .. } => Some(10),
            Comm::Create { .. } => Some(11),
            Comm::Topology { .. } => Some(FIRST_RARE),
            Comm::Define { .. } | Comm::SetName { .. } | Comm::Free(_) => None,
        },
        Op::Rma(op) => Some(one_sided_call_of(op)),
        Op::Graph(op) => (*op == GraphOp::WaitReport).then_some(WAIT_SOME),
        Op::EndBurst(_) => Some(FIRST_COLLECTIVE + CollectiveKind::Bcast as u8),
        Op::Compute(_) | Op::BeginTiming | Op::MarkProgress | Op::Pause(_) => None,
    }
}

#[inline]
fn message_call_of(op: &P2p) -> Option<u8> {
    Some(match op {
        P2p::Send { .. } => 0,
        P2p::Isend { .. } => ISEND,
        P2p::Recv { .. } => 2,
        P2p::Irecv { .. } => IRECV,
        P2p::Probe { .. } => 4,
        P2p::Wait(_) => 5,
        P2p::WaitAll(_) => 6,
        P2p::WaitAny(_) => 7,
        P2p::WaitSome(_) => WAIT_SOME,
        P2p::Datagram { .. } | P2p::RequestFree(_) => return None,
    })
}

/// In the order of [`RARE_NAMES`].
fn one_sided_call_of(op: &Rma) -> u8 {
    let rare = match op {
        Rma::Access { kind, .. } => return FIRST_RMA + *kind as u8,
        Rma::Create { .. } => 1,
        Rma::Free { .. } => 2,
        Rma::Fence { .. } => 3,
        Rma::Lock { .. } => 4,
        Rma::Unlock { .. } => 5,
        Rma::LockAll { .. } => 6,
        Rma::UnlockAll { .. } => 7,
        Rma::Flush { .. } => 8,
        Rma::Post { .. } => 9,
        Rma::Start { .. } => 10,
        Rma::Complete { .. } => 11,
        Rma::Wait { .. } => 12,
    };
    FIRST_RARE + rare
}

/// Number of calls and time in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTime {
    /// Calls that have returned.
    pub count: u64,
    /// Time from call to return.
    pub time: Picoseconds,
}

/// Record of a rank. Fields that change with every message fill the first cache line.
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
    /// Sends, receives and waits. The first are the sends.
    messages: [CallTime; MESSAGE_CALLS],
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
    /// Each iteration, if that is kept.
    pub marks: Vec<Mark>,
    /// The other calls, if the rank has made one of them.
    others: Option<Box<OtherCalls>>,
}

const _: () = assert!(size_of::<RankRecord>() == 256, "four cache lines: there is one for every rank");

/// The counters of the calls that not every program makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OtherCalls {
    collectives: [CallTime; COLLECTIVE_CALLS],
    rare: Option<Box<[CallTime; RARE_CALLS]>>,
}

impl RankRecord {
    /// The counters of a call by its index, below [`CALLS`].
    #[must_use]
    pub fn call(&self, call: usize) -> CallTime {
        if let Some(own) = self.messages.get(call) {
            return *own;
        }
        let other = self.others.as_ref().and_then(|others| match others.collectives.get(call - MESSAGE_CALLS) {
            None => others.rare.as_ref().map(|rare| rare[call - COMMON_CALLS]),
            found => found.copied(),
        });
        other.unwrap_or_default()
    }

    /// The same, to count with.
    #[inline(always)]
    pub(crate) fn call_mut(&mut self, call: u8) -> &mut CallTime {
        match self.messages.get_mut(usize::from(call)) {
            Some(own) => own,
            None => Self::other_mut(&mut self.others, usize::from(call) - MESSAGE_CALLS),
        }
    }

    #[inline(never)]
    fn other_mut(others: &mut Option<Box<OtherCalls>>, call: usize) -> &mut CallTime {
        let others = others.get_or_insert_default();
        match others.collectives.get_mut(call) {
            Some(collective) => collective,
            None => Self::rare_mut(&mut others.rare, call - COLLECTIVE_CALLS),
        }
    }

    #[cold]
    fn rare_mut(rare: &mut Option<Box<[CallTime; RARE_CALLS]>>, call: usize) -> &mut CallTime {
        let rare = rare.get_or_insert_with(|| Box::new([CallTime::default(); RARE_CALLS]));
        &mut rare[call]
    }

    /// Time in all calls.
    #[must_use]
    pub fn communication(&self) -> Picoseconds {
        let others = self
            .others
            .iter()
            .flat_map(|others| others.collectives.iter().chain(others.rare.iter().flat_map(|rare| rare.iter())));
        Picoseconds(self.messages.iter().chain(others).map(|call| call.time.0).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ids::Rank;
    use crate::program::{COMM_WORLD, Volume};
    use crate::units::Bytes;

    #[test]
    fn every_call_has_a_name_of_its_own_and_counters() {
        let names: HashSet<_> = (0..CALLS).map(call_name).collect();
        assert_eq!(names.len(), CALLS);
        let mut record = RankRecord::default();
        for call in 0..CALLS {
            record.call_mut(u8::try_from(call).unwrap()).count += call as u64;
        }
        assert!((0..CALLS).all(|call| record.call(call).count == call as u64));
    }

    #[test]
    fn operations_have_the_names_of_their_calls() {
        let volume = Volume::Uniform(Bytes(8));
        let name = |op: &Op| call_name(usize::from(call_of(op).unwrap()));
        let (comm, win, target, request) = (COMM_WORLD, 0, Rank(0), 0);
        for kind in CollectiveKind::ALL {
            let op =
                Op::Collective(Collective::Nonblocking { kind, comm, root: Rank(0), volume: volume.clone(), request });
            assert_eq!(name(&op), format!("i{}", kind.name()));
            assert_eq!(
                name(&Op::Collective(Collective::Blocking { kind, comm, root: Rank(0), volume: volume.clone() })),
                kind.name()
            );
        }
        for kind in NeighborKind::ALL {
            assert_eq!(name(&Op::Collective(Collective::Neighbor { kind, comm, volume: volume.clone() })), kind.name());
            let op = Op::Collective(Collective::NonblockingNeighbor { kind, comm, volume: volume.clone(), request });
            assert_eq!(name(&op), format!("i{}", kind.name()));
        }
        for kind in RmaKind::ALL {
            let op = Op::Rma(Rma::Access { kind, win, target, bytes: Bytes(8), request: None });
            assert_eq!(name(&op), kind.name());
        }
        assert_eq!(name(&Op::Rma(Rma::Wait { win })), "win_wait");
        assert_eq!(name(&Op::Rma(Rma::Create { comm, win })), "win_create");
    }
}
