//! What a program may observe of a producer's batches, on its I/O thread: when which records were acknowledged.

use std::time::Instant;

/// Records of one batch that were sent at about the same moment.
#[derive(Debug, Clone, Copy)]
pub struct Stride {
    /// When they were sent, or should have been.
    pub sent: Instant,
    pub records: u32,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// What [`Producer::begin_phase`](super::Producer::begin_phase) said when they were sent.
    pub phase: u8,
}

/// Called once for each batch whose fate is known. It delays the producer, so it does little.
pub trait DeliveryObserver: std::fmt::Debug + Send + Sync {
    /// The broker has acknowledged the batch of these records, at `now`.
    fn acknowledged(&self, strides: &[Stride], now: Instant);
    /// The batch of these records was given up.
    fn failed(&self, strides: &[Stride]);
}
