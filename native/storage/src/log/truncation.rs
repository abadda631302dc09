//! Truncation: removes the end of the log, as a follower does to agree with its leader.
//!
//! Owns the order of steps. A reader with an older view finds the file shorter than expected, and retries. A crash at
//! any point leaves a log that ends at the old end or earlier, without a hole. Segments are removed from the last one
//! on, and the removal is on the device before new records are appended.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::LogError;
use crate::directory::leader_epochs::LeaderEpochs;
use crate::log::Log;
use crate::log::state::{Tail, View, Writer};
use crate::producer::producer_snapshot;
use crate::producer::producer_state::ProducerStates;
use crate::recovery::rebuild::{self, FoundEnd};
use crate::segment::batch_scan::BatchScan;
use crate::segment::segment_list::SegmentList;
use crate::segment::{FoundBatch, IndexEntries, Segment};
use pybroker_record::{Offset, first_offset};
use pybroker_sys::file;

/// The point where a log is truncated.
struct Cut {
    /// Index of the segment that becomes the last one.
    kept: usize,
    end_offset: i64,
    end_position: u64,
    /// The entries that remain in its indexes.
    entries: IndexEntries,
}

impl Log {
    /// Removes every record at or above `offset`. A batch that contains `offset` is removed as a whole, so the log
    /// may end earlier. If the log ends before `offset`, no record is removed. If `offset` is below the log start,
    /// all records are removed.
    ///
    /// Leader epochs that begin at the new log end are removed too: a leader that appended no record may have
    /// assigned an epoch that no other log has (KIP-279).
    ///
    /// # Errors
    /// `Io` with the path that failed; the log is then offline.
    pub fn truncate_to(&self, offset: Offset, now_ms: i64) -> Result<(), LogError> {
        let _no_cleaning = self.end_cleaning();
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        let view = self.view.load_full();
        if offset.0 >= view.end_offset {
            return self.change_epochs(|epochs| epochs.truncate_from_end(view.end_offset));
        }
        if offset.0 < view.log_start_offset {
            return self.restart_at(&mut writer, offset, now_ms).map_err(|error| self.failed(error));
        }
        let cut = self.plan_cut(&view, offset.0)?;
        self.cut(&mut writer, &view, cut, now_ms).map_err(|error| self.failed(error))
    }

    /// Removes all records. The log then starts and ends at `offset`.
    ///
    /// # Errors
    /// `Io` with the path that failed; the log is then offline.
    pub fn truncate_fully_and_start_at(&self, offset: Offset, now_ms: i64) -> Result<(), LogError> {
        let _no_cleaning = self.end_cleaning();
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        self.restart_at(&mut writer, offset, now_ms).map_err(|error| self.failed(error))
    }

    /// Computes where the log will end. Changes nothing.
    fn plan_cut(&self, view: &View, offset: i64) -> Result<Cut, LogError> {
        let kept = view.segments.floor(offset);
        let segments = view.segments.as_slice();
        let old = &segments[kept];
        let limit = view.limit_of(kept);
        let (end_offset, end_position) = match old.find_batch(offset, limit)? {
            Some(found) => {
                let first = self.first_offset_at(old, &found, limit)?;
                (first.min(offset).max(view.log_start_offset), found.position)
            }
            None => (offset, limit),
        };
        let entries = IndexEntries {
            offsets: old.offset_index.map.held_below(old.offset_index.entries_below(end_offset)?)?,
            times: old.time_index.map.held_below(old.time_index.entries_below(end_offset)?)?,
            aborted: old.txn_index.entries_below(end_offset)?,
        };
        Ok(Cut { kept, end_offset, end_position, entries })
    }

