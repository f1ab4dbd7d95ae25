//! Tables of ranks: what they have done, what they are doing, when they completed iterations.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Count, Number, Picoseconds};
use crate::ids::HostId;
use crate::observe::{CALLS, Mark, RankRecord, call_name};

/// One row per rank.
///
/// | column | unit | |
/// |---|---|---|
/// | `job`, `rank`, `host` | number | |
/// | `iterations` | iterations | marked so far |
/// | `first_mark`, `last_mark` | ps | when the first and the last of them were marked; 0 before |
/// | `compute`, `communication` | ps | time in computations and in calls that are over |
/// | `late_partner` | ps | blocked time until the partner had made its send call, or posted its receive |
/// | `network` | ps | the rest of the blocked time |
/// | `messages_sent` | messages | those of collectives included |
/// | `bytes_sent` | bytes | their payload |
/// | `finished` | flag | whether the program has ended |
/// | `finished_at` | ps | when; 0 if it has not |
pub(super) fn ranks(of: Measured<'_>) -> Columns {
    let rows: Vec<(u16, u32, HostId, &RankRecord)> = of
        .jobs()
        .flat_map(|job| (0..).zip(of.mpi.records(job)).map(move |(rank, (host, record))| (job.0, rank, host, record)))
        .collect();
    let record = |pick: fn(&RankRecord) -> u64| rows.iter().map(move |row| pick(row.3));
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0)))
        .u32("rank", Number, rows.iter().map(|row| row.1))
        .u32("host", Number, rows.iter().map(|row| row.2.0))
        .u64("iterations", Count, record(|r| r.iterations))
        .u64("first_mark", Picoseconds, record(|r| r.first_mark.0))
        .u64("last_mark", Picoseconds, record(|r| r.last_mark.0))
        .u64("compute", Picoseconds, record(|r| r.compute.0))
        .u64("communication", Picoseconds, record(|r| r.communication().0))
        .u64("late_partner", Picoseconds, record(|r| r.late_partner.0))
        .u64("network", Picoseconds, record(|r| r.network.0))
        .u64("messages_sent", Count, record(|r| r.messages_sent))
        .u64("bytes_sent", Bytes, record(|r| r.bytes_sent))
        .flag("finished", rows.iter().map(|row| row.3.finished.is_some()))
        .u64("finished_at", Picoseconds, record(|r| r.finished.map_or(0, |at| at.0)))
}

/// One row per job and MPI call that its ranks have returned from: `count` calls, and the `time` in them over all ranks, ps.
pub(super) fn calls(of: Measured<'_>) -> Columns {
    let mut rows = Vec::new();
    for job in of.jobs() {
        for call in 0..CALLS {
            let of_ranks = of.mpi.records(job).map(|(_, record)| record.call(call));
            let (count, time) = of_ranks.fold((0, 0), |sum, one| (sum.0 + one.count, sum.1 + one.time.0));
            if count > 0 {
                rows.push((u32::from(job.0), call_name(call), count, time));
            }
        }
    }
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| row.0))
        .text("call", rows.iter().map(|row| row.1))
        .u64("count", Count, rows.iter().map(|row| row.2))
        .u64("time", Picoseconds, rows.iter().map(|row| row.3))
}

/// One row per rank: how long the operation that is not over has lasted, ps, as `compute` or as `communication`.
pub(super) fn under_way(of: Measured<'_>) -> Columns {
    let now = of.network.now();
    let rows: Vec<_> = of
        .jobs()
        .flat_map(|job| (0..).zip(of.mpi.under_way(job, now)).map(move |(rank, spans)| (job.0, rank, spans)))
        .collect();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0)))
        .u32("rank", Number, rows.iter().map(|row| row.1))
        .u64("compute", Picoseconds, rows.iter().map(|row| row.2.0.0))
        .u64("communication", Picoseconds, rows.iter().map(|row| row.2.1.0))
}

/// One row per iteration of each rank, of the jobs of which that is kept: the `iteration`, counted from 0, the `time` when the
/// rank marked it, and how long its timed part took (`elapsed`), ps.
pub(super) fn marks(of: Measured<'_>) -> Columns {
    let of_job = |job| (0_u32..).zip(of.mpi.records(job)).map(move |(rank, (_, record))| (job.0, rank, record));
    let rows: Vec<(u16, u32, u32, Mark)> = of
        .jobs()
        .flat_map(of_job)
        .flat_map(|(job, rank, record)| (0..).zip(&record.marks).map(move |(number, mark)| (job, rank, number, *mark)))
        .collect();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0)))
        .u32("rank", Number, rows.iter().map(|row| row.1))
        .u32("iteration", Number, rows.iter().map(|row| row.2))
        .u64("time", Picoseconds, rows.iter().map(|row| row.3.at.0))
        .u64("elapsed", Picoseconds, rows.iter().map(|row| row.3.elapsed.0))
}

/// One row per iteration of each job: the `iteration`, counted from 1, the `time` when its last rank marked it, ps, how long
/// the timed part of the rank that needed longest took (`elapsed`), ps, and whether a rank has begun the timed part itself
/// (`timed`). Of many iterations every second, fourth, ... is kept; see [`JobMarks`](crate::observe::JobMarks).
pub(super) fn job_marks(of: Measured<'_>) -> Columns {
    let of_job = |job| of.mpi.marks(job).kept().map(move |(number, mark)| (job.0, number, mark));
    let rows: Vec<(u16, u64, Mark)> = of.jobs().flat_map(of_job).collect();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| u32::from(row.0)))
        .u64("iteration", Number, rows.iter().map(|row| row.1))
        .u64("time", Picoseconds, rows.iter().map(|row| row.2.at.0))
        .u64("elapsed", Picoseconds, rows.iter().map(|row| row.2.elapsed.0))
        .flag("timed", rows.iter().map(|row| row.2.timed))
}
