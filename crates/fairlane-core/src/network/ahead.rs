//! Fetches what a port or host will read soon: on a large fabric the engine's limit is memory latency. Nothing here changes
//! what happens; where a packet goes next is looked up a little earlier, and noted in it.

use super::packet::Packet;
use super::turn::kind;
use super::{Endpoint, Network};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::kernel::{NONE, prefetch};
use crate::routing::{Hop, Step};
use crate::units::Instant;

/// How many hosts or ports pass between one step and the next.
const AHEAD: usize = 4;

/// In so many steps a host is fetched, each of which reads what the one before has fetched.
const STEPS: usize = 5;

/// How many NICs' ports pass between what is handed to one and its run.
pub(super) const HANDED: usize = 3;

/// Fabrics with more ports than this do not fit the fast caches.
pub(super) const LARGE: usize = 1024;

impl Network {
    /// A port will run after four times to once [`AHEAD`] others: fetches what is known of it by then.
    #[inline(always)]
    pub(super) fn prefetch_ports<const KIND: u8>(&mut self, all: &[u32], place: usize) {
        let heads = self.flight.inboxes.heads_in(self.flight.calendar.window());
        // A port that will run so many times AHEAD from now, and the first that arrives there.
        let coming = |ahead: usize| all.get(place + ahead).map(|&port| (port, heads[port as usize]));
        if let Some(&port) = all.get(place + 4 * AHEAD) {
            prefetch(&heads[port as usize]);
            prefetch(&self.fixed.far_switch[port as usize]);
        }
        if let Some((port, head)) = coming(3 * AHEAD) {
            prefetch(&self.ports[port as usize]);
            self.prefetch_arbiter(port);
            if head != NONE && KIND == kind::NIC {
                prefetch(&self.flight.messages[head]);
            } else if head != NONE {
                prefetch(&self.flight.packets[head]);
            }
        }
        if let Some((port, head)) = coming(2 * AHEAD) {
            self.prefetch_lanes::<KIND>(port, head);
        }
        if let Some((port, head)) = coming(AHEAD) {
            self.prefetch_queue::<KIND>(port);
            if head != NONE {
                self.prefetch_second::<KIND>(port, head);
                self.look_ahead::<KIND>(port, head);
            }
        }
        if let Some(&port) = all.get(place + AHEAD / 2) {
            self.prefetch_behind_queue::<KIND>(port);
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
    fn prefetch_lanes<const KIND: u8>(&self, port: u32, head: u32) {
        let lanes = self.fixed.lanes;
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
            if packet.next != NONE {
                prefetch(&self.flight.packets[packet.next]);
            }
            let at = self.fixed.far_switch[port as usize];
            if KIND == kind::THROUGH && !self.fixed.adaptive && packet.ahead == Step::NONE {
                self.fixed.routing.prefetch(SwitchId(at), HostId(packet.to));
            }
        }
    }

    /// The lane that the second arrival joins, and the one its credits go to.
    #[inline(always)]
    fn prefetch_second<const KIND: u8>(&self, port: u32, head: u32) {
        if KIND == kind::NIC {
            return;
        }
        let second = self.flight.packets[head].next;
        if second != NONE {
            let (packet, lanes) = (&self.flight.packets[second], self.fixed.lanes);
            prefetch(&self.lane_table[port as usize * lanes + usize::from(packet.lane)]);
            prefetch(&self.lane_table[packet.came.link() as usize * lanes + usize::from(packet.held)]);
        }
    }

    /// Where the packet that has waited longest goes, and the lane to which it gives its credits back.
    #[inline(always)]
    fn prefetch_behind_queue<const KIND: u8>(&mut self, port: u32) {
        let (waiting, lanes) = (self.ports[port as usize].waiting, self.fixed.lanes);
        if waiting == 0 {
            return;
        }
        let head = self.lane_table[port as usize * lanes + waiting.trailing_zeros() as usize].head;
        if KIND != kind::NIC {
            let packet = &self.flight.packets[head];
            prefetch(&self.lane_table[packet.came.link() as usize * lanes + usize::from(packet.held)]);
        }
        self.look_ahead::<KIND>(port, head);
    }

    /// Looks up where a packet goes behind this port (the next of a message, at a NIC), and fetches the list that it joins
    /// there.
    #[inline(always)]
    fn look_ahead<const KIND: u8>(&mut self, port: u32, record: u32) {
        let Self { fixed, flight, .. } = self;
        if KIND == kind::LAST || fixed.adaptive || fixed.far_switch[port as usize] == NONE {
            return;
        }
        let (time, vl, lane, to, ahead) = if KIND == kind::NIC {
            let message = &mut flight.messages[record];
            (message.offered, message.vl, fixed.lane(message.vl, 0), message.to, &mut message.ahead)
        } else {
            let packet = &mut flight.packets[record];
            (packet.time, packet.vl, packet.lane, packet.to, &mut packet.ahead)
        };
        if *ahead == Step::NONE {
            let channel = fixed.channel(vl, lane);
            *ahead = fixed.behind(Step::new(Hop { link: LinkId(port), channel }), to);
        }
        let port = &self.ports[port as usize];
        let start = time.max(port.busy_until);
        let time = start + fixed.wires[port.wire as usize].latency + fixed.parameters.switch_latency.0;
        flight.inboxes.prefetch(flight.calendar.window_of(Instant(time)), ahead.link());
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

    /// Something has just been handed to the last of the NICs' ports that wait for it: fetches where it goes.
    #[inline(always)]
    pub(super) fn prefetch_handed(&mut self) {
        let Some(&nic) = self.scratch.handed.back() else { return };
        let head = self.flight.inboxes.head(self.flight.calendar.window(), nic);
        if head != NONE {
            let lane = self.fixed.lane(self.flight.messages[head].vl, 0);
            prefetch(&self.lane_table[nic as usize * self.fixed.lanes + usize::from(lane)]);
            self.look_ahead::<{ kind::NIC }>(nic, head);
        }
    }

    /// A host will run after [`STEPS`] times to once [`AHEAD`] others: fetches what is known of it by then, of what comes to it
    /// first, and of its port.
    #[inline(always)]
    pub(super) fn prefetch_hosts(&self, coming: &[u32], place: usize, endpoint: &impl Endpoint) {
        for step in 0..STEPS {
            let Some(&host) = coming.get(place + (STEPS - step) * AHEAD) else { continue };
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
                self.prefetch_of(packet, endpoint);
            } else if head != NONE && step == 2 {
                let next = self.flight.packets[head].next;
                if next != NONE {
                    self.prefetch_of(&self.flight.packets[next], endpoint);
                }
            }
        }
    }

    /// The message of a packet that will be delivered soon.
    #[inline(always)]
    fn prefetch_of(&self, packet: &Packet, endpoint: &impl Endpoint) {
        if packet.load.whole() {
            endpoint.prefetch_message(packet.message);
        } else {
            prefetch(&self.flight.messages[packet.message]);
        }
    }
}
