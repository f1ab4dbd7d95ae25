//! Pauses: lanes whose sender is paused by priority flow control ([`FlowControl::Pfc`](super::FlowControl)).
//!
//! The receiver decides by the bytes in its buffer: a packet is in it from the arrival of its head until its tail has left. The sender
//! knows all of these instants: the first from its own transmissions, the second from the same returns that bring credits
//! elsewhere. So the port at the sending end keeps the receiver's buffer as it was one [delay](super::flow_control::Thresholds::delay)
//! ago, which is what PAUSE and RESUME tell it, and no frame need be sent. All times here are those at the sender.

use std::collections::VecDeque;

use super::flow_control::{Pfc, Thresholds};
use crate::ids::TrafficId;
use crate::units::{Instant, Picoseconds};

/// What has been counted of the pauses of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseCounters {
    /// How often PAUSE took effect.
    pub pauses: u64,
    /// Time in which the lane was paused.
    pub paused: Picoseconds,
    /// The longest of the pauses.
    pub longest: Picoseconds,
    /// When the first took effect.
    pub first: Instant,
    /// The most bytes in the buffer at the far end.
    pub peak: u32,
    /// Whether a storm has paused the lane: a host that sends PAUSE without a reason.
    pub storm: bool,
    /// Pauses in which the watchdog dropped packets.
    pub expired: u64,
    /// Packets that it has dropped.
    pub dropped: u64,
}

/// Bytes that leave the buffer.
#[derive(Clone, Copy, Debug)]
struct Freed {
    time: Instant,
    bytes: u32,
    traffic: TrafficId,
}

/// The pauses of a lane of a port.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    thresholds: Thresholds,
    /// Time from the beginning of a pause until the watchdog drops packets; none at NICs.
    watchdog: Option<Picoseconds>,
    /// Bytes in the buffer at the far end.
    occupied: u32,
    /// The heads of packets that arrive there, in order.
    arrivals: VecDeque<(Instant, u32)>,
    /// Packets that leave it, in no order.
    freed: Vec<Freed>,
    /// The buffer has sent PAUSE, and not RESUME.
    congested: bool,
    /// A host sends PAUSE without a reason.
    storm: bool,
    /// When the pause took effect.
    since: Option<Instant>,
    /// When a host ceased to pause the lane, if [`Pauses::advance`] has not reported it.
    ended: Option<Instant>,
    /// The watchdog has dropped packets in this pause.
    dropping: bool,
    counters: PauseCounters,
}

/// A pause that has ended: when, and the traffic of the packet whose departure was the reason, if there was one.
pub(super) type Resumed = (Instant, Option<TrafficId>);

impl Pauses {
    /// An empty buffer at the far end.
    pub fn new(thresholds: Thresholds, pfc: &Pfc, at_switch: bool) -> Self {
        Self {
            thresholds,
            watchdog: pfc.watchdog.filter(|_| at_switch),
            occupied: 0,
            arrivals: VecDeque::new(),
            freed: Vec::new(),
            congested: false,
            storm: false,
            since: None,
            ended: None,
            dropping: false,
            counters: PauseCounters::default(),
        }
    }

    /// The head of a packet arrives at the far end at `arrival`.
    pub fn send(&mut self, arrival: Instant, bytes: u32) {
        self.arrivals.push_back((arrival + self.thresholds.delay, bytes));
    }

    /// A packet of `traffic` has left the buffer at the far end at `freed`. Returns when the sender knows.
    pub fn free(&mut self, freed: Instant, bytes: u32, traffic: TrafficId) -> Instant {
        let time = freed + self.thresholds.delay;
        self.freed.push(Freed { time, bytes, traffic });
        time
    }