    fn cut(&self, writer: &mut Writer, view: &View, cut: Cut, now_ms: i64) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let Cut { kept, end_offset, end_position, entries } = cut;
        let segments = view.segments.as_slice();
        let old = &segments[kept];
        let config = self.config.load();
        let segment = Segment::existing(
            Arc::clone(&self.home),
            old.base_offset(),
            end_position,
            entries,
            config.segment_index_bytes,
        );
        segment.txn_index.trim()?;
        let end = rebuild::find_end(&segment)?.and_then(FoundEnd::whole);
        self.recovery_point.fetch_min(end_offset, Ordering::AcqRel);
        let list = SegmentList::new(segments[..kept].iter().cloned().chain([Arc::new(segment)]).collect());
        self.view.store(Arc::new(View {
            segments: Arc::new(list),
            log_start_offset: view.log_start_offset,
            end_offset,
            end_position,
            tail: end.map_or(Tail { position: end_position, ..Tail::empty(end_offset) }, |end| end.tail),
        }));
        self.forget_hole(end_offset);
        self.remove_snapshots_beyond(end_offset)?;
        remove_from_the_end(&segments[kept + 1..])?;
        let directory = self.home.path();
        file::sync_directory(&directory).map_err(LogError::io(&directory))?;
        let path = old.path();
        let file = old.file()?;
        file::set_len(&file, end_position).and_then(|()| file::sync_data(&file)).map_err(LogError::io(&path))?;
        writer.begin_segment(now_ms);
        writer.bytes_since_index = end.map_or(end_position, |end| end.bytes_since_index);
        self.change_epochs(|epochs| epochs.truncate_from_end(end_offset))?;
        self.reload_producers(writer, end_offset)
    }

    /// Returns the offset of a batch's first record.
    fn first_offset_at(&self, segment: &Segment, found: &FoundBatch, limit: u64) -> Result<i64, LogError> {
        let file = segment.file()?;
        let mut scan = BatchScan::by_chunks(&file, found.position, limit, found.header.size());
        let batch = match found.header.magic {
            2.. => None,
            _ => scan.next().map_err(|error| segment.read_error(error))?,
        };
        let Some(batch) = batch else { return Ok(found.header.base_offset) };
        let max = self.config.load().max_decompressed_bytes;
        first_offset(&batch.header, batch.bytes, &mut Vec::new(), max)
            .map_err(|error| LogError::Corrupt { path: segment.path(), reason: error.to_string() })
    }

    fn restart_at(&self, writer: &mut Writer, offset: Offset, now_ms: i64) -> Result<(), LogError> {
        let Offset(offset) = offset;
        let _flushing = self.flushing.lock();
        let view = self.view.load_full();
        self.remove_snapshots_beyond(-1)?;
        remove_from_the_end(view.segments.as_slice())?;
        let directory = self.home.path();
        file::sync_directory(&directory).map_err(LogError::io(&directory))?;
        let segment = Segment::create(Arc::clone(&self.home), offset, self.config.load().segment_index_bytes)?;
        self.recovery_point.store(offset, Ordering::Release);
        self.directory_dirty.store(true, Ordering::Release);
        self.view.store(Arc::new(View {
            segments: Arc::new(SegmentList::new(vec![Arc::new(segment)])),
            log_start_offset: offset,
            end_offset: offset,
            end_position: 0,
            tail: Tail::empty(offset),
        }));
        self.forget_hole(i64::MIN);
        writer.begin_segment(now_ms);
        writer.producers = ProducerStates::restored([], offset);
        writer.verifications.clear();
        writer.snapshot_offset = -1;
        self.publish_transactions(writer);
        self.change_epochs(|epochs| {
            let had_any = epochs.latest().is_some();
            *epochs = LeaderEpochs::default();
            had_any
        })
    }

    /// Clears the hole of a log that ends at or below it.
    fn forget_hole(&self, end_offset: i64) {
        if end_offset <= self.hole.load(Ordering::Acquire) {
            self.hole.store(i64::MAX, Ordering::Release);
        }
    }

    fn remove_snapshots_beyond(&self, end_offset: i64) -> Result<(), LogError> {
        let directory = self.home.path();
        for snapshot in producer_snapshot::offsets(&directory)?.into_iter().filter(|&at| at > end_offset) {
            producer_snapshot::remove(&directory, snapshot);
        }
        Ok(())
    }

    fn reload_producers(&self, writer: &mut Writer, end_offset: i64) -> Result<(), LogError> {
        let (view, directory) = (self.view.load_full(), self.home.path());
        let snapshots = producer_snapshot::offsets(&directory)?;
        let (producers, snapshot_offset) =
            rebuild::restore_producers(&directory, &snapshots, view.segments.as_slice(), end_offset, &mut Vec::new())?;
        writer.producers = producers;
        writer.verifications.clear();
        writer.snapshot_offset = snapshot_offset;
        self.publish_transactions(writer);
        Ok(())
    }

    /// Applies `change` to the leader epochs, and writes the file if `change` returns true.
    pub(crate) fn change_epochs(&self, change: impl FnOnce(&mut LeaderEpochs) -> bool) -> Result<(), LogError> {
        let mut file = self.epochs.lock();
        if change(&mut file.epochs) {
            file.dirty = true;
            file.epochs.write(&self.home.path(), false)?;
        }
        Ok(())
    }
}

/// Removes segments from the last one on, so that a crash leaves the first ones.
fn remove_from_the_end(segments: &[Arc<Segment>]) -> Result<(), LogError> {
    segments.iter().rev().try_for_each(|segment| segment.remove())
}
