//! Credits: free bytes in the input buffer at the far end of a link, by lane. Only this file changes them, and, of lanes with
//! priority flow control, [`pauses`](super::pauses) the bytes that are not free; a running port and what
//! is in flight (`port/credits.rs`) take and return them.
//!
//! One invariant, which [`laws`](super::laws) checks: for each link and lane, credits held, credits on their way back, and
//! bytes on the wire or in the buffer add up to the lane's buffer.
//!
//! With `port_buffer` shared dynamically, every lane has one full packet reserved, and a pool is shared. A lane's buffer is then
//! the most that it can have: its reserved part and all of the pool. Its bytes beyond the reserved part are in the pool, so
//! that what a lane can start follows from the credits held by all lanes, and there is nothing else to book. The second
//! invariant: the bytes in the pool, over all lanes, never exceed it.
//!
//! A packet takes credits when it starts on a link and returns them when it has left the buffer at the far end; they arrive one
//! link latency later. A port absorbs what has arrived only when a lane runs short: that changes no decision, and most decisions
//! need not look.

use super::fabric::Fabric;
use super::index::LaneIdx;
use crate::ids::TrafficId;
use crate::units::Instant;

/// The credits of one lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credits {
    /// Free bytes in the buffer at the far end, as far as the port has absorbed returned credits.
    held: u32,
    /// Returned credits that will all have arrived by `pending_by`, and whose exact time makes no difference.
    pending: u32,
    pending_by: Instant,
}

impl Credits {
    /// An empty buffer of this size at the far end.
    pub const fn new(buffer: u32) -> Self {
        Self { held: buffer, pending: 0, pending_by: Instant::ZERO }
    }

    /// Held and pending, for the law.
    pub const fn booked(&self) -> u64 {
        self.held as u64 + self.pending as u64
    }

    /// The bytes of a lane in the pool: those beyond its reserved part. All that has been absorbed counts as returned.
    pub const fn pooled(&self, fabric: &Fabric) -> u32 {
        (fabric.lane_buffer - self.held).saturating_sub(fabric.full)
    }

    /// Free bytes at the far end, as far as the port knows.
    #[inline(always)]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// A packet starts.
    #[inline(always)]
    pub const fn take(&mut self, bytes: u32) {
        self.held -= bytes;
    }

    /// Credits have arrived.
    pub const fn give(&mut self, bytes: u32) {
        self.held += bytes;
    }

    /// Absorbs pending credits that have arrived for certain. Returns whether there were any.
    #[inline]
    pub fn absorb_pending(&mut self, now: Instant) -> bool {
        // Branchless: a branch on whether any have arrived would be unpredictable.
        let arrived = if now >= self.pending_by { self.pending } else { 0 };
        self.held += arrived;
        self.pending -= arrived;
        arrived > 0
    }

    /// Credits that will have arrived by `by` are returned, in the window that opened at `opening`. Returns whether the lane
    /// keeps them as pending: it does if it holds `sufficient` credits, pending ones not counted. Then it cannot run short
    /// before they arrive, whatever it sends until then (see
    /// [`Conditions::sufficient`](super::conditions::Conditions::sufficient)), so that the exact time of their arrival
    /// makes no difference.
    #[inline(always)]
    pub fn return_pending(&mut self, bytes: u32, by: Instant, opening: Instant, sufficient: u32) -> bool {
        self.absorb_pending(opening);
        let kept = self.held >= sufficient;
        if kept {
            self.pending += bytes;
            self.pending_by = self.pending_by.max(by);
        }
        kept
    }
}

/// Credits on their way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditReturn {
    /// When they arrive.
    pub time: Instant,
    pub bytes: u32,
    /// The job of the packet that returns them.
    pub traffic: TrafficId,
    pub lane: LaneIdx,
}

/// Credits on their way to a port whose lanes may need them the instant they arrive, and those that have arrived and were not
/// needed yet.
#[derive(Clone, Debug, Default)]
pub(super) struct CreditReturns {
    /// In no order.
    list: Vec<CreditReturn>,
    /// The port runs when they arrive: it is stalled, or a stall is to be charged to the first of them.
    pub wakes: bool,
    /// Lanes that lacked credits in a stall that has not been charged yet: the credits that arrive next at one of them are
    /// charged with it.
    pub uncharged: u64,
}

