//! The state of a rank at the beginning and at the end of a part.

use std::collections::{BTreeMap, HashMap, HashSet};

use fairlane_core::program::{
    COMM_SELF, COMM_WORLD, Collective, Comm, CommHandle, Op, P2p, RequestId, Rma, Source, Tag,
};

use super::Window;
use crate::error::TraceError;
use crate::tally::RankTally;

/// The beginning or the end of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In front of its first operation.
    Begin,
    /// Behind its last one.
    End,
}

/// Messages between two ranks that keep their order, as one of them sees it: the communicator by the rank's number of it,
/// the other rank in it, the tag.
pub type Key = (usize, u32, Tag);

/// A rank's communicators by handle: world, self, others in the order in which it met them, as [`RankTally`] numbers them.
#[derive(Clone)]
pub struct Handles {
    current: HashMap<CommHandle, usize>,
    next: usize,
}

impl Handles {
    /// The predefined ones.
    pub fn new() -> Self {
        Self { current: HashMap::from([(COMM_WORLD, 0), (COMM_SELF, 1)]), next: 2 }
    }

    /// The number of a communicator.
    pub fn number(&self, handle: CommHandle) -> usize {
        self.current.get(&handle).copied().unwrap_or(usize::MAX)
    }

    /// Whether a handle stands for a communicator, if it has not been given up.
    pub fn has(&self, handle: CommHandle) -> bool {
        self.current.contains_key(&handle)
    }

    /// Follows an operation. The handle that it makes, if it makes one.
    pub fn follow(&mut self, op: &Op) -> Option<CommHandle> {
        let new = match op {
            Op::Comm(Comm::Dup { new, .. })
            | Op::Comm(Comm::Split { new, .. })
            | Op::Comm(Comm::Create { new, .. })
            | Op::Comm(Comm::Topology { new, .. })
            | Op::Comm(Comm::Define { new, .. }) => *new,
            Op::Comm(Comm::Free(comm)) => {
                self.current.remove(comm);
                return None;
            }
            _ => return None,
        };
        self.current.insert(new, self.next);
        self.next += 1;
        Some(new)
    }
}

/// A receive that has been started.
#[derive(Clone)]
pub struct Receive {
    /// Its channel, if the trace has it.
    pub key: Option<Key>,
    /// Its place among the receives of the channel, from 1.
    pub place: u64,
    /// The operation that has started it.
    pub op: Op,
}

/// Sums from the beginning of the trace.
#[derive(Clone, Default)]
pub struct Counts {
    /// Messages sent, by channel.
    pub sends: HashMap<Key, u64>,
    /// Receives started, by channel.
    pub receives: HashMap<Key, u64>,
    /// Receives up to the last one that is complete, by channel.
    pub complete: HashMap<Key, u64>,
    /// Receives whose source or tag the trace does not have, by communicator.
    pub unknown: HashMap<usize, u64>,
    /// Blocking and non-blocking collective calls, by communicator.
    pub collectives: HashMap<(usize, bool), u64>,
    /// Windows of one-sided communication that are there.
    pub windows: HashSet<u32>,
}

/// The state of a rank.
pub struct Scan {
    /// The source at the first operation of the part.
    pub start: Box<dyn Source>,
    /// How many beginnings of iterations were found: no more than needed.
    pub marks: u32,
    /// Up to the beginning, and up to the end if there is one.
    pub counts: [Counts; 2],
    /// Requests that are open at the beginning: receives.
    pub receives: BTreeMap<RequestId, Receive>,
    /// And others.
    pub others: HashSet<RequestId>,
    /// Communicators that are made in front of the part, and given up, in order.
    pub prelude: Vec<Op>,
    /// Handles at the beginning.
    pub handles: Handles,
    /// Who is in them.
    pub tally: RankTally,
}

/// The state of a scan.
struct Progress {
    counts: Counts,
    receives: BTreeMap<RequestId, Receive>,
    others: HashSet<RequestId>,
    handles: Handles,
    tally: RankTally,
}

