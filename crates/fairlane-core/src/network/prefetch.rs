//! Prefetches the records that a port or host will read next: on large fabrics memory latency limits the engine. Nothing in this
//! file changes a result.

use super::config::Config;
use super::features::Instance;
use super::in_flight::{AtSwitch, InFlight};
use super::index::{HostIdx, PacketIdx, PortIdx};
use super::mail::Returned;
use super::packet::{Owner, Packet};
use super::partition::PortPlace;
use super::port::{Lane, kind};
use super::shard::Shard;
use crate::ids::HostId;
use crate::kernel::prefetch_at;

/// An endpoint that can prefetch its records. By default it does not.
pub trait Prefetch {
    /// `host` will run soon: fetches what it keeps (step 0), what that points to (1), what that points to (2), and so on to
    /// step 4.
    fn prefetch<const STEP: u8>(&self, _host: HostId) {}

    /// The message with this token will be delivered soon.
    fn prefetch_message(&self, _token: u32) {}
}

/// How many hosts or ports run between one step of prefetching and the next.
const AHEAD: usize = 4;

/// The distance in packets that are routed, and in packets or credits of another shard's mail.
const ROUTING: usize = 8;
pub(super) const MAIL_AHEAD: usize = 6;

/// A NIC's port that has been handed a message runs once this many others have been handed one: until then what it reads is
/// prefetched.
pub(super) const INJECTING: usize = 3;

/// Fabrics with more ports than this do not fit the fast caches.
pub(super) const LARGE: usize = 1024;

impl Shard {
    /// A port will run after four times to half of [`AHEAD`] others: fetches what is known of it by then.
    #[inline(always)]
    pub(super) fn prefetch_ports<I: Instance, const KIND: u8>(&mut self, all: &[PortIdx], place: usize) {
        let heads = self.in_flight.inboxes.heads_in(self.in_flight.calendar.window());
        // A port that will run so many times AHEAD from now, and the first that arrives there.
        let coming = |ahead: usize| all.get(place + ahead).map(|&port| (port, heads[port.index()]));
        if let Some(&port) = all.get(place + 4 * AHEAD) {
            prefetch_at(heads, port.index());
            prefetch_at(self.config.naming.to_switch.rows(), port.index());
        }
        if let Some((port, head)) = coming(3 * AHEAD) {
            prefetch_at(self.ports.rows(), port.index());
            self.prefetch_arbiter(port);
            self.in_flight.packets.prefetch(head);
        }
        if let Some((port, head)) = coming(2 * AHEAD) {
            self.prefetch_lanes::<KIND>(port, head);
        }
        if let Some((port, head)) = coming(AHEAD) {
            self.prefetch_queue(port);
            if head.is_some() {
                self.prefetch_second::<KIND>(port, head);
            }
        }
        if let Some(&port) = all.get(place + AHEAD / 2) {
            self.prefetch_downstream::<KIND>(port);
        }
    }

    #[inline(always)]
    fn prefetch_arbiter(&self, port: PortIdx) {
        if self.config.fabric.lanes > 1 {
            self.arbiter.prefetch(port.index());
        }
    }

    /// A packet that has been routed will join its port soon.
    #[inline(always)]
    pub(super) fn prefetch_routed(&self, arriving: &[AtSwitch], place: usize) {
        if let Some(coming) = arriving.get(place + ROUTING) {
            prefetch_at(self.ports.rows(), coming.port.index());
            let packet = &self.in_flight.packets[coming.packet];
            prefetch_at(&self.lanes, coming.port.index() * self.config.fabric.lanes + packet.lane.index());
            self.prefetch_upstream(packet);
            self.prefetch_arbiter(coming.port);
        }
    }

    /// The lane that the first arrival joins, and the one its credits go to; the lane that waits.
    #[inline(always)]
    fn prefetch_lanes<const KIND: u8>(&self, port: PortIdx, head: PacketIdx) {
        let lanes = self.config.fabric.lanes;
        let waiting = self.ports[port].waiting;
        let queued = waiting.trailing_zeros() as usize;
        if head.is_none() {
            prefetch_at(&self.lanes, port.index() * lanes + queued);
        } else {
            let packet = &self.in_flight.packets[head];
            let lane = packet.lane.index();
            prefetch_at(&self.lanes, port.index() * lanes + lane);
            prefetch_at(&self.lanes, port.index() * lanes + if waiting == 0 { lane } else { queued });
            if KIND != kind::NIC {
                self.prefetch_upstream(packet);
                self.in_flight.packets.prefetch(packet.next);
            }
        }
    }

    /// The lane that the second arrival joins, and the one its credits go to.
    #[inline(always)]
    fn prefetch_second<const KIND: u8>(&self, port: PortIdx, head: PacketIdx) {
        if KIND == kind::NIC {
            return;
        }
        let second = self.in_flight.packets[head].next;
        if second.is_some() {
            let (packet, lanes) = (&self.in_flight.packets[second], self.config.fabric.lanes);
            prefetch_at(&self.lanes, port.index() * lanes + packet.lane.index());
            self.prefetch_upstream(packet);
        }
    }

