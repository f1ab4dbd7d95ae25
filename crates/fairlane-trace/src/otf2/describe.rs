//! Counts what is in an archive: the replay's own reading, with an eye on every event.

use std::path::Path;
use std::sync::Arc;

use super::collectives::{Operation, non_blocking_name, operation};
use super::definitions::Definitions;
use super::event::{Collective, Event, Events, Moment, OneSided};
use super::library::Archive;
use super::needs::Need;
use super::source::{Fault, RankReader, Step};
use super::{archive, readers};
use crate::Options;
use crate::description::Description;
use crate::error::TraceError;
use crate::tally::{HandedIn, RankTally, add_up};
use crate::unsupported::Collector;

/// The time of a rank.
#[derive(Default)]
struct Clock {
    wall: Option<(u64, u64)>,
    /// CPU time when the call that the rank is in began.
    entered: Option<u64>,
    since_init: Option<u64>,
    total: Option<u64>,
    in_mpi: u64,
}

impl Clock {
    fn moment(&mut self, moment: Moment) {
        let (first, _) = self.wall.unwrap_or((moment.wall, moment.wall));
        self.wall = Some((first, moment.wall));
    }

    fn enter(&mut self, call: &str, moment: Moment) {
        self.entered = moment.cpu;
        if call == "MPI_Finalize" {
            self.total = moment.cpu.zip(self.since_init).map(|(now, since)| now.saturating_sub(since));
        }
    }

    fn leave(&mut self, call: &str, moment: Moment) {
        if call.starts_with("MPI_Init") && !call.starts_with("MPI_Initialized") {
            self.since_init = moment.cpu;
        } else if let (Some(_), Some(now), Some(entered)) = (self.since_init, moment.cpu, self.entered) {
            self.in_mpi += now.saturating_sub(entered);
        }
    }
}

/// Describes an archive.
pub fn describe(anchor: &Path, options: &Options) -> Result<Description, TraceError> {
    let archive = archive(anchor, options)?;
    let definitions = &archive.definitions;
    let plain = Options { repeat: false, message_scale: 1.0, ..options.clone() };
    let mut description = Description {
        format: "OTF2".to_owned(),
        version: archive.version.clone(),
        ranks: u32::try_from(definitions.ranks.len()).unwrap_or(u32::MAX),
        events: definitions.ranks.iter().map(|(_, events)| events).sum(),
        ..Description::default()
    };
    let (mut tallies, mut unsupported, mut total, mut in_mpi) = (Vec::new(), Collector::default(), None, 0);
    for mut reader in readers(&archive, anchor, &plain) {
        if tallies.is_empty() {
            reader.out.keep_starts();
        }
        let (tally, clock) = read(&mut reader, &mut description, &mut unsupported)?;
        if let (true, Some((first, _))) = (tallies.is_empty(), clock.wall) {
            let since = |start: &u64| ratio(start.saturating_sub(first), definitions.ticks_per_second);
            description.iteration_starts = reader.out.starts().iter().map(since).collect();
        }
        description.ranks_without_iterations += u32::from(!reader.out.is_bounded());
        description.ranks_without_operations += u32::from(!reader.out.is_busy());
        tallies.push(tally);
        if let Some(cpu) = clock.total {
            *total.get_or_insert(0) += cpu;
            in_mpi += clock.in_mpi;
        }
        let ticks = clock.wall.map_or(0, |(first, last)| last.saturating_sub(first));
        description.duration_seconds = description.duration_seconds.max(ratio(ticks, definitions.ticks_per_second));
    }
    count_threads(&archive, &mut description, &mut unsupported).map_err(|problem| TraceError::file(anchor, problem))?;
    description.cpu_seconds = total.map(|cpu| ratio(cpu, 1_000_000_000));
    description.cpu_seconds_in_mpi = total.map(|_| ratio(in_mpi, 1_000_000_000));
    description.unsupported = unsupported.finish();
    add_up(&tallies, &mut description);
    count_communicators(definitions, &mut description);
    Ok(description)
}

#[allow(clippy::cast_precision_loss, reason = "for display")]
fn ratio(ticks: u64, per_second: u64) -> f64 {
    ticks as f64 / per_second as f64
}

fn count_communicators(definitions: &Definitions, description: &mut Description) {
    for (id, communicator) in &definitions.communicators {
        let Some(size) = definitions.size_of(*id) else { continue };
        *description.communicators.entry(format!("{}({size})", title(&communicator.name))).or_default() += 1;
    }
    for window in definitions.windows.values() {
        let size = definitions.size_of(window.comm).map_or_else(String::new, |size| format!("({size})"));
        *description.windows.entry(format!("{}{size}", title(&window.name))).or_default() += 1;
    }
}

