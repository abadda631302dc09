//! What became of a batch: written once by the I/O thread, awaited by the callers that sent a record in it; and of all
//! batches of a partition, in sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::ClientError;
use crate::wait::wait_until;

/// Where an acknowledged batch was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Offset of the batch's first record; -1 when the broker does not return it (acks=0, a duplicate).
    pub base_offset: i64,
    /// -1 where the records keep the producer's timestamps.
    pub log_append_time_ms: i64,
}

/// Records of one partition whose fate is known.
#[derive(Debug, Default)]
pub struct Decided {
    pub topic: Arc<str>,
    pub partition: i32,
    pub acknowledged: AtomicU64,
    pub failed: AtomicU64,
}

impl Decided {
    /// Nothing of a partition is decided yet.
    pub fn of(topic: Arc<str>, partition: i32) -> Self {
        Self { topic, partition, ..Self::default() }
    }

    /// Count a batch's records.
    pub fn count(&self, records: u32, acknowledged: bool) {
        let which = if acknowledged { &self.acknowledged } else { &self.failed };
        which.fetch_add(u64::from(records), Ordering::Relaxed);
    }
}

/// The fate of one batch.
#[derive(Debug, Default)]
pub struct Delivery {
    outcome: Mutex<Option<Result<Written, ClientError>>>,
    decided: Condvar,
    /// Records of the batch whose outcome was taken, or goes to a callback.
    observed: AtomicU32,
}

impl Delivery {
    /// The program learns of the outcome of so many further records.
    pub fn observe(&self, records: u32) {
        self.observed.fetch_add(records, Ordering::Relaxed);
    }

    /// Records whose outcome the program learns of.
    pub fn observed(&self) -> u32 {
        self.observed.load(Ordering::Relaxed)
    }

    /// Set the outcome and notify all who wait. Only the first outcome counts.
    pub fn decide(&self, outcome: Result<Written, ClientError>) {
        self.outcome.lock().get_or_insert(outcome);
        self.decided.notify_all();
    }

    /// The outcome, if it is known.
    pub fn outcome(&self) -> Option<Result<Written, ClientError>> {
        self.outcome.lock().clone()
    }

    /// Whether the outcome is known.
    pub fn is_decided(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Wait at most `timeout` for the outcome. An interrupted wait is an error of the caller's, not of the batch.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Result<Written, ClientError>>, ClientError> {
        let deadline = Instant::now() + timeout;
        let mut outcome = self.outcome.lock();
        while outcome.is_none() && !wait_until(&self.decided, &mut outcome, deadline)? {}
        Ok(outcome.clone())
    }
}
