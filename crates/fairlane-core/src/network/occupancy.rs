//! The occupancy table that adaptive routings read. Kept only for them: by port, and by lane only for those that ask for it.
//!
//! The occupancy of a port is the bytes that have been routed to it and have not started, plus those for which it has not got
//! credits back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU32;

use super::index::{LaneIdx, PortIdx};
use crate::ids::LinkId;
use crate::routing::{LaneLoads, Loads, PortLoads};

/// Windows ahead for which credits are kept in lists; those that come later wait in a heap.
const SLOTS: u64 = 64;

/// The occupancy of all ports, as of the opening of the open window, plus what has been routed or injected since.
#[derive(Clone, Default)]
pub(super) struct Occupancy {
    ports: PortLoads,
    /// The ports whose entries in `routed` may not be zero.
    touched: Vec<PortIdx>,
    credits: Returning,
    /// The same of all lanes, if the routing looks at them.
    lanes: Option<Box<ByLane>>,
}

/// The occupancy of lanes.
#[derive(Clone)]
struct ByLane {
    /// By port, then lane.
    all: Vec<u32>,
    credits: Returning,
    /// Lanes of every port.
    lanes: u32,
}

impl ByLane {
    const fn cell(&self, port: PortIdx, lane: LaneIdx) -> u32 {
        port.0 * self.lanes + lane.0 as u32
    }

    // Not inlined, so that the code for ports alone stays small.

    #[cold]
    fn add(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        let cell = self.cell(port, lane);
        self.all[cell as usize] += bytes;
    }

    #[cold]
    fn return_credits(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32, window: u64) {
        self.credits.add(self.cell(port, lane), bytes, window);
    }
}

impl Occupancy {
    /// Its largest size per port, bytes, without credits that return and without lanes.
    pub const BYTES_PER_PORT: usize = 3 * size_of::<u32>();

    /// All ports empty. `lanes` of each are kept apart as well, unless that is zero; with `routed`, what is routed to each port in
    /// the open window; with `full`, the bytes of a full packet, how many packets wait.
    pub fn new(ports: usize, lanes: usize, routed: bool, full: Option<u32>) -> Self {
        let counts = |kept: bool| vec![0; if kept { ports } else { 0 }];
        let by_lane = || ByLane {
            all: vec![0; ports * lanes],
            credits: Returning::default(),
            lanes: u32::try_from(lanes).expect("invariant: at most 64 lanes"),
        };
        Self {
            ports: PortLoads {
                all: counts(true),
                routed: counts(routed),
                waiting: counts(full.is_some()),
                full: full.unwrap_or(0),
                turns: counts(true).into_iter().map(AtomicU32::new).collect(),
            },
            touched: Vec::new(),
            credits: Returning::default(),
            lanes: (lanes > 0).then(|| Box::new(by_lane())),
        }
    }

    /// A window opens: books the credits that have arrived before it.
    pub fn open(&mut self, window: u64) {
        self.credits.book(window, &mut self.ports.all);
        self.lanes.iter_mut().for_each(|lanes| lanes.credits.book(window, &mut lanes.all));
    }

    /// All credits that return, or have arrived and are not booked yet: number of the port and bytes.
    pub fn for_each_credit(&self, visit: impl FnMut(u32, u32)) {
        self.credits.for_each(visit);
    }

    /// The same by lane, where that is kept: port times lanes plus lane, and bytes.
    pub fn for_each_credit_of_lanes(&self, mut visit: impl FnMut(u32, u32)) {
        self.lanes.iter().for_each(|lanes| lanes.credits.for_each(&mut visit));
    }

    /// The loads that a switch sees when it routes a packet. `first`: see [`Config::first_link`](super::config::Config::first_link);
    /// `first_lane`: see [`LaneLoads`].
    #[inline(always)]
    pub fn view<'a>(&'a self, first: LinkId, first_lane: &'a [u8]) -> Loads<'a> {
        let by_lane = self.lanes.as_ref().map(|lanes| LaneLoads { all: &lanes.all, first_lane });
        Loads { first, by_lane, ..Loads::of(&self.ports) }
    }

