//! `LogCleaner` and `CleanedLog`: compaction passes for `pybroker.storage`.

use pybroker_storage::{CleanLimits, CleanRange, Cleaned, Throttle};
use pyo3::prelude::*;

use crate::error::{clean_error, log_error, read_error};
use crate::storage::partition::PyPartition;

/// Compaction passes that share one rate limit; see `_native.pyi`.
#[pyclass(frozen, name = "LogCleaner", module = "pybroker._native")]
pub struct PyLogCleaner {
    throttle: Throttle,
}

#[pymethods]
impl PyLogCleaner {
    #[new]
    #[pyo3(signature = (*, max_bytes_per_second))]
    fn new(max_bytes_per_second: f64) -> Self {
        Self { throttle: Throttle::new(max_bytes_per_second) }
    }

    #[pyo3(signature = (partition, *, first_dirty, first_uncleanable, map_bytes, load_factor, buffer_bytes, now_ms))]
    #[allow(clippy::too_many_arguments, reason = "keyword-only: one argument a setting")]
    fn clean(
        &self,
        py: Python<'_>,
        partition: &PyPartition,
        first_dirty: i64,
        first_uncleanable: i64,
        map_bytes: usize,
        load_factor: f64,
        buffer_bytes: usize,
        now_ms: i64,
    ) -> PyResult<PyCleanedLog> {
        let range = CleanRange { first_dirty, first_uncleanable };
        let limits = CleanLimits { map_bytes, load_factor, buffer_bytes };
        let log = partition.inner.log();
        let cleaned = py.detach(|| log.clean(range, &limits, &self.throttle, now_ms)).map_err(clean_error)?;
        Ok(PyCleanedLog { cleaned })
    }

    #[pyo3(signature = (max_bytes_per_second))]
    fn set_pace(&self, max_bytes_per_second: f64) {
        self.throttle.set_pace(max_bytes_per_second);
    }

    fn stop(&self) {
        self.throttle.stop();
    }
}

/// The result of a pass; see `_native.pyi`.
#[pyclass(frozen, name = "CleanedLog", module = "pybroker._native")]
pub struct PyCleanedLog {
    cleaned: Cleaned,
}

#[pymethods]
impl PyCleanedLog {
    #[getter]
    fn end_offset(&self) -> i64 {
        self.cleaned.end_offset
    }

    #[getter]
    fn keys(&self) -> u64 {
        self.cleaned.keys
    }

    #[getter]
    fn map_full(&self) -> bool {
        self.cleaned.map_full
    }

    #[getter]
    fn bytes_indexed(&self) -> u64 {
        self.cleaned.bytes_indexed
    }

    #[getter]
    fn bytes_read(&self) -> u64 {
        self.cleaned.bytes_read
    }

    #[getter]
    fn bytes_written(&self) -> u64 {
        self.cleaned.bytes_written
    }

    #[getter]
    fn records_read(&self) -> u64 {
        self.cleaned.records_read
    }

    #[getter]
    fn records_written(&self) -> u64 {
        self.cleaned.records_written
    }

    #[getter]
    fn records_without_key(&self) -> u64 {
        self.cleaned.records_without_key
    }

    #[getter]
    fn segments_read(&self) -> usize {
        self.cleaned.segments_read
    }

    #[getter]
    fn segments_written(&self) -> usize {
        self.cleaned.segments_written
    }

    #[getter]
    fn index_ms(&self) -> u64 {
        self.cleaned.index_ms
    }

    #[getter]
    fn total_ms(&self) -> u64 {
        self.cleaned.total_ms
    }

    #[getter]
    fn files(&self) -> Vec<String> {
        self.cleaned.files.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }
}

#[pyfunction]
#[pyo3(signature = (partition))]
pub fn survey_segments(partition: &PyPartition) -> Vec<(i64, u64, i64)> {
    let survey = partition.inner.log().survey().into_iter();
    survey.map(|segment| (segment.base_offset, segment.size, segment.largest_timestamp)).collect()
}

#[pyfunction]
#[pyo3(signature = (partition, offset))]
pub fn earliest_dirty_timestamp(py: Python<'_>, partition: &PyPartition, offset: i64) -> PyResult<Option<i64>> {
    py.detach(|| partition.inner.log().earliest_dirty_timestamp(offset)).map_err(read_error)
}

#[pyfunction]
#[pyo3(signature = (partition, age_ms, now_ms))]
pub fn roll_when_older(py: Python<'_>, partition: &PyPartition, age_ms: i64, now_ms: i64) -> PyResult<bool> {
    py.detach(|| partition.inner.log().roll_when_older(age_ms, now_ms)).map_err(log_error)
}
