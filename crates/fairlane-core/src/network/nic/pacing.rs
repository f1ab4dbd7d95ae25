//! Pacing: messages whose flow may not start a packet yet, as the [`Transport`] says. Kept only for
//! transports that pace.
//!
//! At a NIC's port, just before arbitration, every message that is first in its lane's queue and whose flow may not start
//! leaves the queue. Of a flow's messages one is released at a time: it joins its queue again at the instant from which on the
//! flow may start. The others follow, in order, each when a packet of the flow has started.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use super::transport::{State, Transport};
use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::packet::{Message, Packet};
use crate::network::port::{ActivePort, Arrival, kind};
use crate::network::probe::Probe;
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// What identifies a flow at one NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::network) struct Key {
    to: u32,
    job: u16,
    vl: u8,
}

impl Key {
    const fn of_message(message: &Message) -> Self {
        Self { to: message.to, job: message.job, vl: message.vl }
    }

    const fn of_packet(packet: &Packet) -> Self {
        Self { to: packet.to, job: packet.job, vl: packet.vl }
    }
}

/// A flow that has had to wait, or has sent.
#[derive(Clone)]
struct Flow {
    /// The message that will join its queue at a time that is set, or [`NONE`].
    released: u32,
    /// Messages that wait for it, in order.
    held: VecDeque<u32>,
}

/// The flows of one NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Flows {
    places: FxHashMap<Key, usize>,
    flows: Vec<Flow>,
    /// The transport's state of each flow.
    states: Vec<u64>,
    /// Released messages by the time at which they join their queues, then by order of creation.
    due: BinaryHeap<Reverse<Arrival>>,
}

impl Flows {
    /// The flow, new if it is not known, and its state.
    fn flow(&mut self, key: Key, transport: &dyn Transport, bandwidth: BitsPerSec) -> (&mut Flow, &mut State) {
        let words = transport.state_words();
        let next = self.flows.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.flows.push(Flow { released: NONE, held: VecDeque::new() });
            self.states.resize((next + 1) * words, 0);
            transport.begin(&mut self.states[next * words..], bandwidth);
        }
        (&mut self.flows[place], &mut self.states[place * words..][..words])
    }

    /// When the next released message joins its queue.
    fn next(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((time, ..))| *time)
    }
}

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// Whether this is the port of a NIC whose transport holds packets back.
    #[inline(always)]
    pub(in crate::network) const fn paces(&self) -> bool {
        KIND == kind::NIC && self.config.paces
    }

    fn flow_of(&mut self, key: Key) -> (&mut Flow, &mut State) {
        let bandwidth = self.config.wires[self.port.wire as usize].bandwidth;
        self.in_flight.flows[self.number as usize].flow(key, &*self.config.transport, bandwidth)
    }

    /// Whether a released message joins its queue before `until`.
    pub(in crate::network) fn releases_before(&self, until: u64) -> bool {
        self.in_flight.flows[self.number as usize].next().is_some_and(|time| time < until)
    }

    /// Messages that are released before `until` are arrivals, among those from place `next` on.
    #[cold]
    pub(in crate::network) fn take_released(&mut self, until: u64, arrivals: &mut Vec<Arrival>, next: usize) {
        let due = &mut self.in_flight.flows[self.number as usize].due;
        while let Some(Reverse(released)) = due.peek().copied().filter(|Reverse((time, ..))| *time < until) {
            due.pop();
            let place =
                next + arrivals[next..].partition_point(|arrival| (arrival.0, arrival.1) < (released.0, released.1));
            arrivals.insert(place, released);
        }
    }

    /// A message is about to join its queue.
    #[cold]
    pub(in crate::network) fn rejoin(&mut self, message: u32) {
        let key = Key::of_message(&self.in_flight.messages[message]);
        let (flow, _) = self.flow_of(key);
        if flow.released == message {
            flow.released = NONE;
        }
    }

    /// Takes messages out of the queues whose flows may not start a packet at `now`, until the first of each queue may.
    #[cold]
    pub(in crate::network) fn hold_back(&mut self, now: u64) {
        let mut lanes = self.port.waiting;
        while lanes != 0 {
            #[allow(clippy::cast_possible_truncation, reason = "below 32")]
            let lane = lanes.trailing_zeros() as u8;
            let record = self.lanes[self.base + usize::from(lane)].head;
            let message = &self.in_flight.messages[record];
            let (key, offered) = (Key::of_message(message), message.offered);
            let config: &Config = self.config;
            let (flow, state) = self.flow_of(key);
            let earliest = config.transport.earliest(state, Instant(now)).0;
            if earliest <= now {
                lanes &= lanes - 1;
                continue;
            }
            if flow.released == NONE {
                self.release(key, record, earliest);
            } else {
                flow.held.push_back(record);
            }
            self.dequeue(lane);
            if P::COUNTERS {
                // It has waited for others until now.
                self.lanes[self.base + usize::from(lane)].waited += now - offered;
            }
            if self.port.waiting >> lane & 1 == 0 {
                lanes &= lanes - 1;
            }
        }
    }

    /// What a packet is accounted by, once it has started.
    #[cold]
    pub(in crate::network) fn paced(&self, packet: u32) -> (Key, Bytes) {
        let packet = &self.in_flight.packets[packet];
        (Key::of_packet(packet), Bytes(u64::from(packet.bytes)))
    }

    /// A packet of a flow starts at `now`: the transport accounts it, and the next message of the flow that is held is released.
    #[cold]
    pub(in crate::network) fn account(&mut self, (key, bytes): (Key, Bytes), now: u64) {
        let wire_time = self.port.busy_until - now;
        let config: &Config = self.config;
        let (flow, state) = self.flow_of(key);
        config.transport.started(state, bytes, Picoseconds(wire_time), Instant(now));
        let earliest = config.transport.earliest(state, Instant(now)).0;
        if flow.released == NONE
            && let Some(record) = flow.held.pop_front()
        {
            self.release(key, record, earliest.max(now));
        }
    }

    /// A message will join its queue at `time`.
    fn release(&mut self, key: Key, record: u32, time: u64) {
        self.flow_of(key).0.released = record;
        let message = &mut self.in_flight.messages[record];
        message.offered = time;
        let arrival = (time, message.sequence, record);
        self.in_flight.flows[self.number as usize].due.push(Reverse(arrival));
    }

    /// Has the port run when the next released message joins its queue.
    #[cold]
    pub(in crate::network) fn wake_for_released(&mut self) {
        if let Some(time) = self.in_flight.flows[self.number as usize].next() {
            self.in_flight.wake_port(self.number, Instant(time));
        }
    }
}
