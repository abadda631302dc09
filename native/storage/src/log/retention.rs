//! Retention: how many of a log's first segments are too old, over the size limit, or below its start.
//!
//! Owns the decision as a function of numbers; [`Log::delete_old_segments`] collects the numbers and applies it.
//! Time, size limits and high watermark are arguments.

use std::fs;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::LogError;
use crate::log::Log;
use crate::log::removal::Removed;
use crate::log::state::View;
use crate::segment::Segment;

/// The retention limits of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Segments with records at or above the high watermark stay: the log start never passes it.
    pub high_watermark: i64,
    /// Wall clock, ms since the epoch.
    pub now_ms: i64,
    /// `retention.ms`: a segment whose newest record is older is deleted; `None` for no limit.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`: the oldest segment is deleted while the others have at least this size; `None` for no
    /// limit.
    pub retention_bytes: Option<u64>,
}

/// How many of the oldest segments are deleted, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Segments wholly below the log start.
    pub by_start: usize,
    /// Segments over the size limit.
    pub by_size: usize,
    /// Segments over the age limit.
    pub by_time: usize,
}

impl Expired {
    /// Returns the number of all deleted segments.
    #[must_use]
    pub fn total(&self) -> usize {
        self.by_start + self.by_size + self.by_time
    }
}

/// The properties of a segment that the decision uses.
#[derive(Clone, Copy, Debug)]
struct SegmentFacts {
    /// The offset after the segment's last possible record.
    end_offset: i64,
    size: u64,
    /// Timestamp of the newest record. For a segment without timestamps, the modification time of its file.
    youngest_ms: i64,
    is_active: bool,
}

impl SegmentFacts {
    /// Returns whether the segment may be deleted. An empty active segment stays for the next record.
    fn may_go(&self, limits: &RetentionLimits) -> bool {
        self.end_offset <= limits.high_watermark && !(self.is_active && self.size == 0)
    }
}

/// Applies Kafka's three rules in order, each to the segments left by the one before: below the start, over the size,
/// too old. Each rule stops at the first segment that stays.
fn expired(segments: &[SegmentFacts], log_start_offset: i64, limits: &RetentionLimits) -> Expired {
    let below_start = |segment: &&SegmentFacts| {
        !segment.is_active && segment.end_offset <= log_start_offset && segment.may_go(limits)
    };
    let by_start = segments.iter().take_while(below_start).count();
    let by_size = limits.retention_bytes.map_or(0, |most| over_size(&segments[by_start..], most, limits));
    let rest = &segments[by_start + by_size..];
    let too_old = |segment: &&SegmentFacts| {
        let limit = limits.retention_ms.unwrap_or(i64::MAX);
        limits.now_ms.saturating_sub(segment.youngest_ms) > limit && segment.may_go(limits)
    };
    Expired { by_start, by_size, by_time: rest.iter().take_while(too_old).count() }
}

fn over_size(segments: &[SegmentFacts], most: u64, limits: &RetentionLimits) -> usize {
    let size: u64 = segments.iter().map(|segment| segment.size).sum();
    let Some(mut surplus) = size.checked_sub(most) else { return 0 };
    segments
        .iter()
        .take_while(|segment| match surplus.checked_sub(segment.size) {
            Some(left) if segment.may_go(limits) => {
                surplus = left;
                true
            }
            _ => false,
        })
        .count()
}

impl Log {
    /// Removes the segments that exceed `limits`. An active segment is rolled before it is removed, so the log always
    /// has one.
    ///
    /// # Errors
    /// `Io` with the path that failed. After a failed rename the log is offline.
    pub fn delete_old_segments(&self, limits: &RetentionLimits) -> Result<(Expired, Removed), LogError> {
        let mut writer = self.writer.lock();
        self.ensure_online()?;
        let mut view = self.view.load_full();
        let expired = expired(&facts(&view, limits)?, view.log_start_offset, limits);
        if expired.total() == 0 {
            return Ok((expired, Removed::nothing(&view)));
        }
        if expired.total() == view.segments.len() {
            self.begin_segment(&mut writer, limits.now_ms)?;
            view = self.view.load_full();
        }
        let new_start = view.segments.as_slice()[expired.total()].base_offset().max(view.log_start_offset);
        let removed = self.take_out(&view, expired.total(), new_start)?;
        Ok((expired, removed))
    }
}

fn facts(view: &View, limits: &RetentionLimits) -> Result<Vec<SegmentFacts>, LogError> {
    let segments = view.segments.as_slice();
    let facts = |(index, segment): (usize, &Arc<Segment>)| {
        Ok(SegmentFacts {
            end_offset: segments.get(index + 1).map_or(view.end_offset, |next| next.base_offset()),
            size: view.limit_of(index),
            youngest_ms: if limits.retention_ms.is_some() { youngest_ms(segment)? } else { i64::MAX },
            is_active: view.segments.is_active(index),
        })
    };
    segments.iter().enumerate().map(facts).collect()
}