    /// Takes account of all changes up to `now`. Returns the first pause that has ended since the last call.
    pub fn advance(&mut self, now: Instant) -> Option<Resumed> {
        self.freed.sort_unstable_by_key(|freed| (freed.time, freed.traffic));
        let (mut left, mut first) = (0, self.ended.take().map(|time| (time, None)));
        loop {
            let arrival = self.arrivals.front().map(|arrival| arrival.0);
            let departure = self.freed.get(left).map(|freed| freed.time);
            let Some(time) = arrival.into_iter().chain(departure).min().filter(|time| *time <= now) else { break };
            while let Some(&(_, bytes)) = self.arrivals.front().filter(|arrival| arrival.0 == time) {
                self.occupied += bytes;
                self.arrivals.pop_front();
            }
            let mut cause = None;
            while let Some(freed) = self.freed.get(left).filter(|freed| freed.time == time) {
                self.occupied -= freed.bytes;
                cause = cause.or(Some(freed.traffic));
                left += 1;
            }
            self.counters.peak = self.counters.peak.max(self.occupied);
            self.congested = self.occupied > if self.congested { self.thresholds.xon } else { self.thresholds.xoff };
            if self.settle(time) {
                first = first.or(Some((time, cause)));
            }
        }
        self.freed.drain(..left);
        first
    }

    /// A host begins to send PAUSE at `now`, or ends it.
    pub fn set_storm(&mut self, storm: bool, now: Instant) {
        let resumed = self.advance(Instant(now.0.saturating_sub(1)));
        self.storm = storm;
        self.counters.storm |= storm;
        let ended = self.settle(now) || resumed.is_some();
        self.ended = (ended && !self.paused()).then_some(now);
    }

    /// Whether it is paused or not may have changed at `time`. Returns whether it was and is not any more.
    fn settle(&mut self, time: Instant) -> bool {
        let paused = self.congested || self.storm;
        match self.since {
            None if paused => {
                if self.counters.pauses == 0 {
                    self.counters.first = time;
                }
                self.counters.pauses += 1;
                self.since = Some(time);
                false
            }
            Some(since) if !paused => {
                self.counters.paused += time - since;
                self.counters.longest = self.counters.longest.max(time - since);
                self.since = None;
                self.dropping = false;
                true
            }
            _ => false,
        }
    }

    /// Whether the lane is paused, as of the last change.
    pub const fn paused(&self) -> bool {
        self.since.is_some()
    }

    /// Whether a host pauses it without a reason.
    pub const fn stormed(&self) -> bool {
        self.storm
    }

    /// From when on the watchdog drops packets, if the pause has not ended by then.
    fn deadline(&self) -> Option<Instant> {
        Some(self.since? + self.watchdog?)
    }

    /// Whether the watchdog drops packets at `now`.
    pub fn expired(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When a lane may send next, or drop packets, that could not at the last call of [`Pauses::advance`].
    pub fn next(&self) -> Option<Instant> {
        self.freed.iter().map(|freed| freed.time).chain(self.deadline()).chain(self.ended).min()
    }

    /// The watchdog drops a packet.
    pub fn drop_packet(&mut self) {
        self.counters.expired += u64::from(!std::mem::replace(&mut self.dropping, true));
        self.counters.dropped += 1;
    }

    /// What was counted before `now`.
    pub fn counters(&self, now: Instant) -> PauseCounters {
        let mut current = self.clone();
        current.advance(Instant(now.0.saturating_sub(1)));
        if let Some(since) = current.since {
            current.counters.paused += now - since;
            current.counters.longest = current.counters.longest.max(now - since);
        }
        current.counters
    }

    /// For the law: bytes that the sender has booked for the buffer, those of them whose departure has been booked too, and the most
    /// in the buffer so far.
    pub fn booked(&self) -> (u64, u64, u32) {
        let sent: u64 = self.arrivals.iter().map(|arrival| u64::from(arrival.1)).sum();
        let freed = self.freed.iter().map(|freed| u64::from(freed.bytes)).sum();
        (sent + u64::from(self.occupied), freed, self.counters.peak)
    }
}
