//! The state of an output port, its lanes, and the credits on their way to it.

use crate::kernel::NONE;
use crate::observe::Waiters;
use crate::units::BitsPerSec;

/// What a port needs whenever it runs. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    /// The link carries a packet until then. While the port is stalled: the instant up to which its idle time has been
    /// accounted.
    pub busy_until: u64,
    /// Time in which the link has carried packets.
    pub active: u64,
    /// Time in which it was idle although packets waited.
    pub idle_stalled: u64,
    /// The packets that wait, by job. Kept only if counters are.
    pub waiters: Waiters,
    /// Lanes whose queue is not empty.
    pub waiting: u32,
    /// Lanes that lacked credits in a stall that has not been charged yet: the credits that come next to one of them are
    /// charged with it.
    pub owed: u32,
    /// Its [`Wire`].
    pub wire: u32,
    /// The job of the packet that the link carries, or carried last.
    pub job: u16,
    /// Idle, with packets that lack credits.
    pub stalled: bool,
}

impl Port {
    pub fn new(wire: u32) -> Self {
        Self {
            busy_until: 0,
            active: 0,
            idle_stalled: 0,
            waiters: Waiters::default(),
            waiting: 0,
            owed: 0,
            wire,
            job: 0,
            stalled: false,
        }
    }
}

/// What many links share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    /// Time of flight.
    pub latency: u64,
    pub bandwidth: BitsPerSec,
    /// Wire time of a full packet.
    pub full_wire_time: u64,
}

/// A virtual lane of a port: its queue, its credits, and what is counted of it. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Lane {
    pub head: u32,
    pub tail: u32,
    /// Free bytes in the buffer at the far end, as far as the port has taken credits in.
    pub credits: u32,
    /// Credits on their way, or come, that will all have come by `soon_by`; see [`Lane::give_back`].
    pub soon: u32,
    pub soon_by: u64,
    pub depth: u32,
    pub max_depth: u32,
    pub packets: u64,
    pub bytes: u64,
    /// Sum of the waiting times of its packets.
    pub waited: u64,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: u64,
}

const _: () = assert!(size_of::<Port>() == 64 && size_of::<Lane>() == 64);

impl Lane {
    pub const fn new(credits: u32) -> Self {
        Self {
            head: NONE,
            tail: NONE,
            credits,
            soon: 0,
            soon_by: 0,
            depth: 0,
            max_depth: 0,
            packets: 0,
            bytes: 0,
            waited: 0,
            stalled: 0,
        }
    }

    /// Takes in what is certain to have come by `now`. Returns whether there was any.
    #[inline]
    pub fn take_soon(&mut self, now: u64) -> bool {
        // Without a branch: whether there is any is as good as random.
        let come = if now >= self.soon_by { self.soon } else { 0 };
        self.credits += come;
        self.soon -= come;
        come > 0
    }

    /// Credits that will have come by `by` are given back, in the window that opened at `opening`. Returns whether the lane
    /// keeps them: so it does if it has `ample` credits, those on their way not counted: then it cannot run short before they
    /// come, whatever it sends until then (see [`Fixed::ample`](super::fixed::Fixed::ample)), and the instant at which they
    /// come makes no difference and need not be remembered.
    #[inline(always)]
    pub fn give_back(&mut self, bytes: u32, by: u64, opening: u64, ample: u32) -> bool {
        self.take_soon(opening);
        let kept = self.credits >= ample;
        if kept {
            self.soon += bytes;
            self.soon_by = self.soon_by.max(by);
        }
        kept
    }
}

/// Credits on their way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// When they arrive.
    pub time: u64,
    pub bytes: u32,
    /// The job of the packet that gave them back.
    pub job: u16,
    pub lane: u8,
}

/// Credits on their way to a port whose lanes may need them the instant they come, and those that have come but were not
/// needed yet. A port takes in what has come only when a lane runs short: that changes no decision, and most decisions need
/// not look.
#[derive(Clone, Debug, Default)]
pub(super) struct Returning {
    /// In no order.
    pub credits: Vec<Credit>,
    /// It matters when they come: the port is stalled, or a stall is to be charged to the first.
    pub watched: bool,
}

impl Returning {
    /// Moves the credits that have come by `now` to the port's lanes. Returns whether there were any.
    pub fn settle(&mut self, lanes: &mut [Lane], now: u64) -> bool {
        let before = self.credits.len();
        let mut place = 0;
        while let Some(&credit) = self.credits.get(place) {
            if credit.time > now {
                place += 1;
            } else {
                lanes[usize::from(credit.lane)].credits += credit.bytes;
                self.credits.swap_remove(place);
            }
        }
        self.credits.len() < before
    }

    /// The job whose credits came first to any of `lanes`, if any have come by `now`. Those of one instant are ordered by
    /// lane, then job.
    pub fn first_by(&self, now: u64, lanes: u32) -> Option<u16> {
        let come = self.credits.iter().filter(|credit| credit.time <= now && lanes >> credit.lane & 1 == 1);
        come.map(|credit| (credit.time, credit.lane, credit.job)).min().map(|(.., job)| job)
    }

    /// Makes room for more, by taking in what has come by `opening`, the opening of the open window, where that can wait no
    /// longer than the port itself would.
    #[cold]
    pub fn make_room(&mut self, lanes: &mut [Lane], opening: u64) {
        const ROOM: usize = 8;
        if !self.watched {
            self.settle(lanes, opening);
        }
        if 2 * self.credits.len() >= self.credits.capacity() {
            self.credits.reserve_exact(ROOM);
        }
    }

    /// When the next credits come to any of `lanes`, of a port that has taken in all that have come.
    pub fn next(&self, lanes: u32) -> Option<u64> {
        let theirs = self.credits.iter().filter(|credit| lanes >> credit.lane & 1 == 1);
        theirs.map(|credit| credit.time).min()
    }
}
