//! Congestion control at senders, NSCC (Ultra Ethernet Specification 1.0, section 3.6.13): a window.
//!
//! An acknowledgement reports whether a switch has marked the packet, and gives the packet's queueing delay, its round trip less
//! `base_rtt`; below, `target` is the target delay.
//!
//! | | delay below the target | delay at the target or above |
//! |---|---|---|
//! | not marked | the window grows by `alpha (target - delay)` per byte | it grows by `fi` per byte |
//! | marked | it stays | if the mean delay is above the target: it shrinks, once per `base_rtt`, by `gamma (mean delay - target) / mean delay`, at most by half |
//!
//! Growth is accumulated and applied every eight full packets: the window grows by the accumulated sum divided by the window, and
//! once per `base_rtt` also by `eta`. When the acknowledgements of a whole window had delays below a microsecond, the
//! window grows by a quarter of what is acknowledged instead (*fast increase*).
//!
//! When the notice of a trimmed packet arrives, the packet is retransmitted and the window shrinks by its bytes. *Quick adapt*: at
//! the end of each interval of `base_rtt` plus `target`, the window becomes the bytes acknowledged in the interval, if packets
//! were trimmed or lost in it and these bytes are less than an eighth of the largest window.
//!
//! The window begins at its largest value, 1.5 times the bandwidth times `base_rtt`, so that nothing waits for a first round trip.
//! Constants are those of the specification for 100 Gbit/s and 12 us, scaled as it says.

use super::super::Notice;

/// Hardly any delay, ps; and less than the target.
const NO_DELAY: u64 = 1_000_000;

/// A byte, in the units of the window.
const BYTE: u64 = 256;
/// The bandwidth-delay product that the specification's constants are for: 100 Gbit/s times 12 us, in bytes.
const REFERENCE: u64 = 150_000;

/// The window of a flow, in bytes and picoseconds.
#[derive(Clone, Default)]
pub(super) struct Window {
    /// The window, in 1/256 of a byte.
    cwnd: u64,
    in_flight: u64,
    /// The largest window.
    largest: u64,
    /// A full packet.
    full: u64,
    /// Growth that has not taken effect, times the window.
    collected: u64,
    /// Bytes acknowledged since growth took effect last.
    acknowledged: u64,
    /// Mean delay.
    delay: u64,
    /// When the window last shrank because of delays.
    decreased: u64,
    /// When the time of quick adapt ends.
    adapts: u64,
    /// Bytes acknowledged in it.
    achieved: u64,
    /// Bytes trimmed or lost in it.
    trimmed: u64,
    /// Bandwidth times `base_rtt`.
    bdp: u64,
    /// Bytes acknowledged in a row with hardly any delay.
    fast: u64,
    /// When `eta` was added last.
    added: u64,
    /// The round trip without load.
    base: u64,
    /// The target delay.
    target: u64,
}

impl Window {
    /// That of a flow of which `bdp` bytes are under way in the time `base`, with full packets of `full` bytes.
    pub fn new(full: u64, bdp: u64, base: u64, target: u64) -> Self {
        let largest = bdp * 3 / 2;
        Self { cwnd: largest * BYTE, largest, full, bdp, base, target, ..Self::default() }
    }

    /// The window, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.cwnd / BYTE
    }

    /// Whether another packet may start.
    pub const fn is_open(&self) -> bool {
        self.in_flight < self.bytes()
    }

    pub const fn started(&mut self, bytes: u64) {
        self.in_flight += bytes;
    }

    /// The window becomes `cwnd`, from one packet to the largest.
    fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(self.full * BYTE, self.largest * BYTE);
    }

    /// Collects growth for the acknowledgement of some bytes with this delay, and lets it take effect.
    fn grow(&mut self, bytes: u64, delay: u64) {
        // alpha = 4 MTU a b / target and fi = 5 MTU a, where a and b are the scales of the window and of the target.
        let wide = |value: u64| u128::from(value);
        let scaled = wide(self.full) * wide(self.bdp) / wide(REFERENCE);
        self.fast = if delay < NO_DELAY.min(self.target) { self.fast + bytes } else { 0 };
        if self.fast > self.cwnd / BYTE {
            let growth = bytes * BYTE / 4 * self.bdp / REFERENCE;
            self.set(self.cwnd + growth);
            return;
        }
        let per_byte =
            if delay < self.target { 4 * scaled * wide(self.target - delay) / 12_000_000 } else { 5 * scaled };
        let growth = u64::try_from(per_byte * wide(bytes)).unwrap_or(u64::MAX >> 8);
        self.collected = self.collected.saturating_add(growth);
    }

    /// Changes are collected and take effect every eight full packets.
    fn apply_growth(&mut self, bytes: u64, now: u64) {
        self.acknowledged += bytes;
        if self.acknowledged < 8 * self.full {
            return;
        }
        let cwnd = (self.cwnd / BYTE).max(1);
        // eta = 0.15 MTU a.
        let mut eta = 0;
        if now - self.added >= self.base {
            self.added = now;
            eta = 15 * self.full * BYTE / 100 * self.bdp / REFERENCE;
        }
        let growth = u128::from(self.collected) * u128::from(BYTE) / u128::from(cwnd);
        let growth = u64::try_from(growth).unwrap_or(u64::MAX >> 8);
        (self.collected, self.acknowledged) = (0, 0);
        self.set(self.cwnd + growth + eta);
    }

    /// The time of quick adapt may have ended at `now`.
    fn adapt(&mut self, now: u64) {
        if now < self.adapts {
            return;
        }
        let (achieved, trimmed) = (self.achieved, self.trimmed > 0);
        if self.adapts > 0 && trimmed && achieved < self.largest / 8 {
            self.set(achieved * BYTE);
            (self.collected, self.acknowledged) = (0, 0);
        }
        self.adapts = now + self.base + self.target;
        (self.achieved, self.trimmed) = (0, 0);
    }

    /// The acknowledgement of a packet arrives at `now`.
    pub fn acknowledged(&mut self, notice: &Notice, now: u64) {
        let bytes = notice.bytes.0;
        self.in_flight -= bytes;
        self.achieved += bytes;
        let delay = (now - notice.sent.0).saturating_sub(self.base);
        // The mean moves by 1/80 of the difference.
        self.delay = (self.delay * 79 + delay) / 80;
        match (notice.marked, delay < self.target) {
            (false, _) => self.grow(bytes, delay),
            (true, true) => {}
            (true, false) if now - self.decreased > self.base && self.delay > self.target => {
                self.decreased = now;
                // At most by half; gamma = 0.8.
                let share = u128::from(self.delay - self.target) * 80 / u128::from(self.delay);
                let share = u64::try_from(share).unwrap_or(50).min(50);
                self.set(self.cwnd / 100 * (100 - share));
            }
            (true, false) => {}
        }
        self.apply_growth(bytes, now);
        self.adapt(now);
    }

    /// A packet was trimmed, or lost and its timeout passes, at `now`. `shrinks`: because of that the window shrinks by its bytes.
    pub fn lost(&mut self, bytes: u64, shrinks: bool, now: u64) {
        self.in_flight -= bytes;
        self.trimmed += bytes;
        if shrinks {
            self.set(self.cwnd.saturating_sub(bytes * BYTE));
        }
        self.adapt(now);
    }
}
