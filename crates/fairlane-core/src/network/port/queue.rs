//! The queues of a port: what arrives in a window, in order, and what waits on each lane. A switch's port queues packets, a
//! NIC's queues messages, of which it segments one packet at a time.

use super::{ActivePort, Arrival, Lane, kind};
use crate::ids::{TrafficId, VirtualLane};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, MessageIdx, Queued};
use crate::network::parameters::Turns;
use crate::qos::arbiter::Queues;
use crate::units::{Bytes, Instant, Picoseconds};

/// Fields of a packet in a queue, or, at a NIC, of the next packet of a message.
pub(in crate::network) struct QueueEntry {
    /// When it joins, or joined, the queue.
    pub time: Instant,
    /// On the wire.
    pub bytes: u32,
    pub lane: LaneIdx,
    pub traffic: TrafficId,
    pub next: Queued,
}

#[inline(always)]
fn entry<const KIND: u8>(in_flight: &InFlight, config: &Config, queued: Queued) -> QueueEntry {
    if KIND == kind::NIC {
        let message = &in_flight.messages[queued.message()];
        let bytes = config.fabric.payload(message.left) + config.fabric.header;
        let lane = config.fabric.lane(message.vl, 0);
        QueueEntry { time: message.offered, bytes, lane, traffic: message.traffic, next: message.next.into() }
    } else {
        let packet = &in_flight.packets[queued.packet()];
        let (bytes, lane, traffic) = (packet.bytes, packet.lane, packet.traffic);
        QueueEntry { time: packet.time, bytes, lane, traffic, next: packet.next.into() }
    }
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

    /// Bytes on the wire of all that is left to send of what stands in a queue.
    fn left(&self, queued: Queued, entry: &QueueEntry) -> u64 {
        if KIND == kind::NIC {
            let left = self.in_flight.messages[queued.message()].left;
            left + self.config.fabric.packets_of(left) * u64::from(self.config.fabric.header)
        } else {
            u64::from(entry.bytes)
        }
    }

    /// The same of the messages that wait behind one in its queue pair.
    fn behind(&self, queued: Queued) -> u64 {
        if KIND != kind::NIC || self.config.fabric.parameters.injection == Turns::Messages {
            return 0;
        }
        let pair = self.in_flight.messages[queued.message()].pair;
        if pair.is_none() {
            return 0;
        }
        let second = self.in_flight.queue_pairs.second(pair);
        self.list(second.into()).map(|(next, entry)| self.left(next, &entry)).sum()
    }

    /// The members of a list.
    fn list(&self, first: Queued) -> impl Iterator<Item = (Queued, QueueEntry)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let queued = next.is_some().then_some(next)?;
            let entry = entry::<KIND>(self.in_flight, self.config, queued);
            next = entry.next;
            Some((queued, entry))
        })
    }
}

