//! The `.cleaned` files of a pass: the retained batches, and their indexes.
//!
//! Owns the writing. Index entries are collected in memory (at most a 128th of a segment) and written when the
//! segment is complete. Readers do not see the files before [`super::swap`].

use std::fs::File;
use std::sync::Arc;
use std::time::SystemTime;

use super::pass::{CleanError, Pass};
use super::{CLEANED_SUFFIX, OUTPUT_SUFFIXES};
use crate::LogError;
use crate::directory::log_dir::remove_if_present;
use crate::directory::log_dir::{LOG_SUFFIX, LogHome, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX};
use crate::index::index_map::Held;
use crate::index::offset_index::OffsetIndex;
use crate::index::time_index::{TimeIndex, TimestampOffset};
use crate::index::txn_index::{AbortedTxn, ENTRY_BYTES};
use crate::segment::IndexEntries;
use pybroker_record::BatchHeader;
use pybroker_sys::file;

/// A segment that is being written.
pub(crate) struct CleanedSegment {
    home: Arc<LogHome>,
    base_offset: i64,
    file: File,
    /// Bytes in the file.
    written: u64,
    /// Complete batches that wait to be written. The caller appends them, and calls [`Self::add`] for each.
    pub(crate) pending: Vec<u8>,
    position: u64,
    bytes_since_index: u64,
    offsets: Vec<u8>,
    times: Vec<u8>,
    aborted: Vec<u8>,
    largest: TimestampOffset,
    last_time: i64,
}

/// A segment whose files are complete and on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    pub(crate) entries: IndexEntries,
    pub(crate) largest: TimestampOffset,
}

impl CleanedSegment {
    pub(crate) fn create(home: &Arc<LogHome>, base_offset: i64, pending: Vec<u8>) -> Result<Self, LogError> {
        remove_leftovers(home, base_offset)?;
        let path = cleaned_file(home, base_offset, LOG_SUFFIX);
        let file = file::create(&path).map_err(LogError::io(&path))?;
        Ok(Self {
            home: Arc::clone(home),
            base_offset,
            file,
            written: 0,
            pending,
            position: 0,
            bytes_since_index: 0,
            offsets: Vec::new(),
            times: Vec::new(),
            aborted: Vec::new(),
            largest: TimestampOffset { timestamp: -1, offset: base_offset },
            last_time: -1,
        })
    }

