//! The links of ranks to the memory of their host, with contention: every rank has a link to a switch in the host and one back, as
//! GPUs in a scale-up domain have. Its messages leave one after another, and those that it gets enter one after another.

use super::transfer::Stage;
use crate::kernel::Pool;

/// The memory links of the ranks of a shard, and what is on its way to them or over them.
#[derive(Clone, Default)]
pub(in crate::mpi) struct MemoryLinks {
    /// By rank: until when its link out and its link in are busy, ps. Empty without contention.
    pub busy: Vec<[u64; 2]>,
    crossings: Pool<Crossing>,
}

/// A message that has not entered its receiver's memory.
#[derive(Clone, Copy)]
pub(in crate::mpi) struct Crossing {
    /// The names of the ranks that send and receive it.
    pub ranks: [u32; 2],
    /// Serialization time on each link, and latency from one to the other, ps.
    pub time: u64,
    pub latency: u64,
    pub transfer: u32,
    pub stage: Stage,
}

impl MemoryLinks {
    /// Whether a message crosses links: without contention none does, nor one of a rank to itself.
    pub fn carry(&self, [from, to]: [u32; 2]) -> bool {
        !self.busy.is_empty() && from != to
    }

    /// Keeps a message until it has entered.
    pub fn begin(&mut self, crossing: Crossing) -> u32 {
        self.crossings.insert(crossing)
    }

    /// A message comes to its sender's link at `at`. Returns when its end comes to the receiver's.
    pub fn leave(&mut self, crossing: u32, at: u64) -> u64 {
        let Crossing { ranks: [from, _], time, latency, .. } = self.crossings[crossing];
        let [out, _] = &mut self.busy[from as usize];
        *out = at.max(*out) + time;
        *out + latency
    }

    /// The end of a message comes to its receiver's link at `at`. Returns the message, and when it has entered.
    pub fn enter(&mut self, crossing: u32, at: u64) -> (Crossing, u64) {
        let ended = self.crossings.take(crossing);
        let [_, into] = &mut self.busy[ended.ranks[1] as usize];
        *into = at.max(*into + ended.time);
        (ended, *into)
    }
}
