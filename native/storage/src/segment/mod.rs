//! One segment: a file of batches and its indexes, and how an offset is found in it.
//!
//! Owns the files of a base offset. It must not know the log's end (a reader brings the bound it may read up to) or
//! its neighbours. The writer's side (indexing, sealing) is called under the log's mutex; the readers' side takes none.

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

/// See the module. What a look-up needs comes first and fills two cache lines: of many segments each line is a wait.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Segment {
    recent: RecentBatches,
    base_offset: i64,
    /// Bytes of whole batches. Of the active segment readers use the published end of the log instead.
    size: AtomicU64,
    /// Opened on first use, and again after [`Self::close_file`]: a log holds one descriptor while it is appended to and
    /// nobody reads its past, and none while it is idle.
    file: ArcSwapOption<File>,
    pub(crate) offset_index: OffsetIndex,
    home: Arc<LogHome>,
    pub(crate) time_index: TimeIndex,
    pub(crate) txn_index: TxnIndex,
    /// Largest timestamp and its batch's last offset; not ahead of the batches, may be ahead of the time index.
    largest_timestamp: Mutex<TimestampOffset>,
    /// Out of use: its files are renamed, and soon gone.
    retired: AtomicBool,
    /// The file was used since it was last asked whether it is idle.
    used: AtomicBool,
}

/// Every file that a segment may have, the records first.
const FILES: [&str; 5] = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX];

/// A batch found in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundBatch {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

/// What the index files of a segment hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntries {
    pub(crate) offsets: Held<2>,
    pub(crate) times: Held<3>,
    /// Number of aborted transactions.
    pub(crate) aborted: u64,
}

impl IndexEntries {
    /// Nothing, and perhaps no files.
    pub(crate) const NOTHING: Self = Self { offsets: Held::NOTHING, times: Held::NOTHING, aborted: 0 };
}

impl Segment {
    /// A segment whose `.log` exists with `size` bytes of batches. `max_index_bytes` is 0 when it is only read.
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

    /// Makes an empty segment; leftovers of the same name are replaced.
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

    /// The segment with the file of its records, which is open already.
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

