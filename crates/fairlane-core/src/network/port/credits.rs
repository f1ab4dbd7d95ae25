//! Credits of a port that runs: taken when a packet starts, returned when it has left the buffer at the far end.

use super::{ActivePort, Lane, UNCHARGED, each_lane, kind};
use crate::ids::{LinkId, TrafficId};
use crate::network::config::Config;
use crate::network::credits::CreditReturn;
use crate::network::fabric::Fabric;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{LaneIdx, PacketIdx, PortIdx};
use crate::network::mail::Returned;
use crate::network::partition::PortPlace;
use crate::units::Instant;

impl<I: Instance, const KIND: u8> ActivePort<'_, I, KIND> {
    /// A packet starts on the link, where its head arrives at `arrival`: takes its credits.
    #[inline(always)]
    pub fn take_credits(&mut self, lane: LaneIdx, bytes: u32, arrival: Instant) {
        if self.config.has::<I>().pfc && self.config.fabric.is_pfc(lane) {
            self.in_flight.pauses[self.base + lane.index()].send(arrival, bytes);
        } else {
            self.lanes[self.base + lane.index()].credits.take(bytes);
        }
        if self.config.fabric.adaptive {
            if KIND == kind::NIC {
                self.in_flight.occupancy.inject(self.number, lane, bytes);
            } else {
                self.in_flight.occupancy.start(self.number);
            }
        }
    }

    /// Bytes of the pool that all lanes have taken; 0 if there is none.
    #[inline(always)]
    pub fn pool_taken(&self) -> u32 {
        if self.config.has::<I>().pool { pool_taken(&self.lanes[self.base..], &self.config.fabric) } else { 0 }
    }

    /// The bytes that a lane can start now, if this much of the pool is taken: what is left of its reserved part and of the pool.
    #[inline(always)]
    pub fn available(&self, lane: LaneIdx, taken: u32) -> u32 {
        let credits = &self.lanes[self.base + lane.index()].credits;
        // The lane's own bytes in the pool are among those taken, and missing from what it holds.
        if self.config.has::<I>().pool {
            credits.held() + credits.pooled(&self.config.fabric) - taken
        } else {
            credits.held()
        }
    }

    /// Returns credits to a port of this shard.
    #[inline(always)]
    pub fn return_credits(&mut self, returned: &Returned) {
        self.in_flight.return_credits::<I>(self.config, self.lanes, returned, self.opening);
    }

    /// Returns credits to the port of the link that a packet came over.
    #[inline(always)]
    pub fn return_upstream(&mut self, link: LinkId, returned: Returned) {
        match PortPlace::named(returned.port, self.config.naming.shard) {
            Ok(_) => self.return_credits(&returned),
            Err(PortPlace { shard, port }) => {
                self.in_flight.return_to_shard(self.config, link, shard, Returned { port, ..returned });
            }
        }
    }

    /// Takes account of pauses up to `now`. Returns the traffic that is charged for an uncharged stall that one of them has ended: that of
    /// the packet whose departure was the reason; without one, that which the link carried last.
    #[cold]
    fn advance_pauses(&mut self, now: Instant) -> Option<TrafficId> {
        let uncharged = self.in_flight.returns[self.number].uncharged;
        let pauses = &mut self.in_flight.pauses[self.base..];
        let resumed = each_lane(self.config.fabric.pfc).filter_map(|lane| {
            let (time, traffic) = pauses[lane.index()].advance(now)?;
            (uncharged & lane.bit() != 0).then_some((time, lane, traffic))
        });
        let (.., traffic) = resumed.min_by_key(|(time, lane, _)| (*time, *lane))?;
        Some(traffic.unwrap_or(self.port.traffic))
    }

    /// The lanes that are paused at `now`, and whose watchdog drops nothing.
    #[cold]
    pub(super) fn paused(&self, now: Instant) -> u64 {
        let pauses = &self.in_flight.pauses[self.base..];
        let paused = |lane: &LaneIdx| pauses[lane.index()].paused() && !pauses[lane.index()].expired(now);
        each_lane(self.config.fabric.pfc).filter(paused).fold(0, |set, lane| set | lane.bit())
    }

    /// Whether the watchdog drops the packets of a lane at `now`.
    #[cold]
    pub(super) fn expired(&self, lane: LaneIdx, now: Instant) -> bool {
        self.config.fabric.is_pfc(lane) && self.in_flight.pauses[self.base + lane.index()].expired(now)
    }

    /// The watchdog drops a packet that has been taken from the queue of a lane.
    #[cold]
    pub(super) fn drop_paused(&mut self, lane: LaneIdx, packet: PacketIdx, now: Instant) {
        self.in_flight.pauses[self.base + lane.index()].drop_packet();
        self.settle_stall();
        self.lose_started(lane, packet, now);
    }

    /// Absorbs the credits that have arrived by `now`. Returns whether there were any.
    pub fn absorb_credits(&mut self, now: Instant) -> bool {
        let resumed = if self.config.has::<I>().pfc { self.advance_pauses(now) } else { None };
        let lanes = &mut self.lanes[self.base..][..self.config.fabric.lanes];
        let mut arrived = false;
        for lane in each_lane(self.port.waiting) {
            arrived |= lanes[lane.index()].credits.absorb_pending(now);
        }
        let returns = &mut self.in_flight.returns[self.number];
        if I::COUNTERS
            && let Some(traffic) = if self.config.has::<I>().pool {
                returns.first_useful(now, returns.uncharged, pooled(lanes, &self.config.fabric).collect())
            } else if self.config.has::<I>().pfc {
                resumed
            } else {
                returns.first_by(now, returns.uncharged)
            }
        {
            returns.uncharged = 0;
            self.port.unusual &= !UNCHARGED;
            returns.wakes = self.port.stalled;
            self.observation.stall_ended_by::<I>(self.number, self.port, traffic);
        }
        returns.absorb(now, |lane, bytes| lanes[lane.index()].credits.give(bytes)) | arrived
    }
}

