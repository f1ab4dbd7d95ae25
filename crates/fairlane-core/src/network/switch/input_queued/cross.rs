//! A packet crosses from an input to an output.

use super::crossbar::Event;
use super::window::ActiveSwitch;
use crate::kernel::NONE;
use crate::network::mail::Returned;
use crate::network::probe::Probe;
use crate::network::shard::Shard;
use crate::units::Bytes;

impl<P: Probe> ActiveSwitch<'_, P> {
    /// The first packet from an input's lane to an output starts to cross.
    pub(super) fn cross(&mut self, input: u32, output: u32, lane: u8, now: u64) {
        let record = self.dequeue(input, output, lane, now);
        let Shard { config, in_flight, .. } = &*self.shard;
        let packet = &in_flight.packets[record];
        let (bytes, job, arrived) = (packet.bytes, packet.job, packet.time);
        let came = (packet.came.link(), packet.credited);
        // The tail of a packet that cuts through follows its head at the rate of the link that it came over.
        let tail =
            if config.fabric.stores_packets() { arrived } else { arrived + config.conditions.wire_time(came.0, bytes) };
        let end = tail.max(now + self.crossbar.rate.serialization(Bytes(u64::from(bytes))).0);
        let join = now.max(end.saturating_sub(config.conditions.wire_time(self.crossbar.first_link + output, bytes)));
        let room = output as usize * config.fabric.lanes + usize::from(packet.lane);
        self.crossbar.rooms[room].free -= bytes;
        for line in [&mut self.crossbar.inputs[input as usize].line, &mut self.crossbar.outputs[output as usize]] {
            (line.busy_until, line.job) = (end, Some(job));
        }
        self.crossbar.schedule(end, Event::Crossed);
        // It joins the queue of its port as if it had come later by what it has waited here: both waits count.
        self.shard.in_flight.packets[record].time = join - (now - arrived);
        self.port(output).return_upstream(came, Returned { port: 0, lane, job, bytes, freed: end });
        if join > now {
            self.crossbar.schedule(join, Event::Join { record });
        } else {
            self.join(record, now);
        }
    }

    /// Takes the first packet from an input's lane to an output.
    fn dequeue(&mut self, input: u32, output: u32, lane: u8, now: u64) -> u32 {
        let place = input as usize * self.shard.config.fabric.lanes + usize::from(lane);
        let packets = &self.shard.in_flight.packets;
        let to = |record: u32| self.crossbar.output_of(&packets[record]);
        let queues = &self.crossbar.queues[place];
        let at = queues.iter().position(|queue| to(queue.head) == output).expect("invariant: a queue has requested");
        let record = queues[at].head;
        let (next, job, room) = (packets[record].next, packets[record].job, packets[record].lane);
        let room = &self.crossbar.rooms[output as usize * self.shard.config.fabric.lanes + usize::from(room)];
        // What it lacked last: of things released at the same time the output, then the input.
        let (from, to) = (&self.crossbar.inputs[input as usize].line, &self.crossbar.outputs[output as usize]);
        let lacked = [(room.released, room.job), (from.busy_until, from.job), (to.busy_until, to.job)];
        let released = lacked.into_iter().filter_map(|(time, job)| job.map(|job| (time, job)));
        let aggressor = released.max_by_key(|&(time, _)| time).map_or(job, |(_, job)| job);
        let queue = &mut self.crossbar.queues[place][at];
        self.probe.left_input(self.crossbar.first + output, queue, job, aggressor, now);
        queue.head = next;
        if next == NONE {
            self.crossbar.queues[place].swap_remove(at);
            if self.crossbar.queues[place].is_empty() {
                self.crossbar.inputs[input as usize].waiting &= !(1 << lane);
            }
        }
        record
    }
}
