//! Progressive adaptive routing: a packet on the minimal path decides again at every switch of its first group, or of
//! all of the path, whether to leave it (N. Jiang, J. Kim, W. J. Dally, "Indirect adaptive routing on large scale
//! interconnection networks", ISCA 2009).
//!
//! So it also sees the loads of the switch whose global link it would take. There is no escape network: as many virtual channels
//! as the longest path has links, or as few as suffice.

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use super::non_minimal::{
    BIAS, Channels, EqualCosts, Groups, LinksOf, LoadOf, LocalParams, Path, Paths, Revise, Rule, SAMPLES,
};
use super::{Entry, Hop, Loads, Routing, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, SwitchId};
use crate::topology::Graph;
use crate::units::Bytes;

const NAME: &str = "progressive";

/// The line in the table.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "PAR: like ugal_l, and every switch of the source group re-evaluates the choice; for fabrics of groups",
    schema: || schema_for!(Params),
    build: |graph, json, _| Ok(Box::new(Progressive::new(graph, &crate::table::params("fabric.routing", json)?)?)),
};

/// Progressive adaptive routing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{ "channels": "fewest" }, { "samples": 1, "bias": 0, "ties": "random" },
    { "samples": 1, "bias": 0, "revise": "minimal", "load": "packets", "links": "longest" }, { "revise": "minimal", "channels": "fewest" }]))]
struct Params {
    /// Non-minimal paths drawn for each decision; the cheapest of them is compared with the minimal path. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    samples: u32,
    /// Bytes subtracted from the load of the minimal path before the comparison. Default: 8 KiB.
    bias: Bytes,
    /// The path of a packet if both cost the same. Default: minimal.
    ties: EqualCosts,
    /// How virtual channels are assigned to hops. Default: per_hop.
    channels: Channels,
    /// Where a packet on the minimal path may leave it: in the group that it begins in, or at every switch. Default: source_group.
    revise: Revise,
    /// The load of its first link that a path costs: bytes that wait or lack credits, or packets that wait. Default: bytes.
    load: LoadOf,
    /// How many links that is multiplied by: the path's own, or those of the longest path of its kind. Default: path.
    links: LinksOf,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            samples: SAMPLES,
            bias: BIAS,
            ties: EqualCosts::default(),
            channels: Channels::default(),
            revise: Revise::default(),
            load: LoadOf::default(),
            links: LinksOf::default(),
        }
    }
}

struct Progressive {
    paths: Groups,
    rule: Rule,
}

impl Progressive {
    fn new(graph: &Graph, params: &Params) -> Result<Self, BuildError> {
        let &Params { samples, bias, ties, channels, revise, load, links } = params;
        let paths = Groups::new(graph, NAME, Some((channels, revise)))?;
        Ok(Self { paths, rule: Rule::local(LocalParams { samples, bias, ties, load, links }, graph.layout())? })
    }
}

impl Routing for Progressive {
    fn virtual_channels(&self) -> u8 {
        self.paths.channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.paths.step(at, previous, Path::MINIMAL, to).0
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_waiting(&self) -> bool {
        self.rule.load == LoadOf::Packets
    }

    fn sees_own_ports_only(&self) -> bool {
        true
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let path = Path::noted(visit.note);
        let (mut hop, mut left) = self.paths.step(at, visit.previous, path, visit.to);
        if path == Path::UNDECIDED
            && let Some(path) = self.rule.decide_locally(&self.paths, (at, visit, loads), hop)
        {
            (hop, left) = self.paths.step(at, visit.previous, path, visit.to);
        }
        visit.note = left.note();
        hop
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        let path = Path::noted(visit.note);
        let others = if path == Path::UNDECIDED { self.paths.all(at, visit.to) } else { Vec::new() };
        (&self.paths as &dyn Paths).hops(at, visit, std::iter::once(path).chain(others))
    }
}
