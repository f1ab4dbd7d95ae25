//! What can be wrong with a trace.

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
        /// What is wrong with it.
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
        /// What is wrong with it.
        problem: String,
    },
    /// A node of a graph that does not fit the others.
    #[error("{}: rank {rank}, {place} {number}: {problem}", file.display())]
    Node {
        /// The file, or the first of them.
        file: PathBuf,
        /// The rank.
        rank: u32,
        /// What the number is of: a line, a node.
        place: &'static str,
        /// The line or the node.
        number: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// What a source says of a record that it cannot replay.
    #[error("{0}")]
    Source(String),
    /// An option that does not fit the trace.
    #[error("{key} = {value:?}: {problem}")]
    Option {
        /// The option.
        key: &'static str,
        /// The value given.
        value: String,
        /// What is wrong with it, and what is allowed.
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
