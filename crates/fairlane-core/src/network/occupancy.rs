//! The occupancy table that adaptive routings read. Kept only for them: by port, and by lane only for those that ask for it.
//!
//! The occupancy of a port is the bytes that have been routed to it and have not started, plus those for which it has not got
//! credits back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::index::{LaneIdx, PortIdx};
use crate::ids::LinkId;
use crate::routing::{LaneLoads, Loads};

/// Windows ahead for which credits are kept in lists; those that come later wait in a heap.
const SLOTS: u64 = 64;

/// The occupancy of all ports.
#[derive(Clone, Default)]
pub(super) struct Occupancy {
    ports: Cells,
    /// See [`Loads::waiting`]; empty if that is not kept.
    waiting: Vec<u32>,
    /// See [`Loads::full`].
    full: u32,
    /// See [`Loads::turns`].
    turns: Turns,
    /// The same of all lanes, if the routing looks at them.
    lanes: Option<Box<ByLane>>,
}

/// Counters of turns, by port.
#[derive(Default)]
struct Turns(Vec<AtomicU32>);

impl Clone for Turns {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|turns| AtomicU32::new(turns.load(Relaxed))).collect())
    }
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
    const fn cell(&self, port: PortIdx, lane: LaneIdx) -> u32 {
        port.0 * self.lanes + lane.0 as u32
    }

    // Not inlined, so that the code for ports alone stays small.

    #[cold]
    fn route(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.cells.route(self.cell(port, lane), bytes);
    }

    #[cold]
    fn inject(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.cells.inject(self.cell(port, lane), bytes);
    }

    #[cold]
    fn return_credits(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32, window: u64) {
        self.cells.return_credits(self.cell(port, lane), bytes, window);
    }

    /// See [`Loads`].
    #[cold]
    fn view<'a>(&'a self, first_lane: &'a [u8]) -> LaneLoads<'a> {
        LaneLoads { all: &self.cells.all, first_lane }
    }
}

impl Occupancy {
    /// Its largest size per port, bytes, without credits that return and without lanes.
    pub const BYTES_PER_PORT: usize = 3 * size_of::<u32>();

    /// All ports empty. `lanes` of each are kept apart as well, unless that is zero; with `routed`, what is routed to each port in
    /// the open window; with `full`, the bytes of a full packet, how many packets wait.
    pub fn new(ports: usize, lanes: usize, routed: bool, full: Option<u32>) -> Self {
        let by_lane = |lanes| ByLane { cells: Cells::new(ports * lanes as usize, false), lanes };
        let lanes = u32::try_from(lanes).expect("invariant: at most 64 lanes");
        let turns = Turns((0..ports).map(|_| AtomicU32::new(0)).collect());
        Self {
            ports: Cells::new(ports, routed),
            waiting: vec![0; if full.is_some() { ports } else { 0 }],
            full: full.unwrap_or(0),
            turns,
            lanes: (lanes > 0).then(|| Box::new(by_lane(lanes))),
        }
    }

    /// A window opens: books the credits that have arrived before it.
    pub fn open(&mut self, window: u64) {
        self.ports.open(window);
        self.lanes.iter_mut().for_each(|lanes| lanes.cells.open(window));
    }

    /// All credits that return, or have arrived and are not booked yet: number of the port and bytes.
    pub fn for_each_credit(&self, visit: impl FnMut(u32, u32)) {
        self.ports.for_each_credit(visit);
    }

    /// The same by lane, where that is kept: port times lanes plus lane, and bytes.
    pub fn for_each_credit_of_lanes(&self, mut visit: impl FnMut(u32, u32)) {
        self.lanes.iter().for_each(|lanes| lanes.cells.for_each_credit(&mut visit));
    }

    /// The loads that a switch sees when it routes a packet. `first`: see [`Config::first_link`](super::config::Config::first_link);
    /// `first_lane`: see [`LaneLoads`].
    #[inline(always)]
    pub fn view<'a>(&'a self, first: LinkId, first_lane: &'a [u8]) -> Loads<'a> {
        let Cells { all, routed, .. } = &self.ports;
        let by_lane = self.lanes.as_ref().map(|lanes| lanes.view(first_lane));
        let Self { waiting, full, turns, .. } = self;
        Loads { first, all, routed, by_lane, waiting, full: *full, turns: &turns.0, ids: &[] }
    }

    /// A packet has been routed to a lane of `port`. Its start there changes nothing: from then on its credits are missing
    /// instead.
    #[inline(always)]
    pub fn route(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.ports.route(port.0, bytes);
        if let Some(waiting) = self.waiting.get_mut(port.index()) {
            *waiting += 1;
        }
        if let Some(lanes) = &mut self.lanes {
            lanes.route(port, lane, bytes);
        }
    }

