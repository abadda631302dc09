//! The log of one partition: its shared state, and what can be asked of it at any time.
//!
//! Owns the published [`View`] that readers take without a lock, and the [`Writer`] behind the mutex that all changes take.
//! What is done with them stands in the sibling modules: `append`, `read`, `lookup`, `roll`, `flush`, `closing`,
//! `truncation`, `removal`, `recovery`.
//!
//! Lock order: cleaning, then writer, then flush, then epochs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::leader_epochs::LeaderEpochs;
use super::log_dir::LogHome;
use super::producer_state::ProducerStates;
use super::segment_list::SegmentList;
use super::{LogConfig, LogError, OpenLog, Recovered, RecoveryProgress, recovery};
use pybroker_record::{BatchHeader, Compression};

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
}

/// One consistent picture of the log.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) segments: Arc<SegmentList>,
    pub(crate) log_start_offset: i64,
    /// Offset of the next record, and where in the active segment it will lie.
    pub(crate) end_offset: i64,
    pub(crate) end_position: u64,
    /// The last batch of the active segment (its end, when the segment is empty).
    pub(crate) tail: Tail,
}

impl View {
    /// Bytes of whole batches in a segment.
    pub(crate) fn limit_of(&self, segment: usize) -> u64 {
        if self.segments.is_active(segment) { self.end_position } else { self.segments.as_slice()[segment].size() }
    }

    /// Where the records end: below the log end where a truncation has cut in a gap.
    pub(crate) fn records_end(&self) -> i64 {
        self.tail.next_offset
    }
}

/// The offsets and the position of the last batch: readers at the end of the log need no search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) offset: i64,
    /// Below the log end where a truncation has cut in a gap.
    pub(crate) next_offset: i64,
    pub(crate) position: u64,
}

impl Tail {
    /// Of a segment without batches, where `offset` will be the first.
    pub(crate) fn empty(offset: i64) -> Self {
        Self { offset, next_offset: offset, position: 0 }
    }

    /// A batch at `position`.
    pub(crate) fn at(header: &BatchHeader, position: u64) -> Self {
        Self { offset: header.base_offset, next_offset: header.next_offset(), position }
    }
}

/// What only the appending side needs; all of it is about the active segment but the producers.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) producers: ProducerStates,
    /// Offset of the newest producer snapshot on disk; -1 for none.
    pub(crate) snapshot_offset: i64,
    /// Offsets of snapshots that a start has found and that nothing needs any more; see [`Log::forget_old`].
    pub(crate) old_snapshots: Vec<i64>,
    /// Bytes since the last batch that has an index entry, that batch included.
    pub(crate) bytes_since_index: u64,
    /// End of the blocks asked for ahead.
    pub(crate) reserved: u64,
    /// When the segment was made or opened, ms.
    pub(crate) created_ms: i64,
    /// Largest timestamp of the first batch; `None` until it is known.
    pub(crate) first_timestamp: Option<i64>,
}

impl Writer {
    /// Starts over with an empty segment.
    pub(crate) fn begin_segment(&mut self, now_ms: i64) {
        self.bytes_since_index = 0;
        self.reserved = 0;
        self.created_ms = now_ms;
        self.first_timestamp = None;
    }
}

/// The leader epochs, and whether the file on the device has them all.
#[derive(Debug)]
pub(crate) struct EpochFile {
    pub(crate) epochs: LeaderEpochs,
    pub(crate) dirty: bool,
}

impl Log {
    /// Opens the log in `dir`; directory and first segment are made when they are absent.
    ///
    /// After an unclean shutdown, everything from the recovery point's segment on is checked, torn tails are cut, indexes
    /// and producer state rebuilt.
    ///
    /// # Errors
    /// `Io` with the path that failed.
    pub fn open(dir: &Path, config: LogConfig, how: OpenLog) -> Result<(Self, Recovered), LogError> {
        Self::open_with_progress(dir, config, how, &RecoveryProgress::default())
    }

    /// [`Self::open`] that reports how far its recovery is.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_progress(
        dir: &Path,
        config: LogConfig,
        how: OpenLog,
        progress: &RecoveryProgress,
    ) -> Result<(Self, Recovered), LogError> {
        let home = LogHome::new(dir);
        let (loaded, recovered) = recovery::load(&home, &config, how, progress)?;
        let transactions = loaded.writer.producers.transactions();
        let log = Self {
            first_unstable: AtomicI64::new(transactions.first_unstable().unwrap_or(i64::MAX)),
            next_to_settle: AtomicI64::new(transactions.next_to_settle().unwrap_or(i64::MAX)),
            home,
            config: ArcSwap::from_pointee(config),
            view: ArcSwap::from_pointee(loaded.view),
            writer: Mutex::new(loaded.writer),
            epochs: Mutex::new(EpochFile { epochs: loaded.epochs, dirty: false }),
            cleaning: Mutex::new(()),
            cleaning_ends: AtomicU32::new(0),
            flushing: Mutex::new(()),
            recovery_point: AtomicI64::new(loaded.recovery_point),
            flushed_ms: AtomicI64::new(how.now_ms),
            directory_dirty: AtomicBool::new(loaded.directory_dirty),
            parent_dirty: AtomicBool::new(loaded.parent_dirty),
            failure: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        };
        Ok((log, recovered))
    }

    /// The directory the log lives in now.
    pub fn directory(&self) -> Arc<Path> {
        self.home.path()
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
