//! One pass over one log: fills the map, rewrites the groups, and swaps each in.
//!
//! Owns the order of steps. At most one pass runs on a log. A thread that is about to truncate, close or delete the
//! log aborts the pass first ([`NoCleaning`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::MutexGuard;
use rustc_hash::FxHashMap;

use super::filter::{Filter, LastBatches};
use super::grouping::{Bounds, Extent, group_segments};
use super::map_fill::fill_map;
use super::offset_map::OffsetMap;
use super::old_messages::{modified, tombstone_horizon};
use super::output::{CleanedSegment, Finished, remove_all_leftovers, remove_leftovers};
use super::pass::{CleanError, CleanLimits, CleanRange, Cleaned, Pass};
use super::reader::BatchReader;
use super::selection::Rules;
use super::throttle::Throttle;
use crate::LogConfig;
use crate::log::Log;
use crate::segment::Segment;
use pybroker_record::Offset;

/// A guard: no pass runs on the log while it exists.
pub(crate) struct NoCleaning<'a> {
    log: &'a Log,
    _cleaning: MutexGuard<'a, ()>,
}

impl Drop for NoCleaning<'_> {
    fn drop(&mut self) {
        self.log.cleaning_ends.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Log {
    /// Aborts the current pass, waits for its end, and prevents new ones. Must be called before any other lock is
    /// taken.
    pub(crate) fn end_cleaning(&self) -> NoCleaning<'_> {
        self.cleaning_ends.fetch_add(1, Ordering::AcqRel);
        NoCleaning { log: self, _cleaning: self.cleaning.lock() }
    }

    /// Compacts `range`: removes the records below `range.first_uncleanable` that a later record in the range with
    /// the same key supersedes. Offsets do not change. Reads and appends continue.
    ///
    /// # Errors
    /// See [`CleanError`].
    pub fn clean(
        &self,
        range: CleanRange,
        limits: &CleanLimits,
        throttle: &Throttle,
        now_ms: i64,
    ) -> Result<Cleaned, CleanError> {
        let begun = Instant::now();
        let Some(_cleaning) = self.cleaning.try_lock() else { return Err(CleanError::Aborted) };
        let config = self.config.load_full();
        let view = self.view.load_full();
        let upper = range.first_uncleanable.min(view.segments.active().base_offset());
        let below = view.segments.as_slice().iter().take_while(|segment| segment.base_offset() < upper);
        let mut pass = Pass {
            log: self,
            throttle,
            segments: below.cloned().collect(),
            index_interval: u64::from(config.index_interval_bytes),
            index_bytes: config.segment_index_bytes,
            write_bytes: limits.buffer_bytes,
            max_decompressed: config.max_decompressed_bytes,
            tombstone_horizon: None,
            stats: Cleaned { end_offset: range.first_dirty, ..Cleaned::default() },
        };
        drop(view);
        pass.check()?;
        if range.first_dirty < upper {
            let done = run(&mut pass, Offset(range.first_dirty)..Offset(upper), limits, &config, now_ms, begun);
            // Retention has removed segments and their files. That is not a disk failure.
            let lost = done.is_err() && pass.segments.iter().any(|segment| segment.is_retired());
            if lost { Err(CleanError::Aborted) } else { done }?;
        }
        pass.stats.total_ms = begun.elapsed().as_millis() as u64;
        Ok(pass.stats)
    }

    /// Returns the last batches of active producers.
    fn last_batches(&self) -> FxHashMap<i64, LastBatches> {
        let writer = self.writer.lock();
        writer.producers.iter().map(|(id, entry)| (id, LastBatches::of(entry))).collect()
    }
}

