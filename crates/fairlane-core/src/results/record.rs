//! Tables of single messages, waits, operations and packets, where these are kept.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Number, Picoseconds};
use crate::observe::{JobRecord, MessageRecord, Operations, call_name, operation_name};
use crate::units::Instant;

/// In place of an instant or a number: there is none.
const NONE: u64 = u64::MAX;
/// The same in place of a number with 32 bits.
const NONE_32: u32 = u32::MAX;

/// One row per message of the recorded jobs. Instants that have not come are 2^64 - 1.
///
/// | column | unit | |
/// |---|---|---|
/// | `message` | number | in the order of the send calls |
/// | `token` | number | `message` of its packets in the log of departures |
/// | `from_rank`, `to_rank`, `tag` | number | |
/// | `bytes` | bytes | payload |
/// | `collective`, `eager` | flag | part of a collective; sent without a rendezvous |
/// | `sent_at` | ps | the call of the send |
/// | `posted_at` | ps | the receive was posted |
/// | `received_at` | ps | the receive was complete |
/// | `acknowledged_at` | ps | the send was complete, if it had to wait for the receiver |
/// | `job` | number | |
pub(super) fn messages(of: Measured<'_>) -> Columns {
    let rows = of.mpi.record().map(JobRecord::messages).unwrap_or_default();
    let instant =
        |pick: fn(&MessageRecord) -> Option<Instant>| rows.iter().map(move |row| pick(row).map_or(NONE, |at| at.0));
    Columns::default()
        .u64("message", Number, rows.iter().map(|row| row.number))
        .u32("token", Number, rows.iter().map(|row| row.token))
        .u32("from_rank", Number, rows.iter().map(|row| row.from.0))
        .u32("to_rank", Number, rows.iter().map(|row| row.to.0))
        .u64("bytes", Bytes, rows.iter().map(|row| row.bytes.0))
        .i64("tag", Number, rows.iter().map(|row| i64::from(row.tag)))
        .flag("collective", rows.iter().map(|row| row.collective))
        .flag("eager", rows.iter().map(|row| row.eager))
        .u64("sent_at", Picoseconds, rows.iter().map(|row| row.sent_at.0))
        .u64("posted_at", Picoseconds, instant(|row| row.posted_at))
        .u64("received_at", Picoseconds, instant(|row| row.received_at))
        .u64("acknowledged_at", Picoseconds, instant(|row| row.acknowledged_at))
        .u32("job", Number, rows.iter().map(|row| row.job.0.into()))
}

/// One row per wait of the recorded jobs' ranks.
///
/// | column | unit | |
/// |---|---|---|
/// | `rank` | number | |
/// | `call` | name | the call that it was in |
/// | `since`, `end` | ps | when it was blocked, and went on |
/// | `partner_at` | ps | when the partner had made its send call, or posted its receive |
/// | `message` | number | of the message that ended it; 2^64 - 1 if that is not in the record |
/// | `receiver` | flag | whether the rank was that message's receiver |
/// | `job` | number | |
pub(super) fn waits(of: Measured<'_>) -> Columns {
    let rows = of.mpi.record().map(JobRecord::waits).unwrap_or_default();
    Columns::default()
        .u32("rank", Number, rows.iter().map(|row| row.rank.0))
        .text("call", rows.iter().map(|row| call_name(usize::from(row.call))))
        .u64("since", Picoseconds, rows.iter().map(|row| row.since.0))
        .u64("end", Picoseconds, rows.iter().map(|row| row.end.0))
        .u64("partner_at", Picoseconds, rows.iter().map(|row| row.partner_at.0))
        .u64("message", Number, rows.iter().map(|row| row.message.unwrap_or(NONE)))
        .flag("receiver", rows.iter().map(|row| row.receiver))
        .u32("job", Number, rows.iter().map(|row| row.job.0.into()))
}

fn kept(of: Measured<'_>) -> Option<&Operations> {
    of.mpi.record().and_then(JobRecord::operations)
}

