//! Rebuilds the state derived from a segment's batches: its end, its indexes, the producer state.
//!
//! Owns the walks over existing segments. [`super::recovery`] decides which segments are trusted and which are
//! scanned.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::LogError;
use crate::directory::log_dir::{LOG_SUFFIX, LogHome, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX};
use crate::index::index_map::Held;
use crate::index::time_index::TimestampOffset;
use crate::log::state::Tail;
use crate::producer::producer_snapshot;
use crate::producer::producer_state::ProducerStates;
use crate::segment::batch_scan::{BatchScan, HeaderScan, ScannedBatch};
use crate::segment::{IndexEntries, Segment};
use pybroker_record::{BatchHeader, EndMarker, HEADER_LEN, Offset, batch_crc};
use pybroker_sys::file::{self, read_full_at};

/// The end of a segment's batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentEnd {
    pub(crate) end_offset: i64,
    /// End of the last complete, valid batch.
    pub(crate) end_position: u64,
    pub(crate) tail: Tail,
    pub(crate) bytes_since_index: u64,
}

impl SegmentEnd {
    fn before_any_batch(segment: &Segment) -> Self {
        let offset = segment.base_offset();
        Self { end_offset: offset, end_position: 0, tail: Tail::empty(offset), bytes_since_index: 0 }
    }

    fn add(&mut self, header: &BatchHeader, position: u64) {
        let size = header.size() as u64;
        self.end_offset = header.next_offset();
        self.end_position = position + size;
        self.tail = Tail::at(header, position);
        self.bytes_since_index += size;
    }
}

/// The result of reading the batches after a segment's last index entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundEnd {
    pub(crate) end: SegmentEnd,
    /// Whether the batches end exactly at the end of the file.
    pub(crate) is_whole: bool,
    /// Whether the last entry of the time index has the timestamp of its batch. Also true if the batch is damaged.
    pub(crate) is_time_sound: bool,
}

impl FoundEnd {
    /// Returns the end, if the batches end exactly at the end of the file.
    pub(crate) fn whole(self) -> Option<SegmentEnd> {
        self.is_whole.then_some(self.end)
    }
}

/// Finds the end of a trusted segment from its last index entry, and updates its largest timestamp. `None` if the
/// entry does not point to its batch.
pub(crate) fn find_end(segment: &Segment) -> Result<Option<FoundEnd>, LogError> {
    let mut end = SegmentEnd::before_any_batch(segment);
    let entry = segment.time_index.last();
    let mut largest = entry;
    let mut expected_last = None;
    let mut time = TimeCheck { entry, sound: (entry.timestamp < 0).then_some(true), behind_other_batches: false };
    if let Some((last_offset, position)) = segment.offset_index.last() {
        expected_last = Some(last_offset);
        time.behind_other_batches = true;
        end.end_position = position;
    }
    if segment.size() > 0 {
        let file = segment.file()?;
        let mut scan = HeaderScan::ahead(&file, segment.size());
        while let Some(header) = scan.header_at(end.end_position).map_err(|error| segment.read_error(error))? {
            if expected_last.take().is_some_and(|last| last != header.last_offset()) {
                return Ok(None);
            }
            time.see(&header);
            end.add(&header, end.end_position);
            if header.max_timestamp > largest.timestamp {
                largest = TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset() };
            }
        }
    }
    segment.set_largest_timestamp(largest);
    if expected_last.is_some() {
        return Ok(None);
    }
    let is_whole = end.end_position == segment.size();
    let is_time_sound = match time.sound {
        Some(sound) => sound,
        None => !is_whole || is_time_entry_sound(segment, entry)?,
    };
    Ok(Some(FoundEnd { end, is_whole, is_time_sound }))
}

/// Compares the last entry of a time index with its batch, if a walk reads the batch anyway.
struct TimeCheck {
    entry: TimestampOffset,
    /// The result of the comparison, once it is known.
    sound: Option<bool>,
    /// Whether the segment has batches before the next one that the walk does not read.
    behind_other_batches: bool,
}

impl TimeCheck {
    fn see(&mut self, header: &BatchHeader) {
        let TimestampOffset { timestamp, offset } = self.entry;
        // Of consecutive batches, the first one that reaches the offset contains it.
        let may_be_earlier = self.behind_other_batches && header.base_offset > offset;
        if self.sound.is_none() && header.last_offset() >= offset && !may_be_earlier {
            self.sound = Some(header.max_timestamp == timestamp);
        }
        self.behind_other_batches = may_be_earlier;
    }
}

