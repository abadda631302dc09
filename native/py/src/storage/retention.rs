//! Removing old segments of a partition, for `pybroker.storage.retention`.

use std::path::PathBuf;

use pybroker_storage::{Expired, Removed};
use pyo3::prelude::*;

use crate::error::log_error;
use crate::storage::partition::PyPartition;

/// Segments removed from their log; see `_native.pyi`.
#[pyclass(frozen, name = "RemovedSegments", module = "pybroker._native")]
pub struct PyRemovedSegments {
    expired: Expired,
    removed: Removed,
}

#[pymethods]
impl PyRemovedSegments {
    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.removed.log_start_offset
    }

    #[getter]
    fn below_start(&self) -> usize {
        self.expired.by_start
    }

    #[getter]
    fn over_size(&self) -> usize {
        self.expired.by_size
    }

    #[getter]
    fn too_old(&self) -> usize {
        self.expired.by_time
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.removed.bytes
    }

    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.removed.files.clone()
    }
}

#[pyfunction]
#[pyo3(signature = (partition, offset))]
pub fn advance_log_start(py: Python<'_>, partition: &PyPartition, offset: i64) -> PyResult<PyRemovedSegments> {
    let removed = py.detach(|| partition.inner.log().advance_log_start(offset)).map_err(log_error)?;
    let expired = Expired { by_start: removed.segments, ..Expired::default() };
    Ok(PyRemovedSegments { expired, removed })
}

#[pyfunction]
#[pyo3(signature = (partition, *, retention_ms, retention_bytes, now_ms))]
pub fn delete_old_segments(
    py: Python<'_>,
    partition: &PyPartition,
    retention_ms: Option<i64>,
    retention_bytes: Option<u64>,
    now_ms: i64,
) -> PyResult<PyRemovedSegments> {
    let delete = || partition.inner.delete_old_segments(retention_ms, retention_bytes, now_ms);
    let (expired, removed) = py.detach(delete).map_err(log_error)?;
    Ok(PyRemovedSegments { expired, removed })
}
