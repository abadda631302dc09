//! Flushing a log to the device, and its recovery point.
//!
//! Owns the invariant "everything below the recovery point is on the device". A failed sync is never retried, since
//! the kernel may have dropped the dirty pages. The log goes offline instead.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::LogError;
use crate::log::Log;
use crate::log::state::View;
use crate::segment::Segment;
use pybroker_sys::file;

static FLUSHES: AtomicU64 = AtomicU64::new(0);
static FLUSH_NS: AtomicU64 = AtomicU64::new(0);

/// Returns how many times this process has flushed a log, and the nanoseconds that all flushes took together.
#[must_use]
pub fn flush_times() -> (u64, u64) {
    (FLUSHES.load(Ordering::Relaxed), FLUSH_NS.load(Ordering::Relaxed))
}

impl Log {
    /// Waits until all records appended so far are on the device, and returns the new recovery point.
    ///
    /// Concurrent callers share the work: a caller that waited for another flush usually finds its records synced.
    ///
    /// # Errors
    /// `Io` with the path that failed; the log is then offline.
    pub fn flush(&self) -> Result<i64, LogError> {
        let wanted = self.log_end_offset();
        if self.recovery_point() >= wanted && !self.directory_dirty.load(Ordering::Acquire) {
            return Ok(self.recovery_point());
        }
        let _flushing = self.flushing.lock();
        if self.closed.load(Ordering::Acquire) {
            // Closed logs are flushed, and deleted logs have no files.
            return Ok(self.recovery_point());
        }
        let view = self.view.load_full();
        if self.recovery_point() >= wanted.min(view.end_offset) && !self.directory_dirty.load(Ordering::Acquire) {
            return Ok(self.recovery_point());
        }
        self.ensure_not_failed()?;
        let begun = Instant::now();
        self.sync(&view).map_err(|error| self.failed_for_good(error))?;
        FLUSH_NS.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        FLUSHES.fetch_add(1, Ordering::Relaxed);
        self.recovery_point.store(view.end_offset, Ordering::Release);
        Ok(view.end_offset)
    }

    /// Returns whether the number of records that are not on the device has reached `flush.messages`.
    pub fn is_sync_due(&self) -> bool {
        self.log_end_offset() - self.recovery_point() >= self.config.load().flush_messages
    }

    /// Flushes the log if the last flush is at least `flush.ms` ago. Returns whether it flushed.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn flush_when_due(&self, now_ms: i64) -> Result<bool, LogError> {
        let due = now_ms.saturating_sub(self.flushed_ms.load(Ordering::Acquire)) >= self.config.load().flush_ms;
        if due {
            self.flush()?;
            self.flushed_ms.store(now_ms, Ordering::Release);
        }
        Ok(due)
    }

    /// Syncs the records of the view beyond the recovery point. The indexes of sealed segments are synced too:
    /// recovery trusts those below the recovery point, and rebuilds the others.
    pub(crate) fn sync(&self, view: &View) -> Result<(), LogError> {
        let recovery_point = self.recovery_point();
        // The indexes of a segment that was synced to its end and then sealed are not synced yet.
        let rolled = self.directory_dirty.load(Ordering::Acquire);
        let first = view.segments.floor(recovery_point - i64::from(rolled));
        for (index, segment) in view.segments.as_slice().iter().enumerate().skip(first) {
            let active = view.segments.is_active(index);
            if active && view.end_offset <= recovery_point {
                continue;
            }
            match sync_segment(segment, active) {
                // The segment was removed meanwhile, so its records need no sync.
                Err(_) if segment.is_retired() => {}
                synced => synced?,
            }
            segment.txn_index.sync()?;
        }
        let mut epochs = self.epochs.lock();
        // The flag is cleared before the sync, which covers all files created until then. If the sync fails, the flag
        // is set again.
        let directory_dirty = self.directory_dirty.swap(false, Ordering::AcqRel);
        let synced = if epochs.dirty {
            // Syncs the directory as well.
            epochs.epochs.write(&self.home.path(), true)
        } else if directory_dirty {
            file::sync_directory(&self.home.path()).map_err(LogError::io(self.home.path()))
        } else {
            Ok(())
        };
        if let Err(error) = synced {
            self.directory_dirty.fetch_or(directory_dirty, Ordering::AcqRel);
            return Err(error);
        }
        epochs.dirty = false;
        self.sync_parent()
    }

    fn sync_parent(&self) -> Result<(), LogError> {
        let home = self.home.path();
        let Some(parent) = home.parent().filter(|_| self.parent_dirty.swap(false, Ordering::AcqRel)) else {
            return Ok(());
        };
        let synced = file::sync_directory(parent).map_err(LogError::io(parent));
        if synced.is_err() {
            self.parent_dirty.store(true, Ordering::Release);
        }
        synced
    }
}

fn sync_segment(segment: &Segment, active: bool) -> Result<(), LogError> {
    segment.sync()?;
    if !active {
        segment.offset_index.map.sync()?;
        segment.time_index.map.sync()?;
    }
    Ok(())
}
