//! Messages that are given from outside while the simulation runs: a rank waits for them, sends or receives each at its time, and
//! keeps when those that it receives were complete.

use std::sync::Arc;

use super::{COMM_SELF, Comm, CommHandle, GraphOp, Op, P2p, RequestId, SendMode, Source, Tag};
use crate::ids::Rank;
use crate::units::{Bytes, Instant, Picoseconds};

/// After this long without anything to do a rank waits again: half of what the clock can tell.
const IDLE: Picoseconds = Picoseconds(1 << 61);

/// A message between two ranks of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number, which no other message of the simulation has.
    pub handle: u64,
    /// Source.
    pub from: Rank,
    /// Destination.
    pub to: Rank,
    /// Payload.
    pub bytes: Bytes,
    /// Tag.
    pub tag: Tag,
    /// Completion rule of the send.
    pub mode: SendMode,
    /// Its communicator: [`COMM_WORLD`](super::COMM_WORLD), or one of [`Stepped::communicator`].
    pub comm: CommHandle,
}

/// The meaning of a request of the rank.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// Keeps the job from ending while nothing is under way.
    Idle,
    /// The time at which a message is sent.
    Send(Message),
    /// The time at which its receive is posted.
    Receive(Message),
    /// The message of this handle.
    Message(u64),
}

/// A rank that sends and receives what it is given.
#[derive(Clone, Debug, Default)]
pub struct Stepped {
    /// By request.
    awaited: Vec<Option<Awaited>>,
    free: Vec<RequestId>,
    /// Messages whose time has come: to be received, and to be sent.
    receives: Vec<Message>,
    sends: Vec<Message>,
    ops: Vec<Op>,
    next: usize,
    idle: bool,
    /// Communicators of all ranks besides the first: their names and, until they are defined, their members.
    names: Arc<[Arc<str>]>,
    members: Option<Arc<[Rank]>>,
    completed: Vec<(Instant, u64)>,
}

impl Stepped {
    /// The program of a job of so many ranks, which are all members of communicators with these names, too.
    #[must_use]
    pub fn program(ranks: u32, names: &[String]) -> super::Program {
        let names: Arc<[Arc<str>]> = names.iter().map(|name| name.as_str().into()).collect();
        let members: Arc<[Rank]> = (0..ranks).map(Rank).collect();
        let rank = || Self { names: Arc::clone(&names), members: Some(Arc::clone(&members)), ..Self::default() };
        super::Program { ranks: (0..ranks).map(|_| Box::new(rank()) as Box<dyn Source>).collect() }
    }

    /// The communicator whose name stands at this place.
    #[must_use]
    pub fn communicator(place: u16) -> CommHandle {
        COMM_SELF + 1 + CommHandle::from(place)
    }

    /// The name of a timer at whose end the message is sent, or its receive posted if `receives`.
    pub(crate) fn schedule(&mut self, message: Message, receives: bool) -> RequestId {
        self.request(if receives { Awaited::Receive(message) } else { Awaited::Send(message) })
    }

    /// Moves to `all` when the messages that this rank has received since the last call were complete, and their handles.
    pub(crate) fn take_completed(&mut self, all: &mut Vec<(Instant, u64)>) {
        all.append(&mut self.completed);
    }

    fn request(&mut self, awaited: Awaited) -> RequestId {
        let request = self.free.pop().unwrap_or_else(|| {
            self.awaited.push(None);
            u32::try_from(self.awaited.len() - 1).expect("invariant: fewer than 2^32 messages of a rank")
        });
        self.awaited[request as usize] = Some(awaited);
        request
    }

    /// The operations until something has to be waited for. The order of messages is that of their handles.
    fn advance(&mut self) {
        self.ops.clear();
        self.next = 0;
        if !std::mem::replace(&mut self.idle, true) {
            let request = self.request(Awaited::Idle);
            self.ops.extend([GraphOp::Delay(IDLE, request), GraphOp::Report(request)].map(Op::Graph));
        }
        if let Some(members) = self.members.take() {
            for (place, name) in (0..).zip(&*self.names) {
                let (new, members) = (Self::communicator(place), Arc::clone(&members));
                let named = Comm::SetName { comm: new, name: Arc::clone(name) };
                self.ops.extend([Comm::Define { new, members }, named].map(Op::Comm));
            }
        }
        self.receives.sort_unstable_by_key(|message| message.handle);
        for Message { handle, from, tag, comm, .. } in std::mem::take(&mut self.receives) {
            let request = self.request(Awaited::Message(handle));
            let receive = P2p::Irecv { from: Some(from), tag: Some(tag), comm, request };
            self.ops.extend([Op::P2p(receive), Op::Graph(GraphOp::Report(request))]);
        }
        self.sends.sort_unstable_by_key(|message| message.handle);
        for Message { to, bytes, tag, mode, comm, .. } in self.sends.drain(..) {
            // Given up at once: who receives it knows when it is complete.
            let request = RequestId::MAX;
            let send = P2p::Isend { to, bytes, tag, comm, mode, request };
            self.ops.extend([send, P2p::RequestFree(request)].map(Op::P2p));
        }
        self.ops.push(Op::Graph(GraphOp::WaitReport));
    }
}

impl Source for Stepped {
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.next == self.ops.len() {
            self.advance();
        }
        Ok(&self.ops[self.next..])
    }

    fn pass(&mut self, count: usize) {
        self.next += count;
    }

    fn current(&self) -> Option<&Op> {
        self.ops.get(self.next.checked_sub(1)?)
    }

    fn completed(&mut self, requests: &[RequestId], now: Instant) -> bool {
        let before = self.completed.len();
        for &request in requests {
            let Some(awaited) = self.awaited[request as usize].take() else { continue };
            self.free.push(request);
            match awaited {
                Awaited::Idle => self.idle = false,
                Awaited::Send(message) => self.sends.push(message),
                Awaited::Receive(message) => self.receives.push(message),
                Awaited::Message(handle) => self.completed.push((now, handle)),
            }
        }
        self.completed.len() > before
    }

    fn communicators(&self) -> Vec<Arc<str>> {
        self.names.to_vec()
    }

    fn stepped(&mut self) -> Option<&mut Stepped> {
        Some(self)
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::COMM_WORLD;

    fn message(handle: u64) -> Message {
        let (from, to) = (Rank(0), Rank(1));
        Message { handle, from, to, bytes: Bytes(8), tag: 0, mode: SendMode::Standard, comm: COMM_WORLD }
    }

    #[test]
    fn receives_come_before_sends_and_both_in_the_order_of_handles() {
        let mut source = Stepped::default();
        assert_eq!(source.ahead().unwrap().len(), 3, "a timer that keeps the job, and the wait");
        source.pass(3);
        let names: Vec<_> = [(3, false), (2, true), (1, false), (0, true)]
            .map(|(handle, receives)| source.schedule(message(handle), receives))
            .into();
        assert!(!source.completed(&names, Instant(5)), "nothing has arrived");
        let ops = source.ahead().unwrap().to_vec();
        source.pass(ops.len());
        let receives: Vec<_> = ops
            .iter()
            .filter_map(|op| match op {
                Op::P2p(P2p::Irecv { request, .. }) => Some(*request),
                _ => None,
            })
            .collect();
        let sends = ops.iter().position(|op| matches!(op, Op::P2p(P2p::Isend { .. })));
        assert_eq!((receives.len(), sends), (2, Some(4)));
        assert!(source.completed(&receives, Instant(9)));
        let mut all = Vec::new();
        source.take_completed(&mut all);
        assert_eq!(all, [(Instant(9), 0), (Instant(9), 2)]);
    }
}
