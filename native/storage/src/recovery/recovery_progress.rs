//! The progress and results of recoveries, for callers that wait for them.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Recovered;

/// Bytes are counted in steps of this size, because many threads may share one progress.
const STEP: u64 = 1 << 20;

/// The number of bytes read and checked, summed over all logs that are opened with this progress.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    bytes: AtomicU64,
    /// Results since the last call of [`Self::take_found`], by the log's name.
    found: Mutex<Vec<(String, Recovered)>>,
}

impl RecoveryProgress {
    /// Returns the bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Stores the result of opening a log if it has losses or warnings.
    pub fn note(&self, log: String, recovered: Recovered) {
        if !recovered.losses.is_empty() || !recovered.warnings.is_empty() {
            self.found.lock().push((log, recovered));
        }
    }

    /// Removes and returns the results since the last call.
    pub fn take_found(&self) -> Vec<(String, Recovered)> {
        std::mem::take(&mut *self.found.lock())
    }

    /// Returns the progress of one segment of `size` bytes. When it is dropped, the rest of `size` is counted too:
    /// those bytes were truncated.
    pub(crate) fn segment(&self, size: u64) -> SegmentProgress<'_> {
        SegmentProgress { progress: self, size, read: 0, reported: 0 }
    }
}

/// The progress of recovering one segment; created by [`RecoveryProgress::segment`].
pub(crate) struct SegmentProgress<'a> {
    progress: &'a RecoveryProgress,
    size: u64,
    read: u64,
    reported: u64,
}

impl SegmentProgress<'_> {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.read += bytes as u64;
        if self.read - self.reported >= STEP {
            self.report(self.read);
        }
    }

    fn report(&mut self, upto: u64) {
        self.progress.bytes.fetch_add(upto.saturating_sub(self.reported), Ordering::Relaxed);
        self.reported = upto;
    }
}

impl Drop for SegmentProgress<'_> {
    fn drop(&mut self) {
        self.report(self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_counts_in_steps_and_whole_at_its_end() {
        let progress = RecoveryProgress::default();
        let mut segment = progress.segment(3 << 20);
        segment.add(STEP as usize - 1);
        assert_eq!(progress.bytes(), 0);
        segment.add(2);
        assert_eq!(progress.bytes(), STEP + 1);
        drop(segment);
        assert_eq!(progress.bytes(), 3 << 20);
    }
}
