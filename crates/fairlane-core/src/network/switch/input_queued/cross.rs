//! A packet crosses from an input to an output.

use super::crossbar::Event;
use super::window::ActiveSwitch;
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::network::mail::Returned;
use crate::network::packet::Packet;
use crate::network::shard::Shard;
use crate::units::{Bytes, Instant};

impl<I: Instance> ActiveSwitch<'_, I> {
    /// The first packet from an input's lane to an output starts to cross.
    pub(super) fn cross(&mut self, input: u32, output: u32, lane: LaneIdx, now: Instant) {
        let index = self.dequeue(input, output, lane, now);
        let Shard { config, in_flight, .. } = &*self.shard;
        let packet = &in_flight.packets[index];
        let (bytes, traffic, arrived) = (packet.bytes, packet.traffic, packet.time);
        let (came, port) = (packet.came.link(), packet.credited);
        // The tail of a packet that cuts through follows its head at the rate of the link that it came over.
        let tail =
            if config.fabric.stores_packets() { arrived } else { arrived + config.conditions.wire_time(came, bytes) };
        let end = tail.max(now + self.crossbar.rate.serialization(Bytes(u64::from(bytes))));
        let wire_time = config.conditions.wire_time(self.crossbar.link_of(output), bytes);
        let join = now.max(Instant(end.0.saturating_sub(wire_time.0)));
        let room = output as usize * config.fabric.lanes + packet.lane.index();
        self.crossbar.rooms[room].free -= bytes;
        for line in [&mut self.crossbar.inputs[input as usize].line, &mut self.crossbar.outputs[output as usize]] {
            (line.busy_until, line.traffic) = (end, Some(traffic));
        }
        self.crossbar.schedule(end, Event::Crossed);
        // It joins the queue of its port as if it had come later by what it has waited here: both waits count.
        self.shard.in_flight.packets[index].time = join - (now - arrived);
        self.port(output).return_upstream(came, Returned { port, lane, traffic, bytes, freed: end });
        if join > now {
            self.crossbar.schedule(join, Event::Join { packet: index });
        } else {
            self.join(index, now);
        }
    }

    /// Takes the first packet from an input's lane to an output.
    fn dequeue(&mut self, input: u32, output: u32, lane: LaneIdx, now: Instant) -> PacketIdx {
        let place = input as usize * self.shard.config.fabric.lanes + lane.index();
        let packets = &self.shard.in_flight.packets;
        let to = |packet: PacketIdx| self.crossbar.output_of(&packets[packet]);
        let queues = &self.crossbar.queues[place];
        let at = queues.iter().position(|queue| to(queue.head) == output).expect("invariant: a queue has requested");
        let index = queues[at].head;
        let Packet { next, traffic, lane: room, .. } = packets[index];
        let room = &self.crossbar.rooms[output as usize * self.shard.config.fabric.lanes + room.index()];
        // The thing that it lacked last: of things released at the same time the output, then the input.
        let (from, to) = (&self.crossbar.inputs[input as usize].line, &self.crossbar.outputs[output as usize]);
        let lacked = [(room.released, room.traffic), (from.busy_until, from.traffic), (to.busy_until, to.traffic)];
        let released = lacked.into_iter().filter_map(|(time, traffic)| traffic.map(|traffic| (time, traffic)));
        let aggressor = released.max_by_key(|&(time, _)| time).map_or(traffic, |(_, traffic)| traffic);
        let port = self.crossbar.port_of(output);
        let queue = &mut self.crossbar.queues[place][at];
        self.shard.observation.left_input::<I>(port, queue, traffic, aggressor, now);
        queue.head = next;
        if next.is_none() {
            self.crossbar.queues[place].swap_remove(at);
            if self.crossbar.queues[place].is_empty() {
                self.crossbar.inputs[input as usize].waiting &= !(lane.bit());
            }
        }
        index
    }
}
