//! `LogMover` and `LogMove`: moves of logs to another directory, for `pybroker.storage.moves`.

use std::path::PathBuf;

use pybroker_storage::{LogMove, MoveError, Throttle};
use pyo3::prelude::*;

use crate::error::{log_error, move_error};
use crate::storage::partition::PyPartition;

/// Moves of logs that share one rate limit; see `_native.pyi`.
#[pyclass(frozen, name = "LogMover", module = "pybroker._native")]
pub struct PyLogMover {
    throttle: Throttle,
}

#[pymethods]
impl PyLogMover {
    #[new]
    #[pyo3(signature = (*, max_bytes_per_second))]
    fn new(max_bytes_per_second: f64) -> Self {
        Self { throttle: Throttle::new(max_bytes_per_second) }
    }

    #[pyo3(signature = (partition, state, *, future, deleted_id))]
    fn move_log(
        &self,
        py: Python<'_>,
        partition: &PyPartition,
        state: &PyLogMove,
        future: PathBuf,
        deleted_id: &str,
    ) -> PyResult<(String, Option<PyErr>)> {
        let moving = || partition.inner.move_to(&future, &state.inner, &self.throttle, deleted_id);
        let moved = py.detach(moving).map_err(move_error)?;
        Ok((moved.old.to_string_lossy().into_owned(), moved.left.map(|error| move_error(MoveError::Log(error)))))
    }

    #[pyo3(signature = (max_bytes_per_second))]
    fn set_pace(&self, max_bytes_per_second: f64) {
        self.throttle.set_pace(max_bytes_per_second);
    }

    fn stop(&self) {
        self.throttle.stop();
    }
}

/// The progress of a move; see `_native.pyi`.
#[pyclass(frozen, name = "LogMove", module = "pybroker._native")]
pub struct PyLogMove {
    inner: LogMove,
}

#[pymethods]
impl PyLogMove {
    #[new]
    #[pyo3(signature = ())]
    fn new() -> Self {
        Self { inner: LogMove::default() }
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    #[getter]
    fn end_offset(&self) -> i64 {
        self.inner.end_offset()
    }

    fn cancel(&self) {
        self.inner.cancel();
    }
}

#[pyfunction]
#[pyo3(signature = (directory))]
pub fn move_count(directory: PathBuf) -> PyResult<u64> {
    pybroker_storage::move_count(&directory).map_err(log_error)
}

#[pyfunction]
#[pyo3(signature = (partition, future))]
pub fn prepare_move(py: Python<'_>, partition: &PyPartition, future: PathBuf) -> PyResult<()> {
    let prepare = || pybroker_storage::prepare_move(&partition.inner.log().directory(), &future);
    py.detach(prepare).map_err(|error| move_error(MoveError::Log(error)))
}
