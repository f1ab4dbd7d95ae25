//! A port through one window: arrivals, decisions, departures.

use super::{ActivePort, Arrival, UNCHARGED, each_lane, kind};
use crate::network::features::Instance;
use crate::network::index::Queued;
use crate::units::{Instant, Picoseconds};

/// The outcome for a single arrival.
#[derive(PartialEq, Eq)]
pub(in crate::network) enum Forwarded {
    /// It has started, or joined the queue of a link that is busy throughout the window.
    Yes,
    /// The first packet of a message has started, on this lane; there are more.
    Part(u8),
    /// It has to join the queue.
    No,
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Forwards `first`, the head of the inbox, if it is the only arrival of the window, nothing waits, and it can start in
    /// the window: with the same results as through the queue and `arbitrate`, in fewer steps. Most packets of a fabric that
    /// is not congested take this path.
    #[inline(always)]
    pub fn forward_single(&mut self, first: Queued, until: Instant) -> Forwarded {
        let entry = self.entry(first);
        let now = entry.time.max(self.port.busy_until);
        if entry.next.is_some() || self.port.stalled || self.paces() || self.config.has::<I>().loses {
            return Forwarded::No;
        }
        if now >= until {
            if self.goes_first(first) {
                self.enqueue(first, &entry);
            }
            self.in_flight.wake_port(self.number, now);
            return Forwarded::Yes;
        }
        let lane = entry.lane;
        if self.port.waiting != 0 || entry.bytes > self.available(lane, self.pool_taken()) {
            return Forwarded::No;
        }
        self.observation.waited_for_link::<I>(self.number, self.port, entry.job, now - entry.time);
        self.grant_single(lane, entry.bytes, now);
        if KIND == kind::NIC {
            let pair = self.pair_of(first);
            if pair.is_some() {
                self.goes_first(first);
            }
            let (packet, rest) = self.segment(lane, first.message());
            self.transmit(lane, packet, now);
            if rest {
                return Forwarded::Part(lane);
            }
            self.end_message(pair);
            return Forwarded::Yes;
        }
        self.transmit(lane, first.packet(), now);
        Forwarded::Yes
    }

    /// Runs the port through the open window, which ends at `until` (excluded). `first`: the head of its inbox.
    pub fn run(&mut self, first: Queued, until: Instant, arrivals: &mut Vec<Arrival>) {
        self.sort(first, arrivals);
        if self.config.has::<I>().loses {
            self.lose_arrivals(arrivals);
        }
        if self.paces() {
            self.take_notices(until, arrivals);
        }
        let mut taken = 0;
        while let Some(left) = self.run_decisions(until, &arrivals[taken..]) {
            taken = arrivals.len() - left;
            self.take_released(until, arrivals, taken);
        }
        if self.paces() {
            self.wake_for_released();
        }
        if self.port.waiting == 0 {
            return;
        }
        if !self.port.stalled {
            self.in_flight.wake_port(self.number, self.port.busy_until);
        } else if let Some(time) = self.in_flight.returns[self.number].next(self.config.awaited::<I>(self.port.waiting))
        {
            self.in_flight.wake_port(self.number, time);
        }
    }

    /// Runs the port through the window, or, of a NIC that paces, until there are released messages to take in. Returns how many
    /// arrivals are left then.
    fn run_decisions(&mut self, until: Instant, arrivals: &[Arrival]) -> Option<usize> {
        let mut arrivals = arrivals.iter();
        loop {
            if self.paces() && self.releases_before(until) {
                return Some(arrivals.len());
            }
            let now = if self.port.waiting != 0 && !self.port.stalled {
                self.port.busy_until
            } else if self.port.stalled && self.down() {
                // The link went down between the windows.
                self.port.busy_until.max(self.opening)
            } else {
                let arrival = arrivals.as_slice().first().map_or(Instant::MAX, |arrival| arrival.0);
                let credit = if self.port.stalled { self.next_credit() } else { Instant::MAX };
                arrival.min(credit).max(self.port.busy_until)
            };
            if now >= until {
                break;
            }
            if self.port.stalled {
                self.end_stall(now);
            }
            while let Some(&(_, _, queued)) = arrivals.as_slice().first().filter(|arrival| arrival.0 <= now) {
                self.admit(queued, until);
                arrivals.next();
            }
            if self.paces() {
                self.hold_back(now);
            }
            // All may be held back, given up, or lost.
            if (self.paces() || self.config.has::<I>().loses) && self.port.waiting == 0 {
                continue;
            }
            self.arbitrate(now);
        }
        // What arrives while the link is busy beyond the window.
        for &(_, _, queued) in arrivals {
            self.admit(queued, until);
        }
        // A notice may have released a message that joins its queue while the link is busy.
        if self.paces() && self.releases_before(until) {
            return Some(0);
        }
        None
    }

    /// An arrival joins its queue.
    #[inline(always)]
    fn admit(&mut self, queued: Queued, until: Instant) {
        let has = self.config.has::<I>();
        if KIND == kind::NIC && has.loses && queued.is_some() && self.gives_up(queued.message(), until) {
            return;
        }
        if self.paces() {
            self.rejoin(queued.message());
            if queued.is_none() {
                return;
            }
        }
        if KIND != kind::NIC && has.lossy && !self.finds_room(queued.packet()) {
            return;
        }
        if self.goes_first(queued) {
            self.enqueue(queued, &self.entry(queued));
        }
    }

    pub(super) fn next_credit(&self) -> Instant {
        let lanes = self.config.awaited::<I>(self.port.waiting);
        self.in_flight.returns[self.number].next(lanes).unwrap_or(Instant::MAX)
    }

    /// The link has been idle up to `now` although packets wait.
    #[cold]
    pub(super) fn end_stall(&mut self, now: Instant) {
        let span = now - self.port.busy_until;
        self.port.busy_until = now;
        self.port.stalled = false;
        if I::COUNTERS && span > Picoseconds::ZERO {
            self.port.idle_stalled += span;
            for lane in each_lane(self.port.waiting) {
                self.lanes[self.base + lane].stalled += span;
            }
            self.port.waiters.stalled(span.0);
            self.in_flight.returns[self.number].uncharged |= self.port.waiting;
            self.port.unusual |= UNCHARGED;
        }
        self.in_flight.returns[self.number].wakes = self.port.unusual & UNCHARGED != 0;
    }
}
