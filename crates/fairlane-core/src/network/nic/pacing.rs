//! Pacing: messages whose flow may not start a packet yet, as the [`Transport`](super::transport::Transport) says. Kept only for
//! transports that pace.
//!
//! At a NIC's port, just before arbitration, every message that is first in its lane's queue and whose flow may not start
//! leaves the queue. Of a flow's messages one is released at a time: it joins its queue again at the instant from which on the
//! flow may start. The others follow, in order, each when a packet of the flow has started. If a flow may not start a packet
//! before a notice arrives, none of its messages is released until then.

use super::flows::{Event, Expected, Flow, Key};
use super::transport::Label;
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, MessageIdx, PortIdx, Queued};
use crate::network::packet::{Content, Message};
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

    /// Messages that are released before `until` are arrivals, among those from place `next` on.
    #[cold]
    pub(in crate::network) fn take_released(&mut self, until: Instant, arrivals: &mut Vec<Arrival>, next: usize) {
        let due = &mut self.in_flight.flows[self.number].due;
        while let Some(&released) = due.first().filter(|(time, ..)| *time < until) {
            due.pop_first();
            insert(arrivals, next, released);
        }
    }

    /// Notices that arrive before `until` are arrivals of no message.
    #[cold]
    pub(in crate::network) fn take_notices(&self, until: Instant, arrivals: &mut Vec<Arrival>) {
        for (&(time, ..), _) in self.in_flight.flows[self.number].expected.range(..(until, PortIdx(0), 0)) {
            insert(arrivals, 0, (time, 0, Queued::NONE));
        }
    }

    /// A message is about to join its queue, or, if there is none, the next notice arrives.
    #[cold]
    pub(in crate::network) fn rejoin(&mut self, index: MessageIdx) {
        if index.is_none() {
            self.take_notice();
            return;
        }
        let message = self.in_flight.messages[index];
        if self.in_flight.is_notice(&message) {
            self.fill_grant(index);
            return;
        }
        let key = Key::of_message(&self.config.fabric, &message);
        let selective = !self.config.fabric.go_back_n;
        let flow = self.flow_of(key);
        if flow.released == index {
            flow.released = MessageIdx::NONE;
            return;
        }
        if selective && let Content::Lost(_) = message.content() {
            self.note_loss(key, &message);
        }
        let headers = self.config.fabric.packets_of(message.left) * u64::from(self.config.fabric.header);
        self.flow_of(key).control.offered(Bytes(message.left + headers));
    }

    /// A lost packet is given up: its flow goes on without it.
    #[cold]
    pub(in crate::network) fn note_given_up(&mut self, message: &Message) {
        if !self.in_flight.is_notice(message) {
            let key = Key::of_message(&self.config.fabric, message);
            self.note_loss(key, message);
            if let Content::GivenUp(packet) = message.content()
                && self.config.fabric.go_back_n
            {
                self.go_on_without(key, self.in_flight.tags[packet].psn, message.offered);
            }
            self.reconsider(key, message.offered);
        }
    }

    /// A packet of a flow was lost, and its timeout has passed.
    fn note_loss(&mut self, key: Key, &Message { left, offered, .. }: &Message) {
        let bytes = Bytes(left + u64::from(self.config.fabric.header));
        self.flow_of(key).control.lost(bytes, offered);
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
            Event::Returned(psn, message) => self.take_returned(key, psn, message, now),
            Event::Timeout(psn, sequence) => self.expire(key, psn, sequence, now),
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
            if let Some(message) = flow.next_held() {
                self.release(key, message, earliest);
            }
            return;
        }
        let message = &self.in_flight.messages[released];
        if earliest < message.offered {
            let due = (message.offered, message.sequence, released.into());
            if self.in_flight.flows[self.number].due.remove(&due) {
                self.release(key, released, earliest);
            }
        }
    }

    /// Takes messages out of the queues whose flows may not start a packet at `now`, until the first of each queue may.
    #[cold]
    pub(in crate::network) fn hold_back(&mut self, now: Instant) {
        let mut lanes = self.port.waiting;
        while lanes != 0 {
            let lane = LaneIdx::first_of(lanes);
            let index = self.lanes[self.base + lane.index()].head.message();
            let message = &self.in_flight.messages[index];
            if self.in_flight.is_notice(message) {
                lanes &= lanes - 1;
                continue;
            }
            let (key, offered) = (Key::of_message(&self.config.fabric, message), message.offered);
            let psn = self.in_flight.psn_to_send_again(self.config, message);
            let flow = self.flow_of(key);
            let earliest = if flow.back.permits(psn) { flow.control.earliest(now) } else { Instant::MAX };
            if earliest <= now {
                lanes &= lanes - 1;
                continue;
            }
            if flow.released.is_none() && earliest < Instant::MAX {
                self.release(key, index, earliest);
            } else if let Some(psn) = psn {
                flow.back.put_back(psn);
            } else {
                flow.held.push_back(index);
            }
            self.dequeue(lane);
            if I::COUNTERS {
                // It has waited for others until now.
                self.lanes[self.base + lane.index()].waited += now - offered;
            }
            if self.port.waiting & lane.bit() == 0 {
                lanes &= lanes - 1;
            }
        }
    }

    /// The arbiter of a NIC that paces has granted the next packet of a message, which is in no queue: the packet starts. The
    /// transport accounts it, and the next message of the flow that is held is released.
    #[cold]
    pub(in crate::network) fn start_paced(&mut self, lane: LaneIdx, message: MessageIdx, now: Instant) {
        let record = &self.in_flight.messages[message];
        let notice = if let Content::Notice(notice) = record.content() { Some(notice) } else { None };
        let control = self.in_flight.is_notice(record);
        let pair = self.pair_of(message.into());
        let key = Key::of_message(&self.config.fabric, record);
        let again = self.in_flight.psn_to_send_again(self.config, record);
        let (packet, rest) = self.segment(lane, message);
        let bytes = Bytes(u64::from(self.in_flight.packets[packet].bytes));
        if self.config.has::<I>().controls && (!control || notice.is_some()) {
            let labelled = if control {
                (Label::default(), 0)
            } else {
                let flow = self.flow_of(key);
                (flow.control.label(bytes, now), flow.back.number(again))
            };
            self.tag(packet, notice, labelled, now);
        }
        self.start(lane, packet, now);
        if !control {
            self.account(key, bytes, now);
        }
        if rest {
            self.requeue(lane, message);
        } else {
            self.end_message(pair);
        }
    }

    fn account(&mut self, key: Key, bytes: Bytes, now: Instant) {
        let wire_time = self.port.busy_until - now;
        let flow = self.flow_of(key);
        flow.control.started(bytes, wire_time, now);
        let earliest = flow.control.earliest(now);
        if flow.released.is_none()
            && earliest < Instant::MAX
            && let Some(message) = flow.next_held()
        {
            self.release(key, message, earliest.max(now));
        }
    }

    /// A message will join its queue at `time`.
    fn release(&mut self, key: Key, index: MessageIdx, time: Instant) {
        self.flow_of(key).released = index;
        let message = &mut self.in_flight.messages[index];
        message.offered = time;
        let arrival = (time, message.sequence, index.into());
        self.in_flight.flows[self.number].due.insert(arrival);
    }

    /// Has the port run when the next released message joins its queue.
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
