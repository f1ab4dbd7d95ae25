//! Packets that are lost: at a link that is down, or at a full queue of a lossy lane.
//!
//! The source NIC retransmits a lost packet `retransmission_timeout` after the loss, and a trimmed packet when the receiver's
//! notice of its header arrives. The retransmission takes the routes that apply at that time. After `retry_count`
//! retransmissions, the next loss is final when its timeout has passed: the job fails, as a job on a reliable connection of
//! `InfiniBand` does (Architecture Specification, volume 1, section 9.7, "Reliable service"). Receivers accept packets out of
//! order, and only lost and trimmed packets are retransmitted: the timers of other packets never expire.
//!
//! A packet that is given up is handed to its host all the same, so that no record of its message stays behind. It arrives after
//! its job has been stopped, and is ignored. A notice that is given up is processed as if it had come.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Plan;
use super::config::Config;
use super::in_flight::InFlight;
use super::mail::{Destination, Returned};
use super::packet::{Content, Message, Packet, PacketFlags};
use super::port::{ActivePort, Arrival, UNCHARGED, kind};
use super::probe::Probe;
use super::switch::random;
use crate::fault::GivenUp;
use crate::ids::{HostId, JobId, LinkId};
use crate::kernel::NONE;
use crate::routing::Step;
use crate::topology::{Graph, RailMap};
use crate::units::{Instant, Picoseconds};

/// When a link was down last.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: u64,
    until: u64,
}

/// Links that are or were down, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Outages {
    last: FxHashMap<u32, Outage>,
}

impl Outages {
    /// A link goes down at `now`.
    pub fn begin(&mut self, link: u32, now: u64) {
        self.last.insert(link, Outage { from: now, until: u64::MAX });
    }

    /// A link is up again at `now`. What was on it when it went down had joined the next queue at the latest `furthest` later, but for
    /// packets that were repeated.
    pub fn end(&mut self, link: u32, now: u64, furthest: u64) {
        if let Some(outage) = self.last.get_mut(&link) {
            outage.until = now.max(outage.from + furthest);
        }
    }

    /// Whether a packet that came over a link, of this latency, and joins the next queue at `time` was on it when it went down.
    fn lost(&self, link: u32, latency: u64, time: u64) -> bool {
        self.last.get(&link).is_some_and(|outage| outage.from <= time && time < outage.until.saturating_add(latency))
    }
}

/// How packets can be lost in a network.
#[derive(Clone)]
pub(super) struct LossConfig {
    /// Packets on one path can overtake each other: some are lost, or the bandwidth of a link changes while they are on it.
    pub overtaking: bool,
    /// The lanes on which packets need no credits and are lost at full queues.
    pub lanes: u64,
    /// The virtual lane of the headers of packets that are trimmed instead, if they are.
    pub trim_vl: Option<u8>,
    /// Links that are or were down.
    pub outages: Outages,
    /// Which adapters reach each other, once that has changed, and which jobs use others where theirs do not.
    pub failover: Option<(Arc<RailMap>, Arc<[bool]>)>,
    /// From the loss of a packet until its retransmission, ps; at least four windows.
    timeout: u64,
    /// How often a packet is retransmitted at most.
    retries: u8,
}

impl LossConfig {
    /// What follows from a plan. `first_lane`: see [`Config::first_lane`]; `window`: how wide windows are.
    pub fn new(plan: &Plan, first_lane: &[u8], window: Picoseconds) -> Self {
        let lanes = plan.lossy.iter().flat_map(|vl| first_lane[usize::from(*vl)]..first_lane[usize::from(*vl) + 1]);
        let lanes = lanes.fold(0, |set, lane| set | 1 << lane);
        Self {
            overtaking: lanes != 0,
            lanes,
            trim_vl: plan.trim_vl,
            outages: Outages::default(),
            failover: None,
            timeout: plan.parameters.retransmission_timeout.0.max(4 * window.0),
            retries: plan.parameters.retry_count,
        }
    }
}

impl Config {
    /// The credits of each lane of a port at rest; a lossy lane has 2 GiB, more than the queues of a switch hold.
    pub fn lane_credits(&self) -> impl Iterator<Item = u32> {
        let lossy = |lane: u8| self.loss.lanes >> lane & 1 == 1;
        (0..).take(self.lanes).map(move |lane| if lossy(lane) { u32::MAX / 2 } else { self.buffer_of(lane) })
    }

