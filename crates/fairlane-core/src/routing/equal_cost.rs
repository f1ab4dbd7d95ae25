//! Routings along shortest paths that differ only in which of several equally short paths a packet takes. Paths and virtual
//! channels are those of [`Shortest`].

use super::shortest::{Shortest, Targets};
use super::{Hop, Loads, Routing, Visit};
use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};
use crate::topology::Graph;

/// How a packet's link is selected among several on shortest paths. [`EqualCost`] makes a routing of it:
///
/// ```
/// use fairlane_core::ids::{LinkId, SwitchId};
/// use fairlane_core::routing::{Entry, EqualCost, Loads, Selection, Visit};
/// use fairlane_core::table::NoParams;
/// use fairlane_core::topology;
///
/// /// Each job keeps to one of the ports.
/// struct ByJob;
///
/// impl Selection for ByJob {
///     fn select(&self, _at: SwitchId, visit: &Visit, links: &[LinkId], _loads: &Loads) -> LinkId {
///         links[visit.job.index() % links.len()]
///     }
/// }
///
/// static ENTRY: Entry = Entry {
///     name: "by_job",
///     summary: "each job keeps to one of the ports on shortest paths",
///     schema: NoParams::schema,
///     build: |graph, params, _| {
///         NoParams::check("fabric.routing", params)?;
///         Ok(Box::new(EqualCost::new(graph, "by_job", ByJob)?))
///     },
/// };
/// ```
pub trait Selection: Send + Sync {
    /// One of the `links`, at least two in order of port, that lead from `at` along a shortest path to the packet's destination.
    fn select(&self, at: SwitchId, visit: &Visit, links: &[LinkId], loads: &Loads) -> LinkId;

    /// Whether it looks at the loads of single lanes; see [`Routing::sees_lanes`].
    fn sees_lanes(&self) -> bool {
        false
    }

    /// See [`Routing::takes_entropies`].
    fn takes_entropies(&self) -> bool {
        false
    }
}

/// A routing along shortest paths with a selection at each hop: on a tree up to any of the nearest common ancestors and down,
/// on one virtual channel; on other graphs with as many as they need.
pub struct EqualCost<S> {
    paths: Shortest,
    selection: S,
}

impl<S: Selection> EqualCost<S> {
    /// Finds the paths; `routing` is for the error.
    ///
    /// # Errors
    /// [`BuildError`] if hosts are not attached to switches, or the tables would be too large.
    pub fn new(graph: &Graph, routing: &'static str, selection: S) -> Result<Self, BuildError> {
        Ok(Self { paths: Shortest::new(graph, routing, Targets::Hosts)?, selection })
    }
}

impl<S: Selection> Routing for EqualCost<S> {
    fn virtual_channels(&self) -> u8 {
        self.paths.virtual_channels()
    }

    fn next_hop(&self, at: SwitchId, previous: Hop, to: HostId) -> Hop {
        self.paths.next_hop(at, previous, to)
    }

    fn reaches(&self, at: SwitchId, to: HostId) -> bool {
        self.paths.reaches(at, to)
    }

    fn adaptive(&self) -> bool {
        true
    }

    fn sees_own_ports_only(&self) -> bool {
        true
    }

    fn sees_lanes(&self) -> bool {
        self.selection.sees_lanes()
    }

    fn takes_entropies(&self) -> bool {
        self.selection.takes_entropies()
    }

    fn choose(&self, at: SwitchId, visit: &mut Visit, loads: &Loads) -> Hop {
        let (target, down) = self.paths.ends.of(visit.to);
        if at == target {
            return Hop { link: down, channel: 0 };
        }
        let link = match self.paths.choices(at, target) {
            [only] => *only,
            several => self.selection.select(at, visit, several, loads),
        };
        self.paths.hop(visit.previous, link)
    }

    fn options(&self, at: SwitchId, visit: &Visit) -> Vec<(Hop, u32)> {
        self.paths.all_options(at, visit)
    }
}
