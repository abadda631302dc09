//! A preallocated, memory-mapped file of fixed-size entries, the base of the offset index and the time index.
//!
//! Owns the file, its mapping and the number of entries. It does not interpret entries: an entry is `WORDS`
//! big-endian 32-bit words. One writer appends with `push` (under the log's mutex) while any number of readers search.
//!
//! An idle index is cheap. The file is created and mapped at the first push or search. The last entry is known
//! without the file. An index without pushes leaves its file unchanged.

#![allow(unsafe_code, reason = "memory maps: argued at each block")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::LogError;
use crate::directory::log_dir::LogHome;
use pybroker_sys::file;

const PAGE: u64 = 4096;

/// The content of an index file, before the file is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<const WORDS: usize> {
    pub(crate) entries: u32,
    /// The last entry; meaningless without entries.
    pub(crate) last: [u32; WORDS],
    /// Whether the file ends with the last entry and is completely on the device.
    pub(crate) completed: bool,
}

impl<const WORDS: usize> Held<WORDS> {
    /// An index without entries, whose file may not exist.
    pub(crate) const NOTHING: Self = Self { entries: 0, last: [0; WORDS], completed: false };

    /// Returns the content of a file that is on the device and ends with the last of these entries, whose bytes are
    /// `last`.
    pub(crate) fn completed(entries: u32, last: &[u8]) -> Self {
        let mut held = Self { entries, completed: true, ..Self::NOTHING };
        for (word, bytes) in held.last.iter_mut().zip(last.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        held
    }
}

/// The memory-mapped index. The fields for searches are first, in 32 bytes: see [`super::segment::Segment`].
#[derive(Debug)]
#[repr(C)]
pub(crate) struct IndexMap<const WORDS: usize> {
    /// Number of entries visible to readers: stored (Release) after the entry's bytes.
    entries: AtomicU32,
    /// Maximum entries of the file; 0 for a read-only index.
    capacity: u32,
    /// The mapping with capacity for appends; for a read-only index, the mapping of the existing file.
    map: OnceLock<MmapRaw>,
    home: Arc<LogHome>,
    base_offset: i64,
    suffix: &'static str,
    /// Bytes from the start of the file with allocated blocks. Only the writer uses it.
    reserved: AtomicU64,
    /// The last entry, for the writer.
    last: [AtomicU32; WORDS],
    /// Whether the file ends with the last entry and is completely on the device, as in [`Held`]. Cleared when the file
    /// is mapped for appends.
    completed: AtomicBool,
    /// Whether the file ends with the last entry, which may not be on the device yet. Cleared together with `completed`.
    trimmed: AtomicBool,
    /// The mapping of the existing file for searches before the first append. Searches do not change the file, because
    /// it may be sealed at the same time.
    found: OnceLock<MmapRaw>,
}

impl<const WORDS: usize> IndexMap<WORDS> {
    /// Bytes of one entry.
    pub(crate) const ENTRY_BYTES: u64 = WORDS as u64 * 4;

