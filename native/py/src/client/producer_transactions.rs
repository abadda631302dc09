//! A producer's transactions, as the client's control plane begins and ends them. Owns no behaviour.

use std::os::fd::RawFd;
use std::sync::Arc;

use pybroker_client::code_of;
use pyo3::prelude::*;

use crate::client::native_producer::Producer;

/// The engine's side of a producer's transactions.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Transactions {
    producer: Arc<pybroker_client::Producer>,
}

#[pymethods]
impl Transactions {
    #[new]
    #[pyo3(signature = (producer))]
    fn new(producer: &Bound<'_, Producer>) -> Self {
        Self { producer: Arc::clone(&producer.get().inner) }
    }

    /// Accepts records from here on, under this identity.
    #[pyo3(signature = (producer_id, epoch, implicit))]
    fn begin(&self, producer_id: i64, epoch: i16, implicit: bool) {
        self.producer.begin_transaction(producer_id, epoch, implicit);
    }

    /// Accepts no more records; returns whether a batch was sent since `begin`.
    fn end(&self) -> bool {
        self.producer.end_transaction()
    }

    /// Clears the failure.
    fn forget(&self) {
        self.producer.forget_transaction();
    }

    /// Fails the batches that were never sent.
    fn drop_unsent(&self) {
        self.producer.drop_unsent();
    }

    /// Fails the transaction: waiting batches fail, and records are rejected.
    #[pyo3(signature = (code, text, fatal))]
    fn fail(&self, code: i16, text: String, fatal: bool) {
        self.producer.fail_transaction(pybroker_wire::ErrorCode(code), text, fatal);
    }

    /// The first failure: (error code or 0, text, whether it is fatal, whether the next transaction needs another epoch).
    fn failure(&self) -> Option<(i16, String, bool, bool)> {
        let failure = self.producer.transaction_failure()?;
        Some((code_of(&failure.error).0, failure.error.to_string(), failure.fatal, failure.lost_sequence))
    }

    /// Partitions to add, each returned once.
    fn take_unadded(&self) -> Vec<(String, i32)> {
        let unadded = self.producer.take_unadded().into_iter();
        unadded.map(|(topic, index)| (topic.to_string(), index)).collect()
    }

    /// Records that these partitions were added.
    #[pyo3(signature = (partitions))]
    fn added(&self, partitions: Vec<(String, i32)>) {
        self.producer.partitions_added(partitions);
    }

    /// A descriptor that is readable when `take_unadded` has partitions.
    fn descriptor(&self) -> PyResult<RawFd> {
        Ok(self.producer.unadded_descriptor()?)
    }
}
