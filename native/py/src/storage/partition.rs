//! `Partition`: a replica on this broker, as the control plane uses it.

use std::sync::Arc;

use pybroker_replica::{BrokerId, Partition, Waiter};
use pybroker_storage::TimestampAndOffset;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{log_error, read_error};
use crate::net::handle::PyDataPlane;
use crate::storage::log_config::PyLogConfig;

/// A replica on this broker; see `_native.pyi`.
#[pyclass(frozen, name = "Partition", module = "pybroker._native")]
pub struct PyPartition {
    pub inner: Arc<Partition>,
}

/// A topic id from Python's 16 bytes.
pub fn topic_id(bytes: &[u8]) -> PyResult<[u8; 16]> {
    let wrong = |_| PyValueError::new_err(format!("a topic id has 16 bytes, not {}", bytes.len()));
    bytes.try_into().map_err(wrong)
}

fn found(at: TimestampAndOffset) -> (i64, i64, i32) {
    (at.timestamp, at.offset, at.leader_epoch)
}

#[pymethods]
impl PyPartition {
    #[getter]
    fn topic(&self) -> &str {
        self.inner.topic()
    }

    #[getter]
    fn index(&self) -> i32 {
        self.inner.index()
    }

    #[getter]
    fn topic_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.topic_id())
    }

    #[getter]
    fn directory(&self) -> String {
        self.inner.directory().to_string_lossy().into_owned()
    }

    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.inner.log().log_start_offset()
    }

    #[getter]
    fn log_end_offset(&self) -> i64 {
        self.inner.log().log_end_offset()
    }

    #[getter]
    fn is_missing_records(&self) -> bool {
        self.inner.log().is_missing_records()
    }

    #[getter]
    fn high_watermark(&self) -> i64 {
        self.inner.high_watermark()
    }

    #[getter]
    fn lags_its_epoch(&self) -> bool {
        self.inner.lags_its_epoch()
    }

    #[getter]
    fn last_stable_offset(&self) -> i64 {
        self.inner.last_stable_offset()
    }

    #[getter]
    fn recovery_point(&self) -> i64 {
        self.inner.log().recovery_point()
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.inner.log().size_bytes()
    }

    #[getter]
    fn leader_epoch(&self) -> i32 {
        self.inner.leader_epoch()
    }

    #[getter]
    fn role(&self) -> String {
        self.inner.role().kind().to_string()
    }

    #[pyo3(signature = (*, leader, follower))]
    fn set_throttled(&self, leader: bool, follower: bool) {
        self.inner.throttled().set(leader, follower);
    }

    #[pyo3(signature = (awaited))]
    fn await_deletion(&self, awaited: bool) {
        self.inner.await_deletion(awaited);
    }

    #[pyo3(signature = (data_plane))]
    fn wake_followers(&self, data_plane: &PyDataPlane) {
        self.inner.wake_followers(&mut |waiter| data_plane.inner.wake(waiter));
    }

    #[pyo3(signature = (alive))]
    fn low_watermark(&self, alive: Vec<i32>) -> i64 {
        self.inner.low_watermark(&alive.into_iter().map(BrokerId).collect::<Vec<_>>())
    }

    #[pyo3(signature = (timestamp_ms))]
    fn find_timestamp(&self, py: Python<'_>, timestamp_ms: i64) -> PyResult<Option<(i64, i64, i32)>> {
        let at = py.detach(|| self.inner.log().find_timestamp(timestamp_ms)).map_err(read_error)?;
        Ok(at.map(found))
    }

    fn max_timestamp(&self, py: Python<'_>) -> PyResult<Option<(i64, i64, i32)>> {
        let at = py.detach(|| self.inner.log().max_timestamp()).map_err(read_error)?;
        Ok(at.map(found))
    }

    #[pyo3(signature = (epoch))]
    fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        self.inner.log().end_offset_for_epoch(epoch)
    }

    #[pyo3(signature = (config))]
    fn set_config(&self, config: &PyLogConfig) {
        self.inner.log().set_config(config.config.clone());
    }

    fn flush(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.inner.log().flush()).map_err(log_error)
    }

    #[staticmethod]
    fn flush_times() -> (u64, u64) {
        pybroker_storage::flush_times()
    }

    #[pyo3(signature = (now_ms))]
    fn flush_due(&self, py: Python<'_>, now_ms: i64) -> PyResult<bool> {
        py.detach(|| self.inner.log().flush_when_due(now_ms)).map_err(log_error)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.log().close()).map_err(log_error)
    }

    #[pyo3(signature = (data_plane))]
    fn retire(&self, data_plane: &PyDataPlane) {
        let mut waiting: Vec<Waiter> = Vec::new();
        self.inner.retire(&mut |waiter| waiting.push(waiter));
        for waiter in waiting {
            data_plane.inner.wake(waiter);
        }
        data_plane.inner.roles_changed([Arc::clone(&self.inner)]);
    }

    #[pyo3(signature = (data_plane))]
    fn fail(&self, data_plane: &PyDataPlane) {
        let mut waiting: Vec<Waiter> = Vec::new();
        self.inner.fail(&mut |waiter| waiting.push(waiter));
        for waiter in waiting {
            data_plane.inner.wake(waiter);
        }
        data_plane.inner.roles_changed([Arc::clone(&self.inner)]);
    }

    fn delete(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.log().delete()).map_err(log_error)
    }
}
