//! Who delays whom: the waiting time of packets, by the job that waits and the job it waits for.
//!
//! Exact, and cheap because nothing is kept per packet: a port knows how many packets of each job wait at it, and
//! adds that number times a span of time whenever it knows who caused the span.

use std::collections::HashMap;

use thin_vec::ThinVec;

/// Packets of one job that wait at a port.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Their waiting time while the link was idle, not charged to a job yet.
    aside: u64,
    count: u32,
    job: u16,
    /// Of the first: how many others there are, so that it need not be looked up where they are.
    others: u16,
}

impl Waiting {
    #[inline]
    fn is_empty(&self) -> bool {
        self.count == 0 && self.aside == 0
    }
}

/// Packets that wait at a port, by job. Mostly they are of one: that needs no list.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    first: Waiting,
    /// Other jobs than the first; none of them is empty.
    others: ThinVec<Waiting>,
}

impl Waiters {
    /// A packet of `job` begins to wait.
    #[inline]
    pub fn join(&mut self, job: u16) {
        if self.first.job == job {
            self.first.count += 1;
        } else if self.first.is_empty() && self.first.others == 0 {
            self.first = Waiting { count: 1, job, ..Waiting::default() };
        } else {
            self.join_others(job);
        }
    }

    fn join_others(&mut self, job: u16) {
        if let Some(other) = self.others.iter_mut().find(|other| other.job == job) {
            other.count += 1;
        } else {
            self.others.push(Waiting { count: 1, job, ..Waiting::default() });
            self.first.others += 1;
        }
    }

    /// A packet of `job` no longer waits.
    #[inline]
    pub fn leave(&mut self, job: u16) {
        if self.first.job == job {
            self.first.count -= 1;
        } else if let Some(place) = self.others.iter().position(|other| other.job == job) {
            self.others[place].count -= 1;
            if self.others[place].is_empty() {
                self.others.swap_remove(place);
                self.first.others -= 1;
            }
        }
    }

    /// All of them.
    #[inline]
    fn each(&self) -> impl Iterator<Item = &Waiting> {
        let others = if self.first.others == 0 { &[] } else { &self.others[..] };
        std::iter::once(&self.first).chain(others)
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// The link was idle for `span` because all that wait lacked credits.
    pub fn stalled(&mut self, span: u64) {
        for entry in self.each_mut() {
            entry.aside += u64::from(entry.count) * span;
        }
    }

    /// Those whose waiting time has been charged and that wait no longer are forgotten.
    fn forget_empty(&mut self) {
        let before = self.others.len();
        self.others.retain(|entry| !entry.is_empty());
        if self.others.len() < before {
            self.first.others = u16::try_from(self.others.len()).expect("invariant: jobs have 16-bit numbers");
        }
    }

    /// The time that is set aside, in picoseconds.
    #[must_use]
    pub fn aside(&self) -> u64 {
        self.each().map(|entry| entry.aside).sum()
    }
}

/// The interference matrix, in picoseconds of packet waiting.
#[derive(Clone, Debug, Default)]
pub struct Interference {
    jobs: usize,
    /// Delayed x delaying.
    matrix: Vec<u64>,
    /// By port, delayed, delaying; only if asked for.
    by_port: Option<HashMap<(u32, u16, u16), u64>>,
}

impl Interference {
    /// An empty matrix for this many jobs.
    #[must_use]
    pub fn new(jobs: usize, by_port: bool) -> Self {
        Self { jobs, matrix: vec![0; jobs * jobs], by_port: by_port.then(HashMap::new) }
    }

    /// Charges `span` of waiting at `port` by a packet of job `delayed` to job `delaying`.
    #[inline]
    pub fn charge(&mut self, port: u32, delayed: u16, delaying: u16, span: u64) {
        self.matrix[usize::from(delayed) * self.jobs + usize::from(delaying)] += span;
        if let Some(by_port) = &mut self.by_port {
            add(by_port, (port, delayed, delaying), span);
        }
    }

    /// The link of `port` carries a packet of `delaying` for `span`: all that wait there wait for it.
    #[inline]
    pub fn carried(&mut self, port: u32, waiters: &Waiters, delaying: u16, span: u64) {
        for &Waiting { count, job, .. } in waiters.each() {
            if count > 0 {
                self.charge(port, job, delaying, u64::from(count) * span);
            }
        }
    }

    /// A packet of `delaying` has given credits back to `port`: what was set aside is charged to it.
    pub fn credited(&mut self, port: u32, waiters: &mut Waiters, delaying: u16) {
        for entry in waiters.each_mut() {
            let aside = std::mem::take(&mut entry.aside);
            if aside > 0 {
                self.charge(port, entry.job, delaying, aside);
            }
        }
        waiters.forget_empty();
    }

    /// Adds what was charged elsewhere, where ports had other numbers: `port` gives those they have here.
    pub fn merge(&mut self, other: &Self, port: impl Fn(u32) -> u32) {
        self.matrix.iter_mut().zip(&other.matrix).for_each(|(sum, more)| *sum += more);
        if let Some(by_port) = &mut self.by_port {
            for (&(number, delayed, delaying), &span) in other.by_port.iter().flatten() {
                add(by_port, (port(number), delayed, delaying), span);
            }
        }
    }

    /// The matrix of `jobs` jobs, if this is one of classes: `job` gives the job of each.
    #[must_use]
    pub fn gathered(&self, jobs: usize, job: impl Fn(u16) -> u16) -> Self {
        let mut sum = Self::new(jobs, self.by_port.is_some());
        for (cell, &span) in self.matrix.iter().enumerate() {
            let [delayed, delaying] = [cell / self.jobs, cell % self.jobs]
                .map(|number| job(u16::try_from(number).expect("invariant: what is counted has 16-bit numbers")));
            sum.matrix[usize::from(delayed) * jobs + usize::from(delaying)] += span;
        }
        for (&(port, delayed, delaying), &span) in self.by_port.iter().flatten() {
            sum.by_port.iter_mut().for_each(|by_port| add(by_port, (port, job(delayed), job(delaying)), span));
        }
        sum
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
        let cells = self.by_port.iter().flatten();
        let mut rows: Vec<_> =
            cells.map(|(&(port, delayed, delaying), &span)| (port, delayed, delaying, span)).collect();
        rows.sort_unstable();
        rows
    }

    /// All that has been charged, in picoseconds.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.matrix.iter().sum()
    }
}

#[cold]
fn add(by_port: &mut HashMap<(u32, u16, u16), u64>, cell: (u32, u16, u16), span: u64) {
    *by_port.entry(cell).or_default() += span;
}
