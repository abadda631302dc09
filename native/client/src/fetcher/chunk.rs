//! Received batches of one partition, iterated in place in the receive buffer.
//!
//! The [`cursor`](super::cursor) finds the batches that a consumer may see; this file has the offset at which reading
//! starts. Copies only records that have to be decompressed.

use std::ops::Range;
use std::sync::Arc;

use crate::error::ClientError;
use crate::network::connection::Frame;
use pybroker_record::{BatchHeader, LOG_OVERHEAD, LeaderEpoch, Record, RecordError, StoredRecord, TimestampType};
use pybroker_wire::fetch::AbortedTransaction;

/// The bytes of whole batches in a response, the offset after them, and the leader epoch of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub len: usize,
    pub next_offset: i64,
    pub leader_epoch: LeaderEpoch,
}

impl Extent {
    /// Iterate over the batch headers. A batch that is cut at the end does not count (the broker cuts at its byte limit).
    pub fn measure(bytes: &[u8]) -> Result<Self, String> {
        let mut extent = Self { len: 0, next_offset: 0, leader_epoch: LeaderEpoch(-1) };
        while extent.len < bytes.len() {
            let rest = &bytes[extent.len..];
            let header = match BatchHeader::parse_stored(rest) {
                Ok(header) => header,
                Err(RecordError::Truncated { .. }) => break,
                Err(error) => return Err(error.to_string()),
            };
            if header.size() > rest.len() {
                break;
            }
            extent.len += header.size();
            extent.next_offset = header.next_offset();
            extent.leader_epoch = LeaderEpoch(header.partition_leader_epoch);
        }
        let rest = &bytes[extent.len..];
        if extent.len == 0 && rest.len() > LOG_OVERHEAD {
            return Err(format!(
                "{} bytes hold no whole batch; max.partition.fetch.bytes is below the batch's size",
                rest.len()
            ));
        }
        Ok(extent)
    }
}

/// A record with its absolute offset.
#[derive(Debug, Clone)]
pub struct FetchedRecord<'a> {
    /// Its offset in the partition.
    pub offset: i64,
    /// The record's time, or the broker's if the topic uses LogAppendTime.
    pub timestamp_ms: i64,
    /// The kind of that time; `None` in format v0, which has no times.
    pub timestamp_type: Option<TimestampType>,
    /// Leader epoch in which it was written; -1 if the format has none.
    pub leader_epoch: LeaderEpoch,
    /// Key, value and headers, borrowed from the chunk.
    pub record: Record<'a>,
}

impl<'a> FetchedRecord<'a> {
    pub(crate) fn of_old(header: &BatchHeader, stored: &StoredRecord<'a>) -> Self {
        let StoredRecord { offset, timestamp, key, value, .. } = *stored;
        let record = Record { offset_delta: 0, timestamp_delta: 0, key, value, headers: &[], header_count: 0 };
        let timestamp_type = (header.magic > 0).then(|| header.timestamp_type());
        Self { offset, timestamp_ms: timestamp, timestamp_type, leader_epoch: LeaderEpoch(-1), record }
    }
}

/// Sort aborted transactions by their first offsets, the order in which a reader reaches them. Brokers list them in the
/// order of their markers, and a transaction that begins first may end last (Kafka's `CompletedFetch.abortedTransactions`).
pub fn by_first_offset(mut aborted: Vec<AbortedTransaction>) -> Vec<AbortedTransaction> {
    aborted.sort_unstable_by_key(|transaction| transaction.first_offset);
    aborted
}

/// Records and bytes (keys and values) counted in a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Records that a consumer may see.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Whole batches of one partition in a received response.
#[derive(Debug)]
pub struct Chunk {
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// The requested offset: records before it (of a batch that began earlier) are skipped.
    pub position: i64,
    /// The offset after the last record.
    pub next_offset: i64,
    /// Leader epoch of the last batch; -1 if the format has none.
    pub leader_epoch: LeaderEpoch,
    /// The end of the readable records at the time of the response.
    pub readable_end: i64,
    /// Aborted transactions, ascending by offset.
    pub aborted: Vec<AbortedTransaction>,
    pub(crate) check_crcs: bool,
    pub(crate) read_committed: bool,
    pub(crate) max_decompressed_bytes: usize,
    pub(crate) frame: Arc<Frame>,
    pub(crate) range: Range<usize>,
}

impl Chunk {
    /// The batches as the broker stores them.
    pub fn bytes(&self) -> &[u8] {
        &self.frame.bytes()[self.range.clone()]
    }

    pub(crate) fn corrupt(&self, offset: i64, detail: String) -> ClientError {
        ClientError::CorruptBatch { topic: self.topic.to_string(), partition: self.index, offset, detail }
    }
}

/// The time of a record of format v2, by its batch's timestamp type.
#[inline(always)]
pub fn timestamp(header: &BatchHeader, record: &Record<'_>) -> i64 {
    if header.timestamp_type() == TimestampType::LogAppendTime {
        header.max_timestamp
    } else {
        header.base_timestamp.wrapping_add(record.timestamp_delta)
    }
}
