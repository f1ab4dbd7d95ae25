//! The state of input-queued switches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{InputQueued, InputQueues};
use crate::ids::{LinkId, SwitchId, TrafficId};
use crate::kernel::{Indexed, NONE};
use crate::network::config::Config;
use crate::network::index::{LaneIdx, PacketIdx, PortIdx};
use crate::network::packet::Packet;
use crate::observe::Waiters;
use crate::topology::Vertex;
use crate::units::{BitsPerSec, Instant};

/// All switches, those of other shards without ports; none where they are output-queued.
#[derive(Clone, Default)]
pub(in crate::network) struct Crossbars {
    pub each: Indexed<SwitchId, Crossbar>,
    /// The number of the input of each link at the switch to which it leads.
    pub input_of: Indexed<LinkId, u32>,
}

/// A switch: queues at its inputs, buffers at its outputs, and what is to happen. Inputs and outputs have numbers of their
/// own, in order of their links.
#[derive(Clone)]
pub(in crate::network) struct Crossbar {
    /// Rate at which a packet crosses.
    pub rate: BitsPerSec,
    /// The port of output 0, and its link; the others follow.
    first: PortIdx,
    first_link: LinkId,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    /// Queues by input, then lane.
    pub queues: Vec<Vec<Queue>>,
    /// Buffers by output, then lane.
    pub rooms: Vec<Room>,
    /// In order of time, then of being scheduled.
    pub events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    pub sequence: u64,
    /// The allocator has to run.
    pub changed: bool,
}

/// An input port.
#[derive(Clone, Debug)]
pub(in crate::network) struct Input {
    /// Lanes with packets.
    pub waiting: u64,
    pub line: CrossbarPort,
    /// The lane with which the search for the next one begins.
    pub lane: u32,
}

/// An output port.
pub(in crate::network) type Output = CrossbarPort;

/// The line of an input or output in the crossbar.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct CrossbarPort {
    /// A packet crosses over it until then; when, and by a packet of which job, it was released last.
    pub busy_until: Instant,
    pub traffic: Option<TrafficId>,
    /// The output, or input, with which the search for the next one begins.
    pub pointer: u32,
}

/// The buffer of a lane of an output.
#[derive(Clone, Debug)]
pub(in crate::network) struct Room {
    /// Bytes.
    pub free: u32,
    /// When, and by a packet of which job, room was released last.
    pub released: Instant,
    pub traffic: Option<TrafficId>,
}

/// Packets that wait at an input.
#[derive(Clone, Debug)]
pub(in crate::network) struct Queue {
    /// The output to which all of them go, or [`NONE`] if there is one queue for all outputs.
    pub output: u32,
    pub head: PacketIdx,
    pub tail: PacketIdx,
    /// The packets by job, with their delay that has not been charged yet, up to the instant `settled`. Kept only if counters
    /// are.
    pub waiters: Waiters,
    pub settled: Instant,
}

/// An event at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::network) enum Event {
    /// A packet joins the queue of its input.
    Arrive { packet: PacketIdx },
    /// A crossing ends.
    Crossed,
    /// A packet that has crossed joins the queue of its output port.
    Join { packet: PacketIdx },
    /// The tail of a packet leaves an output, whose link is free then.
    Left { output: u32, lane: LaneIdx, bytes: u32, traffic: TrafficId },
    /// Credits arrive at an output port.
    Credit { output: u32 },
}

impl Crossbars {
    /// The switches of a shard, at rest.
    pub fn new(config: &Config) -> Self {
        let Some(params) = &config.fabric.input_queued else { return Self::default() };
        let graph = &config.fabric.graph;
        let mut inputs: Vec<Vec<LinkId>> = vec![Vec::new(); graph.switches()];
        let mut input_of = Indexed::of(NONE, graph.links().len());
        for link in (0..).take(graph.links().len()).map(LinkId) {
            if let Vertex::Switch(switch) = graph.link(link).to {
                let theirs = &mut inputs[switch.index()];
                input_of[link] = u32::try_from(theirs.len()).expect("invariant: links have 27-bit numbers");
                theirs.push(link);
            }
        }
        let switches = (0..).map(SwitchId).zip(&inputs);
        let each = switches.map(|(switch, inputs)| Crossbar::new(params, config, switch, inputs));
        Self { each: each.collect(), input_of }
    }
}

impl Crossbar {
    fn new(params: &InputQueued, config: &Config, switch: SwitchId, inputs: &[LinkId]) -> Self {
        let (graph, lanes) = (&config.fabric.graph, config.fabric.lanes);
        let inputs = if config.other_shard_of(switch).is_none() { inputs } else { &[] };
        let outputs: Vec<LinkId> = graph.ports(Vertex::Switch(switch)).filter(|_| !inputs.is_empty()).collect();
        let (count, first_link) = (outputs.len(), outputs.first().copied().unwrap_or_default());
        let links = inputs.iter().copied().chain(outputs);
        let fastest = links.map(|link| graph.link(link).bandwidth.0).max().unwrap_or(0);
        let rate = u128::from(fastest) * u128::from(params.thousandths) / 1000;
        Self {
            rate: BitsPerSec(u64::try_from(rate).unwrap_or(u64::MAX)),
            first: config.fabric.partition.port(first_link).port,
            first_link,
            inputs: vec![Input { waiting: 0, line: CrossbarPort::default(), lane: 0 }; inputs.len()],
            outputs: vec![Output::default(); count],
            queues: vec![Vec::new(); inputs.len() * lanes],
            rooms: vec![Room { free: params.output_buffer, released: Instant::ZERO, traffic: None }; count * lanes],
            events: BinaryHeap::new(),
            sequence: 0,
            changed: false,
        }
    }

    /// The output to which a packet goes that has been routed.
    #[inline]
    pub fn output_of(&self, packet: &Packet) -> u32 {
        packet.next_step.link().0 - self.first_link.0
    }

    /// The port of an output.
    #[inline]
    pub const fn port_of(&self, output: u32) -> PortIdx {
        PortIdx(self.first.0 + output)
    }

    /// The output of a port.
    pub const fn output_at(&self, port: PortIdx) -> u32 {
        port.0 - self.first.0
    }

    /// The link of an output.
    pub const fn link_of(&self, output: u32) -> LinkId {
        LinkId(self.first_link.0 + output)
    }

    /// Has something happen.
    pub fn schedule(&mut self, time: Instant, event: Event) {
        self.events.push(Reverse((time, self.sequence, event)));
        self.sequence += 1;
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes what happens at `now`.
    pub fn take(&mut self, now: Instant) -> Option<Event> {
        self.next().filter(|time| *time == now)?;
        self.events.pop().map(|Reverse((.., event))| event)
    }

    /// The queue of an input and lane that a packet to `output` joins, which may be a new one.
    pub fn queue(&mut self, place: usize, output: u32, queues: InputQueues) -> &mut Queue {
        let output = if queues == InputQueues::Voq { output } else { NONE };
        let theirs = &mut self.queues[place];
        let known = theirs.iter().position(|queue| queue.output == output);
        let at = known.unwrap_or_else(|| {
            theirs.push(Queue {
                output,
                head: PacketIdx::NONE,
                tail: PacketIdx::NONE,
                waiters: Waiters::default(),
                settled: Instant::ZERO,
            });
            theirs.len() - 1
        });
        &mut theirs[at]
    }

    /// The packets that wait at an input and lane: the first of each queue.
    pub fn heads(&self, place: usize) -> impl Iterator<Item = PacketIdx> {
        self.queues[place].iter().map(|queue| queue.head)
    }
}
