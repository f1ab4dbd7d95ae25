//! A port in one window: arrivals, decisions, departures.

use super::Network;
use super::packet::{ROUTE, Step};
use super::parameters::Switching;
use super::port::{Credit, SWITCH};
use crate::ids::{HostId, LinkId, SwitchId, VirtualLane};
use crate::kernel::NONE;
use crate::observe::Departure;
use crate::qos::arbiter::Lanes;
use crate::routing::Hop;
use crate::units::{BitsPerSec, Bytes, Instant};

impl Network {
    /// Runs one port through the open window, which ends before `until`.
    ///
    /// `NIC`: the port is a NIC's, whose queues hold messages instead of packets. `OBSERVE`: counters are kept.
    pub(super) fn run_port<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, until: u64) {
        let head = self.empty_inbox(port);
        let alone = head != NONE && self.ports[port as usize].waiting == 0 && self.next_of(port, head) == NONE;
        let passed = alone && self.pass::<OBSERVE, NIC>(port, head, until);
        if passed && self.ports[port as usize].waiting == 0 {
            return;
        }
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.sort_arrivals(port, if passed { NONE } else { head }, &mut arrivals);
        let mut next = 0;
        loop {
            let state = &self.ports[port as usize];
            let now = if state.waiting != 0 && !state.stalled {
                state.busy_until
            } else {
                let arrival = arrivals.get(next).map_or(u64::MAX, |arrival| arrival.0);
                let credit =
                    if state.stalled && state.credits != NONE { self.credits[state.credits].time } else { u64::MAX };
                arrival.min(credit).max(state.busy_until)
            };
            if now >= until {
                break;
            }
            if state.stalled {
                self.account_stall::<OBSERVE>(port, now);
            }
            self.take_credits::<OBSERVE>(port, now);
            while next < arrivals.len() && arrivals[next].0 <= now {
                self.join::<OBSERVE, NIC>(port, arrivals[next].0, arrivals[next].2);
                next += 1;
            }
            self.decide::<OBSERVE, NIC>(port, now);
        }
        // What arrives while the link is busy beyond the window.
        for &(time, _, record) in &arrivals[next..] {
            self.join::<OBSERVE, NIC>(port, time, record);
        }
        self.scratch.arrivals = arrivals;
        let state = &self.ports[port as usize];
        if state.waiting != 0 {
            let wake = if !state.stalled {
                state.busy_until
            } else if state.credits != NONE {
                self.credits[state.credits].time
            } else {
                return;
            };
            self.calendar.wake_port(port, Instant(wake));
        }
    }

    /// The only arrival of the window, at a port where nothing waits, starts without being queued, if it can start in the
    /// window: exactly what the queue, the arbiter and the counters would make of it, in fewer steps.
    #[inline]
    fn pass<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, record: u32, until: u64) -> bool {
        let (time, bytes, lane, job) = if NIC {
            let message = &self.messages[record];
            (message.offered, self.next_payload(record) + self.header, message.vl * self.channels, message.job)
        } else {
            let packet = &self.packets[record];
            let channel = packet.route[usize::from(packet.hop)].channel();
            (packet.time, packet.bytes, packet.vl * self.channels + channel, packet.job)
        };
        let state = &self.ports[port as usize];
        let now = time.max(state.busy_until);
        if now >= until {
            return false;
        }
        let due = state.credits != NONE && self.credits[state.credits].time <= now;
        if due {
            self.take_due_credits::<OBSERVE>(port, state.credits, now);
        }
        let queue = &mut self.lane_table[port as usize * self.lanes + usize::from(lane)];
        if bytes > queue.credits {
            return false;
        }
        if OBSERVE && now > time {
            self.interference.charge(port, job, self.ports[port as usize].job, now - time);
        }
        let lane = VirtualLane(lane);
        if self.lanes > 1 {
            let first = port as usize * self.state_words;
            let words = &mut self.arbiter_state[first..first + self.state_words];
            self.arbiter.serve_alone(words, lane, Bytes(u64::from(bytes)), Instant(now));
        }
        self.depart::<OBSERVE, NIC>(port, lane, record, now);
        true
    }

    /// The lane that the arbiter serves at `now`, accounted for.
    #[inline]
    fn pick<const NIC: bool>(&mut self, port: u32, ready: u32, now: u64) -> VirtualLane {
        if self.lanes == 1 {
            return VirtualLane(0);
        }
        let first = port as usize * self.state_words;
        let state = &mut self.arbiter_state[first..first + self.state_words];
        let lane = self.arbiter.pick(state, Lanes(ready), Instant(now));
        let head = self.lane_table[port as usize * self.lanes + usize::from(lane.0)].head;
        let bytes = if NIC { self.next_payload(head) + self.header } else { self.packets[head].bytes };
        let state = &mut self.arbiter_state[first..first + self.state_words];
        self.arbiter.sent(state, lane, Bytes(u64::from(bytes)), Instant(now));
        lane
    }

    /// The link has been idle up to `now` although packets wait.
    fn account_stall<const OBSERVE: bool>(&mut self, port: u32, now: u64) {
        let state = &mut self.ports[port as usize];
        let span = now - state.busy_until;
        state.busy_until = now;
        state.stalled = false;
        if !OBSERVE || span == 0 {
            return;
        }
        state.idle_stalled += span;
        let mut waiting = state.waiting;
        while waiting != 0 {
            let lane = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            self.lane_records[port as usize * self.lanes + lane].stalled += span;
        }
        self.interference.stalled(port, span);
    }

    /// Puts an arrival at the end of its lane's queue.
    #[inline]
    fn join<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, time: u64, record: u32) {
        let (lane, job) = if NIC {
            let message = &self.messages[record];
            (message.vl * self.channels, message.job)
        } else {
            let packet = &self.packets[record];
            (packet.vl * self.channels + packet.route[usize::from(packet.hop)].channel(), packet.job)
        };
        if OBSERVE {
            let state = &self.ports[port as usize];
            if state.busy_until > time {
                self.interference.charge(port, job, state.job, state.busy_until - time);
            }
            self.interference.join(port, job);
        }
        self.append(port, lane, record);
    }

    #[inline]
    pub(super) fn append(&mut self, port: u32, lane: u8, record: u32) {
        self.set_next(port, record, NONE);
        let queue = &mut self.lane_table[port as usize * self.lanes + usize::from(lane)];
        let tail = std::mem::replace(&mut queue.tail, record);
        let record_of_lane = &mut self.lane_records[port as usize * self.lanes + usize::from(lane)];
        record_of_lane.depth += 1;
        record_of_lane.max_depth = record_of_lane.max_depth.max(record_of_lane.depth);
        if tail == NONE {
            queue.head = record;
            self.ports[port as usize].waiting |= 1 << lane;
        } else {
            self.set_next(port, tail, record);
        }
    }

    /// The free link of `port` picks a packet, or the port is stalled.
    #[inline]
    fn decide<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, now: u64) {
        let mut ready = 0;
        let mut waiting = self.ports[port as usize].waiting;
        while waiting != 0 {
            let lane = waiting.trailing_zeros();
            waiting &= waiting - 1;
            let queue = &self.lane_table[port as usize * self.lanes + lane as usize];
            // Only a lane with less credit than a full packet needs a look at its packet.
            let fits = queue.credits >= self.full || {
                let head = queue.head;
                let bytes = if NIC { self.next_payload(head) + self.header } else { self.packets[head].bytes };
                bytes <= queue.credits
            };
            ready |= u32::from(fits) << lane;
        }
        if ready == 0 {
            let state = &mut self.ports[port as usize];
            state.stalled = true;
            state.busy_until = now;
            return;
        }
        let lane = self.pick::<NIC>(port, ready, now);
        let record = self.take::<OBSERVE, NIC>(port, lane);
        self.depart::<OBSERVE, NIC>(port, lane, record, now);
    }

    /// A packet, or the next one of a message, that is in no queue starts on the link.
    #[inline(always)]
    fn depart<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, lane: VirtualLane, record: u32, now: u64) {
        if NIC {
            let (packet, rest) = self.cut(port, lane, record);
            self.start::<OBSERVE>(port, lane, packet, now);
            if rest {
                self.offer_again::<OBSERVE>(port, lane, record);
            }
        } else {
            self.start::<OBSERVE>(port, lane, record, now);
        }
    }

    /// Takes the first packet (message, at a NIC) of a lane's queue.
    #[inline]
    fn take<const OBSERVE: bool, const NIC: bool>(&mut self, port: u32, lane: VirtualLane) -> u32 {
        let queue = &mut self.lane_table[port as usize * self.lanes + usize::from(lane.0)];
        let record = queue.head;
        let (next, job) = if NIC {
            (self.messages[record].next, self.messages[record].job)
        } else {
            (self.packets[record].next, self.packets[record].job)
        };
        queue.head = next;
        self.lane_records[port as usize * self.lanes + usize::from(lane.0)].depth -= 1;
        if next == NONE {
            queue.tail = NONE;
            self.ports[port as usize].waiting &= !(1 << lane.0);
        }
        if OBSERVE {
            self.interference.leave(port, job);
        }
        record
    }

    /// A packet, taken from its queue and accounted for by the arbiter, starts on the link.
    #[inline(always)]
    fn start<const OBSERVE: bool>(&mut self, port: u32, lane: VirtualLane, record: u32, now: u64) {
        let packet = &mut self.packets[record];
        let (bytes, job, joined, upstream_lane) = (packet.bytes, packet.job, packet.time, packet.lane);
        let hop = usize::from(packet.hop);
        let upstream = if hop > 0 { Some(packet.route[hop - 1].link()) } else { None };
        let state = &mut self.ports[port as usize];
        let wire_time = if bytes == self.full {
            state.full_wire_time
        } else {
            BitsPerSec(state.rate).serialization(Bytes(u64::from(bytes))).0
        };
        let done = now + wire_time;
        state.busy_until = done;
        state.job = job;
        let (latency, to_nic, others_wait) = (state.latency, state.to_nic, state.waiting != 0);
        let queue = &mut self.lane_table[port as usize * self.lanes + usize::from(lane.0)];
        queue.credits -= bytes;
        self.totals.packet_hops += 1;
        if OBSERVE {
            state.active += wire_time;
            queue.packets += 1;
            if bytes != self.full || now > joined || queue.packets == u32::MAX {
                let record = &mut self.lane_records[port as usize * self.lanes + usize::from(lane.0)];
                record.packets += u64::from(std::mem::take(&mut queue.packets));
                record.short += u64::from(self.full - bytes);
                record.waited += now - joined;
            }
            if others_wait {
                self.interference.carried(port, job, wire_time);
            }
        }
        if self.observe.departures {
            self.log(port, lane, record, now);
        }
        if let Some(upstream) = upstream {
            let time = done + self.ports[upstream as usize].latency;
            self.give_back(upstream, Credit { time, next: NONE, bytes, job, lane: upstream_lane });
        }
        if to_nic == SWITCH {
            self.forward(port, lane, record, now, wire_time);
        } else {
            let time = done + latency;
            self.packets[record].time = time;
            self.give_back(port, Credit { time: time + latency, next: NONE, bytes, job, lane: lane.0 });
            self.arrive(to_nic, record, time);
        }
    }

    /// A packet that starts on `port` at `now` is sent on to the queue of its next port.
    #[inline(always)]
    fn forward(&mut self, port: u32, lane: VirtualLane, record: u32, now: u64, wire_time: u64) {
        if self.packets[record].hop + 1 == self.packets[record].hops {
            self.extend_route(record);
        }
        let packet = &mut self.packets[record];
        packet.hop += 1;
        packet.lane = lane.0;
        let next = packet.route[usize::from(packet.hop)].link();
        let held = match self.parameters.switching {
            Switching::StoreAndForward => wire_time,
            Switching::CutThrough if self.one_rate => 0,
            Switching::CutThrough => {
                let bytes = Bytes(u64::from(packet.bytes));
                wire_time.saturating_sub(BitsPerSec(self.ports[next as usize].rate).serialization(bytes).0)
            }
        };
        let time = now + self.ports[port as usize].latency + self.parameters.switch_latency.0 + held;
        packet.time = time;
        self.send_to(next, record, time);
    }

    /// Fills in the next hops of a packet that has come to the end of those it carries.
    pub(super) fn extend_route(&mut self, record: u32) {
        let packet = &mut self.packets[record];
        let mut step = packet.route[usize::from(packet.hop)];
        packet.route = [Step::NONE; ROUTE];
        packet.route[0] = step;
        packet.hop = 0;
        let mut hops = 1;
        while hops < ROUTE {
            let at = self.far_switch[step.link() as usize];
            if at == NONE {
                break;
            }
            let previous = Hop { link: LinkId(step.link()), channel: step.channel() };
            step = Step::new(self.routing.next_hop(SwitchId(at), previous, HostId(packet.to)));
            packet.route[hops] = step;
            hops += 1;
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most ROUTE")]
        {
            packet.hops = hops as u8;
        }
    }

    #[cold]
    fn log(&mut self, port: u32, lane: VirtualLane, record: u32, now: u64) {
        let packet = &self.packets[record];
        let message = &self.messages[packet.message];
        self.departures.push(Departure {
            time: now,
            link: port,
            lane: lane.0,
            job: packet.job,
            token: message.token,
            stage: message.stage,
            packet: packet.number,
            bytes: packet.bytes,
        });
    }
}
