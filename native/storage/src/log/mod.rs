//! The log of one partition: its shared state, and what can be asked of it at any time.
//!
//! Owns the published [`View`] that readers take without a lock, and the [`Writer`] behind the mutex that all changes take.
//! What is done with them stands in the sibling modules: `opening`, `append`, `read`, `lookup`, `epoch_check`, `roll`,
//! `flush`, `closing`, `truncation`, `removal`.
//!
//! Lock order: cleaning, then writer, then flush, then epochs.

pub(crate) mod admission;
pub(crate) mod append;
pub(crate) mod closing;
pub(crate) mod committed;
#[cfg(test)]
pub(crate) mod crash_tests;
pub(crate) mod epoch_check;
#[cfg(test)]
mod exhaustion_tests;
pub(crate) mod flush;
pub(crate) mod lookup;
mod opening;
pub(crate) mod read;
pub(crate) mod removal;
pub(crate) mod retention;
pub(crate) mod roll;
pub(crate) mod state;
pub(crate) mod truncation;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::directory::log_dir::LogHome;
use crate::log::state::{EpochFile, View, Writer};
use crate::{LogConfig, LogError};
use pybroker_record::{Compression, Offset};

/// A partition's log. Shared as `Arc<Log>`; every method takes `&self`.
#[derive(Debug)]
pub struct Log {
    pub(crate) home: Arc<LogHome>,
    pub(crate) config: ArcSwap<LogConfig>,
    /// What readers see: replaced as a whole, by the holder of `writer` only.
    pub(crate) view: ArcSwap<View>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) epochs: Mutex<EpochFile>,
    /// Held by the pass that compacts the log, from its beginning to its end.
    pub(crate) cleaning: Mutex<()>,
    /// How many wait for that pass to end, or keep others from beginning.
    pub(crate) cleaning_ends: AtomicU32,
    /// Held while data is synced: a thread that waits for it finds the work of the one before done.
    pub(crate) flushing: Mutex<()>,
    /// First offset of a transaction that is not decided; `i64::MAX` for none. Changed by the holder of `writer` only,
    /// and before the batch that changes it is published.
    pub(crate) first_unstable: AtomicI64,
    /// The smallest marker that waits for the high watermark; `i64::MAX` for none.
    pub(crate) next_to_settle: AtomicI64,
    /// Everything below is on the device. Changed by the holder of `flushing` only.
    pub(crate) recovery_point: AtomicI64,
    /// When `flush.ms` was last seen to be over, ms.
    pub(crate) flushed_ms: AtomicI64,
    /// A segment file was made since the directory was last synced.
    pub(crate) directory_dirty: AtomicBool,
    /// The log's directory was made since the one above it was last synced.
    pub(crate) parent_dirty: AtomicBool,
    /// A write or sync failed: what is on the device is in doubt, and nothing is changed or synced any more.
    pub(crate) failure: AtomicBool,
    /// Closed or deleted: nothing is appended any more.
    pub(crate) closed: AtomicBool,
    /// See [`Self::is_missing_records`].
    pub(crate) is_missing_records: bool,
    /// The first offset that is missing within the log; `i64::MAX` for none. Changed by the holder of `writer` only.
    pub(crate) hole: AtomicI64,
}

impl Log {
    /// The directory the log lives in now.
    pub fn directory(&self) -> Arc<Path> {
        self.home.path()
    }

    /// Whether its opening has found that records are missing which may have been acknowledged.
    pub fn is_missing_records(&self) -> bool {
        self.is_missing_records
    }

    /// The first offset that is missing within the log, which continues behind it; `None` where nothing is known to be missing.
    pub fn hole(&self) -> Option<Offset> {
        let hole = self.hole.load(Ordering::Acquire);
        (hole < self.log_end_offset() && hole >= self.log_start_offset()).then_some(Offset(hole))
    }

    /// First readable offset.
    pub fn log_start_offset(&self) -> i64 {
        self.view.load().log_start_offset
    }

    /// Offset of the next record.
    pub fn log_end_offset(&self) -> i64 {
        self.view.load().end_offset
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        let view = self.view.load();
        view.segments.sealed_bytes() + view.end_position
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.view.load().segments.len()
    }

    /// Everything below this offset is known to be on the device.
    pub fn recovery_point(&self) -> i64 {
        self.recovery_point.load(Ordering::Acquire)
    }

    /// Changes the settings from the next append on; index sizes from the next segment on.
    pub fn set_config(&self, config: LogConfig) {
        self.config.store(Arc::new(config));
    }

    /// The most that one append may have (`segment.bytes`).
    pub fn segment_bytes(&self) -> u64 {
        self.config.load().segment_bytes
    }

    /// The codec that batches are stored in; `None` leaves each in its producer's.
    pub fn compression(&self) -> Option<Compression> {
        self.config.load().compression
    }

    /// The largest batch that is taken (`max.message.bytes`).
    pub fn max_message_bytes(&self) -> usize {
        self.config.load().max_message_bytes
    }

    /// The most that a batch may decompress to.
    pub fn max_decompressed_bytes(&self) -> usize {
        self.config.load().max_decompressed_bytes
    }

    /// Whether appends are acknowledged when a shared sync has covered them (`flush=group`).
    pub fn is_synced_in_groups(&self) -> bool {
        self.config.load().flush_group
    }

    /// Its directory failed elsewhere: nothing is changed or synced any more.
    pub fn take_offline(&self) {
        self.failure.store(true, Ordering::Release);
    }

    /// Whether a failure or [`Self::close`] has ended appending.
    pub fn is_offline(&self) -> bool {
        self.failure.load(Ordering::Acquire) || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn ensure_online(&self) -> Result<(), LogError> {
        if self.closed.load(Ordering::Acquire) { Err(self.offline()) } else { self.ensure_not_failed() }
    }

    pub(crate) fn ensure_not_failed(&self) -> Result<(), LogError> {
        if self.failure.load(Ordering::Acquire) { Err(self.offline()) } else { Ok(()) }
    }

    /// Segments whose files are open.
    pub fn open_files(&self) -> usize {
        self.view.load().segments.as_slice().iter().filter(|segment| segment.is_file_open()).count()
    }

    /// Closes the files of segments that nobody has used since this was last called; how many. They are opened again on
    /// their next use. A log that is being changed at this moment is left alone.
    pub fn close_idle_files(&self) -> usize {
        // A thread that renames files holds the writer, and goes on with files that are open.
        let Some(_writer) = self.writer.try_lock() else { return 0 };
        let view = self.view.load();
        view.segments.as_slice().iter().filter(|segment| segment.close_idle_file()).count()
    }

    fn offline(&self) -> LogError {
        LogError::Offline { path: self.home.path().to_path_buf() }
    }

    /// Takes the log offline and hands the error on, of an operation that may have been left half done.
    pub(crate) fn failed(&self, error: LogError) -> LogError {
        self.failure.store(true, Ordering::Release);
        error.half_done()
    }

    /// [`Self::failed`] for an operation that can be done again from its beginning: the want of a descriptor or of memory
    /// leaves the log as it is.
    pub(crate) fn failed_for_good(&self, error: LogError) -> LogError {
        if error.is_exhausted() { error } else { self.failed(error) }
    }
}
