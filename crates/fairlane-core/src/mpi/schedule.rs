//! Operations in phases of messages, as collectives are: what a rank has yet to do of one, and how a phase starts.

use super::collectives::Phase;
use super::matching::Pattern;
use super::messaging::Messaging;
use super::running::Running;
use super::transfer::Send;
use crate::ids::Rank;
use crate::program::SendMode;

impl Messaging {
    /// Posts a phase's receives and starts its sends one after another. The requests are added to `slots`. Returns when the
    /// last send has been handed over.
    pub(super) fn start_phase(
        &mut self,
        rank: u32,
        running: &Running,
        phase: &Phase,
        now: u64,
        slots: &mut Vec<u32>,
    ) -> u64 {
        let Running { tag, ref members, .. } = *running;
        let collective = running.is_collective();
        let context = running.context + u32::from(collective);
        for source in &phase.receives {
            let pattern = Pattern { context, source: Some(members[source.index()]), tag: Some(tag) };
            slots.extend(self.post(rank, pattern, None, now));
        }
        let mut handed_at = now;
        for (to, bytes) in &phase.sends {
            let called_at = handed_at;
            handed_at += self.parameters.send_overhead_of(bytes.0);
            let send = Send {
                from: rank,
                to: Rank(members[to.index()]),
                bytes: *bytes,
                tag,
                context,
                name: None,
                eager: !collective || self.is_eager(*bytes, SendMode::Standard),
                collective,
                called_at,
                handed_at,
            };
            slots.extend(self.send(&send));
        }
        handed_at
    }
}