fn run(
    pass: &mut Pass<'_>,
    dirty: Range<Offset>,
    limits: &CleanLimits,
    config: &LogConfig,
    now_ms: i64,
    begun: Instant,
) -> Result<(), CleanError> {
    let (first_dirty, upper) = (dirty.start.0, dirty.end.0);
    let mut map = OffsetMap::new(limits.map_bytes, limits.load_factor, (upper - first_dirty) as u64);
    let mut reader = BatchReader::new(limits.buffer_bytes);
    pass.stats.map_full = fill_map(pass, &mut reader, &mut map, dirty)?;
    pass.stats.keys = map.len() as u64;
    pass.stats.index_ms = begun.elapsed().as_millis() as u64;
    let end_offset = map.latest() + 1;
    pass.segments.retain(|segment| segment.base_offset() < end_offset);
    let rules = Rules {
        now_ms,
        delete_retention_ms: config.delete_retention_ms,
        upper,
        max_decompressed: pass.max_decompressed,
        old_tombstones_stay: true,
        space_to_grow: 0,
    };
    // At most a 32nd of the map: 33 million offsets for the default buffer.
    let kept = map.kept_offsets(first_dirty, limits.map_bytes / 32);
    let mut filter = Filter::new(&map, kept, rules, FxHashMap::default());
    remove_all_leftovers(&pass.log.home.path())?;
    pass.tombstone_horizon = tombstone_horizon(&pass.segments, Offset(first_dirty), config.delete_retention_ms)?;
    let groups = group_segments(&extents(&pass.segments, upper), bounds(config));
    let (mut at, mut buffer) = (0, Vec::with_capacity(limits.buffer_bytes));
    for count in groups {
        let group: Vec<Arc<Segment>> = pass.segments[at..at + count].to_vec();
        filter.last_batches = pass.log.last_batches();
        let next_base = pass.segments.get(at + count).map(|next| next.base_offset());
        match rewrite(pass, &mut reader, &mut filter, &group, next_base, std::mem::take(&mut buffer)) {
            Ok((finished, emptied)) => {
                buffer = emptied;
                pass.stats.files.append(&mut pass.log.swap_in(&group, &finished)?);
            }
            Err(error) => {
                // The first error is returned. The next pass or opening removes the files that are left.
                let _ = remove_leftovers(&pass.log.home, group[0].base_offset());
                return Err(error);
            }
        }
        pass.stats.segments_read += group.len();
        pass.stats.segments_written += 1;
        at += count;
    }
    pass.stats.records_read = filter.counts.records_read;
    pass.stats.records_written = filter.counts.records_kept;
    pass.stats.records_without_key = filter.counts.without_key;
    pass.stats.end_offset = end_offset;
    Ok(())
}

/// Rewrites a group of segments into one.
fn rewrite(
    pass: &mut Pass<'_>,
    reader: &mut BatchReader,
    filter: &mut Filter<'_>,
    group: &[Arc<Segment>],
    next_base: Option<i64>,
    buffer: Vec<u8>,
) -> Result<(Finished, Vec<u8>), CleanError> {
    let size: u64 = group.iter().map(|segment| segment.size()).sum();
    filter.rules.space_to_grow = (i32::MAX as u64).saturating_sub(size);
    let mut output = CleanedSegment::create(&pass.log.home, group[0].base_offset(), buffer)?;
    for (index, segment) in group.iter().enumerate() {
        let next = group.get(index + 1).map(|next| next.base_offset()).or(next_base).unwrap_or(filter.rules.upper);
        filter.transactions.add_aborted(pass.log.aborted_transactions(Offset(segment.base_offset())..Offset(next))?);
        let changed = modified(segment)?;
        filter.rules.old_tombstones_stay = pass.tombstone_horizon.is_none_or(|horizon| changed > horizon);
        reader.seek(segment, 0);
        while let Some((header, batch)) = reader.next(pass)? {
            let filtered = filter.filter(&header, batch, &mut output.pending);
            pass.stats.bytes_read += batch.len() as u64;
            let outcome = filtered.map_err(|error| pass.corrupt(segment, &header, error))?;
            if let Some(aborted) = outcome.aborted {
                output.add_aborted(&aborted);
            }
            let left = outcome.written.map_or(0, |written| written.size() as u64);
            filter.rules.space_to_grow = (filter.rules.space_to_grow + batch.len() as u64).saturating_sub(left);
            if let Some(written) = outcome.written {
                output.add(pass, &written)?;
            }
        }
    }
    let finished = output.finish(pass, modified(&group[group.len() - 1])?)?;
    pass.stats.bytes_written += finished.0.size;
    Ok(finished)
}

fn bounds(config: &LogConfig) -> Bounds {
    Bounds {
        segment_bytes: config.segment_bytes.min(i32::MAX as u64),
        index_bytes: u64::from(config.segment_index_bytes),
    }
}

fn extents(segments: &[Arc<Segment>], upper: i64) -> Vec<Extent> {
    let extent = |(index, segment): (usize, &Arc<Segment>)| Extent {
        base_offset: segment.base_offset(),
        end_offset: segments.get(index + 1).map_or(upper, |next| next.base_offset()),
        size: segment.size(),
        offset_index_bytes: u64::from(segment.offset_index.map.len()) * 8,
        time_index_bytes: u64::from(segment.time_index.map.len()) * 12,
    };
    segments.iter().enumerate().map(extent).collect()
}
