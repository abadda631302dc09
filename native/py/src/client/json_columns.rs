//! JSON objects as Arrow columns, and back, by the PyCapsule interface. Owns no behaviour.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, ArrayRef};
use pybroker_client::columns::{JsonError, JsonType, decode_json, encode_json};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::client::columns_import::{Capsules, import_batch};

/// An Arrow array.
#[pyclass(frozen, module = "pybroker._native")]
pub struct ArrowArray {
    inner: ArrayRef,
}

#[pymethods]
impl ArrowArray {
    /// Capsules with schema and array; the buffers are shared.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        // The caller may request a schema; it has to check the schema that it gets.
        let _ = requested_schema;
        let schema =
            FFI_ArrowSchema::try_from(self.inner.data_type()).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let array = FFI_ArrowArray::new(&self.inner.to_data());
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// Decodes the only column of a batch, which is binary: one JSON object per row.
#[pyfunction]
#[pyo3(signature = (batch, columns))]
pub fn decode_json_columns(
    py: Python<'_>,
    batch: Capsules<'_>,
    columns: Vec<(String, String)>,
) -> PyResult<ArrowArray> {
    let batch = import_batch(&batch)?;
    let types: Result<Vec<_>, _> =
        columns.into_iter().map(|(name, kind)| Ok((name, kind.parse::<JsonType>()?))).collect();
    let types = types.map_err(invalid)?;
    let rows = match batch.columns() {
        [rows] => rows.as_binary_opt::<i32>(),
        _ => None,
    };
    let rows = rows.ok_or_else(|| PyValueError::new_err("expected a batch of one column of type binary"))?;
    let decoded = py.detach(|| decode_json(rows, &types)).map_err(invalid)?;
    Ok(ArrowArray { inner: Arc::new(decoded) })
}

/// Encodes each row of a batch as a JSON object.
#[pyfunction]
#[pyo3(signature = (batch))]
pub fn encode_json_columns(py: Python<'_>, batch: Capsules<'_>) -> PyResult<ArrowArray> {
    let batch = import_batch(&batch)?;
    let encoded = py.detach(|| encode_json(&batch)).map_err(invalid)?;
    Ok(ArrowArray { inner: Arc::new(encoded) })
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of map_err")]
fn invalid(error: JsonError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
