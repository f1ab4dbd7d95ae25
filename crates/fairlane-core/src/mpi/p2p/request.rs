//! Requests of a rank: what it has started and not yet seen complete, and what it waits for.

use rustc_hash::FxHashMap;

use crate::kernel::{NONE, prefetch_at};
use crate::program::RequestId;

/// Not yet.
pub(in crate::mpi) const PENDING: u64 = u64::MAX;

/// A started operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) struct Request {
    /// When it was complete, or [`PENDING`].
    pub complete_at: u64,
    /// When the other side had done its part, once that is known: made its send call, or posted its receive. Before,
    /// when this side had.
    pub partner_at: u64,
    name_state: NameState,
    /// It is a receive.
    pub receive: bool,
    /// The rank is blocked on it.
    pub waited: bool,
    /// Nobody waits for it: it is over once it is complete.
    pub detached: bool,
    /// If it is detached: the non-blocking operation that proceeds when it is complete, or [`NONE`].
    pub owner: u32,
}

/// State of the program's name for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameState {
    /// It was never given.
    Unknown,
    /// Its request is over: waiting for it asks for nothing (MPI_REQUEST_NULL).
    Null,
    /// The request that stands here.
    Open,
    /// A request among the others: the name was freed while its request was active, which still has this slot.
    Moved,
}

/// The requests of a rank. A request stands in a slot with a number: its name if that is small, a greater number if not.
#[derive(Clone, Debug, Default)]
pub(in crate::mpi) struct Requests {
    /// By name, below [`SMALL`]: programs number their requests from zero.
    small: Vec<Request>,
    others: Box<Others>,
}

/// Requests without a name, and those with a name that is not small.
#[derive(Clone, Debug, Default)]
struct Others {
    slots: Vec<(Request, Option<RequestId>)>,
    free: Vec<u32>,
    /// The slot's number, or [`NULL`].
    names: FxHashMap<RequestId, u32>,
}

/// Names below this are slots.
const SMALL: u32 = 1024;
/// So many slots are added at a time.
const GROWTH: usize = 16;
/// Given once, and the request is over: no slot of [`Others`] has this number.
const NULL: u32 = 0;

/// Meaning of a program's name for a request.
#[derive(Debug)]
pub(in crate::mpi) enum NamedRequest<'r> {
    /// It was never given.
    Nothing,
    /// Its request is over: waiting for it asks for nothing (MPI_REQUEST_NULL).
    Null,
    /// This request, in the slot of this number.
    Open(u32, &'r mut Request),
}

impl Request {
    /// A receive that is posted now.
    #[inline]
    pub fn receive(now: u64) -> Self {
        let (name_state, waited, detached) = (NameState::Open, false, false);
        Self { complete_at: PENDING, partner_at: now, name_state, receive: true, waited, detached, owner: NONE }
    }

    /// A send that is called now.
    #[inline]
    pub fn send(now: u64, complete_at: u64) -> Self {
        Self { complete_at, receive: false, ..Self::receive(now) }
    }
}

