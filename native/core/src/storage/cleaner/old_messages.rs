//! What becomes of a message of format v0 or v1, which an old Kafka has left: it goes, it stays as it is or, a wrapper of
//! which only some messages stay, it is wrapped anew in its format and codec.
//!
//! The rules of Kafka before 4.0 (`MemoryRecords.filterTo`, `buildRetainedRecordsInto`), which has made batches of all that
//! stays since: offsets never change, and the new wrapper has the offset of the last message that stays. These formats
//! know no producers and no delete horizon; a tombstone stays as long as its segment is younger than
//! `delete.retention.ms` (`Cleaner.legacyDeleteHorizonMs`). Nor do they know an empty batch: the last one of the cleaned
//! part goes as others do.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::filter::{Counts, Rules};
use super::offset_map::OffsetMap;
use crate::record::{
    BatchHeader, Compression, MessageSetBuilder, NewMessage, RecordError, StoredRecord, visit_records,
};
use crate::storage::LogError;
use crate::storage::segment::Segment;

/// Appends to `out` what stays of a whole message or wrapper; the header of that, `None` when nothing does.
pub(super) fn filter(
    (map, rules, counts): (&OffsetMap, &Rules, &mut Counts),
    (header, bytes): (&BatchHeader, &[u8]),
    unfolded: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Option<BatchHeader>, RecordError> {
    let codec = header.compression()?;
    let mut builder = MessageSetBuilder::new(header.magic, codec, header.timestamp_type());
    let (mut read, mut kept) = (0, 0);
    visit_records(header, bytes, unfolded, rules.max_unfolded, |record| {
        read += 1;
        counts.without_key += u64::from(record.key.is_none() && record.offset <= map.latest());
        if stays(map, rules, &record) {
            kept += 1;
            if codec != Compression::None {
                let StoredRecord { offset, timestamp, key, value, .. } = record;
                builder.append(&NewMessage { offset, timestamp, key, value });
            }
        }
        ControlFlow::Continue(())
    })?;
    counts.records_read += read;
    counts.records_kept += kept;
    if kept == 0 {
        return Ok(None);
    }
    if kept == read {
        out.extend_from_slice(bytes);
        return Ok(Some(*header));
    }
    let begin = out.len();
    builder.finish(out)?;
    BatchHeader::parse_stored(&out[begin..]).map(Some)
}

fn stays(map: &OffsetMap, rules: &Rules, record: &StoredRecord<'_>) -> bool {
    if record.offset > map.latest() {
        return true;
    }
    let Some(key) = record.key else { return false };
    let latest = map.get(map.hash(key)).is_none_or(|latest| record.offset >= latest);
    latest && (record.value.is_some() || rules.old_tombstones_stay)
}

/// Since when a segment must be untouched for its old tombstones to go: `delete.retention.ms` before the last change of the
/// last segment that was cleaned before; `None` for never.
pub(super) fn tombstone_horizon(
    segments: &[Arc<Segment>],
    first_dirty: i64,
    delete_retention_ms: i64,
) -> Result<Option<SystemTime>, LogError> {
    let Some(last) = segments.iter().rev().find(|segment| segment.base_offset() < first_dirty) else { return Ok(None) };
    let retention = Duration::from_millis(delete_retention_ms.max(0) as u64);
    Ok(modified(last)?.checked_sub(retention))
}

/// When a segment's file was last changed.
pub(super) fn modified(segment: &Segment) -> Result<SystemTime, LogError> {
    let modified = segment.file()?.metadata().and_then(|metadata| metadata.modified());
    modified.map_err(|error| segment.read_error(error))
}
