//! The columnar interface of a fetcher: partitions in, Arrow arrays out by the PyCapsule interface.
//!
//! Owns no behaviour. Every call that may wait, and the building of arrays, release the interpreter lock.

use arrow_array::Array;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_schema::ArrowError;
use pybroker_client::columns::{self, Column, Pick};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use crate::client::client_error::client_error;
use crate::client::connection::wait;
use crate::client::fetcher::Fetcher;
use crate::client::positions::{as_rows, assignment, start};

/// A fetcher's records as columns.
#[pyclass(frozen, module = "pybroker._native")]
pub struct ColumnReader {
    inner: columns::ColumnReader,
}

#[pymethods]
impl ColumnReader {
    #[new]
    #[pyo3(signature = (fetcher))]
    fn new(fetcher: &Bound<'_, Fetcher>) -> Self {
        Self { inner: columns::ColumnReader::new(std::sync::Arc::clone(&fetcher.get().inner)) }
    }

    /// Reads these partitions, and no others: (topic, partition, offset; -1 after the last record, -2 from the first).
    #[pyo3(signature = (partitions))]
    fn assign(&self, py: Python<'_>, partitions: Vec<(String, i32, i64)>) {
        py.detach(|| self.inner.assign(assignment(partitions)));
    }

    /// Moves one assigned partition to another position; false if it is not assigned.
    #[pyo3(signature = (topic, partition, offset))]
    fn seek(&self, py: Python<'_>, topic: &str, partition: i32, offset: i64) -> bool {
        py.detach(|| self.inner.seek(topic, partition, start(offset)))
    }

    /// The caller's positions: (topic, partition, offset or -1 or -2).
    fn positions(&self, py: Python<'_>) -> Vec<(String, i32, i64)> {
        as_rows(py.detach(|| self.inner.positions()))
    }

    /// The next records of one partition; `None` if none arrived within the timeout.
    #[pyo3(signature = (timeout_s, columns, *, end, max_rows, max_bytes))]
    fn take(
        &self,
        py: Python<'_>,
        timeout_s: f64,
        columns: Vec<String>,
        end: Option<i64>,
        max_rows: usize,
        max_bytes: usize,
    ) -> PyResult<Option<RecordColumns>> {
        let picked: Result<Vec<Column>, _> = columns.iter().map(|name| name.parse()).collect();
        let pick = Pick { columns: &picked.map_err(client_error)?, end, max_rows, max_bytes };
        let taken = py.detach(|| self.inner.take(wait(timeout_s), pick)).map_err(client_error)?;
        Ok(taken.map(|inner| RecordColumns { topic: PyString::new(py, &inner.topic).unbind(), inner }))
    }
}

/// Records of one partition as columns.
#[pyclass(frozen, module = "pybroker._native")]
pub struct RecordColumns {
    topic: Py<PyString>,
    inner: columns::RecordColumns,
}

#[pymethods]
impl RecordColumns {
    #[getter]
    fn topic(&self, py: Python<'_>) -> Py<PyString> {
        self.topic.clone_ref(py)
    }

    #[getter]
    fn partition(&self) -> i32 {
        self.inner.index
    }

    #[getter]
    fn rows(&self) -> usize {
        self.inner.array.len()
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    #[getter]
    fn next_offset(&self) -> i64 {
        self.inner.next_offset
    }

    /// A capsule with the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.inner.array.data_type()).map_err(not_exported)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Capsules with schema and array; the buffers are shared.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The caller may request a schema; it has to check the schema that it gets.
        let _ = requested_schema;
        let array = FFI_ArrowArray::new(&self.inner.array.to_data());
        Ok((self.__arrow_c_schema__(py)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}

fn not_exported(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
