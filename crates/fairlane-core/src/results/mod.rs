//! The measurements of a simulation so far, as tables of typed columns, and their digest.
//!
//! [`TABLES`] lists the tables; each is made by a function of one of this folder's files, which says what its columns are.
//! Jobs, ranks, links, lanes and iterations are numbers; times and instants are picoseconds.

mod classes;
mod digest;
mod faults;
mod latency;
mod pauses;
mod ports;
mod ranks;
mod record;
mod totals;

use crate::columns::Columns;
use crate::error::BuildError;
use crate::fault::FaultLog;
use crate::ids::JobId;
use crate::mpi::Mpi;
use crate::network::Network;
use crate::table;

pub(crate) use digest::digest;
pub(crate) use latency::message_latencies;

/// The sources of the tables.
#[derive(Clone, Copy)]
pub struct Measured<'s> {
    /// Counters of ports, interference, latencies of packets, departures.
    pub network: &'s Network,
    /// Records of ranks, latencies of messages, the record of a job.
    pub mpi: &'s Mpi,
    /// The effects of faults.
    pub faults: &'s FaultLog,
}

impl<'s> Measured<'s> {
    /// The jobs.
    pub(crate) fn jobs(self) -> impl Iterator<Item = JobId> + use<'s> {
        (0..u16::try_from(self.mpi.jobs()).unwrap_or(u16::MAX)).map(JobId)
    }
}

/// A table of results.
#[derive(Debug)]
pub struct ResultTable {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Whether its contents enter the digest of a simulation: tables that are measured whatever is observed besides.
    pub in_digest: bool,
    /// Makes the table.
    pub columns: fn(Measured<'_>) -> Columns,
}

const fn table(name: &'static str, columns: fn(Measured<'_>) -> Columns, summary: &'static str) -> ResultTable {
    ResultTable { name, summary, in_digest: false, columns }
}

/// A table that enters the digest.
const fn digested(name: &'static str, columns: fn(Measured<'_>) -> Columns, summary: &'static str) -> ResultTable {
    ResultTable { in_digest: true, ..table(name, columns, summary) }
}

/// All tables. Those of the digest enter it in this order.
pub const TABLES: &[ResultTable] = &[
    digested("ranks", ranks::ranks, "what each rank has done"),
    digested("calls", ranks::calls, "time in each MPI call, by job"),
    digested("ports", ports::ports, "what each lane of each port has carried"),
    digested("interference", ports::interference, "queueing delay by victim and aggressor"),
    table("port_interference", ports::port_interference, "the same by port"),
    table("under_way", ranks::under_way, "what each rank is doing"),
    table("marks", ranks::marks, "when each rank completed its iterations"),
    table("job_marks", ranks::job_marks, "when each job completed its iterations"),
    table("latency", latency::latency, "latencies of messages and packets, by job and traffic kind"),
    table("latency_histogram", latency::histogram, "the distribution of these latencies"),
    table("latency_counts", latency::counts, "the same in numbers alone"),
    table("class_latency", latency::class_latency, "latencies by job, traffic class and traffic kind"),
    table("class_latency_histogram", latency::class_histogram, "the distribution of these latencies"),
    table("class_bytes", classes::bytes, "bytes of the packets of each job and traffic class"),
    table(
        "class_interference",
        classes::interference,
        "queueing delay by job and traffic class of victim and aggressor",
    ),
    table("messages", record::messages, "the messages of the recorded jobs"),
    table("waits", record::waits, "the waits of the recorded jobs"),
    table("operations", record::operations, "what the ranks of the recorded jobs did, one operation after another"),
    table("request_ends", record::request_ends, "the requests that these operations ended"),
    table("communicators", record::communicators, "the communicators that they named"),
    table("pauses", pauses::pauses, "lanes that priority flow control has paused, the first first"),
    table("sweeps", faults::sweeps, "when routes were computed anew, and for what"),
    table("failures", faults::failures, "jobs that have failed because packets were lost for good"),
    table("totals", totals::totals, "what the network has carried, in one row"),
    table("departures", record::departures, "the log of packets that started on a link"),
];

/// The table called `name`.
///
/// # Errors
/// [`BuildError::UnknownName`] lists all.
pub fn find(name: &str) -> Result<&'static ResultTable, BuildError> {
    table::find("table of results", TABLES, |table| table.name, name)
}
