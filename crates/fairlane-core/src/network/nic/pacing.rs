//! Pacing: NICs hold back packets whose flow may not transmit yet, as the [`Transport`](super::transport::Transport) says. Kept only for
//! transports that pace.
//!
//! At a NIC's port, just before arbitration, every packet that is first in its lane's queue and whose flow may not start
//! leaves the queue. Of a flow's packets one is released at a time: it joins its queue again at the instant from which on the
//! flow may start. The others follow, in order, each when a packet of the flow has started. If a flow may not start a packet
//! before a notice arrives, none of them is released until then.

use super::flows::{Event, Expected, Flow, Key};
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, PacketIdx, PortIdx};
use crate::network::packet::{AtSource, Packet, Resend};
use crate::network::port::{ActivePort, Arrival, kind};
use crate::units::{Bytes, Instant};

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Whether this is the port of a NIC whose transport holds packets back.
    #[inline(always)]
    pub(in crate::network) const fn paces(&self) -> bool {
        KIND == kind::NIC && self.config.has::<I>().paces
    }

    pub(super) fn flow_of(&mut self, key: Key) -> &mut Flow {
        self.in_flight.flows[self.number].flow(key, self.config, self.port.wire)
    }

    /// Packets that are released before `until` are arrivals, among those from place `next` on.
    #[cold]
    pub(in crate::network) fn take_released(&mut self, until: Instant, arrivals: &mut Vec<Arrival>, next: usize) {
        let due = &mut self.in_flight.flows[self.number].due;
        while let Some(&released) = due.first().filter(|(time, ..)| *time < until) {
            due.pop_first();
            insert(arrivals, next, released);
        }
    }

    /// Each notice that arrives before `until` is an arrival without a packet, so that the port decides then.
    #[cold]
    pub(in crate::network) fn take_notices(&self, until: Instant, arrivals: &mut Vec<Arrival>) {
        for (&(time, ..), _) in self.in_flight.flows[self.number].expected.range(..(until, PortIdx(0), 0)) {
            insert(arrivals, 0, (time, 0, PacketIdx::NONE));
        }
    }

    /// A packet is about to join its queue, or, if there is none, the next notice arrives.
    #[cold]
    pub(in crate::network) fn rejoin(&mut self, packet: PacketIdx) {
        if packet.is_none() {
            self.take_notice();
            return;
        }
        if self.in_flight.is_control(packet) {
            self.fill_grant(packet);
            return;
        }
        let key = self.key_of(packet);
        let flow = self.flow_of(key);
        if flow.released == packet {
            flow.released = PacketIdx::NONE;
            return;
        }
        if !self.config.fabric.go_back_n && self.in_flight.at_source(packet).again == Resend::Lost {
            self.note_loss(key, packet);
        }
        let bytes = Bytes(self.in_flight.left_to_send(self.config, packet));
        self.flow_of(key).control.offered(bytes);
    }

    /// A lost packet is given up: its flow goes on without it.
    #[cold]
    pub(in crate::network) fn note_given_up(&mut self, packet: PacketIdx) {
        if !self.in_flight.is_control(packet) {
            let (key, now) = (self.key_of(packet), self.in_flight.packets[packet].time);
            self.note_loss(key, packet);
            if self.config.fabric.go_back_n {
                self.go_on_without(key, self.in_flight.tags[packet].psn, now);
            }
            self.reconsider(key, now);
        }
    }

    fn key_of(&self, packet: PacketIdx) -> Key {
        Key::of_packet(&self.config.fabric, &self.in_flight.packets[packet])
    }

    /// A packet of a flow was lost, and its timeout has passed.
    fn note_loss(&mut self, key: Key, packet: PacketIdx) {
        let &Packet { bytes, time, .. } = &self.in_flight.packets[packet];
        self.flow_of(key).control.lost(Bytes(u64::from(bytes)), time);
    }

    /// The next notice arrives, or what else is expected happens: the flow may now be allowed to start packets earlier than before.
    fn take_notice(&mut self) {
        let expected = self.in_flight.flows[self.number].expected.pop_first();
        let ((now, ..), Expected { key, event }) = expected.expect("invariant: an arrival for each notice");
        match event {
            Event::Notice(notice, telemetry) => {
                if telemetry.is_some() {
                    let path = self.in_flight.telemetry.take(telemetry);
                    self.flow_of(key).control.measured(&path, now);
                }
                self.flow_of(key).control.noticed(&notice, now);
            }
            Event::Credit { granted, trimmed } => self.flow_of(key).control.pulled(granted, trimmed),
            Event::Asked(asked) => {
                self.take_asked(&asked, now);
                return;
            }
            Event::Nak(psn) => self.go_back(key, psn, now),
            Event::Returned(psn, packet) => self.take_returned(key, psn, packet, now),
            Event::Timeout(psn, order) => self.expire(key, psn, order, now),
            Event::Discarded(packet) => {
                self.in_flight.send_back(self.config, packet, now);
                return;
            }
        }
        self.reconsider(key, now);
    }

    /// A flow may now, at `now`, be allowed to start packets earlier than before.
    fn reconsider(&mut self, key: Key, now: Instant) {
        let flow = self.flow_of(key);
        let earliest = flow.control.earliest(now);
        if earliest == Instant::MAX {
            return;
        }
        let earliest = earliest.max(now);
        let released = flow.released;
        if released.is_none() {
            if let Some(packet) = flow.next_held() {
                self.release(key, packet, earliest);
            }
            return;
        }
        let time = self.in_flight.packets[released].time;
        if earliest < time {
            let due = (time, self.in_flight.at_source(released).order, released);
            if self.in_flight.flows[self.number].due.remove(&due) {
                self.release(key, released, earliest);
            }
        }
    }

    /// Takes packets out of the queues whose flows may not start a packet at `now`, until the first of each queue may.
    #[cold]
    pub(in crate::network) fn hold_back(&mut self, now: Instant) {
        let mut lanes = self.port.waiting;
        while lanes != 0 {
            let lane = LaneIdx::first_of(lanes);
            let packet = self.lanes[self.base + lane.index()].head;
            if self.in_flight.is_control(packet) {
                lanes &= lanes - 1;
                continue;
            }
            let (key, joined) = (self.key_of(packet), self.in_flight.packets[packet].time);
            let psn = self.in_flight.psn_to_send_again(self.config, packet);
            let flow = self.flow_of(key);
            let earliest = if flow.back.permits(psn) { flow.control.earliest(now) } else { Instant::MAX };
            if earliest <= now {
                lanes &= lanes - 1;
                continue;
            }
            if flow.released.is_none() && earliest < Instant::MAX {
                self.release(key, packet, earliest);
            } else if let Some(psn) = psn {
                flow.back.put_back(psn);
            } else {
                flow.held.push_back(packet);
            }
            self.dequeue(lane);
            if I::COUNTERS {
                // It has waited for others until now.
                self.lanes[self.base + lane.index()].waited += now - joined;
            }
            if self.port.waiting & lane.bit() == 0 {
                lanes &= lanes - 1;
            }
        }
    }

    /// The arbiter of a NIC that paces has granted a packet, which is in no queue: it starts. The transport accounts it, and the next packet
    /// of the flow that is held is released.
    #[cold]
    pub(in crate::network) fn start_paced(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        let control = self.in_flight.is_control(packet);
        let key = self.key_of(packet);
        let again = self.in_flight.psn_to_send_again(self.config, packet);
        let next = self.next_of(packet);
        let bytes = Bytes(u64::from(self.in_flight.packets[packet].bytes));
        if self.config.has::<I>().controls && !control {
            let flow = self.flow_of(key);
            let labelled = (flow.control.label(bytes, now), flow.back.number(again));
            self.tag(packet, labelled, now);
        }
        self.start(lane, packet, now);
        if !control {
            self.account(key, bytes, now);
        }
        if next.is_some() {
            self.follow(next);
        }
    }

    fn account(&mut self, key: Key, bytes: Bytes, now: Instant) {
        let wire_time = self.port.busy_until - now;
        let flow = self.flow_of(key);
        flow.control.started(bytes, wire_time, now);
        let earliest = flow.control.earliest(now);
        if flow.released.is_none()
            && earliest < Instant::MAX
            && let Some(packet) = flow.next_held()
        {
            self.release(key, packet, earliest.max(now));
        }
    }

    /// A packet will join its queue at `time`.
    fn release(&mut self, key: Key, index: PacketIdx, time: Instant) {
        self.flow_of(key).released = index;
        let AtSource { order, again, .. } = self.in_flight.at_source(index);
        let packet = &mut self.in_flight.packets[index];
        packet.time = time;
        if again == Resend::None {
            packet.offered = time;
        }
        self.in_flight.flows[self.number].due.insert((time, order, index));
    }

    /// Has the port run when the next released packet joins its queue.
    #[cold]
    pub(in crate::network) fn wake_for_released(&mut self) {
        if let Some(time) = self.in_flight.flows[self.number].next() {
            self.in_flight.wake_port(self.number, time);
        }
    }
}

/// Puts an arrival into its place among those from place `next` on.
fn insert(arrivals: &mut Vec<Arrival>, next: usize, arrival: Arrival) {
    let place = next + arrivals[next..].partition_point(|other| (other.0, other.1) < (arrival.0, arrival.1));
    arrivals.insert(place, arrival);
}