/// One row per operation of the recorded jobs' ranks, in order.
///
/// | column | unit | |
/// |---|---|---|
/// | `job`, `rank`, `number` | number | `number` counts the operations of a rank |
/// | `call` | name | the call, `compute`, or `mark` for the end of an iteration |
/// | `since`, `end` | ps | when it began, and was over; 2^64 - 1 if it was not |
/// | `bytes` | bytes | payload of a send; what the rank hands in to a collective |
/// | `blocks` | number | of the blocks that `bytes` is the sum of; 0 if it is one block, the same for every member |
/// | `peer` | number | partner, root or target in the communicator or window; 2^32 - 1 without |
/// | `context` | number | of the communicator; 2^32 - 1 without |
/// | `slot` | number | of the request that it started; 2^32 - 1 without |
pub(super) fn operations(of: Measured<'_>) -> Columns {
    let rows = kept(of).map(Operations::all).unwrap_or_default();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| row.job.0.into()))
        .u32("rank", Number, rows.iter().map(|row| row.rank.0))
        .u64("number", Number, rows.iter().map(|row| row.number))
        .text("call", rows.iter().map(|row| operation_name(row.call)))
        .u64("since", Picoseconds, rows.iter().map(|row| row.since.0))
        .u64("end", Picoseconds, rows.iter().map(|row| row.end.map_or(NONE, |end| end.0)))
        .u64("bytes", Bytes, rows.iter().map(|row| row.bytes))
        .u32("blocks", Number, rows.iter().map(|row| row.blocks))
        .u32("peer", Number, rows.iter().map(|row| row.peer.unwrap_or(NONE_32)))
        .u32("context", Number, rows.iter().map(|row| row.context.unwrap_or(NONE_32)))
        .u32("slot", Number, rows.iter().map(|row| row.slot.unwrap_or(NONE_32)))
}

/// One row per request that an operation of the recorded jobs ended, in order of time.
///
/// | column | unit | |
/// |---|---|---|
/// | `job`, `rank`, `operation` | number | the `number` of the operation |
/// | `slot` | number | of the request; another may have it later |
/// | `at` | ps | when |
/// | `receive` | flag | whether it was a receive |
/// | `message` | number | the message that completed it; 2^64 - 1 for eager sends |
pub(super) fn request_ends(of: Measured<'_>) -> Columns {
    let rows = kept(of).map(Operations::request_ends).unwrap_or_default();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| row.job.0.into()))
        .u32("rank", Number, rows.iter().map(|row| row.rank.0))
        .u64("operation", Number, rows.iter().map(|row| row.operation))
        .u32("slot", Number, rows.iter().map(|row| row.slot))
        .u64("at", Picoseconds, rows.iter().map(|row| row.at.0))
        .flag("receive", rows.iter().map(|row| row.receive))
        .u64("message", Number, rows.iter().map(|row| row.message.unwrap_or(NONE)))
}

/// One row per member of each communicator that recorded operations named: its `place` there and its `rank` in the job.
pub(super) fn communicators(of: Measured<'_>) -> Columns {
    let all = kept(of).map(Operations::communicators).unwrap_or_default();
    let rows: Vec<(u32, u32, u32, u32)> = all
        .iter()
        .flat_map(|(job, context, members)| {
            (0..).zip(members.iter()).map(move |(place, rank)| (u32::from(job.0), *context, place, *rank))
        })
        .collect();
    Columns::default()
        .u32("job", Number, rows.iter().map(|row| row.0))
        .u32("context", Number, rows.iter().map(|row| row.1))
        .u32("place", Number, rows.iter().map(|row| row.2))
        .u32("rank", Number, rows.iter().map(|row| row.3))
}

/// One row per packet that started on a link, where that is kept.
///
/// | column | unit | |
/// |---|---|---|
/// | `time` | ps | when it started |
/// | `waited` | ps | its queueing delay at the port |
/// | `link`, `lane`, `job` | number | |
/// | `message` | number | the message's token, which others have before and after it |
/// | `stage` | number | the message's stage in its transfer |
/// | `packet` | number | the packet's place in its message |
/// | `bytes` | bytes | on the wire |
pub(super) fn departures(of: Measured<'_>) -> Columns {
    let rows = of.network.departures();
    Columns::default()
        .u64("time", Picoseconds, rows.iter().map(|row| row.time))
        .u64("waited", Picoseconds, rows.iter().map(|row| row.waited))
        .u32("link", Number, rows.iter().map(|row| row.link))
        .u8("lane", Number, rows.iter().map(|row| row.lane))
        .u32("job", Number, rows.iter().map(|row| u32::from(row.job)))
        .u32("message", Number, rows.iter().map(|row| row.token))
        .u8("stage", Number, rows.iter().map(|row| row.stage))
        .u32("packet", Number, rows.iter().map(|row| row.packet))
        .u32("bytes", Bytes, rows.iter().map(|row| row.bytes))
}
