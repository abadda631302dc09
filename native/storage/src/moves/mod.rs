//! Moving a log to another log directory of the same broker, while it is written and read (KIP-113).
//!
//! Owns the future replica: a directory `<topic>-<partition>.<id>-future` that becomes, file by file and byte for byte, what
//! the log's own directory is, and then takes its place. The log stays the same object: its readers, its producers and
//! those who wait at it notice nothing. It must not decide who moves, nor where to.
//!
//! Both directories may have the final name for a moment, and for good where the old one's disk fails in it. The new one
//! counts one move more ([`MOVE_COUNT_FILE`]): of several directories of one partition that with the most moves is the
//! log, and the others are out of date.

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

/// Name of the file that says how often a log was moved; without it, it never was. Kafka passes over it.
pub const MOVE_COUNT_FILE: &str = "move-count";

/// A move under way, as it is seen and ended from elsewhere.
#[derive(Debug, Default)]
pub struct LogMove {
    bytes: AtomicU64,
    end_offset: AtomicI64,
    cancelled: AtomicBool,
}

impl LogMove {
    /// Bytes of records that the future replica has.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// The future replica has every record below this offset.
    pub fn end_offset(&self) -> i64 {
        self.end_offset.load(Ordering::Acquire)
    }

    /// Ends the move, unless the future replica takes the log's place at this very moment.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }
}

/// Why a log was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// It was cancelled, or the log is cut, closed, deleted or offline.
    #[error("the move was ended")]
    Ended,
    /// A file failed, of the log or of the future replica.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// A log that lives elsewhere now.
#[derive(Debug)]
pub struct MovedLog {
    /// The directory that it was in, as it is called now.
    pub old: PathBuf,
    /// Why that directory could not be renamed for deletion: its disk is in doubt.
    pub left: Option<LogError>,
}

/// Makes the directory of a future replica, durably: a start after a crash finds there what was begun, and for which topic.
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

/// How often the log in this directory was moved.
///
/// # Errors
/// `Corrupt` when the file is not understood, `Io` when it cannot be read.
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