/// Returns the timestamp of a segment's newest record. Without timestamps, uses the file's modification time, as
/// Kafka does.
fn youngest_ms(segment: &Segment) -> Result<i64, LogError> {
    let timestamp = segment.largest_timestamp().timestamp;
    if timestamp >= 0 {
        return Ok(timestamp);
    }
    let path = segment.path();
    let changed = fs::metadata(&path).and_then(|metadata| metadata.modified()).map_err(LogError::io(&path))?;
    Ok(changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments by (end offset, size, youngest record); the last one is active.
    fn segments(list: &[(i64, u64, i64)]) -> Vec<SegmentFacts> {
        let facts = |(index, &(end_offset, size, youngest_ms)): (usize, &(i64, u64, i64))| SegmentFacts {
            end_offset,
            size,
            youngest_ms,
            is_active: index + 1 == list.len(),
        };
        list.iter().enumerate().map(facts).collect()
    }

    fn limits(retention_ms: Option<i64>, retention_bytes: Option<u64>) -> RetentionLimits {
        RetentionLimits { high_watermark: i64::MAX, now_ms: 1000, retention_ms, retention_bytes }
    }

    fn counts(list: &[(i64, u64, i64)], log_start: i64, limits: &RetentionLimits) -> (usize, usize, usize) {
        let expired = expired(&segments(list), log_start, limits);
        (expired.by_start, expired.by_size, expired.by_time)
    }

    const LOG: [(i64, u64, i64); 4] = [(10, 100, 100), (20, 100, 300), (30, 100, 200), (40, 50, 400)];

    #[test]
    fn without_limits_only_what_lies_below_the_start_goes() {
        assert_eq!(counts(&LOG, 0, &limits(None, None)), (0, 0, 0));
        assert_eq!(counts(&LOG, 19, &limits(None, None)), (1, 0, 0));
        assert_eq!(counts(&LOG, 20, &limits(None, None)), (2, 0, 0));
        assert_eq!(counts(&LOG, 40, &limits(None, None)), (3, 0, 0), "the active segment stays");
    }

    #[test]
    fn a_log_shrinks_to_the_smallest_size_that_is_not_below_the_limit() {
        assert_eq!(counts(&LOG, 0, &limits(None, Some(350))), (0, 0, 0));
        assert_eq!(counts(&LOG, 0, &limits(None, Some(251))), (0, 0, 0));
        assert_eq!(counts(&LOG, 0, &limits(None, Some(250))), (0, 1, 0));
        assert_eq!(counts(&LOG, 0, &limits(None, Some(50))), (0, 3, 0));
        assert_eq!(counts(&LOG, 0, &limits(None, Some(0))), (0, 4, 0), "the active segment, too");
    }

    #[test]
    fn a_segment_is_as_old_as_its_youngest_record_and_shields_those_behind_it() {
        assert_eq!(counts(&LOG, 0, &limits(Some(900), None)), (0, 0, 0));
        assert_eq!(counts(&LOG, 0, &limits(Some(899), None)), (0, 0, 1));
        assert_eq!(counts(&LOG, 0, &limits(Some(701), None)), (0, 0, 1));
        assert_eq!(counts(&LOG, 0, &limits(Some(699), None)), (0, 0, 3));
        assert_eq!(counts(&LOG, 0, &limits(Some(0), None)), (0, 0, 4));
    }

    #[test]
    fn each_rule_looks_at_what_the_one_before_has_left() {
        assert_eq!(counts(&LOG, 10, &limits(Some(699), Some(150))), (1, 1, 1));
        assert_eq!(counts(&LOG, 10, &limits(Some(0), Some(0))), (1, 3, 0));
    }

    #[test]
    fn nothing_beyond_the_high_watermark_goes() {
        for (high_watermark, removed) in [(9, 0), (10, 1), (29, 2), (39, 3), (40, 4)] {
            let bounded = RetentionLimits { high_watermark, ..limits(Some(0), None) };
            assert_eq!(counts(&LOG, 0, &bounded), (0, 0, removed));
            let bounded = RetentionLimits { high_watermark, ..limits(None, Some(0)) };
            assert_eq!(counts(&LOG, 0, &bounded), (0, removed, 0));
        }
    }

    #[test]
    fn an_empty_active_segment_stays() {
        let log = [(10, 100, 100), (10, 0, 0)];
        assert_eq!(counts(&log, 0, &limits(Some(0), None)), (0, 0, 1));
        assert_eq!(counts(&log, 0, &limits(None, Some(0))), (0, 1, 0));
        assert_eq!(counts(&[(0, 0, 0)], 0, &limits(Some(0), Some(0))), (0, 0, 0));
    }
}
