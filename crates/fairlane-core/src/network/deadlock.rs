//! A fabric that has stopped with packets in it: which ports and lanes wait for each other.

use super::Network;
use crate::error::RunError;
use crate::ids::{LinkId, SwitchId};
use crate::topology::Vertex;

impl Network {
    /// If nothing is left to happen and packets are still in flight: the error that names the cycle of lanes, each of which waits
    /// for room in the buffer that the next one fills.
    #[must_use]
    pub fn deadlock(&self) -> Option<RunError> {
        if !self.is_at_rest() || self.in_flight.packets.is_empty() {
            return None;
        }
        let stuck = |port: u32| self.ports[port as usize].waiting != 0 && port >= self.config.nics;
        let ports = u32::try_from(self.ports.len()).expect("invariant: links have 27-bit numbers");
        let first = (0..ports).find(|&port| stuck(port))?;
        #[allow(clippy::cast_possible_truncation, reason = "below 32")]
        let mut place = (first, self.ports[first as usize].waiting.trailing_zeros() as u8);
        let mut path: Vec<(u32, u8)> = Vec::new();
        loop {
            if let Some(start) = path.iter().position(|seen| *seen == place) {
                path.drain(..start);
                break;
            }
            path.push(place);
            let Some(next) = self.blocker(place.0, place.1) else { break };
            place = next;
        }
        let words: Vec<String> = path.iter().map(|&(port, lane)| self.place_name(port, lane)).collect();
        Some(RunError::Deadlock {
            at: self.in_flight.calendar.opening(self.in_flight.calendar.window() + 1),
            cycle: words.join(" -> "),
        })
    }

    /// The port and lane, of the switch downstream of `port`, that holds packets which came over `port` on `lane`.
    fn blocker(&self, port: u32, lane: u8) -> Option<(u32, u8)> {
        let Vertex::Switch(SwitchId(switch)) = self.config.graph.link(LinkId(port)).to else { return None };
        let ports = self.config.graph.ports(Vertex::Switch(SwitchId(switch)));
        let places = ports.flat_map(|link| (0..self.config.lanes).map(move |lane| (link.0, lane)));
        let mut holding = places.filter(|&(next, queue)| {
            let mut record = self.lanes[next as usize * self.config.lanes + queue].head;
            while record != crate::kernel::NONE {
                let packet = &self.in_flight.packets[record];
                if packet.held == lane && packet.came.link() == port {
                    return true;
                }
                record = packet.next;
            }
            false
        });
        holding.next().map(|(next, queue)| (next, u8::try_from(queue).expect("invariant: at most 32 lanes")))
    }

    fn place_name(&self, port: u32, lane: u8) -> String {
        format!("{} lane {lane}", self.config.graph.link_name(LinkId(port)))
    }
}
