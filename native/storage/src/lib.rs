//! The log of one partition: segments, indexes, and the state derived from them.
//!
//! Owns the bytes on disk in Kafka's layout: `<20-digit base offset>.log/.index/.timeindex/.txnindex/.snapshot`,
//! `leader-epoch-checkpoint`, `partition.metadata` and the checkpoint files in a log directory. Appends, reads,
//! rolls, truncates and recovers logs. It must not know sockets, requests, watermarks or policy. `pybroker_replica`
//! calls it for Produce, and for Fetch to find the file slice of an offset.

/// The fixtures are shared with the integration tests, which use the crate by this name.
#[cfg(test)]
extern crate self as pybroker_storage;
#[cfg(test)]
#[path = "../tests/it/log_fixture.rs"]
mod log_fixture;

mod cleaner;
mod config;
mod directory;
mod error;
mod index;
mod log;
mod moves;
mod producer;
mod recovery;
mod segment;
mod verify;
mod walk;

pub use cleaner::{CleanError, CleanLimits, CleanRange, Cleaned, SegmentSurvey, Throttle};
pub use config::{LogConfig, OpenLog};
pub use directory::{checkpoint, leader_epochs, log_dir, partition_metadata};
pub use error::{AppendError, LogError, ReadError};
pub use index::txn_index;
pub use log::Log;
pub use log::admission::AdmittedRecords;
pub use log::append::Appended;
pub use log::closing::close_all;
pub use log::committed::CommittedSlice;
pub use log::epoch_check::RepairedEpochs;
pub use log::flush::flush_times;
pub use log::lookup::TimestampAndOffset;
pub use log::read::FileSlice;
pub use log::removal::Removed;
pub use log::retention::{Expired, RetentionLimits};
pub use moves::{LogMove, MOVE_COUNT_FILE, MoveError, MovedLog, move_count, prepare as prepare_move};
pub use producer::verification::{
    BeginningTransaction, ConfirmedTransaction, TransactionCheck, TransactionalIdHash, VerificationGuard,
};
pub use producer::{producer_snapshot, producer_state};
pub use recovery::Recovered;
pub use recovery::loss::{Loss, LossCause, REPORT_FILE};
pub use recovery::recovery_progress::RecoveryProgress;
pub use recovery::set_aside::{is_set_aside, set_aside_files};
pub use segment::converted::{ConvertedSlice, NotConverted};
pub use verify::{Finding, FindingKind, Severity, Verified, VerifyLog, verify_log};
pub use walk::log_walk::{LogWalk, WalkError, WalkedBatch};
pub use walk::walked_messages::{MessageHead, WalkedMessage, read_messages};
pub use walk::walked_records::{WalkedRecord, read_records};
