//! The queues of a port: what arrives in a window, in order, and what waits on each lane. A switch's port queues packets, a
//! NIC's queues messages, of which it segments one packet at a time.

use super::{ActivePort, Arrival, Lane, kind};
use crate::ids::VirtualLane;
use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::in_flight::InFlight;
use crate::network::parameters::Turns;
use crate::network::probe::Probe;
use crate::qos::arbiter::Queues;
use crate::units::{Bytes, Picoseconds};

/// What a port reads of a record (message at a NIC, packet elsewhere) in its queue.
pub(in crate::network) struct QueueEntry {
    /// When it joins, or joined, the queue.
    pub time: u64,
    /// On the wire.
    pub bytes: u32,
    pub lane: u8,
    pub job: u16,
    pub next: u32,
}

/// The first packet of a record: the packet, or the next one of a message.
#[inline(always)]
fn entry<const KIND: u8>(in_flight: &InFlight, config: &Config, record: u32) -> QueueEntry {
    if KIND == kind::NIC {
        let message = &in_flight.messages[record];
        let bytes = config.fabric.payload(message.left) + config.fabric.header;
        let lane = config.fabric.lane(message.vl, 0);
        QueueEntry { time: message.offered, bytes, lane, job: message.job, next: message.next }
    } else {
        let packet = &in_flight.packets[record];
        let (bytes, lane, job) = (packet.bytes, packet.lane, packet.job);
        QueueEntry { time: packet.time, bytes, lane, job, next: packet.next }
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
    pub now: u64,
}

impl<const KIND: u8> PortQueues<'_, KIND> {
    fn queues(&self, vl: VirtualLane) -> impl Iterator<Item = &Lane> {
        self.config.fabric.lanes_of(vl.0).map(|lane| &self.lanes[usize::from(lane)])
    }

    /// Bytes on the wire of all that a record has left to send.
    fn left(&self, record: u32, entry: &QueueEntry) -> u64 {
        if KIND == kind::NIC {
            let left = self.in_flight.messages[record].left;
            left + self.config.fabric.packets_of(left) * u64::from(self.config.fabric.header)
        } else {
            u64::from(entry.bytes)
        }
    }

    /// The same of the messages that wait behind one in its queue pair.
    fn behind(&self, record: u32) -> u64 {
        if KIND != kind::NIC || self.config.fabric.parameters.injection == Turns::Messages {
            return 0;
        }
        let pair = self.in_flight.messages[record].pair;
        let mut next = if pair == NONE { NONE } else { self.in_flight.queue_pairs.second(pair) };
        let mut sum = 0;
        while next != NONE {
            let entry = entry::<KIND>(self.in_flight, self.config, next);
            sum += self.left(next, &entry);
            next = entry.next;
        }
        sum
    }
}

