//! A producer's transactions, as the control plane begins and ends them. Asks no broker.
//!
//! Between `begin_transaction` and `end_transaction` records are taken; before and after they are refused. The caller
//! flushes between the end here and the end at the coordinator: then every batch of the transaction is decided.

use super::Producer;
use super::state::ProducerState;
use super::transaction::{Failure, Gate, failed};
use crate::error::ClientError;
use pybroker_wire::ErrorCode;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// What a record meets between two transactions.
const NO_TRANSACTION: &str = "a record belongs to a transaction: call begin_transaction";

impl ProducerState {
    /// A transactional producer takes no record before its first transaction.
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
    /// Take records from now on, under this producer id and epoch. Without `implicit`, partitions have to be added before
    /// their first batch is sent: [`Producer::take_unadded`] returns them. Every batch of an earlier transaction is
    /// decided.
    pub fn begin_transaction(&self, id: i64, epoch: i16, implicit: bool) {
        let identity = ProducerIdentity { id, epoch };
        let mark = self.shared.transactions.begin(identity, implicit);
        self.shared.set_identity(Some(Ok(identity)));
        self.shared.accumulator.incomplete.lock().set_gate(Gate::Open(mark));
    }

    /// Take no more records; what was taken is sent. Whether a batch of the transaction has been sent by now: a coordinator
    /// knows nothing of one without.
    pub fn end_transaction(&self) -> bool {
        let error = match self.shared.transactions.failure() {
            Some(Failure { error, fatal, .. }) => failed(&error, fatal),
            None => self.shared.outside(NO_TRANSACTION),
        };
        self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(error));
        self.shared.transactions.has_sent()
    }

    /// The transaction has ended at its coordinator: what went wrong in it is forgotten.
    pub fn forget_transaction(&self) {
        if self.shared.transactions.forget_failure() {
            self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(self.shared.outside(NO_TRANSACTION)));
        }
    }

    /// Give up what was taken and never sent; what a broker may have seen is sent until its fate is known.
    pub fn drop_unsent(&self) {
        self.shared.transactions.stop(ClientError::TransactionAborted, false);
        self.shared.waker.wake();
    }

    /// The control plane was refused: what waits fails, and records are refused with this error until the next
    /// transaction, or for good.
    pub fn fail_transaction(&self, code: ErrorCode, detail: String, fatal: bool) {
        let error = ClientError::TransactionFailed { fatal, code, detail };
        let transactions = &self.shared.transactions;
        if transactions.fail(&error, fatal, false).is_some() {
            self.shared.accumulator.incomplete.lock().set_gate(Gate::Shut(error.clone()));
            transactions.stop(error, fatal);
            self.shared.waker.wake();
        }
    }

    /// What went wrong first in the transaction that began last.
    pub fn transaction_failure(&self) -> Option<Failure> {
        self.shared.transactions.failure()
    }

    /// Partitions that have to be added to the transaction, and were not returned yet.
    pub fn take_unadded(&self) -> Vec<(std::sync::Arc<str>, i32)> {
        self.shared.transactions.take_unadded()
    }

    /// These partitions were added to the transaction.
    pub fn partitions_added(&self, partitions: Vec<(String, i32)>) {
        self.shared.transactions.take_in(partitions);
        self.shared.waker.wake();
    }

    /// A descriptor that is readable when [`Producer::take_unadded`] has something to return.
    pub fn unadded_descriptor(&self) -> std::io::Result<std::os::fd::RawFd> {
        self.shared.transactions.signal.descriptor()
    }
}
