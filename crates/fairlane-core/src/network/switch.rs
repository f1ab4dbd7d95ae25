//! Switches that route packets when they are there: adaptive routing.
//!
//! When a window opens, each switch takes the packets that come to it in the window, in order of time and then link, and
//! routes them on the loads that [`Loads`](crate::routing::Loads) describes. So a decision is made at most one link latency
//! before its packet is there, and does not depend on the order in which switches are run.

use super::Network;
use super::config::Config;
use super::in_flight::{InFlight, NetworkCalendar};
use crate::ids::{HostId, SwitchId};
use crate::routing::Visit;

/// How many packets are routed between one being fetched and being routed.
const AHEAD: usize = 8;

/// The order of packets that were not kept back begins here.
const DIRECT: usize = 1 << 31;

/// A packet that comes to a switch which routes it then; in the order in which they are routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AtSwitch {
    /// From the top: 32 bits of switch, 64 of time, 32 of the link that it comes over. One number, so that sorting is quick.
    key: u128,
    /// Of equals (empty packets of one link) the older comes before.
    order: u32,
    record: u32,
}

impl AtSwitch {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "parts of the key")]
    fn parts(self) -> (SwitchId, u64, u32) {
        (SwitchId((self.key >> 96) as u32), (self.key >> 32) as u64, self.record)
    }
}

/// What comes to switches, by window.
#[derive(Clone)]
pub(super) struct SwitchInboxes(Vec<Vec<AtSwitch>>);

impl Default for SwitchInboxes {
    fn default() -> Self {
        Self((0..NetworkCalendar::NEAR).map(|_| Vec::new()).collect())
    }
}

impl SwitchInboxes {
    #[inline]
    fn slot(&mut self, window: u64) -> &mut Vec<AtSwitch> {
        #[allow(clippy::cast_possible_truncation, reason = "below 64")]
        &mut self.0[(window % NetworkCalendar::NEAR) as usize]
    }

    /// A packet comes over a link in a near window.
    #[inline]
    pub fn push(&mut self, window: u64, switch: u32, (time, link): (u64, u32), record: u32) {
        let order = self.slot(window).len();
        self.insert(window, switch, (time, link), record, DIRECT + order);
    }

    /// The same of a packet that was kept back until the window opened: number `place` of these, which are older than all others.
    pub fn push_deferred(&mut self, window: u64, switch: u32, came: (u64, u32), record: u32, place: usize) {
        self.insert(window, switch, came, record, place);
    }

    #[inline]
    fn insert(&mut self, window: u64, switch: u32, (time, link): (u64, u32), record: u32, order: usize) {
        let order = u32::try_from(order).expect("invariant: fewer than 2^31 packets in flight");
        let key = u128::from(switch) << 96 | u128::from(time) << 32 | u128::from(link);
        self.slot(window).push(AtSwitch { key, order, record });
    }

    /// All packets.
    pub fn records(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flatten().map(|crossing| crossing.record)
    }
}

impl Network {
    /// Routes what comes to switches in the open window.
    pub(super) fn run_switches(&mut self) {
        let Self { config, in_flight, scratch, .. } = self;
        let window = in_flight.calendar.window();
        in_flight.occupancy.open(window);
        std::mem::swap(&mut scratch.at_switches, in_flight.switch_inboxes.slot(window));
        scratch.at_switches.sort_unstable();
        for (place, crossing) in scratch.at_switches.iter().enumerate() {
            if let Some(coming) = scratch.at_switches.get(place + AHEAD) {
                in_flight.packets.prefetch(coming.record);
            }
            cross(config, in_flight, crossing.parts());
        }
        scratch.at_switches.clear();
        in_flight.occupancy.close();
    }
}

/// A switch routes a packet and sends it on to a port's queue.
fn cross(config: &Config, in_flight: &mut InFlight, (switch, time, record): (SwitchId, u64, u32)) {
    let packet = &mut in_flight.packets[record];
    let step = packet.came;
    let mut visit = Visit {
        previous: step.hop(),
        to: HostId(packet.to),
        vl: packet.vl,
        note: packet.note,
        random: random(time, step.link()),
    };
    let hop = config.routing.choose(switch, &mut visit, &in_flight.occupancy.view());
    let (next, bytes) = (hop.link.0, packet.bytes);
    packet.note = visit.note;
    packet.lane = config.lane(packet.vl, hop.channel);
    in_flight.occupancy.route(next, bytes);
    let late = config.forwarding_delay(|| config.wire_time(step.link(), bytes), bytes, next);
    in_flight.send_packet(next, record, time + late);
}

/// A number that looks random: no two packets come over one link at one time.
fn random(time: u64, link: u32) -> u32 {
    // SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    let mut bits = time ^ (u64::from(link) << 40);
    bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    #[allow(clippy::cast_possible_truncation, reason = "the low half")]
    {
        (bits ^ (bits >> 31)) as u32
    }
}
