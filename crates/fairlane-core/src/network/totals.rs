//! Sums and counters of the traffic that a network has carried.

use std::iter::Sum;

use crate::units::Picoseconds;

/// Sums over the whole network since instant zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that started on a link: the unit of the engine's speed.
    pub packet_hops: u64,
    /// Payload handed to NICs.
    pub bytes_injected: u64,
    /// Payload of messages that have come whole and that their hosts have looked at.
    pub bytes_delivered: u64,
    /// Messages handed to NICs.
    pub messages_injected: u64,
    /// Messages that have come whole and that their hosts have looked at; a rank that computes looks when it goes on.
    pub messages_delivered: u64,
    /// Packets that a switch has marked, see [`transport`](super::transport).
    pub packets_marked: u64,
    /// Control packets that NICs have made: notices.
    pub control_packets: u64,
    /// Their payload.
    pub control_bytes: u64,
    /// Packets that were lost, see [`GivenUp`](crate::fault::GivenUp), each time that they were.
    pub packets_lost: u64,
    /// Packets of which only the headers have come to their hosts: a switch has trimmed them.
    pub packets_trimmed: u64,
    /// Packets that their receivers have discarded because one before them was missing; see
    /// [`Retransmission`](super::Retransmission).
    pub packets_discarded: u64,
    /// Lost, trimmed and discarded packets that are retransmitted.
    pub packets_retransmitted: u64,
    /// Their payload: what the network has carried, in part or all the way, for nothing.
    pub bytes_retransmitted: u64,
    /// Lost packets that were given up. Their messages count as delivered once no other packet of them is under way.
    pub packets_given_up: u64,
    /// Control packets that have come to the host of their flow, or were given up.
    pub control_packets_received: u64,
    /// Their payload.
    pub control_bytes_received: u64,
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            packet_hops: sum.packet_hops + one.packet_hops,
            bytes_injected: sum.bytes_injected + one.bytes_injected,
            bytes_delivered: sum.bytes_delivered + one.bytes_delivered,
            messages_injected: sum.messages_injected + one.messages_injected,
            messages_delivered: sum.messages_delivered + one.messages_delivered,
            packets_marked: sum.packets_marked + one.packets_marked,
            control_packets: sum.control_packets + one.control_packets,
            control_bytes: sum.control_bytes + one.control_bytes,
            packets_lost: sum.packets_lost + one.packets_lost,
            packets_trimmed: sum.packets_trimmed + one.packets_trimmed,
            packets_discarded: sum.packets_discarded + one.packets_discarded,
            packets_retransmitted: sum.packets_retransmitted + one.packets_retransmitted,
            bytes_retransmitted: sum.bytes_retransmitted + one.bytes_retransmitted,
            packets_given_up: sum.packets_given_up + one.packets_given_up,
            control_packets_received: sum.control_packets_received + one.control_packets_received,
            control_bytes_received: sum.control_bytes_received + one.control_bytes_received,
        })
    }
}

/// Counters of one lane of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Sum of the packets' waiting times. Divided by the elapsed time: the mean queue length.
    pub waiting: Picoseconds,
    /// Time in which the link was idle and the lane's first packet lacked credits.
    pub stalled: Picoseconds,
    /// Sum of the waiting times, at the switch where the link ends, of the packets that came over it; `None` if that is not
    /// kept.
    pub onward_waiting: Option<Picoseconds>,
    /// Longest queue seen; like all of these zero if counters are not kept. Without them it would not be known either: a port
    /// that no packet waits at takes a shortcut past its queue, and when it can do so depends on when it takes in credits.
    pub max_queue: u32,
}