impl InFlight {
    /// When one of the lanes of a port that is stalled, of which these wait, may send next, as far as is known.
    #[inline(always)]
    pub fn next_ready<I: Instance>(&self, config: &Config, port: PortIdx, waiting: u64) -> Option<Instant> {
        if config.has::<I>().pfc {
            let pauses = &self.pauses[port.index() * config.fabric.lanes..];
            each_lane(waiting).filter_map(|lane| pauses[lane.index()].next()).min()
        } else {
            self.returns[port].next(config.awaited::<I>(waiting))
        }
    }

    /// Returns credits to a port of this shard. They arrive one link latency after the buffer is freed. Called in the window
    /// that opened at `opening`, or when mail is accepted at its end; they arrive after it, so no decision in it depends on
    /// them.
    #[inline(always)]
    pub fn return_credits<I: Instance>(
        &mut self,
        config: &Config,
        lanes: &mut [Lane],
        returned: &Returned,
        opening: Instant,
    ) {
        let &Returned { port, lane, traffic, bytes, freed } = returned;
        let credits = &mut lanes[port.index() * config.fabric.lanes + lane.index()].credits;
        if config.has::<I>().pfc && config.fabric.is_pfc(lane) {
            let known = self.pauses[port.index() * config.fabric.lanes + lane.index()].free(freed, bytes, traffic);
            if self.returns[port].wakes {
                self.wake_port(port, known);
            }
        } else if !credits.return_pending(bytes, freed + config.fabric.longest, opening, config.conditions.sufficient) {
            let lanes = &mut lanes[port.index() * config.fabric.lanes..];
            let credit = CreditReturn { time: freed + config.conditions.latency(port), bytes, traffic, lane };
            return_exactly(self, lanes, port, credit, opening);
        }
        if config.fabric.adaptive {
            let time = freed + config.conditions.latency(port);
            let window = self.calendar.window_of(time);
            self.occupancy.return_credits(port, lane, bytes, window);
        }
    }
}

/// Bytes of the pool that each lane of a port has taken.
fn pooled(lanes: &[Lane], fabric: &Fabric) -> impl Iterator<Item = u32> {
    lanes[..fabric.lanes].iter().map(|lane| lane.credits.pooled(fabric))
}

/// Bytes of the pool that the lanes of a port have taken.
#[cold]
pub(in crate::network) fn pool_taken(lanes: &[Lane], fabric: &Fabric) -> u32 {
    pooled(lanes, fabric).sum()
}

/// Returns credits to a lane that may need them the instant they arrive. A free function: taking the address of the active
/// port would force its fields out of registers.
#[cold]
fn return_exactly(in_flight: &mut InFlight, lanes: &mut [Lane], port: PortIdx, credit: CreditReturn, opening: Instant) {
    let returns = &mut in_flight.returns[port];
    returns.push(credit, opening, |lane, bytes| lanes[lane.index()].credits.give(bytes));
    if returns.wakes {
        in_flight.wake_port(port, credit.time);
    }
}
