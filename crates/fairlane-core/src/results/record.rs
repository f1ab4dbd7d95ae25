//! Tables of single messages, waits and packets, where these are kept.

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Number, Picoseconds};
use crate::observe::{JobRecord, MessageRecord, call_name};
use crate::units::Instant;

/// In place of an instant or a number: there is none.
const NONE: u64 = u64::MAX;

/// One row per message of the recorded job. Instants that have not come are 2^64 - 1.
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
}

/// One row per wait of the recorded job's ranks.
///
/// | column | unit | |
/// |---|---|---|
/// | `rank` | number | |
/// | `call` | name | the call that it was in |
/// | `since`, `end` | ps | when it was blocked, and went on |
/// | `partner_at` | ps | when the partner had made its send call, or posted its receive |
/// | `message` | number | of the message that ended it; 2^64 - 1 if that is not in the record |
/// | `receiver` | flag | whether the rank was that message's receiver |
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
