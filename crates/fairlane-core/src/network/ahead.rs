//! Fetches what a port or host will read soon: on a large fabric the engine's limit is memory latency.

use super::turn::kind;
use super::{Endpoint, Network};
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

    /// A host will run after three times, twice, and once [`AHEAD`] others: fetches what is known of it by then, and of what
    /// comes to it first.
    #[inline(always)]
    pub(super) fn prefetch_hosts(&self, coming: &[u32], place: usize, endpoint: &impl Endpoint) {
        for step in 0..3 {
            let Some(&host) = coming.get(place + (3 - step) * AHEAD) else { continue };
            let host = HostId(host);
            endpoint.prefetch(host, step);
            let head = self.flight.incoming[self.fixed.nics_of(host).start as usize].0;
            if head != NONE && step == 0 {
                prefetch(&self.flight.packets[head]);
            } else if head != NONE && step == 1 {
                let packet = &self.flight.packets[head];
                if packet.load.whole() {
                    endpoint.prefetch_message(packet.message);
                } else {
                    prefetch(&self.flight.messages[packet.message]);
                }
            }
        }
    }
}
