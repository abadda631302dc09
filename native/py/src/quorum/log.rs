//! A log that only this node writes, for `pybroker.controller.quorum`: the metadata log.
//!
//! Owns the conversion alone. Calls with disk I/O release the interpreter lock.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use pybroker_record::{Offset, TimestampType};
use pybroker_storage::{LogConfig, OpenLog};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{append_error, log_error, read_error};

/// A log in Kafka's file format whose batches this node builds.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Log {
    log: pybroker_storage::Log,
    truncated_bytes: u64,
}

#[pymethods]
impl Log {
    #[staticmethod]
    #[pyo3(signature = (*, directory, segment_bytes, segment_ms, segment_index_bytes, index_interval_bytes, now_ms))]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        segment_bytes: u64,
        segment_ms: i64,
        segment_index_bytes: u32,
        index_interval_bytes: u32,
        now_ms: i64,
    ) -> PyResult<Self> {
        let config = LogConfig {
            segment_bytes,
            segment_ms,
            segment_jitter_ms: 0,
            segment_index_bytes,
            index_interval_bytes,
            preallocate: false,
            // The other settings are rules for clients' batches and for partitions, which this log does not have.
            max_message_bytes: usize::MAX,
            compression: None,
            compression_level: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: i64::MAX,
            require_keys: false,
            delete_retention_ms: i64::MAX,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            flush_group: false,
            producer_id_expiration_ms: i64::MAX,
            max_decompressed_bytes: usize::MAX,
            file_delete_delay_ms: 0,
        };
        let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms };
        let (log, recovered) = py.detach(|| pybroker_storage::Log::open(&directory, config, how)).map_err(log_error)?;
        Ok(Self { log, truncated_bytes: recovered.truncated_bytes })
    }

    #[getter]
    fn truncated_bytes(&self) -> u64 {
        self.truncated_bytes
    }

    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.log.log_start_offset()
    }

    #[getter]
    fn log_end_offset(&self) -> i64 {
        self.log.log_end_offset()
    }

    #[pyo3(signature = (batches, leader_epoch, now_ms))]
    fn append(&self, py: Python<'_>, batches: &[u8], leader_epoch: i32, now_ms: i64) -> PyResult<(i64, i64)> {
        let mut batches = batches.to_vec();
        let appended =
            py.detach(|| self.log.append_as_coordinator(&mut batches, leader_epoch, now_ms)).map_err(append_error)?;
        Ok((appended.first_offset, appended.last_offset))
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.log.size_bytes()
    }

    #[pyo3(signature = (batches, now_ms))]
    fn append_as_follower(&self, py: Python<'_>, batches: &[u8], now_ms: i64) -> PyResult<(i64, i64)> {
        let appended = py.detach(|| self.log.append_as_follower(batches, now_ms)).map_err(append_error)?;
        Ok((appended.first_offset, appended.last_offset))
    }

    #[pyo3(signature = (offset, max_bytes))]
    fn read<'py>(&self, py: Python<'py>, offset: i64, max_bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let slice = self.log.plan_read(Offset(offset)..Offset::MAX, max_bytes, true).map_err(read_error)?;
        PyBytes::new_with(py, slice.len, |bytes| Ok(slice.file.read_exact_at(bytes, slice.position)?))
    }

    #[pyo3(signature = ())]
    fn flush(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.log.flush()).map_err(log_error)
    }

    #[pyo3(signature = (offset, now_ms))]
    fn truncate_to(&self, py: Python<'_>, offset: i64, now_ms: i64) -> PyResult<()> {
        py.detach(|| self.log.truncate_to(Offset(offset), now_ms)).map_err(log_error)
    }

    #[pyo3(signature = (offset, now_ms))]
    fn restart_at(&self, py: Python<'_>, offset: i64, now_ms: i64) -> PyResult<()> {
        py.detach(|| self.log.truncate_fully_and_start_at(Offset(offset), now_ms)).map_err(log_error)
    }

    #[pyo3(signature = (offset))]
    fn advance_start(&self, py: Python<'_>, offset: i64) -> PyResult<Vec<PathBuf>> {
        py.detach(|| self.log.advance_log_start(offset)).map(|removed| removed.files).map_err(log_error)
    }

    #[pyo3(signature = (epoch))]
    fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        self.log.end_offset_for_epoch(epoch)
    }

    #[pyo3(signature = ())]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.log.close()).map_err(log_error)
    }
}
