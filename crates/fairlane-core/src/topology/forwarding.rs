//! Forwarding tables that came with a fabric: at each switch, the port for each destination, an endpoint.

use crate::ids::{HostId, SwitchId};

/// The port, counted from 0 in order of [`super::Graph::ports`], of every switch for every endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    endpoints: usize,
    ports: Vec<u16>,
}

impl Forwarding {
    const NONE: u16 = u16::MAX;

    /// Tables without an entry.
    #[must_use]
    pub fn new(switches: usize, endpoints: usize) -> Self {
        Self { endpoints, ports: vec![Self::NONE; switches * endpoints] }
    }

    /// Says by which port packets leave `at` on their way to `to`.
    pub fn set(&mut self, at: SwitchId, to: HostId, port: u16) {
        self.ports[at.index() * self.endpoints + to.index()] = port;
    }

    /// The same tables where endpoint `order[i]` is number `i`.
    pub(super) fn reordered(&self, order: &[usize]) -> Self {
        let rows = self.ports.chunks(self.endpoints.max(1));
        let ports = rows.flat_map(|row| order.iter().map(|endpoint| row[*endpoint])).collect();
        Self { endpoints: self.endpoints, ports }
    }

    /// The port at `at` for packets to `to`; none if the table has no entry.
    #[must_use]
    #[inline]
    pub fn port(&self, at: SwitchId, to: HostId) -> Option<u16> {
        Some(self.ports[at.index() * self.endpoints + to.index()]).filter(|port| *port != Self::NONE)
    }
}
