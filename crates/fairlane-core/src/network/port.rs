//! The state of an output port, its lanes, and the credits on their way to it.

use crate::kernel::NONE;

/// The far end of a link is a switch.
pub(super) const SWITCH: u32 = u32::MAX;

/// What a port needs whenever it runs. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    /// The link carries a packet until then. While the port is stalled: the instant up to which its idle time has been
    /// accounted.
    pub busy_until: u64,
    /// Time of flight.
    pub latency: u64,
    /// Bits per second.
    pub rate: u64,
    /// Wire time of a full packet.
    pub full_wire_time: u64,
    /// Time in which the link has carried packets.
    pub active: u64,
    /// Time in which it was idle although packets waited.
    pub idle_stalled: u64,
    /// Lanes whose queue is not empty.
    pub waiting: u32,
    /// The NIC at the far end (the number of its own port), or [`SWITCH`].
    pub to_nic: u32,
    /// The job of the packet that the link carries, or carried last.
    pub job: u16,
    /// Idle, with packets that lack credits.
    pub stalled: bool,
    /// The credits that come next are to be charged with a stall.
    pub owed: bool,
}

/// A virtual lane of a port: its queue and its credits. Four to a cache line, because a port looks at all of its lanes.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub head: u32,
    pub tail: u32,
    /// Free bytes in the buffer at the far end, as far as the port has taken credits in.
    pub credits: u32,
    /// Packets sent since [`LaneRecord::packets`] was last brought up to date.
    pub packets: u32,
}

impl Lane {
    pub const fn new(credits: u32) -> Self {
        Self { head: NONE, tail: NONE, credits, packets: 0 }
    }
}

/// What is counted of a lane but seldom touched: a full packet that does not wait changes nothing here.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneRecord {
    pub packets: u64,
    /// By how many bytes its packets were shorter than full ones, in all.
    pub short: u64,
    /// Sum of the waiting times of its packets.
    pub waited: u64,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: u64,
    pub depth: u32,
    pub max_depth: u32,
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

/// All credits on their way to a port, and those that have come but were not needed yet. A port takes in what has come
/// only when a lane runs short: that changes no decision, and most decisions need not look.
#[derive(Clone, Debug)]
pub(super) struct Returning {
    /// Time of flight to the port.
    pub latency: u64,
    /// In no order.
    pub credits: Vec<Credit>,
    /// It matters when they come: the port is stalled, or a stall is to be charged to the first.
    pub watched: bool,
}

impl Returning {
    pub fn new(latency: u64) -> Self {
        Self { latency, credits: Vec::new(), watched: false }
    }

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

    /// The job whose credits came first, if any have come by `now`. Those of one instant are ordered by lane, then job.
    pub fn first_by(&self, now: u64) -> Option<u16> {
        let come = self.credits.iter().filter(|credit| credit.time <= now);
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

    /// When the next credits come, to a port that has taken in all that have come.
    pub fn next(&self) -> Option<u64> {
        self.credits.iter().map(|credit| credit.time).min()
    }
}
