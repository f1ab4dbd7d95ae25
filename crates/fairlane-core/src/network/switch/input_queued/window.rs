//! An input-queued switch through one window, together with its output ports.

use std::marker::PhantomData;

use super::crossbar::{Crossbar, Event};
use crate::ids::LinkId;
use crate::kernel::Indexed;
use crate::network::features::Instance;
use crate::network::in_flight::SWITCHES;
use crate::network::index::{PacketIdx, PortIdx};
use crate::network::port::{ActivePort, QueueEntry, kind};
use crate::network::shard::Shard;
use crate::topology::Vertex;
use crate::units::Instant;

/// A switch that runs through the open window, with all that it touches.
pub(super) struct ActiveSwitch<'a, I: Instance> {
    pub crossbar: &'a mut Crossbar,
    pub input_of: &'a Indexed<LinkId, u32>,
    pub shard: &'a mut Shard,
    pub instance: PhantomData<I>,
    /// Outputs at which something has happened at this instant, once or more often.
    pub due: Vec<u32>,
    /// Packets that could cross at this instant.
    pub requests: Vec<crate::network::allocator::CrossbarRequest>,
}

impl Shard {
    /// Runs the switches that have something to do in the open window: packets arrive, something was scheduled, or credits
    /// arrive at one of `ports`.
    pub(in crate::network) fn run_crossbars<I: Instance>(&mut self, ports: [&[PortIdx]; 2], until: Instant) {
        let mut crossbars = std::mem::take(&mut self.crossbars);
        let mut switches = std::mem::take(&mut self.scratch.switches);
        for &port in ports.into_iter().flatten() {
            let Vertex::Switch(switch) = self.config.fabric.graph.link(self.config.naming.link_of(port)).from else {
                continue;
            };
            let state = &self.ports[port];
            let crossbar = &mut crossbars.each[switch];
            if state.stalled
                && let Some(time) = self.in_flight.next_ready::<I>(&self.config, port, state.waiting)
            {
                crossbar.schedule(time, Event::Credit { output: crossbar.output_at(port) });
                switches.push(switch);
            }
        }
        switches.sort_unstable();
        switches.dedup();
        let (mut due, mut requests) = (Vec::new(), Vec::new());
        for &switch in &switches {
            let (crossbar, input_of) = (&mut crossbars.each[switch], &crossbars.input_of);
            let mut active =
                ActiveSwitch { crossbar, input_of, shard: self, instance: PhantomData::<I>, due, requests };
            let next = active.run(until);
            (due, requests) = (active.due, active.requests);
            if let Some(time) = next {
                self.in_flight.calendar.wake(SWITCHES, switch, time);
            }
        }
        self.scratch.switches = switches;
        self.crossbars = crossbars;
    }
}

impl<I: Instance> ActiveSwitch<'_, I> {
    /// Runs the switch up to `until`. Returns when something happens next.
    fn run(&mut self, until: Instant) -> Option<Instant> {
        while let Some(now) = self.crossbar.next() {
            if now >= until {
                return Some(now);
            }
            // A packet without bytes crosses in no time: then the allocator runs again.
            while self.crossbar.next() == Some(now) {
                while let Some(event) = self.crossbar.take(now) {
                    self.happen(event, now);
                }
                if std::mem::take(&mut self.crossbar.changed) {
                    self.allocate(now);
                }
            }
            while let Some(output) = self.due.pop() {
                self.decide(output, now);
            }
        }
        None
    }

    fn happen(&mut self, event: Event, now: Instant) {
        match event {
            Event::Arrive { packet } => self.arrive(packet, now),
            Event::Crossed => self.crossbar.changed = true,
            Event::Join { packet } => self.join(packet, now),
            Event::Left { output, lane, bytes, traffic } => {
                let lanes = self.shard.config.fabric.lanes;
                let room = &mut self.crossbar.rooms[output as usize * lanes + lane.index()];
                room.free += bytes;
                (room.released, room.traffic) = (now, Some(traffic));
                self.crossbar.changed |= bytes > 0;
                self.due.push(output);
            }
            Event::Credit { output } => {
                if self.port(output).credits_arrived(now) {
                    self.due.push(output);
                }
            }
        }
    }

    /// An output port, to be run at this instant.
    pub(super) fn port(&mut self, output: u32) -> ActivePort<'_, I, { kind::BUFFERED }> {
        self.shard.active_port(self.crossbar.port_of(output))
    }

    /// A packet joins the queue of its output port.
    pub(super) fn join(&mut self, packet: PacketIdx, now: Instant) {
        let output = self.output_of(packet);
        self.port(output).join(packet, now);
        self.due.push(output);
    }

    /// The output to which a packet goes.
    pub(super) fn output_of(&self, packet: PacketIdx) -> u32 {
        self.crossbar.output_of(&self.shard.in_flight.packets[packet])
    }

    /// If its link is free, an output port picks a lane and sends.
    fn decide(&mut self, output: u32, now: Instant) {
        let mut port = self.port(output);
        let Some(sent) = port.decide(now) else { return };
        let (number, busy_until) = (port.number, port.port.busy_until);
        let waiting = port.port.waiting;
        match sent {
            Some((lane, QueueEntry { bytes, traffic, .. })) => {
                self.crossbar.schedule(busy_until, Event::Left { output, lane, bytes, traffic });
            }
            None => {
                let Shard { config, in_flight, .. } = &*self.shard;
                if let Some(time) = in_flight.next_ready::<I>(config, number, waiting) {
                    self.crossbar.schedule(time, Event::Credit { output });
                }
            }
        }
    }

    /// A packet joins the queue of its input.
    fn arrive(&mut self, index: PacketIdx, now: Instant) {
        let output = self.output_of(index);
        let Shard { config, in_flight, .. } = &mut *self.shard;
        let packet = &mut in_flight.packets[index];
        packet.time = now;
        packet.next = PacketIdx::NONE;
        let (lane, traffic) = (packet.held, packet.traffic);
        let input = self.input_of[packet.came.link()] as usize;
        let params = config.fabric.input_queued.as_ref().expect("invariant: the switch is input-queued");
        self.crossbar.inputs[input].waiting |= lane.bit();
        let queue = self.crossbar.queue(input * config.fabric.lanes + lane.index(), output, params.queues);
        let tail = std::mem::replace(&mut queue.tail, index);
        if tail.is_none() {
            queue.head = index;
        } else {
            in_flight.packets[tail].next = index;
        }
        self.shard.observation.joined_input::<I>(queue, traffic, now);
        self.crossbar.changed = true;
    }
}