/// The name of a communicator or a window in a description.
fn title(name: &str) -> &str {
    if name.is_empty() { "unnamed" } else { name }
}

/// Counts the MPI calls that communicate in threads other than the ranks': only the events of the ranks' locations are
/// simulated.
fn count_threads(
    archive: &Arc<Archive>,
    description: &mut Description,
    unsupported: &mut Collector,
) -> Result<(), String> {
    let regions = &archive.definitions.regions;
    for thread in &archive.definitions.threads {
        let mut events = Events::new(Arc::clone(archive), thread.location);
        // The call of MPI that the thread is in, the number of the record that entered it, and whether it counts.
        let mut call: Option<(u32, u64, bool)> = None;
        while let Some((record, event)) = events.next()? {
            match event {
                Event::Enter(id, _) if call.is_none() && regions.get(&id).is_some_and(|region| region.mpi) => {
                    let counts = regions[&id].need != Need::Nothing;
                    call = Some((id, record, counts));
                }
                Event::Leave(id, _) if call.is_some_and(|(of, ..)| of == id) => {
                    if let Some((id, entered, true)) = call.take() {
                        let name = &regions[&id].name;
                        *description.calls.entry(name.to_string()).or_default() += 1;
                        unsupported.add(name, OF_A_THREAD.to_owned(), thread.rank, entered);
                    }
                }
                Event::Enter(..) | Event::Leave(..) | Event::RequestTest(_) => {}
                _ => call = call.map(|(id, entered, _)| (id, entered, true)),
            }
        }
    }
    Ok(())
}

/// Why a call of another thread than the rank's cannot be simulated.
const OF_A_THREAD: &str =
    "a thread other than the main thread of the rank makes this call: such threads are not simulated";

/// The state of a call of MPI.
#[derive(Default)]
struct Progress {
    tested: bool,
    completed: bool,
}

fn read(
    reader: &mut RankReader,
    description: &mut Description,
    unsupported: &mut Collector,
) -> Result<(RankTally, Clock), TraceError> {
    let (mut tally, mut clock, mut progress) = (RankTally::new(), Clock::default(), Progress::default());
    loop {
        let call = reader.call().map(|region| region.name.clone());
        let Step { more, fault } = reader.survey()?;
        if let Some(Fault { call, record, problem }) = fault {
            unsupported.add(&call, problem, reader.rank(), record);
        }
        for op in reader.out.take() {
            tally.op(&op);
        }
        let Some(event) = reader.event() else { return Ok((tally, clock)) };
        match event {
            Event::Enter(id, moment) => {
                clock.moment(moment);
                let Some(region) = reader.region(id) else { continue };
                let counts = if region.mpi { &mut description.calls } else { &mut description.regions };
                *counts.entry(region.name.to_string()).or_default() += 1;
                if region.mpi && call.is_none() {
                    clock.enter(&region.name, moment);
                    progress = Progress::default();
                }
            }
            Event::Leave(_, moment) => {
                clock.moment(moment);
                if let (Some(call), None) = (&call, reader.call()) {
                    clock.leave(call, moment);
                    if progress.tested && !progress.completed {
                        *description.failed_polls.entry(call.to_string()).or_default() += 1;
                    }
                }
            }
            Event::RequestTest(_) | Event::Rma(OneSided::GroupSync { done: false, .. }) => progress.tested = true,
            Event::Isend(..) => *description.requests.entry("send".to_owned()).or_default() += 1,
            Event::IrecvRequest(_) | Event::ImrecvRequest(..) => {
                *description.requests.entry("receive".to_owned()).or_default() += 1
            }
            Event::CollectiveRequest(_) => {
                *description.requests.entry("non-blocking collective".to_owned()).or_default() += 1;
            }
            Event::IsendComplete(_) | Event::Irecv(..) | Event::ImrecvComplete(_) => progress.completed = true,
            Event::CollectiveComplete(collective, _) => {
                progress.completed = true;
                let name = non_blocking_name(collective.operation);
                count_collective(reader, &mut tally, collective, name);
            }
            Event::CollectiveEnd(collective) => {
                let name = operation(collective.operation).map(|(name, _)| name);
                count_collective(reader, &mut tally, collective, name);
            }
            _ => {}
        }
        if !more {
            return Ok((tally, clock));
        }
    }
}

fn count_collective(reader: &RankReader, tally: &mut RankTally, event: Collective, name: Option<&'static str>) {
    let (Some(name), Some(comm)) = (name, reader.known(event.comm)) else { return };
    tally.collective(name, comm, HandedIn::Bytes(event.sent));
    if let Some((_, Operation::Collective(kind, _))) = operation(event.operation) {
        tally.kind(kind);
    }
}
