//! The log of one partition: its shared state and its accessors.
//!
//! Owns the published [`View`], which readers load without a lock, and the [`Writer`] behind the mutex that every
//! change locks. The operations are in the sibling modules: `opening`, `append`, `read`, `lookup`, `epoch_check`,
//! `roll`, `flush`, `closing`, `truncation`, `removal`.
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
    /// The state that readers see. The holder of `writer` replaces it as a whole.
    pub(crate) view: ArcSwap<View>,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) epochs: Mutex<EpochFile>,
    /// Locked by a cleaner pass from its beginning to its end.
    pub(crate) cleaning: Mutex<()>,
    /// Number of threads that wait for the cleaner pass to end, or prevent the next one.
    pub(crate) cleaning_ends: AtomicU32,
    /// Locked during a sync. A thread that waited for the lock usually finds its records synced.
    pub(crate) flushing: Mutex<()>,
    /// First offset of the earliest incomplete transaction; `i64::MAX` for none. Only the holder of `writer` changes
    /// it, before it publishes the batch that causes the change.
    pub(crate) first_unstable: AtomicI64,
    /// The smallest marker offset that waits for the high watermark; `i64::MAX` for none.
    pub(crate) next_to_complete: AtomicI64,
    /// All records below this offset are on the device. Only the holder of `flushing` changes it.
    pub(crate) recovery_point: AtomicI64,
    /// Time of the last flush by `flush.ms`, ms.
    pub(crate) flushed_ms: AtomicI64,
    /// Whether a segment file was created since the directory was last synced.
    pub(crate) directory_dirty: AtomicBool,
    /// Whether the log's directory was created since its parent was last synced.
    pub(crate) parent_dirty: AtomicBool,
    /// Whether a write or sync failed. The state on the device is then unknown, and nothing is changed or synced any
    /// more.
    pub(crate) failure: AtomicBool,
    /// Whether the log is closed or deleted. Appends are then rejected.
    pub(crate) closed: AtomicBool,
    /// See [`Self::is_missing_records`].
    pub(crate) is_missing_records: bool,
    /// The first missing offset of a hole within the log; `i64::MAX` for none. Only the holder of `writer` changes
    /// it.
    pub(crate) hole: AtomicI64,
}

impl Log {
    /// Returns the current directory of the log.
    pub fn directory(&self) -> Arc<Path> {
        self.home.path()
    }

    /// Returns whether recovery found that records are missing which may have been acknowledged.
    pub fn is_missing_records(&self) -> bool {
        self.is_missing_records
    }

    /// Returns the first missing offset of a hole within the log; `None` if no hole is known.
    pub fn hole(&self) -> Option<Offset> {
        let hole = self.hole.load(Ordering::Acquire);
        (hole < self.log_end_offset() && hole >= self.log_start_offset()).then_some(Offset(hole))
    }

    /// Returns the first readable offset.
    pub fn log_start_offset(&self) -> i64 {
        self.view.load().log_start_offset
    }

    /// Returns the offset of the next record.
    pub fn log_end_offset(&self) -> i64 {
        self.view.load().end_offset
    }

    /// Returns the bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        let view = self.view.load();
        view.segments.sealed_bytes() + view.end_position
    }

    /// Returns the number of segments.
    pub fn segment_count(&self) -> usize {
        self.view.load().segments.len()
    }

    /// Returns the offset below which all records are known to be on the device.
    pub fn recovery_point(&self) -> i64 {
        self.recovery_point.load(Ordering::Acquire)
    }

    /// Changes the settings: index sizes from the next segment on, the others from the next append on.
    pub fn set_config(&self, config: LogConfig) {
        self.config.store(Arc::new(config));
    }

    /// Returns the most bytes of one append (`segment.bytes`).
    pub fn segment_bytes(&self) -> u64 {
        self.config.load().segment_bytes
    }

    /// Returns the codec of stored batches; `None` keeps each producer's codec.
    pub fn compression(&self) -> Option<Compression> {
        self.config.load().compression
    }

    /// Returns the size of the largest accepted batch (`max.message.bytes`).
    pub fn max_message_bytes(&self) -> usize {
        self.config.load().max_message_bytes
    }

    /// Returns the most bytes that a batch may decompress to.
    pub fn max_decompressed_bytes(&self) -> usize {
        self.config.load().max_decompressed_bytes
    }

    /// Returns whether appends are acknowledged only after a shared sync (`flush=group`).
    pub fn is_synced_in_groups(&self) -> bool {
        self.config.load().flush_group
    }

    /// Takes the log offline because its directory failed. Nothing is changed or synced any more.
    pub fn take_offline(&self) {
        self.failure.store(true, Ordering::Release);
    }

    /// Returns whether a failure or [`Self::close`] has ended appending.
    pub fn is_offline(&self) -> bool {
        self.failure.load(Ordering::Acquire) || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn ensure_online(&self) -> Result<(), LogError> {
        if self.closed.load(Ordering::Acquire) { Err(self.offline()) } else { self.ensure_not_failed() }
    }

    pub(crate) fn ensure_not_failed(&self) -> Result<(), LogError> {
        if self.failure.load(Ordering::Acquire) { Err(self.offline()) } else { Ok(()) }
    }

    /// Returns the number of segments with open files.
    pub fn open_files(&self) -> usize {
        self.view.load().segments.as_slice().iter().filter(|segment| segment.is_file_open()).count()
    }

    /// Closes the files of segments that were not used since the last call, and returns how many. The next use opens
    /// them again. Does nothing while another thread holds the writer lock.
    pub fn close_idle_files(&self) -> usize {
        // A thread that renames files holds the writer lock and relies on open files.
        let Some(_writer) = self.writer.try_lock() else { return 0 };
        let view = self.view.load();
        view.segments.as_slice().iter().filter(|segment| segment.close_idle_file()).count()
    }

    fn offline(&self) -> LogError {
        LogError::Offline { path: self.home.path().to_path_buf() }
    }

    /// Takes the log offline after an operation that may be half done, and returns the error.
    pub(crate) fn failed(&self, error: LogError) -> LogError {
        self.failure.store(true, Ordering::Release);
        error.half_done()
    }

    /// Like [`Self::failed`], for an operation that can be repeated from its beginning: a lack of file descriptors or
    /// memory leaves the log online.
    pub(crate) fn failed_for_good(&self, error: LogError) -> LogError {
        if error.is_exhausted() { error } else { self.failed(error) }
    }
}
