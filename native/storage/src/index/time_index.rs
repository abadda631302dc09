//! The time index of a segment: timestamp and relative offset, 12 bytes per entry.
//!
//! In an entry `(t, o)`, `t` is the largest timestamp of the segment up to the batch with the last offset `o`, and
//! that batch has a record with it. Timestamps strictly increase. The last entry is added when the segment is sealed,
//! so the largest timestamp of a sealed segment is known without reading the log.

use std::sync::Arc;

use crate::LogError;
use crate::directory::log_dir::{LogHome, TIME_INDEX_SUFFIX};
use crate::index::index_map::{Held, IndexMap};

/// A timestamp in ms, and the last offset of the batch with that timestamp. Timestamp -1 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampOffset {
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

/// The time index; see the module.
#[derive(Debug)]
pub(crate) struct TimeIndex {
    pub(crate) map: IndexMap<3>,
    base_offset: i64,
}

impl TimeIndex {
    pub(crate) const ENTRY_BYTES: u64 = IndexMap::<3>::ENTRY_BYTES;

    pub(crate) fn new(home: Arc<LogHome>, base_offset: i64, held: Held<3>, max_bytes: u32) -> Self {
        Self { map: IndexMap::new(home, base_offset, TIME_INDEX_SUFFIX, held, max_bytes), base_offset }
    }

    /// Returns the last entry; `(-1, base offset)` when there is none. Only for the writer.
    pub(crate) fn last(&self) -> TimestampOffset {
        self.decode(self.map.last())
    }

    /// Returns the last entry with a timestamp of at most `timestamp`; `(-1, base offset)` when there is none.
    pub(crate) fn floor(&self, timestamp: i64) -> Result<TimestampOffset, LogError> {
        Ok(self.decode(self.map.entries()?.floor(|entry| timestamp_of(entry) <= timestamp)))
    }

    /// Adds an entry if its timestamp is larger than that of the last one.
    pub(crate) fn maybe_push(&self, entry: TimestampOffset) {
        if entry.timestamp > self.last().timestamp
            && let Some(words) = self.encode(entry)
        {
            self.map.push(words);
        }
    }

    /// Adds the last entry of a sealed segment, if its timestamp is larger than that of the last one.
    pub(crate) fn finish(&self, entry: TimestampOffset) -> Result<(), LogError> {
        if entry.timestamp > self.last().timestamp
            && let Some(words) = self.encode(entry)
            && !self.map.append_to_trimmed(words)?
        {
            self.map.reserve(1)?;
            self.map.push(words);
        }
        Ok(())
    }

    fn encode(&self, entry: TimestampOffset) -> Option<[u32; 3]> {
        let relative = u32::try_from(entry.offset - self.base_offset).ok()?;
        Some([(entry.timestamp as u64 >> 32) as u32, entry.timestamp as u32, relative])
    }

    /// Returns the number of entries with an offset below `offset`.
    pub(crate) fn entries_below(&self, offset: i64) -> Result<u32, LogError> {
        let relative = offset - self.base_offset;
        Ok(crate::index::offset_index::partition_point(&self.map.entries()?, |[_, _, last]| i64::from(last) < relative))
    }

    fn decode(&self, entry: Option<[u32; 3]>) -> TimestampOffset {
        match entry {
            Some(words) => {
                TimestampOffset { timestamp: timestamp_of(words), offset: self.base_offset + i64::from(words[2]) }
            }
            None => TimestampOffset { timestamp: -1, offset: self.base_offset },
        }
    }
}

fn timestamp_of([high, low, _]: [u32; 3]) -> i64 {
    (u64::from(high) << 32 | u64::from(low)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_later_timestamps_are_taken_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let index = TimeIndex::new(LogHome::new(dir.path()), 10, Held::NOTHING, 12 * 2000);
        assert_eq!(index.last(), TimestampOffset { timestamp: -1, offset: 10 });
        index.map.reserve(2000).unwrap();
        let mut kept = Vec::new();
        for n in 0..2000i64 {
            let entry = TimestampOffset { timestamp: (n / 3) * 5_000_000_000, offset: 11 + n };
            index.maybe_push(entry);
            if n % 3 == 0 {
                kept.push(entry);
            }
        }
        assert_eq!(index.map.len() as usize, kept.len());
        for timestamp in (0..670).map(|n| n * 5_000_000_000 - 1).chain([i64::MAX]) {
            let naive = kept.iter().rev().find(|entry| entry.timestamp <= timestamp).copied();
            let none = TimestampOffset { timestamp: -1, offset: 10 };
            assert_eq!(index.floor(timestamp).unwrap(), naive.unwrap_or(none));
        }
        assert_eq!(index.entries_below(14).unwrap(), 1);
        assert_eq!(index.entries_below(15).unwrap(), 2);
    }
}
