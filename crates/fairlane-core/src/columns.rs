//! Tables as typed columns of equal length, for results and for the links of a fabric.

use std::borrow::Cow;

/// The meaning of the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A time or an instant, in picoseconds.
    Picoseconds,
    /// An amount of data, in bytes.
    Bytes,
    /// A bandwidth, in bits per second.
    BitsPerSecond,
    /// A number of things: packets, messages, calls, iterations.
    Count,
    /// The number of one thing: a job, a rank, a link, a lane.
    Number,
    /// 1 for true, 0 for false.
    Flag,
    /// A name.
    Name,
}

/// The values of a column, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Of 8 bits.
    U8(Vec<u8>),
    /// Of 32 bits.
    U32(Vec<u32>),
    /// Of 64 bits.
    U64(Vec<u64>),
    /// Of 64 bits with a sign.
    I64(Vec<i64>),
    /// Text.
    Text(Vec<Cow<'static, str>>),
}

impl Values {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as bytes, the same on every platform: numbers in little-endian order, text as a JSON list in UTF-8.
    #[must_use]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::U8(values) => Cow::Borrowed(values),
            Self::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::I64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::Text(values) => serde_json::json!(values).to_string().into_bytes().into(),
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unique in its table.
    pub name: &'static str,
    /// The meaning of its numbers.
    pub unit: Unit,
    /// Its values.
    pub values: Values,
}

/// The columns of a table, all of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// The columns, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Column> {
        self.0.iter()
    }

    /// The values of a column.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<&Values> {
        self.0.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, |column| column.values.len())
    }

    /// Adds a column of numbers of 8 bits.
    #[must_use]
    pub fn u8(self, name: &'static str, unit: Unit, values: impl IntoIterator<Item = u8>) -> Self {
        self.with(name, unit, Values::U8(values.into_iter().collect()))
    }

    /// Adds a column of numbers of 32 bits.
    #[must_use]
    pub fn u32(self, name: &'static str, unit: Unit, values: impl IntoIterator<Item = u32>) -> Self {
        self.with(name, unit, Values::U32(values.into_iter().collect()))
    }

    /// Adds a column of numbers of 64 bits.
    #[must_use]
    pub fn u64(self, name: &'static str, unit: Unit, values: impl IntoIterator<Item = u64>) -> Self {
        self.with(name, unit, Values::U64(values.into_iter().collect()))
    }

    /// Adds a column of numbers of 64 bits with a sign.
    #[must_use]
    pub fn i64(self, name: &'static str, unit: Unit, values: impl IntoIterator<Item = i64>) -> Self {
        self.with(name, unit, Values::I64(values.into_iter().collect()))
    }

    /// Adds a column of flags.
    #[must_use]
    pub fn flag(self, name: &'static str, values: impl IntoIterator<Item = bool>) -> Self {
        self.u8(name, Unit::Flag, values.into_iter().map(u8::from))
    }

    /// Adds a column of names.
    #[must_use]
    pub fn text(self, name: &'static str, values: impl IntoIterator<Item = impl Into<Cow<'static, str>>>) -> Self {
        self.with(name, Unit::Name, Values::Text(values.into_iter().map(Into::into).collect()))
    }

    fn with(mut self, name: &'static str, unit: Unit, values: Values) -> Self {
        debug_assert!(self.0.is_empty() || values.len() == self.rows(), "column {name} has another length");
        debug_assert!(self.values(name).is_none(), "two columns {name}");
        self.0.push(Column { name, unit, values });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_do_not_depend_on_the_platform() {
        let columns = Columns::default()
            .u8("a", Unit::Number, [7, 255])
            .u32("b", Unit::Number, [1, 0x0102_0304])
            .u64("c", Unit::Bytes, [1 << 40, u64::MAX])
            .i64("d", Unit::Number, [-1, 2])
            .flag("e", [true, false])
            .text("f", ["x", "\"ä\""]);
        assert_eq!(columns.rows(), 2);
        let bytes: Vec<Vec<u8>> = columns.iter().map(|column| column.values.bytes().into_owned()).collect();
        assert_eq!(bytes[0], [7, 255]);
        assert_eq!(bytes[1], [1, 0, 0, 0, 4, 3, 2, 1]);
        assert_eq!(bytes[2], [[0, 0, 0, 0, 0, 1, 0, 0], [255; 8]].concat());
        assert_eq!(bytes[3], [[255; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(bytes[4], [1, 0]);
        assert_eq!(bytes[5], r#"["x","\"ä\""]"#.as_bytes());
        assert_eq!(columns.values("b"), Some(&Values::U32(vec![1, 0x0102_0304])));
        assert_eq!(columns.values("g"), None);
    }
}
