//! Open-loop load: messages are generated at their instants, whatever has become of those before. Operations are made as they
//! are needed, so a rank takes less than a kilobyte however long it runs.

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Op, Source};
use crate::ids::Rank;
use crate::units::{Bytes, Picoseconds};

/// When messages are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// As a Poisson process: gaps are independent and exponentially distributed.
    Poisson,
    /// At equal gaps, the first at a random instant within one.
    Fixed,
}

/// The load that one rank generates.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    /// Ranks of the job.
    pub ranks: u32,
    /// The generating rank.
    pub rank: u32,
    /// When messages are generated.
    pub arrivals: Arrivals,
    /// The mean gap between messages in picoseconds; above zero.
    pub gap: f64,
    /// Message sizes; each is drawn with the same probability. At least one.
    pub sizes: Arc<[Bytes]>,
    /// Ranks that receive the part `fraction` of the messages, each with the same probability; the sender is not among them.
    /// The other messages go to any other rank of the job.
    pub targets: Arc<[u32]>,
    /// The part of the messages that goes to `targets`, from 0 to 1.
    pub fraction: f64,
    /// How many messages are generated; `None`: no end.
    pub messages: Option<u64>,
}

impl OpenLoop {
    /// A source that generates the load with the random numbers of `rng`. A rank whose messages have no target generates none.
    #[must_use]
    pub fn source(mut self, mut rng: ChaCha8Rng) -> Box<dyn Source> {
        if self.targets.is_empty() && (self.fraction >= 1.0 || self.ranks < 2) {
            self.messages = Some(0);
        }
        let carry = match self.arrivals {
            Arrivals::Poisson => 0.0,
            // The first gap is as much shorter as the phase says.
            Arrivals::Fixed => -self.gap * rng.random::<f64>(),
        };
        let ops = [Op::Compute(Picoseconds::ZERO), Op::MarkProgress, Op::MarkProgress];
        Box::new(Generator { load: self, rng, carry, next: ops.len(), ops })
    }
}

/// A load being generated: each message is a wait, the message, and a mark.
#[derive(Clone)]
struct Generator {
    load: OpenLoop,
    rng: ChaCha8Rng,
    /// What rounding down has left of the gaps so far.
    carry: f64,
    ops: [Op; 3],
    next: usize,
}

impl Generator {
    fn generate(&mut self) {
        let gap = match self.load.arrivals {
            // `libm` has the same logarithm on every platform.
            Arrivals::Poisson => -libm::log(1.0 - self.rng.random::<f64>()) * self.load.gap,
            Arrivals::Fixed => self.load.gap,
        };
        let exact = (gap + self.carry).max(0.0);
        let whole = exact.floor();
        self.carry = exact - whole;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, not negative, saturates")]
        let wait = Picoseconds(whole as u64);
        let bytes = *pick(&self.load.sizes, &mut self.rng);
        self.ops = [Op::Compute(wait), Op::Datagram { to: Rank(self.target()), bytes }, Op::MarkProgress];
        self.next = 0;
    }

    fn target(&mut self) -> u32 {
        let OpenLoop { ranks, rank, ref targets, fraction, .. } = self.load;
        let chosen = fraction >= 1.0 || fraction > 0.0 && self.rng.random::<f64>() < fraction;
        if chosen && !targets.is_empty() {
            return *pick(targets, &mut self.rng);
        }
        let other = self.rng.random_range(0..ranks - 1);
        other + u32::from(other >= rank)
    }
}

/// One of the values, with equal probability.
fn pick<'a, T>(values: &'a [T], rng: &mut ChaCha8Rng) -> &'a T {
    if values.len() == 1 { &values[0] } else { &values[rng.random_range(0..values.len())] }
}

impl Source for Generator {
    fn ahead(&mut self) -> Result<&[Op], String> {
        if self.next == self.ops.len() && self.load.messages != Some(0) {
            self.load.messages = self.load.messages.map(|left| left - 1);
            self.generate();
        }
        Ok(&self.ops[self.next..])
    }

    fn pass(&mut self, count: usize) {
        self.next += count;
    }

    fn current(&self) -> Option<&Op> {
        self.ops.get(self.next.checked_sub(1)?)
    }

    fn boxed_clone(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn load(arrivals: Arrivals, gap: f64) -> OpenLoop {
        let (sizes, targets) = (Arc::from([Bytes(8)]), Arc::from([]));
        OpenLoop { ranks: 4, rank: 1, arrivals, gap, sizes, targets, fraction: 0.0, messages: Some(20_000) }
    }

    /// Instants, targets and sizes of all messages.
    fn generated(load: OpenLoop) -> Vec<(u64, u32, u64)> {
        let mut source = load.source(rng::stream(1, "open loop", 0));
        let (mut now, mut messages) = (0, Vec::new());
        while let Some(op) = source.next_op().unwrap() {
            match op {
                Op::Compute(wait) => now += wait.0,
                Op::Datagram { to, bytes } => messages.push((now, to.0, bytes.0)),
                _ => {}
            }
        }
        messages
    }

    #[test]
    fn a_poisson_process_has_exponential_gaps_of_the_mean() {
        let messages = generated(load(Arrivals::Poisson, 1000.25));
        let gaps: Vec<f64> = messages.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        // Five standard errors: that of the mean is 1/sqrt(n), that of the mean square, 2 mean^2, is sqrt(20/n) of mean^2.
        assert!((mean / 1000.25 - 1.0).abs() < 5.0 / 20_000_f64.sqrt(), "{mean}");
        assert!((square / mean.powi(2) - 2.0).abs() < 5.0 * (20.0 / 20_000_f64).sqrt(), "{square}");
        let to = |rank| messages.iter().filter(|message| message.1 == rank).count() as f64 / 20_000.0;
        assert!([0, 2, 3].into_iter().all(|rank| (to(rank) - 1.0 / 3.0).abs() < 5.0 * (2.0 / 9.0 / 20_000_f64).sqrt()));
        assert!(to(1) == 0.0, "nobody sends to itself");
    }

    #[test]
    fn fixed_gaps_neither_drift_nor_begin_together() {
        let messages = generated(load(Arrivals::Fixed, 1000.25));
        let (first, last) = (messages[0].0, messages[19_999].0);
        assert!((1..1001).contains(&first), "{first}");
        assert!(((last - first) as f64 - 19_999.0 * 1000.25).abs() <= 1.0);
        assert!(messages.windows(2).all(|pair| (1000..=1001).contains(&(pair[1].0 - pair[0].0))));
    }

    #[test]
    fn a_part_of_the_messages_goes_to_targets() {
        let (sizes, targets): (Arc<[_]>, Arc<[_]>) = (Arc::from([Bytes(1), Bytes(2)]), Arc::from([3]));
        let hot = OpenLoop { sizes, targets, fraction: 0.7, ..load(Arrivals::Poisson, 10.0) };
        let messages = generated(hot.clone());
        let share =
            |pick: fn(&(u64, u32, u64)) -> bool| messages.iter().filter(|it| pick(it)).count() as f64 / 20_000.0;
        assert!((share(|it| it.1 == 3) - 0.8).abs() < 5.0 * (0.16 / 20_000_f64).sqrt());
        assert!((share(|it| it.2 == 2) - 0.5).abs() < 5.0 * (0.25 / 20_000_f64).sqrt());
        let silent = OpenLoop { targets: Arc::from([]), fraction: 1.0, ..hot };
        assert_eq!(generated(silent), []);
    }
}
