//! Rolling: when the active segment is full or old, another one begins.
//!
//! Owns Kafka's conditions (size, age, index full, relative offset too large) and the order of steps. The new segment is
//! made before the old one is sealed: when either fails, the log goes on with the old one.

use std::sync::Arc;

use crate::log::Log;
use crate::log::append::Incoming;
use crate::log::state::{Tail, View, Writer};
use crate::producer::producer_snapshot;
use crate::segment::Segment;
use crate::segment::batch_scan::HeaderScan;
use crate::{LogConfig, LogError};

/// Largest position and relative offset that an index entry can hold.
const LARGEST_RELATIVE: u64 = i32::MAX as u64;
/// The largest gap that a segment begins with: a batch fits behind it.
const LARGEST_GAP: i64 = i32::MAX as i64 / 2;

impl Log {
    /// Begins a new segment, unless the active one is empty.
    ///
    /// # Errors
    /// `Io`; the log then goes on with the old segment.
    pub fn roll(&self, now_ms: i64) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        self.begin_segment(&mut writer, now_ms)
    }

    /// Begins a new segment when the first record of the active one is older than `age_ms`; whether it did. Appends look
    /// at that themselves: this is for a log that nobody appends to.
    ///
    /// # Errors
    /// `Io`; the log then goes on with the old segment.
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

    /// Begins a new segment when these batches call for it.
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
        // The recovery point may lie in the gap, beyond the new segment's name: the old one is trusted then.
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

    /// Writes the producers' state at the log end, unless that has been done.
    pub(crate) fn write_snapshot(&self, writer: &mut Writer) -> Result<(), LogError> {
        if writer.producers.end_offset() > writer.snapshot_offset {
            producer_snapshot::write(&self.home, &writer.producers)?;
            writer.snapshot_offset = writer.producers.end_offset();
        }
        Ok(())
    }

    /// Forgets producers that have been idle for longer than `producer_id_expiration_ms`, by the timestamps of their
    /// records, and removes the snapshots that the start has left.
    pub fn forget_old(&self, now_ms: i64) {
        let expiration_ms = self.config.load().producer_id_expiration_ms;
        let mut writer = self.writer.lock();
        if self.is_offline() || self.closed.load(std::sync::atomic::Ordering::Acquire) {
            return;
        }
        writer.producers.expire(now_ms, expiration_ms);
        writer.verifications.expire(now_ms, expiration_ms);
        let (newest, view) = (writer.snapshot_offset, self.view.load());
        // Where the log was cut meanwhile, one of them may be the newest again.
        let needed =
            |at: i64| at == newest || view.segments.as_slice().iter().any(|segment| segment.base_offset() == at);
        for old in std::mem::take(&mut writer.old_snapshots).into_iter().filter(|&at| !needed(at)) {
            producer_snapshot::remove(&self.home.path(), old);
        }
    }
}

/// The offset that the next segment is named by: where the records end, and not the log, so that a gap which a truncation has
/// cut in lies inside of the segment. Between two segments recovery would take it for a hole (docs/adr/0013).
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
    let index_full = active.offset_index.map.room() == 0 || active.time_index.map.room() <= 1;
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

/// Largest timestamp of the active segment's first batch; -1 when it has none.
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
