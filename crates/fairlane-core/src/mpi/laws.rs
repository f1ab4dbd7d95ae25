//! Laws of message passing that hold between windows, checked against the whole state.

use super::Mpi;
use super::rank::NEVER;

impl Mpi {
    /// Checks that the counts of active and finished ranks, and of messages under way, are those of the state that they
    /// summarise. `in_network`: messages that hosts have handed to the network and not taken from it.
    ///
    /// # Errors
    /// Both sides of the equation that does not hold.
    pub fn check_laws(&self, in_network: u64) -> Result<(), String> {
        let messaging = &self.messaging;
        for job in &messaging.jobs {
            let ranks = &messaging.ranks[job.first as usize..(job.first + job.size) as usize];
            let finished = ranks.iter().filter(|rank| rank.finished).count();
            let active = ranks.iter().filter(|rank| rank.due != NEVER).count();
            let counts = [("finished", job.finished, finished), ("active", job.active, active)];
            if let Some((what, counted, found)) = counts.iter().find(|count| count.1 as usize != count.2) {
                return Err(format!("job {}: {counted} ranks are counted as {what}, {found} are", job.name));
            }
        }
        let in_memory: usize = messaging.memory.iter().map(std::collections::BinaryHeap::len).sum();
        let counted: u64 = messaging.jobs.iter().map(|job| job.in_flight).sum();
        let balances = [
            ("transfers through memory", u64::from(messaging.in_memory), in_memory as u64),
            ("messages of jobs", counted, in_network + in_memory as u64),
        ];
        match balances.iter().find(|(_, counted, found)| counted != found) {
            None => Ok(()),
            Some((what, counted, found)) => Err(format!("{counted} {what} are counted as under way, {found} are")),
        }
    }
}
