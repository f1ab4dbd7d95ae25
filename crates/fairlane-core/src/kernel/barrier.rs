//! A barrier at which a few threads wait for each other very often.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A point that no thread passes before all have come to it. It spins for a while and then yields, as there may be more threads
/// than free cores; [`std::sync::Barrier`], which sleeps, takes many times as long.
#[derive(Debug)]
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have come.
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    /// Turns of the loop before a thread yields: about ten microseconds.
    const SPINS: u32 = 512;

    /// A barrier for so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for the others. What a thread wrote before it came is seen by all that have passed.
    ///
    /// # Panics
    /// If another thread has panicked (see [`Barrier::guard`]): it would never come.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            assert!(!self.broken.load(Ordering::Relaxed), "another thread of the simulation has panicked");
            if spins < Self::SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    /// Held by a thread that waits here while it works: if it panics, the others do not wait for it.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// See [`Barrier::guard`].
#[derive(Debug)]
pub struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn nobody_passes_before_all_have_come() {
        const ROUNDS: u64 = 2_000;
        let (barrier, counts) = (Barrier::new(3), [const { AtomicU64::new(0) }; 3]);
        let work = |own: usize| {
            for round in 1..=ROUNDS {
                counts[own].store(round, Ordering::Relaxed);
                barrier.wait();
                let seen = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
                assert!(seen.iter().all(|count| (round..=round + 1).contains(count)), "{round}: {seen:?}");
            }
        };
        thread::scope(|scope| (0..3).for_each(|own| _ = scope.spawn(move || work(own))));
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let barrier = Barrier::new(2);
        let panicked = thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            let panics = scope.spawn(|| {
                let _guard = barrier.guard();
                panic!("on purpose");
            });
            [waits.join().is_err(), panics.join().is_err()]
        });
        assert_eq!(panicked, [true, true]);
    }
}