    /// A packet that has been routed to `port` starts, or is lost.
    #[inline(always)]
    pub fn start(&mut self, port: PortIdx) {
        if let Some(waiting) = self.waiting.get_mut(port.index()) {
            *waiting -= 1;
        }
    }

    /// Every switch has routed the packets that arrive in the open window.
    pub fn close(&mut self) {
        self.ports.close();
    }

    /// A packet starts on a NIC's link; no switch has routed it there.
    #[inline(always)]
    pub fn inject(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32) {
        self.ports.inject(port.0, bytes);
        if let Some(lanes) = &mut self.lanes {
            lanes.inject(port, lane, bytes);
        }
    }

    /// Credits are returned to a lane of `port`, to arrive in a later window.
    #[inline(always)]
    pub fn return_credits(&mut self, port: PortIdx, lane: LaneIdx, bytes: u32, window: u64) {
        self.ports.return_credits(port.0, bytes, window);
        if let Some(lanes) = &mut self.lanes {
            lanes.return_credits(port, lane, bytes, window);
        }
    }
}

/// The occupancy of each port, or of each lane, in bytes.
#[derive(Clone, Default)]
struct Cells {
    /// As of the opening of the open window, plus what has been routed or injected since.
    all: Vec<u32>,
    /// Of it, what has been routed to each port in the open window; empty if that is not kept.
    routed: Vec<u32>,
    /// The ports whose entries in `routed` may not be zero.
    touched: Vec<u32>,
    /// Credits (cell, bytes) by the window in which they arrive, modulo [`SLOTS`].
    credits: Vec<Vec<(u32, u32)>>,
    /// Credits (window, cell, bytes) of later windows.
    far: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Credits of windows before this one have been booked.
    settled: u64,
}

impl Cells {
    fn new(ports: usize, routed: bool) -> Self {
        let slots = usize::try_from(SLOTS).expect("invariant: 64 fits a usize");
        Self {
            all: vec![0; ports],
            routed: vec![0; if routed { ports } else { 0 }],
            credits: vec![Vec::new(); slots],
            ..Self::default()
        }
    }

    /// A window opens: books the credits that have arrived before it.
    fn open(&mut self, window: u64) {
        for passed in self.settled.max(window.saturating_sub(SLOTS))..window {
            for (cell, bytes) in self.credits[slot(passed)].drain(..) {
                self.all[cell as usize] -= bytes;
            }
        }
        while let Some(&Reverse((time, cell, bytes))) = self.far.peek() {
            if time >= window {
                break;
            }
            self.far.pop();
            self.all[cell as usize] -= bytes;
        }
        self.settled = window;
    }

    /// All credits that return, or have arrived and are not booked yet: cell and bytes.
    fn for_each_credit(&self, mut visit: impl FnMut(u32, u32)) {
        self.credits.iter().flatten().for_each(|&(cell, bytes)| visit(cell, bytes));
        self.far.iter().for_each(|&Reverse((_, cell, bytes))| visit(cell, bytes));
    }

    /// A packet has been routed to `cell`.
    #[inline(always)]
    fn route(&mut self, cell: u32, bytes: u32) {
        self.all[cell as usize] += bytes;
        if let Some(routed) = self.routed.get_mut(cell as usize) {
            *routed += bytes;
            self.touched.push(cell);
        }
    }

    /// Every switch has routed the packets that arrive in the open window.
    fn close(&mut self) {
        for cell in self.touched.drain(..) {
            self.routed[cell as usize] = 0;
        }
    }

    /// A packet starts on a NIC's link; no switch has routed it there.
    #[inline(always)]
    fn inject(&mut self, cell: u32, bytes: u32) {
        self.all[cell as usize] += bytes;
    }

    /// Credits are returned to `cell`, to arrive in a later window.
    #[inline(always)]
    fn return_credits(&mut self, cell: u32, bytes: u32, window: u64) {
        if window < self.settled + SLOTS {
            self.credits[slot(window)].push((cell, bytes));
        } else {
            self.far.push(Reverse((window, cell, bytes)));
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
        let load = |book: &Cells, link| (book.all[link], book.routed[link]);
        let mut book = Cells::new(2, true);
        book.open(10);
        book.route(1, 50);
        book.route(1, 70);
        assert_eq!(load(&book, 1), (120, 120));
        book.close();
        // The first starts, which changes nothing.
        book.return_credits(1, 50, 12);
        book.inject(0, 9);
        book.return_credits(0, 9, 1_000);
        assert_eq!((load(&book, 0), load(&book, 1)), ((9, 0), (120, 0)));
        book.open(12);
        assert_eq!(load(&book, 1), (120, 0), "what comes in a window counts from the next");
        book.open(500);
        assert_eq!((load(&book, 0), load(&book, 1)), ((9, 0), (70, 0)));
        book.open(1_001);
        assert_eq!(load(&book, 0), (0, 0));
    }
}