impl Requests {
    /// The rank will run soon, and what happens first may be for the request in this slot.
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        prefetch_at(&self.small, slot as usize);
    }

    /// Starts a request that the program calls `name`, or does not see. `None` if the name is in use.
    #[inline(always)]
    pub fn start(&mut self, name: Option<RequestId>, started: Request) -> Option<u32> {
        // Made where it is stored, so that it stays in registers.
        let Request { complete_at, partner_at, receive, .. } = started;
        let started = || Request { receive, ..Request::send(partner_at, complete_at) };
        let Some(name) = name else { return Some(self.others.start(None, started())) };
        match self.small.get_mut(name as usize) {
            Some(request) if request.name_state <= NameState::Null => {
                *request = started();
                Some(name)
            }
            Some(Request { name_state: NameState::Open, .. }) => None,
            _ => self.start_unusual(name, started()),
        }
    }

    /// As [`Self::start`], for a name that is new, or not small, or has moved.
    #[inline(never)]
    fn start_unusual(&mut self, name: RequestId, started: Request) -> Option<u32> {
        if name < SMALL && self.small.len() <= name as usize {
            let never = Request { name_state: NameState::Unknown, ..started };
            self.small.resize((name as usize + 1).next_multiple_of(GROWTH), never);
            return self.start(Some(name), started);
        }
        if self.others.names.get(&name).is_some_and(|slot| *slot != NULL) {
            return None;
        }
        let slot = self.others.start(Some(name), started);
        self.others.names.insert(name, slot);
        Some(slot)
    }

    /// The meaning of a name.
    #[inline(always)]
    pub fn named(&mut self, name: RequestId) -> NamedRequest<'_> {
        match self.small.get_mut(name as usize) {
            Some(request) => match request.name_state {
                NameState::Open => NamedRequest::Open(name, request),
                NameState::Null => NamedRequest::Null,
                NameState::Unknown => NamedRequest::Nothing,
                NameState::Moved => self.others.named(name),
            },
            None => self.others.named(name),
        }
    }

    /// The rank waits for these requests. Marks them up to the first that is not a single open one with a small name, whose slot
    /// is the name. Returns how many those are, and how many of them are pending.
    #[inline]
    pub fn wait_for_small(&mut self, names: &[RequestId]) -> (usize, u32) {
        let mut pending = 0;
        for (place, &name) in names.iter().enumerate() {
            match self.small.get_mut(name as usize) {
                Some(request) if request.name_state == NameState::Open && !request.waited => {
                    request.waited = true;
                    pending += u32::from(request.complete_at == PENDING);
                }
                _ => return (place, pending),
            }
        }
        (names.len(), pending)
    }

    /// The request in this slot is over: its name is null until it is given again. Returns what the request was.
    #[inline]
    pub fn end(&mut self, slot: u32) -> &Request {
        match self.small.get_mut(slot as usize) {
            Some(request) => {
                if request.name_state == NameState::Open {
                    request.name_state = NameState::Null;
                }
                request
            }
            None => self.others.end(slot),
        }
    }

    /// The program frees the name of a request (MPI_Request_free), which ends once it is complete.
    pub fn free(&mut self, slot: u32) {
        let request = self.get_mut(slot);
        if request.complete_at != PENDING {
            self.end(slot);
            return;
        }
        request.detached = true;
        if slot < SMALL {
            request.name_state = NameState::Moved;
            self.others.names.insert(slot, NULL);
        } else {
            self.others.forget_name(slot);
        }
    }

    /// The program's name for the request in this slot, if it has one.
    pub fn name(&self, slot: u32) -> Option<RequestId> {
        if slot < SMALL { Some(slot) } else { self.others.slots[(slot - SMALL) as usize].1 }
    }

    pub fn get(&self, slot: u32) -> &Request {
        match self.small.get(slot as usize) {
            Some(request) => request,
            None => &self.others.slots[(slot - SMALL) as usize].0,
        }
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Request {
        match self.small.get_mut(slot as usize) {
            Some(request) => request,
            None => &mut self.others.slots[(slot - SMALL) as usize].0,
        }
    }
}

impl Others {
    fn start(&mut self, name: Option<RequestId>, started: Request) -> u32 {
        let entry = (started, name);
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(entry);
            u32::try_from(self.slots.len() - 1).expect("invariant: fewer than 2^32 requests")
        });
        self.slots[place as usize] = entry;
        SMALL + place
    }

    fn named(&mut self, name: RequestId) -> NamedRequest<'_> {
        match self.names.get(&name) {
            None => NamedRequest::Nothing,
            Some(&NULL) => NamedRequest::Null,
            Some(&slot) => NamedRequest::Open(slot, &mut self.slots[(slot - SMALL) as usize].0),
        }
    }

    fn forget_name(&mut self, slot: u32) {
        if let Some(name) = self.slots[(slot - SMALL) as usize].1.take() {
            self.names.insert(name, NULL);
        }
    }

    #[inline(never)]
    fn end(&mut self, slot: u32) -> &Request {
        self.forget_name(slot);
        self.free.push(slot - SMALL);
        &self.slots[(slot - SMALL) as usize].0
    }
}

