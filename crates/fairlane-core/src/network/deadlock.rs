//! A fabric that has stopped with packets in it: which ports and lanes wait for each other.

use std::collections::BTreeSet;

use super::Network;
use super::index::{LaneIdx, PortIdx};
use super::packet::Packet;
use super::shard::Shard;
use crate::error::{BlockedLane, RunError};
use crate::ids::{JobId, LinkId};
use crate::topology::Vertex;

impl Network {
    /// If nothing is left to happen and packets are still in flight: the error that names the cycle of lanes, each of which waits
    /// for room in the buffer that the next one fills.
    #[must_use]
    pub fn deadlock(&self) -> Option<RunError> {
        if !self.is_at_rest() || self.packets_in_flight() == 0 {
            return None;
        }
        let stuck = |(_, shard, port): &(LinkId, &Shard, PortIdx)| {
            shard.ports[*port].waiting != 0 && *port >= shard.config.naming.nics
        };
        let (first, shard, port) = self.each_port().find(stuck)?;
        let mut place = (first, LaneIdx::first_of(shard.ports[port].waiting));
        let mut path: Vec<(LinkId, LaneIdx)> = Vec::new();
        loop {
            if let Some(start) = path.iter().position(|seen| *seen == place) {
                path.drain(..start);
                break;
            }
            path.push(place);
            let Some(next) = self.blocker(place.0, place.1) else { break };
            place = next;
        }
        let end = path.last().map(|&(link, _)| self.graph().link(link).to);
        let last = self.shards.iter().map(|shard| shard.last_due).max().unwrap_or(0);
        let at = shard.in_flight.calendar.opening(last + 1);
        let blocked = path.iter().map(|&(link, lane)| self.blocked(link, lane)).collect();
        Some(match end {
            Some(Vertex::Host(_)) => RunError::Storm { at, lanes: blocked },
            _ => RunError::Deadlock { at, cycle: blocked },
        })
    }

    /// The port and lane, of the switch downstream of `link`, that holds packets which came over `link` on `lane`.
    fn blocker(&self, link: LinkId, lane: LaneIdx) -> Option<(LinkId, LaneIdx)> {
        let Vertex::Switch(switch) = self.graph().link(link).to else { return None };
        let shard = &self.shards[usize::from(self.partition.of_switch(switch))];
        if let Some(crossbar) = shard.crossbars.each.get(switch) {
            let input = shard.crossbars.input_of[link] as usize;
            let first = crossbar.heads(input * shard.config.fabric.lanes + lane.index()).next()?;
            let packet = &shard.in_flight.packets[first];
            return Some((packet.next_step.link(), packet.lane));
        }
        let ports = self.graph().ports(Vertex::Switch(switch));
        let places =
            ports.flat_map(|next| (0..).take(self.config().fabric.lanes).map(move |lane| (next, LaneIdx(lane))));
        let mut holding = places.filter(|&(next, queue)| {
            self.queued(next, queue).any(|packet| packet.held == lane && packet.came.link() == link)
        });
        holding.next()
    }

    fn blocked(&self, link: LinkId, lane: LaneIdx) -> BlockedLane {
        let jobs: Vec<JobId> =
            self.queued(link, lane).map(|packet| self.config().fabric.job_of(packet.traffic)).collect();
        BlockedLane {
            link,
            name: self.graph().link_name(link),
            lane: lane.0,
            vl: self.config().fabric.vl_of(lane),
            packets: jobs.len(),
            jobs: jobs.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
        }
    }

