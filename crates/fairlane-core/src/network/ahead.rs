//! Fetches what a port or host will read soon: on a large fabric the engine's limit is memory latency.

use super::Network;
use super::turn::kind;
use crate::ids::HostId;
use crate::kernel::{NONE, prefetch};

/// How many hosts or ports pass between one step and the next.
pub(super) const AHEAD: usize = 4;

/// Fabrics with more ports than this do not fit the fast caches.
pub(super) const LARGE: usize = 1024;

impl Network {
    /// A port will run after twice, and once, [`AHEAD`] others: fetches what is known of it by then.
    #[inline(always)]
    pub(super) fn prefetch_ports<const KIND: u8>(&self, coming: &[u32], place: usize) {
        if let Some(&port) = coming.get(place + 2 * AHEAD) {
            prefetch(&self.ports[port as usize]);
            let head = self.flight.inboxes.head(self.flight.calendar.window(), port);
            if head != NONE && KIND == kind::NIC {
                prefetch(&self.flight.messages[head]);
            } else if head != NONE {
                prefetch(&self.flight.packets[head]);
            }
        }
        if let Some(&port) = coming.get(place + AHEAD) {
            self.prefetch_lane::<KIND>(port);
        }
    }

    /// The lane that the first arrival joins, and the one its credits go to; or the lane that waits.
    #[inline(always)]
    fn prefetch_lane<const KIND: u8>(&self, port: u32) {
        let lanes = self.fixed.lanes;
        let head = self.flight.inboxes.head(self.flight.calendar.window(), port);
        let lane = if head == NONE {
            (self.ports[port as usize].waiting.trailing_zeros() as usize).min(lanes - 1)
        } else if KIND == kind::NIC {
            usize::from(self.fixed.lane(self.flight.messages[head].vl, 0))
        } else {
            let packet = &self.flight.packets[head];
            let upstream = packet.route[usize::from(packet.hop) - 1].link();
            prefetch(&self.lane_table[upstream as usize * lanes + usize::from(packet.held)]);
            usize::from(packet.lane)
        };
        prefetch(&self.lane_table[port as usize * lanes + lane]);
    }

    /// `host` will run soon: fetches the packets that come to it.
    pub(super) fn prefetch_incoming(&self, host: HostId) {
        for nic in self.fixed.nics_of(host) {
            let head = self.flight.incoming[nic as usize].0;
            if head != NONE {
                prefetch(&self.flight.packets[head]);
            }
        }
    }
}
