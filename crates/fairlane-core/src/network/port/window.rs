//! A port through a window: arrivals, decisions, departures.

use super::{ActivePort, Arrival, UNCHARGED, each_lane, kind};
use crate::network::features::Instance;
use crate::network::index::PacketIdx;
use crate::units::{Instant, Picoseconds};

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Takes the only arrival before `until`, if the port decides about nothing else before then: it starts without having joined
    /// a queue if it can before then, and joins one otherwise. Most packets of a fabric that is not congested take
    /// this path. Returns whether nothing is left to do.
    #[inline(always)]
    pub fn pass(&mut self, first: &mut PacketIdx, until: Instant) -> bool {
        let entry = self.entry(*first);
        let now = entry.time.max(self.port.busy_until);
        // A port that is stalled has been free since before.
        let has = self.config.has::<I>();
        let decides = self.port.waiting != 0 && self.port.busy_until < until;
        if decides || entry.next.is_some() || self.paces() || has.loses || has.pfc {
            return false;
        }
        if now >= until {
            self.port.busy_until = now;
            self.admit(*first, until);
            self.in_flight.wake_port(self.number, now);
            return true;
        }
        if entry.bytes > self.available(entry.lane, self.pool_taken()) {
            return false;
        }
        self.observation.waited_for_link::<I>(self.number, self.port, entry.traffic, now - entry.time);
        self.grant_single(entry.lane, entry.bytes, now);
        self.goes_first(*first);
        self.send(entry.lane, std::mem::replace(first, PacketIdx::NONE), now);
        self.port.waiting == 0
    }

    /// Runs the port through the open window, which ends at `until` (excluded). `first`: the head of its inbox.
    pub fn run(&mut self, first: PacketIdx, until: Instant, arrivals: &mut Vec<Arrival>) {
        self.sort(first, arrivals);
        if self.config.has::<I>().loses {
            self.lose_arrivals(arrivals);
        }
        if self.paces() {
            self.take_notices(until, arrivals);
        }
        self.advance(until, arrivals);
        if self.paces() {
            self.wake_for_released();
        }
        if self.port.waiting == 0 {
            return;
        }
        if !self.port.stalled {
            self.in_flight.wake_port(self.number, self.port.busy_until);
        } else if let Some(time) = self.in_flight.next_ready::<I>(self.config, self.number, self.port.waiting) {
            self.in_flight.wake_port(self.number, time);
        }
    }

    /// Makes all decisions before `until`, given in order all that arrives by then.
    #[inline(always)]
    pub fn advance(&mut self, until: Instant, arrivals: &mut Vec<Arrival>) {
        let mut taken = 0;
        loop {
            if self.paces() {
                self.take_released(until, arrivals, taken);
            }
            let now = self.next_decision(arrivals.get(taken).map_or(Instant::MAX, |arrival| arrival.0));
            if now >= until && taken == arrivals.len() {
                return;
            }
            if self.port.stalled {
                self.end_stall(now);
            }
            self.port.busy_until = now;
            while let Some(&(_, _, packet)) = arrivals.get(taken).filter(|arrival| arrival.0 <= now) {
                self.admit(packet, until);
                taken += 1;
            }
            if now >= until && !self.paces() {
                return;
            }
            if now >= until {
                // A notice may have released a packet that joins its queue while the link is busy.
                continue;
            }
            if self.paces() {
                self.hold_back(now);
            }
            // All may be held back, given up, or lost.
            if self.port.waiting != 0
                && let Some((lane, packet)) = self.arbitrate(now)
            {
                self.send(lane, packet, now);
            }
        }
    }

    /// When the port decides next, if nothing else arrives before `arrival`.
    fn next_decision(&self, arrival: Instant) -> Instant {
        if self.port.waiting != 0 && !self.port.stalled {
            self.port.busy_until
        } else if self.port.stalled && self.down() {
            // The link went down between the windows.
            self.port.busy_until.max(self.opening)
        } else {
            let credit = if self.port.stalled { self.next_credit() } else { Instant::MAX };
            arrival.min(credit).max(self.port.busy_until)
        }
    }

    /// An arrival joins its queue.
    #[inline(always)]
    fn admit(&mut self, packet: PacketIdx, until: Instant) {
        let has = self.config.has::<I>();
        if KIND == kind::NIC && has.loses && packet.is_some() && self.gives_up(packet, until) {
            return;
        }
        if self.paces() {
            self.rejoin(packet);
            if packet.is_none() {
                return;
            }
        }
        if KIND != kind::NIC && has.lossy && !self.finds_room(packet) {
            return;
        }
        if self.goes_first(packet) {
            self.enqueue(packet, &self.entry(packet));
        }
    }

    pub(super) fn next_credit(&self) -> Instant {
        self.in_flight.next_ready::<I>(self.config, self.number, self.port.waiting).unwrap_or(Instant::MAX)
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
                self.lanes[self.base + lane.index()].stalled += span;
            }
            self.port.waiters.stalled(span.0);
            self.in_flight.returns[self.number].uncharged |= self.port.waiting;
            self.port.unusual |= UNCHARGED;
        }
        self.in_flight.returns[self.number].wakes = self.port.unusual & UNCHARGED != 0;
    }
}
