//! Tables of entries: what can be asked for by name, with the nearest name in the error.
//!
//! A topology, a routing, an arbiter, a collective algorithm or a transport is an [`Entry`] of a [`Table`]. A table starts with
//! the built-in entries; others are added by [`Table::add`], usually through
//! [`Registry::add`](crate::registry::Registry::add).

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::BuildError;

/// An entry's name with parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name in its table.
    pub name: String,
    /// Its parameters; see its schema.
    #[serde(default)]
    pub params: serde_json::Value,
}

impl Named {
    /// A name without parameters.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), params: serde_json::Value::Null }
    }
}

/// What a table lists.
pub trait Entry: Sized + Sync + 'static {
    /// What one of them is called in errors: "topology".
    const KIND: &'static str;
    /// The entries of fairlane itself.
    const BUILT_IN: &'static [Self];

    /// The name in scenario files.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// Entries of one scope have different names: all of a table, by default.
    fn scope(&self) -> &'static str {
        ""
    }

    /// What `fairlane list`, checks and the reference pages are made from: name, summary, and the schema of the parameters.
    fn describe(&self) -> serde_json::Value;
}

/// The entries of one kind.
#[derive(Debug)]
pub struct Table<E: 'static> {
    entries: Vec<&'static E>,
}

impl<E> Clone for Table<E> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<E: Entry> Default for Table<E> {
    /// The built-in entries.
    fn default() -> Self {
        Self { entries: E::BUILT_IN.iter().collect() }
    }
}

impl<E: Entry> Table<E> {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`BuildError::DuplicateName`] if the table has an entry of this name already; it is unchanged then.
    pub fn add(&mut self, entry: &'static E) -> Result<(), BuildError> {
        let same = |known: &&&E| known.name() == entry.name() && known.scope() == entry.scope();
        if let Some(known) = self.entries.iter().find(same) {
            return Err(BuildError::DuplicateName {
                kind: E::KIND,
                name: entry.name().to_owned(),
                known: known.summary().to_owned(),
                added: entry.summary().to_owned(),
            });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Every entry, the built-in ones first.
    pub fn entries(&self) -> impl Iterator<Item = &'static E> {
        self.entries.iter().copied()
    }

    /// The entry called `name`.
    ///
    /// # Errors
    /// [`BuildError::UnknownName`] lists the table.
    pub fn find(&self, name: &str) -> Result<&'static E, BuildError> {
        find(E::KIND, &self.entries, |entry| entry.name(), name).copied()
    }

    /// A list of all entries; see [`Entry::describe`].
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        self.entries().map(Entry::describe).collect()
    }
}

/// The member of `all` called `name`.
///
/// # Errors
/// [`BuildError::UnknownName`] lists all.
pub fn find<'t, T>(
    kind: &'static str,
    all: &'t [T],
    name_of: impl Fn(&T) -> &'static str,
    name: &str,
) -> Result<&'t T, BuildError> {
    all.iter().find(|entry| name_of(entry) == name).ok_or_else(|| BuildError::UnknownName {
        kind,
        given: name.to_owned(),
        allowed: all.iter().map(|entry| name_of(entry).to_owned()).collect(),
    })
}

/// Reads an entry's parameters from JSON, where nothing at all is none; `path` is where they stand, for the error.
///
/// # Errors
/// [`BuildError::Shape`] with serde's words.
pub fn params<P: DeserializeOwned>(path: &str, json: &serde_json::Value) -> Result<P, BuildError> {
    let none = serde_json::json!({});
    P::deserialize(if json.is_null() { &none } else { json })
        .map_err(|error| BuildError::Shape { path: path.to_owned(), problem: error.to_string() })
}

/// The parameters of an entry that has none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

impl NoParams {
    /// Checks that no parameters are given; `path` is where they would stand.
    ///
    /// # Errors
    /// [`BuildError::Shape`] names the first.
    pub fn check(path: &str, json: &serde_json::Value) -> Result<(), BuildError> {
        let given = json.as_object().is_some_and(|keys| !keys.is_empty());
        if given { params::<Self>(path, json).map(|_| ()) } else { Ok(()) }
    }
}
