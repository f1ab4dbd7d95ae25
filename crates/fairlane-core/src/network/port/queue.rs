//! The queues of a port: what arrives in a window, in order, and what waits on each lane.

use super::{ActivePort, Arrival, Lane, kind};
use crate::ids::{TrafficId, VirtualLane};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::network::packet::Packet;
use crate::network::parameters::Turns;
use crate::qos::arbiter::Queues;
use crate::units::{Bytes, Instant, Picoseconds};

/// Fields of a packet in a queue.
pub(in crate::network) struct QueueEntry {
    /// When it joins, or joined, the queue.
    pub time: Instant,
    /// On the wire.
    pub bytes: u32,
    pub lane: LaneIdx,
    pub traffic: TrafficId,
    pub next: PacketIdx,
}

#[inline(always)]
fn entry(in_flight: &InFlight, packet: PacketIdx) -> QueueEntry {
    let &Packet { time, bytes, lane, traffic, next, .. } = &in_flight.packets[packet];
    QueueEntry { time, bytes, lane, traffic, next }
}

/// The queues of one port, as its arbiter sees them.
pub(super) struct PortQueues<'a, const KIND: u8> {
    /// The port's lanes.
    pub lanes: &'a [Lane],
    pub in_flight: &'a InFlight,
    pub config: &'a Config,
    /// The lanes whose first packet has enough credits, one bit each.
    pub ready: u64,
    pub now: Instant,
}

impl<const KIND: u8> PortQueues<'_, KIND> {
    fn queues(&self, vl: VirtualLane) -> impl Iterator<Item = &Lane> {
        self.config.fabric.lanes_of(vl).map(|lane| &self.lanes[lane.index()])
    }

    /// Bytes on the wire of a packet that waits and, at a NIC, of the rest of its message.
    fn left(&self, packet: PacketIdx) -> u64 {
        if KIND == kind::NIC {
            self.in_flight.left_to_send(self.config, packet)
        } else {
            u64::from(self.in_flight.packets[packet].bytes)
        }
    }

    /// The same of the messages that wait behind one in its queue pair.
    fn behind(&self, packet: PacketIdx) -> u64 {
        if KIND != kind::NIC || self.config.fabric.parameters.injection == Turns::Messages {
            return 0;
        }
        let pair = self.in_flight.at_source(packet).pair;
        if pair.is_none() {
            return 0;
        }
        self.list(self.in_flight.queue_pairs.second(pair)).map(|next| self.left(next)).sum()
    }

    /// The members of a list.
    fn list(&self, first: PacketIdx) -> impl Iterator<Item = PacketIdx> {
        let some = |packet: PacketIdx| packet.is_some().then_some(packet);
        std::iter::successors(some(first), move |packet| some(self.in_flight.packets[*packet].next))
    }
}

impl<const KIND: u8> Queues for PortQueues<'_, KIND> {
    fn packets(&self, lane: VirtualLane) -> u32 {
        self.queues(lane).map(|queue| queue.depth).sum()
    }

    fn bytes(&self, lane: VirtualLane) -> Bytes {
        let all = self.queues(lane).flat_map(|queue| self.list(queue.head));
        Bytes(all.map(|packet| self.left(packet) + self.behind(packet)).sum())
    }

    fn age(&self, lane: VirtualLane) -> Picoseconds {
        let heads = self.queues(lane).map(|queue| queue.head).filter(|head| head.is_some());
        let joined = heads.map(|head| self.in_flight.packets[head].time).min();
        joined.map_or(Picoseconds::ZERO, |joined| self.now - joined)
    }

    fn since_injection(&self, lane: VirtualLane) -> Picoseconds {
        let ready = self.config.fabric.lanes_of(lane).filter(|lane| self.ready & lane.bit() != 0);
        let heads = ready.map(|lane| &self.in_flight.packets[self.lanes[lane.index()].head]);
        let next = heads.min_by_key(|head| head.time);
        next.map_or(Picoseconds::ZERO, |head| self.now - head.offered)
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    #[inline(always)]
    pub(in crate::network) fn entry(&self, packet: PacketIdx) -> QueueEntry {
        entry(self.in_flight, packet)
    }

    /// Collects what came into the inbox, sorted.
    #[inline]
    pub(in crate::network) fn sort(&self, mut packet: PacketIdx, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
        while packet.is_some() {
            let &Packet { time, came, next, .. } = &self.in_flight.packets[packet];
            let order = if KIND != kind::NIC {
                u64::from(came.link().0)
            } else if self.config.has::<I>().keeps_at_source() {
                self.in_flight.at_source(packet).order
            } else {
                0
            };
            // Insertion sort: there are one to three.
            let mut place = arrivals.len();
            // The list has the newest first: of equals (empty packets of one link) the older comes before.
            while place > 0 && (arrivals[place - 1].0, arrivals[place - 1].1) >= (time, order) {
                place -= 1;
            }
            arrivals.insert(place, (time, order, packet));
            packet = next;
        }
    }

    /// Puts an arrival at the end of its lane's queue.
    #[inline(always)]
    pub(in crate::network) fn enqueue(&mut self, packet: PacketIdx, entry: &QueueEntry) {
        let &QueueEntry { time, lane, traffic, .. } = entry;
        self.append(lane, packet);
        let queue = &mut self.lanes[self.base + lane.index()];
        self.observation.enqueued::<I>(self.number, self.port, queue, traffic, time);
    }

    /// A packet that follows the one that has just started at this NIC goes to the end of its lane's queue; it is offered once the link
    /// is free.
    #[inline]
    pub(in crate::network) fn follow(&mut self, packet: PacketIdx) {
        let record = &mut self.in_flight.packets[packet];
        (record.time, record.offered) = (self.port.busy_until, self.port.busy_until);
        let (lane, traffic) = (record.lane, record.traffic);
        self.append(lane, packet);
        self.observation.followed::<I>(self.port, &mut self.lanes[self.base + lane.index()], traffic);
    }

    #[inline(always)]
    fn append(&mut self, lane: LaneIdx, packet: PacketIdx) {
        self.in_flight.packets[packet].next = PacketIdx::NONE;
        let queue = &mut self.lanes[self.base + lane.index()];
        let tail = std::mem::replace(&mut queue.tail, packet);
        queue.depth += 1;
        if tail.is_none() {
            queue.head = packet;
            self.port.waiting |= lane.bit();
        } else {
            self.in_flight.packets[tail].next = packet;
        }
        if KIND != kind::NIC && self.config.has::<I>().measures_queues {
            self.count_joined(lane, packet);
        }
    }

    /// Takes the first packet of a lane's queue.
    #[inline]
    pub(in crate::network) fn dequeue(&mut self, lane: LaneIdx) -> PacketIdx {
        let queue = &mut self.lanes[self.base + lane.index()];
        let packet = queue.head;
        let &Packet { next, traffic, .. } = &self.in_flight.packets[packet];
        queue.head = next;
        queue.depth -= 1;
        if next.is_none() {
            queue.tail = PacketIdx::NONE;
            self.port.waiting &= !(lane.bit());
        }
        if KIND != kind::NIC && self.config.has::<I>().measures_queues {
            self.count_left(lane, packet);
        }
        self.observation.dequeued::<I>(self.port, traffic);
        packet
    }

    /// Bytes on the wire, and the time of joining, of the first packet of a lane's queue.
    #[inline]
    pub(super) fn first(&self, lane: LaneIdx) -> QueueEntry {
        self.entry(self.lanes[self.base + lane.index()].head)
    }
}
