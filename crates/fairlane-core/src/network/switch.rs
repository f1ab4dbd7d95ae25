//! Adaptive routing: switches that route packets when they arrive.
//!
//! When a window opens, each switch takes the packets that arrive at it in the window, in order of time and then link, and
//! routes them by the loads that [`Loads`](crate::routing::Loads) describes. So a decision is made at most one link latency
//! before its packet arrives, and does not depend on the order in which switches run.

use super::config::Config;
use super::in_flight::{InFlight, SWITCHES};
use super::occupancy::Occupancy;
use super::probe::Probe;
use super::shard::Shard;
use crate::ids::{HostId, JobId, SwitchId};
use crate::kernel::NONE;
use crate::routing::{Loads, Visit};
use crate::topology::Vertex;

/// How many switches run between the fetching of the first packet of one and its run.
const AHEAD: usize = 3;

/// A packet that arrives at a switch: time, link that it comes over, record.
pub(super) type AtSwitch = (u64, u32, u32);

impl Shard {
    /// Routes what arrives at switches in the open window.
    pub(super) fn run_switches<P: Probe>(&mut self) {
        let Self { config, in_flight, scratch, .. } = self;
        let window = in_flight.calendar.window();
        in_flight.occupancy.open(window);
        in_flight.calendar.take(SWITCHES, &mut scratch.switches);
        for (place, &switch) in scratch.switches.iter().enumerate() {
            if let Some(&coming) = scratch.switches.get(place + AHEAD) {
                in_flight.packets.prefetch(in_flight.switch_inboxes.head(window, coming));
            }
            in_flight.arrivals_at(switch, &mut scratch.at_switch);
            for &(time, _, record) in &scratch.at_switch {
                route::<P>(config, in_flight, (switch, time, record));
            }
        }
        in_flight.occupancy.close();
    }
}

impl InFlight {
    /// Takes what arrives at a switch in the open window, in order of time and then link; of equals (empty packets of one
    /// link) the older comes first.
    #[inline]
    fn arrivals_at(&mut self, switch: u32, arrivals: &mut Vec<AtSwitch>) {
        arrivals.clear();
        let mut record = self.switch_inboxes.take(self.calendar.window(), switch);
        while record != NONE {
            let packet = &self.packets[record];
            arrivals.push((packet.time, packet.came.link(), record));
            record = packet.next;
        }
        if arrivals.len() > 1 {
            // The list has the newest first, and the sort is stable.
            arrivals.reverse();
            arrivals.sort_by_key(|&(time, link, _)| (time, link));
        }
    }
}

/// A switch routes a packet and sends it on to a port's queue.
fn route<P: Probe>(config: &Config, in_flight: &mut InFlight, (switch, time, record): (u32, u64, u32)) {
    let packet = &mut in_flight.packets[record];
    let step = packet.came;
    let mut visit = Visit {
        previous: step.hop(),
        to: HostId(packet.to),
        source: HostId(packet.source),
        job: JobId(packet.job),
        vl: packet.vl,
        note: packet.note,
        random: random(time, step.link()),
    };
    let hop = if P::SHARDED {
        let switch = SwitchId(config.switch_ids[switch as usize]);
        config.routing.choose(switch, &mut visit, &own_ports(config, &in_flight.occupancy, switch))
    } else {
        config.routing.choose(SwitchId(switch), &mut visit, &in_flight.occupancy.view(&config.first_lane))
    };
    let (next, bytes) = (config.port_of::<P>(hop.link.0), packet.bytes);
    packet.note = visit.note;
    packet.lane = config.lane(packet.vl, hop.channel);
    in_flight.occupancy.route(next, packet.lane, bytes);
    let late = config.forwarding_delay(|| config.wire_time(step.link(), bytes), bytes, hop.link.0);
    in_flight.send_packet(next, record, time + late);
}

/// The loads of the ports of one switch.
fn own_ports<'a>(config: &'a Config, occupancy: &'a Occupancy, switch: SwitchId) -> Loads<'a> {
    let mut links = config.graph.ports(Vertex::Switch(switch));
    let count = links.len();
    let first = links.next().unwrap_or_default();
    occupancy.view_of(first, config.partition.link(first).number() as usize, count, &config.first_lane)
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
