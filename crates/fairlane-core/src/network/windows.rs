//! Runs one window after the other. Several shards run each window in parallel, on as many threads as there are, and then
//! exchange mail; a single shard is one thread's, with nobody to wait for.
//!
//! Each round has one barrier. Before it, a shard posts its mail and publishes when anything is due next; after it, each
//! thread reads what all have published and comes to the same decision: which window opens, or why the run ends. There
//! are two sets of slots, used alternately: a thread that is ahead writes the next round's while another reads this round's, and
//! it cannot be further ahead.

use std::iter::Sum;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::config::Config;
use super::engine::Failed;
use super::features::{Compiled, Instance};
use super::in_flight::NetworkCalendar;
use super::mail::Mail;
use super::shard::Shard;
use super::{Endpoint, Network, Prefetch};
use crate::error::RunError;
use crate::kernel::Barrier;
use crate::units::Instant;

/// Where a run stops.
#[derive(Clone, Copy)]
struct Limits {
    end: Instant,
    /// Packets that have started on links since instant zero.
    hops: u64,
}

/// How a run has ended: the window that would be next, and whether the run is complete (see [`Network::run_until`]).
struct Ended {
    next_window: u64,
    reached: bool,
    failed: Option<Failed>,
}

/// The shards of one thread, their endpoints, and the number of the first of them.
struct Worker<'a, E> {
    first: usize,
    shards: &'a mut [Shard],
    endpoints: &'a mut [E],
}

/// Data that the threads share.
struct Exchange<M> {
    shards: usize,
    barrier: Barrier,
    /// By parity of the round, sender, receiver.
    mail: [Vec<Mutex<(Mail, M)>>; 2],
    /// By parity of the round, then shard.
    published: [Vec<Mutex<Outlook>>; 2],
}

/// What a shard publishes, and the same of all: from it all threads decide how the run goes on.
#[derive(Clone, Copy, Default)]
struct Outlook {
    /// The window in which anything is due next; `None` if there is none.
    next: Option<u64>,
    /// Packets on links so far.
    hops: u64,
    /// An endpoint has failed.
    failed: bool,
    /// A packet has been given up, or an endpoint pauses.
    pause: bool,
    /// See [`Endpoint::kept`]; of one shard it can be less than zero.
    kept: u64,
}

impl Sum for Outlook {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, shard| Self {
            next: sum.next.into_iter().chain(shard.next).min(),
            hops: sum.hops + shard.hops,
            failed: sum.failed | shard.failed,
            pause: sum.pause | shard.pause,
            kept: sum.kept.wrapping_add(shard.kept),
        })
    }
}

impl Network {
    /// Runs all windows that open before `end`, or stops earlier: after the window in which the number of packets that have
    /// started on links since the call reaches `hops`, in which an endpoint ends the run or pauses, or in which a
    /// packet is given up. Returns whether the run is complete: whether the clock is at `end` or later, or an endpoint
    /// has ended the run. If nothing is left to happen before `end`, the clock moves on to the first window that does
    /// not open before it. `endpoints`: one for each shard.
    ///
    /// # Errors
    /// The error that an endpoint returned, in the first window in which any did; of several, that of the host with the lowest
    /// id.
    ///
    /// # Panics
    /// If there are not as many endpoints as shards, or an endpoint panics.
    pub fn run_until<E: Endpoint + Prefetch + Send>(
        &mut self,
        end: Instant,
        hops: u64,
        endpoints: &mut [E],
    ) -> Result<bool, RunError> {
        assert_eq!(endpoints.len(), self.shards.len(), "invariant: an endpoint for each shard");
        let limits = Limits { end, hops: self.totals().packet_hops.saturating_add(hops) };
        let Config { fabric, conditions, .. } = self.config();
        let ended = match (fabric.observe.counters, conditions.features.is_plain()) {
            (true, true) => self.run::<Compiled<true, true>, E>(limits, endpoints),
            (true, false) => self.run::<Compiled<true, false>, E>(limits, endpoints),
            (false, true) => self.run::<Compiled<false, true>, E>(limits, endpoints),
            (false, false) => self.run::<Compiled<false, false>, E>(limits, endpoints),
        };
        self.next_window = ended.next_window;
        match ended.failed {
            Some((_, error)) => Err(error),
            None => Ok(ended.reached || self.now() >= end),
        }
    }

    /// Runs the shards, see [`Network::set_threads`].
    fn run<I: Instance, E: Endpoint + Prefetch + Send>(&mut self, limits: Limits, endpoints: &mut [E]) -> Ended {
        let count = self.shards.len();
        let each = count.div_ceil(self.threads.clamp(1, count));
        let exchange = Exchange::new(count, count.div_ceil(each));
        let from = self.next_window;
        let zipped = self.shards.chunks_mut(each).zip(endpoints.chunks_mut(each));
        let parts = (0..).step_by(each).zip(zipped);
        let mut parts = parts.map(|(first, (shards, endpoints))| Worker { first, shards, endpoints });
        let own = parts.next().expect("invariant: a network has a shard");
        thread::scope(|scope| {
            let exchange = &exchange;
            let others: Vec<_> =
                parts.map(|part| scope.spawn(move || exchange.work::<I, E>(part, from, limits))).collect();
            let mut ended = exchange.work::<I, E>(own, from, limits);
            for other in others {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                debug_assert!(other.next_window == ended.next_window && other.reached == ended.reached);
                ended.failed = first_of(ended.failed, other.failed);
            }
            ended
        })
    }
}

