//! Switches that route packets when they are there: adaptive routing.
//!
//! When a window opens, each switch takes the packets that come to it in the window, in order of time and then link, and
//! routes them on the loads that [`Loads`](crate::routing::Loads) describes. So a decision is made at most one link latency
//! before its packet is there, and does not depend on the order in which switches are run.

use super::Network;
use super::ahead::AHEAD;
use super::fixed::Fixed;
use super::flight::Flight;
use super::turn::Arrival;
use crate::ids::{HostId, SwitchId};
use crate::kernel::NONE;
use crate::routing::Visit;

impl Network {
    /// Routes what comes to switches in the open window.
    pub(super) fn run_switches(&mut self) {
        let window = self.flight.calendar.window();
        self.flight.loads.open(window);
        let mut switches = std::mem::take(&mut self.scratch.switches);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.flight.calendar.take_switches(&mut switches);
        for (place, &switch) in switches.iter().enumerate() {
            if let Some(&coming) = switches.get(place + AHEAD) {
                self.prefetch_crossing(window, coming);
            }
            let mut record = self.flight.crossing.take(window, switch);
            arrivals.clear();
            while record != NONE {
                let packet = &self.flight.packets[record];
                arrivals.push((packet.time, u64::from(packet.came.link()), record));
                record = packet.next;
            }
            // The list has the newest first: of equals (empty packets of one link) the older comes before.
            arrivals.reverse();
            arrivals.sort_by_key(|arrival| (arrival.0, arrival.1));
            for arrival in &arrivals {
                cross(&self.fixed, &mut self.flight, switch, arrival);
            }
        }
        self.flight.loads.close();
        self.scratch.arrivals = arrivals;
        self.scratch.switches = switches;
    }
}

/// `switch` routes a packet and sends it on to a port's queue.
fn cross(fixed: &Fixed, flight: &mut Flight, switch: u32, &(time, _, record): &Arrival) {
    let packet = &mut flight.packets[record];
    let step = packet.came;
    let mut visit = Visit {
        previous: step.hop(),
        to: HostId(packet.to),
        vl: packet.vl,
        note: packet.note,
        random: random(time, step.link()),
    };
    let hop = fixed.routing.choose(SwitchId(switch), &mut visit, &flight.loads.view());
    let (next, bytes) = (hop.link.0, packet.bytes);
    packet.note = visit.note;
    packet.lane = fixed.lane(packet.vl, hop.channel);
    flight.loads.route(next, bytes);
    let late = fixed.held_back(|| fixed.wire_time(step.link(), bytes), bytes, next);
    flight.send_packet(next, record, time + late);
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
