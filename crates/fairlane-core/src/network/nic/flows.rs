//! The state of NICs for transports: flows that they send, flows that have come to them, and a tag of each packet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::go_back_n::{GoBack, Sequence};
use super::pulls::{Asked, Pacer, Source};
use super::transport::{self, FlowSetup, Notice, RECENT};
use crate::ids::{JobId, VirtualLane};
use crate::network::config::Config;
use crate::network::fabric::Fabric;
use crate::network::index::{PacketIdx, PortIdx, TelemetryIdx};
use crate::network::packet::{Packet, PacketFlags, PacketNumber};
use crate::network::port::Arrival;
use crate::qos::levels::TrafficKind;
use crate::units::{Bytes, Instant};

/// Identity of a flow at one NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::network) struct Key {
    pub to: u32,
    pub job: JobId,
    pub vl: VirtualLane,
}

impl Key {
    pub fn of_packet(fabric: &Fabric, packet: &Packet) -> Self {
        Self { to: packet.to, job: fabric.job_of(packet.traffic), vl: packet.vl }
    }
}

/// A flow that has had to wait, or has sent.
#[derive(Clone)]
pub(in crate::network) struct Flow {
    /// The packet that will join its queue at a time that is set, if there is one.
    pub released: PacketIdx,
    /// Packets that wait for it, in order: each the next of its message.
    pub held: VecDeque<PacketIdx>,
    /// What it sends again.
    pub back: GoBack,
    /// The state that its transport keeps of it.
    pub control: Box<dyn transport::Flow>,
}

impl Flow {
    /// Takes the held packet that is released next; those that are sent again come first.
    pub fn next_held(&mut self) -> Option<PacketIdx> {
        if self.back.active() { self.back.take_next() } else { self.held.pop_front() }
    }
}

/// The flows of one NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Flows {
    places: FxHashMap<Key, usize>,
    flows: Vec<Flow>,
    /// Released packets by the time at which they join their queues, then by order of creation.
    pub due: BTreeSet<Arrival>,
    /// What will happen to flows, as notices that arrive: by time, then by the NIC's port at which it does, then by order.
    pub expected: BTreeMap<(Instant, PortIdx, u64), Expected>,
    /// Grants credit to the flows that come to this NIC.
    pub pacer: Pacer,
    /// Flows of which packets have come to this NIC.
    pub heard: Heard,
}

impl Flows {
    /// The flow, new if it is not known.
    pub fn flow(&mut self, key: Key, config: &Config, wire: u32) -> &mut Flow {
        let place = *self.places.entry(key).or_insert(self.flows.len());
        if place == self.flows.len() {
            let setup = FlowSetup {
                bandwidth: config.conditions.wire(wire).bandwidth,
                vl: key.vl,
                full_packet: Bytes(u64::from(config.fabric.full)),
                round_trip: config.fabric.round_trips[config.fabric.transport_place(key.job)],
            };
            let control = Arc::clone(config.fabric.transport_of(key.job)).flow(&setup);
            let (released, held, back) = (PacketIdx::NONE, VecDeque::new(), GoBack::default());
            self.flows.push(Flow { released, held, back, control });
        }
        &mut self.flows[place]
    }

    /// When the next released packet joins its queue.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(time, ..)| *time)
    }
}

/// Further fields of a packet, if there is congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct Tag {
    /// When it started at its NIC, ps; of a notice, when the packet that it answers did.
    pub sent: Instant,
    /// Of a notice: when the packet that it answers arrived, ps.
    pub received: Instant,
    /// Of a notice: the address to which that packet went, its bytes on the wire, and its virtual lane.
    pub to: u32,
    pub bytes: u32,
    /// Of a notice: flows that have come lately.
    pub flows: u32,
    /// The packet's pull target; of a notice, the highest that the receiver knows; of a credit, all that has been granted.
    pub pull: u64,
    /// Of a credit: how many trimmed packets of the flow had come.
    pub credit: Option<u32>,
    /// The entropy of the packet, or of that which a notice answers.
    pub entropy: u16,
    /// Of a packet that has been trimmed, or a notice of it: its bytes on the wire before; else 0. Its virtual lane was `vl`.
    pub whole: u32,
    /// Of a notice of a trimmed packet: what else is needed to make that packet again.
    pub trimmed: Option<Remains>,
    pub vl: VirtualLane,
    /// The telemetry of the links that it has started on, the last first; of a notice, that of the packet that it answers.
    pub telemetry: TelemetryIdx,
    /// Its number in its flow, if flows go back N; of a NAK, that of the packet that is missing.
    pub psn: u32,
    /// A switch has marked it; of a notice, the packet that it answers.
    pub marked: bool,
    /// It is a notice of a gap.
    pub nak: bool,
    /// Its receiver has discarded it.
    pub discarded: bool,
    /// It was trimmed at the output to its host.
    pub last_hop: bool,
    /// It is a notice.
    pub control: bool,
}

/// Fields of a trimmed packet, in the notice of it, with which its sender can send it again.
#[derive(Clone, Copy, Debug)]
pub(in crate::network) struct Remains {
    pub owner: u32,
    pub number: PacketNumber,
    pub offered: Instant,
    pub kind: TrafficKind,
    pub flags: PacketFlags,
}

/// An event to come, and the flow that it is for.
#[derive(Clone, Copy)]
pub(in crate::network) struct Expected {
    pub key: Key,
    pub event: Event,
}

/// What happens to a flow at its NIC.
#[derive(Clone, Copy)]
pub(in crate::network) enum Event {
    /// A notice arrives, with telemetry.
    Notice(Notice, TelemetryIdx),
    /// Credit arrives: all that has been granted, and how many trimmed packets the receiver knew of.
    Credit { granted: u64, trimmed: u32 },
    /// At the receiver: a packet of a flow that asks this NIC for credit has come.
    Asked(Asked),
    /// A NAK arrives: the packet with this number is missing.
    Nak(u32),
    /// At the receiver: a packet arrives after a gap.
    Discarded(PacketIdx),
    /// The packet with this number is to be sent again.
    Returned(u32, PacketIdx),
    /// The timeout of a packet has passed: its number, and its order when it was lost.
    Timeout(u32, u64),
}

/// The flows of which packets have come to a NIC.
#[derive(Clone, Default)]
pub(in crate::network) struct Heard {
    /// The last packet and the last notice of each, ps; no notice yet is [`Instant::MAX`].
    last: FxHashMap<Source, (Instant, Instant)>,
    /// Those of the last [`RECENT`] time, by their last packet.
    recent: BTreeMap<(Instant, Source), ()>,
    /// What has been expected at this NIC.
    pub count: u64,
    /// The packets of each that have come, if flows go back N.
    pub sequences: FxHashMap<Source, Sequence>,
}

impl Heard {
    /// A packet of a flow arrives at `time`. Returns how many flows have come lately, and the last notice of this one.
    pub fn hear(&mut self, source: Source, time: Instant) -> (u32, &mut Instant) {
        let (packet, notice) = self.last.entry(source).or_insert((time, Instant::MAX));
        self.recent.remove(&(*packet, source));
        *packet = time;
        self.recent.insert((time, source), ());
        while let Some((&(oldest, _), ())) = self.recent.first_key_value()
            && oldest + RECENT < time
        {
            self.recent.pop_first();
        }
        (u32::try_from(self.recent.len()).unwrap_or(u32::MAX), notice)
    }
}
