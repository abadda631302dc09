//! Lookups: records by timestamp, and offsets by leader epoch.
//!
//! Owns the log's part of ListOffsets and OffsetForLeaderEpoch; the caller applies the watermarks. A time index entry
//! leads to a batch, and the records of the batch to the exact offset.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::index::time_index::TimestampOffset;
use crate::log::Log;
use crate::log::state::View;
use crate::segment::Segment;
use crate::segment::batch_scan::{BatchScan, ScannedBatch};
use crate::{LogError, ReadError};
use pybroker_record::{BatchHeader, Offset, visit_records};

/// A record found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampAndOffset {
    /// The record's timestamp, ms.
    pub timestamp: i64,
    /// The record's offset.
    pub offset: i64,
    /// Leader epoch of the record's batch; -1 when unknown.
    pub leader_epoch: i32,
}

impl Log {
    /// Returns the first record with a timestamp of at least `target_ms`; `None` when there is none.
    ///
    /// # Errors
    /// `Io` when a segment cannot be read.
    pub fn find_timestamp(&self, target_ms: i64) -> Result<Option<TimestampAndOffset>, ReadError> {
        self.look(|view| self.find_timestamp_in(view, target_ms))
    }

    /// Returns the first record with the largest timestamp of the log; `None` when no record has a timestamp.
    ///
    /// # Errors
    /// `Io` when a segment cannot be read.
    pub fn max_timestamp(&self) -> Result<Option<TimestampAndOffset>, ReadError> {
        self.look(|view| self.max_timestamp_in(view))
    }

    /// Runs `what` on a view of the log. Retries if it failed and the segments changed meanwhile.
    fn look<T>(&self, what: impl Fn(&View) -> Result<T, LogError>) -> Result<T, ReadError> {
        loop {
            let view = self.view.load_full();
            match what(&view) {
                Err(_) if !Arc::ptr_eq(&view.segments, &self.view.load().segments) => {}
                looked => return Ok(looked?),
            }
        }
    }

