//! Packets that are lost: at a link that is down, at a full queue of a lossy lane, or by errors on a link without retry.
//!
//! The source NIC retransmits a lost packet `retransmission_timeout` after the loss, and a trimmed packet when the receiver's
//! notice of its header arrives. The retransmission takes the routes that apply at that time. After `retry_count`
//! retransmissions, the next loss is final when its timeout has passed: the job fails, as a job on a reliable connection of
//! `InfiniBand` does (Architecture Specification, volume 1, section 9.7, "Reliable service"). Receivers accept packets out of
//! order, and only lost and trimmed packets are retransmitted: the timers of other packets never expire. With
//! [`Retransmission::GoBackN`](super::Retransmission::GoBackN) a lost packet waits for its flow to go back, see
//! [`go_back_n`](super::nic::go_back_n).
//!
//! A packet that is given up is handed to its host all the same, so that no record of its message stays behind. It arrives after
//! its job has been stopped, and is ignored. A notice that is given up is processed as if it had come.

use super::config::Config;
use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{LaneIdx, PacketIdx, PairIdx, PortIdx};
use super::mail::{Receiver, Returned};
use super::packet::{AtSource, Packet, Resend};
use super::partition::PortPlace;
use super::port::{ActivePort, Arrival, UNCHARGED, kind};
use crate::fault::GivenUp;
use crate::ids::{HostId, LinkId, VirtualLane};
use crate::rng::draw;
use crate::routing::Step;
use crate::units::Instant;

impl InFlight {
    /// A packet is lost at `time`; its credits are returned by the caller.
    #[cold]
    pub fn lose(&mut self, config: &Config, index: PacketIdx, link: LinkId, time: Instant) {
        self.totals.packets_lost += 1;
        self.untrim(index);
        let packet = &self.packets[index];
        if packet.number.losses() == config.fabric.parameters.retry_count {
            let [from, to] = [packet.source, packet.to].map(|address| config.fabric.graph.host_of(HostId(address)));
            let job = config.fabric.job_of(packet.traffic);
            self.given_up.push(GivenUp { at: time + config.fabric.timeout, job, from, to });
        }
        self.return_to_sender(config, index, link, time);
    }

    /// A packet that was lost on `link` at `time`, or discarded at its end, goes back to the shard that sent it.
    pub fn return_to_sender(&mut self, config: &Config, index: PacketIdx, link: LinkId, time: Instant) {
        let due = time + config.fabric.timeout;
        let Err(PortPlace { shard, .. }) = config.port_of(LinkId(self.packets[index].source)) else {
            self.retransmit(config, index, link, due);
            return;
        };
        self.send_to_shard(config, shard, Receiver::Sender(link), index, due);
        if config.fabric.go_back_n {
            self.mail_to(shard, time + 2 * self.calendar.width());
        }
    }

    /// A packet that this shard sent has been lost on `link`, and its timeout passes at `due`: it is retransmitted then, or given up.
    #[cold]
    pub fn retransmit(&mut self, config: &Config, index: PacketIdx, link: LinkId, due: Instant) {
        let in_order = config.fabric.go_back_n && !self.is_control(index);
        if in_order && self.tags[index].discarded {
            self.await_turn(config, index, link, due);
            return;
        }
        let packet = &mut self.packets[index];
        if packet.number.losses() < config.fabric.parameters.retry_count {
            packet.number = packet.number.lost();
            if in_order {
                self.await_turn(config, index, link, due);
                return;
            }
            let job = config.fabric.job_of(packet.traffic);
            if config.fabric.feedback_of(job).is_none() {
                [packet.source, packet.to] = config.conditions.alternate(packet, job);
            }
            self.totals.packets_retransmitted += 1;
            self.totals.bytes_retransmitted += u64::from(packet.bytes - config.fabric.header);
            self.hand_over(config, index, (Resend::Lost, link), due);
            return;
        }
        // The job is stopped at the end of the window in which `due` lies.
        self.hand_over(config, index, (Resend::GivenUp, link), due + 2 * self.calendar.width());
    }

    /// Hands a packet that was lost on a link to the port of the NIC that sent it, at instant `at`.
    pub fn hand_over(&mut self, config: &Config, packet: PacketIdx, why: (Resend, LinkId), at: Instant) {
        self.return_to_source(config, packet, why, at);
        self.send_packet(config.fabric.nic_of_address(self.packets[packet].source).port, packet, at);
    }

