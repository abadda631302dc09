//! The offset index of a segment: relative offset and position, 8 bytes an entry, one per `index.interval.bytes`.
//!
//! An entry holds the *last* offset of a batch and the position where that batch starts, as Kafka writes it.

use std::sync::Arc;

use super::LogError;
use super::index_map::{Entries, IndexMap};
use super::log_dir::{LogHome, OFFSET_INDEX_SUFFIX};

/// See the module.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    pub(crate) map: IndexMap<2>,
    base_offset: i64,
}

impl OffsetIndex {
    pub(crate) const ENTRY_BYTES: u64 = IndexMap::<2>::ENTRY_BYTES;

    pub(crate) fn new(home: Arc<LogHome>, base_offset: i64, entries: u32, max_bytes: u32) -> Self {
        Self { map: IndexMap::new(home, base_offset, OFFSET_INDEX_SUFFIX, entries, max_bytes), base_offset }
    }

    /// A position at or before the batch that contains `offset`: 0 when no entry is at or below it.
    pub(crate) fn floor_position(&self, offset: i64) -> Result<u64, LogError> {
        let relative =
            u32::try_from(offset - self.base_offset).unwrap_or(if offset < self.base_offset { 0 } else { u32::MAX });
        let found = self.map.entries()?.floor(|[last, _]| last <= relative);
        Ok(found.map_or(0, |[_, position]| u64::from(position)))
    }

    /// The last offset of the first indexed batch that starts at `position` or beyond; `None` when there is none.
    pub(crate) fn ceiling_offset(&self, position: u64) -> Result<Option<i64>, LogError> {
        let entries = self.map.entries()?;
        let at = partition_point(&entries, |[_, start]| u64::from(start) < position);
        Ok((at < entries.len()).then(|| self.base_offset + i64::from(entries.get(at)[0])))
    }

    /// The last entry: a batch's last offset and its position.
    pub(crate) fn last(&self) -> Result<Option<(i64, u64)>, LogError> {
        let last = self.map.entries()?.last();
        Ok(last.map(|[relative, position]| (self.base_offset + i64::from(relative), u64::from(position))))
    }

    /// Adds the batch at `position` whose last offset is `last_offset`; the segment keeps both within 31 bits.
    pub(crate) fn push(&self, last_offset: i64, position: u64) {
        if let (Ok(relative), Ok(position)) = (u32::try_from(last_offset - self.base_offset), u32::try_from(position)) {
            self.map.push([relative, position]);
        }
    }

    /// Number of entries that point at batches ending below `offset`.
    pub(crate) fn entries_below(&self, offset: i64) -> Result<u32, LogError> {
        let entries = self.map.entries()?;
        let relative = offset - self.base_offset;
        Ok(partition_point(&entries, |[last, _]| i64::from(last) < relative))
    }
}

/// Number of leading entries of which `holds` is true.
pub(crate) fn partition_point<const WORDS: usize>(
    entries: &Entries<'_, WORDS>,
    holds: impl Fn([u32; WORDS]) -> bool,
) -> u32 {
    let (mut low, mut high) = (0, entries.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(entries.get(middle)) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_naive_search() {
        let dir = tempfile::tempdir().unwrap();
        let index = OffsetIndex::new(LogHome::new(dir.path()), 100, 0, 8 * 3000);
        index.map.reserve(3000).unwrap();
        let entries: Vec<(i64, u64)> = (1..=3000).map(|n| (100 + n * 7 - 1, n as u64 * 4097)).collect();
        entries.iter().for_each(|&(offset, position)| index.push(offset, position));
        for offset in (90..21_200).step_by(3) {
            let naive = entries.iter().rev().find(|entry| entry.0 <= offset).map_or(0, |entry| entry.1);
            assert_eq!(index.floor_position(offset).unwrap(), naive, "{offset}");
            assert_eq!(index.entries_below(offset).unwrap() as usize, entries.iter().filter(|e| e.0 < offset).count());
        }
        assert_eq!(index.floor_position(i64::MAX).unwrap(), 3000 * 4097);
        for position in (0..3001 * 4097).step_by(1999) {
            let naive = entries.iter().find(|entry| entry.1 >= position).map(|entry| entry.0);
            assert_eq!(index.ceiling_offset(position).unwrap(), naive, "{position}");
        }
    }
}