    /// Accounts for a batch that the caller has appended to `pending`, and adds an index entry if one is due.
    pub(crate) fn add(&mut self, pass: &Pass<'_>, header: &BatchHeader) -> Result<(), CleanError> {
        if header.max_timestamp > self.largest.timestamp {
            self.largest = TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset() };
        }
        let capacity = pass.index_bytes as usize;
        if self.bytes_since_index > pass.index_interval
            && self.offsets.len() + OffsetIndex::ENTRY_BYTES as usize <= capacity
        {
            self.bytes_since_index = 0;
            let relative = (header.last_offset() - self.base_offset) as u32;
            self.offsets.extend_from_slice(&relative.to_be_bytes());
            self.offsets.extend_from_slice(&(self.position as u32).to_be_bytes());
            self.add_time(capacity);
        }
        self.position += header.size() as u64;
        self.bytes_since_index += header.size() as u64;
        if self.position > i32::MAX as u64 || header.last_offset() - self.base_offset > i64::from(i32::MAX) {
            let path = cleaned_file(&self.home, self.base_offset, LOG_SUFFIX);
            let reason = "what is left of these segments does not fit one segment".to_owned();
            return Err(LogError::Corrupt { path, reason }.into());
        }
        if self.pending.len() >= pass.write_bytes {
            self.write(pass)?;
        }
        Ok(())
    }

    fn add_time(&mut self, capacity: usize) {
        if self.largest.timestamp > self.last_time && self.times.len() + TimeIndex::ENTRY_BYTES as usize <= capacity {
            self.last_time = self.largest.timestamp;
            self.times.extend_from_slice(&self.largest.timestamp.to_be_bytes());
            self.times.extend_from_slice(&((self.largest.offset - self.base_offset) as u32).to_be_bytes());
        }
    }

    /// Adds an aborted transaction whose marker is in this segment.
    pub(crate) fn add_aborted(&mut self, aborted: &AbortedTxn) {
        self.aborted.extend_from_slice(&aborted.encode());
    }

    fn write(&mut self, pass: &Pass<'_>) -> Result<(), CleanError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let path = cleaned_file(&self.home, self.base_offset, LOG_SUFFIX);
        file::write_all_at(&self.file, &self.pending, self.written).map_err(LogError::io(&path))?;
        self.written += self.pending.len() as u64;
        let bytes = self.pending.len();
        self.pending.clear();
        pass.count(bytes)
    }

    /// Writes the remaining batches and the indexes, and waits until they are on the device. Sets the files'
    /// modification time to `modified`, so that a segment without timestamps is as old as its source segments. Also
    /// returns the buffer, for reuse.
    pub(crate) fn finish(mut self, pass: &Pass<'_>, modified: SystemTime) -> Result<(Finished, Vec<u8>), CleanError> {
        self.write(pass)?;
        // Added even if the index is full: the largest timestamp of a sealed segment is read from the last entry.
        self.add_time(usize::MAX);
        for (suffix, bytes) in
            [(OFFSET_INDEX_SUFFIX, &self.offsets), (TIME_INDEX_SUFFIX, &self.times), (TXN_INDEX_SUFFIX, &self.aborted)]
        {
            if suffix == TXN_INDEX_SUFFIX && bytes.is_empty() {
                continue;
            }
            let path = cleaned_file(&self.home, self.base_offset, suffix);
            let written = file::create(&path).and_then(|made| {
                file::write_all_at(&made, bytes, 0)?;
                file::sync_data(&made)
            });
            written.map_err(LogError::io(&path))?;
        }
        let path = cleaned_file(&self.home, self.base_offset, LOG_SUFFIX);
        let synced = self.file.set_modified(modified).and_then(|()| file::sync_data(&self.file));
        synced.map_err(LogError::io(&path))?;
        let entries = IndexEntries {
            offsets: held(&self.offsets),
            times: held(&self.times),
            aborted: self.aborted.len() as u64 / ENTRY_BYTES as u64,
        };
        let finished = Finished { base_offset: self.base_offset, size: self.written, entries, largest: self.largest };
        Ok((finished, self.pending))
    }
}

/// Returns the state of an index file with these bytes that is on the device.
fn held<const WORDS: usize>(bytes: &[u8]) -> Held<WORDS> {
    let entry = WORDS * 4;
    Held::completed((bytes.len() / entry) as u32, bytes.rchunks_exact(entry).next().unwrap_or_default())
}

/// Returns the path of a file that a pass writes.
pub(crate) fn cleaned_file(home: &LogHome, base_offset: i64, suffix: &str) -> std::path::PathBuf {
    home.segment_file(base_offset, &format!("{suffix}{CLEANED_SUFFIX}"))
}

/// Removes the files of aborted passes. Otherwise, after a crash, a `.cleaned` file beside a complete `.swap` file
/// would be taken for a part of the same segment.
pub(crate) fn remove_all_leftovers(directory: &std::path::Path) -> Result<(), LogError> {
    for entry in file::list(directory).map_err(LogError::io(directory))? {
        let entry = entry.map_err(LogError::io(directory))?;
        if entry.file_name().to_str().is_some_and(|name| name.ends_with(CLEANED_SUFFIX)) {
            remove_if_present(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes the files that an aborted pass has written for a segment.
pub(crate) fn remove_leftovers(home: &LogHome, base_offset: i64) -> Result<(), LogError> {
    OUTPUT_SUFFIXES.iter().try_for_each(|suffix| remove_if_present(&cleaned_file(home, base_offset, suffix)))
}
