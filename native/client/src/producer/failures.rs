//! Failed batches whose failure the program may not have seen: reported by `flush` and `close`.
//!
//! A record's failure is observed when the program reads its outcome, or gets it by a callback. Owns the count of unobserved
//! failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::batch::Batch;
use super::delivery::Delivery;
use crate::error::ClientError;

/// The most batches to keep one by one. The records of later ones are added to an earlier batch of their partition.
const MOST: usize = 1_000;

/// Failed records of a partition that the program has not observed.
#[derive(Debug, Clone)]
pub struct Undelivered {
    pub topic: Arc<str>,
    pub partition: i32,
    pub records: u64,
    /// The error of the first of them.
    pub error: ClientError,
}

#[derive(Debug)]
struct FailedBatch {
    delivery: Arc<Delivery>,
    records: u32,
    /// Records of further batches, which count as unobserved.
    further: u64,
    report: Undelivered,
}

impl FailedBatch {
    fn unobserved(&self) -> u64 {
        u64::from(self.records.saturating_sub(self.delivery.observed())) + self.further
    }
}

/// The failed batches of a producer.
#[derive(Debug, Default)]
pub struct Failures {
    batches: Mutex<Vec<FailedBatch>>,
    /// Whether a batch failed since the last call to [`Failures::look`].
    news: AtomicBool,
}

impl Failures {
    /// Record a batch that is about to fail.
    pub fn note(&self, batch: &Batch, error: &ClientError) {
        let place = &batch.decided;
        let mut batches = self.batches.lock();
        if batches.len() >= MOST {
            batches.retain(|failed| failed.unobserved() > 0);
        }
        let is_same = |failed: &&mut FailedBatch| {
            failed.report.partition == place.partition && failed.report.topic == place.topic
        };
        if batches.len() >= MOST
            && let Some(earlier) = batches.iter_mut().rev().find(is_same)
        {
            earlier.further += u64::from(batch.records);
        } else {
            let (topic, partition) = (Arc::clone(&place.topic), place.partition);
            let report = Undelivered { topic, partition, records: 0, error: error.clone() };
            let delivery = Arc::clone(&batch.delivery);
            batches.push(FailedBatch { delivery, records: batch.records, further: 0, report });
        }
        self.news.store(true, Ordering::Release);
    }

    /// Whether a batch failed since the last call to [`Failures::look`].
    #[inline]
    pub fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// The unobserved failures, oldest first. With `take` they are removed.
    pub fn look(&self, take: bool) -> Vec<Undelivered> {
        self.news.store(false, Ordering::Release);
        let mut batches = self.batches.lock();
        batches.retain(|failed| failed.unobserved() > 0);
        let found = batches.iter().map(|failed| Undelivered { records: failed.unobserved(), ..failed.report.clone() });
        let found = found.collect();
        if take {
            batches.clear();
        }
        found
    }
}
