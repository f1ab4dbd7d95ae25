//! Requests of a rank: what it has started and not yet seen complete, and what it waits for.

use rustc_hash::FxHashMap;

use crate::kernel::prefetch;
use crate::program::RequestId;

/// Not yet.
pub(super) const PENDING: u64 = u64::MAX;

/// A started operation.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// When it was complete, or [`PENDING`].
    pub complete_at: u64,
    /// When the other side had done its part: made its send call, or posted its receive.
    pub partner_at: u64,
    /// When it was started.
    pub posted_at: u64,
    /// The slot belongs to a receive.
    pub receive: bool,
    /// The rank is blocked on it.
    pub waited: bool,
    /// Nobody waits for it: its slot is free once it is complete.
    pub detached: bool,
}

/// The requests of a rank, by slot and by the program's name.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    slots: Vec<Request>,
    free: Vec<u32>,
    /// By small name: [`UNKNOWN`], [`NULL`], or the slot's number plus [`FIRST`].
    small: Vec<u32>,
    /// The same by names that are not small.
    large: FxHashMap<RequestId, u32>,
}

/// Names below this have a table of their own: programs number their requests from zero.
const SMALL: RequestId = 1024;

/// Never given.
const UNKNOWN: u32 = 0;
/// Given once, and the request is over: MPI_REQUEST_NULL.
const NULL: u32 = 1;
const FIRST: u32 = 2;

/// What a program's name for a request stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// It was never given.
    Nothing,
    /// Its request is over: waiting for it asks for nothing (MPI_REQUEST_NULL).
    Null,
    /// The request in this slot.
    Slot(u32),
}

impl Requests {
    /// The rank will run soon.
    pub fn prefetch(&self) {
        if let Some(slot) = self.free.last() {
            prefetch(&self.slots[*slot as usize]);
        }
        if let Some(name) = self.small.first() {
            prefetch(name);
        }
    }

    pub fn start(&mut self, receive: bool, now: u64) -> u32 {
        let request =
            Request { complete_at: PENDING, partner_at: now, posted_at: now, receive, waited: false, detached: false };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = request;
            slot
        } else {
            self.slots.push(request);
            u32::try_from(self.slots.len() - 1).expect("invariant: fewer than 2^32 requests")
        }
    }

    /// Names a slot. False if the name is in use.
    pub fn name(&mut self, name: RequestId, slot: u32) -> bool {
        std::mem::replace(self.entry(name), slot + FIRST) < FIRST
    }

    /// What a name stands for.
    pub fn named(&mut self, name: RequestId) -> Named {
        match *self.entry(name) {
            UNKNOWN => Named::Nothing,
            NULL => Named::Null,
            entry => Named::Slot(entry - FIRST),
        }
    }

    /// The request of this name is over: the name is null until it is given again.
    pub fn forget_name(&mut self, name: RequestId) {
        *self.entry(name) = NULL;
    }

    fn entry(&mut self, name: RequestId) -> &mut u32 {
        if name >= SMALL {
            return self.large.entry(name).or_insert(UNKNOWN);
        }
        let place = name as usize;
        if place >= self.small.len() {
            self.small.resize(place + 1, UNKNOWN);
        }
        &mut self.small[place]
    }

    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub fn get(&self, slot: u32) -> &Request {
        &self.slots[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Request {
        &mut self.slots[slot as usize]
    }
}

/// How much of a list of requests a wait asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quorum {
    All,
    Any,
    Some,
}

/// A request in a wait's list: its slot, and the program's name for it where there is one.
pub(super) type Awaited = (u32, Option<RequestId>);

/// What a rank is blocked on: requests of [`super::RankState::awaited`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub quorum: Quorum,
    /// How many requests there are.
    pub count: usize,
    /// How many are not complete.
    pub pending: usize,
    /// From when on the rank waits (its CPU may be busy with sends until then).
    pub since: u64,
}

impl Wait {
    pub fn is_over(&self) -> bool {
        match self.quorum {
            Quorum::All => self.pending == 0,
            Quorum::Any | Quorum::Some => self.pending < self.count || self.count == 0,
        }
    }
}