    /// Puts a packet that was lost on a link back at its source NIC, which offers it at `at`. Returns its order.
    pub fn return_to_source(
        &mut self,
        config: &Config,
        index: PacketIdx,
        (again, link): (Resend, LinkId),
        at: Instant,
    ) -> u64 {
        // After others of the same instant, by the link of the loss, whatever the shards: of one link in order of loss.
        let order = 1 << 63 | u64::from(link.0) << 32 | self.next_order() & u64::from(u32::MAX);
        let packet = &mut self.packets[index];
        let lane = config.fabric.lane(packet.vl, 0);
        *packet = Packet {
            time: at,
            next: PacketIdx::NONE,
            lane,
            held: lane,
            came: Step::NONE,
            credited: PortIdx::NONE,
            next_step: Step::NONE,
            note: 0,
            ..*packet
        };
        self.at_source.grow_to(index, AtSource::default());
        self.at_source[index] = AtSource { order, pair: PairIdx::NONE, again };
        order
    }

    /// A packet that is given up leaves its NIC: it is handed to its host in the next window, which opens at `until`.
    fn hand_to_host(&mut self, config: &Config, packet: PacketIdx, until: Instant) {
        self.totals.packets_given_up += 1;
        self.packets[packet].came = Step::NONE;
        match config.port_of(LinkId(self.packets[packet].to)) {
            Ok(nic) => self.arrive_given_up(config, nic, packet, until),
            Err(PortPlace { shard, port }) => self.send_to_shard(config, shard, Receiver::GivenUp(port), packet, until),
        }
    }

