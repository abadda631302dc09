//! Making the log durable: syncing, the recovery point.
//!
//! Owns the claim "everything below the recovery point is on the device". A sync that failed is never tried again as if it
//! could succeed: the pages may be gone; the log goes offline instead.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::LogError;
use crate::log::Log;
use crate::log::state::View;
use crate::segment::Segment;
use pybroker_sys::file;

static FLUSHES: AtomicU64 = AtomicU64::new(0);
static FLUSH_NS: AtomicU64 = AtomicU64::new(0);

/// How many times this process has made a log durable, and the nanoseconds that they took, together.
#[must_use]
pub fn flush_times() -> (u64, u64) {
    (FLUSHES.load(Ordering::Relaxed), FLUSH_NS.load(Ordering::Relaxed))
}

impl Log {
    /// Waits until everything appended so far is on the device; returns the new recovery point.
    ///
    /// Concurrent callers share the work: who waited finds it done.
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
            // Closed logs are flushed, and deleted ones have no files.
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

    /// Whether as many records as `flush.messages` allows, or more, are not on the device.
    pub fn is_sync_due(&self) -> bool {
        self.log_end_offset() - self.recovery_point() >= self.config.load().flush_messages
    }

    /// Flushes when the last time is `flush.ms` ago; whether it did.
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

    /// Syncs what the view has beyond the recovery point. Indexes of sealed segments are synced with them: recovery trusts
    /// those below the recovery point, and rebuilds the others.
    pub(crate) fn sync(&self, view: &View) -> Result<(), LogError> {
        let recovery_point = self.recovery_point();
        // A segment that was synced to its end and sealed since has its indexes still to be synced.
        let rolled = self.directory_dirty.load(Ordering::Acquire);
        let first = view.segments.floor(recovery_point - i64::from(rolled));
        for (index, segment) in view.segments.as_slice().iter().enumerate().skip(first) {
            let active = view.segments.is_active(index);
            if active && view.end_offset <= recovery_point {
                continue;
            }
            match sync_segment(segment, active) {
                // Its files were renamed or removed meanwhile: nobody will miss its records.
                Err(_) if segment.is_retired() => {}
                synced => synced?,
            }
            segment.txn_index.sync()?;
        }
        let mut epochs = self.epochs.lock();
        // The mark goes before the sync, which covers what was made until then; without a descriptor for it, it comes back.
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
