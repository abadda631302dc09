//! How far recoveries have come and what they have found, for the callers that wait for them.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Recovered;

/// Bytes are reported in steps of this size: many threads may count on one progress.
const STEP: u64 = 1 << 20;

/// Bytes of segments that were read and checked, of all the logs that are opened with it.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    bytes: AtomicU64,
    /// What was found since somebody asked last, by the log's name.
    found: Mutex<Vec<(String, Recovered)>>,
}

impl RecoveryProgress {
    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps what opening a log has found, where that is worth a word.
    pub fn note(&self, log: String, recovered: Recovered) {
        if !recovered.losses.is_empty() || !recovered.warnings.is_empty() {
            self.found.lock().push((log, recovered));
        }
    }

    /// What was found since the last call.
    pub fn take_found(&self) -> Vec<(String, Recovered)> {
        std::mem::take(&mut *self.found.lock())
    }

    /// The way through one segment of `size` bytes. When it is dropped all of them count: what was not read was cut.
    pub(crate) fn segment(&self, size: u64) -> SegmentProgress<'_> {
        SegmentProgress { progress: self, size, read: 0, reported: 0 }
    }
}

/// See [`RecoveryProgress::segment`].
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
