//! Compares the entries of offset index and time index with the batches.

use std::io;

use super::Walk;
use super::entries::{Entries, word};
use super::findings::FindingKind;
use crate::directory::log_dir::{OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name};
use pybroker_record::BatchHeader;

const OFFSET_ENTRY: usize = 8;
const TIME_ENTRY: usize = 12;

/// One index file. After the first fault no more faults are reported.
struct Index<const SIZE: usize> {
    name: String,
    entries: Option<Entries<SIZE>>,
    /// Whether the next opening rebuilds the index.
    repaired: bool,
}

/// Compares the indexes of one segment with its batches.
pub(super) struct Indexes {
    base: i64,
    size: u64,
    offsets: Index<OFFSET_ENTRY>,
    times: Index<TIME_ENTRY>,
    /// The offset after the previous batch.
    previous: i64,
    /// The position after the previous batch.
    end_position: u64,
    /// Whether a crash may have left preallocated space after the entries.
    padded: bool,
    /// The largest timestamp so far.
    largest: i64,
    /// The offset of the last matching entry.
    indexed: i64,
}

impl<const SIZE: usize> Index<SIZE> {
    fn open(walk: &mut Walk<'_>, base: i64, suffix: &str, size: u64, repaired: bool) -> Self {
        let name = segment_file_name(base, suffix);
        let opened = Entries::open(&walk.log.directory.join(&name));
        let mut index = Self { name, entries: None, repaired };
        match opened {
            Ok(entries) if entries.torn > 0 => {
                let text = format!("{} bytes follow the last whole entry", entries.torn);
                index.fault(walk, text);
            }
            Ok(entries) => index.entries = Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if size > 0 && !repaired {
                    index.fault(walk, "is missing".to_owned());
                }
            }
            Err(error) => walk.findings.unreadable(&index.name, FindingKind::Index, &error),
        }
        index
    }

    fn fault(&mut self, walk: &mut Walk<'_>, mut text: String) {
        if self.repaired {
            text.push_str("; the next start makes it anew");
        }
        self.entries = None;
        walk.findings.add_unless_repaired(&self.name, FindingKind::Index, text, self.repaired);
    }

    fn peek(&mut self, walk: &mut Walk<'_>) -> Option<[u8; SIZE]> {
        match self.entries.as_mut()?.peek() {
            Ok(entry) => entry,
            Err(error) => {
                self.entries = None;
                walk.findings.unreadable(&self.name, FindingKind::Index, &error);
                None
            }
        }
    }

    fn advance(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.advance();
        }
    }

    fn number(&self) -> u64 {
        self.entries.as_ref().map_or(0, Entries::number)
    }

    fn count(&self) -> u64 {
        self.entries.as_ref().map_or(0, Entries::count)
    }
}

impl Indexes {
    pub(super) fn open(walk: &mut Walk<'_>, base: i64, size: u64, rescanned: bool, is_last: bool) -> Self {
        let offsets = Index::open(walk, base, OFFSET_INDEX_SUFFIX, size, rescanned);
        let times: Index<TIME_ENTRY> = Index::open(walk, base, TIME_INDEX_SUFFIX, size, rescanned);
        let padded = rescanned || is_last && !walk.log.clean_shutdown;
        let mut indexes =
            Self { base, size, offsets, times, previous: base, end_position: 0, padded, largest: -1, indexed: -1 };
        let (offset_entries, time_entries) = (indexes.offsets.count(), indexes.times.count());
        if !padded && indexes.offsets.entries.is_some() && time_entries > offset_entries + 1 {
            let text =
                format!("has {offset_entries} entries, and the time index has {time_entries}: entries are missing");
            indexes.offsets.fault(walk, text);
        }
        indexes
    }

    /// Compares the entries that point to this batch with the batch.
    pub(super) fn check_batch(&mut self, walk: &mut Walk<'_>, header: &BatchHeader, position: u64) {
        while let Some(entry) = self.offsets.peek(walk) {
            let (relative, at) = (word(&entry), u64::from(word(&entry[4..])));
            if at > position || self.is_padding(&entry) {
                break;
            }
            let (offset, last) = (self.base + i64::from(relative), header.last_offset());
            // Kafka before 4.0 writes the last offset of all batches that were appended together.
            if at == position && offset >= last && offset > self.indexed {
                self.indexed = offset;
                self.offsets.advance();
                continue;
            }
            if at >= self.end_position && at < position {
                // The entry is about a damaged batch, which is reported already.
                self.offsets.advance();
                continue;
            }
            let number = self.offsets.number();
            let text = if at == position {
                format!("entry {number} has offset {offset} at byte {at}, where a batch ends with offset {last}")
            } else {
                format!("entry {number} has offset {offset} at byte {at}, where no batch begins")
            };
            self.offsets.fault(walk, text);
        }
        while let Some(entry) = self.times.peek(walk) {
            let (timestamp, offset) = (timestamp_of(&entry), self.base + i64::from(word(&entry[8..])));
            if offset > header.last_offset() || self.is_padding(&entry) {
                break;
            }
            if offset >= self.previous && timestamp == header.max_timestamp && timestamp > self.largest {
                self.times.advance();
                continue;
            }
            if offset >= self.previous && offset < header.base_offset {
                self.times.advance();
                continue;
            }
            let number = self.times.number();
            let text = format!("entry {number} has timestamp {timestamp} at offset {offset}, unlike its batch");
            self.times.fault(walk, text);
        }
        self.largest = self.largest.max(header.max_timestamp);
        self.previous = header.next_offset();
        self.end_position = position + header.size() as u64;
    }

    /// Returns whether the entry is preallocated space after the last entry.
    fn is_padding(&self, entry: &[u8]) -> bool {
        self.padded && entry.iter().all(|&byte| byte == 0)
    }

    /// Reports entries after the last batch, and missing entries. Reports none of them if the segment has `broken`
    /// batches: the entries may point to these batches.
    pub(super) fn finish(mut self, walk: &mut Walk<'_>, broken: bool) {
        if let Some(entry) = self.offsets.peek(walk)
            && !broken
            && !self.is_padding(&entry)
        {
            let number = self.offsets.number();
            self.offsets
                .fault(walk, format!("entry {number} points to byte {}, where no batch begins", word(&entry[4..])));
        }
        if self.indexed >= self.previous && self.offsets.entries.is_some() && !broken {
            let text = format!("has offset {}, and the segment ends before {}", self.indexed, self.previous);
            self.offsets.fault(walk, text);
        }
        if let Some(entry) = self.times.peek(walk)
            && !broken
            && !self.is_padding(&entry)
        {
            let (number, offset) = (self.times.number(), self.base + i64::from(word(&entry[8..])));
            self.times.fault(walk, format!("entry {number} points to offset {offset}, which is not in the segment"));
        }
        // A clean shutdown and a roll leave the largest timestamp as the last entry.
        let needs_entry = !self.padded && !broken && self.size > 0 && self.largest >= 0;
        if self.times.entries.is_some() && needs_entry && self.times.number() == 0 {
            self.times.fault(walk, "has no entry, and the segment has timestamps".to_owned());
        }
    }
}

fn timestamp_of(entry: &[u8; TIME_ENTRY]) -> i64 {
    i64::from(word(entry) as i32) << 32 | i64::from(word(&entry[4..]))
}
