//! One segment: a file of batches, its indexes, and the search for an offset.
//!
//! Owns the files of a base offset. Must not know the log's end (a reader passes the limit) or its neighbours.
//! Methods for the writer (indexing, sealing) are called under the log's mutex. Methods for readers take no lock.

pub(crate) mod batch_scan;
pub(crate) mod converted;
pub(crate) mod segment_list;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::LogError;
use crate::directory::log_dir::{
    DELETED_SUFFIX, LOG_SUFFIX, LogHome, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX,
    remove_if_present,
};
use crate::index::index_map::Held;
use crate::index::offset_index::OffsetIndex;
use crate::index::time_index::{TimeIndex, TimestampOffset};
use crate::index::txn_index::TxnIndex;
use crate::producer::recent_batches::{FoundPlace, RecentBatches};
use crate::segment::batch_scan::HeaderScan;
use pybroker_record::{BatchHeader, HEADER_LEN};
use pybroker_sys::file;

/// A segment; see the module. The fields for searches come first and fill two cache lines, because with many segments
/// each line is a cache miss.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Segment {
    recent: RecentBatches,
    base_offset: i64,
    /// Bytes of complete batches. For the active segment readers use the published log end instead.
    size: AtomicU64,
    /// Opened on first use, and again after [`Self::close_file`]. A log in use has one open file, unless older
    /// segments are read. An idle log has none.
    file: ArcSwapOption<File>,
    pub(crate) offset_index: OffsetIndex,
    home: Arc<LogHome>,
    pub(crate) time_index: TimeIndex,
    pub(crate) txn_index: TxnIndex,
    /// Largest timestamp and its batch's last offset. It covers at most the written batches, and may be larger than
    /// the last time index entry.
    largest_timestamp: Mutex<TimestampOffset>,
    /// Whether the segment was removed from the log. Its files are renamed and will be deleted.
    retired: AtomicBool,
    /// Whether the file was used since the last idle check.
    used: AtomicBool,
}

/// Suffixes of all files of a segment; the log file is first.
const FILES: [&str; 5] = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX];

/// A batch found in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundBatch {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

/// The content of a segment's index files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntries {
    pub(crate) offsets: Held<2>,
    pub(crate) times: Held<3>,
    /// Number of aborted transactions.
    pub(crate) aborted: u64,
}

impl IndexEntries {
    /// No entries, and perhaps no files.
    pub(crate) const NOTHING: Self = Self { offsets: Held::NOTHING, times: Held::NOTHING, aborted: 0 };
}

impl Segment {
    /// Returns a segment whose `.log` exists with `size` bytes of batches. `max_index_bytes` is 0 for a read-only
    /// segment.
    pub(crate) fn existing(
        home: Arc<LogHome>,
        base_offset: i64,
        size: u64,
        entries: IndexEntries,
        max_index_bytes: u32,
    ) -> Self {
        Self {
            offset_index: OffsetIndex::new(Arc::clone(&home), base_offset, entries.offsets, max_index_bytes),
            time_index: TimeIndex::new(Arc::clone(&home), base_offset, entries.times, max_index_bytes),
            txn_index: TxnIndex::new(Arc::clone(&home), base_offset, entries.aborted),
            recent: RecentBatches::new(),
            home,
            base_offset,
            file: ArcSwapOption::empty(),
            size: AtomicU64::new(size),
            largest_timestamp: Mutex::new(TimestampOffset { timestamp: -1, offset: base_offset }),
            retired: AtomicBool::new(false),
            used: AtomicBool::new(false),
        }
    }

    /// Creates an empty segment. Replaces existing files of the same name.
    pub(crate) fn create(home: Arc<LogHome>, base_offset: i64, max_index_bytes: u32) -> Result<Self, LogError> {
        for suffix in [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX] {
            remove_if_present(&home.segment_file(base_offset, suffix))?;
        }
        let path = home.segment_file(base_offset, LOG_SUFFIX);
        let file = file::create(&path);
        let segment = Self::existing(home, base_offset, 0, IndexEntries::NOTHING, max_index_bytes);
        segment.file.store(Some(Arc::new(file.map_err(LogError::io(&path))?)));
        Ok(segment)
    }

    /// Returns the segment with its log file, which is already open.
    pub(crate) fn with_file(self, file: Arc<File>) -> Self {
        self.file.store(Some(file));
        self
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.segment_file(self.base_offset, LOG_SUFFIX)
    }

