//! Forwarding tables that came with a fabric: at each switch, the port for each destination.

use crate::ids::{HostId, SwitchId};

/// The port, counted from 0 in order of [`super::Graph::ports`], of every switch for every host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    hosts: usize,
    ports: Vec<u16>,
}

impl Forwarding {
    const NONE: u16 = u16::MAX;

    /// Tables without an entry.
    #[must_use]
    pub fn new(switches: usize, hosts: usize) -> Self {
        Self { hosts, ports: vec![Self::NONE; switches * hosts] }
    }

    /// Says by which port packets leave `at` on their way to `to`.
    pub fn set(&mut self, at: SwitchId, to: HostId, port: u16) {
        self.ports[at.index() * self.hosts + to.index()] = port;
    }

    /// The port at `at` for packets to `to`; none if the table has no entry.
    #[must_use]
    #[inline]
    pub fn port(&self, at: SwitchId, to: HostId) -> Option<u16> {
        Some(self.ports[at.index() * self.hosts + to.index()]).filter(|port| *port != Self::NONE)
    }
}
