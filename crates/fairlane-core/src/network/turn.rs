//! A port in one window: arrivals, decisions, departures.
//!
//! A port whose link is free takes in what has joined and picks a packet; see [`super::start`] for what the packet does
//! then. The port's own records are looked up once for the whole window.

use super::fixed::Fixed;
use super::flight::Flight;
use super::port::{Lane, Port};
use super::watch::Watch;
use crate::ids::VirtualLane;
use crate::kernel::NONE;
use crate::qos::arbiter::{Lanes, State};
use crate::units::{Bytes, Instant};

/// An arrival at a port: time, order among those of one time, record.
pub(super) type Arrival = (u64, u64, u32);

/// The kinds of port.
pub(super) mod kind {
    /// A NIC's, whose queues hold messages instead of packets.
    pub const NIC: u8 = 0;
    /// A switch's towards a switch.
    pub const THROUGH: u8 = 1;
    /// A switch's towards a host.
    pub const LAST: u8 = 2;
}

/// A port that runs, with all that it touches. `OBSERVE`: counters are kept.
pub(super) struct Turn<'a, const OBSERVE: bool, const KIND: u8> {
    pub number: u32,
    pub port: &'a mut Port,
    /// Of all ports; this one's begin at `base`.
    pub lanes: &'a mut [Lane],
    pub base: usize,
    /// When the open window opened.
    pub opening: u64,
    /// The arbiters' states, of all ports.
    pub states: &'a mut State,
    pub fixed: &'a Fixed,
    pub flight: &'a mut Flight,
    pub watch: &'a mut Watch,
}

/// What has become of a lone arrival.
#[derive(PartialEq, Eq)]
pub(super) enum Passed {
    /// It has started, or joined the queue of a link that is busy throughout the window.
    Yes,
    /// The first packet of a message has started, on this lane; there are more.
    Part(u8),
    /// It has to join the queue.
    No,
}

/// What a port asks of a record before it starts.
struct Waiting {
    /// When it joined, or joins, the queue.
    time: u64,
    /// On the wire.
    bytes: u32,
    lane: u8,
    job: u16,
    next: u32,
}