    /// Creates an index for a file with this content. `max_bytes` is 0 for a read-only index.
    pub(crate) fn new(
        home: Arc<LogHome>,
        base_offset: i64,
        suffix: &'static str,
        held: Held<WORDS>,
        max_bytes: u32,
    ) -> Self {
        let entries = held.entries;
        let capacity = if max_bytes == 0 { 0 } else { entries.max(max_bytes / Self::ENTRY_BYTES as u32) };
        Self {
            home,
            base_offset,
            suffix,
            capacity,
            entries: AtomicU32::new(entries),
            reserved: AtomicU64::new(u64::from(entries) * Self::ENTRY_BYTES),
            map: OnceLock::new(),
            last: held.last.map(AtomicU32::new),
            completed: AtomicBool::new(held.completed),
            trimmed: AtomicBool::new(held.completed),
            found: OnceLock::new(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.segment_file(self.base_offset, self.suffix)
    }

    pub(crate) fn len(&self) -> u32 {
        self.entries.load(Ordering::Acquire)
    }

    /// Returns the number of entries that can still be pushed.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity.saturating_sub(self.len())
    }

    /// Returns the last entry. Only valid for the writer and for sealed indexes: during an append by the writer,
    /// another thread may read words of two entries.
    pub(crate) fn last(&self) -> Option<[u32; WORDS]> {
        (self.len() > 0).then(|| std::array::from_fn(|word| self.last[word].load(Ordering::Relaxed)))
    }

    /// Returns the file content for another index with the same entries. Only for the writer, like [`Self::last`].
    pub(crate) fn held(&self) -> Held<WORDS> {
        Held { entries: self.len(), last: self.last().unwrap_or([0; WORDS]), completed: false }
    }

    /// Returns [`Self::held`] of the first `entries` entries.
    pub(crate) fn held_below(&self, entries: u32) -> Result<Held<WORDS>, LogError> {
        let all = self.entries()?;
        Ok(Held { entries, last: entries.checked_sub(1).map_or([0; WORDS], |last| all.get(last)), completed: false })
    }

    /// Returns the current entries.
    pub(crate) fn entries(&self) -> Result<Entries<'_, WORDS>, LogError> {
        let len = self.len();
        if len == 0 {
            return Ok(Entries { map: None, len: 0 });
        }
        let map = self.readable()?;
        let mapped = (map.len() as u64 / Self::ENTRY_BYTES) as u32;
        Ok(Entries { map: Some(map), len: len.min(mapped) })
    }

