//! Generations of routes. A packet keeps the routes that applied when it was injected, also after a sweep has replaced them; after
//! [`PacketNumber::GENERATIONS`] further sweeps it takes the newest.

use std::sync::Arc;

use super::packet::{Packet, PacketNumber};
use crate::routing::Routing;

/// The routings that packets under way may have.
#[derive(Clone)]
pub(super) struct Routes {
    /// That of all packets if it has never been replaced.
    first: Arc<dyn Routing>,
    /// By generation, modulo [`PacketNumber::GENERATIONS`]; empty if routes have never been replaced.
    all: Vec<Arc<dyn Routing>>,
    /// How often routes have been replaced.
    newest: usize,
    /// The generation of packets that start now, as [`PacketNumber`] has it.
    pub tag: u32,
}

impl Routes {
    /// Those of a network at instant zero.
    pub fn new(routing: Arc<dyn Routing>) -> Self {
        Self { first: routing, all: Vec::new(), newest: 0, tag: PacketNumber::routes(0) }
    }

    /// Packets that start from now on take other routes.
    pub fn replace(&mut self, routing: Arc<dyn Routing>) {
        if self.all.is_empty() {
            self.all.push(Arc::clone(&self.first));
        }
        self.newest += 1;
        if self.all.len() < PacketNumber::GENERATIONS {
            self.all.push(routing);
        } else {
            self.all[self.newest % PacketNumber::GENERATIONS] = routing;
        }
        self.tag = PacketNumber::routes(self.newest);
    }

    /// The routing of a packet.
    #[inline(always)]
    pub fn of(&self, packet: &Packet) -> &dyn Routing {
        if self.all.is_empty() { &*self.first } else { &*self.all[packet.number.generation()] }
    }
}
