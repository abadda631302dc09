//! The offset index of a segment: relative offset and position, 8 bytes per entry, one per `index.interval.bytes`.
//!
//! As in Kafka, an entry contains the *last* offset of a batch and the position where that batch starts.

use std::sync::Arc;

use crate::LogError;
use crate::directory::log_dir::{LogHome, OFFSET_INDEX_SUFFIX};
use crate::index::index_map::{Entries, Held, IndexMap};

/// If two entries are further apart than the default `index.interval.bytes` plus 1 KiB, the batches between them are
/// large, and there are only a few.
const FEW_BYTES: u64 = 5 << 10;
/// If two entries are further apart than this, there is hardly another batch between them than that of the second
/// entry.
const ONE_BYTES: u64 = 8 << 10;

/// The search range of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    /// A position at or before the batch that contains the offset.
    pub(crate) floor: u64,
    /// The position of the next entry's batch, if the distances suggest that it contains the offset.
    pub(crate) likely: Option<u64>,
}

/// The offset index; see the module.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct OffsetIndex {
    pub(crate) map: IndexMap<2>,
    base_offset: i64,
}

impl OffsetIndex {
    pub(crate) const ENTRY_BYTES: u64 = IndexMap::<2>::ENTRY_BYTES;

    pub(crate) fn new(home: Arc<LogHome>, base_offset: i64, held: Held<2>, max_bytes: u32) -> Self {
        Self { map: IndexMap::new(home, base_offset, OFFSET_INDEX_SUFFIX, held, max_bytes), base_offset }
    }

    /// Returns a position at or before the batch that contains `offset`; 0 when no entry is at or below it.
    pub(crate) fn floor_position(&self, offset: i64) -> Result<u64, LogError> {
        let relative =
            u32::try_from(offset - self.base_offset).unwrap_or(if offset < self.base_offset { 0 } else { u32::MAX });
        let found = self.map.entries()?.floor(|[last, _]| last <= relative);
        Ok(found.map_or(0, |[_, position]| u64::from(position)))
    }

    /// Returns the start position of a search for `offset`, and the position of its likely batch.
    pub(crate) fn around(&self, offset: i64) -> Result<Around, LogError> {
        let entries = self.map.entries()?;
        let relative = u32::try_from(offset - self.base_offset).unwrap_or(u32::MAX);
        let below = entries.floor_index(|[last, _]| last <= relative);
        // Before the first entry is the segment's start, which is below every offset.
        let (last, floor) = below.map_or((-1, 0), |index| {
            let [last, position] = entries.get(index);
            (i64::from(last), u64::from(position))
        });
        let above = below.map_or(0, |index| index + 1);
        let likely = (above < entries.len() && last != i64::from(relative)).then(|| entries.get(above));
        let likely = likely.filter(|&[next_last, next]| {
            let spacing = u64::from(next).saturating_sub(floor);
            let (left, all) = (i64::from(next_last) - i64::from(relative), i64::from(next_last) - last);
            spacing > FEW_BYTES && left * 4 < all || spacing > ONE_BYTES
        });
        Ok(Around { floor, likely: likely.map(|[_, position]| u64::from(position)) })
    }

    /// Returns an offset below which every record lies before `position`, according to the index.
    pub(crate) fn covered(&self, position: u64) -> Result<i64, LogError> {
        let entries = self.map.entries()?;
        let within = entries.floor_index(|[_, start]| u64::from(start) <= position);
        // The batch of that entry may end beyond the position. The batch of the entry before it does not.
        let before = within.and_then(|index| index.checked_sub(1)).map(|index| entries.get(index)[0]);
        Ok(before.map_or(self.base_offset, |last| self.base_offset + i64::from(last) + 1))
    }

    /// Returns the last offset of the first indexed batch that starts at or after `position`; `None` when there is
    /// none.
    pub(crate) fn ceiling_offset(&self, position: u64) -> Result<Option<i64>, LogError> {
        let entries = self.map.entries()?;
        let at = partition_point(&entries, |[_, start]| u64::from(start) < position);
        Ok((at < entries.len()).then(|| self.base_offset + i64::from(entries.get(at)[0])))
    }

    /// Returns the last entry: a batch's last offset and its position. Only for the writer.
    pub(crate) fn last(&self) -> Option<(i64, u64)> {
        let last = self.map.last();
        last.map(|[relative, position]| (self.base_offset + i64::from(relative), u64::from(position)))
    }

    /// Adds the batch at `position` with the last offset `last_offset`. Both must fit in 31 bits, which the segment
    /// ensures.
    pub(crate) fn push(&self, last_offset: i64, position: u64) {
        if let (Ok(relative), Ok(position)) = (u32::try_from(last_offset - self.base_offset), u32::try_from(position)) {
            self.map.push([relative, position]);
        }
    }

    /// Returns the number of entries of batches that end below `offset`.
    pub(crate) fn entries_below(&self, offset: i64) -> Result<u32, LogError> {
        let entries = self.map.entries()?;
        let relative = offset - self.base_offset;
        Ok(partition_point(&entries, |[last, _]| i64::from(last) < relative))
    }
}

/// Returns the number of leading entries that satisfy `holds`.
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
        let index = OffsetIndex::new(LogHome::new(dir.path()), 100, Held::NOTHING, 8 * 3000);
        index.map.reserve(3000).unwrap();
        let entries: Vec<(i64, u64)> = (1..=3000).map(|n| (100 + n * 7 - 1, n as u64 * 4097)).collect();
        entries.iter().for_each(|&(offset, position)| index.push(offset, position));
        for offset in (90..21_200).step_by(3) {
            let naive = entries.iter().rev().find(|entry| entry.0 <= offset).map_or(0, |entry| entry.1);
            assert_eq!(index.floor_position(offset).unwrap(), naive, "{offset}");
            // Between entries this near to each other are many small batches: no batch is likely.
            assert_eq!(index.around(offset.max(100)).unwrap(), Around { floor: naive, likely: None }, "{offset}");
            assert_eq!(index.entries_below(offset).unwrap() as usize, entries.iter().filter(|e| e.0 < offset).count());
        }
        assert_eq!(index.floor_position(i64::MAX).unwrap(), 3000 * 4097);
        assert_eq!(index.around(i64::MAX).unwrap(), Around { floor: 3000 * 4097, likely: None });
        for position in (0..3001 * 4097).step_by(1999) {
            let naive = entries.iter().find(|entry| entry.1 >= position).map(|entry| entry.0);
            assert_eq!(index.ceiling_offset(position).unwrap(), naive, "{position}");
        }
    }

    #[test]
    fn the_next_entry_is_guessed_where_few_batches_can_lie_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let index = OffsetIndex::new(LogHome::new(dir.path()), 100, Held::NOTHING, 8 * 10);
        index.map.reserve(10).unwrap();
        index.push(108, 6 << 10);
        index.push(118, 26 << 10);
        let guessed = |offset| index.around(offset).unwrap().likely;
        assert_eq!([101, 105].map(guessed), [None; 2], "far from the next entry");
        assert_eq!([106, 107].map(guessed), [Some(6 << 10); 2]);
        assert_eq!(guessed(108), None, "the entry itself");
        assert_eq!([109, 117].map(guessed), [Some(26 << 10); 2], "one batch is larger than the interval");
        assert_eq!(guessed(119), None, "behind the last entry");
    }
}