/// [`Request::owner`]: the completion is reported to the source.
pub(in crate::mpi) const SOURCE: u32 = NONE - 1;

/// The requests of a rank whose completion is reported to its source.
#[derive(Clone, Debug, Default)]
pub(in crate::mpi) struct Reports {
    /// Slots of complete requests that no wait has ended yet, in the order of their completion.
    pub complete: Vec<u32>,
    /// Names of those that a wait has ended, until the source is told.
    pub ended: Vec<RequestId>,
    /// How much work is under way on devices.
    pub offloaded: u32,
}

/// How much of a list of requests a wait asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mpi) enum Quorum {
    All,
    Any,
    Some,
    /// Those whose completion is reported to the source, as many as are complete.
    Reported,
}

/// A wait for the requests of `awaited` of the rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::mpi) struct Wait {
    pub quorum: Quorum,
    /// How many more must become complete.
    pub missing: u32,
    /// From when on the rank waits (its CPU may be busy with sends until then).
    pub since: u64,
}

impl Wait {
    /// A wait for `count` requests, of which `pending` are not complete.
    #[inline]
    pub fn new(quorum: Quorum, count: usize, pending: u32, since: u64) -> Self {
        let missing = match quorum {
            Quorum::All => pending,
            Quorum::Any | Quorum::Some | Quorum::Reported => u32::from(pending > 0 && pending as usize == count),
        };
        Self { quorum, missing, since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot_of(requests: &mut Requests, name: RequestId) -> Option<u32> {
        match requests.named(name) {
            NamedRequest::Open(slot, _) => Some(slot),
            NamedRequest::Null | NamedRequest::Nothing => None,
        }
    }

    #[test]
    fn names_are_null_once_their_requests_are_over() {
        for name in [3, 70_000] {
            let mut requests = Requests::default();
            assert!(matches!(requests.named(name), NamedRequest::Nothing));
            let slot = requests.start(Some(name), Request::receive(5)).unwrap();
            assert_eq!(requests.start(Some(name), Request::receive(6)), None, "the name is in use");
            assert_eq!(slot_of(&mut requests, name), Some(slot));
            assert_eq!(requests.end(slot).partner_at, 5);
            assert!(matches!(requests.named(name), NamedRequest::Null));
            assert_eq!(requests.start(Some(name), Request::send(7, 8)), Some(slot), "the slot is used again");
        }
    }

    #[test]
    fn a_name_given_up_is_free_while_its_request_is_under_way() {
        for name in [3, 70_000] {
            let mut requests = Requests::default();
            let first = requests.start(Some(name), Request::receive(1)).unwrap();
            requests.free(first);
            assert!(matches!(requests.named(name), NamedRequest::Null));
            let second = requests.start(Some(name), Request::receive(2)).unwrap();
            assert_ne!(first, second);
            assert!(requests.get_mut(first).detached && !requests.get_mut(second).detached);
            requests.end(first);
            assert_eq!(slot_of(&mut requests, name), Some(second), "the first has left the name alone");
            requests.end(second);
            assert!(matches!(requests.named(name), NamedRequest::Null));
        }
    }

    #[test]
    fn a_complete_request_given_up_is_over() {
        let mut requests = Requests::default();
        let slot = requests.start(Some(0), Request::send(1, 2)).unwrap();
        requests.free(slot);
        assert_eq!(requests.start(Some(0), Request::receive(3)), Some(slot));
    }

    #[test]
    fn requests_without_a_name_have_slots_of_their_own() {
        let mut requests = Requests::default();
        let slots: Vec<u32> = (0..3).map(|now| requests.start(None, Request::receive(now)).unwrap()).collect();
        assert!(slots.iter().all(|slot| *slot >= SMALL));
        requests.end(slots[1]);
        assert_eq!(requests.start(None, Request::receive(9)), Some(slots[1]));
    }
}
