//! When a packet leaves the minimal path: the rule of universal globally-adaptive load-balanced routing, UGAL (A. Singh,
//! "Load-balanced routing in interconnection networks", PhD thesis, Stanford 2005; for dragonflies J. Kim et al., ISCA 2008).

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::choices::scatter;
use super::super::{Hop, Loads, Visit};
use super::{Path, Paths};
use crate::error::BuildError;
use crate::ids::SwitchId;
use crate::topology::Layout;
use crate::units::Bytes;

/// How the minimal path is weighed against drawn non-minimal paths.
#[derive(Clone, Copy, Debug)]
pub(in crate::routing) struct Rule {
    samples: u32,
    bias: u64,
    ties: EqualCosts,
    pub load: LoadOf,
    links: LinksOf,
}

/// The load of a path's first link that counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::routing) enum LoadOf {
    /// Bytes that wait or whose credits have not come back.
    #[default]
    Bytes,
    /// Packets that wait, each counted as a full one.
    Packets,
}

/// The number of links that counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::routing) enum LinksOf {
    /// The path's own, from the switch that decides.
    #[default]
    Path,
    /// That of the longest path of its kind: minimal or not, within a group or to another.
    Longest,
}

/// The path of a packet if the minimal path and the cheapest non-minimal path cost the same.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::routing) enum EqualCosts {
    /// The minimal path.
    #[default]
    #[serde(rename = "minimal")]
    Direct,
    /// Either, with equal probability.
    Random,
}

/// The parameters of UGAL with the loads of the whole fabric.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{ "samples": 3, "bias": 0, "ties": "random" }]))]
pub(in crate::routing) struct UgalParams {
    /// Non-minimal paths drawn for each decision; the cheapest of them is compared with the minimal path. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    pub samples: u32,
    /// Bytes subtracted from the load of the minimal path before the comparison. Default: 8 KiB.
    pub bias: Bytes,
    /// The path of a packet if both cost the same. Default: minimal.
    pub ties: EqualCosts,
}

/// The parameters of UGAL with the loads of the first switch.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{ "samples": 3, "bias": 0, "ties": "random" }, { "load": "packets", "links": "longest" }]))]
pub(in crate::routing) struct LocalParams {
    /// Non-minimal paths drawn for each decision; the cheapest of them is compared with the minimal path. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    pub samples: u32,
    /// Bytes subtracted from the load of the minimal path before the comparison. Default: 8 KiB.
    pub bias: Bytes,
    /// The path of a packet if both cost the same. Default: minimal.
    pub ties: EqualCosts,
    /// The load of its first link that a path costs: bytes that wait or lack credits, or packets that wait. Default: bytes.
    pub load: LoadOf,
    /// How many links that is multiplied by: the path's own, or those of the longest path of its kind (on fabrics of
    /// groups). Default: path.
    pub links: LinksOf,
}

impl Default for LocalParams {
    fn default() -> Self {
        let UgalParams { samples, bias, ties } = UgalParams::default();
        Self { samples, bias, ties, load: LoadOf::default(), links: LinksOf::default() }
    }
}

impl Default for UgalParams {
    fn default() -> Self {
        Self { samples: SAMPLES, bias: BIAS, ties: EqualCosts::default() }
    }
}

/// Non-minimal paths that are drawn for a decision where no number is given.
pub(in crate::routing) const SAMPLES: u32 = 2;
/// The bias towards the minimal path where none is given: two packets of 4 KiB.
pub(in crate::routing) const BIAS: Bytes = Bytes(8192);

impl Rule {
    /// A rule from its parameters.
    ///
    /// # Errors
    /// [`BuildError`] for a number of samples that cannot be.
    pub fn new(params: UgalParams) -> Result<Self, BuildError> {
        if !(1..=64).contains(&params.samples) {
            return Err(BuildError::value("fabric.routing.samples", params.samples, "1 to 64 non-minimal paths"));
        }
        let UgalParams { samples, bias, ties } = params;
        Ok(Self { samples, bias: bias.0, ties, load: LoadOf::default(), links: LinksOf::default() })
    }

