//! Counts what is in a set of DUMPI files: the replay's own reading, with an eye on every record.

use std::path::PathBuf;

use fairlane_core::program::COMM_WORLD;

use super::calls::Call;
use super::record::{ANY, Record, Span};
use super::requests::succeeded;
use super::source::{RankReader, Step};
use super::{collectives, readers};
use crate::Options;
use crate::description::Description;
use crate::error::TraceError;
use crate::tally::{HandedIn, RankTally, add_up};
use crate::unsupported::Collector;

/// The time of a rank, in nanoseconds.
#[derive(Default)]
struct Clock {
    /// From leaving `MPI_Init` to entering `MPI_Finalize` on the CPU clock.
    since: Option<u64>,
    total: Option<u64>,
    in_mpi: u64,
    wall: Option<(u64, u64)>,
}

impl Clock {
    fn record(&mut self, record: &Record) {
        if let Some(Span { enter, leave }) = record.wall {
            let (first, _) = self.wall.unwrap_or((enter, leave));
            self.wall = Some((first, leave));
        }
        let Some(span) = record.cpu else { return };
        match record.call() {
            Call::Init => self.since = Some(span.leave),
            Call::Finalize => self.total = self.since.map(|since| span.enter.saturating_sub(since)),
            _ if self.since.is_some() => self.in_mpi += span.length(),
            _ => {}
        }
    }
}

/// Describes a set of files.
pub fn describe(files: &[PathBuf], options: &Options) -> Result<Description, TraceError> {
    let options = Options { iteration: options.iteration.clone(), repeat: false, ..Options::default() };
    let mut description = Description { format: "DUMPI".to_owned(), ..Description::default() };
    let (mut tallies, mut unsupported) = (Vec::new(), Collector::default());
    let (mut cpu, mut in_mpi) = (None, 0);
    for mut reader in readers(files, &options)? {
        if tallies.is_empty() {
            reader.out.keep_starts();
        }
        let (tally, clock) = read(&mut reader, &mut description, &mut unsupported)?;
        if let (true, Some((first, _))) = (tallies.is_empty(), clock.wall) {
            description.iteration_starts =
                reader.out.starts().iter().map(|start| seconds(start.saturating_sub(first))).collect();
        }
        tallies.push(tally);
        description.ranks_without_iterations += u32::from(!reader.out.is_bounded());
        description.ranks_without_operations += u32::from(!reader.out.is_busy());
        if let Some(total) = clock.total {
            *cpu.get_or_insert(0) += total;
            in_mpi += clock.in_mpi;
        }
        let wall = clock.wall.map_or(0, |(first, last)| last.saturating_sub(first));
        description.duration_seconds = description.duration_seconds.max(seconds(wall));
        let [major, minor, patch] = reader.version();
        description.version = format!("{major}.{minor}.{patch}");
    }
    description.ranks = u32::try_from(files.len()).expect("invariant: ranks are numbered with 32 bits");
    description.cpu_seconds = cpu.map(seconds);
    description.cpu_seconds_in_mpi = cpu.map(|_| seconds(in_mpi));
    description.unsupported = unsupported.finish();
    add_up(&tallies, &mut description);
    Ok(description)
}

#[allow(clippy::cast_precision_loss, reason = "nanoseconds for display")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn read(
    reader: &mut RankReader,
    description: &mut Description,
    unsupported: &mut Collector,
) -> Result<(RankTally, Clock), TraceError> {
    let (mut tally, mut clock) = (RankTally::new(), Clock::default());
    loop {
        let Step { more, fault } = reader.survey()?;
        let record = reader.record();
        if !more && record.call() != Call::Finalize {
            return Ok((tally, clock));
        }
        if let Some(reason) = fault {
            unsupported.add(record.format().name, reason, reader.rank(), reader.position());
        }
        count(reader, description, &mut tally);
        clock.record(record);
        for op in reader.out.take() {
            tally.op(&op);
        }
        if !more {
            return Ok((tally, clock));
        }
    }
}

fn count(reader: &RankReader, description: &mut Description, tally: &mut RankTally) {
    let record = reader.record();
    let name = record.format().name;
    description.events += 1;
    *description.calls.entry(name.to_owned()).or_default() += 1;
    if !succeeded(record) {
        *description.failed_polls.entry(name.to_owned()).or_default() += 1;
    }
    let source = match record.call() {
        Call::Recv | Call::Irecv => Some(record.number(2)),
        Call::Sendrecv => Some(record.number(6)),
        Call::SendrecvReplace => Some(record.number(4)),
        _ => None,
    };
    description.wildcard_receives += u64::from(source == Some(ANY));
    let parent = match record.call() {
        Call::CommDup | Call::CommSplit | Call::CommCreate | Call::CartCreate => Some(record.number(0)),
        Call::GraphCreate | Call::CartSub => Some(record.number(1)),
        _ => None,
    };
    if let Some(started) = requests_of(record.call()) {
        *description.requests.entry(started.to_owned()).or_default() += 1;
    }
    if record.call() == Call::WinCreate {
        tally.window(reader.handle(record.number(3)).unwrap_or(COMM_WORLD));
    }
    if let Ok(Some(collective)) = collectives::read(record, reader.sizes()) {
        tally.kind(collective.kind);
        tally.collective(name, reader.handle(collective.comm).unwrap_or(0), collective.handed_in);
    } else if let Some(comm) = parent.and_then(|parent| reader.handle(parent)) {
        tally.collective(name, comm, HandedIn::Bytes(0));
    }
}

/// The kind of request that a call makes.
const fn requests_of(call: Call) -> Option<&'static str> {
    Some(match call {
        Call::Isend(_) | Call::Ibsend => "send",
        Call::Irecv => "receive",
        Call::SendInit(_) | Call::BsendInit => "persistent send",
        Call::RecvInit => "persistent receive",
        _ => return None,
    })
}
