//! The schedule of faults: when they begin and end, and the resulting condition of the fabric.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::BuildError;
use crate::fault::{self, Condition, Fault, FaultSpec};
use crate::ids::LinkId;
use crate::table::Table;
use crate::topology::Graph;
use crate::units::{BitsPerSec, Instant};

/// Faults of a fabric and when the next of them begins or ends.
#[derive(Clone)]
pub(super) struct Schedule {
    table: Table<fault::Entry>,
    /// The fabric as it was built.
    graph: Arc<Graph>,
    faults: Vec<Scheduled>,
    /// Instants still to come at which faults begin or end.
    changes: BTreeSet<Instant>,
    /// The current condition of the fabric.
    condition: Condition,
}

#[derive(Clone)]
struct Scheduled {
    at: Instant,
    until: Option<Instant>,
    fault: Arc<dyn Fault>,
}

impl Scheduled {
    fn lasts_at(&self, now: Instant) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }
}

impl Schedule {
    /// A fabric without faults.
    pub fn new(table: Table<fault::Entry>, graph: Arc<Graph>) -> Self {
        Self { table, graph, faults: Vec::new(), changes: BTreeSet::new(), condition: Condition::default() }
    }

    /// Adds a fault; `place` is where it stands in the specification, for the error.
    pub fn add(&mut self, spec: &FaultSpec, place: &str) -> Result<(), BuildError> {
        let (at, until) = (Instant(spec.at.0), spec.until.map(|until| Instant(until.0)));
        if let Some(until) = until.filter(|until| *until <= at) {
            let allowed = format!("after {place}.at ({} ps)", at.0);
            return Err(BuildError::value(format!("{place}.until"), until.0, allowed));
        }
        let fault = self.table.build(&spec.fault.name, &spec.fault.params, &*self.graph);
        let fault = fault.map_err(|error| error.of(fault::PATH, place, &spec.fault.name))?;
        self.changes.insert(at);
        self.changes.extend(until);
        self.faults.push(Scheduled { at, until, fault });
        Ok(())
    }

    /// When a fault begins or ends next.
    pub fn next(&self) -> Option<Instant> {
        self.changes.first().copied()
    }

    /// Advances to `now`. Returns the new bandwidth of each link whose bandwidth changes.
    pub fn advance(&mut self, now: Instant) -> BTreeMap<LinkId, BitsPerSec> {
        self.changes = self.changes.split_off(&Instant(now.0 + 1));
        let mut condition = Condition::default();
        for scheduled in self.faults.iter().filter(|scheduled| scheduled.lasts_at(now)) {
            scheduled.fault.apply(&self.graph, &mut condition);
        }
        let before = std::mem::replace(&mut self.condition, condition);
        let bandwidth = |condition: &Condition, link: &LinkId| {
            condition.bandwidths().get(link).copied().unwrap_or(self.graph.link(*link).bandwidth)
        };
        let links = before.bandwidths().keys().chain(self.condition.bandwidths().keys());
        let changed = links.filter(|link| bandwidth(&before, link) != bandwidth(&self.condition, link));
        changed.map(|link| (*link, bandwidth(&self.condition, link))).collect()
    }
}
