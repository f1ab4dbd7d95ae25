//! Arbitration: which lane sends when the link is free.

use super::queue::PortQueues;
use super::{ActivePort, kind};
use crate::ids::VirtualLane;
use crate::network::features::Instance;
use crate::network::index::{LaneIdx, PacketIdx};
use crate::qos::arbiter::Lanes;
use crate::units::{Bytes, Instant};

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// The link is free: the arbiter picks a lane whose first packet has credits, and the packet leaves its queue. If there is
    /// none, the port is stalled.
    #[inline]
    pub(super) fn arbitrate(&mut self, now: Instant) -> Option<(LaneIdx, PacketIdx)> {
        if self.config.has::<I>().pfc && !self.down() {
            self.absorb_credits(now);
        }
        let mut ready = self.ready(now);
        if ready != self.port.waiting || self.port.unusual != 0 {
            if self.down() {
                // Nothing waits for credits here any more.
                ready = self.port.waiting;
                self.settle_stall();
            } else if self.absorb_credits(now) {
                ready = self.ready(now);
            }
        }
        if KIND != kind::NIC && self.config.has::<I>().marks {
            self.note_shortage(ready, now);
        }
        if ready == 0 {
            self.port.stalled = true;
            self.port.busy_until = now;
            self.in_flight.returns[self.number].wakes = true;
            return None;
        }
        let lane = self.pick(ready, now);
        Some((lane, self.dequeue(lane)))
    }

    /// The arbiter has granted a packet, which is in no queue: it starts. At a NIC the one that follows it joins the queue.
    #[inline(always)]
    pub(super) fn send(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        if KIND != kind::NIC {
            if self.config.has::<I>().marks {
                self.mark(lane, packet, now);
            }
            self.start(lane, packet, now);
            return;
        }
        if self.paces() {
            self.start_paced(lane, packet, now);
            return;
        }
        let next = self.next_of(packet);
        self.start(lane, packet, now);
        if next.is_some() {
            self.follow(next);
        }
    }

    /// A packet that has been taken from its queue starts: on the link, or, if that is down, nowhere.
    #[inline(always)]
    pub(in crate::network) fn start(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        if self.down() {
            self.lose_started(lane, packet, now);
        } else if self.config.has::<I>().pfc && self.expired(lane, now) {
            self.drop_paused(lane, packet, now);
        } else {
            if KIND != kind::NIC && self.config.has::<I>().telemetry {
                self.write_telemetry(packet, now);
            }
            self.transmit(lane, packet, now);
        }
    }

    /// The lanes whose first packet has enough credits, and is not paused.
    #[inline]
    fn ready(&self, now: Instant) -> u64 {
        let (mut ready, mut waiting) = (0, self.port.waiting);
        if self.config.has::<I>().pfc {
            waiting &= !self.paused(now);
        }
        let taken = self.pool_taken();
        while waiting != 0 {
            let lane = LaneIdx::first_of(waiting);
            waiting &= waiting - 1;
            // The packet's size matters only if the lane has fewer credits than a full packet.
            let available = self.available(lane, taken);
            let fits = available >= self.config.fabric.full || self.first(lane).bytes <= available;
            ready |= u64::from(fits) << lane.0;
        }
        ready
    }

    /// The arbiter picks among the lanes that are ready.
    #[inline(always)]
    fn pick(&mut self, ready: u64, now: Instant) -> LaneIdx {
        let lowest = LaneIdx::first_of(ready);
        if ready == lowest.bit() {
            let bytes = self.first(lowest).bytes;
            self.grant_single(lowest, bytes, now);
            lowest
        } else if self.config.fabric.channels {
            self.pick_channel(ready, now)
        } else {
            #[allow(clippy::cast_possible_truncation, reason = "virtual lanes, at most 32")]
            let lane = self.ask_arbiter(ready as u32, ready, now);
            let (vl, lane) = (lane, LaneIdx(lane.0));
            self.grant(vl, lane, now);
            lane
        }
    }

    /// The arbiter picks a virtual lane; of its channels the one whose first packet has waited longest sends.
    fn pick_channel(&mut self, ready: u64, now: Instant) -> LaneIdx {
        let config = self.config;
        let among = |vl| config.fabric.lanes_of(vl).filter(|lane| ready & lane.bit() != 0);
        let vls = (0..config.fabric.virtual_lanes)
            .filter(|vl| among(VirtualLane(*vl)).next().is_some())
            .fold(0, |set, vl| set | 1 << vl);
        let vl = self.ask_arbiter(vls, ready, now);
        let lane =
            among(vl).min_by_key(|lane| self.first(*lane).time).expect("invariant: the picked virtual lane is ready");
        self.grant(vl, lane, now);
        lane
    }

    /// The arbiter picks a virtual lane among those of a set, of which these lanes are ready, and can look at the queues.
    #[inline]
    fn ask_arbiter(&mut self, vls: u32, ready: u64, now: Instant) -> VirtualLane {
        let Self { number, config, in_flight, lanes, arbiter, .. } = self;
        let queues =
            PortQueues::<KIND> { lanes: &lanes[self.base..][..config.fabric.lanes], in_flight, config, ready, now };
        let picked = arbiter.pick(number.index(), Lanes(vls), &queues, now);
        assert!(
            picked.0 < 32 && vls >> picked.0 & 1 == 1,
            "the arbiter has picked {picked:?}, which was not among the lanes offered"
        );
        picked
    }

    /// The arbiter accounts the first packet of a lane to its virtual lane.
    #[inline]
    fn grant(&mut self, vl: VirtualLane, lane: LaneIdx, now: Instant) {
        let bytes = self.first(lane).bytes;
        self.arbiter.sent(self.number.index(), vl, Bytes(u64::from(bytes)), now);
    }

    /// The arbiter accounts a packet of the only lane that is ready.
    #[inline(always)]
    pub(super) fn grant_single(&mut self, lane: LaneIdx, bytes: u32, now: Instant) {
        if self.config.fabric.lanes > 1 {
            let vl = if self.config.fabric.channels { self.config.fabric.vl_of(lane) } else { VirtualLane(lane.0) };
            self.arbiter.serve_alone(self.number.index(), vl, Bytes(u64::from(bytes)), now);
        }
    }
}
