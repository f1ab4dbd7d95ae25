//! Marks of congestion control: a switch's output marks packets when they start, by the bytes in the queue of their lane. See
//! [`Marking`]. It writes telemetry into those whose transport asks for it.

use super::{ActivePort, LaneMarking, each_lane, kind};
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::network::packet::Packet;
use crate::network::transport::{LinkTelemetry, Marking, MarkingOutputs};
use crate::rng::draw;
use crate::units::{Bytes, Instant};

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    fn marking(&mut self, lane: LaneIdx) -> &mut LaneMarking {
        &mut self.in_flight.marking[self.base + lane.index()]
    }

    /// A packet that has left its queue starts at `now`: the switch counts it, and writes into it if its transport asks for that.
    #[cold]
    pub(super) fn write_telemetry(&mut self, packet: PacketIdx, now: Instant) {
        let InFlight { packets, tags, telemetry, marking, .. } = &mut *self.in_flight;
        let bytes = packets[packet].bytes;
        let job = self.config.fabric.job_of(packets[packet].traffic);
        let sent = telemetry.count(self.number, bytes);
        let asked = self.config.fabric.feedback_of(job).is_some_and(|feedback| feedback.telemetry);
        let tag = &mut tags[packet];
        if asked && !tag.control {
            let queued = marking[self.base..][..self.config.fabric.lanes].iter().map(|lane| lane.queued).sum();
            let link = LinkTelemetry {
                link: self.config.naming.link_of(self.number),
                queued: Bytes(queued),
                sent,
                at: now,
                bandwidth: self.config.conditions.wire(self.port.wire).bandwidth,
            };
            tag.telemetry = telemetry.insert(link, tag.telemetry);
        }
    }

    /// A packet joins the queue of a lane.
    #[cold]
    pub(super) fn count_joined(&mut self, lane: LaneIdx, packet: PacketIdx) {
        let bytes = u64::from(self.in_flight.packets[packet].bytes);
        self.marking(lane).queued += bytes;
    }

    /// A packet leaves the queue of a lane.
    #[cold]
    pub(in crate::network) fn count_left(&mut self, lane: LaneIdx, packet: PacketIdx) {
        let bytes = u64::from(self.in_flight.packets[packet].bytes);
        self.marking(lane).queued -= bytes;
    }

    /// A decision at `now`: of the lanes that wait, these are ready, and the others lack credits.
    #[cold]
    pub(super) fn note_shortage(&mut self, ready: u64, now: Instant) {
        for lane in each_lane(self.port.waiting) {
            let marking = &mut self.in_flight.marking[self.base + lane.index()];
            let short = ready & lane.bit() == 0;
            if short || marking.short {
                marking.short_until = now;
                marking.was_short = true;
            }
            marking.short = short;
        }
    }

    /// A packet that has left its queue is about to start at `now`: marks it if its transport has that.
    #[cold]
    pub(super) fn mark(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        let config = self.config;
        let Packet { bytes, time: joined, traffic, .. } = self.in_flight.packets[packet];
        let bytes = u64::from(bytes);
        let feedback = config.fabric.feedback_of(config.fabric.job_of(traffic));
        let Some(marking) = feedback.and_then(|feedback| feedback.marking.as_ref()) else { return };
        let &Marking { outputs, from, to, probability, above, smallest } = marking;
        if bytes < smallest.0 || self.in_flight.is_control(packet) {
            return;
        }
        let link = config.naming.link_of(self.number);
        let now_and_whole =
            [config.conditions.wire(self.port.wire).bandwidth, config.fabric.graph.link(link).bandwidth];
        let buffer = u64::from(config.fabric.buffer_of(lane));
        let lane = *self.marking(lane);
        let root = match outputs {
            MarkingOutputs::All => true,
            MarkingOutputs::Roots => KIND == kind::TO_HOST || !lane.was_short || joined > lane.short_until,
            MarkingOutputs::ToHosts => KIND == kind::TO_HOST,
            MarkingOutputs::ToSwitches => KIND != kind::TO_HOST,
        };
        let queue = lane.queued + bytes;
        // A packet alone is not a queue.
        let from = from.bytes(buffer, now_and_whole).max(u64::from(config.fabric.full));
        if !root || queue <= from {
            return;
        }
        let to = to.bytes(buffer, now_and_whole);
        let chance = match queue <= to {
            true => u64::from(probability) * (queue - from) / (to - from),
            false if above == u32::MAX => u64::MAX,
            false => u64::from(above),
        };
        if u64::from(draw(now.0, link.0)) >= chance {
            return;
        }
        self.in_flight.tags[packet].marked = true;
        self.in_flight.totals.packets_marked += 1;
    }
}
