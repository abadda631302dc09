//! What is at hand everywhere in a pass: the log, its segments, the pace, and what may end it.

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
    /// Everything below was cleaned by earlier passes.
    pub first_dirty: i64,
    /// Nothing from here on is cleaned: a segment's base offset, at most the last stable offset.
    pub first_uncleanable: i64,
}

/// What a pass may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanLimits {
    /// Bytes for keys: this thread's share of `log.cleaner.dedupe.buffer.size`.
    pub map_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`: how full the map may become.
    pub load_factor: f64,
    /// Bytes for reading, and as many for writing: half of this thread's share of `log.cleaner.io.buffer.size`.
    pub buffer_bytes: usize,
}

/// What a pass has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The first dirty offset from now on.
    pub end_offset: i64,
    /// Keys in the dirty part.
    pub keys: u64,
    /// The map was full before the cleanable part ended: another pass is due.
    pub map_full: bool,
    /// Bytes of the dirty part, read for the map.
    pub bytes_indexed: u64,
    /// Bytes of the segments rewritten, before and after.
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
    /// Records of the segments rewritten, before and after.
    pub records_read: u64,
    /// See `records_read`.
    pub records_written: u64,
    /// Records that had no key, and are gone.
    pub records_without_key: u64,
    /// Segments, before and after.
    pub segments_read: usize,
    /// See `segments_read`.
    pub segments_written: usize,
    /// How long the map took, ms.
    pub index_ms: u64,
    /// How long all took, ms.
    pub total_ms: u64,
    /// Files of the segments replaced, as they are called now; they wait to be removed.
    pub files: Vec<PathBuf>,
}

/// Why a pass ended before its end. Groups that were in their place by then stay there; the log is sound.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// It was to end: the log is cut, closed or deleted, or all passes are stopped.
    #[error("the pass was ended")]
    Aborted,
    /// A file failed, or is not what it should be.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// What is at hand everywhere in a pass.
pub(crate) struct Pass<'a> {
    pub(crate) log: &'a Log,
    pub(crate) throttle: &'a Throttle,
    /// The segments below the first uncleanable offset.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) index_interval: u64,
    pub(crate) index_bytes: u32,
    pub(crate) write_bytes: usize,
    pub(crate) max_decompressed: usize,
    /// Old tombstones stay in segments that were changed later; `None`: in all.
    pub(crate) tombstone_horizon: Option<SystemTime>,
    pub(crate) stats: Cleaned,
}

impl Pass<'_> {
    /// Ends the pass when somebody wants that.
    pub(crate) fn check(&self) -> Result<(), CleanError> {
        let wanted = self.log.cleaning_ends.load(Ordering::Acquire) > 0 || self.log.is_offline();
        if wanted || self.throttle.is_stopped() { Err(CleanError::Aborted) } else { Ok(()) }
    }

    /// Counts bytes read or written, and waits while the pace asks for it.
    pub(crate) fn count(&self, bytes: usize) -> Result<(), CleanError> {
        self.throttle.count(bytes, || self.check().is_err());
        self.check()
    }

    pub(crate) fn corrupt(&self, segment: &Segment, header: &BatchHeader, error: RecordError) -> LogError {
        let reason = format!("the batch at offset {}: {error}", header.base_offset);
        LogError::Corrupt { path: segment.path(), reason }
    }
}