    /// The segment's file.
    pub(crate) fn file(&self) -> Result<Arc<File>, LogError> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if let Some(file) = self.file.load_full() {
            return Ok(file);
        }
        let path = self.path();
        let file = Arc::new(file::open_untimed(&path).map_err(LogError::io(&path))?);
        // Of two that open it at the same time each goes on with its own; one of them stays.
        self.file.store(Some(Arc::clone(&file)));
        Ok(file)
    }

    /// Waits until the records are on the device. That is no use of the file: one that is closed is opened for the moment,
    /// so that a sync of many segments, done again and again for want of descriptors, keeps none of them from others.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        let path = self.path();
        let synced = match self.file.load_full() {
            Some(file) => file::sync_data(&file),
            None => file::open_untimed(&path).and_then(|file| file::sync_data(&file)),
        };
        synced.map_err(LogError::io(&path))
    }

    /// The segment without its file and its mappings, as an opening that trusts it makes it. Nobody else has it yet.
    pub(crate) fn at_rest(self, max_index_bytes: u32) -> Self {
        self.close_file();
        if !self.offset_index.map.is_mapped() && !self.time_index.map.is_mapped() {
            return self;
        }
        let (offsets, times) = (&self.offset_index.map, &self.time_index.map);
        let entries = IndexEntries {
            offsets: Held { settled: offsets.is_settled(), ..offsets.held() },
            times: Held { settled: times.is_settled(), ..times.held() },
            aborted: self.txn_index.len(),
        };
        let resting = Self::existing(Arc::clone(&self.home), self.base_offset, self.size(), entries, max_index_bytes);
        resting.set_largest_timestamp(self.largest_timestamp());
        Self { txn_index: self.txn_index, ..resting }
    }

    /// Whether the file is open.
    pub(crate) fn is_file_open(&self) -> bool {
        self.file.load().is_some()
    }

    /// Closes the file, unless it was used since this was last asked; whether it did. Who reads it at this moment goes on
    /// with it; the next user opens it again, by its name. So the segment is in use and its files are not renamed meanwhile:
    /// the caller holds the log's writer.
    pub(crate) fn close_idle_file(&self) -> bool {
        !self.used.swap(false, Ordering::Relaxed) && self.file.swap(None).is_some()
    }

    /// Closes the file; the next user opens it again.
    pub(crate) fn close_file(&self) {
        self.file.store(None);
    }

    /// Opens every file of the segment: once they are renamed or removed, holders of the segment go on with them.
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

    /// Accounts for a batch that lies at `position` now, and indexes it when `index_due`.
    ///
    /// The offset entry carries the batch's own last offset; the time entry what is the largest timestamp so far.
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

    /// Sets how far its batches reach, for readers of a sealed segment (and `size_bytes`).
    pub(crate) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Closes the indexes: last time entry, files cut to their entries, blocks beyond the end given back.
    pub(crate) fn seal(&self) -> Result<(), LogError> {
        self.time_index.finish(self.largest_timestamp())?;
        self.trim()
    }

    /// Seals, with the indexes on the device before their length says that they are whole.
    pub(crate) fn seal_durably(&self) -> Result<(), LogError> {
        self.time_index.finish(self.largest_timestamp())?;
        self.offset_index.map.sync()?;
        self.time_index.map.sync()?;
        self.trim()
    }

    /// Whether the index files are on the device and end with all the entries that the segment is to have.
    pub(crate) fn is_settled(&self) -> bool {
        self.offset_index.map.is_settled()
            && self.time_index.map.is_settled()
            && self.largest_timestamp().timestamp <= self.time_index.last().timestamp
    }

    fn trim(&self) -> Result<(), LogError> {
        self.offset_index.map.trim()?;
        self.time_index.map.trim()?;
        let path = self.path();
        file::release_beyond_end(&*self.file()?, self.size()).map_err(LogError::io(&path))
    }

    /// The first batch whose last offset is `offset` or more, among the first `limit` bytes, which are whole batches.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are no batch, `Io` when they cannot be read.
    pub(crate) fn find_batch(&self, offset: i64, limit: u64) -> Result<Option<FoundBatch>, LogError> {
        let found = self.locate(offset, limit, false)?;
        Ok(found.and_then(|(position, header)| header.map(|header| FoundBatch { position, header })))
    }

    /// Where that batch starts, and its size where finding it meant reading its header: as few reads as can be, as each
    /// costs a system call and cold memory.
    pub(crate) fn find_position(&self, offset: i64, limit: u64) -> Result<Option<(u64, Option<usize>)>, LogError> {
        if offset <= self.base_offset && limit >= HEADER_LEN as u64 {
            // Nothing comes before the first batch, wherever it ends.
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

    /// What is known of the batch at `position`, which was found for an offset.
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

    /// The size of the batch that starts at `position`.
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

    /// The batch; with `unread` its header may be missing, where the one before it is enough.
    fn locate(&self, offset: i64, limit: u64, unread: bool) -> Result<Option<(u64, Option<BatchHeader>)>, LogError> {
        let file = self.file()?;
        let mut scan = HeaderScan::new(&file, limit);
        let read = |error| self.read_error(error);
        let around = self.offset_index.around(offset)?;
        // An index is a hint: one that leads astray costs a scan of the segment, never a wrong answer.
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
            // Offsets rise from batch to batch: whatever follows this one does not end below the offset after it.
            if unread && header.next_offset() == offset && position + HEADER_LEN as u64 <= limit {
                return Ok(Some((position, None)));
            }
            next = scan.header_at(position).map_err(read)?;
        }
        if position < limit {
            // Going on with the next segment would hide records from a consumer.
            return Err(self.no_batch(position, limit));
        }
        Ok(None)
    }

    pub(crate) fn read_error(&self, error: io::Error) -> LogError {
        LogError::io(self.path())(error)
    }

    /// Removes the segment's files; readers that hold its file go on.
    pub(crate) fn remove(&self) -> Result<(), LogError> {
        for suffix in FILES {
            remove_if_present(&self.home.segment_file(self.base_offset, suffix))?;
        }
        Ok(())
    }

    /// Says that the segment is out of use: a thread that finds no file of it shall not take that for damage.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Puts `.deleted` behind the names of the segment's files, as far as they exist, and returns the new names.
    ///
    /// The records go first: without them a crash leaves indexes that have no segment, which an opening removes.
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
