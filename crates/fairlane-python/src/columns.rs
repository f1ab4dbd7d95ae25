//! Tables as columns: a numpy dtype and the raw little-endian bytes of each.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A table in the making.
#[derive(Default)]
pub struct Columns {
    columns: Vec<(&'static str, &'static str, Vec<u8>)>,
}

impl Columns {
    /// Adds a column of 64-bit numbers.
    pub fn u64(mut self, name: &'static str, values: impl Iterator<Item = u64>) -> Self {
        self.columns.push((name, "<u8", values.flat_map(u64::to_le_bytes).collect()));
        self
    }

    /// Adds a column of 32-bit numbers.
    pub fn u32(mut self, name: &'static str, values: impl Iterator<Item = u32>) -> Self {
        self.columns.push((name, "<u4", values.flat_map(u32::to_le_bytes).collect()));
        self
    }

    /// Adds a column of signed 64-bit numbers.
    pub fn i64(mut self, name: &'static str, values: impl Iterator<Item = i64>) -> Self {
        self.columns.push((name, "<i8", values.flat_map(i64::to_le_bytes).collect()));
        self
    }

    /// Adds a column of bytes.
    pub fn u8(mut self, name: &'static str, values: impl Iterator<Item = u8>) -> Self {
        self.columns.push((name, "u1", values.collect()));
        self
    }

    /// Adds a column of texts: dtype "json", a JSON list.
    pub fn text(mut self, name: &'static str, values: impl Iterator<Item = String>) -> Self {
        let list = serde_json::Value::from(values.collect::<Vec<_>>());
        self.columns.push((name, "json", list.to_string().into_bytes()));
        self
    }

    /// The table as a dictionary of name to (dtype, bytes).
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        for (name, dtype, bytes) in self.columns {
            dict.set_item(name, (dtype, PyBytes::new(py, &bytes)))?;
        }
        Ok(dict)
    }

    /// The columns as one stream of bytes, for a digest.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.columns.iter().flat_map(|(name, _, bytes)| [name.as_bytes(), bytes.as_slice()])
    }
}