    fn find_timestamp_in(&self, view: &View, target_ms: i64) -> Result<Option<TimestampAndOffset>, LogError> {
        let max_bytes = self.config.load().max_decompressed_bytes;
        for (index, segment) in view.segments.as_slice().iter().enumerate() {
            if segment.largest_timestamp().timestamp < target_ms {
                continue;
            }
            let limit = view.limit_of(index);
            let entry = segment.time_index.floor(target_ms)?;
            let wanted = |at: TimestampOffset| at.timestamp >= target_ms && at.offset >= view.log_start_offset;
            let start = start_behind(segment, entry, Offset(view.log_start_offset), limit)?;
            let found = search(segment, start, limit, max_bytes, |h| h.max_timestamp >= target_ms, wanted)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn max_timestamp_in(&self, view: &View) -> Result<Option<TimestampAndOffset>, LogError> {
        let max_bytes = self.config.load().max_decompressed_bytes;
        let mut best = None;
        for (index, segment) in view.segments.as_slice().iter().enumerate() {
            let largest = segment.largest_timestamp();
            // Of equal timestamps the earliest record wins, as in Kafka.
            if largest.timestamp < 0 || best.is_some_and(|best: TimestampAndOffset| largest.timestamp <= best.timestamp)
            {
                continue;
            }
            let limit = view.limit_of(index);
            let found = if segment.base_offset() < view.log_start_offset {
                largest_from(segment, view.log_start_offset, limit, max_bytes)?
            } else {
                let start = segment.offset_index.floor_position(largest.offset)?;
                let carries = |header: &BatchHeader| header.max_timestamp == largest.timestamp;
                search(segment, start, limit, max_bytes, carries, |at| at.timestamp == largest.timestamp)?
            };
            best = found.or(best);
        }
        if best.is_some() { Ok(best) } else { self.first_without_timestamp(view, max_bytes) }
    }

    /// Returns the first record of a log whose records have no timestamps, with the timestamp -1, as Apache Kafka
    /// does. Records of message format 0 cannot have a timestamp, and are skipped.
    fn first_without_timestamp(&self, view: &View, max_bytes: usize) -> Result<Option<TimestampAndOffset>, LogError> {
        let wanted = |at: TimestampOffset| at.offset >= view.log_start_offset;
        for (index, segment) in view.segments.as_slice().iter().enumerate() {
            let limit = view.limit_of(index);
            let from = view.log_start_offset.max(segment.base_offset());
            let Some(first) = segment.find_batch(from, limit)? else { continue };
            // At most one segment of message format 0 is read, since none of its records can be returned.
            if index > 0 && first.header.magic == 0 {
                continue;
            }
            let found = search(segment, first.position, limit, max_bytes, |header| header.magic > 0, wanted)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the latest leader epoch of this log.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.epochs.lock().epochs.latest()
    }

    /// Returns the largest known epoch at or below `epoch` and its end offset (OffsetForLeaderEpoch); `(-1, -1)` when
    /// unknown.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        let log_end_offset = self.log_end_offset();
        self.epochs.lock().epochs.end_offset_for(epoch, log_end_offset)
    }

    /// Assigns `epoch` to the log end, when this node becomes leader. A known epoch changes nothing. Later appends
    /// with an older epoch are rejected.
    ///
    /// # Errors
    /// `Io` when the epoch file cannot be replaced.
    pub fn begin_epoch(&self, epoch: i32) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        let end_offset = self.log_end_offset();
        let mut file = self.epochs.lock();
        let mut epochs = file.epochs.clone();
        if epochs.latest().is_none_or(|latest| epoch > latest) && epochs.assign(epoch, end_offset) {
            epochs.write(&self.home.path(), false)?;
            file.epochs = epochs;
            file.dirty = true;
        }
        writer.oldest_epoch = writer.oldest_epoch.max(epoch);
        Ok(())
    }

    /// Rejects later appends with an epoch below `epoch`, because this node is not the leader any more. An append in
    /// progress is in the log when this returns.
    pub fn fence_leaders_before(&self, epoch: i32) {
        let mut writer = self.writer.lock();
        writer.oldest_epoch = writer.oldest_epoch.max(epoch);
    }
}

/// Returns the position where a search by timestamp starts: the batch of a time index entry, or the batch of
/// `log_start` if that is later.
///
/// The index is a hint. If the batch does not have the entry's timestamp, the entry is damaged and the whole segment
/// is searched. A negative timestamp stands for no entry: the whole segment is searched too.
fn start_behind(
    segment: &Segment,
    entry: TimestampOffset,
    Offset(log_start): Offset,
    limit: u64,
) -> Result<u64, LogError> {
    let offset = if entry.timestamp < 0 { segment.base_offset() } else { entry.offset };
    let Some(found) = segment.find_batch(offset, limit)? else { return Ok(0) };
    if entry.timestamp >= 0 && found.header.max_timestamp != entry.timestamp {
        return Ok(0);
    }
    if log_start <= offset {
        return Ok(found.position);
    }
    Ok(segment.find_batch(log_start, limit)?.map_or(limit, |found| found.position))
}

/// Returns the record with the largest timestamp at `offset` or later. The segment's own largest timestamp may be of
/// a record below the log start.
fn largest_from(
    segment: &Segment,
    offset: i64,
    limit: u64,
    max_bytes: usize,
) -> Result<Option<TimestampAndOffset>, LogError> {
    let (mut best, mut beyond) = (None, -1);
    loop {
        let start = segment.offset_index.floor_position(offset)?;
        let later = |at: TimestampOffset| at.offset >= offset && at.timestamp > beyond;
        match search(segment, start, limit, max_bytes, |header| header.max_timestamp > beyond, later)? {
            Some(found) => (best, beyond) = (Some(found), found.timestamp),
            None => return Ok(best),
        }
    }
}

/// Returns the first `wanted` record in those batches from `start` on that may contain one.
fn search(
    segment: &Segment,
    start: u64,
    limit: u64,
    max_bytes: usize,
    may_contain: impl Fn(&BatchHeader) -> bool,
    wanted: impl Fn(TimestampOffset) -> bool,
) -> Result<Option<TimestampAndOffset>, LogError> {
    let mut scratch = Vec::new();
    let file = segment.file()?;
    let mut scan = BatchScan::new(&file, start, limit);
    while let Some(batch) = scan.next().map_err(|error| segment.read_error(error))? {
        if !may_contain(&batch.header) {
            continue;
        }
        let found = search_batch(&batch, &mut scratch, max_bytes, &wanted);
        let corrupt = |reason| LogError::Corrupt { path: segment.path(), reason };
        if let Some(TimestampOffset { timestamp, offset }) = found.map_err(corrupt)? {
            return Ok(Some(TimestampAndOffset {
                timestamp,
                offset,
                leader_epoch: batch.header.partition_leader_epoch,
            }));
        }
    }
    Ok(None)
}

fn search_batch(
    batch: &ScannedBatch<'_>,
    scratch: &mut Vec<u8>,
    max_bytes: usize,
    wanted: impl Fn(TimestampOffset) -> bool,
) -> Result<Option<TimestampOffset>, String> {
    let ScannedBatch { header, bytes, position } = batch;
    let mut found = None;
    let visited = visit_records(header, bytes, scratch, max_bytes, |record| {
        let at = TimestampOffset { timestamp: record.timestamp, offset: record.offset };
        if wanted(at) {
            found = Some(at);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    visited.map(|()| found).map_err(|error| format!("batch at position {position}: {error}"))
}
