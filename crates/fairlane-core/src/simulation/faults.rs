//! The schedule of faults: when they begin and end, the resulting condition of the fabric, and when routes follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::BuildError;
use crate::fault::{self, Condition, Fault, FaultLog, FaultSpec, Faults, GivenUp, Sweep};
use crate::ids::LinkId;
use crate::mpi::Mpi;
use crate::network::Network;
use crate::routing::{self, Routing, Routings};
use crate::table::{Named, Table};
use crate::topology::{Graph, RailMap};
use crate::units::{BitsPerSec, Bytes, Instant, Picoseconds};

/// Faults of a fabric and when something changes next.
#[derive(Clone)]
pub(super) struct Schedule {
    table: Table<Faults>,
    /// The fabric as it was built.
    graph: Arc<Graph>,
    routes: Routes,
    faults: Vec<Scheduled>,
    /// Instants still to come at which faults begin or end.
    changes: BTreeSet<Instant>,
    /// Instants still to come at which routes are computed.
    sweeps: BTreeSet<Instant>,
    /// Packets that have been given up, of jobs that will fail.
    failing: BTreeSet<GivenUp>,
    /// The current condition of the fabric.
    condition: Condition,
    limits: Limits,
    pub log: FaultLog,
}

/// The system that faults must fit.
#[derive(Clone)]
pub(super) struct Limits {
    /// Why packets cannot be lost, if they cannot.
    pub losses: Option<&'static str>,
    /// A full packet.
    pub packet: Bytes,
    /// The virtual lanes that can be paused.
    pub paused: Vec<u8>,
}

