//! Tables of entries: what can be asked for by name, with the nearest name in the error.
//!
//! A topology, a routing, an arbiter, a collective algorithm, a transport, a switch architecture, an allocator or a fault is an [`Item`]
//! of the [`Table`] of its [`Kind`]. A table starts with the built-in entries; others are added by [`Table::add`], usually to those
//! of a [`Registry`](crate::registry::Registry). [`Table::build`] builds what is named, for every kind in the same way.

use schemars::{JsonSchema, Schema};
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

/// A name, or a name with parameters, among the parameters of an entry that is made of others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    /// A name alone.
    Name(String),
    /// A name with parameters.
    Params {
        /// Its name.
        name: String,
        /// Its parameters.
        #[serde(default)]
        params: serde_json::Value,
    },
}

impl Choice {
    /// The name and the parameters.
    #[must_use]
    pub const fn parts(&self) -> (&String, &serde_json::Value) {
        match self {
            Self::Name(name) => (name, &serde_json::Value::Null),
            Self::Params { name, params } => (name, params),
        }
    }
}

/// A kind of entry: what its [`Item`]s build, from what, and how.
pub trait Kind: Sized + 'static {
    /// The word for one of them in errors: "arbiter".
    const KIND: &'static str;
    /// Where its parameters stand in a specification, for errors: "qos.arbiter".
    const PATH: &'static str;
    /// The entries of fairlane itself.
    const BUILT_IN: &'static [Item<Self>];
    /// The surroundings that it is built for, besides its parameters.
    type Given<'a>;
    /// The thing that it builds.
    type Built;
    /// The declaration by which an entry is built, usually a [`Constructor`].
    type Build: Copy + Send + Sync;

    /// Builds what an entry declares from parameters that are a JSON object. `table` is for entries that are made of others.
    ///
    /// # Errors
    /// [`BuildError`] names the parameter that is wrong.
    fn build(
        entry: &'static Item<Self>,
        table: &Table<Self>,
        params: &serde_json::Value,
        given: Self::Given<'_>,
    ) -> Result<Self::Built, BuildError>;

    /// Entries of one scope have different names: all of a table, by default.
    #[must_use]
    fn scope(_entry: &Item<Self>) -> &'static str {
        ""
    }

    /// The properties of an entry that [`Table::describe`] lists besides name, summary and schema.
    #[must_use]
    fn details(_entry: &Item<Self>) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }
}

/// A function that builds an entry of a [`Kind`] from parameters that follow the schema.
pub type Constructor<K> =
    for<'a> fn(&serde_json::Value, <K as Kind>::Given<'a>) -> Result<<K as Kind>::Built, BuildError>;

/// An entry of a [`Kind`].
pub struct Item<K: Kind> {
    /// The name in scenario files.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The JSON schema of its parameters.
    pub schema: fn() -> Schema,
    /// Builds it from parameters that follow the schema.
    pub build: K::Build,
}

impl<K: Kind> std::fmt::Debug for Item<K> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} {:?}", K::KIND, self.name)
    }
}

impl<K: Kind> Item<K> {
    /// The entries as `fairlane list`, checks and the reference pages show them: name, summary, and the schema of the parameters.
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        let mut members = serde_json::Map::new();
        members.insert("name".to_owned(), self.name.into());
        members.insert("summary".to_owned(), self.summary.into());
        members.extend(K::details(self).into_iter().map(|(key, value)| (key.to_owned(), value)));
        members.insert("schema".to_owned(), (self.schema)().to_value());
        serde_json::Value::Object(members)
    }
}

/// The entries of one kind.
#[derive(Debug)]
pub struct Table<K: Kind> {
    entries: Vec<&'static Item<K>>,
}

impl<K: Kind> Clone for Table<K> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<K: Kind> Default for Table<K> {
    /// The built-in entries.
    fn default() -> Self {
        Self { entries: K::BUILT_IN.iter().collect() }
    }
}

impl<K: Kind> Table<K> {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`BuildError::DuplicateName`] if the table has an entry of this name already; it is unchanged then.
    pub fn add(&mut self, entry: &'static Item<K>) -> Result<(), BuildError> {
        let same = |known: &&&Item<K>| known.name == entry.name && K::scope(known) == K::scope(entry);
        if let Some(known) = self.entries.iter().find(same) {
            return Err(BuildError::DuplicateName {
                kind: K::KIND,
                name: entry.name.to_owned(),
                known: known.summary.to_owned(),
                added: entry.summary.to_owned(),
            });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Every entry, the built-in ones first.
    pub fn entries(&self) -> impl Iterator<Item = &'static Item<K>> {
        self.entries.iter().copied()
    }

    /// The entry called `name`.
    ///
    /// # Errors
    /// [`BuildError::UnknownName`] lists the table.
    pub fn find(&self, name: &str) -> Result<&'static Item<K>, BuildError> {
        find(K::KIND, &self.entries, |entry| entry.name, name).copied()
    }

    /// A list of all entries; see [`Item::describe`].
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        self.entries().map(Item::describe).collect()
    }

    /// Finds the entry `name` and builds it from `params`, which are an object or, for no parameters, null.
    ///
    /// # Errors
    /// [`BuildError`] when the name or a parameter is wrong. Its path begins with [`Kind::PATH`].
    pub fn build(&self, name: &str, params: &serde_json::Value, given: K::Given<'_>) -> Result<K::Built, BuildError> {
        let entry = self.find(name)?;
        let none = serde_json::Value::Object(serde_json::Map::new());
        let params = match params {
            serde_json::Value::Object(_) => params,
            serde_json::Value::Null => &none,
            other => {
                let problem = format!("the parameters of {} {name:?} are an object, not {other}", K::KIND);
                return Err(BuildError::Shape { path: K::PATH.to_owned(), problem });
            }
        };
        K::build(entry, self, params, given)
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
    /// The schema of no parameters.
    #[must_use]
    pub fn schema() -> Schema {
        schemars::schema_for!(Self)
    }

    /// Checks that no parameters are given; `path` is where they would stand.
    ///
    /// # Errors
    /// [`BuildError::Shape`] names the first.
    pub fn check(path: &str, json: &serde_json::Value) -> Result<(), BuildError> {
        params::<Self>(path, json).map(|Self {}| ())
    }
}