    /// Whether a packet that joins the next queue at `time` is lost on the link that it comes over.
    pub fn lost_on_link(&self, packet: &Packet, time: u64) -> bool {
        let link = packet.came.link();
        self.loss.outages.lost(link, self.latency_of(link), time)
    }

    /// The NIC port that the packets of an address come from and go to, by its number in the shard of its host.
    fn nic_of_address(&self, address: u32) -> (usize, u32) {
        let place = self.partition.link(LinkId(address));
        (place.shard(), place.number())
    }
}

impl LossConfig {
    /// The addresses through which a lost packet is retransmitted: those that it had, or, where adapters have been cut off, others of
    /// the same hosts, as a connection moves to its alternate path (`InfiniBand` Architecture Specification, volume 1,
    /// section 17.2.8, "Automatic path migration").
    fn alternate(&self, graph: &Graph, &Packet { source, to, job, number, .. }: &Packet) -> [u32; 2] {
        let Some((rails, jobs)) = &self.failover else { return [source, to] };
        let end = |address: u32| {
            let host = graph.host_of(HostId(address));
            let rail = address - graph.endpoint(host, 0).0;
            (host, u8::try_from(rail).unwrap_or(u8::MAX))
        };
        let [from, other] = [end(source), end(to)];
        let pairs = rails.pairs(from.0, other.0);
        if pairs.is_empty() || !jobs[usize::from(job)] || rails.joins(from, other) {
            return [source, to];
        }
        let [rail, peer] = pairs[number.place() as usize % pairs.len()];
        [graph.endpoint(from.0, rail.into()).0, graph.endpoint(other.0, peer.into()).0]
    }
}

impl InFlight {
    /// A packet is lost at `time`; its credits are returned by the caller.
    #[cold]
    pub fn lose(&mut self, config: &Config, record: u32, link: u32, time: u64) {
        self.totals.packets_lost += 1;
        self.untrim(record);
        let due = time + config.loss.timeout;
        let packet = &mut self.packets[record];
        packet.note = link;
        if packet.number.losses() == config.loss.retries {
            let [from, to] = [packet.source, packet.to].map(|address| config.graph.host_of(HostId(address)));
            self.given_up.push(GivenUp { at: Instant(due), job: JobId(packet.job), from, to });
        }
        let sender = usize::from(self.packets[record].origin);
        if sender == config.shard {
            self.retransmit(config, record, due);
        } else {
            self.send_to_shard(sender, Destination::Sender, record, due);
        }
    }

    /// A packet that this shard sent has been lost, and its timeout passes at `due`: it is retransmitted then, or given up.
    #[cold]
    pub fn retransmit(&mut self, config: &Config, record: u32, due: u64) {
        let packet = &mut self.packets[record];
        if packet.number.losses() < config.loss.retries {
            packet.number = packet.number.lost();
            if config.feedback[config.transport_place(packet.job)].is_none() {
                [packet.source, packet.to] = config.loss.alternate(&config.graph, packet);
            }
            self.totals.packets_retransmitted += 1;
            self.hand_over(config, record, Content::Lost, due);
            return;
        }
        // The job is stopped at the end of the window in which `due` lies.
        self.hand_over(config, record, Content::GivenUp, due + 2 * self.calendar.width().0);
    }

    /// Hands a lost packet to the port of the NIC that sent it, at instant `at`.
    pub fn hand_over(&mut self, config: &Config, record: u32, content: Content, at: u64) {
        let &Packet { bytes, to, job, kind, vl, source, note: link, .. } = &self.packets[record];
        let payload = u64::from(bytes - config.header);
        // After messages of the same instant, by the link of the loss, whatever the shards: of one link in order of loss.
        let sequence = 1 << 63 | u64::from(link) << 32 | self.sequence & u64::from(u32::MAX);
        let message = self.messages.insert(Message {
            offered: at,
            sequence,
            bytes: payload,
            left: payload,
            undelivered: 0,
            sent: 0,
            next: NONE,
            to,
            token: record,
            pair: NONE,
            job,
            kind,
            vl,
            flags: PacketFlags::new(0, true, false),
            any_delivered: false,
            mirror: false,
            content,
        });
        self.sequence += 1;
        let (_, nic) = config.nic_of_address(source);
        self.send_message(nic, message);
    }