    /// The packets in a lane's queue at a switch's port.
    fn queued(&self, link: LinkId, lane: LaneIdx) -> impl Iterator<Item = &Packet> {
        let (shard, port) = self.port(link);
        let first = shard.lanes[port.index() * shard.config.fabric.lanes + lane.index()].head;
        shard.in_flight.packets.list(first, |packet| packet.next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::ids::{HostId, SwitchId, VirtualLane};
    use crate::network::testing::{Senders, plan};
    use crate::network::{Architecture, FlowControl, Parameters, Partition, Pfc, Plan, Surroundings, Switches};
    use crate::routing::{Hop, Routing};
    use crate::table::Table;
    use crate::topology::{self, Graph};
    use crate::units::{Bytes, Instant, Picoseconds};

    /// Clockwise around a ring of switches with one host each, on one channel: what can deadlock.
    struct Clockwise(Arc<Graph>);

    impl Routing for Clockwise {
        fn next_hop(&self, at: SwitchId, _previous: Hop, to: HostId) -> Hop {
            let next = Vertex::Switch(SwitchId((at.0 + 1) % 4));
            let target = if at.0 == to.0 { Vertex::Host(to) } else { next };
            let mut ports = self.0.ports(Vertex::Switch(at));
            Hop { link: ports.find(|&port| self.0.link(port).to == target).unwrap(), channel: 0 }
        }
    }

    #[test]
    fn a_deadlock_is_reported_with_its_cycle() {
        let full = Parameters::default().largest_packet();
        deadlock(Architecture::OutputQueued, Parameters { buffer: full, ..Default::default() });
        deadlock(Architecture::OutputQueued, paused());
        let given = Surroundings { full_packet: full, allocators: &Table::default() };
        for queues in ["fifo", "voq"] {
            let params = json!({ "queues": queues });
            let architecture = || Table::<Switches>::default().build("input_queued", &params, given).unwrap();
            deadlock(architecture(), Parameters { buffer: full, ..Default::default() });
            deadlock(architecture(), paused());
        }
    }

    /// Buffers that send PAUSE above one full packet.
    fn paused() -> Parameters {
        let full = Parameters::default().largest_packet();
        Parameters {
            flow_control: FlowControl::Pfc(Pfc { xoff: Some(full), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn a_watchdog_breaks_the_cycle() {
        let FlowControl::Pfc(pfc) = paused().flow_control else { unreachable!() };
        let flow_control = FlowControl::Pfc(Pfc { watchdog: Some(Picoseconds::from_micros(50)), ..pfc });
        let network = ring(Architecture::OutputQueued, Parameters { flow_control, ..paused() }, 1 << 17);
        assert_eq!((network.deadlock(), network.messages_in_flight()), (None, 0));
        let dropped: u64 = network.pauses().iter().map(|(.., counters)| counters.dropped).sum();
        assert_eq!((dropped > 0, network.totals().packets_lost), (true, dropped));
    }

    /// The ring of four switches after every host has sent so many bytes to the host two switches on, as a job of its own.
    fn ring(architecture: Architecture, parameters: Parameters, bytes: u64) -> Network {
        let graph = Arc::new(topology::build("torus", &json!({ "sides": [4] })).unwrap());
        let routing = Arc::new(Clockwise(Arc::clone(&graph)));
        let plan = Plan { architecture, jobs: 4, parameters, ..plan(&graph, routing, 1) };
        let mut network = Network::new(&plan, Partition::new(&graph, 1));
        let senders = Senders((0..4).map(|host| Some((HostId((host + 2) % 4), Bytes(bytes)))).collect());
        (0..4).for_each(|host| network.wake(HostId(host), Instant::ZERO));
        network.run_until(Instant(u64::MAX >> 1), u64::MAX, &mut [senders]).unwrap();
        network.check_laws().unwrap();
        network
    }

    fn deadlock(architecture: Architecture, parameters: Parameters) {
        let network = ring(architecture, parameters, 1 << 20);
        let graph = network.graph();
        let Some(RunError::Deadlock { cycle, .. }) = network.deadlock() else { panic!("no deadlock") };
        assert_eq!(cycle.len(), 4);
        for (at, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            assert_eq!(graph.link(at.link).to, graph.link(next.link).from, "{cycle:?}");
            assert!(at.packets > 0 && !at.jobs.is_empty() && at.vl == VirtualLane(0), "{at:?}");
        }
    }
}