impl CreditReturns {
    /// Hands lane and bytes of the credits that have arrived by `now` to `give`. Returns whether there were any.
    pub fn absorb(&mut self, now: Instant, mut give: impl FnMut(LaneIdx, u32)) -> bool {
        let before = self.list.len();
        let mut place = 0;
        while let Some(&credit) = self.list.get(place) {
            if credit.time > now {
                place += 1;
            } else {
                give(credit.lane, credit.bytes);
                self.list.swap_remove(place);
            }
        }
        self.list.len() < before
    }

    /// The job whose credits arrived first at any of `lanes` (a set of bits), if any have arrived by `now`. Credits of one
    /// instant are ordered by lane, then job.
    pub fn first_by(&self, now: Instant, lanes: u64) -> Option<TrafficId> {
        let arrived = self.list.iter().filter(|credit| credit.time <= now && lanes & credit.lane.bit() != 0);
        arrived.map(|credit| (credit.time, credit.lane, credit.traffic)).min().map(|(.., traffic)| traffic)
    }

    /// The same with a pool: the job of the first credits that any of `stalled` gains from, which are its own, and those of
    /// another lane that go to the pool. `pooled`: the bytes of each lane in the pool.
    #[cold]
    pub fn first_useful(&self, now: Instant, stalled: u64, mut pooled: Vec<u32>) -> Option<TrafficId> {
        let mut arrived: Vec<&CreditReturn> = self.list.iter().filter(|credit| credit.time <= now).collect();
        arrived.sort_unstable_by_key(|credit| (credit.time, credit.lane, credit.traffic));
        let useful = arrived.into_iter().find(|credit| {
            let pooled = &mut pooled[credit.lane.index()];
            let to_pool = credit.bytes.min(*pooled);
            *pooled -= to_pool;
            stalled & credit.lane.bit() != 0 || stalled != 0 && to_pool > 0
        });
        useful.map(|credit| credit.traffic)
    }

    /// When the next credits arrive at any of `lanes`, of a port that has absorbed all that have arrived.
    pub fn next(&self, lanes: u64) -> Option<Instant> {
        let theirs = self.list.iter().filter(|credit| lanes & credit.lane.bit() != 0);
        theirs.map(|credit| credit.time).min()
    }

    /// Lane and bytes of all, for the law.
    pub fn each(&self) -> impl Iterator<Item = (LaneIdx, u64)> {
        self.list.iter().map(|credit| (credit.lane, u64::from(credit.bytes)))
    }

