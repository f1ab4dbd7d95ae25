//! A routing on several planes of one fabric: each switch routes within its plane, as the topology's routing says.

use super::{Hop, Loads, Routing, Visit};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Planes;

/// The routing of one plane on all of them, or of each. Destinations are adapters, numbered host by host.
pub(super) struct OnPlanes {
    /// Of all planes alike, or by plane.
    pub inner: Vec<Box<dyn Routing>>,
    pub planes: Planes,
    /// How many planes there are.
    pub rails: u32,
}

impl OnPlanes {
    /// The routing of a plane.
    fn of(&self, plane: u32) -> &dyn Routing {
        match &self.inner[..] {
            [alike] => &**alike,
            each => &*each[plane as usize],
        }
    }

    fn host(&self, to: HostId) -> HostId {
        HostId(to.0 / self.rails)
    }

    fn inside(&self, plane: u32, hop: Hop) -> Hop {
        Hop { link: self.planes.link_inside(plane, hop.link), ..hop }
    }

    /// A hop of a switch in its plane, as the whole graph numbers it.
    fn outside(&self, plane: u32, hop: Hop) -> Hop {
        Hop { link: LinkId(hop.link.0 + self.planes.shift(plane)), ..hop }
    }

    fn visit(&self, plane: u32, visit: &Visit) -> Visit {
        Visit { previous: self.inside(plane, visit.previous), to: self.host(visit.to), ..*visit }
    }
}

impl Routing for OnPlanes {
    fn virtual_channels(&self) -> u8 {
        self.inner.iter().map(|inner| inner.virtual_channels()).max().unwrap_or(1)
    }

    fn channels_of(&self, vl: u8) -> u8 {
        self.inner.iter().map(|inner| inner.channels_of(vl)).max().unwrap_or(1)
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        let (plane, at) = self.planes.inside(at);
        self.of(plane).reaches(at, self.host(to))
    }

    fn routed_lanes(&self) -> u8 {
        self.inner.iter().map(|inner| inner.routed_lanes()).max().unwrap_or(1)
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (plane, at) = self.planes.inside(at);
        self.outside(plane, self.of(plane).next_hop(at, self.inside(plane, previous), self.host(to)))
    }

    fn adaptive(&self) -> bool {
        self.inner.iter().any(|inner| inner.adaptive())
    }

    fn sees_lanes(&self) -> bool {
        self.inner.iter().any(|inner| inner.sees_lanes())
    }

    fn sees_own_ports_only(&self) -> bool {
        self.inner.iter().all(|inner| inner.sees_own_ports_only())
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (plane, at) = self.planes.inside(at);
        let mut own = self.visit(plane, visit);
        // A routing looks at links of switches only, and those of a plane have the same order here as there.
        let loads = loads.shifted(self.planes.shift(plane));
        let hop = self.of(plane).choose(at, &mut own, &loads);
        visit.note = own.note;
        self.outside(plane, hop)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let (plane, at) = self.planes.inside(at);
        let options = self.of(plane).options(at, &self.visit(plane, visit));
        options.into_iter().map(|(hop, note)| (self.outside(plane, hop), note)).collect()
    }
}
