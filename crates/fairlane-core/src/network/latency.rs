//! Latencies of packets, up to the present instant: a host whose rank computes looks at what has come to it only when the rank
//! goes on, and what it has not looked at yet counts too.

use rustc_hash::FxHashMap;

use super::packet::Packet;
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
        let mut latencies = self.observation.latencies.clone();
        for packet in self.unseen() {
            latencies.record(JobId(packet.job), packet.kind, packet.latency());
        }
        latencies
    }

    /// The deliveries of messages that have come whole, to hosts that have not looked at them yet.
    #[must_use]
    pub fn unseen_deliveries(&self) -> Vec<Delivery> {
        let whole = |packet: &Packet, token| {
            let stage = packet.load.stage();
            Delivery { at: Instant(packet.time), token, stage, first: true, last: true }
        };
        let mut deliveries = Vec::new();
        let mut parts: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        for packet in self.unseen() {
            if packet.load.whole() {
                deliveries.push(whole(packet, packet.message));
                continue;
            }
            let message = &self.in_flight.messages[packet.message];
            let (count, last) = parts.entry(packet.message).or_default();
            (*count, *last) = (*count + 1, packet.time.max(*last));
            if *count == message.undelivered {
                deliveries.push(Delivery { at: Instant(*last), ..whole(packet, message.token) });
            }
        }
        deliveries
    }

    /// The packets that have come to hosts that have not looked at them yet.
    fn unseen(&self) -> impl Iterator<Item = &Packet> {
        let now = self.now().0;
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
