//! Tables of what faults have done.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Count, Number, Picoseconds};
use crate::fault::Sweep;

/// One row for each time that routes were computed anew.
///
/// | column | unit | |
/// |---|---|---|
/// | `time` | ps | packets that start from then on take the new routes |
/// | `routing` | name | the routing that was built; empty if none fits what is left of the fabric, and the routes stay |
/// | `reason` | name | why it is not the scenario's routing |
/// | `links_down` | count | links (two for a cable) that are down |
/// | `cut_off` | name | the hosts that are cut off from most others, separated by commas |
pub(super) fn sweeps(of: Measured<'_>) -> Columns {
    let rows = &of.faults.sweeps;
    let graph = of.network.graph();
    let hosts = |sweep: &Sweep| {
        let names: Vec<String> = sweep.cut_off.iter().map(|host| graph.host_name(*host)).collect();
        names.join(", ")
    };
    Columns::default()
        .u64("time", Picoseconds, rows.iter().map(|row| row.at.0))
        .text("routing", rows.iter().map(|row| row.routing.clone().unwrap_or_default()))
        .text("reason", rows.iter().map(|row| row.reason.clone().unwrap_or_default()))
        .u64("links_down", Count, rows.iter().map(|row| row.down as u64))
        .text("cut_off", rows.iter().map(hosts))
}

/// One row for each job that has failed: the first of its packets that was lost once more often than it may be retransmitted.
///
/// | column | unit | |
/// |---|---|---|
/// | `job` | number | |
/// | `time` | ps | when the packet's last timeout passed, and the job was stopped |
/// | `from`, `to` | number | the hosts between which the packet was to go |
pub(super) fn failures(of: Measured<'_>) -> Columns {
    let rows = &of.faults.failures;
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.job.0)))
        .u64("time", Picoseconds, rows.iter().map(|row| row.at.0))
        .u32("from", Number, rows.iter().map(|row| row.from.0))
        .u32("to", Number, rows.iter().map(|row| row.to.0))
}
