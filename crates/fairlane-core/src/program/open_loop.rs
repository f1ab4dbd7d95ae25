//! Open-loop load: messages are generated at their instants, whatever has become of those before. Operations are made as they
//! are needed, so a rank takes less than a kilobyte however long it runs.

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Op, P2p, Program, Source};
use crate::error::BuildError;
use crate::ids::Rank;
use crate::rng;
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

/// The load of all ranks of a job: the same for all but for gaps and targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLoad {
    /// When messages are generated.
    pub arrivals: Arrivals,
    /// Message sizes; each is drawn with the same probability. At least one.
    pub sizes: Vec<Bytes>,
    /// Lists of targets, which ranks share.
    pub targets: Vec<Vec<u32>>,
    /// The part of the messages that goes to targets, from 0 to 1.
    pub fraction: f64,
    /// How many messages each rank generates; `None`: no end.
    pub messages: Option<u64>,
    /// From which the random numbers of all ranks are made.
    pub seed: u64,
    /// Parameters that differ, by rank.
    pub ranks: Vec<RankLoad>,
}

/// Parameters that differ between the ranks of a [`JobLoad`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankLoad {
    /// The mean gap between messages in picoseconds; above zero.
    pub gap: f64,
    /// The number of its list of targets, which does not name the rank itself.
    pub targets: usize,
}

impl JobLoad {
    /// The program that generates the load.
    ///
    /// # Errors
    /// [`BuildError::Value`] names the key that is wrong.
    pub fn program(self) -> Result<Program, BuildError> {
        self.check()?;
        let size = u32::try_from(self.ranks.len())
            .map_err(|_| BuildError::value("workload.ranks", self.ranks.len(), "fewer than 2^32 ranks"))?;
        let targets: Vec<Arc<[u32]>> = self.targets.into_iter().map(Arc::from).collect();
        let sizes: Arc<[Bytes]> = self.sizes.into();
        let source = |(rank, of): (u32, RankLoad)| {
            let load = OpenLoop {
                ranks: size,
                rank,
                arrivals: self.arrivals,
                gap: of.gap,
                sizes: Arc::clone(&sizes),
                targets: Arc::clone(&targets[of.targets]),
                fraction: self.fraction,
                messages: self.messages,
            };
            load.source(rng::stream(self.seed, "open loop", u64::from(rank)))
        };
        Ok(Program { ranks: (0..size).zip(self.ranks).map(source).collect() })
    }

    fn check(&self) -> Result<(), BuildError> {
        let size = self.ranks.len();
        if self.sizes.is_empty() {
            return Err(BuildError::value("workload.sizes", "[]", "at least one"));
        }
        if !(0.0..=1.0).contains(&self.fraction) {
            return Err(BuildError::value("workload.fraction", self.fraction, "0 to 1"));
        }
        if let Some(to) = self.targets.iter().flatten().find(|to| **to as usize >= size) {
            return Err(BuildError::value("workload.targets", to, format!("a rank of the job, below {size}")));
        }
        for (rank, RankLoad { gap, targets }) in self.ranks.iter().enumerate() {
            if !(*gap > 0.0 && gap.is_finite()) {
                return Err(BuildError::value(format!("workload.ranks[{rank}].gap"), gap, "more than 0 ps"));
            }
            if self.targets.get(*targets).is_none_or(|list| list.iter().any(|to| *to as usize == rank)) {
                let allowed = "one of the lists of targets, without the rank itself";
                return Err(BuildError::value(format!("workload.ranks[{rank}].targets"), targets, allowed));
            }
        }
        Ok(())
    }
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
    /// Remainder of the gaps so far that have been rounded down.
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
        self.ops = [Op::Compute(wait), Op::P2p(P2p::Datagram { to: Rank(self.target()), bytes }), Op::MarkProgress];
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
                Op::P2p(P2p::Datagram { to, bytes }) => messages.push((now, to.0, bytes.0)),
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
    fn of_job() -> JobLoad {
        let ranks = vec![RankLoad { gap: 100.0, targets: 0 }, RankLoad { gap: 200.0, targets: 1 }];
        let (sizes, targets) = (vec![Bytes(8)], vec![vec![1], vec![0]]);
        JobLoad { arrivals: Arrivals::Fixed, sizes, targets, fraction: 1.0, messages: Some(50), seed: 3, ranks }
    }

    #[test]
    fn the_program_of_a_job_is_the_load_of_its_ranks() {
        let mut program = of_job().program().unwrap();
        for (rank, gap) in [(0, 100.0), (1, 200.0)] {
            let own = OpenLoop {
                ranks: 2,
                rank,
                arrivals: Arrivals::Fixed,
                gap,
                sizes: Arc::from([Bytes(8)]),
                targets: Arc::from([1 - rank]),
                fraction: 1.0,
                messages: Some(50),
            };
            let mut expected = own.source(rng::stream(3, "open loop", u64::from(rank)));
            let found = &mut program.ranks[rank as usize];
            for _ in 0..151 {
                assert_eq!(found.next_op().unwrap(), expected.next_op().unwrap());
            }
            assert_eq!(found.next_op(), Ok(None));
        }
    }

    #[test]
    fn a_load_that_makes_no_sense_is_named() {
        let said = |change: fn(&mut JobLoad)| {
            let mut load = of_job();
            change(&mut load);
            load.program().map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(said(|load| load.sizes.clear()), "workload.sizes = []: at least one");
        assert_eq!(said(|load| load.fraction = 1.5), "workload.fraction = 1.5: 0 to 1");
        assert_eq!(said(|load| load.fraction = f64::NAN), "workload.fraction = NaN: 0 to 1");
        assert_eq!(said(|load| load.ranks[1].gap = 0.0), "workload.ranks[1].gap = 0: more than 0 ps");
        assert_eq!(said(|load| load.ranks[0].gap = f64::INFINITY), "workload.ranks[0].gap = inf: more than 0 ps");
        assert_eq!(said(|load| load.targets[0][0] = 2), "workload.targets = 2: a rank of the job, below 2");
        let lists = "one of the lists of targets, without the rank itself";
        assert_eq!(said(|load| load.ranks[0].targets = 2), format!("workload.ranks[0].targets = 2: {lists}"));
        assert_eq!(said(|load| load.ranks[0].targets = 1), format!("workload.ranks[0].targets = 1: {lists}"));
    }
}