    /// A packet has been routed to a lane of `port`. Its start there changes nothing: from then on its credits are missing
    /// instead.
    #[inline(always)]
    pub fn route(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.inject(port, lane, bytes);
        if let Some(routed) = self.ports.routed.get_mut(port.index()) {
            *routed += bytes;
            self.touched.push(port);
        }
        if let Some(waiting) = self.ports.waiting.get_mut(port.index()) {
            *waiting += 1;
        }
    }

    /// A packet that has been routed to `port` starts, or is lost.
    #[inline(always)]
    pub fn start(&mut self, port: PortIdx) {
        if let Some(waiting) = self.ports.waiting.get_mut(port.index()) {
            *waiting -= 1;
        }
    }

    /// Every switch has routed the packets that arrive in the open window.
    pub fn close(&mut self) {
        self.touched.drain(..).for_each(|port| self.ports.routed[port.index()] = 0);
    }

    /// A packet starts on a NIC's link; no switch has routed it there.
    #[inline(always)]
    pub fn inject(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.ports.all[port.index()] += bytes;
        if let Some(lanes) = &mut self.lanes {
            lanes.add(port, lane, bytes);
        }
    }

    /// Credits are returned to a lane of `port`, to arrive in a later window.
    #[inline(always)]
    pub fn return_credits(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32, window: u64) {
        self.credits.add(port.0, bytes, window);
        if let Some(lanes) = &mut self.lanes {
            lanes.return_credits(port, lane, bytes, window);
        }
    }
}

/// Credits that return to ports, or to lanes.
#[derive(Clone)]
struct Returning {
    /// Cell (a port, or a lane of it) and bytes, by the window in which they arrive, modulo [`SLOTS`].
    near: [Vec<(u32, u32)>; SLOTS as usize],
    /// Window, cell and bytes of those of later windows.
    far: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Credits of windows before this one have been booked.
    settled: u64,
}

impl Default for Returning {
    fn default() -> Self {
        Self { near: [const { Vec::new() }; SLOTS as usize], far: BinaryHeap::new(), settled: 0 }
    }
}

impl Returning {
    /// Takes the credits that have arrived before a window off what is occupied.
    fn book(&mut self, window: u64, occupied: &mut [u32]) {
        for passed in self.settled.max(window.saturating_sub(SLOTS))..window {
            let credits = &mut self.near[slot(passed)];
            credits.iter().for_each(|&(cell, bytes)| occupied[cell as usize] -= bytes);
            credits.clear();
        }
        while let Some(&Reverse((_, cell, bytes))) = self.far.peek().filter(|far| far.0.0 < window) {
            self.far.pop();
            occupied[cell as usize] -= bytes;
        }
        self.settled = window;
    }

    /// Credits return that arrive in a later window.
    #[inline(always)]
    fn add(&mut self, cell: u32, bytes: u32, window: u64) {
        if window < self.settled + SLOTS {
            self.near[slot(window)].push((cell, bytes));
        } else {
            self.far.push(Reverse((window, cell, bytes)));
        }
    }

    /// All that return, or have arrived and are not booked yet: cell and bytes.
    fn for_each(&self, mut visit: impl FnMut(u32, u32)) {
        self.near.iter().flatten().for_each(|&(cell, bytes)| visit(cell, bytes));
        self.far.iter().for_each(|&Reverse((_, cell, bytes))| visit(cell, bytes));
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
        let load = |book: &Occupancy, port: usize| (book.ports.all[port], book.ports.routed[port]);
        let (ports, lane) = ([PortIdx(0), PortIdx(1)], LaneIdx(0));
        let mut book = Occupancy::new(2, 0, true, None);
        book.open(10);
        book.route(ports[1], lane, 50);
        book.route(ports[1], lane, 70);
        assert_eq!(load(&book, 1), (120, 120));
        book.close();
        // The first starts, which changes nothing.
        book.return_credits(ports[1], lane, 50, 12);
        book.inject(ports[0], lane, 9);
        book.return_credits(ports[0], lane, 9, 1_000);
        assert_eq!((load(&book, 0), load(&book, 1)), ((9, 0), (120, 0)));
        book.open(12);
        assert_eq!(load(&book, 1), (120, 0), "what comes in a window counts from the next");
        book.open(500);
        assert_eq!((load(&book, 0), load(&book, 1)), ((9, 0), (70, 0)));
        book.open(1_001);
        assert_eq!(load(&book, 0), (0, 0));
    }
}
