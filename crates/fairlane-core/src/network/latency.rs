//! Latencies of packets, up to the present instant: a host whose rank computes looks at what has come to it only when the rank
//! goes on, and what it has not looked at yet counts too.

use rustc_hash::FxHashMap;

use super::packet::Packet;
use super::shard::Shard;
use super::{Delivery, Network};
use crate::ids::JobId;
use crate::kernel::NONE;
use crate::observe::Latencies;
use crate::units::Instant;

impl Network {
    /// The latencies of all packets delivered so far, each from the instant at which it was offered to its NIC's port to the
    /// delivery of its tail; empty if they are not kept.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        let mut latencies = self.shards[0].observation.latencies.clone();
        self.shards[1..].iter().for_each(|shard| latencies.merge(&shard.observation.latencies));
        for packet in self.shards.iter().flat_map(|shard| shard.unseen(self.now())) {
            latencies.record(JobId(packet.job), packet.kind, packet.latency());
        }
        latencies
    }

    /// The deliveries of messages that have come whole, to hosts of a shard that have not looked at them yet.
    #[must_use]
    pub fn unseen_deliveries(&self, shard: usize) -> Vec<Delivery> {
        let shard = &self.shards[shard];
        let whole = |packet: &Packet, token| {
            let stage = packet.flags.stage();
            Delivery { at: Instant(packet.time), token, stage, first: true, last: true }
        };
        let mut deliveries = Vec::new();
        let mut parts: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        for packet in shard.unseen(self.now()) {
            if packet.flags.whole() {
                deliveries.push(whole(packet, packet.message));
                continue;
            }
            let record = shard.record_of(packet);
            let message = &shard.in_flight.messages[record];
            let (count, last) = parts.entry(record).or_default();
            (*count, *last) = (*count + 1, packet.time.max(*last));
            if *count == message.undelivered {
                deliveries.push(Delivery { at: Instant(*last), ..whole(packet, message.token) });
            }
        }
        deliveries
    }
}

impl Shard {
    /// The record, in this shard, of the message of a packet that has come to its host.
    fn record_of(&self, packet: &Packet) -> u32 {
        if packet.origin == self.config.naming.origin {
            packet.message
        } else {
            self.in_flight.out.mirror(packet.origin, packet.message)
        }
    }

    /// The packets that have come to hosts that have not looked at them by `now`.
    fn unseen(&self, now: Instant) -> impl Iterator<Item = &Packet> {
        let now = now.0;
        self.in_flight.receive_queues.iter().flat_map(move |&(head, _)| {
            let mut next = head;
            std::iter::from_fn(move || {
                let packet = (next != NONE).then(|| &self.in_flight.packets[next])?;
                next = packet.next;
                Some(packet)
            })
            .take_while(move |packet| packet.time < now)
        })
    }
}
