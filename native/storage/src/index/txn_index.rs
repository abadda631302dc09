//! The index of aborted transactions of a segment, whose records a `read_committed` reader skips.
//!
//! ```text
//! version int16 = 0 | producer_id int64 | first_offset int64 | last_offset int64 | last_stable_offset int64
//! ```
//! An entry is in the segment with the abort marker. Last offsets (those of the markers) ascend, so a reader starts
//! with a binary search. An entry's last stable offset shows where the reader may stop. The file is created with the
//! first entry. One writer appends (under the log's mutex) while any number of readers search.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::LogError;
use crate::directory::log_dir::{LogHome, TXN_INDEX_SUFFIX};
use pybroker_record::Offset;
use pybroker_sys::file;

const VERSION: i16 = 0;
/// Bytes of one entry.
pub const ENTRY_BYTES: usize = 34;

/// An aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTxn {
    /// The producer that wrote the records.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// The last stable offset after the marker: no transaction that began below it was still open.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// Encodes the entry.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        let fields = [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset];
        for (at, field) in bytes[2..].chunks_exact_mut(8).zip(fields) {
            at.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// The version number, if it is unknown.
    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Result<Self, i16> {
        let version = i16::from_be_bytes([bytes[0], bytes[1]]);
        if version > VERSION {
            return Err(version);
        }
        let field = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            i64::from_be_bytes(field)
        };
        Ok(Self {
            producer_id: field(2),
            first_offset: field(10),
            last_offset: field(18),
            last_stable_offset: field(26),
        })
    }
}

/// The transaction index; see the module.
#[derive(Debug)]
pub(crate) struct TxnIndex {
    home: Arc<LogHome>,
    base_offset: i64,
    /// Number of entries visible to readers: stored (Release) after the entry's bytes.
    entries: AtomicU64,
    /// Opened on first use. It stays readable after the segment is removed.
    file: OnceLock<File>,
    /// Whether entries were added or removed since the last sync.
    dirty: AtomicBool,
}

impl TxnIndex {
    /// Creates an index for a file with `entries` entries. Without entries the file may be absent.
    pub(crate) fn new(home: Arc<LogHome>, base_offset: i64, entries: u64) -> Self {
        let (entries, dirty) = (AtomicU64::new(entries), AtomicBool::new(false));
        Self { home, base_offset, entries, file: OnceLock::new(), dirty }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.segment_file(self.base_offset, TXN_INDEX_SUFFIX)
    }

    pub(crate) fn len(&self) -> u64 {
        self.entries.load(Ordering::Acquire)
    }

    /// Adds entries. Their last offsets must ascend and be larger than those in the index.
    pub(crate) fn append(&self, aborted: &[AbortedTxn]) -> Result<(), LogError> {
        if aborted.is_empty() {
            return Ok(());
        }
        let entries = self.len();
        let bytes: Vec<u8> = aborted.iter().flat_map(AbortedTxn::encode).collect();
        let position = entries * ENTRY_BYTES as u64;
        self.dirty.store(true, Ordering::Release);
        file::write_all_at(self.file()?, &bytes, position).map_err(LogError::io(self.path()))?;
        self.entries.store(entries + aborted.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Collects the aborted transactions in a range of offsets. Returns true when later segments have no entries for
    /// the range.
    pub(crate) fn collect(&self, offsets: &Range<Offset>, into: &mut Vec<AbortedTxn>) -> Result<bool, LogError> {
        let entries = self.len();
        if entries == 0 {
            return Ok(false);
        }
        let first = self.partition_point(entries, |entry| entry.last_offset < offsets.start.0)?;
        let mut at = first;
        while at < entries {
            for entry in self.read(at, (entries - at).min(READ_AT_ONCE))? {
                if entry.first_offset < offsets.end.0 {
                    into.push(entry);
                }
                if entry.last_stable_offset >= offsets.end.0 {
                    return Ok(true);
                }
                at += 1;
            }
        }
        Ok(false)
    }

    /// Returns the number of entries whose marker lies below `offset`.
    pub(crate) fn entries_below(&self, offset: i64) -> Result<u64, LogError> {
        self.partition_point(self.len(), |entry| entry.last_offset < offset)
    }

    /// Truncates the file to its entries: another instance may have written more.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        let path = self.path();
        let cut = file::open_writable(&path).and_then(|cut| {
            self.dirty.store(true, Ordering::Release);
            file::set_len(&cut, self.len() * ENTRY_BYTES as u64)
        });
        match cut {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.len() == 0 => Ok(()),
            other => other.map_err(LogError::io(&path)),
        }
    }

    /// Opens the file, and creates it when absent, so that [`Self::append`] needs no file descriptor.
    pub(crate) fn prepare(&self) -> Result<(), LogError> {
        self.file().map(drop)
    }

    /// Opens the file if it exists, so that readers can use it after it is renamed or removed.
    pub(crate) fn open(&self) -> Result<(), LogError> {
        if self.len() > 0 { self.file().map(drop) } else { Ok(()) }
    }

    /// Waits until the entries are on the device.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        if self.len() == 0 || !self.dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        let file = self.file()?;
        if self.dirty.swap(false, Ordering::AcqRel) {
            file::sync_data(file).map_err(LogError::io(self.path()))?;
        }
        Ok(())
    }

