//! Tables of named things: look up by name, with the nearest name in the error.

use serde::de::DeserializeOwned;

use crate::error::BuildError;

/// The entry called `name`.
///
/// # Errors
/// [`BuildError::UnknownName`] lists the table.
pub fn find<'t, T>(
    kind: &'static str,
    table: &'t [T],
    name_of: impl Fn(&T) -> &'static str,
    name: &str,
) -> Result<&'t T, BuildError> {
    table.iter().find(|entry| name_of(entry) == name).ok_or_else(|| BuildError::UnknownName {
        kind,
        given: name.to_owned(),
        allowed: table.iter().map(|entry| name_of(entry).to_owned()).collect(),
    })
}

/// Reads an entry's parameters from JSON; `path` is where they stand, for the error.
///
/// # Errors
/// [`BuildError::Shape`] with serde's words.
pub fn params<P: DeserializeOwned>(path: &str, json: &serde_json::Value) -> Result<P, BuildError> {
    P::deserialize(json).map_err(|error| BuildError::Shape { path: path.to_owned(), problem: error.to_string() })
}
