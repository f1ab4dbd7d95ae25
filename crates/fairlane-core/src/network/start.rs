//! A packet starts on a link: credits go back, the packet goes on to its next port or to its host.

use super::flight::Flight;
use super::packet::Packet;
use super::port::{Credit, Lane};
use super::turn::{Turn, kind};
use super::watch::Watch;
use crate::ids::LinkId;
use crate::kernel::NONE;
use crate::observe::Departure;
use crate::routing::{Hop, Step};
use crate::units::{Bytes, Instant};

impl<const OBSERVE: bool, const KIND: u8> Turn<'_, OBSERVE, KIND> {
    /// A packet that is in no queue, and accounted for by the arbiter, starts on the link.
    #[inline(always)]
    pub fn start(&mut self, lane: u8, record: u32, now: u64) {
        let fixed = self.fixed;
        let packet = &mut self.flight.packets[record];
        let (bytes, job, joined, held) = (packet.bytes, packet.job, packet.time, packet.held);
        let to_switch = match KIND {
            kind::NIC => fixed.far_switch[self.number as usize] != NONE,
            _ => KIND == kind::THROUGH,
        };
        let upstream = if KIND == kind::NIC { None } else { Some(packet.came.link()) };
        let mut next = 0;
        if to_switch {
            packet.came = Step::new(Hop { link: LinkId(self.number), channel: fixed.channel(packet.vl, lane) });
            packet.held = lane;
            if !fixed.adaptive {
                let ahead = std::mem::replace(&mut packet.ahead, Step::NONE);
                let step = if ahead == Step::NONE { fixed.behind(packet.came, packet.to) } else { ahead };
                packet.lane = fixed.lane(packet.vl, step.channel());
                next = step.link();
            }
        }
        let wire = &fixed.wires[self.port.wire as usize];
        let wire_time = if bytes == fixed.full {
            wire.full_wire_time
        } else {
            wire.bandwidth.serialization(Bytes(u64::from(bytes))).0
        };
        let done = now + wire_time;
        self.port.busy_until = done;
        self.port.job = job;
        self.flight.totals.packet_hops += 1;
        self.count(lane, bytes, job, wire_time, now - joined);
        if fixed.detailed {
            let behind = upstream.map(|link| link as usize * fixed.lanes + usize::from(held));
            detail(self.flight, self.watch, (self.number, lane), record, (now, now - joined), behind);
        }
        if let Some(upstream) = upstream {
            self.give_back(upstream, done, bytes, job, held);
        }
        if fixed.adaptive {
            self.book(bytes);
        }
        if to_switch {
            let time = now + wire.latency + fixed.parameters.switch_latency.0;
            if fixed.adaptive {
                self.flight.send_crossing(fixed.far_switch[self.number as usize], record, time);
                return;
            }
            self.flight.send_packet(next, record, time + fixed.held_back(|| wire_time, bytes, next));
        } else {
            let time = done + wire.latency;
            self.give_back(self.number, time, bytes, job, lane);
            self.flight.arrive(fixed, fixed.far_nic[self.number as usize], record, time);
        }
    }

    /// Gives credits back to `port`, to arrive one flight after the buffer was `freed`.
    #[inline(always)]
    fn give_back(&mut self, port: u32, freed: u64, bytes: u32, job: u16, lane: u8) {
        let fixed = self.fixed;
        let queue = &mut self.lanes[port as usize * fixed.lanes + usize::from(lane)];
        if !queue.give_back(bytes, freed + fixed.longest, self.opening, fixed.ample) {
            let lanes = &mut self.lanes[port as usize * fixed.lanes..];
            let credit = Credit { time: freed + fixed.latency(port), bytes, job, lane };
            give_back_exactly(self.flight, lanes, port, credit, self.opening);
        }
        if fixed.adaptive {
            let time = freed + fixed.latency(port);
            self.flight.loads.give_back(port, bytes, self.flight.calendar.window_of(Instant(time)));
        }
    }

    /// Keeps the book of loads.
    #[inline]
    fn book(&mut self, bytes: u32) {
        if KIND == kind::NIC {
            self.flight.loads.inject(self.number, bytes);
        } else {
            self.flight.loads.start(self.number, bytes);
        }
    }

    /// Takes the credits for a packet that starts after having waited for `waited`, and counts it.
    #[inline(always)]
    fn count(&mut self, lane: u8, bytes: u32, job: u16, wire_time: u64, waited: u64) {
        let queue = &mut self.lanes[self.base + usize::from(lane)];
        queue.credits -= bytes;
        if !OBSERVE {
            return;
        }
        queue.packets += 1;
        queue.bytes += u64::from(bytes);
        queue.waited += waited;
        self.port.active += wire_time;
        if self.port.waiting != 0 {
            self.watch.interference.carried(self.number, &self.port.waiters, job, wire_time);
        }
    }

    /// Cuts the next packet from a message that is in no queue. Returns the packet, and whether the message has more.
    #[inline(always)]
    pub fn cut(&mut self, lane: u8, record: u32) -> (u32, bool) {
        let Flight { messages, packets, whole, .. } = &mut *self.flight;
        let message = &mut messages[record];
        let payload = self.fixed.payload(message.left);
        message.left -= u64::from(payload);
        let number = message.sent;
        message.sent += 1;
        let load = message.load;
        let packet = packets.insert(Packet {
            time: message.offered,
            offered: message.offered,
            next: crate::kernel::NONE,
            message: if load.whole() { message.token } else { record },
            bytes: payload + self.fixed.header,
            to: message.to,
            number,
            job: message.job,
            kind: message.kind,
            vl: message.vl,
            lane,
            held: lane,
            came: Step::NONE,
            ahead: message.ahead,
            note: 0,
            load,
        });
        if load.whole() {
            // The packet stands for it from now on.
            message.undelivered = 0;
            whole.messages += 1;
            whole.bytes += message.bytes;
            messages.remove(record);
            return (packet, false);
        }
        (packet, message.left > 0)
    }

    /// A message of which a packet has just started goes to the end of its lane's queue, and offers its next packet once
    /// the link is done.
    pub fn offer_again(&mut self, lane: u8, message: u32) {
        let record = &mut self.flight.messages[message];
        record.offered = self.port.busy_until;
        let job = record.job;
        self.append(lane, message);
        if OBSERVE {
            self.port.waiters.join(job);
        }
    }
}

