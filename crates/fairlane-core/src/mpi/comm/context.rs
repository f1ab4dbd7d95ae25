//! Contexts of communicators that a job makes: every member has the same one for the same communicator.
//!
//! The table is common to all shards, because a member may need its context at once. Which context a communicator has depends
//! on which shard asked first; contexts are only compared for equality, so no result depends on it. Where one is shown, it is
//! shown as if contexts had been given in the order of simulation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::ids::{HostId, JobId};
use crate::mpi::collective::agreement::Key;
use crate::program::CommHandle;

/// Contexts below this are taken: those of the communicators that every job has.
const FIRST: u32 = 4;

/// A point of the simulation: the end of a window, a host that ran in it, and what this shard had asked for before.
pub(in crate::mpi) type Order = (u64, HostId, u64);

/// The contexts of all jobs.
#[derive(Debug)]
pub(in crate::mpi) struct Contexts(Mutex<Vec<OfJob>>);

#[derive(Clone, Debug, Default)]
struct OfJob {
    /// Those that came of collectives which are not over, with their colours.
    derived: FxHashMap<Key, Vec<(i32, u32)>>,
    defined: FxHashMap<(CommHandle, Arc<[u32]>), u32>,
    /// When each was asked for first.
    asked: Vec<Order>,
}

impl OfJob {
    fn fresh(&mut self) -> u32 {
        self.asked.push((u64::MAX, HostId(u32::MAX), u64::MAX));
        let number =
            u32::try_from(self.asked.len() - 1).ok().and_then(|number| number.checked_mul(2)?.checked_add(FIRST));
        number.expect("invariant: a job makes fewer than 2^31 communicators")
    }

    fn ask(&mut self, context: u32, order: Order) -> u32 {
        let asked = &mut self.asked[((context - FIRST) / 2) as usize];
        *asked = order.min(*asked);
        context
    }
}

impl Contexts {
    pub fn new(jobs: usize) -> Self {
        Self(Mutex::new(vec![OfJob::default(); jobs]))
    }

    /// The same contexts, for a fork of the simulation.
    pub fn copy(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OfJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The context of the new communicator of `color` that comes of a collective.
    pub fn derived(&self, key: Key, color: i32, order: Order) -> u32 {
        let of = &mut self.lock()[key.0.index()];
        let found = of.derived.get(&key).and_then(|made| made.iter().find(|made| made.0 == color));
        let context = match found {
            Some((_, context)) => *context,
            None => {
                let fresh = of.fresh();
                of.derived.entry(key).or_default().push((color, fresh));
                fresh
            }
        };
        of.ask(context, order)
    }

    /// A collective is over: its contexts are not asked for again.
    pub fn over(&self, key: Key) {
        self.lock()[key.0.index()].derived.remove(&key);
    }

    /// The context of the communicator with this handle and these members.
    pub fn defined(&self, job: JobId, handle: CommHandle, members: &Arc<[u32]>, order: Order) -> u32 {
        let of = &mut self.lock()[job.index()];
        let key = (handle, Arc::clone(members));
        let context = match of.defined.get(&key) {
            Some(context) => *context,
            None => {
                let fresh = of.fresh();
                of.defined.insert(key, fresh);
                fresh
            }
        };
        of.ask(context, order)
    }

    /// The context as it is shown: as if they had been given in the order in which they were asked for.
    pub fn shown(&self, job: JobId, context: u32) -> u32 {
        let of = &self.lock()[job.index()];
        let Some(asked) = context.checked_sub(FIRST).and_then(|made| of.asked.get((made / 2) as usize)) else {
            return context;
        };
        let before = of.asked.iter().filter(|other| *other < asked).count();
        FIRST + 2 * u32::try_from(before).expect("invariant: fewer than 2^31 communicators")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_shown_in_the_order_of_simulation() {
        let (job, contexts) = (JobId(0), Contexts::new(1));
        let members: Arc<[u32]> = Arc::new([0, 1]);
        let late = contexts.derived((job, 0, 7), 1, (20, HostId(3), 0));
        let early = contexts.defined(job, 9, &members, (10, HostId(5), 0));
        assert_eq!(contexts.derived((job, 0, 7), 1, (10, HostId(6), 0)), late, "the same for every member");
        assert_ne!(late, early);
        assert_eq!((contexts.shown(job, early), contexts.shown(job, late)), (4, 6));
        let earliest = contexts.derived((job, 0, 7), 2, (10, HostId(4), 0));
        assert_eq!([earliest, early, late].map(|it| contexts.shown(job, it)), [4, 6, 8]);
        assert_eq!(contexts.shown(job, 0), 0);
        contexts.over((job, 0, 7));
        assert_ne!(contexts.derived((job, 0, 7), 1, (30, HostId(0), 0)), late, "another collective of this number");
    }
}
