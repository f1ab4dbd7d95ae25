//! Tables of ports: counters, and who delays whom.

use std::borrow::Cow;

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Count, Number, Picoseconds};
use crate::ids::LinkId;
use crate::observe::Interference;

/// One row per link and lane, of the port that sends on the link.
///
/// | column | unit | |
/// |---|---|---|
/// | `link`, `lane` | number | |
/// | `bytes`, `packets` | bytes, packets | sent, headers included |
/// | `waiting` | ps | queueing delay, summed over packets |
/// | `stalled` | ps | time in which the link was idle and packets of the lane waited for credits |
/// | `max_queue` | packets | the longest queue |
/// | `port_active` | ps | time in which the link carried packets, of all lanes |
/// | `port_stalled` | ps | time in which it was idle although packets waited, of any lane |
/// | `onward_waiting` | ps | queueing delay of the packets that came over the link, at its far end; only if that is kept |
pub(super) fn ports(of: Measured<'_>) -> Columns {
    let network = of.network;
    let links = 0..u32::try_from(network.graph().links().len()).unwrap_or(u32::MAX);
    let lanes = 0..u8::try_from(network.lanes()).unwrap_or(u8::MAX);
    let rows: Vec<_> = links
        .flat_map(|link| lanes.clone().map(move |lane| (link, lane)))
        .map(|(link, lane)| {
            let times = network.port_times(LinkId(link));
            (link, lane, network.counters(LinkId(link), lane), times)
        })
        .collect();
    let columns = Columns::default()
        .u32("link", Number, rows.iter().map(|row| row.0))
        .u8("lane", Number, rows.iter().map(|row| row.1))
        .u64("bytes", Bytes, rows.iter().map(|row| row.2.bytes))
        .u64("packets", Count, rows.iter().map(|row| row.2.packets))
        .u64("waiting", Picoseconds, rows.iter().map(|row| row.2.waiting.0))
        .u64("stalled", Picoseconds, rows.iter().map(|row| row.2.stalled.0))
        .u32("max_queue", Count, rows.iter().map(|row| row.2.max_queue))
        .u64("port_active", Picoseconds, rows.iter().map(|row| row.3.0.0))
        .u64("port_stalled", Picoseconds, rows.iter().map(|row| row.3.1.0));
    if rows.first().is_none_or(|row| row.2.onward_waiting.is_none()) {
        return columns;
    }
    let waiting = rows.iter().map(|row| row.2.onward_waiting.unwrap_or_default().0);
    columns.u64("onward_waiting", Picoseconds, waiting)
}

/// The interference matrix of jobs: the sum over their classes where these are counted apart.
fn by_job(of: Measured<'_>) -> Cow<'_, Interference> {
    let (matrix, levels) = (of.network.interference(), of.mpi.levels());
    if !levels.count_classes() {
        return matrix;
    }
    let traffic = levels.traffic();
    Cow::Owned(matrix.gathered(of.mpi.jobs(), |counted| traffic[usize::from(counted)].0.0))
}

/// One row per pair of jobs: the queueing delay (`waiting`, ps) of the packets of job `delayed` that job `delaying` caused.
pub(super) fn interference(of: Measured<'_>) -> Columns {
    let matrix = by_job(of);
    let cells = || (0..matrix.jobs()).flat_map(|a| (0..matrix.jobs()).map(move |b| (a, b)));
    let number = |job: usize| u32::try_from(job).unwrap_or(u32::MAX);
    Columns::default()
        .u32("delayed", Number, cells().map(|cell| number(cell.0)))
        .u32("delaying", Number, cells().map(|cell| number(cell.1)))
        .u64("waiting", Picoseconds, cells().map(|(delayed, delaying)| matrix.cell(delayed, delaying)))
}

/// One row per link and pair of jobs, where that is kept and not zero: `waiting` as in [`interference`], at that port.
pub(super) fn port_interference(of: Measured<'_>) -> Columns {
    let rows = by_job(of).by_port();
    Columns::default()
        .u32("link", Number, rows.iter().map(|row| row.0))
        .u32("delayed", Number, rows.iter().map(|row| u32::from(row.1)))
        .u32("delaying", Number, rows.iter().map(|row| u32::from(row.2)))
        .u64("waiting", Picoseconds, rows.iter().map(|row| row.3))
}
