//! Laws of message passing that hold between windows, checked against the whole state.

use super::rank::NEVER;
use super::{Mpi, MpiShard};

impl Mpi {
    /// Checks that the counts of active and finished ranks, and of messages in flight, are those of the state that they
    /// summarise. `in_network`: messages that hosts have handed to the network and not taken from it.
    ///
    /// # Errors
    /// Both sides of the equation that does not hold.
    pub fn check_laws(&self, in_network: u64) -> Result<(), String> {
        self.shards.iter().try_for_each(MpiShard::check_counts)?;
        let sum = |of: &dyn Fn(&MpiShard) -> i64| self.shards.iter().map(of).sum::<i64>();
        for (number, job) in self.shards[0].messaging.jobs.iter().enumerate() {
            let left = sum(&|shard| shard.messaging.jobs[number].left());
            let finished = sum(&|shard| i64::from(shard.messaging.jobs[number].finished));
            for total in self.shards.iter().map(|shard| &shard.totals[number]) {
                if (total.left, i64::from(total.finished)) != (left, finished) {
                    return Err(format!(
                        "job {}: a shard knows {total:?}, the sums are {left} and {finished}",
                        job.name
                    ));
                }
            }
        }
        let in_memory = sum(&|shard| i64::from(shard.messaging.in_memory));
        let counted = sum(&|shard| shard.messaging.jobs.iter().map(|job| job.in_flight).sum());
        let found = in_memory.saturating_add_unsigned(in_network);
        if counted == found {
            return Ok(());
        }
        Err(format!("{counted} messages of jobs are counted as under way, {found} are"))
    }
}

impl MpiShard {
    fn check_counts(&self) -> Result<(), String> {
        let messaging = &self.messaging;
        for (number, job) in messaging.jobs.iter().enumerate() {
            let ranks = || messaging.ranks.iter().filter(|rank| rank.job.index() == number);
            let finished = ranks().filter(|rank| rank.finished).count();
            let active = ranks().filter(|rank| rank.due != NEVER).count();
            let counts = [("finished", job.finished, finished), ("active", job.active, active)];
            if let Some((what, counted, found)) = counts.iter().find(|count| count.1 as usize != count.2) {
                return Err(format!("job {}: {counted} ranks are counted as {what}, {found} are", job.name));
            }
        }
        let in_memory: usize = messaging.memory.iter().map(std::collections::BinaryHeap::len).sum();
        if messaging.in_memory as usize == in_memory {
            return Ok(());
        }
        Err(format!("{} transfers through memory are counted as under way, {in_memory} are", messaging.in_memory))
    }
}
