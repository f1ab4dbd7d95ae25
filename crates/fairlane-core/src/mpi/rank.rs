//! A rank as the MPI library sees it.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::collective::nonblocking::Background;
use super::collective::running::Running;
use super::comm::{Communicator, SELF_CONTEXT};
use super::p2p::matching::{Matching, Pattern};
use super::p2p::request::{Reports, Requests, Wait};
use super::rma::lock::Lock;
use super::rma::window::Window;
use crate::ids::{JobId, Rank};
use crate::observe::RankRecord;
use crate::program::{COMM_SELF, CommHandle, WindowHandle};
use crate::qos::classes::ClassSet;
use crate::units::{Instant, Picoseconds};

/// [`RankState::due`]: the program resumes only on an event.
pub(super) const NEVER: u64 = u64::MAX;
/// [`RankState::due`]: the program runs now.
pub(super) const RUNNING: u64 = u64::MAX - 1;

/// A rank of a job. What every message needs comes first: two cache lines, and the first of the record. There are as many as hosts
/// or more, so what only some programs need is in [`More`].
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct RankState {
    /// When its program resumes, or [`NEVER`], or [`RUNNING`].
    pub due: u64,
    /// Start of the operation that lasts, ps.
    pub since: u64,
    pub activity: Activity,
    pub job: JobId,
    pub rank: Rank,
    /// How many operations it has begun at the instant `since`.
    pub at_once: u32,
    /// Ranks of its job.
    pub size: u32,
    pub blocked: Blocked,
    pub collective: Option<Box<Running>>,
    pub requests: Requests,
    /// The requests it waits for, while it is blocked on requests.
    pub awaited: Vec<u32>,
    pub matching: Matching,
    pub record: RankRecord,
    pub finished: bool,
    /// How many iterations it has marked at the instant of the last one, less one.
    pub marks_at_once: u32,
    pub world: Communicator,
    more: OnceLock<Box<More>>,
}

const _: () = assert!(size_of::<RankState>() == 512, "eight cache lines");

/// The part of a rank's state that some programs need: other communicators than that of all ranks, non-blocking collectives, windows.
#[derive(Clone)]
pub(super) struct More {
    pub communicators: FxHashMap<CommHandle, Communicator>,
    pub background: Background,
    pub windows: FxHashMap<WindowHandle, Window>,
    /// By context, of communicators and windows that have a name: the classes that select their messages.
    pub classes: FxHashMap<u32, ClassSet>,
    /// The locks of its own parts of windows, by context.
    pub locks: FxHashMap<u32, Lock>,
    /// When operands that others have sent to its windows are combined.
    pub combining_until: u64,
    /// When the timed part of its iteration began, if it has said so.
    pub timed_since: Option<Instant>,
    /// When its burst began, after the first pause.
    pub burst_since: Option<u64>,
    /// The burst is over.
    pub burst_over: bool,
    /// The requests whose completion is reported to its source, if it has asked for one.
    pub reports: Option<Box<Reports>>,
}

impl More {
    /// Nothing but the communicator that every rank is alone in.
    fn new(rank: Rank) -> Box<Self> {
        let alone = Communicator::new(SELF_CONTEXT, 0, Arc::new([rank.0]));
        Box::new(Self {
            communicators: std::iter::once((COMM_SELF, alone)).collect(),
            background: Background::default(),
            windows: FxHashMap::default(),
            classes: FxHashMap::default(),
            locks: FxHashMap::default(),
            combining_until: 0,
            timed_since: None,
            burst_since: None,
            burst_over: false,
            reports: None,
        })
    }
}

/// The account that a rank's time goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Nothing,
    Compute,
    /// A call, by its index; see [`crate::observe::call_name`].
    Call(u8),
}

/// The event that ends an operation that lasts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocked {
    /// Time, if anything.
    Not,
    /// Enough of the requests in [`RankState::awaited`].
    Requests(Wait),
    /// A message that a probe has asked for.
    Probe(Pattern),
}