/// Gives credits back to a lane that may need them the instant they come. Apart from the turn, whose parts stay in registers
/// only if nobody asks for its address.
#[cold]
fn give_back_exactly(flight: &mut Flight, lanes: &mut [Lane], port: u32, credit: Credit, opening: u64) {
    let returning = &mut flight.returning[port as usize];
    if returning.credits.len() == returning.credits.capacity() {
        returning.make_room(lanes, opening);
    }
    returning.credits.push(credit);
    if returning.watched {
        flight.calendar.wake_port(port, Instant(credit.time));
    }
}

/// Keeps what is kept of single packets only if it is asked for. `behind`: the link and lane that the packet came by.
#[cold]
fn detail(
    flight: &Flight,
    watch: &mut Watch,
    (link, lane): (u32, u8),
    record: u32,
    (time, waited): (u64, u64),
    behind: Option<usize>,
) {
    if let Some(sum) = behind.and_then(|behind| watch.onward.get_mut(behind)) {
        *sum += waited;
    }
    if !watch.departs.contains(&time) {
        return;
    }
    let packet = &flight.packets[record];
    let (token, stage) = if packet.load.whole() {
        (packet.message, packet.load.stage())
    } else {
        let message = &flight.messages[packet.message];
        (message.token, message.load.stage())
    };
    let Packet { job, number, bytes, .. } = *packet;
    watch.departures.push(Departure { time, waited, link, lane, job, token, stage, packet: number, bytes });
}
