//! Switches that route packets when they arrive: with adaptive routing, and wherever packets wait at inputs.
//!
//! When a window opens, each switch takes the packets that arrive at it in the window, in order of time and then link, and
//! routes them by the loads that [`Loads`] describes. So a decision is made at most one link latency
//! before its packet arrives, and does not depend on the order in which switches run.

use super::input_queued::Event;
use crate::ids::{HostId, SwitchId};
use crate::kernel::NONE;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::{Arriving, AtSwitch, InFlight, SWITCHES};
use crate::network::index::{PacketIdx, PortIdx, SwitchIdx};
use crate::network::occupancy::Occupancy;
use crate::network::shard::Shard;
use crate::rng::draw;
use crate::routing::{Hop, Loads, Step, Visit};
use crate::topology::Vertex;
use crate::units::{Instant, Picoseconds};

impl Shard {
    /// Routes what arrives at switches in the open window.
    pub(in crate::network) fn run_switches<I: Instance>(&mut self) {
        let Self { config, in_flight, scratch, crossbars, .. } = self;
        let window = in_flight.calendar.window();
        in_flight.occupancy.open(window);
        in_flight.calendar.take(SWITCHES, &mut scratch.switches);
        for (place, &switch) in scratch.switches.iter().enumerate() {
            in_flight.prefetch_arrivals(&scratch.switches, place);
            in_flight.arrivals_at(switch, &mut scratch.arriving);
            if config.has::<I>().input_queued {
                let crossbar = &mut crossbars.each[switch];
                for &(time, _, packet) in &scratch.arriving {
                    let late = note_step::<I>(config, in_flight, (switch, time, packet));
                    crossbar.schedule(time + late, Event::Arrive { packet });
                }
                continue;
            }
            for &(time, _, packet) in &scratch.arriving {
                route::<I>(config, in_flight, (switch, time, packet));
            }
        }
        let slot = in_flight.switch_inboxes.slot(window);
        in_flight.at_switches[slot].clear();
        in_flight.occupancy.close();
    }
}

impl InFlight {
    /// Takes what arrives at a switch in the open window, in order of time and then link; of equals (empty packets of one
    /// link) the older comes first.
    #[inline]
    fn arrivals_at(&mut self, switch: SwitchIdx, arrivals: &mut Vec<Arriving>) {
        arrivals.clear();
        let window = self.calendar.window();
        let list = &self.at_switches[self.switch_inboxes.slot(window)];
        let mut entry = self.switch_inboxes.take(window, switch);
        while entry != NONE {
            let AtSwitch { time, link, packet, next } = list[entry as usize];
            arrivals.push((time, link, packet));
            entry = next;
        }
        if arrivals.len() > 1 {
            // The list has the newest first, and the sort is stable.
            arrivals.reverse();
            arrivals.sort_by_key(|&(time, link, _)| (time, link));
        }
    }
}

/// An output-queued switch routes a packet and sends it on to a port's queue.
fn route<I: Instance>(config: &Config, in_flight: &mut InFlight, arrival: (SwitchIdx, Instant, PacketIdx)) {
    let (_, time, packet) = arrival;
    let came = in_flight.packets[packet].came;
    let (hop, next, bytes) = choose::<I>(config, in_flight, arrival);
    let late = config.forwarding_delay::<I>(|| config.conditions.wire_time(came.link(), bytes), bytes, hop.link);
    in_flight.send_packet(next, packet, time + late);
}

/// An input-queued switch notes where a packet goes. Returns how much later than its head it joins the queue of its input.
fn note_step<I: Instance>(
    config: &Config,
    in_flight: &mut InFlight,
    arrival: (SwitchIdx, Instant, PacketIdx),
) -> Picoseconds {
    let (switch, _, index) = arrival;
    let hop = if config.fabric.adaptive {
        choose::<I>(config, in_flight, arrival).0
    } else {
        let packet = &mut in_flight.packets[index];
        let switch = config.naming.switch_id::<I>(switch);
        let hop = config.conditions.routes.of(packet).next_hop(switch, packet.came.hop(), HostId(packet.to));
        packet.lane = config.fabric.lane(packet.vl, hop.channel);
        hop
    };
    let packet = &mut in_flight.packets[index];
    packet.next_step = Step::new(hop);
    if config.fabric.stores_packets() {
        config.conditions.wire_time(packet.came.link(), packet.bytes)
    } else {
        Picoseconds::ZERO
    }
}

/// The hop that the routing chooses for a packet, its port, and the packet's bytes.
#[inline(always)]
fn choose<I: Instance>(
    config: &Config,
    in_flight: &mut InFlight,
    (switch, time, index): (SwitchIdx, Instant, PacketIdx),
) -> (Hop, PortIdx, u32) {
    let packet = &mut in_flight.packets[index];
    let step = packet.came;
    let mut visit = Visit {
        previous: step.hop(),
        to: HostId(packet.to),
        source: HostId(packet.source),
        job: packet.job,
        vl: packet.vl.0,
        note: packet.note,
        random: draw(time.0, step.link().0),
    };
    let routing = config.conditions.routes.of(packet);
    let switch = config.naming.switch_id::<I>(switch);
    let hop = if I::SHARDED {
        routing.choose(switch, &mut visit, &own_ports(config, &in_flight.occupancy, switch))
    } else {
        routing.choose(switch, &mut visit, &in_flight.occupancy.view(&config.fabric.first_lane))
    };
    let (next, bytes) = (config.port_of::<I>(hop.link), packet.bytes);
    packet.note = visit.note;
    packet.lane = config.fabric.lane(packet.vl, hop.channel);
    in_flight.occupancy.route(next, packet.lane, bytes);
    (hop, next, bytes)
}

/// The loads of the ports of one switch.
fn own_ports<'a>(config: &'a Config, occupancy: &'a Occupancy, switch: SwitchId) -> Loads<'a> {
    let mut links = config.fabric.graph.ports(Vertex::Switch(switch));
    let count = links.len();
    let first = links.next().unwrap_or_default();
    occupancy.view_of(first, config.fabric.partition.link(first).index(), count, &config.fabric.first_lane)
}
