//! What the policy looks at before a pass: sizes and times of a log's segments.

use crate::log::Log;
use crate::segment::batch_scan::HeaderScan;
use crate::{LogError, ReadError};

/// One segment, as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSurvey {
    /// Offset of its first record, or where that would be.
    pub base_offset: i64,
    /// Bytes of its records.
    pub size: u64,
    /// Largest timestamp of its records, ms; -1 when none has one.
    pub largest_timestamp: i64,
}

impl Log {
    /// The segments in order, the active one last.
    pub fn survey(&self) -> Vec<SegmentSurvey> {
        let view = self.view.load();
        let survey = |(index, segment): (usize, &std::sync::Arc<crate::segment::Segment>)| SegmentSurvey {
            base_offset: segment.base_offset(),
            size: view.limit_of(index),
            largest_timestamp: segment.largest_timestamp().timestamp,
        };
        view.segments.as_slice().iter().enumerate().map(survey).collect()
    }

    /// The earliest among the timestamps that the segments from the one with `offset` on begin with, the active one left
    /// out: that of the first batch of each, as it stands in its header. `None` when none has one.
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
                // Segments went away between the look and the read: look again.
                Err(_) if !std::sync::Arc::ptr_eq(&view.segments, &self.view.load().segments) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
