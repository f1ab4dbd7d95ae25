//! Observation: what the network counts, behind one trait whose hooks compile to nothing where nothing is kept.

use std::ops::Range;

use super::features::Instance;
use super::in_flight::InFlight;
use super::index::{PacketIdx, PortIdx};
use super::packet::{Owner, Packet};
use super::port::{Lane, Port, each_lane};
use super::switch::input_queued::Queue;
use crate::ids::JobId;
use crate::observe::{self, Departure, Interference, Latencies};
use crate::routing::Step;
use crate::units::{Instant, Picoseconds};

/// What a port and a NIC report as packets move.
pub(super) trait Probe: Instance + Send {
    /// A probe that goes on with what has been observed so far.
    fn resume(observation: Observation) -> Self;

    /// What has been observed.
    fn observed(self) -> Observation;

    /// A packet of `job` joins the queue of `lane` at `time`, while the link may be busy.
    fn enqueued(&mut self, _number: PortIdx, _port: &mut Port, _lane: &mut Lane, _job: u16, _time: Instant) {}

    /// The message of which a packet has just started waits with its next packet.
    fn requeued(&mut self, _port: &mut Port, _lane: &mut Lane, _job: u16) {}

    /// A packet of `job` leaves its queue.
    fn dequeued(&mut self, _port: &mut Port, _job: u16) {}

    /// A packet of `job` waits for `span` for the packet that the link carries, and joins no queue.
    fn waited_for_link(&mut self, _number: PortIdx, _port: &Port, _job: u16, _span: Picoseconds) {}

    /// The link was idle for `span` although packets waited.
    fn stalled(&mut self, _port: &mut Port, _lanes: &mut [Lane], _span: Picoseconds) {}

    /// Of the lanes that lacked credits, the first got some: a packet of `job` returned them.
    fn stall_ended_by(&mut self, _number: PortIdx, _port: &mut Port, _job: u16) {}

    /// A packet starts on the link.
    fn transmitted(&mut self, _number: PortIdx, _port: &mut Port, _lane: &mut Lane, _sent: &Transmission) {}

    /// A packet of `job` joins a queue at the input of a switch.
    fn joined_input(&mut self, _queue: &mut Queue, _job: u16, _now: Instant) {}

    /// The first packet of a queue at the input of a switch, of `job`, starts to cross to the output `port`; what it lacked last
    /// was released by a packet of `aggressor`.
    fn left_input(&mut self, _port: PortIdx, _queue: &mut Queue, _job: u16, _aggressor: u16, _now: Instant) {}

    /// Records a single packet, where [`Features::details`](super::features::Features::details) are kept. `upstream`: the
    /// place of the counter of the link and lane that the packet came over (see
    /// [`Fabric::onward_place`](super::fabric::Fabric::onward_place)).
    fn detail(&mut self, in_flight: &InFlight, place: (PortIdx, u8), sent: &Transmission, upstream: Option<usize>);

    /// A packet has waited for `span` and is lost. `upstream`: as of [`Probe::detail`].
    fn lost(&mut self, upstream: usize, span: Picoseconds);

    /// A host takes a packet that has been delivered to it.
    fn delivered(&mut self, _packet: &Packet) {}
}

/// A packet that starts on a link.
pub(super) struct Transmission {
    pub packet: PacketIdx,
    pub time: Instant,
    pub bytes: u32,
    pub job: u16,
    pub wire_time: Picoseconds,
    pub waited: Picoseconds,
}

/// What has been observed.
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
}

impl Observation {
    /// Nothing observed yet, of `jobs` jobs on ports with so many lanes in all.
    pub fn new(parameters: &observe::Parameters, jobs: usize, lanes: usize) -> Self {
        Self {
            interference: Interference::new(jobs, parameters.interference_by_port),
            input_queueing: vec![0; if parameters.onward_waiting { lanes } else { 0 }],
            departs: parameters.departs(),
            departures: Vec::new(),
            latencies: if parameters.counters { Latencies::new(jobs) } else { Latencies::default() },
        }
    }

    /// What came over a link has waited.
    fn add_waiting(&mut self, upstream: usize, span: Picoseconds) {
        if let Some(sum) = self.input_queueing.get_mut(upstream) {
            *sum += span.0;
        }
    }

    #[cold]
    fn keep(
        &mut self,
        in_flight: &InFlight,
        (port, lane): (PortIdx, u8),
        sent: &Transmission,
        upstream: Option<usize>,
    ) {
        let &Transmission { packet, time, waited, bytes, job, .. } = sent;
        if let Some(upstream) = upstream {
            self.add_waiting(upstream, waited);
        }
        if !self.departs.contains(&time.0) || in_flight.is_control(packet) {
            return;
        }
        let packet = &in_flight.packets[packet];
        let (token, stage) = match packet.owner() {
            Owner::Whole(token) => (token, packet.flags.stage()),
            Owner::Part(message) => {
                let message = &in_flight.messages[message];
                (message.token(), message.flags.stage())
            }
        };
        self.departures.push(Departure {
            time: time.0,
            waited: waited.0,
            // Departures are kept with one shard only, where ports have the numbers of their links.
            link: port.0,
            lane,
            job,
            token,
            stage,
            packet: packet.number.place(),
            bytes,
        });
    }
}

