//! Observation of a producer's batches on its I/O thread, for measurements: when which records were acknowledged.

use std::time::Instant;

/// Records of one batch that were sent at about the same time.
#[derive(Debug, Clone, Copy)]
pub struct Stride {
    /// When they were sent, or should have been sent.
    pub sent: Instant,
    pub records: u32,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// The phase of [`Producer::begin_phase`](super::Producer::begin_phase) when they were sent.
    pub phase: u8,
}

/// Called once for each batch that completes. It delays the I/O thread, so it must be fast.
pub trait DeliveryObserver: std::fmt::Debug + Send + Sync {
    /// The broker has acknowledged the batch with these records, at `now`.
    fn acknowledged(&self, strides: &[Stride], now: Instant);
    /// The batch with these records has failed.
    fn failed(&self, strides: &[Stride]);
}
