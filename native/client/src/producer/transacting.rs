//! A producer's transactions, as the control plane begins and ends them. Sends no request to a broker.
//!
//! The producer accepts records between `begin_transaction` and `end_transaction` only. The caller flushes between the end
//! here and the end at the coordinator: then every batch of the transaction is complete.

use super::Producer;
use super::state::ProducerState;
use super::transaction::{Failure, Gate, failed};
use crate::error::ClientError;
use pybroker_wire::ErrorCode;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// The error of a record between two transactions.
const NO_TRANSACTION: &str = "a record belongs to a transaction: call begin_transaction";

impl ProducerState {
    /// Make a transactional producer reject records before its first transaction.
    pub(super) fn shut_before_the_first(&self) {
        if self.config.transactional_id.is_some() {
            self.accumulator
                .incomplete
                .lock()
                .set_gate(Gate::Shut(self.outside("call init_transactions, then begin_transaction")));
        }
    }

    fn outside(&self, detail: &'static str) -> ClientError {
        let transactional_id = self.config.transactional_id.clone().unwrap_or_default();
        ClientError::NoTransaction { transactional_id, detail }
    }
}

impl Producer {
    /// Accept records from here on, under this producer id and epoch. Without `implicit`, partitions have to be added before
    /// their first batch is sent: [`Producer::take_unadded`] returns them. Every batch of an earlier transaction has to be
    /// complete.
    pub fn begin_transaction(&self, id: i64, epoch: i16, implicit: bool) {
        let identity = ProducerIdentity { id, epoch };
        let mark = self.shared.transactions.begin(identity, implicit);
        self.shared.set_identity(Some(Ok(identity)));
        self.shared.accumulator.incomplete.lock().set_gate(Gate::Open(mark));
    }

    /// Accept no more records; those accepted are sent. Returns whether a batch of the transaction was sent: the coordinator
    /// does not know a transaction without one.
    pub fn end_transaction(&self) -> bool {
        let error = match self.shared.transactions.failure() {
            Some(Failure { error, fatal, .. }) => failed(&error, fatal),
            None => self.shared.outside(NO_TRANSACTION),
        };
        self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(error));
        self.shared.transactions.has_sent()
    }

    /// Clear the failure of a transaction that has ended at its coordinator.
    pub fn forget_transaction(&self) {
        if self.shared.transactions.forget_failure() {
            self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(self.shared.outside(NO_TRANSACTION)));
        }
    }

    /// Fail the batches that were never sent; those that a broker may have received are sent until they complete.
    pub fn drop_unsent(&self) {
        self.shared.transactions.stop(ClientError::TransactionAborted, false);
        self.shared.waker.wake();
    }

    /// Fail the transaction after an error of the control plane: waiting batches fail, and records are rejected with this
    /// error until the next transaction, or for ever.
    pub fn fail_transaction(&self, code: ErrorCode, detail: String, fatal: bool) {
        let error = ClientError::TransactionFailed { fatal, code, detail };
        let transactions = &self.shared.transactions;
        if transactions.fail(&error, fatal, false).is_some() {
            self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(error.clone()));
            transactions.stop(error, fatal);
            self.shared.waker.wake();
        }
    }

    /// The first failure in the last transaction.
    pub fn transaction_failure(&self) -> Option<Failure> {
        self.shared.transactions.failure()
    }

    /// Partitions that have to be added to the transaction, each returned once.
    pub fn take_unadded(&self) -> Vec<(std::sync::Arc<str>, i32)> {
        self.shared.transactions.take_unadded()
    }

    /// Record that these partitions were added to the transaction.
    pub fn partitions_added(&self, partitions: Vec<(String, i32)>) {
        self.shared.transactions.take_in(partitions);
        self.shared.waker.wake();
    }

    /// A descriptor that is readable when [`Producer::take_unadded`] has partitions.
    pub fn unadded_descriptor(&self) -> std::io::Result<std::os::fd::RawFd> {
        self.shared.transactions.signal.descriptor()
    }
}
