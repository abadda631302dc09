//! `SimulatedDataPlane`: the hot path and the fetchers of a broker without sockets, for the simulation of clusters.

pub(crate) mod simulated_disk;
pub(crate) mod simulated_responses;

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parking_lot::Mutex;
use pybroker_net::SimulatedDataPlane;
use pybroker_record::Offset;
use pybroker_replica::{BrokerId, FetcherSettings, LeaderEpoch, Waiter};
use pybroker_storage::VerificationGuard;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{log_error, not_appended, not_become, read_error};
use crate::net::events::into_python;
use crate::net::topic_table::PyTopicTable;
use crate::net::transactions::{Response, beginning, ended, transaction_check, verified};
use crate::simulation::simulated_responses::{Question, Responded, question, responded};
use crate::storage::partition::PyPartition;
use crate::storage::role::PyRole;

/// A data plane; see `_native.pyi`. Boxed, as its alignment exceeds that of Python's allocator.
#[pyclass(frozen, name = "SimulatedDataPlane", module = "pybroker._native")]
pub struct PySimulatedDataPlane(Mutex<Box<SimulatedDataPlane>>);

#[pymethods]
impl PySimulatedDataPlane {
    #[new]
    #[pyo3(signature = (*, node_id, max_wait_ms, max_bytes, response_max_bytes, first_backoff_ms, backoff_ms,
        session_slots))]
    fn new(
        node_id: i32,
        max_wait_ms: i32,
        max_bytes: i32,
        response_max_bytes: i32,
        first_backoff_ms: i64,
        backoff_ms: i64,
        session_slots: usize,
    ) -> PyResult<Self> {
        let settings = FetcherSettings {
            replica: BrokerId(node_id),
            broker_epoch: -1,
            min_bytes: 1,
            max_wait_ms,
            max_bytes,
            response_max_bytes,
            first_backoff_ms,
            backoff_ms,
        };
        let fetch_max_bytes = usize::try_from(response_max_bytes).unwrap_or(0);
        let made = SimulatedDataPlane::new(settings, fetch_max_bytes, session_slots);
        Ok(Self(Mutex::new(Box::new(made.map_err(|error| PyOSError::new_err(error.to_string()))?))))
    }

    fn set_time(&self, now_ms: i64) {
        self.0.lock().set_time(now_ms);
    }

    fn set_broker_epoch(&self, broker_epoch: i64) {
        self.0.lock().set_broker_epoch(broker_epoch);
    }

    fn publish(&self, table: &PyTopicTable) {
        self.0.lock().publish(Arc::clone(&table.inner));
    }

    fn drain(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let events = self.0.lock().drain();
        events.into_iter().map(|event| into_python(py, event)).collect()
    }

    fn become_role(&self, partition: &PyPartition, role: &PyRole) -> PyResult<()> {
        let mut plane = self.0.lock();
        let mut woken: Vec<Waiter> = Vec::new();
        let changed = role.change.clone().make(&partition.inner, plane.now_ms(), &mut |waiter| woken.push(waiter));
        woken.into_iter().for_each(|waiter| plane.wake(waiter));
        plane.role_changed(&partition.inner);
        changed.map(|_repaired| ()).map_err(not_become)
    }

    fn next_request<'py>(&self, py: Python<'py>, leader: i32) -> Option<Bound<'py, PyBytes>> {
        self.0.lock().next_request(BrokerId(leader)).map(|frame| PyBytes::new(py, &frame))
    }

    fn take_response(&self, leader: i32, frame: &[u8]) -> PyResult<()> {
        let taken = self.0.lock().take_response(BrokerId(leader), frame);
        taken.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn disconnected(&self, leader: i32) {
        self.0.lock().disconnected(BrokerId(leader));
    }

    fn serve<'py>(&self, py: Python<'py>, frame: &[u8]) -> Responded<'py> {
        responded(py, self.0.lock().serve(frame.to_vec()))
    }

    fn responses<'py>(&self, py: Python<'py>) -> Vec<(u64, Option<Bound<'py, PyBytes>>)> {
        let responses = self.0.lock().responses();
        responses.into_iter().map(|(number, served)| (number, responded(py, served).1)).collect()
    }

    fn expire<'py>(&self, py: Python<'py>, number: u64) -> Option<Bound<'py, PyBytes>> {
        let served = self.0.lock().expire(number)?;
        responded(py, served).1
    }

    fn lagging(&self, partition: &PyPartition, max_lag_ms: i64, alive: Vec<i32>) -> Option<(i32, Vec<i32>)> {
        let alive: Vec<_> = alive.into_iter().map(BrokerId).collect();
        let mut plane = self.0.lock();
        let now_ms = plane.now_ms();
        let lagging = partition.inner.lagging(now_ms, max_lag_ms, &alive, &mut |waiter| plane.wake(waiter))?;
        Some((lagging.0.0, lagging.1.into_iter().map(|replica| replica.0).collect()))
    }

    fn stop_joining(&self, partition: &PyPartition, replicas: Vec<i32>) {
        let replicas: Vec<_> = replicas.into_iter().map(BrokerId).collect();
        let mut plane = self.0.lock();
        partition.inner.stop_joining(&replicas, &mut |waiter| plane.wake(waiter));
    }

    fn append(&self, partition: &PyPartition, batches: &[u8]) -> PyResult<(i64, i64)> {
        let mut plane = self.0.lock();
        let (now_ms, mut batches) = (plane.now_ms(), batches.to_vec());
        let appended =
            partition.inner.append_as_leader_unsynced(&mut batches, now_ms, &mut |waiter| plane.wake(waiter));
        appended.map(|appended| (appended.first_offset, appended.last_offset)).map_err(not_appended)
    }

    #[pyo3(signature = (partition, batches, guard))]
    fn append_transactional(
        &self,
        partition: &PyPartition,
        batches: &[u8],
        guard: Option<u64>,
    ) -> PyResult<(i64, i64)> {
        let mut plane = self.0.lock();
        let (now_ms, mut batches, check) = (plane.now_ms(), batches.to_vec(), transaction_check(guard));
        let wake = &mut |waiter| plane.wake(waiter);
        let appended = partition.inner.append_transactional(&mut batches, now_ms, check, wake);
        appended.map(|appended| (appended.first_offset, appended.last_offset)).map_err(not_appended)
    }

    #[pyo3(signature = (partition, producer_id, producer_epoch, *, bumps_epoch))]
    fn begin_verification(
        &self,
        partition: &PyPartition,
        producer_id: i64,
        producer_epoch: i16,
        bumps_epoch: bool,
    ) -> PyResult<u64> {
        let now_ms = self.0.lock().now_ms();
        let beginning = beginning(producer_id, producer_epoch, bumps_epoch);
        let guard = partition.inner.begin_verification(beginning, now_ms).map_err(not_appended)?;
        Ok(guard.map_or(0, VerificationGuard::number))
    }

    fn append_marker(&self, partition: &PyPartition, marker: (i64, i16, bool, i32, i8)) -> PyResult<(i64, i64)> {
        let (ended, mut plane) = (ended(marker.0, marker.1, marker.2, marker.3, marker.4), self.0.lock());
        let now_ms = plane.now_ms();
        let appended = partition.inner.append_marker(&ended, now_ms, &mut |waiter| plane.wake(waiter));
        appended.map(|(appended, _)| (appended.first_offset, appended.last_offset)).map_err(not_appended)
    }

    fn questions(&self) -> Vec<Question> {
        self.0.lock().questions().into_iter().map(|(number, requested)| question(number, requested)).collect()
    }

    fn verified<'py>(&self, py: Python<'py>, number: u64, responses: Vec<Response>) -> Responded<'py> {
        responded(py, self.0.lock().verified(number, responses.into_iter().map(verified).collect()))
    }

    fn has_completed(&self, partition: &PyPartition, leader_epoch: i32, end_offset: i64) -> bool {
        partition.inner.has_completed_since(LeaderEpoch(leader_epoch), end_offset)
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        partition: &PyPartition,
        offset: i64,
        max_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let slice = partition.inner.plan_read(Offset(offset)..Offset::MAX, max_bytes, true).map_err(read_error)?;
        PyBytes::new_with(py, slice.len, |bytes| Ok(slice.file.read_exact_at(bytes, slice.position)?))
    }

    /// Injects a fault: truncates a log without a leader epoch that requires it.
    fn cut(&self, partition: &PyPartition, offset: i64) -> PyResult<()> {
        let now_ms = self.0.lock().now_ms();
        partition.inner.log().truncate_to(Offset(offset), now_ms).map_err(log_error)
    }
}
