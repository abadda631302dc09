//! Transactions in partitions, for the control plane: markers, and verification before a batch.

use std::sync::Arc;

use pybroker_net::{AppendedMarkers, Verified};
use pybroker_record::EndMarker;
use pybroker_replica::{EndedTransaction, Waiter};
use pybroker_storage::{
    BeginningTransaction, ConfirmedTransaction, TransactionCheck, TransactionalIdHash, VerificationGuard,
};
use pybroker_wire::ErrorCode;
use pyo3::prelude::*;

use crate::net::handle::PyDataPlane;
use crate::storage::partition::PyPartition;

/// Markers that were appended together; see `_native.pyi`.
#[pyclass(frozen, name = "AppendedMarkers", module = "pybroker._native")]
pub struct PyAppendedMarkers {
    inner: AppendedMarkers,
    is_awaited: bool,
}

#[pymethods]
impl PyAppendedMarkers {
    #[getter]
    fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    fn error_codes(&self) -> Vec<i16> {
        self.inner.error_codes().into_iter().map(|error| error.0).collect()
    }
}

/// A transaction that ends: the partition, the producer's id, the marker's epoch, whether it commits, the coordinator's
/// epoch, and its `transaction.version`.
pub type Ended<'py> = (PyRef<'py, PyPartition>, i64, i16, bool, i32, i8);

/// From this `transaction.version` on a marker's epoch is higher than that of its transaction (KIP-890).
const BUMPS_EPOCHS: i8 = 2;

/// The end of a transaction.
pub fn ended(
    producer_id: i64,
    producer_epoch: i16,
    commit: bool,
    coordinator_epoch: i32,
    version: i8,
) -> EndedTransaction {
    let marker = EndMarker { commit, coordinator_epoch };
    EndedTransaction { marker, producer_id, producer_epoch, bumped: version >= BUMPS_EPOCHS }
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, transactions, ticket))]
fn append_markers(
    py: Python<'_>,
    data_plane: &PyDataPlane,
    transactions: Vec<Ended<'_>>,
    ticket: u64,
) -> PyAppendedMarkers {
    let transactions = transactions.into_iter();
    let transactions = transactions.map(|(partition, id, epoch, commit, coordinator_epoch, version)| {
        (Arc::clone(&partition.inner), ended(id, epoch, commit, coordinator_epoch, version))
    });
    let transactions = transactions.collect();
    let (inner, is_awaited) = py.detach(|| data_plane.inner.append_markers(transactions, ticket));
    PyAppendedMarkers { inner, is_awaited }
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partitions, transactional_id, producer_id, producer_epoch, coordinator_epoch, now_ms))]
fn confirm_transaction(
    py: Python<'_>,
    partitions: Vec<PyRef<'_, PyPartition>>,
    transactional_id: &str,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    now_ms: i64,
) {
    let partitions: Vec<_> = partitions.iter().map(|partition| Arc::clone(&partition.inner)).collect();
    let transactional_id = TransactionalIdHash::of(transactional_id);
    let confirmed = ConfirmedTransaction { transactional_id, producer_id, producer_epoch, coordinator_epoch };
    py.detach(|| {
        for partition in partitions {
            partition.confirm_transaction(confirmed, now_ms);
        }
    });
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, verify))]
fn verify_transactions(data_plane: &PyDataPlane, verify: bool) {
    data_plane.inner.verify_transactions(verify);
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, connection, request, responses))]
fn transaction_verified(data_plane: &PyDataPlane, connection: u64, request: u64, responses: Vec<Response>) {
    data_plane.inner.verified(Waiter { connection, request }, responses.into_iter().map(verified).collect());
}

/// The error that prevents an append to a partition, as code and text; `None` if the partition is in the transaction.
pub type Response = Option<(i16, Option<String>)>;

/// The result for one partition.
pub fn verified(response: Response) -> Verified {
    response.map(|(code, text)| (ErrorCode(code), text))
}

/// A producer's state in a partition: id, epoch, last sequence number, last timestamp, coordinator epoch, and first offset
/// of its open transaction; -1 for missing ones.
type Producer = (i64, i16, i32, i64, i32, i64);

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partition))]
fn active_producers(py: Python<'_>, partition: &PyPartition) -> Vec<Producer> {
    let states = py.detach(|| partition.inner.log().active_producers());
    let row = |(id, entry): (i64, pybroker_storage::producer_state::ProducerEntry)| {
        let last_sequence = entry.batches().last().map_or(-1, |batch| batch.last_sequence);
        let (time, coordinator) = (entry.last_timestamp, entry.coordinator_epoch);
        (id, entry.epoch, last_sequence, time, coordinator, entry.current_txn_first_offset)
    };
    states.into_iter().map(row).collect()
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (partition, now_ms))]
fn forget_producers(py: Python<'_>, partition: &PyPartition, now_ms: i64) {
    py.detach(|| partition.inner.log().forget_old(now_ms));
}

/// Registers the classes and functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyAppendedMarkers>()?;
    m.add_function(wrap_pyfunction!(active_producers, m)?)?;
    m.add_function(wrap_pyfunction!(append_markers, m)?)?;
    m.add_function(wrap_pyfunction!(confirm_transaction, m)?)?;
    m.add_function(wrap_pyfunction!(forget_producers, m)?)?;
    m.add_function(wrap_pyfunction!(transaction_verified, m)?)?;
    m.add_function(wrap_pyfunction!(verify_transactions, m)?)
}

/// The parameters of the check of a transaction's first batch from a coordinator: its batches have no sequence numbers, and
/// it has no request with a transactional id.
pub fn beginning(producer_id: i64, producer_epoch: i16, bumps_epoch: bool) -> BeginningTransaction {
    BeginningTransaction { producer_id, producer_epoch, sequence: -1, bumps_epoch, transactional_id: None }
}

/// The check of a batch with the guard of this number; without a guard the batch is not checked.
pub fn transaction_check(guard: Option<u64>) -> TransactionCheck {
    guard
        .map_or(TransactionCheck::Unchecked, |number| TransactionCheck::Guarded(VerificationGuard::from_number(number)))
}