/// How the fabric is routed.
#[derive(Clone)]
pub(super) struct Routes {
    pub table: Table<Routings>,
    pub named: Named,
    /// The routing of the whole fabric.
    pub routing: Arc<dyn Routing>,
    /// From a change of the fabric until routes follow it.
    pub sweep_time: Picoseconds,
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
    pub fn new(table: Table<Faults>, graph: Arc<Graph>, routes: Routes, limits: Limits) -> Self {
        Self {
            table,
            graph,
            routes,
            faults: Vec::new(),
            changes: BTreeSet::new(),
            sweeps: BTreeSet::new(),
            failing: BTreeSet::new(),
            condition: Condition::default(),
            limits,
            log: FaultLog::default(),
        }
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
        if let Some(allowed) = self.limits.losses.filter(|_| fault.loses_packets()) {
            return Err(BuildError::value(place, &spec.fault.name, allowed));
        }
        let mut alone = Condition::default();
        fault.apply(&self.graph, &mut alone);
        let packet = u32::try_from(self.limits.packet.0).unwrap_or(u32::MAX);
        if alone.errors().values().any(|errors| errors.rate.chance_of_error(packet) > MOST_ERRORS) {
            let allowed =
                format!("so low that 1% of full packets ({packet} bytes with network.mtu) or more have no error");
            return Err(BuildError::value(format!("{place}.rate"), &spec.fault.params["rate"], allowed));
        }
        let paused = &self.limits.paused;
        if let Some((_, vl)) = alone.storms().first()
            && !vl.map_or(!paused.is_empty(), |vl| paused.contains(&vl.0))
        {
            return Err(match vl.filter(|_| !paused.is_empty()) {
                Some(vl) => {
                    let lanes: Vec<String> = paused.iter().map(u8::to_string).collect();
                    let allowed = format!("a virtual lane in use that is not lossy: {}", lanes.join(", "));
                    BuildError::value(format!("{place}.vl"), vl.0, allowed)
                }
                None => {
                    let allowed = "only with network.flow_control = pfc, and lanes that are not lossy";
                    BuildError::value(place, &spec.fault.name, allowed)
                }
            });
        }
        self.changes.insert(at);
        self.changes.extend(until);
        self.faults.push(Scheduled { at, until, fault });
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Whether packets can be lost by any of the faults.
    pub fn loses_packets(&self) -> bool {
        self.faults.iter().any(|scheduled| scheduled.fault.loses_packets())
    }

    /// When something changes next.
    pub fn next(&self) -> Option<Instant> {
        let failing = self.failing.first().map(|given_up| given_up.at);
        self.changes.first().copied().into_iter().chain(self.sweeps.first().copied()).chain(failing).min()
    }

    /// A job will fail by this.
    pub fn fail(&mut self, given_up: GivenUp) {
        let fails = |other: &GivenUp| other.job == given_up.job;
        if !self.log.failures.iter().any(fails) && !self.failing.iter().any(fails) {
            self.failing.insert(given_up);
        }
    }

    /// Advances to `now`: changes the fabric, its routes, and the jobs that fail.
    pub fn advance(&mut self, now: Instant, network: &mut Network, mpi: &mut Mpi) {
        if take_until(&mut self.changes, now) {
            self.change(now, network, mpi);
        }
        if take_until(&mut self.sweeps, now) {
            self.sweep(now, network, mpi);
        }
        while let Some(given_up) = self.failing.first().copied().filter(|given_up| given_up.at <= now) {
            self.failing.remove(&given_up);
            mpi.fail(given_up.job, now);
            self.log.failures.push(GivenUp { at: now, ..given_up });
        }
    }

    /// Computes the condition of the fabric anew.
    fn change(&mut self, now: Instant, network: &mut Network, mpi: &mut Mpi) {
        let mut condition = Condition::default();
        for scheduled in self.faults.iter().filter(|scheduled| scheduled.lasts_at(now)) {
            scheduled.fault.apply(&self.graph, &mut condition);
        }
        let before = std::mem::replace(&mut self.condition, condition);
        let after = &self.condition;
        network.set_bandwidths(&self.bandwidths(&before));
        if before.errors() != after.errors() {
            network.set_errors(after.errors());
        }
        if before.slow() != after.slow() {
            mpi.slow_down(&after.slow().iter().map(|(host, slowness)| (*host, slowness.0)).collect());
        }
        if before.storms() != after.storms() {
            network.set_storms(after.storms());
        }
        let changed = before.down().symmetric_difference(after.down());
        let changed: BTreeMap<LinkId, bool> = changed.map(|link| (*link, after.down().contains(link))).collect();
        if !changed.is_empty() {
            network.set_down(&changed);
            // Switches know their own ports.
            let time = if self.routes.routing.adaptive() { Picoseconds::ZERO } else { self.routes.sweep_time };
            self.sweeps.insert(Instant(now.0 + time.0));
        }
    }

    /// The new bandwidth of each link whose bandwidth is no longer that of the condition before.
    fn bandwidths(&self, before: &Condition) -> BTreeMap<LinkId, BitsPerSec> {
        let bandwidth = |condition: &Condition, link: &LinkId| {
            condition.bandwidths().get(link).copied().unwrap_or(self.graph.link(*link).bandwidth)
        };
        let links = before.bandwidths().keys().chain(self.condition.bandwidths().keys());
        let changed = links.filter(|link| bandwidth(before, link) != bandwidth(&self.condition, link));
        changed.map(|link| (*link, bandwidth(&self.condition, link))).collect()
    }

    /// Computes routes for the fabric as it is, and through which adapters messages go.
    fn sweep(&mut self, now: Instant, network: &mut Network, mpi: &mut Mpi) {
        let Routes { table, named, routing, .. } = &self.routes;
        let down = self.condition.down();
        if self.graph.rails() > 1 {
            let rails = Arc::new(RailMap::new(&self.graph, down));
            let jobs = mpi.set_rails(&rails);
            network.set_rails(&rails, &jobs);
        }
        if down.is_empty() {
            network.set_routing(routing);
            let name = Some(named.name.clone());
            self.log.sweeps.push(Sweep { at: now, routing: name, reason: None, down: 0, cut_off: Vec::new() });
            return;
        }
        let sweep = match routing::heal(table, named, &self.graph, down, &**routing) {
            Ok(healed) => {
                network.set_routing(&healed.routing.into());
                let reason = healed.instead.map(|error| error.to_string());
                Sweep { at: now, routing: Some(healed.name), reason, down: down.len(), cut_off: healed.cut_off }
            }
            Err(error) => {
                let reason = Some(error.to_string());
                Sweep { at: now, routing: None, reason, down: down.len(), cut_off: Vec::new() }
            }
        };
        self.log.sweeps.push(sweep);
    }
}

/// The highest probability of an error of a full packet, in units of 2^-32: 99%.
const MOST_ERRORS: u64 = (1 << 32) / 100 * 99;

/// Takes out the instants up to `now`. Returns whether there were any.
fn take_until(instants: &mut BTreeSet<Instant>, now: Instant) -> bool {
    let later = instants.split_off(&Instant(now.0 + 1));
    !std::mem::replace(instants, later).is_empty()
}
