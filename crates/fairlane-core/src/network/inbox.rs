//! What is on its way to a port: packets (messages, for a NIC's port) by window, and credits by time.

use super::Network;
use super::port::Credit;
use crate::ids::HostId;
use crate::kernel::{NONE, prefetch};
use crate::units::Instant;

impl Network {
    /// Takes what the calendar kept for the window that has just opened.
    pub(super) fn take_due(&mut self) {
        while let Some((port, record)) = self.calendar.next_due() {
            self.put(port, record, self.calendar.window());
        }
    }

    /// Sends a packet (a message, to a NIC's port) to arrive at `port` at instant `time`.
    #[inline(always)]
    pub(super) fn send_to(&mut self, port: u32, record: u32, time: u64) {
        let window = self.calendar.window_of(Instant(time));
        if window - self.calendar.window() < self.inbox_slots {
            self.put(port, record, window);
            self.calendar.wake_port_in(port, window);
        } else {
            self.calendar.defer(port, record, window);
        }
    }

    #[inline]
    fn put(&mut self, port: u32, record: u32, window: u64) {
        let slot = self.inbox_slot(window, port);
        let head = std::mem::replace(&mut self.inbox[slot], record);
        self.set_next(port, record, head);
    }

    #[inline]
    fn inbox_slot(&self, window: u64, port: u32) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "below 32")]
        let slot = (window & (self.inbox_slots - 1)) as usize;
        slot * self.ports.len() + port as usize
    }

    /// Empties the open window's inbox of `port`: the head of its list.
    #[inline]
    pub(super) fn empty_inbox(&mut self, port: u32) -> u32 {
        let slot = self.inbox_slot(self.calendar.window(), port);
        std::mem::replace(&mut self.inbox[slot], NONE)
    }

    /// `port` will run soon: fetches what is at the head of its inbox.
    #[inline]
    pub(super) fn prefetch_arrival(&self, port: u32) {
        let head = self.inbox[self.inbox_slot(self.calendar.window(), port)];
        if head != NONE && port >= self.nics {
            prefetch(&self.packets[head]);
        } else if head != NONE {
            prefetch(&self.messages[head]);
        }
    }

    /// `port` will run soon: fetches the lane that its first arrival joins, the port that gets its credits, and the credits
    /// that come first.
    pub(super) fn prefetch_lane(&self, port: u32) {
        let head = self.inbox[self.inbox_slot(self.calendar.window(), port)];
        let state = &self.ports[port as usize];
        let lane = if head == NONE {
            (state.waiting.trailing_zeros() as usize).min(self.lanes - 1)
        } else if port < self.nics {
            usize::from(self.messages[head].vl * self.channels)
        } else {
            let packet = &self.packets[head];
            let hop = usize::from(packet.hop);
            prefetch(&self.ports[packet.route[hop - 1].link() as usize]);
            usize::from(packet.vl * self.channels + packet.route[hop].channel())
        };
        prefetch(&self.lane_table[port as usize * self.lanes + lane]);
        if state.credits != NONE {
            prefetch(&self.credits[state.credits]);
        }
        if state.waiting != 0 {
            self.interference.prefetch(port);
        }
    }

    /// `port` will run very soon: fetches the lane that gets its first credits, and the first of the list that its arrival's
    /// credits join.
    pub(super) fn prefetch_credits(&self, port: u32) {
        let own = self.ports[port as usize].credits;
        if own != NONE {
            prefetch(&self.lane_table[port as usize * self.lanes + usize::from(self.credits[own].lane)]);
        }
        let head = self.inbox[self.inbox_slot(self.calendar.window(), port)];
        if head != NONE && port >= self.nics {
            let packet = &self.packets[head];
            let upstream = self.ports[packet.route[usize::from(packet.hop) - 1].link() as usize].credits;
            if upstream != NONE {
                prefetch(&self.credits[upstream]);
            }
        }
    }

    /// `host` will run soon: fetches the packets that come to it.
    pub(super) fn prefetch_incoming(&self, host: HostId) {
        for nic in self.nics_of(host) {
            let head = self.incoming[nic as usize].0;
            if head != NONE {
                prefetch(&self.packets[head]);
            }
        }
    }

    /// The record behind `record` in a list of `port`.
    #[inline]
    pub(super) fn next_of(&self, port: u32, record: u32) -> u32 {
        if port < self.nics { self.messages[record].next } else { self.packets[record].next }
    }

    /// Collects what came in the inbox of `port`: (time, tie, record), sorted.
    pub(super) fn sort_arrivals(&self, port: u32, mut record: u32, arrivals: &mut Vec<(u64, u64, u32)>) {
        arrivals.clear();
        while record != NONE {
            let (time, tie, next) = if port < self.nics {
                let message = &self.messages[record];
                (message.offered, message.sequence, message.next)
            } else {
                let packet = &self.packets[record];
                (packet.time, u64::from(packet.route[usize::from(packet.hop) - 1].link()), packet.next)
            };
            // Sorted in place: there are one to three.
            let mut place = arrivals.len();
            // The list has the newest first: of equals (empty packets of one link) the older comes before.
            while place > 0 && (arrivals[place - 1].0, arrivals[place - 1].1) >= (time, tie) {
                place -= 1;
            }
            arrivals.insert(place, (time, tie, record));
            record = next;
        }
    }

    #[inline]
    pub(super) fn set_next(&mut self, port: u32, record: u32, next: u32) {
        if port < self.nics { self.messages[record].next = next } else { self.packets[record].next = next }
    }

    /// Sends credits back to `port`. Those of one instant are ordered by lane, then job.
    #[inline(always)]
    pub(super) fn give_back(&mut self, port: u32, credit: Credit) {
        let time = credit.time;
        let mut before = NONE;
        let mut after = self.ports[port as usize].credits;
        while after != NONE {
            let other = &self.credits[after];
            if other.time > time || (other.time == time && (other.lane, other.job) > (credit.lane, credit.job)) {
                break;
            }
            before = after;
            after = other.next;
        }
        let record = self.credits.insert(Credit { next: after, ..credit });
        if before == NONE {
            self.ports[port as usize].credits = record;
        } else {
            self.credits[before].next = record;
        }
        if self.ports[port as usize].stalled {
            self.calendar.wake_port(port, Instant(time));
        }
    }

    /// Takes in the credits that have come to `port` by `now`.
    #[inline]
    pub(super) fn take_credits<const OBSERVE: bool>(&mut self, port: u32, now: u64) {
        let record = self.ports[port as usize].credits;
        if record != NONE && self.credits[record].time <= now {
            self.take_due_credits::<OBSERVE>(port, record, now);
        }
    }

    pub(super) fn take_due_credits<const OBSERVE: bool>(&mut self, port: u32, mut record: u32, now: u64) {
        while record != NONE && self.credits[record].time <= now {
            let Credit { next, bytes, job, lane, .. } = self.credits[record];
            self.lane_table[port as usize * self.lanes + usize::from(lane)].credits += bytes;
            self.credits.remove(record);
            if OBSERVE && self.ports[port as usize].waiting != 0 {
                self.interference.credited(port, job);
            }
            record = next;
        }
        self.ports[port as usize].credits = record;
    }
}