    /// The lane to which the packet that has waited longest returns its credits.
    #[inline(always)]
    fn prefetch_downstream<const KIND: u8>(&self, port: PortIdx) {
        let (waiting, lanes) = (self.ports[port].waiting, self.config.fabric.lanes);
        if waiting == 0 {
            return;
        }
        let head = self.lanes[port.index() * lanes + waiting.trailing_zeros() as usize].head;
        if KIND != kind::NIC {
            let packet = &self.in_flight.packets[head];
            self.prefetch_upstream(packet);
        }
    }

    /// The lane to which a packet returns its credits.
    #[inline(always)]
    fn prefetch_upstream(&self, packet: &Packet) {
        // That of another shard is not there; to ask first, a branch that nobody can predict, costs more than to fetch.
        let Packet { credited, held, .. } = *packet;
        prefetch_at(&self.lanes, PortPlace::number(credited).index() * self.config.fabric.lanes + held.index());
    }

    /// The packet that has waited longest.
    #[inline(always)]
    fn prefetch_queue(&self, port: PortIdx) {
        let waiting = self.ports[port].waiting;
        if waiting != 0 {
            let lane = port.index() * self.config.fabric.lanes + waiting.trailing_zeros() as usize;
            self.in_flight.packets.prefetch(self.lanes[lane].head);
        }
    }

    /// `head` has been handed to a NIC's port, which will run after [`INJECTING`] others: fetches where it goes.
    #[inline(always)]
    pub(super) fn prefetch_injecting(&self, nic: PortIdx, head: PacketIdx) {
        let lane = self.in_flight.packets[head].lane;
        prefetch_at(&self.lanes, nic.index() * self.config.fabric.lanes + lane.index());
    }

    /// A host will run after five times to once [`AHEAD`] others: fetches what is known of it by then, of what comes to it
    /// first, and of its port.
    #[inline(always)]
    pub(super) fn prefetch_hosts<I: Instance, E: Prefetch>(&self, coming: &[HostIdx], place: usize, endpoint: &E) {
        let id = |host| self.config.naming.host_id(host);
        if let Some(&host) = coming.get(place + 5 * AHEAD) {
            let nic = self.config.naming.nics_of(host).first();
            endpoint.prefetch::<0>(id(host));
            prefetch_at(self.ports.rows(), nic.index());
            self.prefetch_arbiter(nic);
            self.in_flight.inboxes.prefetch(self.in_flight.calendar.window(), nic);
            self.in_flight.packets.prefetch(self.in_flight.receive_queues[nic].0);
        }
        if let Some(&host) = coming.get(place + 4 * AHEAD) {
            endpoint.prefetch::<1>(id(host));
            if let Some(packet) = self.first_for(host) {
                self.in_flight.packets.prefetch(packet.next);
                self.prefetch_of(packet, endpoint);
            }
        }
        if let Some(&host) = coming.get(place + 3 * AHEAD) {
            endpoint.prefetch::<2>(id(host));
            if let Some(packet) = self.first_for(host)
                && packet.next.is_some()
            {
                self.prefetch_of(&self.in_flight.packets[packet.next], endpoint);
            }
        }
        if let Some(&host) = coming.get(place + 2 * AHEAD) {
            endpoint.prefetch::<3>(id(host));
        }
        if let Some(&host) = coming.get(place + AHEAD) {
            endpoint.prefetch::<4>(id(host));
        }
    }

    /// The first packet that comes to a host over its first port.
    #[inline(always)]
    fn first_for(&self, host: HostIdx) -> Option<&Packet> {
        let (first, _) = self.in_flight.receive_queues[self.config.naming.nics_of(host).first()];
        first.is_some().then(|| &self.in_flight.packets[first])
    }

    /// The message of a packet that will be delivered soon.
    #[inline(always)]
    fn prefetch_of(&self, packet: &Packet, endpoint: &impl Prefetch) {
        match packet.owner() {
            Owner::Whole(token) => endpoint.prefetch_message(token),
            Owner::Part(message) => self.in_flight.messages.prefetch(message),
        }
    }
}

impl InFlight {
    /// A packet that arrives at a switch in the open window will be routed soon.
    #[inline(always)]
    pub(super) fn prefetch_arrival(&self, arriving: &[AtSwitch], place: usize) {
        if let Some(coming) = arriving.get(place + ROUTING) {
            self.packets.prefetch(coming.packet);
        }
    }

    /// A packet that has come from another shard will be put into an inbox.
    #[inline]
    pub(super) fn prefetch_inbox(&self, packet: &Packet, port: PortIdx) {
        self.inboxes.prefetch(self.calendar.window_of(packet.time), port);
    }
}

/// Credits from another shard will be returned to lanes.
#[inline]
pub(super) fn prefetch_credited(config: &Config, lanes: &[Lane], credits: &[Returned], place: usize) {
    if let Some(coming) = credits.get(place + MAIL_AHEAD) {
        prefetch_at(lanes, coming.port.index() * config.fabric.lanes + coming.lane.index());
    }
}
