//! The errors of traces.

use std::path::{Path, PathBuf};

use fairlane_core::error::nearest;
use thiserror::Error;

/// A trace that cannot be read or replayed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A file that is not there, or is not what it should be.
    #[error("{}: {problem}", file.display())]
    File {
        /// The file or directory.
        file: PathBuf,
        /// The problem with it.
        problem: String,
    },
    /// A record that cannot be read or replayed.
    #[error("{}: rank {rank}, record {record} ({call}): {problem}", file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// The rank in the trace.
        rank: u32,
        /// The record's number in the file, from 1.
        record: u64,
        /// The call, as `MPI_Put`.
        call: String,
        /// The problem with it.
        problem: String,
    },
    /// A node of a graph that does not fit the others.
    #[error("{}: rank {rank}, {place} {number}: {problem}", file.display())]
    Node {
        /// The file, or the first of them.
        file: PathBuf,
        /// The rank.
        rank: u32,
        /// The unit of the number: a line, a node.
        place: &'static str,
        /// The line or the node.
        number: u64,
        /// The problem with it.
        problem: String,
    },
    /// The message of a source for a record that it cannot replay.
    #[error("{0}")]
    Source(String),
    /// An option that does not fit the trace.
    #[error("{key} = {value:?}: {problem}")]
    Option {
        /// The option.
        key: &'static str,
        /// The value given.
        value: String,
        /// The problem with it, and the allowed values.
        problem: String,
    },
}

impl TraceError {
    pub(crate) fn file(file: &Path, problem: impl ToString) -> Self {
        Self::File { file: file.to_owned(), problem: problem.to_string() }
    }

    /// An option whose value is a name that the trace does not have.
    pub(crate) fn unknown_name(key: &'static str, value: &str, what: &str, known: &[&str]) -> Self {
        let hint = nearest(value, known).map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        Self::Option { key, value: value.to_owned(), problem: format!("no such {what} in the trace{hint}") }
    }
}
