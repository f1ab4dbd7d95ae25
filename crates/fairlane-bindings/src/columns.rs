//! Tables as Python takes them: of each column a numpy dtype and the raw bytes; text as "json" and a JSON list.

use fairlane_core::columns::{Columns, Values};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A table as a dictionary of column name to (dtype, bytes).
pub fn into_dict<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for column in columns.iter() {
        let dtype = match column.values {
            Values::U8(_) => "u1",
            Values::U32(_) => "<u4",
            Values::U64(_) => "<u8",
            Values::I64(_) => "<i8",
            Values::Text(_) => "json",
        };
        dict.set_item(column.name, (dtype, PyBytes::new(py, &column.values.bytes())))?;
    }
    Ok(dict)
}
