//! Records for a producer: one, or many of one partition.

use pybroker_record::RecordHeader;

/// Upper bound on the bytes that a record and a batch add to key, value and headers.
pub const RECORD_OVERHEAD: usize = 128;

/// A record for `send`.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// The record's time, ms since the epoch.
    pub timestamp_ms: i64,
    /// The key; chooses the partition if the caller does not.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Key and value of each header.
    pub headers: &'a [RecordHeader<'a>],
}

impl NewRecord<'_> {
    /// Bytes of key and value.
    pub fn payload(&self) -> usize {
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len)
    }

    /// Upper bound on the record's size in a batch of its own.
    pub fn upper_bound(&self) -> usize {
        let headers = self.headers.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len) + 10);
        self.payload() + headers.sum::<usize>() + RECORD_OVERHEAD
    }
}

/// Many records of one partition, numbered from 0.
pub trait NewRecords {
    /// The number of records.
    fn count(&self) -> usize;
    /// Call `look` with one of them.
    fn with<R>(&mut self, number: usize, look: impl FnOnce(&NewRecord<'_>) -> R) -> R;
}

/// Values of one size, adjacent in memory, without keys.
#[derive(Debug)]
pub struct EqualValues<'a> {
    pub timestamp_ms: i64,
    pub values: &'a [u8],
    pub size: usize,
}

impl NewRecords for EqualValues<'_> {
    fn count(&self) -> usize {
        self.values.len().checked_div(self.size).unwrap_or(0)
    }

    #[inline(always)]
    fn with<R>(&mut self, number: usize, look: impl FnOnce(&NewRecord<'_>) -> R) -> R {
        let value = &self.values[number * self.size..(number + 1) * self.size];
        look(&NewRecord { timestamp_ms: self.timestamp_ms, key: None, value: Some(value), headers: &[] })
    }
}
