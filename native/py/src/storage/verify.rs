//! `verify_log`: checks a log without changing it, for `pybroker.storage.verification`.
//!
//! Owns the conversion alone. The check releases the interpreter lock.

use std::path::PathBuf;

use pybroker_storage::{Severity, Verified, VerifyLog};
use pyo3::prelude::*;

use crate::error::log_error;

/// See `_native.pyi`.
#[pyclass(frozen, name = "VerifiedLog", module = "pybroker._native")]
pub struct PyVerifiedLog(Verified);

#[pymethods]
impl PyVerifiedLog {
    #[getter]
    fn findings(&self) -> Vec<(String, &'static str, &'static str, String)> {
        let severity = |severity| match severity {
            Severity::Damage => "damage",
            Severity::Unreadable => "unreadable",
            Severity::Note => "note",
        };
        let one =
            |it: &pybroker_storage::Finding| (it.file.clone(), severity(it.severity), it.kind.name(), it.text.clone());
        self.0.findings.iter().map(one).collect()
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out
    }

    #[getter]
    fn segments(&self) -> u64 {
        self.0.segments
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn batches(&self) -> u64 {
        self.0.batches
    }

    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.0.log_start_offset
    }

    #[getter]
    fn log_end_offset(&self) -> i64 {
        self.0.log_end_offset
    }

    #[getter]
    fn set_aside(&self) -> Vec<(String, u64)> {
        self.0.set_aside.clone()
    }
}

/// Checks a log; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (directory, *, clean_shutdown, recovery_point, log_start_offset, high_watermark, compacted_to, is_partition))]
#[allow(clippy::too_many_arguments, reason = "keyword-only: one argument a field")]
pub fn verify_log(
    py: Python<'_>,
    directory: PathBuf,
    clean_shutdown: bool,
    recovery_point: i64,
    log_start_offset: i64,
    high_watermark: i64,
    compacted_to: i64,
    is_partition: bool,
) -> PyResult<PyVerifiedLog> {
    let log = VerifyLog {
        directory: &directory,
        clean_shutdown,
        recovery_point,
        log_start_offset,
        high_watermark,
        compacted_to,
        is_partition,
    };
    py.detach(|| pybroker_storage::verify_log(log)).map(PyVerifiedLog).map_err(log_error)
}

/// Files in a log's directory that recoveries have set aside; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (directory))]
pub fn set_aside_files(directory: PathBuf) -> PyResult<Vec<(String, u64)>> {
    pybroker_storage::set_aside_files(&directory).map_err(log_error)
}
