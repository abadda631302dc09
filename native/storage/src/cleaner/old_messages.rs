//! The cleaning of messages of format v0 or v1: converts their retained records to a batch.
//!
//! Owns Kafka's rules since 4.0 (`MemoryRecords.filterTo`, `buildRetainedRecordsInto`). A single message becomes a
//! batch of its own. A wrapper becomes one batch in its codec, even if all records are retained. Offsets never
//! change. The batch begins and ends with its retained records, because these formats have no producer sequence
//! numbers to keep. Records of v0 get the timestamp -1.
//!
//! A tombstone stays as long as its segment is younger than `delete.retention.ms` (`Cleaner.legacyDeleteHorizonMs`),
//! and its batch gets a delete horizon. If the last message of the cleanable part is removed, an empty batch replaces
//! it; Kafka's cleaner fails there.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::offset_map::OffsetMap;
use super::selection::{Counts, Rules, Selection};
use crate::LogError;
use crate::segment::Segment;
use pybroker_record::varint::{put_varint, put_varlong, varlong_len};
use pybroker_record::{BatchHeader, Offset, RecordError, StoredRecord, visit_records};

/// The inputs of the decision whether a record is retained, and the counters of the pass.
pub(super) struct RecordFilter<'a> {
    pub(super) map: &'a OffsetMap,
    pub(super) rules: &'a Rules,
    pub(super) counts: &'a mut Counts,
}

/// A complete message or wrapper.
#[derive(Clone, Copy)]
pub(super) struct OldMessage<'a> {
    pub(super) header: &'a BatchHeader,
    pub(super) bytes: &'a [u8],
}

/// Encodes the retained records of a message or wrapper into `section`, which must be empty, and selects them.
/// Returns the header of the new batch. Without retained records, that header has only the last offset.
///
/// # Errors
/// When the message cannot be decompressed, is malformed, or has offsets that do not fit in a batch.
pub(super) fn select(
    check: RecordFilter<'_>,
    message: OldMessage<'_>,
    decompressed: &mut Vec<u8>,
    section: &mut Vec<u8>,
    selection: &mut Selection,
) -> Result<BatchHeader, RecordError> {
    let RecordFilter { map, rules, counts } = check;
    let OldMessage { header, bytes } = message;
    let mut batch = BatchHeader { magic: 2, ..*header };
    let mut misplaced = None;
    visit_records(header, bytes, decompressed, rules.max_decompressed, |record| {
        counts.records_read += 1;
        counts.without_key += u64::from(record.key.is_none() && record.offset <= map.latest());
        if !stays(map, rules, &record) {
            return ControlFlow::Continue(());
        }
        let is_first = selection.count() == 0;
        if is_first {
            (batch.base_offset, batch.base_timestamp) = (record.offset, record.timestamp);
        }
        let place = i32::try_from(record.offset.wrapping_sub(batch.base_offset)).ok();
        let Some(place) = place.filter(|&place| is_first || place > batch.last_offset_delta) else {
            misplaced = Some(record.offset);
            return ControlFlow::Break(());
        };
        batch.last_offset_delta = place;
        let (from, time) = (section.len(), record.timestamp.wrapping_sub(batch.base_timestamp));
        put_record(section, place, time, &record);
        selection.keep(from, section.len(), time, record.value.is_none());
        ControlFlow::Continue(())
    })?;
    let reason = "its offset is not behind that of the message before, or too far behind the first";
    misplaced.map_or(Ok(batch), |offset| Err(RecordError::Message { offset, reason }))
}

fn put_record(out: &mut Vec<u8>, place: i32, time: i64, record: &StoredRecord<'_>) {
    let part_len = |part: Option<&[u8]>| part.map_or(1, |bytes| varlong_len(bytes.len() as i64) + bytes.len());
    let parts = [record.key, record.value];
    let body = 1 + varlong_len(time) + varlong_len(place.into()) + parts.map(part_len).iter().sum::<usize>() + 1;
    put_varlong(out, body as i64);
    out.push(0);
    put_varlong(out, time);
    put_varint(out, place);
    for part in parts {
        put_varlong(out, part.map_or(-1, |bytes| bytes.len() as i64));
        out.extend_from_slice(part.unwrap_or_default());
    }
    put_varint(out, 0);
}

fn stays(map: &OffsetMap, rules: &Rules, record: &StoredRecord<'_>) -> bool {
    if record.offset > map.latest() {
        return true;
    }
    let Some(key) = record.key else { return false };
    let latest = map.get(map.hash(key)).is_none_or(|latest| record.offset >= latest);
    latest && (record.value.is_some() || rules.old_tombstones_stay)
}

/// Returns the modification time after which the tombstones of a segment must stay: `delete.retention.ms` before the
/// last change of the last cleaned segment. `None` if no tombstone may be removed.
pub(super) fn tombstone_horizon(
    segments: &[Arc<Segment>],
    first_dirty: Offset,
    delete_retention_ms: i64,
) -> Result<Option<SystemTime>, LogError> {
    let Some(last) = segments.iter().rev().find(|segment| segment.base_offset() < first_dirty.0) else {
        return Ok(None);
    };
    let retention = Duration::from_millis(delete_retention_ms.max(0) as u64);
    Ok(modified(last)?.checked_sub(retention))
}

/// Returns the modification time of a segment's file.
pub(super) fn modified(segment: &Segment) -> Result<SystemTime, LogError> {
    let modified = segment.file()?.metadata().and_then(|metadata| metadata.modified());
    modified.map_err(|error| segment.read_error(error))
}
