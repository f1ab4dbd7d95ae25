//! Transfers through the memory of a host.
//!
//! Without contention each takes a latency and its time at the memory's bandwidth. With contention every rank has a link to a
//! switch in the host and one back, as GPUs in a scale-up domain have: its messages leave one after another, and those that it gets
//! enter one after another.

use std::cmp::Reverse;

use super::messaging::Messaging;
use super::transfer::Stage;
use crate::kernel::Pool;
use crate::units::Bytes;

/// The memory links of the ranks of a shard, and what is on its way to them or over them.
#[derive(Clone, Default)]
pub(super) struct MemoryLinks {
    /// By rank: until when its link out and its link in are busy, ps. Empty without contention.
    pub busy: Vec<[u64; 2]>,
    crossings: Pool<Crossing>,
}

/// A message that has not entered its receiver's memory.
#[derive(Clone, Copy)]
struct Crossing {
    from: u32,
    to: u32,
    /// What it takes on each link, ps.
    time: u64,
    transfer: u32,
    stage: Stage,
}

impl Messaging {
    /// A message of a transfer is handed to memory at `at`; `from` and `to` are the names of its ranks.
    #[cold]
    pub(super) fn transmit_through_memory(
        &mut self,
        [from, to]: [u32; 2],
        bytes: Bytes,
        (transfer, stage): (u32, Stage),
        at: u64,
    ) {
        let time = self.parameters.memory_bandwidth.serialization(bytes).0;
        if self.memory_links.busy.is_empty() || from == to {
            self.end_in_memory_at(at + self.parameters.memory_latency.0 + time, transfer, stage);
        } else {
            let crossing = self.memory_links.crossings.insert(Crossing { from, to, time, transfer, stage });
            self.end_in_memory_at(at, crossing, Stage::Leaving);
        }
    }

    /// At `at`, something ends in the memory of the host that runs.
    pub(super) fn end_in_memory_at(&mut self, at: u64, record: u32, stage: Stage) {
        self.put_in_memory(at, self.sequence, record, stage);
        self.sequence += 1;
    }

    fn put_in_memory(&mut self, at: u64, sequence: u64, record: u32, stage: Stage) {
        self.own_memory().push(Reverse((at, sequence, record, stage)));
        self.in_memory += 1;
    }

    /// A message, with its place in the order of messages, comes to the link of its sender.
    pub(super) fn leave_through_memory(&mut self, crossing: u32, sequence: u64, at: u64) {
        let Crossing { from, time, .. } = self.memory_links.crossings[crossing];
        let [out, _] = &mut self.memory_links.busy[from as usize];
        *out = at.max(*out) + time;
        let entering = *out + self.parameters.memory_latency.0;
        self.put_in_memory(entering, sequence, crossing, Stage::Entering);
    }

    /// The end of a message comes to the link of its receiver, which carries a message as soon as it comes.
    pub(super) fn enter_through_memory(&mut self, crossing: u32, sequence: u64, at: u64) {
        let Crossing { to, time, transfer, stage, .. } = self.memory_links.crossings[crossing];
        self.memory_links.crossings.remove(crossing);
        let [_, into] = &mut self.memory_links.busy[to as usize];
        *into = at.max(*into + time);
        let end = *into;
        self.put_in_memory(end, sequence, transfer, stage);
    }
}
