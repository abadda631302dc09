//! The context of a pass: the log, its segments, the throttle, and the conditions that abort it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::throttle::Throttle;
use crate::LogError;
use crate::log::Log;
use crate::segment::Segment;
use pybroker_record::{BatchHeader, RecordError};

/// The part of a log that a pass cleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanRange {
    /// Earlier passes have cleaned all records below this offset.
    pub first_dirty: i64,
    /// Records from this offset on are not cleaned. It is a segment's base offset, at most the last stable offset.
    pub first_uncleanable: i64,
}

/// The memory limits of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanLimits {
    /// Bytes of the offset map: this thread's share of `log.cleaner.dedupe.buffer.size`.
    pub map_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`: the largest fill ratio of the map.
    pub load_factor: f64,
    /// Bytes of the read buffer, and of the write buffer: half of this thread's share of
    /// `log.cleaner.io.buffer.size`.
    pub buffer_bytes: usize,
}

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The new first dirty offset.
    pub end_offset: i64,
    /// Number of keys in the dirty part.
    pub keys: u64,
    /// Whether the map was full before the end of the cleanable part. Another pass is then due.
    pub map_full: bool,
    /// Bytes of the dirty part that were read for the map.
    pub bytes_indexed: u64,
    /// Bytes of the cleaned segments, before (`bytes_read`) and after (`bytes_written`).
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
    /// Records of the cleaned segments, before (`records_read`) and after (`records_written`).
    pub records_read: u64,
    /// See `records_read`.
    pub records_written: u64,
    /// Removed records without a key.
    pub records_without_key: u64,
    /// Number of cleaned segments, before (`segments_read`) and after (`segments_written`).
    pub segments_read: usize,
    /// See `segments_read`.
    pub segments_written: usize,
    /// Time to fill the map, ms.
    pub index_ms: u64,
    /// Time of the whole pass, ms.
    pub total_ms: u64,
    /// Paths of the replaced segments' renamed files, which wait for deletion.
    pub files: Vec<PathBuf>,
}

/// Why a pass ended early. Groups that were swapped in already stay, and the log is consistent.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// The pass was aborted: the log is truncated, closed or deleted, or all passes are stopped.
    #[error("the pass was ended")]
    Aborted,
    /// A file failed, or its content is invalid.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// The context of a pass.
pub(crate) struct Pass<'a> {
    pub(crate) log: &'a Log,
    pub(crate) throttle: &'a Throttle,
    /// The segments below the first uncleanable offset.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) index_interval: u64,
    pub(crate) index_bytes: u32,
    pub(crate) write_bytes: usize,
    pub(crate) max_decompressed: usize,
    /// Tombstones of old formats stay in segments that were changed later; `None` for all segments.
    pub(crate) tombstone_horizon: Option<SystemTime>,
    pub(crate) stats: Cleaned,
}

impl Pass<'_> {
    /// Returns `Aborted` if the pass must end.
    pub(crate) fn check(&self) -> Result<(), CleanError> {
        let wanted = self.log.cleaning_ends.load(Ordering::Acquire) > 0 || self.log.is_offline();
        if wanted || self.throttle.is_stopped() { Err(CleanError::Aborted) } else { Ok(()) }
    }

    /// Counts bytes read or written, and waits as long as the throttle requires.
    pub(crate) fn count(&self, bytes: usize) -> Result<(), CleanError> {
        self.throttle.count(bytes, || self.check().is_err());
        self.check()
    }

    pub(crate) fn corrupt(&self, segment: &Segment, header: &BatchHeader, error: RecordError) -> LogError {
        let reason = format!("the batch at offset {}: {error}", header.base_offset);
        LogError::Corrupt { path: segment.path(), reason }
    }
}