    /// A packet that is given up leaves its NIC: it is handed to its host in the next window, which opens at `until`.
    fn hand_to_host(&mut self, config: &Config, record: u32, until: u64) {
        self.totals.packets_given_up += 1;
        self.packets[record].came = Step::NONE;
        let (shard, nic) = config.nic_of_address(self.packets[record].to);
        if shard == config.shard {
            self.arrive_given_up(config, nic, record, until);
        } else {
            self.send_to_shard(shard, Destination::GivenUp(nic), record, until);
        }
    }

    /// A packet that is given up comes to NIC `nic` at instant `time`: before or after what is on its way there.
    pub fn arrive_given_up(&mut self, config: &Config, nic: u32, record: u32, time: u64) {
        if self.is_control(record) {
            // So that its flow does not wait for it.
            self.answer(config, nic, record, time);
            return;
        }
        self.packets[record].time = time;
        let (head, tail) = self.receive_queues[nic as usize];
        let (mut before, mut after) = (NONE, head);
        if tail != NONE && self.packets[tail].time <= time {
            (before, after) = (tail, NONE);
        }
        while after != NONE && self.packets[after].time <= time {
            (before, after) = (after, self.packets[after].next);
        }
        self.packets[record].next = after;
        match before {
            NONE => self.receive_queues[nic as usize].0 = record,
            _ => self.packets[before].next = record,
        }
        if after == NONE {
            self.receive_queues[nic as usize].1 = record;
        }
        self.wake_host(config.nic_host[nic as usize], Instant(time));
    }
}