    /// A rule by the loads that the first switch sees.
    ///
    /// # Errors
    /// [`BuildError`] for a number of samples that cannot be, and where paths have no kinds.
    pub fn local(params: LocalParams, layout: &Layout) -> Result<Self, BuildError> {
        let LocalParams { samples, bias, ties, load, links } = params;
        if links == LinksOf::Longest && !matches!(layout, Layout::Groups { .. }) {
            return Err(BuildError::value("fabric.routing.links", "longest", "path on a fabric without groups"));
        }
        Ok(Self { load, links, ..Self::new(UgalParams { samples, bias, ties })? })
    }

    /// The non-minimal path that a packet takes, if any, by the loads of the whole fabric.
    pub fn decide_globally(&self, paths: &dyn Paths, seen: (SwitchId, &Visit, &Loads)) -> Option<Path> {
        let minimal = seen_everywhere(paths, seen, Path::MINIMAL, self.bias);
        self.decide(paths, seen, minimal, |path| seen_everywhere(paths, seen, path, 0))
    }

    /// The same by the loads of the switch that decides. `hop`: the next one on the minimal path.
    #[inline(always)]
    pub fn decide_locally(
        &self,
        paths: &(impl Paths + ?Sized),
        seen: (SwitchId, &Visit, &Loads),
        hop: Hop,
    ) -> Option<Path> {
        let (at, visit, _) = seen;
        let minimal = self.cost(paths, seen, (hop, Path::MINIMAL), self.bias);
        let cost = |path| self.cost(paths, seen, (paths.step(at, visit.previous, path, visit.to).0, path), 0);
        self.decide(paths, seen, minimal, cost)
    }

    /// The cheapest path drawn if it costs less than the minimal path, whose cost is that of its load beyond the bias. `cost` is
    /// that of a non-minimal path.
    #[inline(always)]
    fn decide(
        &self,
        paths: &(impl Paths + ?Sized),
        seen: (SwitchId, &Visit, &Loads),
        minimal: u64,
        cost: impl Fn(Path) -> u64,
    ) -> Option<Path> {
        // Nothing is cheaper.
        if minimal == 0 && self.ties == EqualCosts::Direct {
            return None;
        }
        self.draw(paths, seen, minimal, cost)
    }

    /// The general case of [`Rule::decide`].
    #[inline(never)]
    fn draw(
        &self,
        paths: &(impl Paths + ?Sized),
        (at, visit, _): (SwitchId, &Visit, &Loads),
        minimal: u64,
        cost: impl Fn(Path) -> u64,
    ) -> Option<Path> {
        let number = |sample: u32| scatter(visit.random.wrapping_add(sample.wrapping_mul(0x9E37_79B9)));
        let (mut least, mut cheapest) = (u64::MAX, None);
        for sample in 0..self.samples {
            if let Some(path) = paths.draw(at, visit.to, number(sample + 1)) {
                let cost = cost(path);
                if cost < least || cheapest.is_none() {
                    (least, cheapest) = (cost, Some(path));
                }
            }
        }
        let toss = self.ties == EqualCosts::Random && number(0) & 1 == 1;
        cheapest.filter(|_| least < minimal || least == minimal && toss)
    }

    /// The cost of a path that begins with a hop, as seen from its first switch: a load times a number of links. Of the load, so
    /// many bytes are not counted.
    #[inline(always)]
    fn cost(
        &self,
        paths: &(impl Paths + ?Sized),
        (at, visit, loads): (SwitchId, &Visit, &Loads),
        (hop, path): (Hop, Path),
        uncounted: u64,
    ) -> u64 {
        let load = match self.load {
            LoadOf::Bytes => u64::from(loads.here(hop.link)),
            LoadOf::Packets => loads.waiting(hop.link),
        };
        let load = load.saturating_sub(uncounted);
        if load == 0 {
            return 0;
        }
        let links = match self.links {
            LinksOf::Path => paths.length(at, path, visit.to),
            LinksOf::Longest => paths.longest(at, path, visit.to),
        };
        load * u64::from(links)
    }
}

/// The cost of a path with the loads of the whole fabric known: the loads of all its links.
fn seen_everywhere(
    paths: &dyn Paths,
    (at, visit, loads): (SwitchId, &Visit, &Loads),
    path: Path,
    uncounted: u64,
) -> u64 {
    let mut links = paths.links(at, visit.previous, path, visit.to);
    let first = links.next().map_or(0, |link| u64::from(loads.here(link)));
    let beyond: u64 = links.map(|link| u64::from(loads.afar(link))).sum();
    (first + beyond).saturating_sub(uncounted)
}
