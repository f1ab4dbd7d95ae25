//! The rate at which a receiver grants credit in an oversubscribed fabric (htsim's `OversubscribedCC`).
//!
//! About every 1.5 `base_rtt`, between 0.75 and 1.25 times that, with `n` packets that have come since:
//!
//! - `g` moves halfway to the share of marked packets among those that were not trimmed.
//! - The rate falls by the share of packets that were trimmed elsewhere than at the last hop, and by `(g - 0.3) / 2` of itself if
//!   `g` is above 0.3.
//! - If neither, it grows by 0.01 of the link's rate, or, if none was marked, by `0.01 2^k`, where `k` counts the times that it
//!   has grown since it fell.
//! - It is 1 at most and 0.9 divided by the oversubscription at least.

use crate::rng::draw;
use crate::units::{Instant, Picoseconds};

/// The rate of a whole link; the unit of shares.
const ONE: u64 = 1 << 20;
/// Of the link's rate, so much is granted at most: 99 in 100.
const MOST: [u64; 2] = [99, 100];

/// A rate as a share of the link's, and what it follows.
#[derive(Clone, Copy)]
pub(super) struct PullRate {
    rate: u64,
    /// The mean share of marked packets.
    marked_share: u64,
    /// How often it has grown since it fell.
    grown: u32,
    /// When it changes next; zero before the first packet.
    changes: Instant,
    received: u64,
    marked: u64,
    trimmed: u64,
    trimmed_last_hop: u64,
}

impl Default for PullRate {
    fn default() -> Self {
        Self {
            rate: ONE,
            marked_share: 0,
            grown: 0,
            changes: Instant::ZERO,
            received: 0,
            marked: 0,
            trimmed: 0,
            trimmed_last_hop: 0,
        }
    }
}

/// The congestion that a packet has met on its way.
#[derive(Clone, Copy)]
pub(in crate::network) struct Congestion {
    pub marked: bool,
    pub trimmed: bool,
    /// It was trimmed at the output to the NIC.
    pub last_hop: bool,
}

impl PullRate {
    /// A packet has come.
    pub fn count(&mut self, Congestion { marked, trimmed, last_hop }: Congestion) {
        self.received += 1;
        self.marked += u64::from(marked && !trimmed);
        self.trimmed += u64::from(trimmed && !last_hop);
        self.trimmed_last_hop += u64::from(trimmed && last_hop);
    }

    /// Makes the changes of all intervals that have ended by `now`. `seed`: of their lengths.
    pub fn catch_up(&mut self, now: Instant, base: Picoseconds, oversubscription: u32, seed: u32) {
        while self.changes <= now {
            let idle = self.received == 0 && self.rate == ONE && self.marked_share == 0;
            if self.changes > Instant::ZERO {
                self.change(oversubscription);
            }
            let from = if idle { now } else { self.changes };
            let part = (u64::from(draw(from.0, seed)) * base.0 * 3 / 4) >> 32;
            self.changes = from + Picoseconds(base.0 * 9 / 8 + part);
        }
    }

    fn change(&mut self, oversubscription: u32) {
        let Self { received, marked, trimmed, trimmed_last_hop, .. } = *self;
        let share = |part: u64, whole: u64| (part * ONE).checked_div(whole).unwrap_or(0);
        let mut falls = trimmed > 0;
        self.rate = self.rate.saturating_sub(share(trimmed, received));
        self.marked_share = self.marked_share.midpoint(share(marked, received - trimmed - trimmed_last_hop));
        let above = self.marked_share.saturating_sub(ONE * 3 / 10);
        if above > 0 {
            self.rate -= self.rate * above / 2 / ONE;
            falls = true;
        }
        if falls {
            self.grown = 0;
        } else {
            self.rate += (ONE / 100) << if marked == 0 { self.grown.min(7) } else { 0 };
            self.grown += 1;
        }
        self.rate = self.rate.clamp(ONE * 9 / 10 / u64::from(oversubscription), ONE);
        (self.received, self.marked, self.trimmed, self.trimmed_last_hop) = (0, 0, 0, 0);
    }

    /// The time between two grants, of which the first is of bytes that take `time` on the link.
    pub fn stretch(&self, time: Picoseconds) -> Picoseconds {
        Picoseconds(time.0 * MOST[1] / MOST[0] * ONE / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of the link's rate after intervals in each of which 100 packets come, so many of them marked and trimmed.
    fn rates(marked: usize, trimmed: usize, last_hop: bool) -> Vec<f64> {
        let mut rate = PullRate::default();
        (0..60)
            .map(|_| {
                for packet in 0..100 {
                    let trimmed = packet < trimmed;
                    rate.count(Congestion { trimmed, marked: !trimmed && packet >= 100 - marked, last_hop });
                }
                rate.change(4);
                rate.rate as f64 / ONE as f64
            })
            .collect()
    }

    /// As the header says, but for rounding.
    #[test]
    fn the_rate_follows_marks_and_trimmed_packets() {
        let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-4, "{got} {wanted}");
        near(rates(0, 20, false)[0], 0.8);
        near(rates(0, 20, false)[59], 0.225);
        assert!(rates(0, 20, true).iter().all(|rate| *rate == 1.0));
        // g is 0.4, then 0.6.
        near(rates(80, 0, false)[0], 0.95);
        near(rates(80, 0, false)[1], 0.95 * 0.85);
        let mut fallen = PullRate { rate: ONE / 2, ..PullRate::default() };
        let grown = [(); 4].map(|()| {
            fallen.change(4);
            fallen.rate as f64 / ONE as f64
        });
        for (got, wanted) in grown.into_iter().zip([0.51, 0.53, 0.57, 0.65]) {
            near(got, wanted);
        }
    }

    /// A link that carries a packet in 990 ns is granted one in 1 us at most, at half the rate in 2 us.
    #[test]
    fn grants_take_a_hundredth_more_than_packets() {
        let stretch = |rate| PullRate { rate, ..PullRate::default() }.stretch(Picoseconds(990)).0;
        assert_eq!([ONE, ONE / 2].map(stretch), [1_000, 2_000]);
    }

    /// After a pause the rate is that of the whole link again, and nothing is counted through.
    #[test]
    fn a_pause_ends_what_was_before() {
        let mut rate = PullRate { rate: ONE / 4, changes: Instant(1), ..PullRate::default() };
        rate.catch_up(Instant(1 << 50), Picoseconds(14_000_000), 4, 7);
        assert_eq!(rate.rate, ONE);
        assert!(rate.changes > Instant(1 << 50));
    }
}
