//! Rolling: starts a new segment when the active one is full or old.
//!
//! Owns Kafka's conditions (size, age, full index, relative offset too large) and the order of steps. The new segment
//! is created before the old one is sealed. When either step fails, the log continues with the old segment.

use std::sync::Arc;

use crate::log::Log;
use crate::log::append::Incoming;
use crate::log::state::{Tail, View, Writer};
use crate::producer::producer_snapshot;
use crate::segment::Segment;
use crate::segment::batch_scan::HeaderScan;
use crate::{LogConfig, LogError};

/// Largest position and relative offset of an index entry.
const LARGEST_RELATIVE: u64 = i32::MAX as u64;
/// The largest gap that a new segment may start with, so that a batch fits after it.
const LARGEST_GAP: i64 = i32::MAX as i64 / 2;

impl Log {
    /// Rolls the log, unless the active segment is empty.
    ///
    /// # Errors
    /// `Io`. The log then continues with the old segment.
    pub fn roll(&self, now_ms: i64) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        self.begin_segment(&mut writer, now_ms)
    }

    /// Rolls the log when the first record of the active segment is older than `age_ms`, and returns whether it did.
    /// Appends check the age themselves: this is for a log without appends.
    ///
    /// # Errors
    /// `Io`. The log then continues with the old segment.
    pub fn roll_when_older(&self, age_ms: i64, now_ms: i64) -> Result<bool, LogError> {
        let view = self.view.load();
        if view.end_position == 0 {
            return Ok(false);
        }
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        let view = self.view.load();
        let first = first_timestamp(&mut writer, &view)?;
        let begun = if first >= 0 { first } else { writer.created_ms };
        if view.end_position == 0 || now_ms.saturating_sub(begun) <= age_ms {
            return Ok(false);
        }
        self.begin_segment(&mut writer, now_ms)?;
        Ok(true)
    }

    /// Rolls the log if the append of these batches requires it.
    pub(crate) fn maybe_roll(
        &self,
        writer: &mut Writer,
        config: &LogConfig,
        incoming: Incoming,
        now_ms: i64,
    ) -> Result<bool, LogError> {
        let view = self.view.load();
        if view.end_position == 0 || !roll_is_due(writer, config, &view, incoming, now_ms)? {
            return Ok(false);
        }
        self.begin_segment(writer, now_ms)?;
        Ok(true)
    }

    pub(crate) fn begin_segment(&self, writer: &mut Writer, now_ms: i64) -> Result<(), LogError> {
        let view = self.view.load_full();
        if view.end_position == 0 {
            return Ok(());
        }
        let base = next_base(&view);
        let segment = Segment::create(Arc::clone(&self.home), base, self.config.load().segment_index_bytes)?;
        let old = view.segments.active();
        // The recovery point may lie in the gap, above the new segment's base offset. Recovery then trusts the old
        // segment, so it must be durable.
        let sealed = if base < view.end_offset { old.seal_durably() } else { old.seal() };
        if let Err(error) = sealed.and_then(|()| self.write_snapshot(writer)) {
            let _ = segment.remove();
            writer.reserved = view.end_position;
            return Err(error);
        }
        self.directory_dirty.store(true, std::sync::atomic::Ordering::Release);
        self.view.store(Arc::new(View {
            segments: Arc::new(view.segments.with(Arc::new(segment))),
            end_position: 0,
            tail: Tail::empty(view.end_offset),
            ..*view
        }));
        writer.begin_segment(now_ms);
        Ok(())
    }

    /// Writes the producer snapshot at the log end, unless it is written already.
    pub(crate) fn write_snapshot(&self, writer: &mut Writer) -> Result<(), LogError> {
        if writer.producers.end_offset() > writer.snapshot_offset {
            producer_snapshot::write(&self.home, &writer.producers)?;
            writer.snapshot_offset = writer.producers.end_offset();
        }
        Ok(())
    }

    /// Expires producers that have been idle for longer than `producer_id_expiration_ms`, by the timestamps of their
    /// records, and removes the old snapshots that opening found.
    pub fn forget_old(&self, now_ms: i64) {
        let expiration_ms = self.config.load().producer_id_expiration_ms;
        let mut writer = self.writer.lock();
        if self.is_offline() || self.closed.load(std::sync::atomic::Ordering::Acquire) {
            return;
        }
        writer.producers.expire(now_ms, expiration_ms);
        writer.verifications.expire(now_ms, expiration_ms);
        let (newest, view) = (writer.snapshot_offset, self.view.load());
        // After a truncation, an old snapshot may be the newest one again.
        let needed =
            |at: i64| at == newest || view.segments.as_slice().iter().any(|segment| segment.base_offset() == at);
        for old in std::mem::take(&mut writer.old_snapshots).into_iter().filter(|&at| !needed(at)) {
            producer_snapshot::remove(&self.home.path(), old);
        }
    }
}

/// Returns the base offset of the next segment: the end of the records, not the log end. A gap left by a truncation
/// then lies inside the new segment. Recovery would take a gap between two segments for a hole (docs/adr/0013).
fn next_base(view: &View) -> i64 {
    let gap = view.end_offset - view.records_end();
    if gap <= LARGEST_GAP { view.records_end() } else { view.end_offset }
}

fn roll_is_due(
    writer: &mut Writer,
    config: &LogConfig,
    view: &View,
    incoming: Incoming,
    now_ms: i64,
) -> Result<bool, LogError> {
    let active = view.segments.active();
    let end = view.end_position + incoming.bytes;
    let index_full = active.offset_index.map.capacity() == 0 || active.time_index.map.capacity() <= 1;
    if end > config.segment_bytes.min(LARGEST_RELATIVE)
        || index_full
        || incoming.last_offset - active.base_offset() > LARGEST_RELATIVE as i64
    {
        return Ok(true);
    }
    let first_timestamp = first_timestamp(writer, view)?;
    let waited = if first_timestamp >= 0 && incoming.max_timestamp >= 0 {
        incoming.max_timestamp - first_timestamp
    } else {
        now_ms - writer.created_ms
    };
    Ok(waited > config.segment_ms.saturating_sub(config.segment_jitter_ms))
}

/// Returns the largest timestamp of the active segment's first batch; -1 when the batch has none.
fn first_timestamp(writer: &mut Writer, view: &View) -> Result<i64, LogError> {
    if let Some(timestamp) = writer.first_timestamp {
        return Ok(timestamp);
    }
    let active = view.segments.active();
    let file = active.file()?;
    let mut scan = HeaderScan::new(&file, view.end_position);
    let Some(header) = scan.header_at(0).map_err(|error| active.read_error(error))? else { return Ok(-1) };
    Ok(*writer.first_timestamp.insert(header.max_timestamp))
}
