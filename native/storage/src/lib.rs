//! The log of one partition: segments, indexes, and what is derived from them.
//!
//! Owns the bytes on disk in Kafka's layout: `<20-digit base offset>.log/.index/.timeindex/.txnindex/.snapshot`,
//! `leader-epoch-checkpoint`, `partition.metadata` and the checkpoint files at the root of a log directory. It must not
//! know sockets, requests, watermarks or policy: it appends, reads, rolls, truncates, recovers and returns offsets. On
//! a Produce's way it is the last stop (after `pybroker_replica`); on a Fetch's way it turns an offset into a slice of
//! a file.

/// Fixtures are shared with the integration tests, which know the crate by its name.
#[cfg(test)]
extern crate self as pybroker_storage;
#[cfg(test)]
#[path = "../tests/it/log_fixture.rs"]
mod log_fixture;

mod admission;
mod append;
mod batch_scan;
pub mod checkpoint;
mod cleaner;
mod closing;
mod committed;
mod config;
mod converted;
#[cfg(test)]
mod crash_tests;
mod error;
#[cfg(test)]
mod exhaustion_tests;
mod flush;
mod index_map;
pub mod leader_epochs;
mod log;
pub mod log_dir;
mod log_walk;
mod lookup;
mod loss;
mod moves;
mod offset_index;
pub mod partition_metadata;
pub mod producer_snapshot;
pub mod producer_state;
mod read;
mod rebuild;
mod recent_batches;
mod recovery;
mod recovery_progress;
mod removal;
mod resync;
mod retention;
mod roll;
mod segment;
mod segment_list;
mod set_aside;
mod time_index;
mod transactions;
mod truncation;
pub mod txn_index;
mod verify;
mod walked_messages;
mod walked_records;

pub use append::Appended;
pub use cleaner::{CleanError, CleanLimits, CleanRange, Cleaned, SegmentSurvey, Throttle};
pub use closing::close_all;
pub use committed::CommittedSlice;
pub use config::{LogConfig, OpenLog};
pub use converted::{ConvertedSlice, NotConverted};
pub use error::{AppendError, LogError, ReadError};
pub use log::Log;
pub use log_walk::{LogWalk, WalkError, WalkedBatch};
pub use lookup::TimestampAndOffset;
pub use loss::{Loss, LossCause, REPORT_FILE};
pub use moves::{LogMove, MOVE_COUNT_FILE, MoveError, MovedLog, move_count, prepare as prepare_move};
pub use read::FileSlice;
pub use recovery::Recovered;
pub use recovery_progress::RecoveryProgress;
pub use removal::Removed;
pub use retention::{Expired, RetentionLimits};
pub use set_aside::{is_set_aside, set_aside_files};
pub use verify::{Finding, FindingKind, Severity, Verified, VerifyLog, verify_log};
pub use walked_messages::{MessageHead, WalkedMessage, read_messages};
pub use walked_records::{WalkedRecord, read_records};
