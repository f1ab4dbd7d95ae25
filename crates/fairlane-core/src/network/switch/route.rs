//! Switches that route packets when they arrive: with adaptive routing, and wherever packets wait at inputs.
//!
//! Packets that arrive in a window are in one list. When the window opens it is sorted by switch, time and link, and all of them are
//! routed by the loads that [`Loads`](crate::routing::Loads) describes: a decision is made at most one link latency
//! before its packet arrives, and does not depend on the order of switches. Then they join their ports, which decide
//! what comes before.

use super::input_queued::Event;
use crate::ids::{HostId, SwitchId};
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::{AtSwitch, InFlight, SWITCHES};
use crate::network::index::{PacketIdx, PortIdx};
use crate::network::naming::NO_SWITCH;
use crate::network::port::kind;
use crate::network::shard::Shard;
use crate::rng::draw;
use crate::routing::{Hop, Step, Visit};
use crate::units::{Instant, Picoseconds};

impl Shard {
    /// Routes what arrives at switches in the open window, which ends at `until`, and, unless switches are input-queued, has it
    /// join its ports.
    pub(in crate::network) fn run_switches<I: Instance>(&mut self, until: Instant) {
        let Self { config, in_flight, scratch, crossbars, .. } = self;
        let window = in_flight.calendar.window();
        in_flight.occupancy.open(window);
        let slot = in_flight.inboxes.slot(window);
        let switches = config.fabric.graph.switches();
        scratch.sorting.sort(&in_flight.at_switches[slot], switches, &mut scratch.arriving);
        in_flight.at_switches[slot].clear();
        let mut arriving = std::mem::take(&mut scratch.arriving);
        if config.has::<I>().input_queued {
            in_flight.calendar.take(SWITCHES, &mut scratch.switches);
            for &AtSwitch { time, switch, packet, .. } in &arriving {
                let late = note_step::<I>(config, in_flight, (switch, time, packet));
                crossbars.each[switch].schedule(time + late, Event::Arrive { packet });
                scratch.switches.push(switch);
            }
        } else {
            for place in 0..arriving.len() {
                in_flight.prefetch_arrival(&arriving, place);
                let AtSwitch { time, switch, packet, .. } = arriving[place];
                arriving[place].port = choose::<I>(config, in_flight, (switch, time, packet)).1;
            }
            self.join_ports::<I>(&arriving, until);
        }
        self.in_flight.occupancy.close();
        self.scratch.arriving = arriving;
    }

    /// Packets that have been routed join their ports, in order of time at each switch.
    fn join_ports<I: Instance>(&mut self, arriving: &[AtSwitch], until: Instant) {
        let has = self.config.has::<I>();
        for (place, &AtSwitch { time, switch, link, packet, port }) in arriving.iter().enumerate() {
            if has.late || has.loses {
                let bytes = self.in_flight.packets[packet].bytes;
                let config = &self.config;
                let wire_time = || config.conditions.wire_time(link, bytes);
                let late = config.forwarding_delay::<I>(wire_time, bytes, config.naming.link_of(port));
                self.in_flight.send_packet(port, packet, time + late);
                continue;
            }
            self.prefetch_routed(arriving, place);
            // Until its start nothing else may come to the port.
            let start = time.max(self.ports[port].busy_until);
            let mut later = arriving[place + 1..].iter().take_while(|other| other.switch == switch);
            let next = later.find(|other| other.port == port || other.time > start);
            let next = next.map_or(until, |other| other.time);
            if self.config.naming.to_switch[port] == NO_SWITCH {
                self.join::<I, { kind::TO_HOST }>(port, packet, next);
            } else {
                self.join::<I, { kind::TO_SWITCH }>(port, packet, next);
            }
        }
    }
}

/// An input-queued switch notes where a packet goes. Returns how much later than its head it joins the queue of its input.
fn note_step<I: Instance>(
    config: &Config,
    in_flight: &mut InFlight,
    arrival: (SwitchId, Instant, PacketIdx),
) -> Picoseconds {
    let (switch, _, index) = arrival;
    let hop = if config.fabric.adaptive {
        choose::<I>(config, in_flight, arrival).0
    } else {
        let packet = &mut in_flight.packets[index];
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

/// The hop that the routing chooses for a packet, and its port.
#[inline(always)]
fn choose<I: Instance>(
    config: &Config,
    in_flight: &mut InFlight,
    (switch, time, index): (SwitchId, Instant, PacketIdx),
) -> (Hop, PortIdx) {
    let packet = &mut in_flight.packets[index];
    let step = packet.came;
    let mut visit = Visit {
        previous: step.hop(),
        to: HostId(packet.to),
        source: HostId(packet.source),
        job: config.job_of::<I>(packet.traffic),
        vl: packet.vl.0,
        note: packet.note,
        random: draw(time.0, step.link().0),
    };
    let routing = config.conditions.routes.of(packet);
    let loads = in_flight.occupancy.view(config.first_link(switch), &config.fabric.first_lane);
    let hop = routing.choose(switch, &mut visit, &loads);
    let next = config.fabric.partition.port(hop.link).port;
    packet.note = visit.note;
    packet.lane = config.fabric.lane(packet.vl, hop.channel);
    in_flight.occupancy.route(next, packet.lane, packet.bytes);
    (hop, next)
}
