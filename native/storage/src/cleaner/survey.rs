//! Sizes and timestamps of a log's segments, for the cleaner policy.

use crate::log::Log;
use crate::segment::batch_scan::HeaderScan;
use crate::{LogError, ReadError};

/// The properties of a segment that the policy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSurvey {
    /// Offset of its first record, or of the next one when it is empty.
    pub base_offset: i64,
    /// Bytes of its records.
    pub size: u64,
    /// Largest timestamp of its records, ms; -1 when none has one.
    pub largest_timestamp: i64,
}

impl Log {
    /// Returns the segments in order; the active one is last.
    pub fn survey(&self) -> Vec<SegmentSurvey> {
        let view = self.view.load();
        let survey = |(index, segment): (usize, &std::sync::Arc<crate::segment::Segment>)| SegmentSurvey {
            base_offset: segment.base_offset(),
            size: view.limit_of(index),
            largest_timestamp: segment.largest_timestamp().timestamp,
        };
        view.segments.as_slice().iter().enumerate().map(survey).collect()
    }

    /// Returns the earliest first timestamp of the sealed segments from the one with `offset` on. The first timestamp
    /// of a segment is that in the header of its first batch. `None` when no segment has one.
    ///
    /// # Errors
    /// `Io` when a segment cannot be read.
    pub fn earliest_dirty_timestamp(&self, offset: i64) -> Result<Option<i64>, ReadError> {
        loop {
            let view = self.view.load_full();
            let segments = view.segments.as_slice();
            let sealed = &segments[view.segments.floor(offset).min(segments.len() - 1)..segments.len() - 1];
            let first = |segment: &std::sync::Arc<crate::segment::Segment>| -> Result<Option<i64>, LogError> {
                let file = segment.file()?;
                let header = HeaderScan::new(&file, segment.size()).header_at(0);
                let header = header.map_err(|error| segment.read_error(error))?;
                Ok(header.map(|header| header.max_timestamp).filter(|timestamp| *timestamp > 0))
            };
            let found: Result<Vec<Option<i64>>, LogError> = sealed.iter().map(first).collect();
            match found {
                Ok(found) => return Ok(found.into_iter().flatten().min()),
                // The segments changed since the view was loaded: retry with the new view.
                Err(_) if !std::sync::Arc::ptr_eq(&view.segments, &self.view.load().segments) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