/// Of two errors, that of the host with the lower id.
fn first_of(one: Option<Failed>, other: Option<Failed>) -> Option<Failed> {
    one.into_iter().chain(other).min_by_key(|(host, _)| *host)
}

/// The first window that does not open before `end`.
fn window_at_or_after(calendar: &NetworkCalendar, end: Instant) -> u64 {
    let window = calendar.window_of(end);
    if calendar.opening(window) < end { window + 1 } else { window }
}

impl<M: Default> Exchange<M> {
    fn new(shards: usize, threads: usize) -> Self {
        let slots = || (0..shards * shards).map(|_| Mutex::default()).collect();
        let published = || (0..shards).map(|_| Mutex::default()).collect();
        Self { shards, barrier: Barrier::new(threads), mail: [slots(), slots()], published: [published(), published()] }
    }

    /// One thread's shards, window by window.
    fn work<I: Instance, E: Endpoint<Mail = M> + Prefetch>(
        &self,
        mut part: Worker<'_, E>,
        mut next_window: u64,
        limits: Limits,
    ) -> Ended {
        let _guard = self.barrier.guard();
        let mut failed = None;
        let mut has_run = false;
        for round in 0.. {
            let parity = round % 2;
            self.publish(parity, &part, next_window, failed.is_some());
            if has_run {
                self.post(parity, &mut part);
            }
            self.barrier.wait();
            let published = self.published[parity].iter().map(|shard| *locked(shard));
            let Outlook { next, hops, failed: any_failed, pause, kept } = published.sum();
            let mut stop = false;
            if has_run {
                stop = self.accept::<I, E>(parity, &mut part, next_window);
            }
            if any_failed || stop {
                return Ended { next_window, reached: stop, failed };
            }
            if hops >= limits.hops || has_run && (pause || kept > part.endpoints[0].most_kept()) {
                return Ended { next_window, reached: false, failed };
            }
            let calendar = &part.shards[0].in_flight.calendar;
            let Some(next) = next.filter(|window| calendar.opening(*window) < limits.end) else {
                let next_window = next_window.max(window_at_or_after(calendar, limits.end));
                return Ended { next_window, reached: true, failed };
            };
            failed = part.run_window::<I>(next);
            next_window = next + 1;
            has_run = true;
        }
        unreachable!("rounds do not end by themselves")
    }

    /// Publishes what all threads must know of a thread's shards to choose the next window.
    fn publish<E: Endpoint<Mail = M>>(&self, parity: usize, part: &Worker<'_, E>, next_window: u64, failed: bool) {
        let shards = part.shards.iter().zip(&*part.endpoints);
        for (published, (shard, endpoint)) in self.published[parity][part.first..].iter().zip(shards) {
            *locked(published) = Outlook {
                next: shard.next_due(next_window),
                hops: shard.in_flight.totals.packet_hops,
                failed,
                pause: !shard.in_flight.given_up.is_empty() || endpoint.pauses(),
                kept: endpoint.kept(),
            };
        }
    }

    /// Posts the mail of a thread's shards, of the window that they have just run.
    fn post<E: Endpoint<Mail = M>>(&self, parity: usize, part: &mut Worker<'_, E>) {
        let shards = part.shards.iter_mut().zip(part.endpoints.iter_mut());
        for (number, (shard, endpoint)) in (part.first..).zip(shards) {
            shard.in_flight.earliest_mail = Instant::MAX;
            for to in (0..self.shards).filter(|to| *to != number) {
                let mut slot = self.slot(parity, number, to);
                std::mem::swap(&mut slot.0, &mut shard.in_flight.mail[to]);
                endpoint.post(to, &mut slot.1);
            }
        }
    }

    /// A thread's shards accept the mail of all others. Returns whether the endpoints end the run.
    fn accept<I: Instance, E: Endpoint<Mail = M>>(
        &self,
        parity: usize,
        part: &mut Worker<'_, E>,
        next_window: u64,
    ) -> bool {
        let mut stop = false;
        let shards = part.shards.iter_mut().zip(part.endpoints.iter_mut());
        for (number, (shard, endpoint)) in (part.first..).zip(shards) {
            for from in (0..self.shards).filter(|from| *from != number) {
                let mut slot = self.slot(parity, from, number);
                shard.accept::<I>(u8::try_from(from).expect("invariant: at most 32 shards"), &mut slot.0);
                endpoint.accept(from, &mut slot.1);
            }
            stop |= endpoint.end_window(shard.in_flight.calendar.opening(next_window));
        }
        stop
    }

    fn slot(&self, parity: usize, from: usize, to: usize) -> MutexGuard<'_, (Mail, M)> {
        locked(&self.mail[parity][from * self.shards + to])
    }
}

/// A thread that panicked while it held the lock ends the run in any case.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E: Endpoint + Prefetch> Worker<'_, E> {
    /// Runs a window in all shards of the part in which anything is due.
    fn run_window<I: Instance>(&mut self, window: u64) -> Option<Failed> {
        let mut failed = None;
        for (shard, endpoint) in self.shards.iter_mut().zip(self.endpoints.iter_mut()) {
            if shard.in_flight.calendar.next(window) == window {
                failed = first_of(failed, shard.run_window::<I, E>(window, endpoint).err());
            } else {
                shard.in_flight.calendar.open(window);
            }
        }
        failed
    }
}
