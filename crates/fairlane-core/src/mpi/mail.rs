//! Mail between shards: what the ranks of one send to those of another in addition to network messages.
//!
//! A message in the network carries a number only. The transfer that the number stands for is sent as mail, which is delivered when the
//! window ends, before the message.

use super::MpiShard;
use super::naming::Naming;
use super::p2p::transfer::Transits;
use super::report::Report;
use crate::ids::JobId;
use crate::observe::Mark;

/// Mail from one shard to another when a window ends.
#[derive(Clone, Debug, Default)]
pub struct Mail {
    /// Transfers with a message in flight to the other shard.
    transfers: Transits,
    /// The numbers of the other shard's transfers that have ended in this one.
    ended: Vec<u32>,
    /// Iterations that the ranks of this shard have completed; to the first shard only.
    completed: Vec<(JobId, u64, Mark)>,
    report: Report,
}

impl MpiShard {
    /// Moves to `mail`, which is empty, what another shard must know of the window that has been run.
    pub(super) fn write(&mut self, shard: usize, mail: &mut Mail) {
        mail.report.clone_from(self.report());
        std::mem::swap(&mut self.messaging.departing[shard], &mut mail.transfers);
        self.messaging.transfers.take_ended(shard, &mut mail.ended);
        if shard == 0 {
            std::mem::swap(&mut self.messaging.completed, &mut mail.completed);
        }
    }

    /// Takes everything out of the mail of another shard.
    pub(super) fn read(&mut self, shard: usize, mail: &mut Mail) {
        let messaging = &mut self.messaging;
        let there = Naming::new(shard, messaging.departing.len());
        messaging.transfers.accept_all(&mut mail.transfers, there);
        messaging.transfers.end(&mut mail.ended);
        messaging.completed.append(&mut mail.completed);
        if !mail.report.is_empty() {
            self.reports.push((shard, std::mem::take(&mut mail.report)));
        }
    }
}
