//! The outcome of a batch, set once by the I/O thread and awaited by callers with records in the batch; and the counts of
//! all batches of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::ClientError;
use crate::wait::wait_until;

/// The position of an acknowledged batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Offset of the batch's first record; -1 when the broker does not return it (acks=0, a duplicate).
    pub base_offset: i64,
    /// -1 if the records keep the producer's timestamps.
    pub log_append_time_ms: i64,
}

/// The numbers of acknowledged and failed records of one partition.
#[derive(Debug, Default)]
pub struct Decided {
    pub topic: Arc<str>,
    pub partition: i32,
    pub acknowledged: AtomicU64,
    pub failed: AtomicU64,
}

impl Decided {
    /// Counts at zero.
    pub fn of(topic: Arc<str>, partition: i32) -> Self {
        Self { topic, partition, ..Self::default() }
    }

    /// Count a batch's records.
    pub fn count(&self, records: u32, acknowledged: bool) {
        let which = if acknowledged { &self.acknowledged } else { &self.failed };
        which.fetch_add(u64::from(records), Ordering::Relaxed);
    }
}

/// The outcome of one batch.
#[derive(Debug, Default)]
pub struct Delivery {
    outcome: Mutex<Option<Result<Written, ClientError>>>,
    decided: Condvar,
    /// Records of the batch whose outcome the program has read, or gets by a callback.
    observed: AtomicU32,
}

impl Delivery {
    /// Record that the program gets the outcome of so many further records.
    pub fn observe(&self, records: u32) {
        self.observed.fetch_add(records, Ordering::Relaxed);
    }

    /// The number of records whose outcome the program gets.
    pub fn observed(&self) -> u32 {
        self.observed.load(Ordering::Relaxed)
    }

    /// Set the outcome and notify all waiting callers. Only the first outcome has an effect.
    pub fn decide(&self, outcome: Result<Written, ClientError>) {
        self.outcome.lock().get_or_insert(outcome);
        self.decided.notify_all();
    }

    /// The outcome, if it is set.
    pub fn outcome(&self) -> Option<Result<Written, ClientError>> {
        self.outcome.lock().clone()
    }

    /// Whether the outcome is set.
    pub fn is_decided(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Wait at most `timeout` for the outcome. An interrupted wait is an error of the caller, not of the batch.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Result<Written, ClientError>>, ClientError> {
        let deadline = Instant::now() + timeout;
        let mut outcome = self.outcome.lock();
        while outcome.is_none() && !wait_until(&self.decided, &mut outcome, deadline)? {}
        Ok(outcome.clone())
    }
}
