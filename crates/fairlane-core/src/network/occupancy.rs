//! The occupancy table that adaptive routings look at. Kept only for them, by port, and by lane only for those that ask for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::LinkId;
use crate::routing::{LaneLoads, Loads};

/// Windows ahead for which credits are kept in lists; those that come later wait in a heap.
const SLOTS: u64 = 64;

/// The occupancy of all ports.
#[derive(Clone, Default)]
pub(super) struct Occupancy {
    ports: Cells,
    /// The same of all lanes, if the routing looks at them.
    lanes: Option<Box<ByLane>>,
}

/// The occupancy of lanes.
#[derive(Clone)]
struct ByLane {
    /// By port, then lane.
    cells: Cells,
    /// Lanes of every port.
    lanes: u32,
}

impl ByLane {
    const fn cell(&self, link: u32, lane: u8) -> u32 {
        link * self.lanes + lane as u32
    }

    // Apart from what is done for ports, which stays small so.

    #[cold]
    fn route(&mut self, link: u32, lane: u8, bytes: u32) {
        self.cells.route(self.cell(link, lane), bytes);
    }

    #[cold]
    fn start(&mut self, link: u32, lane: u8, bytes: u32) {
        self.cells.start(self.cell(link, lane), bytes);
    }

    #[cold]
    fn inject(&mut self, link: u32, lane: u8, bytes: u32) {
        self.cells.inject(self.cell(link, lane), bytes);
    }

    #[cold]
    fn return_credits(&mut self, link: u32, lane: u8, bytes: u32, window: u64) {
        self.cells.return_credits(self.cell(link, lane), bytes, window);
    }

    /// See [`Loads`].
    #[cold]
    fn view<'a>(&'a self, first_lane: &'a [u8]) -> LaneLoads<'a> {
        let Cells { queued, used, routed, .. } = &self.cells;
        LaneLoads { queued, used, routed, first_lane }
    }
}

impl Occupancy {
    /// Bytes that it takes for every port, besides credits on their way.
    pub const BYTES_PER_PORT: usize = 3 * size_of::<u32>();

    /// All ports empty. `lanes` of each are kept apart as well, unless that is zero.
    pub fn new(ports: usize, lanes: usize) -> Self {
        let by_lane = |lanes| ByLane { cells: Cells::new(ports * lanes as usize), lanes };
        let lanes = u32::try_from(lanes).expect("invariant: at most 32 lanes");
        Self { ports: Cells::new(ports), lanes: (lanes > 0).then(|| Box::new(by_lane(lanes))) }
    }

    /// A window opens: takes in the credits that came before it.
    pub fn open(&mut self, window: u64) {
        self.ports.open(window);
        self.lanes.iter_mut().for_each(|lanes| lanes.cells.open(window));
    }

    /// Every credit on its way, or come but not taken in yet: link and bytes.
    pub fn for_each_credit(&self, visit: impl FnMut(u32, u32)) {
        self.ports.for_each_credit(visit);
    }

    /// The same by lane, where that is kept: port times lanes plus lane, and bytes.
    pub fn for_each_credit_of_lanes(&self, mut visit: impl FnMut(u32, u32)) {
        self.lanes.iter().for_each(|lanes| lanes.cells.for_each_credit(&mut visit));
    }

    /// What a switch sees that routes a packet. `first_lane`: see [`LaneLoads`].
    #[inline(always)]
    pub fn view<'a>(&'a self, first_lane: &'a [u8]) -> Loads<'a> {
        let Cells { queued, used, routed, .. } = &self.ports;
        let by_lane = self.lanes.as_ref().map(|lanes| lanes.view(first_lane));
        Loads { first: LinkId(0), queued, used, routed, by_lane }
    }

    /// What a switch sees of its own ports: `count` from number `port` on, of which the first feeds link `first`.
    #[inline]
    pub fn view_of<'a>(&'a self, first: LinkId, port: usize, count: usize, first_lane: &'a [u8]) -> Loads<'a> {
        let (queued, used, routed) = self.ports.slices(port, count);
        let by_lane = self.lanes.as_ref().map(|lanes| {
            let each = lanes.lanes as usize;
            let (queued, used, routed) = lanes.cells.slices(port * each, count * each);
            LaneLoads { queued, used, routed, first_lane }
        });
        Loads { first, queued, used, routed, by_lane }
    }

    /// A packet has been routed to a lane of `link`.
    #[inline(always)]
    pub fn route(&mut self, link: u32, lane: u8, bytes: u32) {
        self.ports.route(link, bytes);
        if let Some(lanes) = &mut self.lanes {
            lanes.route(link, lane, bytes);
        }
    }

    /// Every switch has routed what came to it in the open window.
    pub fn close(&mut self) {
        self.ports.close();
        self.lanes.iter_mut().for_each(|lanes| lanes.cells.close());
    }

    /// A packet that has been routed to a lane of `link` starts.
    #[inline(always)]
    pub fn start(&mut self, link: u32, lane: u8, bytes: u32) {
        self.ports.start(link, bytes);
        if let Some(lanes) = &mut self.lanes {
            lanes.start(link, lane, bytes);
        }
    }

