//! Fetches what a port or host will read soon: on a large fabric the engine's limit is memory latency.

use super::Network;
use crate::ids::HostId;
use crate::kernel::{NONE, prefetch};

/// How many hosts or ports pass between one step and the next.
pub(super) const AHEAD: usize = 4;

/// Fabrics with more ports than this do not fit the fast caches.
pub(super) const LARGE: usize = 1024;

impl Network {
    /// A port will run after three times, twice, and once [`AHEAD`] others: fetches what is known of it by then.
    #[inline]
    pub(super) fn prefetch_ports(&self, coming: &[u32], place: usize) {
        if let Some(&port) = coming.get(place + 3 * AHEAD) {
            prefetch(&self.ports[port as usize]);
            let head = self.arriving(port);
            if head != NONE && port >= self.fixed.nics {
                prefetch(&self.flight.packets[head]);
            } else if head != NONE {
                prefetch(&self.flight.messages[head]);
            }
        }
        if let Some(&port) = coming.get(place + 2 * AHEAD) {
            self.prefetch_lane(port);
        }
        if let Some(&port) = coming.get(place + AHEAD) {
            self.prefetch_credits(port);
        }
    }

    fn arriving(&self, port: u32) -> u32 {
        self.flight.inboxes.head(self.flight.calendar.window(), port)
    }

    /// The lane that the first arrival joins, and where its credits go.
    #[inline]
    fn prefetch_lane(&self, port: u32) {
        let head = self.arriving(port);
        let state = &self.ports[port as usize];
        let lane = if head == NONE {
            (state.waiting.trailing_zeros() as usize).min(self.fixed.lanes - 1)
        } else if port < self.fixed.nics {
            usize::from(self.fixed.lane(self.flight.messages[head].vl, 0))
        } else {
            let packet = &self.flight.packets[head];
            let upstream = packet.route[usize::from(packet.hop) - 1].link();
            prefetch(&self.flight.returning[upstream as usize]);
            usize::from(packet.lane)
        };
        let place = port as usize * self.fixed.lanes + lane;
        prefetch(&self.lane_table[place]);
        if state.waiting != 0 || state.busy_until >= self.now().0 {
            self.watch.interference.prefetch(port);
            prefetch(&self.lane_records[place]);
        }
    }

    /// The list that the first arrival's credits join.
    #[inline]
    fn prefetch_credits(&self, port: u32) {
        let head = self.arriving(port);
        if head != NONE && port >= self.fixed.nics {
            let packet = &self.flight.packets[head];
            let upstream = packet.route[usize::from(packet.hop) - 1].link();
            if let Some(last) = self.flight.returning[upstream as usize].credits.last() {
                prefetch(last);
            }
        }
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
