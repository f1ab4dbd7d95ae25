//! A routing on several planes of one fabric: each switch routes within its plane, as the topology's routing says.

use super::{Hop, Loads, Routing, Visit};
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Planes;

/// The routing of one plane on all of them. Destinations are adapters, numbered host by host.
pub(super) struct OnPlanes {
    pub inner: Box<dyn Routing>,
    pub planes: Planes,
    /// How many planes there are.
    pub rails: u32,
}

impl OnPlanes {
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
        self.inner.virtual_channels()
    }

    fn channels_of(&self, vl: u8) -> u8 {
        self.inner.channels_of(vl)
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        let (_, at) = self.planes.inside(at);
        self.inner.reaches(at, self.host(to))
    }

    fn routed_lanes(&self) -> u8 {
        self.inner.routed_lanes()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        let (plane, at) = self.planes.inside(at);
        self.outside(plane, self.inner.next_hop(at, self.inside(plane, previous), self.host(to)))
    }

    fn adaptive(&self) -> bool {
        self.inner.adaptive()
    }

    fn sees_lanes(&self) -> bool {
        self.inner.sees_lanes()
    }

    fn sees_own_ports_only(&self) -> bool {
        self.inner.sees_own_ports_only()
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (plane, at) = self.planes.inside(at);
        let mut own = self.visit(plane, visit);
        // A routing looks at links of switches only, and those of a plane have the same order here as there.
        let loads = loads.shifted(self.planes.shift(plane));
        let hop = self.inner.choose(at, &mut own, &loads);
        visit.note = own.note;
        self.outside(plane, hop)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let (plane, at) = self.planes.inside(at);
        let options = self.inner.options(at, &self.visit(plane, visit));
        options.into_iter().map(|(hop, note)| (self.outside(plane, hop), note)).collect()
    }
}