/// No counters; single packets if they are asked for.
pub(super) struct Off<const SHARDED: bool, const PLAIN: bool>(Observation);

impl<const SHARDED: bool, const PLAIN: bool> Instance for Off<SHARDED, PLAIN> {
    const COUNTERS: bool = false;
    const SHARDED: bool = SHARDED;
    const PLAIN: bool = PLAIN;
}

impl<const SHARDED: bool, const PLAIN: bool> Probe for Off<SHARDED, PLAIN> {
    fn resume(observation: Observation) -> Self {
        Self(observation)
    }

    fn observed(self) -> Observation {
        self.0
    }

    fn detail(&mut self, in_flight: &InFlight, place: (PortIdx, u8), sent: &Transmission, upstream: Option<usize>) {
        self.0.keep(in_flight, place, sent, upstream);
    }

    fn lost(&mut self, upstream: usize, span: Picoseconds) {
        self.0.add_waiting(upstream, span);
    }
}

/// Counters of ports and lanes, the interference matrix, latencies, and single packets if they are asked for.
pub(super) struct Counters<const SHARDED: bool, const PLAIN: bool>(Observation);

impl<const SHARDED: bool, const PLAIN: bool> Instance for Counters<SHARDED, PLAIN> {
    const COUNTERS: bool = true;
    const SHARDED: bool = SHARDED;
    const PLAIN: bool = PLAIN;
}

impl<const SHARDED: bool, const PLAIN: bool> Probe for Counters<SHARDED, PLAIN> {
    fn resume(observation: Observation) -> Self {
        Self(observation)
    }

    fn observed(self) -> Observation {
        self.0
    }

    #[inline(always)]
    fn enqueued(&mut self, number: PortIdx, port: &mut Port, lane: &mut Lane, job: u16, time: Instant) {
        if port.busy_until > time {
            self.0.interference.charge(number.0, job, port.job, (port.busy_until - time).0);
        }
        self.requeued(port, lane, job);
    }

    #[inline(always)]
    fn requeued(&mut self, port: &mut Port, lane: &mut Lane, job: u16) {
        port.waiters.join(job);
        lane.max_depth = lane.max_depth.max(lane.depth);
    }

    #[inline(always)]
    fn dequeued(&mut self, port: &mut Port, job: u16) {
        port.waiters.leave(job);
    }

    #[inline(always)]
    fn waited_for_link(&mut self, number: PortIdx, port: &Port, job: u16, span: Picoseconds) {
        if span > Picoseconds::ZERO {
            self.0.interference.charge(number.0, job, port.job, span.0);
        }
    }

    fn stalled(&mut self, port: &mut Port, lanes: &mut [Lane], span: Picoseconds) {
        port.idle_stalled += span;
        for lane in each_lane(port.waiting) {
            lanes[lane].stalled += span;
        }
        port.waiters.stalled(span.0);
    }

    fn stall_ended_by(&mut self, number: PortIdx, port: &mut Port, job: u16) {
        self.0.interference.credited(number.0, &mut port.waiters, job);
    }

    fn joined_input(&mut self, queue: &mut Queue, job: u16, now: Instant) {
        queue.waiters.stalled((now - queue.settled).0);
        queue.settled = now;
        queue.waiters.join(job);
    }

    fn left_input(&mut self, port: PortIdx, queue: &mut Queue, job: u16, aggressor: u16, now: Instant) {
        queue.waiters.stalled((now - queue.settled).0);
        queue.settled = now;
        self.0.interference.credited(port.0, &mut queue.waiters, aggressor);
        queue.waiters.leave(job);
    }

    #[inline(always)]
    fn transmitted(&mut self, number: PortIdx, port: &mut Port, lane: &mut Lane, sent: &Transmission) {
        lane.packets += 1;
        lane.bytes += u64::from(sent.bytes);
        lane.waited += sent.waited;
        port.active += sent.wire_time;
        if port.waiting != 0 {
            self.0.interference.carried(number.0, &port.waiters, sent.job, sent.wire_time.0);
        }
    }

    fn detail(&mut self, in_flight: &InFlight, place: (PortIdx, u8), sent: &Transmission, upstream: Option<usize>) {
        self.0.keep(in_flight, place, sent, upstream);
    }

    fn lost(&mut self, upstream: usize, span: Picoseconds) {
        self.0.add_waiting(upstream, span);
    }

    #[inline(always)]
    fn delivered(&mut self, packet: &Packet) {
        // Those that are given up came over no link.
        if packet.came == Step::NONE {
            return;
        }
        self.0.latencies.record(JobId(packet.job), packet.kind, packet.latency());
    }
}