    /// Returns the log file, and opens it if it is closed.
    pub(crate) fn file(&self) -> Result<Arc<File>, LogError> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if let Some(file) = self.file.load_full() {
            return Ok(file);
        }
        let path = self.path();
        let file = Arc::new(file::open_untimed(&path).map_err(LogError::io(&path))?);
        // If two threads open it at the same time, each uses its own, and one of them is stored.
        self.file.store(Some(Arc::clone(&file)));
        Ok(file)
    }

    /// Syncs the records to the device. This does not count as use of the file: a closed file is opened only for the
    /// sync. So a sync of many segments does not keep file descriptors, which may be scarce.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        let path = self.path();
        let synced = match self.file.load_full() {
            Some(file) => file::sync_data(&file),
            None => file::open_untimed(&path).and_then(|file| file::sync_data(&file)),
        };
        synced.map_err(LogError::io(&path))
    }

    /// Returns the segment without open file and mappings, in the state after a trusted load. The segment must not be
    /// shared yet.
    pub(crate) fn at_rest(self, max_index_bytes: u32) -> Self {
        self.close_file();
        if !self.offset_index.map.is_mapped() && !self.time_index.map.is_mapped() {
            return self;
        }
        let (offsets, times) = (&self.offset_index.map, &self.time_index.map);
        let entries = IndexEntries {
            offsets: Held { completed: offsets.is_completed(), ..offsets.held() },
            times: Held { completed: times.is_completed(), ..times.held() },
            aborted: self.txn_index.len(),
        };
        let resting = Self::existing(Arc::clone(&self.home), self.base_offset, self.size(), entries, max_index_bytes);
        resting.set_largest_timestamp(self.largest_timestamp());
        Self { txn_index: self.txn_index, ..resting }
    }

    /// Returns whether the file is open.
    pub(crate) fn is_file_open(&self) -> bool {
        self.file.load().is_some()
    }

    /// Closes the file if it was not used since the last call. Returns whether it did. A current reader continues
    /// with the open file. The next use opens it again by its name, so the caller must hold the log's writer lock:
    /// the files must not be renamed meanwhile.
    pub(crate) fn close_idle_file(&self) -> bool {
        !self.used.swap(false, Ordering::Relaxed) && self.file.swap(None).is_some()
    }

    /// Closes the file. The next use opens it again.
    pub(crate) fn close_file(&self) {
        self.file.store(None);
    }

    /// Opens all files of the segment, so that readers can continue after they are renamed or deleted.
    pub(crate) fn open_all(&self) -> Result<(), LogError> {
        self.file()?;
        self.offset_index.map.entries()?;
        self.time_index.map.entries()?;
        self.txn_index.open()
    }

    pub(crate) fn largest_timestamp(&self) -> TimestampOffset {
        *self.largest_timestamp.lock()
    }

    pub(crate) fn set_largest_timestamp(&self, largest: TimestampOffset) {
        *self.largest_timestamp.lock() = largest;
    }

    /// Accounts for a batch written at `position`, and adds index entries if `index_due`.
    ///
    /// The offset entry has the batch's own last offset. The time entry has the largest timestamp so far.
    pub(crate) fn add_batch(&self, header: &BatchHeader, last_offset: i64, position: u64, index_due: bool) {
        let largest = {
            let mut largest = self.largest_timestamp.lock();
            if header.max_timestamp > largest.timestamp {
                *largest = TimestampOffset { timestamp: header.max_timestamp, offset: last_offset };
            }
            *largest
        };
        if index_due {
            self.offset_index.push(last_offset, position);
            self.time_index.maybe_push(largest);
        }
    }

    /// Sets the size of its batches, for readers of a sealed segment (and `size_bytes`).
    pub(crate) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Seals the segment: adds the last time entry, truncates the index files to their entries, frees blocks beyond
    /// the end.
    pub(crate) fn seal(&self) -> Result<(), LogError> {
        self.time_index.finish(self.largest_timestamp())?;
        self.trim()
    }

    /// Seals the segment, and syncs the indexes before their files are truncated to the final size.
    pub(crate) fn seal_durably(&self) -> Result<(), LogError> {
        self.time_index.finish(self.largest_timestamp())?;
        self.offset_index.map.sync()?;
        self.time_index.map.sync()?;
        self.trim()
    }

    /// Returns whether the index files are on the device and complete.
    pub(crate) fn is_completed(&self) -> bool {
        self.offset_index.map.is_completed()
            && self.time_index.map.is_completed()
            && self.largest_timestamp().timestamp <= self.time_index.last().timestamp
    }

    fn trim(&self) -> Result<(), LogError> {
        self.offset_index.map.trim()?;
        self.time_index.map.trim()?;
        let path = self.path();
        file::release_beyond_end(&*self.file()?, self.size()).map_err(LogError::io(&path))
    }

    /// Returns the first batch whose last offset is at least `offset`, within the first `limit` bytes, which must end
    /// with a complete batch.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are no batch, `Io` when the file cannot be read.
    pub(crate) fn find_batch(&self, offset: i64, limit: u64) -> Result<Option<FoundBatch>, LogError> {
        let found = self.locate(offset, limit, false)?;
        Ok(found.and_then(|(position, header)| header.map(|header| FoundBatch { position, header })))
    }

    /// Returns the position of the batch of [`Self::find_batch`], and its size if the search has read its header.
    /// Reads as few headers as possible, because each read costs a system call and cache misses.
    pub(crate) fn find_position(&self, offset: i64, limit: u64) -> Result<Option<(u64, Option<usize>)>, LogError> {
        if offset <= self.base_offset && limit >= HEADER_LEN as u64 {
            // Position 0 is the first batch, wherever it ends.
            return Ok(Some((0, None)));
        }
        let relative = u32::try_from(offset - self.base_offset).ok();
        if let Some(found) = relative.and_then(|relative| self.recent.find(relative, limit)) {
            return Ok(Some((u64::from(found.position), (found.size > 0).then_some(found.size as usize))));
        }
        let Some((position, header)) = self.locate(offset, limit, true)? else { return Ok(None) };
        if let (Some(relative), Ok(position)) = (relative, u32::try_from(position)) {
            self.recent.remember(self.place(relative, position, header.as_ref()));
        }
        Ok(Some((position, header.map(|header| header.size()))))
    }

    /// Returns the cache entry of the batch at `position`, which was found for an offset.
    fn place(&self, relative: u32, position: u32, header: Option<&BatchHeader>) -> FoundPlace {
        let mut place = FoundPlace { first: relative, last: relative, position, size: 0 };
        if let Some(header) = header {
            let relative_of = |offset: i64| u32::try_from(offset - self.base_offset).ok();
            place.first = relative_of(header.base_offset).map_or(relative, |first| first.min(relative));
            place.last = relative_of(header.last_offset()).map_or(relative, |last| last.max(relative));
            place.size = header.size() as u32;
        }
        place
    }

    /// Returns the size of the batch at `position`.
    pub(crate) fn size_at(&self, position: u64, limit: u64) -> Result<usize, LogError> {
        let file = self.file()?;
        let mut scan = HeaderScan::new(&file, limit);
        match scan.header_at(position).map_err(|error| self.read_error(error))? {
            Some(header) => Ok(header.size()),
            None => Err(self.no_batch(position, limit)),
        }
    }

    fn no_batch(&self, position: u64, limit: u64) -> LogError {
        LogError::Corrupt { path: self.path(), reason: format!("no batch at position {position} of {limit}") }
    }

    /// Finds the batch. With `unread` the header may be `None`, if the header of the batch before it was sufficient.
    fn locate(&self, offset: i64, limit: u64, unread: bool) -> Result<Option<(u64, Option<BatchHeader>)>, LogError> {
        let file = self.file()?;
        let mut scan = HeaderScan::new(&file, limit);
        let read = |error| self.read_error(error);
        let around = self.offset_index.around(offset)?;
        // An index is a hint: a wrong entry costs a scan of the segment, never a wrong result.
        let trusted = |header: &BatchHeader| (self.base_offset..=offset).contains(&header.base_offset);
        if let Some(position) = around.likely.filter(|position| *position < limit)
            && let Some(header) = scan.header_at(position).map_err(read)?.filter(trusted)
            && header.last_offset() >= offset
        {
            return Ok(Some((position, Some(header))));
        }
        let mut position = around.floor;
        let mut next = scan.header_at(position).map_err(read)?;
        if position > 0 && !next.as_ref().is_some_and(trusted) {
            position = 0;
            next = scan.header_at(position).map_err(read)?;
        }
        while let Some(header) = next {
            if header.last_offset() >= offset {
                return Ok(Some((position, Some(header))));
            }
            position += header.size() as u64;
            // Offsets ascend from batch to batch: the next batch cannot end below `offset`.
            if unread && header.next_offset() == offset && position + HEADER_LEN as u64 <= limit {
                return Ok(Some((position, None)));
            }
            next = scan.header_at(position).map_err(read)?;
        }
        if position < limit {
            // A continuation with the next segment would hide records from a consumer.
            return Err(self.no_batch(position, limit));
        }
        Ok(None)
    }

    pub(crate) fn read_error(&self, error: io::Error) -> LogError {
        LogError::io(self.path())(error)
    }

    /// Deletes the segment's files. Readers with its open file can continue.
    pub(crate) fn remove(&self) -> Result<(), LogError> {
        for suffix in FILES {
            remove_if_present(&self.home.segment_file(self.base_offset, suffix))?;
        }
        Ok(())
    }

    /// Marks the segment as removed from the log, so that a thread does not take a missing file for damage.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Renames the segment's existing files to `.deleted`, and returns the new paths.
    ///
    /// The log file is renamed first: after a crash, indexes without a segment are left, which the next opening
    /// removes.
    pub(crate) fn mark_deleted(&self) -> Result<Vec<PathBuf>, LogError> {
        let mut marked = Vec::with_capacity(FILES.len());
        for suffix in FILES {
            let path = self.home.segment_file(self.base_offset, suffix);
            let new = self.home.segment_file(self.base_offset, &format!("{suffix}{DELETED_SUFFIX}"));
            match file::rename(&path, &new) {
                Ok(()) => marked.push(new),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(LogError::io(&path)(error)),
            }
        }
        Ok(marked)
    }
}