/// Returns whether the batch of a time index's last entry has the entry's timestamp. True if the batch is damaged.
fn is_time_entry_sound(segment: &Segment, entry: TimestampOffset) -> Result<bool, LogError> {
    match segment.find_batch(entry.offset, segment.size()) {
        Ok(found) => Ok(found.is_some_and(|found| found.header.max_timestamp == entry.timestamp)),
        Err(LogError::Corrupt { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Reads a segment from its start, checks every batch and rebuilds its indexes. Stops at the first incomplete or
/// invalid batch. Calls `each` with every batch.
pub(crate) fn scan(
    segment: &Segment,
    index_interval_bytes: u32,
    mut each: impl FnMut(&ScannedBatch<'_>) -> Result<(), LogError>,
) -> Result<SegmentEnd, LogError> {
    let mut end = SegmentEnd::before_any_batch(segment);
    let file = segment.file()?;
    let mut scan = BatchScan::new(&file, 0, segment.size());
    while let Some(batch) = scan.next().map_err(|error| segment.read_error(error))? {
        let header = batch.header;
        let in_order = header.base_offset >= end.end_offset
            && header.last_offset_delta >= 0
            && header.last_offset() - segment.base_offset() <= i64::from(i32::MAX);
        if !in_order || batch_crc(batch.bytes) != header.crc {
            break;
        }
        let index_due = end.bytes_since_index > u64::from(index_interval_bytes);
        if index_due {
            segment.offset_index.map.reserve(1)?;
            segment.time_index.map.reserve(1)?;
            end.bytes_since_index = 0;
        }
        segment.add_batch(&header, header.last_offset(), batch.position, index_due);
        end.add(&header, batch.position);
        each(&batch)?;
    }
    segment.offset_index.map.end_anew();
    segment.time_index.map.end_anew();
    Ok(end)
}

/// Returns the marker in a batch with a valid checksum; `None`, with a warning, for a malformed control record.
pub(crate) fn marker_of(segment: &Segment, header: &BatchHeader, bytes: &[u8]) -> Option<EndMarker> {
    EndMarker::parse(header, bytes).unwrap_or_else(|error| {
        log::warn!("{}: control batch at offset {}: {error}", segment.path().display(), header.base_offset);
        None
    })
}

/// Returns the content of a segment's index files if their ends are sound; `None` otherwise. With `without_offsets`,
/// the offset index is taken as empty.
///
/// # Errors
/// `Exhausted` when the files cannot be read for lack of resources. They may be fine.
pub(crate) fn check_index_files(
    home: &Arc<LogHome>,
    base_offset: i64,
    log_size: u64,
    without_offsets: bool,
) -> Result<Option<IndexEntries>, LogError> {
    if log_size == 0 {
        // The content does not matter: entries are written from the beginning.
        return Ok(Some(IndexEntries::NOTHING));
    }
    let offsets = if without_offsets {
        Some(Held { completed: true, ..Held::NOTHING })
    } else {
        read_held::<2>(home, base_offset, OFFSET_INDEX_SUFFIX)?
    };
    let Some(offsets) = offsets else { return Ok(None) };
    let Some(times) = read_held::<3>(home, base_offset, TIME_INDEX_SUFFIX)? else { return Ok(None) };
    // The first batch has no offset entry, so neither word of an entry is ever zero.
    let [relative, position] = offsets.last;
    let offsets_sound = offsets.entries == 0
        || relative > 0 && relative <= i32::MAX as u32 && position > 0 && u64::from(position) < log_size;
    let [high, low, relative] = times.last;
    let timestamp = i64::from(high as i32) << 32 | i64::from(low);
    let times_sound =
        relative <= i32::MAX as u32 && timestamp >= 0 && (times.entries <= 1 || (timestamp > 0 && relative > 0));
    // A log whose records have timestamps has at least one entry.
    let times_lost = times.entries == 0 && first_timestamp(home, base_offset) >= 0;
    Ok((offsets_sound && times_sound && !times_lost).then_some(IndexEntries { offsets, times, aborted: 0 }))
}

fn first_timestamp(home: &Arc<LogHome>, base_offset: i64) -> i64 {
    let mut bytes = [0; HEADER_LEN];
    let read =
        file::open(&home.segment_file(base_offset, LOG_SUFFIX)).and_then(|file| read_full_at(&file, &mut bytes, 0));
    let header = read.ok().and_then(|read| BatchHeader::parse_stored(&bytes[..read]).ok());
    header.map_or(-1, |header| header.max_timestamp)
}

/// Returns the content of an index file; `None` if the file is absent, has a torn entry, or its last two entries do
/// not ascend.
fn read_held<const WORDS: usize>(
    home: &Arc<LogHome>,
    base_offset: i64,
    suffix: &str,
) -> Result<Option<Held<WORDS>>, LogError> {
    let path = home.segment_file(base_offset, suffix);
    match file::open(&path) {
        Ok(file) => Ok(read_end(&file)),
        Err(error) if file::is_exhaustion(&error) => Err(LogError::io(&path)(error)),
        Err(_) => Ok(None),
    }
}

fn read_end<const WORDS: usize>(opened: &File) -> Option<Held<WORDS>> {
    let entry_bytes = WORDS * 4;
    let mut page = [0; file::PAGE];
    let (front, len) = file::read_front(opened, &mut page).ok()?;
    if !len.is_multiple_of(entry_bytes as u64) {
        return None;
    }
    let entries = u32::try_from(len / entry_bytes as u64).ok()?;
    let mut bytes = [0; 24];
    let count = entries.min(2) as usize * entry_bytes;
    let last_two = if len == front.len() as u64 {
        &front[front.len() - count..]
    } else {
        let read = read_full_at(opened, &mut bytes[..count], len - count as u64).ok()?;
        (read == count).then_some(&bytes[..count])?
    };
    let (before, last) = last_two.split_at(last_two.len().saturating_sub(entry_bytes));
    // Big-endian bytes compare like their numbers. Entries ascend by all words except the last.
    let key = entry_bytes - 4;
    (before.is_empty() || before[..key] < last[..key]).then(|| Held::completed(entries, last))
}

/// Returns the newest readable snapshot at or below `limit`, and its offset. Removes damaged snapshots with a
/// warning. Without a snapshot, returns the state before the first record, and -1.
pub(crate) fn latest_snapshot(
    directory: &Path,
    snapshots: &[i64],
    limit: i64,
    warnings: &mut Vec<String>,
) -> Result<(ProducerStates, i64), LogError> {
    for &offset in snapshots.iter().rev().filter(|&&offset| offset <= limit) {
        match producer_snapshot::read(directory, offset) {
            Ok(states) => return Ok((states, offset)),
            Err(LogError::Corrupt { path, reason }) => {
                warnings
                    .push(format!("{}: {reason}; the producers' state is read from the log instead", path.display()));
                producer_snapshot::remove(directory, offset);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((ProducerStates::default(), -1))
}

/// Applies the batches of these segments from the end of the producer state up to `to`. Does not change indexes.
pub(crate) fn replay(producers: &mut ProducerStates, segments: &[Arc<Segment>], to: i64) -> Result<(), LogError> {
    walk_batches(segments, Offset(producers.end_offset())..Offset(to), |segment, header, position| {
        let marker = if header.is_control() && header.has_producer_id() {
            let mut bytes = vec![0; header.size()];
            let read = read_full_at(&*segment.file()?, &mut bytes, position);
            read.map_err(|error| segment.read_error(error))?;
            marker_of(segment, header, &bytes)
        } else {
            None
        };
        producers.replay(header, marker);
        Ok(())
    })?;
    producers.advance_to(to);
    Ok(())
}

/// Calls `each` with the header and the position of every batch in a range of offsets.
pub(crate) fn walk_batches(
    segments: &[Arc<Segment>],
    offsets: Range<Offset>,
    mut each: impl FnMut(&Segment, &BatchHeader, u64) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let (from, to) = (offsets.start.0, offsets.end.0);
    let first = segments.partition_point(|segment| segment.base_offset() <= from).saturating_sub(1);
    if from >= to {
        return Ok(());
    }
    for segment in segments[first..].iter().take_while(|segment| segment.base_offset() < to) {
        let Some(found) = segment.find_batch(from, segment.size())? else { continue };
        let mut position = found.position;
        let file = segment.file()?;
        let mut scan = HeaderScan::new(&file, segment.size());
        while let Some(header) = scan.header_at(position).map_err(|error| segment.read_error(error))? {
            if header.base_offset >= to {
                return Ok(());
            }
            each(segment, &header, position)?;
            position += header.size() as u64;
        }
    }
    Ok(())
}

/// Restores the producer state at `end_offset` from the newest snapshot at or below it and the batches after the
/// snapshot. Batches below the log start are used too if they exist, for the producers' sequence numbers. Also
/// returns the offset of the snapshot, -1 for none.
pub(crate) fn restore_producers(
    directory: &Path,
    snapshots: &[i64],
    segments: &[Arc<Segment>],
    end_offset: i64,
    warnings: &mut Vec<String>,
) -> Result<(ProducerStates, i64), LogError> {
    let (mut producers, snapshot) = latest_snapshot(directory, snapshots, end_offset, warnings)?;
    replay(&mut producers, segments, end_offset)?;
    Ok((producers, snapshot))
}