    /// Ensures that the next `count` pushes cannot fail, within the capacity: maps the file and allocates blocks.
    pub(crate) fn reserve(&self, count: u32) -> Result<(), LogError> {
        let count = count.min(self.capacity());
        if count == 0 {
            return Ok(());
        }
        self.mapped()?;
        let needed = (u64::from(self.len()) + u64::from(count)) * Self::ENTRY_BYTES;
        let reserved = self.reserved.load(Ordering::Relaxed);
        if needed > reserved {
            let target = needed.next_multiple_of(PAGE).min(u64::from(self.capacity) * Self::ENTRY_BYTES);
            let path = self.path();
            let file = file::open_writable(&path).map_err(LogError::io(&path))?;
            file::reserve_within(&file, reserved, target - reserved).map_err(LogError::io(&path))?;
            self.reserved.store(target, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Appends an entry for which [`Self::reserve`] allocated space. Without space the entry is dropped, since an
    /// index is sparse.
    pub(crate) fn push(&self, entry: [u32; WORDS]) {
        let index = self.entries.load(Ordering::Relaxed);
        let end = (u64::from(index) + 1) * Self::ENTRY_BYTES;
        let Some(map) = self.map.get() else { return };
        if index >= self.capacity || end > self.reserved.load(Ordering::Relaxed) || end > map.len() as u64 {
            return;
        }
        for (word, value) in entry.into_iter().enumerate() {
            word_at(map, index as usize * WORDS + word).store(value.to_be(), Ordering::Relaxed);
            self.last[word].store(value, Ordering::Relaxed);
        }
        self.entries.store(index + 1, Ordering::Release);
    }

    /// Appends an entry with one write to a file that ends with the last entry and is not mapped for pushes. A push
    /// would extend the file to its maximum size and map it, and the file would have to be trimmed again. Returns
    /// false if the file is in another state or full.
    pub(crate) fn append_to_trimmed(&self, entry: [u32; WORDS]) -> Result<bool, LogError> {
        let index = self.entries.load(Ordering::Relaxed);
        if !self.trimmed.load(Ordering::Acquire) || index >= self.capacity {
            return Ok(false);
        }
        // Until the write has succeeded, the end of the file is unknown.
        self.completed.store(false, Ordering::Release);
        self.trimmed.store(false, Ordering::Release);
        let path = self.path();
        let mut bytes = Vec::with_capacity(Self::ENTRY_BYTES as usize);
        entry.into_iter().for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
        file::open_or_create(&path)
            .and_then(|file| file::write_all_at(&file, &bytes, u64::from(index) * Self::ENTRY_BYTES))
            .map_err(LogError::io(&path))?;
        self.last.iter().zip(entry).for_each(|(last, word)| last.store(word, Ordering::Relaxed));
        self.reserved.store((u64::from(index) + 1) * Self::ENTRY_BYTES, Ordering::Relaxed);
        self.entries.store(index + 1, Ordering::Release);
        self.trimmed.store(true, Ordering::Release);
        Ok(true)
    }

    /// Completes a rebuild of the index over a file that a crash may have left. The blocks of the file are reused,
    /// because freeing and allocating them takes most of the recovery time of many small logs. Old entries after the
    /// new ones are zeroed. A file without pushed entries stays until [`Self::trim`]: its bytes are ignored.
    pub(crate) fn end_anew(&self) {
        let Some(map) = self.map.get() else { return };
        for index in self.len()..(map.len() as u64 / Self::ENTRY_BYTES) as u32 {
            let words = || (0..WORDS).map(|word| word_at(map, index as usize * WORDS + word));
            if words().all(|word| word.load(Ordering::Relaxed) == 0) {
                break;
            }
            words().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Truncates the file to its entries, and creates it when absent. Further pushes need another reservation.
    pub(crate) fn trim(&self) -> Result<(), LogError> {
        if self.trimmed.load(Ordering::Acquire) {
            return Ok(());
        }
        let path = self.path();
        let file = file::open_or_create(&path).map_err(LogError::io(&path))?;
        let bytes = u64::from(self.len()) * Self::ENTRY_BYTES;
        self.reserved.store(bytes, Ordering::Relaxed);
        file::set_len(&file, bytes).map_err(LogError::io(&path))
    }

    /// Returns whether any part of the file is mapped.
    pub(crate) fn is_mapped(&self) -> bool {
        self.map.get().is_some() || self.found.get().is_some()
    }

    /// Returns whether the file ends with the last entry and is on the device.
    pub(crate) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    /// Waits until the entries are on the device.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        if self.completed.load(Ordering::Acquire) {
            return Ok(());
        }
        let path = self.path();
        match file::open(&path) {
            Ok(file) => file::sync_data(&file).map_err(LogError::io(&path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.len() == 0 => Ok(()),
            Err(error) => Err(LogError::io(&path)(error)),
        }
    }

    fn mapped(&self) -> Result<&MmapRaw, LogError> {
        self.mapped_in(&self.map, self.capacity > 0)
    }

    fn readable(&self) -> Result<&MmapRaw, LogError> {
        if self.map.get().is_some() || self.capacity == 0 {
            return self.mapped();
        }
        self.mapped_in(&self.found, false)
    }

    fn mapped_in<'a>(&self, place: &'a OnceLock<MmapRaw>, writable: bool) -> Result<&'a MmapRaw, LogError> {
        if let Some(map) = place.get() {
            return Ok(map);
        }
        let path = self.path();
        let map = self.open_map(&path, writable).map_err(LogError::io(&path))?;
        Ok(place.get_or_init(|| map))
    }

    fn open_map(&self, path: &Path, writable: bool) -> std::io::Result<MmapRaw> {
        let map = if writable {
            self.open_writable_map(path)?
        } else {
            let file = file::open(path)?;
            file::map(path, || MmapOptions::new().map_raw_read_only(&file))?
        };
        // Without this advice, touching one page of the sparse file makes the kernel read ahead and allocate zeroed
        // pages around it, megabytes on some devices. A failed advice has no other effect.
        let _ = map.advise(Advice::Random);
        Ok(map)
    }

    fn open_writable_map(&self, path: &Path) -> std::io::Result<MmapRaw> {
        self.completed.store(false, Ordering::Release);
        self.trimmed.store(false, Ordering::Release);
        let file = file::open_or_create(path)?;
        let bytes = u64::from(self.capacity) * Self::ENTRY_BYTES;
        if file.metadata()?.len() != bytes {
            file::set_len(&file, bytes)?;
        }
        file::map(path, || MmapRaw::map_raw(&file))
    }
}

/// The entries of an index at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a, const WORDS: usize> {
    map: Option<&'a MmapRaw>,
    len: u32,
}

impl<const WORDS: usize> Entries<'_, WORDS> {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns entry `index`; zeros beyond the end.
    pub(crate) fn get(&self, index: u32) -> [u32; WORDS] {
        let mut entry = [0; WORDS];
        if let Some(map) = self.map
            && index < self.len
        {
            for (word, value) in entry.iter_mut().enumerate() {
                *value = u32::from_be(word_at(map, index as usize * WORDS + word).load(Ordering::Relaxed));
            }
        }
        entry
    }

    /// Returns the last entry that satisfies `is_at_or_below`, which must be true for a prefix of the entries.
    ///
    /// The last 8 KiB of entries are searched first. So searches near the end of the log touch the same few pages, which
    /// are in memory, whatever the size of the index (Kafka's warm section, KAFKA-6432).
    pub(crate) fn floor(&self, is_at_or_below: impl Fn([u32; WORDS]) -> bool) -> Option<[u32; WORDS]> {
        self.floor_index(is_at_or_below).map(|index| self.get(index))
    }

    /// Returns the index of the entry of [`Self::floor`].
    pub(crate) fn floor_index(&self, is_at_or_below: impl Fn([u32; WORDS]) -> bool) -> Option<u32> {
        const WARM_BYTES: u32 = 8192;
        let warm_start = self.len.saturating_sub(WARM_BYTES / (WORDS as u32 * 4));
        let (mut low, mut high) = if warm_start > 0 && is_at_or_below(self.get(warm_start)) {
            (warm_start, self.len)
        } else {
            (0, if warm_start > 0 { warm_start } else { self.len })
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if is_at_or_below(self.get(middle)) { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }
}

/// Returns the 32-bit word at `index` of the mapping.
fn word_at(map: &MmapRaw, index: usize) -> &AtomicU32 {
    assert!((index + 1) * 4 <= map.len(), "index entry outside its mapping");
    // SAFETY: the word lies inside the mapping (asserted), which lives as long as the reference; a mapping starts on a
    // page, so the word is aligned; every access of this process to it is atomic. Words that are stored to have
    // blocks (`reserve`), and files are truncated only after their last entry, so no access raises SIGBUS. A read-only
    // mapping is never stored to: `push` stops at capacity 0.
    unsafe { AtomicU32::from_ptr(map.as_mut_ptr().cast::<u32>().add(index)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(dir: &tempfile::TempDir, max_bytes: u32) -> IndexMap<2> {
        holding(dir, Held::NOTHING, max_bytes)
    }

    fn holding(dir: &tempfile::TempDir, held: Held<2>, max_bytes: u32) -> IndexMap<2> {
        IndexMap::new(LogHome::new(dir.path()), 0, ".index", held, max_bytes)
    }

    #[test]
    fn nothing_is_made_before_the_first_entry() {
        let dir = tempfile::tempdir().unwrap();
        let map = index(&dir, 1 << 20);
        assert_eq!(map.entries().unwrap().len(), 0);
        map.push([1, 2]);
        assert_eq!(map.len(), 0, "a push without reservation is not taken");
        assert!(!map.path().exists());
        map.trim().unwrap();
        assert_eq!(std::fs::metadata(map.path()).unwrap().len(), 0);
    }

    #[test]
    fn entries_are_big_endian_on_disk_and_survive_trimming() {
        let dir = tempfile::tempdir().unwrap();
        let map = index(&dir, 8 * 1000 + 3);
        map.reserve(2).unwrap();
        map.push([1, 2]);
        map.push([3, 0x0102_0304]);
        assert_eq!(std::fs::metadata(map.path()).unwrap().len(), 8000);
        map.trim().unwrap();
        assert_eq!(std::fs::read(map.path()).unwrap(), [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4]);
        assert_eq!(map.last(), Some([3, 0x0102_0304]));
        let again = holding(&dir, map.held(), 0);
        assert_eq!((again.last(), again.entries().unwrap().get(1)), (map.last(), [3, 0x0102_0304]));
        assert_eq!(map.entries().unwrap().get(0), [1, 2]);
        again.sync().unwrap();
        assert_eq!(map.held_below(1).unwrap().last, [1, 2]);
        assert_eq!(map.held_below(0).unwrap().entries, 0);
    }

    #[test]
    fn what_is_built_anew_takes_the_file_over_and_leaves_nothing_old() {
        let dir = tempfile::tempdir().unwrap();
        for old_entries in [10, 6, 3] {
            let old = index(&dir, 8 * old_entries);
            old.reserve(6).unwrap();
            (1..7).for_each(|n| old.push([n, n]));
            let new = index(&dir, 80);
            new.reserve(2).unwrap();
            new.push([9, 9]);
            new.end_anew();
            let bytes = std::fs::read(new.path()).unwrap();
            assert_eq!(
                (bytes.len(), &bytes[..8], bytes[8..].iter().any(|&byte| byte > 0)),
                (80, &[0, 0, 0, 9, 0, 0, 0, 9][..], false),
                "{old_entries}"
            );
        }
        // Without any entry: the content of the file is ignored, and is truncated when the segment is sealed.
        let empty = index(&dir, 160);
        empty.end_anew();
        assert_eq!((empty.len(), empty.entries().unwrap().len(), empty.last()), (0, 0, None));
        empty.trim().unwrap();
        assert_eq!(std::fs::metadata(empty.path()).unwrap().len(), 0);
    }

    #[test]
    fn what_is_settled_is_not_touched_before_it_is_pushed_to() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = [0, 0, 0, 1, 0, 0, 0, 2];
        let map = holding(&dir, Held { entries: 1, last: [1, 2], completed: true }, 800);
        // The file does not exist yet, and these calls do not open it.
        map.trim().unwrap();
        map.sync().unwrap();
        assert_eq!(map.last(), Some([1, 2]));
        std::fs::write(map.path(), bytes).unwrap();
        assert_eq!(map.entries().unwrap().get(0), [1, 2]);
        assert_eq!(std::fs::read(map.path()).unwrap(), bytes, "a look-up changes no file");
        map.reserve(1).unwrap();
        map.push([3, 4]);
        assert_eq!(std::fs::metadata(map.path()).unwrap().len(), 800);
        assert_eq!((map.entries().unwrap().get(0), map.entries().unwrap().get(1)), ([1, 2], [3, 4]));
        map.trim().unwrap();
        assert_eq!(std::fs::metadata(map.path()).unwrap().len(), 16);
    }

    #[test]
    fn an_entry_is_appended_to_a_file_that_is_not_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let map = holding(&dir, Held { entries: 1, last: [1, 2], completed: true }, 24);
        std::fs::write(map.path(), [0, 0, 0, 1, 0, 0, 0, 2]).unwrap();
        assert!(map.append_to_trimmed([3, 4]).unwrap());
        assert_eq!((map.len(), map.last(), map.is_completed(), map.is_mapped()), (2, Some([3, 4]), false, false));
        assert_eq!(std::fs::read(map.path()).unwrap(), [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        map.trim().unwrap();
        assert_eq!(std::fs::metadata(map.path()).unwrap().len(), 16);
        // Pushes continue after it in a larger file. Then its end is known only to the pushes.
        map.reserve(1).unwrap();
        map.push([5, 6]);
        assert_eq!([map.entries().unwrap().get(1), map.entries().unwrap().get(2)], [[3, 4], [5, 6]]);
        assert!(!map.append_to_trimmed([7, 8]).unwrap());
        assert_eq!(map.len(), 3);
        // A full index accepts no entry either.
        let full = holding(&dir, Held { entries: 3, last: [5, 6], completed: true }, 24);
        assert!(!full.append_to_trimmed([7, 8]).unwrap());
    }

    #[test]
    fn a_full_index_takes_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let map = index(&dir, 16);
        map.reserve(5).unwrap();
        (0..5).for_each(|n| map.push([n, n]));
        assert_eq!((map.len(), map.capacity()), (2, 0));
    }

    #[test]
    fn the_floor_is_found_in_and_before_the_warm_section() {
        let dir = tempfile::tempdir().unwrap();
        let map = index(&dir, 8 * 5000);
        map.reserve(5000).unwrap();
        for count in [1u32, 2, 1023, 1024, 1025, 5000] {
            while map.len() < count {
                map.push([map.len() * 2 + 1, map.len()]);
            }
            let entries = map.entries().unwrap();
            for target in 0..=(count * 2 + 1) {
                let expected = target
                    .checked_add(1)
                    .map(|t| t / 2)
                    .filter(|&n| n > 0)
                    .map(|n| [n.min(count) * 2 - 1, n.min(count) - 1]);
                assert_eq!(entries.floor(|[key, _]| key <= target), expected, "{target} of {count}");
            }
        }
    }
}