    fn file(&self) -> Result<&File, LogError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let path = self.path();
        // If the file of an index with entries is missing, no new file may replace it silently.
        let file = if self.len() == 0 { file::open_or_create(&path) } else { file::open_writable(&path) };
        let file = file.map_err(LogError::io(&path))?;
        Ok(self.file.get_or_init(|| file))
    }

    fn read(&self, at: u64, count: u64) -> Result<Vec<AbortedTxn>, LogError> {
        let mut bytes = vec![0; count as usize * ENTRY_BYTES];
        self.file()?.read_exact_at(&mut bytes, at * ENTRY_BYTES as u64).map_err(LogError::io(self.path()))?;
        decode(&bytes).map_err(|reason| LogError::Corrupt { path: self.path(), reason })
    }

    fn partition_point(&self, entries: u64, holds: impl Fn(&AbortedTxn) -> bool) -> Result<u64, LogError> {
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.read(middle, 1)?;
            if entry.first().is_some_and(&holds) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

/// Number of entries to read at once.
const READ_AT_ONCE: u64 = 128;

/// Reads the entries of an index file.
///
/// # Errors
/// The problem, as text: a torn or unknown entry, or one out of order.
pub fn decode(bytes: &[u8]) -> Result<Vec<AbortedTxn>, String> {
    let (chunks, torn) = bytes.as_chunks::<ENTRY_BYTES>();
    if !torn.is_empty() {
        return Err(format!("{} bytes follow the last whole entry", torn.len()));
    }
    let mut entries: Vec<AbortedTxn> = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let entry = AbortedTxn::decode(chunk).map_err(|version| format!("an entry of version {version}"))?;
        if entry.first_offset > entry.last_offset
            || entries.last().is_some_and(|last| last.last_offset >= entry.last_offset)
        {
            return Err(format!("the entry of the marker at offset {} is out of order", entry.last_offset));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the number of entries in the index file of a segment, 0 without a file; `None` when the file is damaged.
///
/// # Errors
/// `Exhausted` when the file cannot be read for lack of resources. The file may be fine.
pub(crate) fn check_file(directory: &Path, base_offset: i64) -> Result<Option<u64>, LogError> {
    let path = directory.join(crate::directory::log_dir::segment_file_name(base_offset, TXN_INDEX_SUFFIX));
    let bytes = match file::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if file::is_exhaustion(&error) => return Err(LogError::io(&path)(error)),
        Err(error) => return Ok((error.kind() == io::ErrorKind::NotFound).then_some(0)),
    };
    let Ok(entries) = decode(&bytes) else { return Ok(None) };
    Ok(entries.iter().all(|entry| entry.last_offset >= base_offset).then_some(entries.len() as u64))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn aborted(producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64) -> AbortedTxn {
        AbortedTxn { producer_id, first_offset, last_offset, last_stable_offset }
    }

    fn index(dir: &tempfile::TempDir) -> TxnIndex {
        TxnIndex::new(LogHome::new(dir.path()), 0, 0)
    }

    #[test]
    fn an_entry_is_kafkas_34_bytes() {
        let entry = aborted(4000, 5, 9, 10);
        let bytes = entry.encode();
        let by_hand = [&[0u8, 0][..], &4000i64.to_be_bytes(), &5i64.to_be_bytes(), &9i64.to_be_bytes(), &[0; 7], &[10]];
        assert_eq!(bytes.as_slice(), by_hand.concat());
        assert_eq!(AbortedTxn::decode(&bytes), Ok(entry));
        let mut later = bytes;
        later[1] = 1;
        assert_eq!(AbortedTxn::decode(&later), Err(1));
    }

    #[test]
    fn there_is_no_file_before_the_first_entry() {
        let dir = tempfile::tempdir().unwrap();
        let index = index(&dir);
        index.append(&[]).unwrap();
        index.sync().unwrap();
        index.trim().unwrap();
        assert!(!index.collect(&(Offset(0)..Offset(100)), &mut Vec::new()).unwrap());
        assert!(!index.path().exists());
    }

    #[test]
    fn a_reader_gets_what_overlaps_and_stops_where_all_was_decided() {
        let dir = tempfile::tempdir().unwrap();
        let index = index(&dir);
        let entries = [aborted(1, 0, 10, 3), aborted(2, 3, 20, 21), aborted(1, 22, 30, 31), aborted(3, 25, 40, 41)];
        index.append(&entries[..1]).unwrap();
        index.append(&entries[1..]).unwrap();
        index.sync().unwrap();
        let collect = |from, upper| {
            let mut into = Vec::new();
            let complete = index.collect(&(Offset(from)..Offset(upper)), &mut into).unwrap();
            (into, complete)
        };
        assert_eq!(collect(0, 3), (vec![entries[0]], true));
        assert_eq!(collect(0, 5), (vec![entries[0], entries[1]], true));
        assert_eq!(collect(11, 23), (vec![entries[1], entries[2]], true));
        assert_eq!(collect(31, 50), (vec![entries[3]], false));
        assert_eq!(index.entries_below(30).unwrap(), 2);
        let cut = TxnIndex::new(Arc::clone(&index.home), 0, 2);
        cut.trim().unwrap();
        assert_eq!(decode(&fs::read(cut.path()).unwrap()), Ok(entries[..2].to_vec()));
    }

    /// First offset, last offset and last stable offset of entries.
    const ENTRIES: &str = "0 1 0, 4 8 3, 9 13 14, 2 14 5, 7 15 11, 0 19 10, 15 26 27, 19 31 32, 33 37 37, 19 38 31, 33 43 41, \
         36 47 43, 43 54 54, 44 55 53, 50 57 56, 44 61 60";
    /// The results of `TransactionIndex.collectAbortedTxns` of Kafka 4.3.1 for these entries: the offsets of the
    /// fetch (the second is exclusive), whether later segments may have more entries, and the numbers of the entries.
    const KAFKAS_SEARCHES: &str = "1 15 all 0 1 2 3 4 5, 9 12 all 2, 19 32 all 5 6 7, 30 40 all 7 8 9 10, 25 30 all 6 7, 20 28 all 6 7, \
         43 47 all 10 11 12, 59 69 more 15, 9 13 all 2, 0 13 all 0 1 2, 28 35 all 7 8, 21 22 all 6, 60 63 more 15, \
         17 29 all 5 6 7, 52 53 all 12, 17 21 all 5 6, 29 41 all 7 8 9 10, 57 71 more 14 15, 58 61 more 15, \
         62 67 more, 37 43 all 8 9 10 11, 13 15 all 2 3 4 5, 50 54 all 12, 16 24 all 5 6, 63 70 more, \
         17 18 all 5 6, 9 20 all 2 3 4 5 6, 19 25 all 5 6, 47 52 all 11 12, 15 22 all 4 5 6, \
         53 66 more 12 13 14 15, 58 67 more 15, 7 10 all 1 2, 45 46 all 11 12, 27 32 all 7, 52 57 all 12 13 14 15, \
         7 9 all 1, 7 20 all 1 2 3 4 5 6, 33 36 all 8, 53 67 more 12 13 14 15";

    #[test]
    fn a_reader_gets_what_kafkas_index_finds() {
        let parse = |number: &str| number.parse::<i64>().unwrap();
        let entry = |(number, text): (usize, &str)| {
            let offsets: Vec<i64> = text.split(' ').map(parse).collect();
            aborted(number as i64, offsets[0], offsets[1], offsets[2])
        };
        let entries: Vec<AbortedTxn> = ENTRIES.split(", ").enumerate().map(entry).collect();
        let dir = tempfile::tempdir().unwrap();
        let index = index(&dir);
        index.append(&entries).unwrap();
        for search in KAFKAS_SEARCHES.split(", ") {
            let words: Vec<&str> = search.split(' ').collect();
            let mut found = Vec::new();
            let is_complete = index.collect(&(Offset(parse(words[0]))..Offset(parse(words[1]))), &mut found).unwrap();
            let numbers: Vec<i64> = found.iter().map(|entry| entry.producer_id).collect();
            let expected: Vec<i64> = words[3..].iter().map(|number| parse(number)).collect();
            assert_eq!((is_complete, numbers), (words[2] == "all", expected), "{search}");
        }
    }

    #[test]
    fn damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(check_file(dir.path(), 0).unwrap(), Some(0));
        let index = index(&dir);
        index.append(&[aborted(1, 0, 10, 3), aborted(2, 3, 20, 21)]).unwrap();
        assert_eq!(check_file(dir.path(), 0).unwrap(), Some(2));
        let whole = fs::read(index.path()).unwrap();
        fs::write(index.path(), &whole[..60]).unwrap();
        assert_eq!(check_file(dir.path(), 0).unwrap(), None);
        fs::write(index.path(), [&whole[34..], &whole[..34]].concat()).unwrap();
        assert_eq!(check_file(dir.path(), 0).unwrap(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            if let Ok(entries) = decode(&bytes) {
                let again: Vec<u8> = entries.iter().flat_map(AbortedTxn::encode).collect();
                prop_assert_eq!(again.len(), bytes.len());
            }
        }

        #[test]
        fn a_search_finds_what_a_walk_finds(
            gaps in prop::collection::vec((1..9i64, 0..12i64, 0..9i64), 0..400),
            from in 0..2000i64,
            length in 0..400i64,
        ) {
            let mut end = 0;
            let entries: Vec<AbortedTxn> = gaps.into_iter().map(|(gap, back, stable)| {
                end += gap;
                aborted(1, (end - back).max(0), end, (end + 1 - stable).max(0))
            }).collect();
            let dir = tempfile::tempdir().unwrap();
            let index = index(&dir);
            index.append(&entries).unwrap();
            let upper = from + length;
            let stop = entries.iter().position(|e| e.last_offset >= from && e.last_stable_offset >= upper);
            let seen = &entries[..stop.map_or(entries.len(), |stop| stop + 1)];
            let naive: Vec<AbortedTxn> =
                seen.iter().filter(|e| e.last_offset >= from && e.first_offset < upper).copied().collect();
            let mut found = Vec::new();
            prop_assert_eq!(index.collect(&(Offset(from)..Offset(upper)), &mut found).unwrap(), stop.is_some());
            prop_assert_eq!(found, naive);
        }
    }
}
