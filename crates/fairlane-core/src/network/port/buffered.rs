//! Output ports of input-queued switches, which run together with their switch, one instant at a time.

use super::queue::QueueEntry;
use super::{ActivePort, kind};
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::units::Instant;

impl<I: Instance> ActivePort<'_, I, { kind::BUFFERED }> {
    /// A packet joins its queue at `now`.
    pub fn join(&mut self, packet: PacketIdx, now: Instant) {
        if self.port.stalled {
            self.end_stall(now);
        }
        let entry = QueueEntry { time: now, ..self.entry(packet) };
        self.enqueue(packet, &entry);
    }

    /// Credits may have arrived by `now`. Returns whether the port has been waiting for them.
    pub fn credits_arrived(&mut self, now: Instant) -> bool {
        let awaited = self.port.stalled && self.next_credit() <= now;
        if awaited {
            self.end_stall(now);
        }
        awaited
    }

    /// If packets wait for the link and it is free, it picks a lane. Returns the lane and the packet that starts, as it stood in
    /// its queue, none if the port is stalled; nothing if there was no choice to make.
    pub fn decide(&mut self, now: Instant) -> Option<Option<(LaneIdx, QueueEntry)>> {
        let free = self.port.waiting != 0 && !self.port.stalled && self.port.busy_until <= now;
        let decided = free.then(|| self.arbitrate(now))?;
        Some(decided.map(|(lane, packet)| {
            let entry = self.entry(packet);
            self.send(lane, packet, now);
            (lane, entry)
        }))
    }
}
