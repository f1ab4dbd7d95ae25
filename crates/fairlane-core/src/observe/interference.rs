//! Who delays whom: the waiting time of packets, by the job that waits and the job it waits for.
//!
//! Exact, and cheap because nothing is kept per packet: a port knows how many packets of each job wait at it, and
//! adds that number times a span of time whenever it knows who caused the span.

use std::collections::HashMap;

use crate::kernel::prefetch;

/// Packets of one job that wait at a port.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Their waiting time while the link was idle, not charged to a job yet.
    aside: u64,
    count: u32,
    job: u16,
}

impl Waiting {
    #[inline]
    fn is_empty(&self) -> bool {
        self.count == 0 && self.aside == 0
    }
}

/// Packets that wait at a port, by job. Mostly they are of one: that needs no list.
#[derive(Clone, Debug, Default)]
struct Queue {
    first: Waiting,
    /// Other jobs than the first; none of them is empty.
    others: Vec<Waiting>,
}

/// The interference matrix, in picoseconds of packet waiting.
#[derive(Clone, Debug)]
pub struct Interference {
    jobs: usize,
    /// Delayed x delaying.
    matrix: Vec<u64>,
    /// By port.
    waiting: Vec<Queue>,
    /// By port, delayed, delaying; only if asked for.
    by_port: Option<HashMap<(u32, u16, u16), u64>>,
}

impl Interference {
    /// What it keeps of a port at which packets of one job wait.
    pub const BYTES_PER_PORT: usize = size_of::<Queue>();

    /// An empty matrix for this many jobs and ports.
    #[must_use]
    pub fn new(jobs: usize, ports: usize, by_port: bool) -> Self {
        Self {
            jobs,
            matrix: vec![0; jobs * jobs],
            waiting: vec![Queue::default(); ports],
            by_port: by_port.then(HashMap::new),
        }
    }

    /// Charges `span` of waiting at `port` by a packet of job `delayed` to job `delaying`.
    #[inline]
    pub fn charge(&mut self, port: u32, delayed: u16, delaying: u16, span: u64) {
        self.matrix[usize::from(delayed) * self.jobs + usize::from(delaying)] += span;
        if let Some(by_port) = &mut self.by_port {
            *by_port.entry((port, delayed, delaying)).or_default() += span;
        }
    }

    /// `port` will be asked about soon.
    #[inline]
    pub fn prefetch(&self, port: u32) {
        prefetch(&self.waiting[port as usize]);
    }

    /// A packet of `job` begins to wait at `port`.
    #[inline]
    pub fn join(&mut self, port: u32, job: u16) {
        let Queue { first, others } = &mut self.waiting[port as usize];
        if first.job == job {
            first.count += 1;
        } else if first.is_empty() && others.is_empty() {
            *first = Waiting { aside: 0, count: 1, job };
        } else if let Some(other) = others.iter_mut().find(|other| other.job == job) {
            other.count += 1;
        } else {
            others.push(Waiting { aside: 0, count: 1, job });
        }
    }

    /// A packet of `job` no longer waits at `port`.
    #[inline]
    pub fn leave(&mut self, port: u32, job: u16) {
        let Queue { first, others } = &mut self.waiting[port as usize];
        if first.job == job {
            first.count -= 1;
        } else if let Some(place) = others.iter().position(|other| other.job == job) {
            others[place].count -= 1;
            if others[place].is_empty() {
                others.swap_remove(place);
            }
        }
    }

    /// The link of `port` carries a packet of `delaying` for `span`: all that wait there wait for it.
    #[inline]
    pub fn carried(&mut self, port: u32, delaying: u16, span: u64) {
        let Waiting { count, job, .. } = self.waiting[port as usize].first;
        if count > 0 {
            self.charge(port, job, delaying, u64::from(count) * span);
        }
        for place in 0..self.waiting[port as usize].others.len() {
            let Waiting { count, job, .. } = self.waiting[port as usize].others[place];
            if count > 0 {
                self.charge(port, job, delaying, u64::from(count) * span);
            }
        }
    }

    /// The link of `port` was idle for `span` because all that wait there lacked credits.
    #[inline]
    pub fn stalled(&mut self, port: u32, span: u64) {
        let Queue { first, others } = &mut self.waiting[port as usize];
        for entry in std::iter::once(first).chain(others) {
            entry.aside += u64::from(entry.count) * span;
        }
    }

    /// A packet of `delaying` has given credits back to `port`: what was set aside is charged to it.
    #[inline]
    pub fn credited(&mut self, port: u32, delaying: u16) {
        let Queue { mut first, mut others } = std::mem::take(&mut self.waiting[port as usize]);
        for entry in std::iter::once(&mut first).chain(&mut others) {
            let aside = std::mem::take(&mut entry.aside);
            if aside > 0 {
                self.charge(port, entry.job, delaying, aside);
            }
        }
        others.retain(|entry| !entry.is_empty());
        self.waiting[port as usize] = Queue { first, others };
    }

    /// How many jobs there are.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// The waiting time of job `delayed` charged to job `delaying`, in picoseconds.
    #[must_use]
    pub fn cell(&self, delayed: usize, delaying: usize) -> u64 {
        self.matrix[delayed * self.jobs + delaying]
    }

    /// The matrix by port, if it was asked for: (port, delayed, delaying, picoseconds), in ascending order.
    #[must_use]
    pub fn by_port(&self) -> Vec<(u32, u16, u16, u64)> {
        let mut rows: Vec<_> = self
            .by_port
            .iter()
            .flatten()
            .map(|(&(port, delayed, delaying), &span)| (port, delayed, delaying, span))
            .collect();
        rows.sort_unstable();
        rows
    }

    /// All that has been charged, and all that is still set aside, in picoseconds.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let queues = self.waiting.iter().flat_map(|queue| std::iter::once(&queue.first).chain(&queue.others));
        let aside = queues.map(|entry| entry.aside).sum();
        (self.matrix.iter().sum(), aside)
    }
}