impl Scan {
    /// Reads a source up to the end of the part, or to its beginning if it has no end.
    pub fn new(mut source: Box<dyn Source>, window: Window) -> Result<Self, TraceError> {
        let mut at = Progress {
            counts: Counts::default(),
            receives: BTreeMap::new(),
            others: HashSet::new(),
            handles: Handles::new(),
            tally: RankTally::new(),
        };
        let mut scan = Self {
            start: source.boxed_clone(),
            marks: 0,
            counts: Default::default(),
            receives: BTreeMap::new(),
            others: HashSet::new(),
            prelude: Vec::new(),
            handles: Handles::new(),
            tally: RankTally::new(),
        };
        let last = window.to.map_or(window.from.get(), |to| to.get() + 1);
        while scan.marks < last
            && let Some(op) = source.next_op().map_err(TraceError::Source)?
        {
            if op != Op::MarkProgress {
                at.follow(&op);
                if scan.marks < window.from.get() && is_of_communicators(&op) {
                    scan.prelude.push(op);
                }
                continue;
            }
            scan.marks += 1;
            if scan.marks == window.from.get() {
                scan.start = source.boxed_clone();
                scan.counts[0] = at.counts.clone();
                scan.receives = at.receives.clone();
                scan.others = at.others.clone();
                scan.handles = at.handles.clone();
            }
        }
        scan.counts[1] = at.counts;
        scan.tally = at.tally;
        Ok(scan)
    }
}

const fn is_of_communicators(op: &Op) -> bool {
    matches!(
        op,
        Op::Comm(Comm::Dup { .. })
            | Op::Comm(Comm::Split { .. })
            | Op::Comm(Comm::Create { .. })
            | Op::Comm(Comm::Topology { .. })
            | Op::Comm(Comm::Define { .. })
            | Op::Comm(Comm::SetName { .. })
            | Op::Comm(Comm::Free(_))
    )
}

impl Progress {
    fn follow(&mut self, op: &Op) {
        match op {
            Op::P2p(P2p::Send { to, comm, tag, .. }) => self.send((self.handles.number(*comm), to.0, *tag)),
            Op::P2p(P2p::Isend { to, comm, tag, request, .. }) => {
                self.send((self.handles.number(*comm), to.0, *tag));
                self.others.insert(*request);
            }
            Op::P2p(P2p::Recv { .. }) => {
                let receive = self.receive(op);
                self.completed(&receive);
            }
            Op::P2p(P2p::Irecv { request, .. }) => {
                let receive = self.receive(op);
                self.receives.insert(*request, receive);
            }
            Op::P2p(P2p::Wait(request)) | Op::P2p(P2p::RequestFree(request)) => self.wait(*request),
            Op::P2p(P2p::WaitAll(requests)) => requests.iter().for_each(|request| self.wait(*request)),
            Op::Collective(Collective::Blocking { comm, .. })
            | Op::Collective(Collective::Neighbor { comm, .. })
            | Op::Comm(Comm::Dup { comm, .. })
            | Op::Comm(Comm::Split { comm, .. })
            | Op::Comm(Comm::Create { comm, .. })
            | Op::Comm(Comm::Topology { comm, .. }) => self.collective(*comm, false),
            Op::Collective(Collective::Nonblocking { comm, request, .. })
            | Op::Collective(Collective::NonblockingNeighbor { comm, request, .. }) => {
                self.collective(*comm, true);
                self.others.insert(*request);
            }
            Op::Rma(Rma::Create { win, .. }) => {
                self.counts.windows.insert(*win);
            }
            Op::Rma(Rma::Free { win }) => {
                self.counts.windows.remove(win);
            }
            Op::Rma(Rma::Access { request: Some(request), .. }) => {
                self.others.insert(*request);
            }
            _ => {}
        }
        self.handles.follow(op);
        self.tally.op(op);
    }

    fn send(&mut self, key: Key) {
        *self.counts.sends.entry(key).or_default() += 1;
    }

    fn receive(&mut self, op: &Op) -> Receive {
        let (Op::P2p(P2p::Recv { from, tag, comm }) | Op::P2p(P2p::Irecv { from, tag, comm, .. })) = op else {
            unreachable!("invariant: called with receives")
        };
        let number = self.handles.number(*comm);
        let key = from.zip(*tag).map(|(from, tag)| (number, from.0, tag));
        let place = match key {
            Some(key) => self.counts.receives.entry(key).or_default(),
            None => self.counts.unknown.entry(number).or_default(),
        };
        *place += 1;
        Receive { key, place: *place, op: op.clone() }
    }

    fn completed(&mut self, receive: &Receive) {
        if let Some(key) = receive.key {
            let last = self.counts.complete.entry(key).or_default();
            *last = receive.place.max(*last);
        }
    }

    fn wait(&mut self, request: RequestId) {
        if let Some(receive) = self.receives.remove(&request) {
            self.completed(&receive);
        }
        self.others.remove(&request);
    }

    fn collective(&mut self, comm: CommHandle, nonblocking: bool) {
        *self.counts.collectives.entry((self.handles.number(comm), nonblocking)).or_default() += 1;
    }
}