/// Consequence of the completion of a request.
pub(super) enum Completion {
    Noted,
    /// The wait of the rank is over.
    EndsWait,
    /// The request is over: nobody waits for it.
    Detached,
}

impl RankState {
    pub fn new(job: JobId, world: Communicator, start: Instant) -> Self {
        Self {
            due: start.0,
            since: 0,
            activity: Activity::Nothing,
            job,
            rank: Rank(world.rank),
            at_once: 0,
            size: u32::try_from(world.members.len()).expect("invariant: fewer than 2^32 ranks"),
            blocked: Blocked::Not,
            collective: None,
            requests: Requests::default(),
            matching: Matching::default(),
            record: RankRecord::default(),
            awaited: Vec::new(),
            finished: false,
            marks_at_once: 0,
            world,
            more: OnceLock::new(),
        }
    }

    /// The state that only some programs need, if the rank has had a use for it.
    #[inline]
    pub fn more(&self) -> Option<&More> {
        self.more.get().map(|more| &**more)
    }

    /// The same, to change it.
    #[inline]
    pub fn more_mut(&mut self) -> Option<&mut More> {
        self.more.get_mut().map(|more| &mut **more)
    }

    /// The same, which from now on there is.
    pub fn needed(&mut self) -> &mut More {
        self.more.get_or_init(|| More::new(self.rank));
        self.more.get_mut().expect("invariant: it has just been made")
    }

    /// The communicators of the rank, without that of all ranks.
    pub fn communicators(&self) -> &FxHashMap<CommHandle, Communicator> {
        &self.more.get_or_init(|| More::new(self.rank)).communicators
    }

    /// Counts the time of the operation that has lasted until now. Returns how many operations have been begun at this
    /// instant.
    #[inline]
    pub fn end_call(&mut self, now: u64) -> u32 {
        let span = now - self.since;
        match self.activity {
            Activity::Nothing => {}
            Activity::Compute => self.record.compute.0 += span,
            Activity::Call(call) => {
                let call = self.record.call_mut(call);
                call.count += 1;
                call.time.0 += span;
            }
        }
        if span == 0 { self.at_once + 1 } else { 0 }
    }

    /// A request is complete at `now`; `partner_at`: when its partner had done its part, if that was not known before.
    #[inline(always)]
    pub fn complete(&mut self, slot: u32, partner_at: Option<u64>, now: u64) -> Completion {
        let request = self.requests.get_mut(slot);
        request.complete_at = now;
        if let Some(partner_at) = partner_at {
            request.partner_at = partner_at;
        }
        if request.detached {
            return Completion::Detached;
        }
        if request.waited
            && let Blocked::Requests(wait) = &mut self.blocked
        {
            wait.missing -= 1;
            if wait.missing == 0 {
                return Completion::EndsWait;
            }
        }
        Completion::Noted
    }

    /// How long the operation that is active at `until` has lasted, as computation and as a call.
    pub fn under_way(&self, until: u64) -> (Picoseconds, Picoseconds) {
        let span = Picoseconds(until.saturating_sub(self.since));
        match self.activity {
            _ if self.finished => (Picoseconds(0), Picoseconds(0)),
            Activity::Nothing => (Picoseconds(0), Picoseconds(0)),
            Activity::Compute => (span, Picoseconds(0)),
            Activity::Call(_) => (Picoseconds(0), span),
        }
    }

    /// Deliveries to the rank make no difference before its program resumes, unless they need an answer.
    #[inline]
    pub fn is_deferrable(&self) -> bool {
        self.due != NEVER && !self.matching.is_attentive()
    }

    /// The rank is blocked on requests of which one is not complete.
    #[inline]
    pub fn ends_wait_soon(&self) -> bool {
        matches!(self.blocked, Blocked::Requests(Wait { missing: 1, .. }))
    }
}