impl<const KIND: u8> Queues for PortQueues<'_, KIND> {
    fn packets(&self, lane: VirtualLane) -> u32 {
        self.queues(lane).map(|queue| queue.depth).sum()
    }

    fn bytes(&self, lane: VirtualLane) -> Bytes {
        let all = self.queues(lane).flat_map(|queue| self.list(queue.head));
        Bytes(all.map(|(queued, entry)| self.left(queued, &entry) + self.behind(queued)).sum())
    }

    fn age(&self, lane: VirtualLane) -> Picoseconds {
        let heads = self.queues(lane).map(|queue| queue.head).filter(|head| head.is_some());
        let joined = heads.map(|head| entry::<KIND>(self.in_flight, self.config, head).time).min();
        joined.map_or(Picoseconds::ZERO, |joined| self.now - joined)
    }

    fn since_injection(&self, lane: VirtualLane) -> Picoseconds {
        let ready = self.config.fabric.lanes_of(lane).filter(|lane| self.ready & lane.bit() != 0);
        let heads = ready.map(|lane| self.lanes[lane.index()].head);
        let next = heads.min_by_key(|head| entry::<KIND>(self.in_flight, self.config, *head).time);
        let offered = next.map(|head| match KIND {
            kind::NIC => self.in_flight.messages[head.message()].offered,
            _ => self.in_flight.packets[head.packet()].offered,
        });
        offered.map_or(Picoseconds::ZERO, |offered| self.now - offered)
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    #[inline(always)]
    pub(in crate::network) fn entry(&self, queued: Queued) -> QueueEntry {
        entry::<KIND>(self.in_flight, self.config, queued)
    }

    #[inline(always)]
    fn set_next(&mut self, queued: Queued, next: Queued) {
        if KIND == kind::NIC {
            self.in_flight.messages[queued.message()].next = next.message();
        } else {
            self.in_flight.packets[queued.packet()].next = next.packet();
        }
    }

    /// Collects what came into the inbox, sorted.
    #[inline]
    pub(in crate::network) fn sort(&self, mut queued: Queued, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
        while queued.is_some() {
            let (time, tie, next) = if KIND == kind::NIC {
                let message = &self.in_flight.messages[queued.message()];
                (message.offered, message.sequence, message.next.into())
            } else {
                let packet = &self.in_flight.packets[queued.packet()];
                (packet.time, u64::from(packet.came.link().0), packet.next.into())
            };
            // Insertion sort: there are one to three.
            let mut place = arrivals.len();
            // The list has the newest first: of equals (empty packets of one link) the older comes before.
            while place > 0 && (arrivals[place - 1].0, arrivals[place - 1].1) >= (time, tie) {
                place -= 1;
            }
            arrivals.insert(place, (time, tie, queued));
            queued = next;
        }
    }

    /// Puts an arrival at the end of its lane's queue.
    #[inline(always)]
    pub(in crate::network) fn enqueue(&mut self, queued: Queued, entry: &QueueEntry) {
        let &QueueEntry { time, lane, traffic, .. } = entry;
        self.append(lane, queued);
        let queue = &mut self.lanes[self.base + lane.index()];
        self.observation.enqueued::<I>(self.number, self.port, queue, traffic, time);
    }

    /// A message of which a packet has just started goes to the end of its lane's queue, and offers its next packet once
    /// the link is free.
    #[inline]
    pub(in crate::network) fn requeue(&mut self, lane: LaneIdx, message: MessageIdx) {
        let record = &mut self.in_flight.messages[message];
        record.offered = self.port.busy_until;
        let traffic = record.traffic;
        self.append(lane, message.into());
        self.observation.requeued::<I>(self.port, &mut self.lanes[self.base + lane.index()], traffic);
    }

    #[inline(always)]
    fn append(&mut self, lane: LaneIdx, queued: Queued) {
        self.set_next(queued, Queued::NONE);
        let queue = &mut self.lanes[self.base + lane.index()];
        let tail = std::mem::replace(&mut queue.tail, queued);
        queue.depth += 1;
        if KIND != kind::NIC && self.config.has::<I>().measures_queues {
            self.count_joined(lane, queued.packet());
        }
        let queue = &mut self.lanes[self.base + lane.index()];
        if tail.is_none() {
            queue.head = queued;
            self.port.waiting |= lane.bit();
        } else {
            self.set_next(tail, queued);
        }
    }

    /// Takes the first packet (message, at a NIC) of a lane's queue.
    #[inline]
    pub(in crate::network) fn dequeue(&mut self, lane: LaneIdx) -> Queued {
        let queue = &mut self.lanes[self.base + lane.index()];
        let queued = queue.head;
        let (next, traffic): (Queued, TrafficId) = if KIND == kind::NIC {
            let message = &self.in_flight.messages[queued.message()];
            (message.next.into(), message.traffic)
        } else {
            let packet = &self.in_flight.packets[queued.packet()];
            (packet.next.into(), packet.traffic)
        };
        queue.head = next;
        queue.depth -= 1;
        if KIND != kind::NIC && self.config.has::<I>().measures_queues {
            self.count_left(lane, queued.packet());
        }
        let queue = &mut self.lanes[self.base + lane.index()];
        if next.is_none() {
            queue.tail = Queued::NONE;
            self.port.waiting &= !(lane.bit());
        }
        self.observation.dequeued::<I>(self.port, traffic);
        queued
    }

    /// Bytes on the wire, and the time of joining, of the first packet of a lane's queue.
    #[inline]
    pub(super) fn first(&self, lane: LaneIdx) -> QueueEntry {
        self.entry(self.lanes[self.base + lane.index()].head)
    }
}