    /// A packet that is given up comes to NIC `nic` at instant `time`: before or after what is on its way there.
    pub fn arrive_given_up(&mut self, config: &Config, nic: PortIdx, packet: PacketIdx, time: Instant) {
        if self.is_control(packet) {
            // So that its flow does not wait for it.
            self.answer(config, nic, packet, time);
            return;
        }
        self.forget_telemetry(packet);
        if config.fabric.go_back_n {
            self.skip_given_up(config, nic, packet);
        }
        self.packets[packet].time = time;
        let (head, tail) = self.receive_queues[nic];
        let (mut before, mut after) = (PacketIdx::NONE, head);
        if tail.is_some() && self.packets[tail].time <= time {
            (before, after) = (tail, PacketIdx::NONE);
        }
        while after.is_some() && self.packets[after].time <= time {
            (before, after) = (after, self.packets[after].next);
        }
        self.packets[packet].next = after;
        if before.is_none() {
            self.receive_queues[nic].0 = packet;
        } else {
            self.packets[before].next = packet;
        }
        if after.is_none() {
            self.receive_queues[nic].1 = packet;
        }
        self.wake_host(config.naming.nic_host[nic], time);
    }
}

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// Takes the packets that are lost on the links that they come over out of the arrivals of the open window.
    #[cold]
    pub(super) fn lose_arrivals(&mut self, arrivals: &mut Vec<Arrival>) {
        if KIND == kind::NIC {
            return;
        }
        arrivals.retain(|&(time, _, packet)| {
            let lost = self.config.conditions.lost_on_link(&self.in_flight.packets[packet], time);
            if lost {
                self.lose(packet, time);
            }
            !lost
        });
    }

    /// A packet at a NIC that is to be given up never joins a queue. Returns whether it is one.
    #[cold]
    pub(super) fn gives_up(&mut self, packet: PacketIdx, until: Instant) -> bool {
        let given_up = self.in_flight.at_source(packet).again == Resend::GivenUp;
        if given_up {
            if self.paces() {
                self.note_given_up(packet);
            }
            self.in_flight.hand_to_host(self.config, packet, until);
        }
        given_up
    }

    /// A packet that has been taken from the queue of a lane starts at `now` on a link that is down.
    #[cold]
    pub(super) fn lose_started(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        self.port.busy_until = now;
        let &Packet { time, came, held, .. } = &self.in_flight.packets[packet];
        if I::COUNTERS {
            self.lanes[self.base + lane.index()].waited += now - time;
        }
        if KIND != kind::NIC {
            let upstream = self.config.fabric.onward_place(came.link(), held);
            self.observation.add_waiting(upstream, now - time);
        }
        self.lose(packet, now);
    }

    /// A packet comes to a queue. If there is no room in it, and its lane is lossy, it or the last packet there, with equal
    /// probability, is trimmed or lost: if it were always the one that comes, of flows in step the same would lose all the time.
    /// Returns whether the packet that comes joins a queue, that of its lane or, trimmed, another.
    #[cold]
    pub(super) fn finds_room(&mut self, packet: PacketIdx) -> bool {
        if self.has_room(packet) {
            return true;
        }
        let &Packet { time, came, .. } = &self.in_flight.packets[packet];
        let toss = draw(u64::from(draw(time.0, came.link().0)), came.link().0) >> 31;
        if toss == 0 || !self.displace_last(packet, time) {
            return self.trim_or_lose(packet, time);
        }
        true
    }

    /// There is no room for a packet: it is trimmed or lost. Returns whether it joins a queue, trimmed.
    fn trim_or_lose(&mut self, packet: PacketIdx, time: Instant) -> bool {
        let joins = self.config.fabric.trim_vl.is_some_and(|vl| self.trim(packet, vl, time)) && self.has_room(packet);
        if !joins {
            self.lose(packet, time);
        }
        joins
    }

    /// The last packet in the lane's queue of one that comes at `time` gives up its place, if that makes room: it is trimmed or lost.
    /// Its delay counts to the end of the transmission under way, for which it has been charged. Returns whether it does.
    fn displace_last(&mut self, packet: PacketIdx, time: Instant) -> bool {
        let &Packet { lane, bytes, .. } = &self.in_flight.packets[packet];
        let place = self.base + lane.index();
        let last = self.lanes[place].tail;
        if last.is_none() || self.in_flight.packets[last].bytes < bytes {
            return false;
        }
        let mut before = PacketIdx::NONE;
        let mut next = self.lanes[place].head;
        while next != last {
            (before, next) = (next, self.in_flight.packets[next].next);
        }
        let queue = &mut self.lanes[place];
        queue.tail = before;
        queue.depth -= 1;
        if before.is_none() {
            queue.head = PacketIdx::NONE;
            self.port.waiting &= !(lane.bit());
        } else {
            self.in_flight.packets[before].next = PacketIdx::NONE;
        }
        self.count_left(lane, last);
        let &Packet { time: joined, traffic, came, held, .. } = &self.in_flight.packets[last];
        self.observation.dequeued::<I>(self.port, traffic);
        let waited = self.port.busy_until.since(joined);
        if I::COUNTERS {
            self.lanes[place].waited += waited;
        }
        let upstream = self.config.fabric.onward_place(came.link(), held);
        self.observation.add_waiting(upstream, waited);
        self.in_flight.packets[last].time = time;
        if self.trim_or_lose(last, time) {
            self.enqueue(last, &self.entry(last));
        }
        true
    }

    /// Whether a packet may join the queue of its lane.
    fn has_room(&self, packet: PacketIdx) -> bool {
        let &Packet { lane, bytes, .. } = &self.in_flight.packets[packet];
        let queued = self.in_flight.marking[self.base + lane.index()].queued;
        !self.config.fabric.is_lossy(lane) || queued + u64::from(bytes) <= u64::from(self.config.fabric.buffer_of(lane))
    }

    /// A packet leaves its payload behind, and its header goes on, on virtual lane `vl`. Not if it has no payload any more, or nobody
    /// answers it. Returns whether it was trimmed.
    fn trim(&mut self, packet: PacketIdx, vl: VirtualLane, time: Instant) -> bool {
        let config = self.config;
        let &Packet { bytes, came, credited, held, traffic, lane, vl: before, .. } = &self.in_flight.packets[packet];
        let answered =
            config.fabric.feedback_of(config.fabric.job_of(traffic)).is_some() && !self.in_flight.is_control(packet);
        if bytes == config.fabric.header || before == vl || !answered {
            return false;
        }
        let next = config.fabric.lane(vl, config.fabric.channel(before, lane));
        let trimmed = &mut self.in_flight.packets[packet];
        (trimmed.bytes, trimmed.vl, trimmed.lane) = (config.fabric.header, vl, next);
        self.in_flight.tag_trimmed(packet, bytes, before, KIND == kind::TO_HOST);
        let payload = bytes - config.fabric.header;
        self.return_upstream(
            came.link(),
            Returned { port: credited, lane: held, traffic, bytes: payload, freed: time },
        );
        if config.fabric.adaptive {
            let window = self.in_flight.calendar.window() + 1;
            self.in_flight.occupancy.return_credits(self.number, lane, bytes, window);
            self.in_flight.occupancy.inject(self.number, next, config.fabric.header);
        }
        true
    }

    /// A packet that has come to this port is lost at `now`.
    fn lose(&mut self, packet: PacketIdx, now: Instant) {
        if KIND != kind::NIC {
            let &Packet { came, credited, held, traffic, bytes, lane, .. } = &self.in_flight.packets[packet];
            self.return_upstream(came.link(), Returned { port: credited, lane: held, traffic, bytes, freed: now });
            if self.config.fabric.adaptive {
                let next = self.in_flight.calendar.window() + 1;
                self.in_flight.occupancy.return_credits(self.number, lane, bytes, next);
                self.in_flight.occupancy.start(self.number);
            }
        }
        self.in_flight.lose(self.config, packet, self.config.naming.link_of(self.number), now);
    }

    /// Packets at a link that goes down wait for no credits any more: a stall that has not been charged yet is charged to the
    /// job that the link carried last.
    #[cold]
    pub(super) fn settle_stall(&mut self) {
        if I::COUNTERS && self.port.unusual & UNCHARGED != 0 {
            self.port.unusual &= !UNCHARGED;
            let returns = &mut self.in_flight.returns[self.number];
            (returns.uncharged, returns.wakes) = (0, false);
            self.observation.stall_ended_by::<I>(self.number, self.port, self.port.traffic);
        }
    }
}
