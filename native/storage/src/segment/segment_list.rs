//! The immutable, ordered list of a log's segments. A roll, a truncation or a removal creates a new list.

use std::sync::Arc;

use crate::segment::Segment;

/// The list of segments. It is never empty; the last one is the active segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentList {
    /// Base offsets, separate from the segments so that a search touches few cache lines.
    bases: Vec<i64>,
    segments: Vec<Arc<Segment>>,
    /// Bytes of all but the active segment.
    sealed_bytes: u64,
}

impl SegmentList {
    /// Creates a list of at least one segment, ascending by base offset.
    pub(crate) fn new(segments: Vec<Arc<Segment>>) -> Self {
        debug_assert!(!segments.is_empty() && segments.windows(2).all(|s| s[0].base_offset() < s[1].base_offset()));
        let sealed = &segments[..segments.len() - 1];
        let sealed_bytes = sealed.iter().map(|segment| segment.size()).sum();
        Self { bases: segments.iter().map(|segment| segment.base_offset()).collect(), segments, sealed_bytes }
    }

    pub(crate) fn as_slice(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn active(&self) -> &Arc<Segment> {
        &self.segments[self.segments.len() - 1]
    }

    pub(crate) fn is_active(&self, index: usize) -> bool {
        index + 1 == self.segments.len()
    }

    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.sealed_bytes
    }

    /// Returns the index of the last segment whose base offset is at most `offset`; 0 when there is none.
    pub(crate) fn floor(&self, offset: i64) -> usize {
        // Nearly every request needs the active segment.
        let last = self.bases.len() - 1;
        if self.bases[last] <= offset {
            return last;
        }
        self.bases.partition_point(|&base| base <= offset).saturating_sub(1)
    }

    /// Returns the list with a new active segment.
    pub(crate) fn with(&self, segment: Arc<Segment>) -> Self {
        Self::new(self.segments.iter().cloned().chain([segment]).collect())
    }
}
