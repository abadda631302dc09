//! The records of a chunk, parsed once and returned in parts.
//!
//! Owns the position of each record: in the receive buffer for uncompressed batches, else in a copy. Objects are created
//! only for the records that a program reads: the waiting ones stay small, and out of a garbage collector.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::{Chunk, FetchedRecord};
use crate::error::ClientError;
use pybroker_record::{LeaderEpoch, Record, TimestampType};

/// The records of one partition that a consumer may see, and the index of the next one.
#[derive(Debug)]
pub struct Received {
    chunk: Chunk,
    /// Keys, values and headers that are not in the chunk.
    copied: Vec<u8>,
    records: Vec<Place>,
    next: usize,
}

/// The position of a record's parts.
#[derive(Debug)]
struct Place {
    offset: i64,
    timestamp_ms: i64,
    timestamp_type: Option<TimestampType>,
    leader_epoch: LeaderEpoch,
    header_count: i32,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Range<usize>,
    is_copied: bool,
}

impl Received {
    /// Parse every record of a chunk up to the first invalid batch, whose error is returned with them. `scratch` keeps the
    /// memory for decompression between chunks.
    pub fn read(chunk: Chunk, scratch: &mut Vec<u8>) -> (Self, Option<ClientError>) {
        let (mut copied, mut records) = (Vec::new(), Vec::new());
        let read = chunk.for_each(scratch, |fetched| records.push(Place::of(&chunk, &mut copied, &fetched)));
        let damage = read.err();
        if let Some(ClientError::CorruptBatch { offset, .. }) = damage {
            // Records before the damage in its batch are dropped too: the batch is read again as a whole.
            records.retain(|place: &Place| place.offset < offset);
        }
        (Self { chunk, copied, records, next: 0 }, damage)
    }

    /// The chunk's batches.
    pub fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    /// The topic.
    pub fn topic(&self) -> &Arc<str> {
        &self.chunk.topic
    }

    /// The partition.
    pub fn index(&self) -> i32 {
        self.chunk.index
    }

    /// The number of records that were not returned yet.
    pub fn left(&self) -> usize {
        self.records.len() - self.next
    }

    /// Offset of the next record; `None` after the last.
    pub fn next_offset(&self) -> Option<i64> {
        self.records.get(self.next).map(|place| place.offset)
    }

    /// Return at most `most` records.
    pub fn take(&mut self, most: usize) -> impl ExactSizeIterator<Item = FetchedRecord<'_>> {
        let first = self.next;
        self.next += most.min(self.left());
        self.records[first..self.next].iter().map(|place| place.fetched(&self.chunk, &self.copied))
    }

    /// Return the last `count` records again.
    pub fn put_back(&mut self, count: usize) {
        self.next = self.next.saturating_sub(count);
    }
}

impl Place {
    fn of(chunk: &Chunk, copied: &mut Vec<u8>, fetched: &FetchedRecord<'_>) -> Self {
        let Record { key, value, headers, header_count, .. } = fetched.record;
        let bytes = chunk.bytes().as_ptr_range();
        // The parts of a record are adjacent, in one buffer or in the other.
        let is_copied = [key, value, Some(headers)]
            .into_iter()
            .flatten()
            .any(|part| !part.is_empty() && !bytes.contains(&part.as_ptr()));
        let mut place = |part: &[u8]| {
            let begin = match (is_copied, part.is_empty()) {
                (_, true) => 0,
                (false, false) => part.as_ptr().addr() - bytes.start.addr(),
                (true, false) => {
                    copied.extend_from_slice(part);
                    copied.len() - part.len()
                }
            };
            begin..begin + part.len()
        };
        Self {
            offset: fetched.offset,
            timestamp_ms: fetched.timestamp_ms,
            timestamp_type: fetched.timestamp_type,
            leader_epoch: fetched.leader_epoch,
            header_count,
            key: key.map(&mut place),
            value: value.map(&mut place),
            headers: place(headers),
            is_copied,
        }
    }

    fn fetched<'a>(&self, chunk: &'a Chunk, copied: &'a [u8]) -> FetchedRecord<'a> {
        let bytes = if self.is_copied { copied } else { chunk.bytes() };
        let part = |range: &Range<usize>| &bytes[range.clone()];
        FetchedRecord {
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            timestamp_type: self.timestamp_type,
            leader_epoch: self.leader_epoch,
            record: Record {
                offset_delta: 0,
                timestamp_delta: 0,
                key: self.key.as_ref().map(part),
                value: self.value.as_ref().map(part),
                headers: part(&self.headers),
                header_count: self.header_count,
            },
        }
    }
}