    /// Adds credits. To make room for them those that have arrived by `opening`, when the open window opened, are handed to `give`;
    /// unless the port is to run when credits arrive, and absorbs them itself.
    pub fn push(&mut self, credit: CreditReturn, opening: Instant, give: impl FnMut(LaneIdx, u32)) {
        const ROOM: usize = 8;
        if self.list.len() == self.list.capacity() {
            if !self.wakes {
                self.absorb(opening, give);
            }
            if 2 * self.list.len() >= self.list.capacity() {
                self.list.reserve_exact(ROOM);
            }
        }
        self.list.push(credit);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::ids::{HostId, LinkId};
    use crate::network::testing::{Senders, plan};
    use crate::network::{Network, Parameters, Partition, Plan, PortBuffer, Sharing, port::Lane};
    use crate::units::Bytes;
    use crate::{observe, routing, topology};

    #[test]
    fn a_port_waits_for_the_first_credits_of_the_lanes_that_lack_some() {
        let credit =
            |time, lane| CreditReturn { time: Instant(time), bytes: 64, traffic: TrafficId(0), lane: LaneIdx(lane) };
        let returns =
            CreditReturns { list: vec![credit(50, 0), credit(30, 1), credit(40, 0)], wakes: true, uncharged: 0 };
        let next = [0b01, 0b10, 0b11, 0b100].map(|lanes| returns.next(lanes));
        assert_eq!(next, [Some(40), Some(30), Some(30), None].map(|time: Option<u64>| time.map(Instant)));
    }

    /// A fabric of one switch, with a memory of three full packets and 10 bytes for two lanes: the pool has 4132 bytes.
    fn shared() -> Network {
        let fabric = json!({ "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 100_000_000_000_u64 });
        let graph = Arc::new(topology::build("fat_tree", &fabric).unwrap());
        let memory = PortBuffer { size: Bytes(3 * 4122 + 10), sharing: Sharing::Dynamic, ..Default::default() };
        let routing = routing::build("d_mod_k", &json!({}), &graph).unwrap().into();
        let parameters = Parameters { port_buffer: Some(memory), ..Default::default() };
        let plan = Plan { parameters, ..plan(&graph, routing, 2) };
        Network::new(&plan, Partition::new(&graph, 1))
    }

    #[test]
    fn a_stall_ends_with_the_first_credits_that_its_lanes_gain_from() {
        let network = shared();
        let fabric = &network.shards[0].config.fabric;
        // Lane 0 has 100 bytes in the pool, lane 1 has none.
        let pooled = [4132 - 100, 8254 - 500].map(|held| Credits::new(held).pooled(fabric)).to_vec();
        let credit = |time, lane, traffic, bytes| CreditReturn {
            time: Instant(time),
            bytes,
            traffic: TrafficId(traffic),
            lane: LaneIdx(lane),
        };
        let returns = |list| CreditReturns { list, wakes: true, uncharged: 0 };
        let own = returns(vec![credit(60, 1, 9, 64), credit(50, 1, 8, 64), credit(90, 0, 7, 64)]);
        let first = |returns: &CreditReturns, now, stalled| {
            returns.first_useful(Instant(now), stalled, pooled.clone()).map(|traffic| traffic.0)
        };
        // Credits of lane 1 refill its reserved part: lane 0 gains nothing from them.
        assert_eq!([first(&own, 70, 0b10), first(&own, 70, 0b01), first(&own, 90, 0b01)], [Some(8), None, Some(7)]);
        // The first of lane 0's return all that it has in the pool; nothing is left for the second.
        let pool = returns(vec![credit(70, 0, 2, 64), credit(50, 0, 1, 100)]);
        assert_eq!([first(&pool, 49, 0b10), first(&pool, 50, 0b10), first(&pool, 70, 0)], [None, Some(1), None]);
        let reserved = returns(vec![credit(70, 0, 2, 64)]);
        let pooled = [4132, 8254].map(|held| Credits::new(held).pooled(fabric)).to_vec();
        assert_eq!(reserved.first_useful(Instant(70), 0b10, pooled), None);
    }

    #[test]
    fn a_pool_from_which_more_is_taken_than_it_has_breaks_a_law() {
        let mut network = shared();
        network.check_laws().unwrap();
        // Each lane has 2100 bytes in the pool of 4132.
        network.shards[0].lanes[..2].fill(Lane::new(4132 - 2100));
        let law = network.check_laws().unwrap_err().to_string();
        assert!(law.contains("link 0: 4200 bytes are taken from a pool of 4132"), "{law}");
    }

    /// One packet of 4122 bytes over one switch: 100 Gbit/s, links of 200 ns, 100 ns for the switch. Its credits arrive at the NIC
    /// at 829.76 ns and at the switch at 1029.76 ns, which is what the occupancy of adaptive routing follows.
    #[test]
    fn occupancy_falls_in_the_window_in_which_credits_arrive() {
        let fabric =
            json!({ "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 100_000_000_000_u64, "latency": 200_000 });
        let graph = Arc::new(topology::build("fat_tree", &fabric).unwrap());
        let routing = routing::build("adaptive", &json!({}), &graph).unwrap().into();
        let observe = observe::Parameters { departures: true, ..Default::default() };
        let plan = Plan { observe, ..plan(&graph, routing, 1) };
        let mut network = Network::new(&plan, Partition::new(&graph, 1));
        let senders = Senders(vec![Some((HostId(1), Bytes(4096))), None]);
        network.wake(HostId(0), Instant::ZERO);
        network.run_until(Instant(u64::MAX >> 1), u64::MAX, &mut [senders]).unwrap();
        network.check_laws().unwrap();
        let links: Vec<u32> = network.departures().iter().map(|departure| departure.link).collect();
        let [nic, switch] = links[..] else { panic!("two links, not {links:?}") };
        let calendar = &network.shards[0].in_flight.calendar;
        let [at_nic, at_switch] = [829_760, 1_029_760].map(|time| calendar.window_of(Instant(time)));
        assert!(at_nic < at_switch);
        // The ports have far more credits than they need, so theirs are pending; none may count before it has arrived.
        for (link, time) in [(nic, 829_760), (switch, 1_029_760)] {
            let mut credits = network.shards[0].lanes[link as usize].credits;
            assert!(!credits.absorb_pending(Instant(time - 1)) && credits.absorb_pending(Instant(time)));
        }
        let mut used = |window: u64, link: u32| {
            network.shards[0].in_flight.occupancy.open(window);
            network.shards[0].in_flight.occupancy.view(LinkId(0), &[0, 1]).ports.all[link as usize]
        };
        assert_eq!([used(at_nic, nic), used(at_nic + 1, nic)], [4122, 0]);
        assert_eq!([used(at_switch, switch), used(at_switch + 1, switch)], [4122, 0]);
    }
}
