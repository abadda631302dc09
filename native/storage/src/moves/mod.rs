//! Moves a log to another log directory of the same broker while it is in use (KIP-113).
//!
//! Owns the future replica: a directory `<topic>-<partition>.<id>-future` that becomes a byte-for-byte copy of the
//! log's directory and then replaces it. The [`Log`](crate::Log) object stays the same, so its readers, producers and
//! waiting requests are not affected. The caller decides which log moves where.
//!
//! Both directories may have the final name for a moment, or permanently if the disk of the old one fails then. The
//! new one has a higher move count ([`MOVE_COUNT_FILE`]). Of several directories of one partition, the one with the
//! highest count is the log, and the others are out of date.

mod copier;
#[cfg(test)]
mod crash_tests;
mod switch;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::LogError;
use crate::directory::checkpoint::replace_file;
use crate::directory::log_dir::PARTITION_METADATA_FILE;
use pybroker_sys::file;

/// Name of the file with the number of moves of a log; absent for a log that never moved. Kafka ignores the file.
pub const MOVE_COUNT_FILE: &str = "move-count";

/// A move in progress: its state for other threads, and its cancellation.
#[derive(Debug, Default)]
pub struct LogMove {
    bytes: AtomicU64,
    end_offset: AtomicI64,
    cancelled: AtomicBool,
}

impl LogMove {
    /// Returns the bytes of records in the future replica.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns the offset below which the future replica has every record.
    pub fn end_offset(&self) -> i64 {
        self.end_offset.load(Ordering::Acquire)
    }

    /// Cancels the move, unless the switch has begun.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }
}

/// Why a log was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The move was cancelled, or the log is truncated, closed, deleted or offline.
    #[error("the move was ended")]
    Ended,
    /// A file of the log or of the future replica failed.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// A log that was moved.
#[derive(Debug)]
pub struct MovedLog {
    /// The old directory's current path.
    pub old: PathBuf,
    /// The error that prevented the old directory from being renamed for deletion. Its disk may be failing.
    pub left: Option<LogError>,
}

/// Creates the directory of a future replica durably, with the topic id, so that a restart after a crash finds it.
///
/// # Errors
/// `Io` with the path that failed, `Corrupt` when the log's own files are damaged.
pub fn prepare(log: &Path, future: &Path) -> Result<(), LogError> {
    file::make_directory(future).map_err(LogError::io(future))?;
    let count = move_count(log)? + 1;
    replace_file(&future.join(MOVE_COUNT_FILE), format!("version: 0\nmoves: {count}\n").as_bytes(), true)?;
    let metadata = log.join(PARTITION_METADATA_FILE);
    let text = file::read(&metadata).map_err(LogError::io(&metadata))?;
    replace_file(&future.join(PARTITION_METADATA_FILE), &text, true)?;
    match future.parent() {
        Some(parent) => file::sync_directory(parent).map_err(LogError::io(parent)),
        None => Ok(()),
    }
}

/// Returns the number of moves of the log in this directory.
///
/// # Errors
/// `Corrupt` when the file is malformed, `Io` when it cannot be read.
pub fn move_count(directory: &Path) -> Result<u64, LogError> {
    let path = directory.join(MOVE_COUNT_FILE);
    let text = match file::read(&path)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)))
    {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(LogError::io(&path)(error)),
    };
    let mut lines = text.lines();
    let count = match (lines.next(), lines.next(), lines.next()) {
        (Some("version: 0"), Some(line), None) => line.strip_prefix("moves: ").and_then(|count| count.parse().ok()),
        _ => None,
    };
    count.ok_or_else(|| LogError::Corrupt { path, reason: format!("not a count of moves: {text:?}") })
}