impl<const OBSERVE: bool, const KIND: u8> Turn<'_, OBSERVE, KIND> {
    const NIC: bool = KIND == kind::NIC;

    /// Passes `first`, the head of the inbox, on if it is the only arrival of the window, nothing waits, and it can start in
    /// the window: exactly what the queue, the arbiter and the counters would make of it, in fewer steps. Most packets of a
    /// fabric that is not congested go this way.
    #[inline(always)]
    pub fn pass(&mut self, first: u32, until: u64) -> Passed {
        let arrival = self.waiting(first);
        let Waiting { time, bytes, lane, job, next } = arrival;
        let now = time.max(self.port.busy_until);
        if next != NONE || self.port.stalled {
            return Passed::No;
        }
        if now >= until {
            self.join(first, &arrival);
            self.flight.calendar.wake_port(self.number, Instant(now));
            return Passed::Yes;
        }
        if self.port.waiting != 0 || bytes > self.lanes[self.base + usize::from(lane)].credits {
            return Passed::No;
        }
        if OBSERVE && now > time {
            self.watch.interference.charge(self.number, job, self.port.job, now - time);
        }
        self.serve_alone(lane, bytes, now);
        if Self::NIC {
            let (packet, rest) = self.cut(lane, first);
            self.start(lane, packet, now);
            return if rest { Passed::Part(lane) } else { Passed::Yes };
        }
        self.start(lane, first, now);
        Passed::Yes
    }

    /// Runs the port through the open window, which ends before `until`. `first`: the head of what arrives.
    pub fn run(&mut self, first: u32, until: u64, arrivals: &mut Vec<Arrival>) {
        self.sort(first, arrivals);
        self.decide_all(until, arrivals);
        if self.port.waiting == 0 {
            return;
        }
        if !self.port.stalled {
            self.flight.calendar.wake_port(self.number, Instant(self.port.busy_until));
        } else if let Some(time) = self.flight.returning[self.number as usize].next(self.port.waiting) {
            self.flight.calendar.wake_port(self.number, Instant(time));
        }
    }

    fn decide_all(&mut self, until: u64, arrivals: &[Arrival]) {
        let mut arrivals = arrivals.iter();
        loop {
            let now = if self.port.waiting != 0 && !self.port.stalled {
                self.port.busy_until
            } else {
                let arrival = arrivals.as_slice().first().map_or(u64::MAX, |arrival| arrival.0);
                let credit = if self.port.stalled { self.next_credit() } else { u64::MAX };
                arrival.min(credit).max(self.port.busy_until)
            };
            if now >= until {
                break;
            }
            if self.port.stalled {
                self.end_stall(now);
            }
            while let Some(&(_, _, record)) = arrivals.as_slice().first().filter(|arrival| arrival.0 <= now) {
                self.join(record, &self.waiting(record));
                arrivals.next();
            }
            self.decide(now);
        }
        // What arrives while the link is busy beyond the window.
        for &(_, _, record) in arrivals {
            self.join(record, &self.waiting(record));
        }
    }

    fn next_credit(&self) -> u64 {
        self.flight.returning[self.number as usize].next(self.port.waiting).unwrap_or(u64::MAX)
    }

    #[inline(always)]
    fn waiting(&self, record: u32) -> Waiting {
        if Self::NIC {
            let message = &self.flight.messages[record];
            let bytes = self.fixed.payload(message.left) + self.fixed.header;
            let lane = self.fixed.lane(message.vl, 0);
            Waiting { time: message.offered, bytes, lane, job: message.job, next: message.next }
        } else {
            let packet = &self.flight.packets[record];
            let (bytes, lane, job) = (packet.bytes, packet.lane, packet.job);
            Waiting { time: packet.time, bytes, lane, job, next: packet.next }
        }
    }

    #[inline(always)]
    fn set_next(&mut self, record: u32, next: u32) {
        if Self::NIC {
            self.flight.messages[record].next = next;
        } else {
            self.flight.packets[record].next = next;
        }
    }

    /// Collects what came into the inbox, sorted.
    #[inline]
    fn sort(&self, mut record: u32, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
        while record != NONE {
            let (time, tie, next) = if Self::NIC {
                let message = &self.flight.messages[record];
                (message.offered, message.sequence, message.next)
            } else {
                let packet = &self.flight.packets[record];
                (packet.time, u64::from(packet.came.link()), packet.next)
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

    /// Puts an arrival at the end of its lane's queue.
    #[inline(always)]
    fn join(&mut self, record: u32, arrival: &Waiting) {
        let &Waiting { time, lane, job, .. } = arrival;
        if OBSERVE {
            if self.port.busy_until > time {
                self.watch.interference.charge(self.number, job, self.port.job, self.port.busy_until - time);
            }
            self.port.waiters.join(job);
        }
        self.append(lane, record);
    }

    #[inline(always)]
    pub fn append(&mut self, lane: u8, record: u32) {
        self.set_next(record, NONE);
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        let tail = std::mem::replace(&mut queue.tail, record);
        queue.depth += 1;
        if OBSERVE {
            queue.max_depth = queue.max_depth.max(queue.depth);
        }
        if tail == NONE {
            queue.head = record;
            self.port.waiting |= 1 << lane;
        } else {
            self.set_next(tail, record);
        }
    }

    /// Takes the first packet (message, at a NIC) of a lane's queue.
    #[inline]
    fn take(&mut self, lane: u8) -> u32 {
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        let record = queue.head;
        let (next, job) = if Self::NIC {
            let message = &self.flight.messages[record];
            (message.next, message.job)
        } else {
            let packet = &self.flight.packets[record];
            (packet.next, packet.job)
        };
        queue.head = next;
        queue.depth -= 1;
        if next == NONE {
            queue.tail = NONE;
            self.port.waiting &= !(1 << lane);
        }
        if OBSERVE {
            self.port.waiters.leave(job);
        }
        record
    }

    /// The free link picks a packet, or the port is stalled.
    #[inline]
    fn decide(&mut self, now: u64) {
        let mut ready = self.ready();
        if (ready != self.port.waiting || self.port.owed != 0) && self.take_credits(now) {
            ready = self.ready();
        }
        if ready == 0 {
            self.port.stalled = true;
            self.port.busy_until = now;
            self.flight.returning[self.number as usize].watched = true;
            return;
        }
        #[allow(clippy::cast_possible_truncation, reason = "below 32")]
        let lowest = ready.trailing_zeros() as u8;
        let lane = if ready == 1 << lowest {
            let bytes = self.waiting(self.lanes[self.base + usize::from(lowest)].head).bytes;
            self.serve_alone(lowest, bytes, now);
            lowest
        } else if self.fixed.channels {
            self.pick_channel(ready, now)
        } else {
            let lane = self.fixed.arbiter.pick(self.state(), Lanes(ready), Instant(now));
            self.account(lane, lane.0, now);
            lane.0
        };
        let record = self.take(lane);
        if Self::NIC {
            let (packet, rest) = self.cut(lane, record);
            self.start(lane, packet, now);
            if rest {
                self.offer_again(lane, record);
            }
        } else {
            self.start(lane, record, now);
        }
    }

    /// The arbiter picks a virtual lane; of its channels the one whose first packet has waited longest is served.
    fn pick_channel(&mut self, ready: u32, now: u64) -> u8 {
        let fixed = self.fixed;
        let among = |vl: u8| fixed.lanes_of(vl).filter(|lane| ready >> lane & 1 == 1);
        let vls = (0..fixed.vls()).filter(|vl| among(*vl).next().is_some()).fold(0, |set, vl| set | 1 << vl);
        let vl = fixed.arbiter.pick(self.state(), Lanes(vls), Instant(now));
        let joined = |lane: &u8| self.waiting(self.lanes[self.base + usize::from(*lane)].head).time;
        let lane = among(vl.0).min_by_key(joined).expect("invariant: the picked virtual lane is ready");
        self.account(vl, lane, now);
        lane
    }

    /// The arbiter accounts the first packet of a lane to its virtual lane.
    #[inline]
    fn account(&mut self, vl: VirtualLane, lane: u8, now: u64) {
        let bytes = self.waiting(self.lanes[self.base + usize::from(lane)].head).bytes;
        self.fixed.arbiter.sent(self.state(), vl, Bytes(u64::from(bytes)), Instant(now));
    }

    /// The arbiter serves the only lane that is ready.
    #[inline(always)]
    fn serve_alone(&mut self, lane: u8, bytes: u32, now: u64) {
        if self.fixed.lanes > 1 {
            let lane = if self.fixed.channels { self.fixed.vl_of(lane) } else { lane };
            self.fixed.arbiter.serve_alone(self.state(), VirtualLane(lane), Bytes(u64::from(bytes)), Instant(now));
        }
    }

    /// The arbiter's state of this port.
    #[inline(always)]
    fn state(&mut self) -> &mut State {
        let words = self.fixed.state_words;
        &mut self.states[self.number as usize * words..][..words]
    }

    /// The lanes whose first packet has credits enough.
    #[inline]
    fn ready(&self) -> u32 {
        let (mut ready, mut waiting) = (0, self.port.waiting);
        while waiting != 0 {
            let lane = waiting.trailing_zeros();
            waiting &= waiting - 1;
            let queue = &self.lanes[self.base + lane as usize];
            // Only a lane with less credit than a full packet needs a look at its packet.
            let fits = queue.credits >= self.fixed.full || self.waiting(queue.head).bytes <= queue.credits;
            ready |= u32::from(fits) << lane;
        }
        ready
    }

    /// Takes in the credits that have come by `now`. Returns whether there were any.
    fn take_credits(&mut self, now: u64) -> bool {
        let lanes = &mut &mut self.lanes[self.base..][..self.fixed.lanes];
        let mut come = false;
        for lane in each(self.port.waiting) {
            come |= lanes[lane].take_soon(now);
        }
        let returning = &mut self.flight.returning[self.number as usize];
        if OBSERVE && let Some(job) = returning.first_by(now, self.port.owed) {
            self.port.owed = 0;
            returning.watched = self.port.stalled;
            self.watch.interference.credited(self.number, &mut self.port.waiters, job);
        }
        returning.settle(lanes, now) | come
    }

    /// The link has been idle up to `now` although packets wait.
    #[cold]
    fn end_stall(&mut self, now: u64) {
        let span = now - self.port.busy_until;
        self.port.busy_until = now;
        self.port.stalled = false;
        if OBSERVE && span > 0 {
            self.port.owed |= self.port.waiting;
            self.port.idle_stalled += span;
            for lane in each(self.port.waiting) {
                self.lanes[self.base + lane].stalled += span;
            }
            self.port.waiters.stalled(span);
        }
        self.flight.returning[self.number as usize].watched = self.port.owed != 0;
    }
}

/// The lanes of a set.
fn each(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (lane < u32::BITS).then_some(lane as usize)
    })
}
