//! Units of the simulation as types: instants and spans in picoseconds, bytes, bandwidths.
//!
//! All are integers. A picosecond clock of 64 bits spans 213 days, and one byte at 800 Gb/s takes exactly 10 ps, so
//! rounding (up, once per packet) never makes a link faster than its rate.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The quantity zero.
            pub const ZERO: Self = Self(0);
            /// The largest representable quantity.
            pub const MAX: Self = Self(u64::MAX);
        }
    };
}

quantity!(
    /// A point in simulated time: picoseconds since the start of the simulation.
    Instant
);
quantity!(
    /// A span of simulated time in picoseconds.
    Picoseconds
);
quantity!(
    /// A number of bytes.
    Bytes
);
quantity!(
    /// A bandwidth in bits per second.
    BitsPerSec
);

impl Instant {
    /// No simulation goes further than this (53 days), so that sums of instants and spans stay representable.
    pub const HORIZON: Self = Self(1 << 62);

    /// From an earlier instant to this one; zero if that is later.
    #[must_use]
    #[inline(always)]
    pub const fn since(self, earlier: Self) -> Picoseconds {
        Picoseconds(self.0.saturating_sub(earlier.0))
    }
}

impl Picoseconds {
    /// How much longer it is than another; zero if it is shorter.
    #[must_use]
    #[inline(always)]
    pub const fn beyond(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// A span of `n` nanoseconds.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// A span of `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000_000)
    }
}

impl Add<Picoseconds> for Instant {
    type Output = Self;
    #[inline(always)]
    fn add(self, span: Picoseconds) -> Self {
        Self(self.0 + span.0)
    }
}

impl Sub<Picoseconds> for Instant {
    type Output = Self;
    #[inline(always)]
    fn sub(self, span: Picoseconds) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for Instant {
    type Output = Picoseconds;
    #[inline(always)]
    fn sub(self, earlier: Self) -> Picoseconds {
        Picoseconds(self.0 - earlier.0)
    }
}

impl Mul<Picoseconds> for u64 {
    type Output = Picoseconds;
    #[inline(always)]
    fn mul(self, span: Picoseconds) -> Picoseconds {
        Picoseconds(self * span.0)
    }
}

impl Sum for Picoseconds {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Self::add)
    }
}

impl Add for Picoseconds {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Picoseconds {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl BitsPerSec {
    /// Time to put `bytes` on a wire of this rate, rounded up to the next picosecond.
    ///
    /// # Panics
    /// In debug builds when the bandwidth is zero; a [`crate::topology::Graph`] holds no such link.
    #[must_use]
    #[inline]
    pub fn serialization(self, bytes: Bytes) -> Picoseconds {
        const PS_BITS_PER_BYTE: u64 = 8_000_000_000_000;
        debug_assert!(self.0 > 0, "a link of bandwidth zero");
        if bytes.0 < 1 << 20 {
            Picoseconds((bytes.0 * PS_BITS_PER_BYTE).div_ceil(self.0))
        } else {
            let exact = (u128::from(bytes.0) * u128::from(PS_BITS_PER_BYTE)).div_ceil(u128::from(self.0));
            Picoseconds(u64::try_from(exact).unwrap_or(u64::MAX))
        }
    }
}

impl fmt::Display for Picoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(u64, &str); 4] =
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
        for (step, unit) in STEPS {
            if self.0 >= step {
                #[allow(clippy::cast_precision_loss, reason = "display only")]
                return write!(f, "{:.3} {unit}", self.0 as f64 / step as f64);
            }
        }
        write!(f, "{} ps", self.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Picoseconds(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialization_rounds_up_once() {
        let gbps300 = BitsPerSec(300_000_000_000);
        assert_eq!(gbps300.serialization(Bytes(1)), Picoseconds(27)); // 26.67 ps
        assert_eq!(gbps300.serialization(Bytes(3)), Picoseconds(80)); // exactly
        assert_eq!(gbps300.serialization(Bytes(3 << 20)), Picoseconds(83_886_080));
    }

    #[test]
    fn both_widths_agree_at_the_seam() {
        let rate = BitsPerSec(25_600_000_000);
        let below = rate.serialization(Bytes((1 << 20) - 4096));
        let above = rate.serialization(Bytes(1 << 20));
        assert_eq!(above.0 - below.0, rate.serialization(Bytes(4096)).0);
    }
}