impl<P: Probe, const KIND: u8> ActivePort<'_, P, KIND> {
    /// Takes the packets that are lost on the links that they come over out of the arrivals of the open window.
    #[cold]
    pub(super) fn lose_arrivals(&mut self, arrivals: &mut Vec<Arrival>) {
        arrivals.retain(|&(time, _, record)| {
            let lost = KIND != kind::NIC && self.config.lost_on_link(&self.in_flight.packets[record], time);
            if lost {
                self.lose(record, time);
            }
            !lost
        });
    }

    /// A message at a NIC that is a packet to be given up never joins a queue. Returns whether it is one.
    #[cold]
    pub(super) fn gives_up(&mut self, message: u32, until: u64) -> bool {
        let Message { content, token, .. } = self.in_flight.messages[message];
        let given_up = content == Content::GivenUp;
        if given_up {
            if self.paces() {
                self.note_given_up(message);
            }
            self.in_flight.messages.remove(message);
            self.in_flight.hand_to_host(self.config, token, until);
        }
        given_up
    }

    /// A packet that has been taken from the queue of a lane starts at `now` on a link that is down.
    #[cold]
    pub(super) fn lose_started(&mut self, lane: u8, record: u32, now: u64) {
        self.port.busy_until = now;
        let &Packet { time, came, held, .. } = &self.in_flight.packets[record];
        if P::COUNTERS {
            self.lanes[self.base + usize::from(lane)].waited += now - time;
        }
        if KIND != kind::NIC {
            let upstream = self.config.onward_place(came.link()) * self.config.lanes + usize::from(held);
            self.probe.lost(upstream, now - time);
        }
        self.lose(record, now);
    }

    /// A packet comes to a queue. If there is no room in it, and its lane is lossy, it or the last packet there, with equal
    /// probability, is trimmed or lost: if it were always the one that comes, of flows in step the same would lose all the time.
    /// Returns whether the packet that comes joins a queue, that of its lane or, trimmed, another.
    #[cold]
    pub(super) fn finds_room(&mut self, record: u32) -> bool {
        if self.has_room(record) {
            return true;
        }
        let &Packet { time, came, .. } = &self.in_flight.packets[record];
        let toss = random(u64::from(random(time, came.link())), came.link()) >> 31;
        if toss == 0 || !self.displace_last(record, time) {
            return self.trim_or_lose(record, time);
        }
        true
    }

    /// There is no room for a packet: it is trimmed or lost. Returns whether it joins a queue, trimmed.
    fn trim_or_lose(&mut self, record: u32, time: u64) -> bool {
        let joins = self.config.loss.trim_vl.is_some_and(|vl| self.trim(record, vl, time)) && self.has_room(record);
        if !joins {
            self.lose(record, time);
        }
        joins
    }

    /// The last packet in the lane's queue of one that comes at `time` gives up its place, if that makes room: it is trimmed or lost.
    /// Its delay counts to the end of the transmission under way, for which it has been charged. Returns whether it does.
    fn displace_last(&mut self, record: u32, time: u64) -> bool {
        let &Packet { lane, bytes, .. } = &self.in_flight.packets[record];
        let place = self.base + usize::from(lane);
        let last = self.lanes[place].tail;
        if last == NONE || self.in_flight.packets[last].bytes < bytes {
            return false;
        }
        let mut before = NONE;
        let mut next = self.lanes[place].head;
        while next != last {
            (before, next) = (next, self.in_flight.packets[next].next);
        }
        let queue = &mut self.lanes[place];
        queue.tail = before;
        queue.depth -= 1;
        if before == NONE {
            queue.head = NONE;
            self.port.waiting &= !(1 << lane);
        } else {
            self.in_flight.packets[before].next = NONE;
        }
        self.count_left(lane, last);
        let &Packet { time: joined, job, came, held, .. } = &self.in_flight.packets[last];
        self.probe.dequeued(self.port, job);
        let waited = self.port.busy_until.saturating_sub(joined);
        if P::COUNTERS {
            self.lanes[place].waited += waited;
        }
        let upstream = self.config.onward_place(came.link()) * self.config.lanes + usize::from(held);
        self.probe.lost(upstream, waited);
        self.in_flight.packets[last].time = time;
        if self.trim_or_lose(last, time) {
            self.enqueue(last, &self.entry(last));
        }
        true
    }

    /// Whether a packet may join the queue of its lane.
    fn has_room(&self, record: u32) -> bool {
        let &Packet { lane, bytes, .. } = &self.in_flight.packets[record];
        let queued = self.in_flight.marking[self.base + usize::from(lane)].queued;
        self.config.loss.lanes >> lane & 1 == 0 || queued + u64::from(bytes) <= u64::from(self.config.buffer_of(lane))
    }

    /// A packet leaves its payload behind, and its header goes on, on virtual lane `vl`. Not if it has no payload any more, or nobody
    /// answers it. Returns whether it was trimmed.
    fn trim(&mut self, record: u32, vl: u8, time: u64) -> bool {
        let config = self.config;
        let &Packet { bytes, came, credited, held, job, lane, vl: before, .. } = &self.in_flight.packets[record];
        let answered = config.feedback[config.transport_place(job)].is_some() && !self.in_flight.is_control(record);
        if bytes == config.header || before == vl || !answered {
            return false;
        }
        let next = config.lane(vl, config.channel(before, lane));
        let packet = &mut self.in_flight.packets[record];
        (packet.bytes, packet.vl, packet.lane) = (config.header, vl, next);
        self.in_flight.tag_trimmed(record, bytes, before);
        let payload = bytes - config.header;
        self.return_upstream(
            (came.link(), credited),
            Returned { port: 0, lane: held, job, bytes: payload, freed: time },
        );
        if config.adaptive {
            let window = self.in_flight.calendar.window() + 1;
            self.in_flight.occupancy.return_credits(self.number, lane, bytes, window);
            self.in_flight.occupancy.inject(self.number, next, config.header);
        }
        true
    }

    /// A packet that has come to this port is lost at `now`.
    fn lose(&mut self, record: u32, now: u64) {
        if KIND != kind::NIC {
            let &Packet { came, credited, held, job, bytes, lane, .. } = &self.in_flight.packets[record];
            self.return_upstream((came.link(), credited), Returned { port: 0, lane: held, job, bytes, freed: now });
            if self.config.adaptive {
                let next = self.in_flight.calendar.window() + 1;
                self.in_flight.occupancy.return_credits(self.number, lane, bytes, next);
                self.in_flight.occupancy.start(self.number);
            }
        }
        self.in_flight.lose(self.config, record, self.config.link_id::<P>(self.number), now);
    }

    /// What waits at a link that goes down waits for no credits any more: a stall that has not been charged yet is charged to the
    /// job that the link carried last.
    #[cold]
    pub(super) fn settle_stall(&mut self) {
        if P::COUNTERS && self.port.unusual & UNCHARGED != 0 {
            self.port.unusual &= !UNCHARGED;
            let returns = &mut self.in_flight.returns[self.number as usize];
            (returns.uncharged, returns.wakes) = (0, false);
            self.probe.stall_ended_by(self.number, self.port, self.port.job);
        }
    }
}
