//! Observation: counters of interference, queueing and latency. Those that an instance of the engine does not keep are not
//! compiled into it.

use std::ops::Range;

use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{LaneIdx, PacketIdx, PortIdx};
use super::packet::{Owner, Packet};
use super::plan::Plan;
use super::port::{Lane, Port};
use super::switch::input_queued::Queue;
use crate::ids::{JobId, TrafficId};
use crate::observe::{Departure, Interference, Latencies};
use crate::routing::Step;
use crate::units::{Instant, Picoseconds};

/// A packet that starts on a link.
pub(super) struct Transmission {
    pub packet: PacketIdx,
    pub time: Instant,
    pub bytes: u32,
    pub traffic: TrafficId,
    pub wire_time: Picoseconds,
    pub waited: Picoseconds,
}

/// Counters of a shard since instant zero.
#[derive(Clone, Default)]
pub(super) struct Observation {
    pub interference: Interference,
    /// Queueing delay, at the switches of the shard, of the packets that came over each link and lane, ps, in the order of
    /// [`Fabric::onward_place`](super::fabric::Fabric::onward_place); empty if it is not recorded.
    pub input_queueing: Vec<u64>,
    /// The instants at which departures are kept, ps.
    pub departs: Range<u64>,
    pub departures: Vec<Departure>,
    /// Of packets that their hosts have taken.
    pub latencies: Latencies,
    /// Bytes on the wire of the same packets, by [`TrafficId`]; empty if packets are not counted by class.
    pub class_bytes: Vec<u64>,
}

impl Observation {
    /// Nothing observed yet, on ports with so many lanes in all.
    pub fn new(plan: &Plan, lanes: usize) -> Self {
        let parameters = &plan.observe;
        let counted = plan.jobs.max(plan.traffic.len());
        Self {
            interference: Interference::new(counted, parameters.interference_by_port),
            input_queueing: vec![0; if parameters.onward_waiting { lanes } else { 0 }],
            departs: parameters.departs(),
            departures: Vec::new(),
            latencies: if parameters.counters { Latencies::new(counted) } else { Latencies::default() },
            class_bytes: vec![0; plan.traffic.len()],
        }
    }

    /// A packet that came over the link and lane with the counter `upstream` has waited for `span`, and starts or is lost.
    pub fn add_waiting(&mut self, upstream: usize, span: Picoseconds) {
        if let Some(sum) = self.input_queueing.get_mut(upstream) {
            *sum += span.0;
        }
    }

    /// Records a single packet of `job`, where [`Features::details`](super::features::Features::details) are kept. `upstream`: the
    /// place of the counter of the link and lane that the packet came over (see
    /// [`Fabric::onward_place`](super::fabric::Fabric::onward_place)).
    #[cold]
    pub fn detail(
        &mut self,
        in_flight: &InFlight,
        job: JobId,
        (port, lane): (PortIdx, LaneIdx),
        sent: &Transmission,
        upstream: Option<usize>,
    ) {
        let &Transmission { packet, time, waited, bytes, .. } = sent;
        if let Some(upstream) = upstream {
            self.add_waiting(upstream, waited);
        }
        if !self.departs.contains(&time.0) || in_flight.is_control(packet) {
            return;
        }
        let packet = &in_flight.packets[packet];
        let token = match packet.owner() {
            Owner::Whole(token) => token,
            Owner::Part(message) => in_flight.messages[message].token,
        };
        self.departures.push(Departure {
            time: time.0,
            waited: waited.0,
            // Departures are kept with one shard only, where ports have the numbers of their links.
            link: port.0,
            lane: lane.0,
            job: job.0,
            token,
            stage: packet.flags.stage(),
            packet: packet.number.place(),
            bytes,
        });
    }

    /// A packet of `traffic` joins the queue of `lane` at `time`, while the link may be busy.
    #[inline(always)]
    pub fn enqueued<I: Instance>(
        &mut self,
        at: PortIdx,
        port: &mut Port,
        lane: &mut Lane,
        traffic: TrafficId,
        time: Instant,
    ) {
        if I::COUNTERS && port.busy_until > time {
            self.interference.charge(at.0, traffic.0, port.traffic.0, (port.busy_until - time).0);
        }
        self.followed::<I>(port, lane, traffic);
    }

    /// The packet that follows the one that has just started at a NIC joins its queue.
    #[inline(always)]
    pub fn followed<I: Instance>(&mut self, port: &mut Port, lane: &mut Lane, traffic: TrafficId) {
        if I::COUNTERS {
            port.waiters.join(traffic.0);
            lane.max_depth = lane.max_depth.max(lane.depth);
        }
    }

    /// A packet of `traffic` leaves its queue.
    #[inline(always)]
    pub fn dequeued<I: Instance>(&mut self, port: &mut Port, traffic: TrafficId) {
        if I::COUNTERS {
            port.waiters.leave(traffic.0);
        }
    }

    /// A packet of `traffic` waits for `span` for the packet that the link carries, and joins no queue.
    #[inline(always)]
    pub fn waited_for_link<I: Instance>(&mut self, at: PortIdx, port: &Port, traffic: TrafficId, span: Picoseconds) {
        if I::COUNTERS && span > Picoseconds::ZERO {
            self.interference.charge(at.0, traffic.0, port.traffic.0, span.0);
        }
    }

    /// Of the lanes that lacked credits, the first got some: a packet of `traffic` returned them.
    pub fn stall_ended_by<I: Instance>(&mut self, at: PortIdx, port: &mut Port, traffic: TrafficId) {
        if I::COUNTERS {
            self.interference.credited(at.0, &mut port.waiters, traffic.0);
        }
    }

    /// A packet of `traffic` joins a queue at the input of a switch.
    pub fn joined_input<I: Instance>(&mut self, queue: &mut Queue, traffic: TrafficId, now: Instant) {
        if I::COUNTERS {
            queue.waiters.stalled((now - queue.settled).0);
            queue.settled = now;
            queue.waiters.join(traffic.0);
        }
    }

    /// The first packet of a queue at the input of a switch, of `traffic`, starts to cross to the output `port`; what it lacked last
    /// was released by a packet of `aggressor`.
    pub fn left_input<I: Instance>(
        &mut self,
        port: PortIdx,
        queue: &mut Queue,
        traffic: TrafficId,
        aggressor: TrafficId,
        now: Instant,
    ) {
        if I::COUNTERS {
            queue.waiters.stalled((now - queue.settled).0);
            queue.settled = now;
            self.interference.credited(port.0, &mut queue.waiters, aggressor.0);
            queue.waiters.leave(traffic.0);
        }
    }

    /// A packet starts on the link.
    #[inline(always)]
    pub fn transmitted<I: Instance>(&mut self, at: PortIdx, port: &mut Port, lane: &mut Lane, sent: &Transmission) {
        if !I::COUNTERS {
            return;
        }
        lane.packets += 1;
        lane.bytes += u64::from(sent.bytes);
        lane.waited += sent.waited;
        port.active += sent.wire_time;
        if port.waiting != 0 {
            self.interference.carried(at.0, &port.waiters, sent.traffic.0, sent.wire_time.0);
        }
    }

    /// A host takes a packet that has been delivered to it.
    #[inline(always)]
    pub fn delivered<I: Instance>(&mut self, packet: &Packet) {
        // Those that are given up came over no link.
        if I::COUNTERS && packet.came != Step::NONE {
            self.latencies.record(packet.traffic, packet.kind, packet.latency());
            if !I::PLAIN
                && let Some(sum) = self.class_bytes.get_mut(packet.traffic.index())
            {
                *sum += u64::from(packet.bytes);
            }
        }
    }
}
