//! `PartitionLog`: a partition of an internal topic, as its coordinator writes and reads it.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pybroker_net::DataPlane;
use pybroker_record::Offset;
use pybroker_replica::{LeaderEpoch, NotAppended, Partition, Waiter};
use pybroker_storage::{Appended, VerificationGuard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{not_appended, read_error};
use crate::net::handle::PyDataPlane;
use crate::net::transactions::{beginning, ended, transaction_check};
use crate::storage::partition::PyPartition;

/// A partition and the data plane whose waiting fetches an append completes; see `_native.pyi`.
#[pyclass(frozen, module = "pybroker._native")]
pub struct PartitionLog {
    partition: Arc<Partition>,
    /// The leader epoch of the coordinator's election: its appends may be truncated when another coordinator begins.
    leader_epoch: LeaderEpoch,
    data_plane: Arc<DataPlane>,
}

#[pymethods]
impl PartitionLog {
    #[new]
    #[pyo3(signature = (partition, data_plane))]
    fn new(partition: &PyPartition, data_plane: &PyDataPlane) -> Self {
        let leader_epoch = LeaderEpoch(partition.inner.leader_epoch());
        Self { partition: Arc::clone(&partition.inner), leader_epoch, data_plane: Arc::clone(&data_plane.inner) }
    }

    #[getter]
    fn high_watermark(&self) -> i64 {
        self.partition.high_watermark()
    }

    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.partition.log().log_start_offset()
    }

    #[getter]
    fn log_end_offset(&self) -> i64 {
        self.partition.log().log_end_offset()
    }

    #[getter]
    fn max_batch_bytes(&self) -> usize {
        self.partition.log().max_message_bytes()
    }

    #[pyo3(signature = (batches, now_ms))]
    fn append(&self, py: Python<'_>, batches: &[u8], now_ms: i64) -> PyResult<(i64, i64)> {
        let mut batches = batches.to_vec();
        self.appended(py, |wake| self.partition.append_as_leader_unsynced(&mut batches, now_ms, wake))
    }

    #[pyo3(signature = (batches, now_ms, guard))]
    fn append_transactional(
        &self,
        py: Python<'_>,
        batches: &[u8],
        now_ms: i64,
        guard: Option<u64>,
    ) -> PyResult<(i64, i64)> {
        let mut batches = batches.to_vec();
        let check = transaction_check(guard);
        self.appended(py, |wake| self.partition.append_transactional(&mut batches, now_ms, check, wake))
    }

    #[pyo3(signature = (producer_id, producer_epoch, *, commit, coordinator_epoch, transaction_version, now_ms))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn append_marker(
        &self,
        py: Python<'_>,
        producer_id: i64,
        producer_epoch: i16,
        commit: bool,
        coordinator_epoch: i32,
        transaction_version: i8,
        now_ms: i64,
    ) -> PyResult<(i64, i64)> {
        let ended = ended(producer_id, producer_epoch, commit, coordinator_epoch, transaction_version);
        self.appended(py, |wake| self.partition.append_marker(&ended, now_ms, wake).map(|(appended, _)| appended))
    }

    #[pyo3(signature = (producer_id, producer_epoch, *, bumps_epoch, now_ms))]
    fn begin_verification(
        &self,
        py: Python<'_>,
        producer_id: i64,
        producer_epoch: i16,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> PyResult<u64> {
        let beginning = beginning(producer_id, producer_epoch, bumps_epoch);
        let guard = py.detach(|| self.partition.begin_verification(beginning, now_ms)).map_err(not_appended)?;
        Ok(guard.map_or(0, VerificationGuard::number))
    }

    #[pyo3(signature = (end_offset))]
    fn has_completed(&self, end_offset: i64) -> bool {
        self.partition.has_completed_since(self.leader_epoch, end_offset)
    }

    #[pyo3(signature = (end_offset, ticket))]
    fn complete(&self, end_offset: i64, ticket: u64) {
        self.data_plane.complete(&self.partition, end_offset, ticket);
    }

    #[pyo3(signature = (offset, max_bytes))]
    fn read<'py>(&self, py: Python<'py>, offset: i64, max_bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            let slice = self.partition.plan_read(Offset(offset)..Offset::MAX, max_bytes, true).map_err(read_error)?;
            let mut bytes = vec![0; slice.len];
            slice.file.read_exact_at(&mut bytes, slice.position)?;
            PyResult::Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl PartitionLog {
    /// First and last offset of an append; wakes the requests that it completes.
    fn appended(
        &self,
        py: Python<'_>,
        append: impl FnOnce(&mut dyn FnMut(Waiter)) -> Result<Appended, NotAppended> + Send,
    ) -> PyResult<(i64, i64)> {
        let mut woken: Vec<Waiter> = Vec::new();
        let appended = py.detach(|| append(&mut |waiter| woken.push(waiter))).map_err(not_appended)?;
        for waiter in woken {
            self.data_plane.wake(waiter);
        }
        Ok((appended.first_offset, appended.last_offset))
    }
}