    /// A packet starts on a NIC's link, which it was not routed to.
    #[inline(always)]
    pub fn inject(&mut self, link: u32, lane: u8, bytes: u32) {
        self.ports.inject(link, bytes);
        if let Some(lanes) = &mut self.lanes {
            lanes.inject(link, lane, bytes);
        }
    }

    /// Credits are returned to a lane of `link`, to arrive in a later window.
    #[inline(always)]
    pub fn return_credits(&mut self, link: u32, lane: u8, bytes: u32, window: u64) {
        self.ports.return_credits(link, bytes, window);
        if let Some(lanes) = &mut self.lanes {
            lanes.return_credits(link, lane, bytes, window);
        }
    }
}

/// What is queued at each port (or lane) and what has been sent and not given back, as of the opening of the open window.
#[derive(Clone, Default)]
struct Cells {
    queued: Vec<u32>,
    used: Vec<u32>,
    /// What has been routed to each port in the open window.
    routed: Vec<u32>,
    /// The links in `routed` that are not zero, and more.
    touched: Vec<u32>,
    /// Credits (link, bytes) by the window in which they come, modulo [`SLOTS`].
    credits: Vec<Vec<(u32, u32)>>,
    far: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Credits of windows before this one have been taken in.
    settled: u64,
}

impl Cells {
    fn new(ports: usize) -> Self {
        let slots = usize::try_from(SLOTS).expect("invariant: 64 fits a usize");
        let none = vec![0; ports];
        Self {
            queued: none.clone(),
            used: none.clone(),
            routed: none,
            credits: vec![Vec::new(); slots],
            ..Self::default()
        }
    }

    fn slices(&self, first: usize, count: usize) -> (&[u32], &[u32], &[u32]) {
        let range = first..first + count;
        (&self.queued[range.clone()], &self.used[range.clone()], &self.routed[range])
    }

    /// A window opens: takes in the credits that came before it.
    fn open(&mut self, window: u64) {
        for passed in self.settled.max(window.saturating_sub(SLOTS))..window {
            for (link, bytes) in self.credits[slot(passed)].drain(..) {
                self.used[link as usize] -= bytes;
            }
        }
        while let Some(&Reverse((time, link, bytes))) = self.far.peek() {
            if time >= window {
                break;
            }
            self.far.pop();
            self.used[link as usize] -= bytes;
        }
        self.settled = window;
    }

    /// Every credit on its way, or come but not taken in yet: link and bytes.
    fn for_each_credit(&self, mut visit: impl FnMut(u32, u32)) {
        self.credits.iter().flatten().for_each(|&(link, bytes)| visit(link, bytes));
        self.far.iter().for_each(|&Reverse((_, link, bytes))| visit(link, bytes));
    }

    /// A packet has been routed to `link`.
    #[inline(always)]
    fn route(&mut self, link: u32, bytes: u32) {
        self.routed[link as usize] += bytes;
        self.touched.push(link);
    }

    /// Every switch has routed what came to it in the open window.
    fn close(&mut self) {
        for link in self.touched.drain(..) {
            self.queued[link as usize] += std::mem::take(&mut self.routed[link as usize]);
        }
    }

    /// A packet that has been routed to `link` starts.
    #[inline(always)]
    fn start(&mut self, link: u32, bytes: u32) {
        self.queued[link as usize] -= bytes;
        self.used[link as usize] += bytes;
    }

    /// A packet starts on a NIC's link, which it was not routed to.
    #[inline(always)]
    fn inject(&mut self, link: u32, bytes: u32) {
        self.used[link as usize] += bytes;
    }

    /// Credits are returned to `link`, to arrive in a later window.
    #[inline(always)]
    fn return_credits(&mut self, link: u32, bytes: u32, window: u64) {
        if window < self.settled + SLOTS {
            self.credits[slot(window)].push((link, bytes));
        } else {
            self.far.push(Reverse((window, link, bytes)));
        }
    }
}

#[inline]
fn slot(window: u64) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "below 64")]
    {
        (window % SLOTS) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_rise_with_packets_and_fall_with_credits() {
        let load = |book: &Cells, link| (book.queued[link], book.used[link], book.routed[link]);
        let mut book = Cells::new(2);
        book.open(10);
        book.route(1, 50);
        book.route(1, 70);
        assert_eq!(load(&book, 1), (0, 0, 120));
        book.close();
        book.start(1, 50);
        book.return_credits(1, 50, 12);
        book.inject(0, 9);
        book.return_credits(0, 9, 1_000);
        assert_eq!((load(&book, 0), load(&book, 1)), ((0, 9, 0), (70, 50, 0)));
        book.open(12);
        assert_eq!(load(&book, 1), (70, 50, 0), "what comes in a window counts from the next");
        book.open(500);
        assert_eq!((load(&book, 0), load(&book, 1)), ((0, 9, 0), (70, 0, 0)));
        book.open(1_001);
        assert_eq!(load(&book, 0), (0, 0, 0));
    }
}
