//! Latencies of packets, up to the present instant: a host whose rank computes looks at what has come to it only when the rank
//! goes on, and what it has not looked at yet counts too.

use rustc_hash::FxHashMap;

use super::index::MessageIdx;
use super::packet::{Owner, Packet};
use super::shard::Shard;
use super::{Delivery, Network};
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
            latencies.record(packet.traffic, packet.kind, packet.latency());
        }
        latencies
    }

    /// Bytes on the wire of these packets, by [`TrafficId`](crate::ids::TrafficId); empty if packets are not counted by class.
    #[must_use]
    pub fn class_bytes(&self) -> Vec<u64> {
        let mut sums = self.shards[0].observation.class_bytes.clone();
        for shard in &self.shards[1..] {
            sums.iter_mut().zip(&shard.observation.class_bytes).for_each(|(sum, more)| *sum += more);
        }
        for packet in self.shards.iter().flat_map(|shard| shard.unseen(self.now())) {
            sums.get_mut(packet.traffic.index()).into_iter().for_each(|sum| *sum += u64::from(packet.bytes));
        }
        sums
    }

    /// The deliveries of messages that have come whole, to hosts of a shard that have not looked at them yet.
    #[must_use]
    pub fn unseen_deliveries(&self, shard: usize) -> Vec<Delivery> {
        let shard = &self.shards[shard];
        let whole = |packet: &Packet, token| {
            let stage = packet.flags.stage();
            Delivery { at: packet.time, token, traffic: packet.traffic, stage, first: true, last: true }
        };
        let mut deliveries = Vec::new();
        let mut parts: FxHashMap<(u8, MessageIdx), (u32, Instant)> = FxHashMap::default();
        for packet in shard.unseen(self.now()) {
            let index = match packet.owner() {
                Owner::Whole(token) => {
                    deliveries.push(whole(packet, token));
                    continue;
                }
                Owner::Part(message) => message,
            };
            let sender = shard.config.fabric.nic_of_address(packet.source).shard;
            let message = match shard.in_flight.announced.get(&(sender, index)) {
                Some(message) => message,
                None => &shard.in_flight.messages[index],
            };
            let (count, last) = parts.entry((sender, index)).or_default();
            (*count, *last) = (*count + 1, packet.time.max(*last));
            if *count == message.undelivered {
                deliveries.push(Delivery { at: *last, ..whole(packet, message.token) });
            }
        }
        deliveries
    }
}

impl Shard {
    /// The packets that have come to hosts that have not looked at them by `now`.
    fn unseen(&self, now: Instant) -> impl Iterator<Item = &Packet> {
        let queues = self.in_flight.receive_queues.rows().iter();
        queues.flat_map(move |&(first, _)| {
            self.in_flight.packets.list(first, |packet| packet.next).take_while(move |packet| packet.time < now)
        })
    }
}
