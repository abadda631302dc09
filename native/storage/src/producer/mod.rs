//! The producer state of a log: the last batches of each producer, their epochs, and the open transactions.
//!
//! Owns the check of sequence numbers, and the snapshots on disk in Kafka's format. All of the state is derived from
//! the records.

pub mod producer_snapshot;
pub mod producer_state;
pub(crate) mod recent_batches;
pub(crate) mod transactions;
pub(crate) mod verification;