impl<const KIND: u8> Queues for PortQueues<'_, KIND> {
    fn packets(&self, lane: VirtualLane) -> u32 {
        self.queues(lane).map(|queue| queue.depth).sum()
    }

    fn bytes(&self, lane: VirtualLane) -> Bytes {
        let mut sum = 0;
        for queue in self.queues(lane) {
            let mut record = queue.head;
            while record != NONE {
                let entry = entry::<KIND>(self.in_flight, self.config, record);
                sum += self.left(record, &entry) + self.behind(record);
                record = entry.next;
            }
        }
        Bytes(sum)
    }

    fn age(&self, lane: VirtualLane) -> Picoseconds {
        let heads = self.queues(lane).map(|queue| queue.head).filter(|head| *head != NONE);
        let joined = heads.map(|head| entry::<KIND>(self.in_flight, self.config, head).time).min();
        Picoseconds(joined.map_or(0, |joined| self.now - joined))
    }

    fn since_injection(&self, lane: VirtualLane) -> Picoseconds {
        let ready = self.config.fabric.lanes_of(lane.0).filter(|lane| self.ready >> lane & 1 == 1);
        let heads = ready.map(|lane| self.lanes[usize::from(lane)].head);
        let next = heads.min_by_key(|head| entry::<KIND>(self.in_flight, self.config, *head).time);
        let offered = next.map(|head| match KIND {
            kind::NIC => self.in_flight.messages[head].offered,
            _ => self.in_flight.packets[head].offered,
        });
        Picoseconds(offered.map_or(0, |offered| self.now - offered))
    }
}

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    #[inline(always)]
    pub(in crate::network) fn entry(&self, record: u32) -> QueueEntry {
        entry::<KIND>(self.in_flight, self.config, record)
    }

    #[inline(always)]
    fn set_next(&mut self, record: u32, next: u32) {
        if KIND == kind::NIC {
            self.in_flight.messages[record].next = next;
        } else {
            self.in_flight.packets[record].next = next;
        }
    }

    /// Collects what came into the inbox, sorted.
    #[inline]
    pub(super) fn sort(&self, mut record: u32, arrivals: &mut Vec<Arrival>) {
        arrivals.clear();
        while record != NONE {
            let (time, tie, next) = if KIND == kind::NIC {
                let message = &self.in_flight.messages[record];
                (message.offered, message.sequence, message.next)
            } else {
                let packet = &self.in_flight.packets[record];
                (packet.time, u64::from(packet.came.link()), packet.next)
            };
            // Insertion sort: there are one to three.
            let mut place = arrivals.len();
            // The list has the newest first: of equals (empty packets of one link) the older comes before.
            while place > 0 && (arrivals[place - 1].0, arrivals[place - 1].1) >= (time, tie) {
                place -= 1;
            }
            arrivals.insert(place, (time, tie, record));
            record = next;
        }
    }

    /// Puts an arrival at the end of its lane's queue.
    #[inline(always)]
    pub(in crate::network) fn enqueue(&mut self, record: u32, entry: &QueueEntry) {
        let &QueueEntry { time, lane, job, .. } = entry;
        self.append(lane, record);
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        self.probe.enqueued(self.number, self.port, queue, job, time);
    }

    /// A message of which a packet has just started goes to the end of its lane's queue, and offers its next packet once
    /// the link is free.
    pub(in crate::network) fn requeue(&mut self, lane: u8, message: u32) {
        let record = &mut self.in_flight.messages[message];
        record.offered = self.port.busy_until;
        let job = record.job;
        self.append(lane, message);
        self.probe.requeued(self.port, &mut self.lanes[self.base + usize::from(lane)], job);
    }

    #[inline(always)]
    fn append(&mut self, lane: u8, record: u32) {
        self.set_next(record, NONE);
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        let tail = std::mem::replace(&mut queue.tail, record);
        queue.depth += 1;
        if KIND != kind::NIC && self.config.has::<P>().measures_queues {
            self.count_joined(lane, record);
        }
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        if tail == NONE {
            queue.head = record;
            self.port.waiting |= 1 << lane;
        } else {
            self.set_next(tail, record);
        }
    }

    /// Takes the first packet (message, at a NIC) of a lane's queue.
    #[inline]
    pub(in crate::network) fn dequeue(&mut self, lane: u8) -> u32 {
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        let record = queue.head;
        let (next, job) = if KIND == kind::NIC {
            let message = &self.in_flight.messages[record];
            (message.next, message.job)
        } else {
            let packet = &self.in_flight.packets[record];
            (packet.next, packet.job)
        };
        queue.head = next;
        queue.depth -= 1;
        if KIND != kind::NIC && self.config.has::<P>().measures_queues {
            self.count_left(lane, record);
        }
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        if next == NONE {
            queue.tail = NONE;
            self.port.waiting &= !(1 << lane);
        }
        self.probe.dequeued(self.port, job);
        record
    }

    /// Bytes on the wire, and the time of joining, of the first packet of a lane's queue.
    #[inline]
    pub(super) fn first(&self, lane: u8) -> QueueEntry {
        self.entry(self.lanes[self.base + usize::from(lane)].head)
    }
}
