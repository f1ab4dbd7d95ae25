//! UGAL: each packet decides once, at its first switch.

use super::super::{Hop, Loads, Routing, Visit};
use super::rule::{Rule, UgalParams, seen_everywhere, seen_here};
use super::{Detours, Way};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::topology::Graph;

/// UGAL: each packet decides at its first switch, with the loads that are seen from there or from above.
pub(in crate::routing) struct Ugal {
    ways: Box<dyn Detours>,
    rule: Rule,
    /// The loads of other switches count.
    global: bool,
}

impl Ugal {
    /// UGAL on a fabric of groups or a grid; `routing` is its name, for errors. With `global` it sees the loads of other switches.
    pub fn build(
        graph: &Graph,
        json: &serde_json::Value,
        routing: &'static str,
        global: bool,
    ) -> Result<Box<dyn Routing>, BuildError> {
        let params: UgalParams = crate::table::params("fabric.routing", json)?;
        Ok(Box::new(Self { ways: super::build(graph, routing)?, rule: Rule::new(params)?, global }))
    }
}

impl Routing for Ugal {
    fn virtual_channels(&self) -> u8 {
        self.ways.channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.ways.step(at, previous, Way::DIRECT, to).0
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let mut way = Way::noted(visit.note);
        if way == Way::OPEN {
            let seen = (at, &*visit, loads);
            let detour = if self.global {
                self.rule.decide(&*self.ways, at, visit, |way, bias| seen_everywhere(&*self.ways, seen, way, bias))
            } else {
                self.rule.decide(&*self.ways, at, visit, |way, bias| seen_here(&*self.ways, seen, way, bias))
            };
            way = detour.unwrap_or(Way::DIRECT);
        }
        self.ways.go(at, visit, way)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let way = Way::noted(visit.note);
        if way != Way::OPEN {
            return self.ways.hops(at, visit, [way]);
        }
        let detours = self.ways.all(at, visit.to);
        self.ways.hops(at, visit, std::iter::once(Way::DIRECT).chain(detours))
    }
}
