//! Fetches what a port or host will read soon: on a large fabric the engine's limit is memory latency. Nothing here changes
//! what happens; where a packet goes next is looked up a little earlier, and noted in it.

use super::turn::kind;
use super::{Endpoint, Network};
use crate::ids::{HostId, LinkId};
use crate::kernel::{NONE, prefetch};
use crate::routing::{Hop, Step};
use crate::units::Instant;

/// How many hosts or ports pass between one step and the next.
const AHEAD: usize = 4;

/// Fabrics with more ports than this do not fit the fast caches.
pub(super) const LARGE: usize = 1024;

impl Network {
    /// A port will run after three times, twice, and once [`AHEAD`] others: fetches what is known of it by then.
    #[inline(always)]
    pub(super) fn prefetch_ports<const KIND: u8>(&mut self, coming: &[u32], place: usize) {
        if let Some(&port) = coming.get(place + 3 * AHEAD) {
            prefetch(&self.ports[port as usize]);
            self.prefetch_arbiter(port);
            let head = self.flight.inboxes.head(self.flight.calendar.window(), port);
            if head != NONE && KIND == kind::NIC {
                prefetch(&self.flight.messages[head]);
            } else if head != NONE {
                prefetch(&self.flight.packets[head]);
            }
        }
        if let Some(&port) = coming.get(place + 2 * AHEAD) {
            self.prefetch_lanes::<KIND>(port);
        }
        if let Some(&port) = coming.get(place + AHEAD) {
            self.prefetch_queue::<KIND>(port);
            if KIND == kind::THROUGH && !self.fixed.adaptive {
                self.look_ahead(port);
            }
        }
        if let Some(&port) = coming.get(place + AHEAD / 2)
            && KIND != kind::NIC
        {
            self.prefetch_upstream(port);
        }
    }

    #[inline(always)]
    fn prefetch_arbiter(&self, port: u32) {
        if let Some(state) = self.arbiter_state.get(port as usize * self.fixed.state_words) {
            prefetch(state);
        }
    }

    /// The lane that the first arrival joins, the one its credits go to, and where it goes next; the lane that waits.
    #[inline(always)]
    fn prefetch_lanes<const KIND: u8>(&self, port: u32) {
        let lanes = self.fixed.lanes;
        let head = self.flight.inboxes.head(self.flight.calendar.window(), port);
        let waiting = self.ports[port as usize].waiting;
        if waiting != 0 {
            prefetch(&self.lane_table[port as usize * lanes + waiting.trailing_zeros() as usize]);
        }
        if head != NONE && KIND == kind::NIC {
            let lane = self.fixed.lane(self.flight.messages[head].vl, 0);
            prefetch(&self.lane_table[port as usize * lanes + usize::from(lane)]);
        } else if head != NONE {
            let packet = &self.flight.packets[head];
            prefetch(&self.lane_table[port as usize * lanes + usize::from(packet.lane)]);
            prefetch(&self.lane_table[packet.came.link() as usize * lanes + usize::from(packet.held)]);
        }
    }

    /// The lane to which the packet that has waited longest gives its credits back.
    #[inline(always)]
    fn prefetch_upstream(&self, port: u32) {
        let (waiting, lanes) = (self.ports[port as usize].waiting, self.fixed.lanes);
        if waiting != 0 {
            let head = self.lane_table[port as usize * lanes + waiting.trailing_zeros() as usize].head;
            let packet = &self.flight.packets[head];
            prefetch(&self.lane_table[packet.came.link() as usize * lanes + usize::from(packet.held)]);
        }
    }

    /// Looks up where the first arrival goes behind this port, and fetches the list that it joins there.
    #[inline(always)]
    fn look_ahead(&mut self, port: u32) {
        let Self { fixed, flight, .. } = self;
        let window = flight.calendar.window();
        let head = flight.inboxes.head(window, port);
        if head == NONE {
            return;
        }
        let packet = &mut flight.packets[head];
        if packet.ahead == Step::NONE {
            let channel = fixed.channel(packet.vl, packet.lane);
            packet.ahead = fixed.behind(Step::new(Hop { link: LinkId(port), channel }), packet.to);
        }
        let port = &self.ports[port as usize];
        let start = packet.time.max(port.busy_until);
        let time = start + fixed.wires[port.wire as usize].latency + fixed.parameters.switch_latency.0;
        flight.inboxes.prefetch(flight.calendar.window_of(Instant(time)), packet.ahead.link());
    }

    /// The packet that has waited longest.
    #[inline(always)]
    fn prefetch_queue<const KIND: u8>(&self, port: u32) {
        let waiting = self.ports[port as usize].waiting;
        if waiting == 0 {
            return;
        }
        let head = self.lane_table[port as usize * self.fixed.lanes + waiting.trailing_zeros() as usize].head;
        if KIND == kind::NIC {
            prefetch(&self.flight.messages[head]);
        } else {
            prefetch(&self.flight.packets[head]);
        }
    }

    /// A host will run after four times to once [`AHEAD`] others: fetches what is known of it by then, of what comes to it
    /// first, and of its port.
    #[inline(always)]
    pub(super) fn prefetch_hosts(&self, coming: &[u32], place: usize, endpoint: &impl Endpoint) {
        for step in 0..4 {
            let Some(&host) = coming.get(place + (4 - step) * AHEAD) else { continue };
            let nic = self.fixed.nics_of(HostId(host)).start;
            endpoint.prefetch(HostId(host), step);
            let head = self.flight.incoming[nic as usize].0;
            if step == 0 {
                prefetch(&self.ports[nic as usize]);
                self.prefetch_arbiter(nic);
                self.flight.inboxes.prefetch(self.flight.calendar.window(), nic);
                if head != NONE {
                    prefetch(&self.flight.packets[head]);
                }
            } else if head != NONE && step == 1 {
                let packet = &self.flight.packets[head];
                if packet.next != NONE {
                    prefetch(&self.flight.packets[packet.next]);
                }
                if packet.load.whole() {
                    endpoint.prefetch_message(packet.message);
                } else {
                    prefetch(&self.flight.messages[packet.message]);
                }
            }
        }
    }
}
