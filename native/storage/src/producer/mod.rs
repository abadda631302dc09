//! What a log knows of its producers: the last batches of each, their epochs, and the transactions that are open.
//!
//! Owns the check of sequence numbers and the snapshots on disk, in Kafka's format. All of it is derived from the records.

pub mod producer_snapshot;
pub mod producer_state;
pub(crate) mod recent_batches;
pub(crate) mod transactions;
pub(crate) mod verification;
