//! Closing: leaves a log in a state that opens without a scan.
//!
//! Owns the order of steps, for one log and for many. First everything that the next opening trusts is written (index
//! ends, the producer snapshot). Then it is synced. Only then the log counts as closed and its recovery point
//! advances. Many logs share one sync of their file system, which costs as much as syncing the files of a few logs.
//! The caller writes the clean-shutdown file after all of this.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::LogError;
use crate::log::Log;
use crate::log::state::{View, Writer};
use pybroker_sys::file_system::FileSystem;

/// Number of logs that a thread takes from the list at a time.
const AT_ONCE: usize = 64;

impl Log {
    /// Ends appending and leaves the log in a state that opens without a scan: data on the device, indexes trimmed,
    /// producer snapshot written. Reads can continue. Closing a closed log does nothing.
    ///
    /// # Errors
    /// `Io` with the path that failed: the shutdown is then not clean. After `Exhausted`, the caller may retry.
    pub fn close(&self) -> Result<(), LogError> {
        let _no_cleaning = self.end_cleaning();
        let mut writer = self.writer.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.ensure_not_failed()?;
        let view = self.view.load_full();
        if self.write_ends(&mut writer, &view)? {
            self.sync_ends(&view)?;
        }
        self.end(&view);
        Ok(())
    }

    /// Writes everything that the next opening trusts, without waiting for the device. Returns the view to sync, or
    /// `None` when the log needs no sync and is closed.
    fn begin_close(&self) -> Result<Option<Arc<View>>, LogError> {
        let _no_cleaning = self.end_cleaning();
        let mut writer = self.writer.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        self.ensure_not_failed()?;
        let view = self.view.load_full();
        if self.write_ends(&mut writer, &view)? {
            return Ok(Some(view));
        }
        self.end(&view);
        Ok(None)
    }

    /// Closes a log that was synced after [`Self::begin_close`] returned this view. Returns false if the log has
    /// changed since then.
    fn end_close(&self, view: &Arc<View>) -> bool {
        let _writer = self.writer.lock();
        let unchanged = Arc::ptr_eq(&self.view.load(), view) && !self.is_offline();
        if unchanged {
            self.end(view);
        }
        unchanged
    }

    fn end(&self, view: &View) {
        self.recovery_point.store(view.end_offset, Ordering::Release);
        self.closed.store(true, Ordering::Release);
        // The logs closed next may need the file descriptors. A thread that still reads opens the file again.
        view.segments.as_slice().iter().for_each(|segment| segment.close_file());
    }

    /// Writes the index ends and the producer snapshot, and returns whether a sync is due. A log without records
    /// needs none, nor does a log that is on the device already.
    fn write_ends(&self, writer: &mut Writer, view: &View) -> Result<bool, LogError> {
        if view.end_offset == 0 {
            return Ok(false);
        }
        let active = view.segments.active();
        let grew = view.end_offset > self.recovery_point() || writer.reserved != view.end_position;
        let snapshot_due = writer.producers.end_offset() > writer.snapshot_offset;
        let completed = active.is_completed();
        if grew || !completed {
            active.seal()?;
            writer.reserved = view.end_position;
        }
        self.write_snapshot(writer)?;
        let marked = self.directory_dirty.load(Ordering::Acquire) || self.parent_dirty.load(Ordering::Acquire);
        Ok(grew || snapshot_due || !completed || marked || self.epochs.lock().dirty)
    }

    fn sync_ends(&self, view: &View) -> Result<(), LogError> {
        let _flushing = self.flushing.lock();
        let active = view.segments.active();
        // The next opening trusts the indexes too, which a plain flush leaves for recovery to rebuild.
        let indexes = active.offset_index.map.sync().and_then(|()| active.time_index.map.sync());
        indexes.and_then(|()| self.sync(view)).map_err(|error| self.failed_for_good(error))
    }
}

/// Closes many logs of one file system. Returns their results in the same order.
///
/// If at least `shared_from` logs need a sync, `file_system` is synced once for all of them. The work runs on at most
/// `threads` threads, fewer if the system cannot create them.
pub fn close_all(
    logs: &[&Log],
    file_system: Option<&FileSystem>,
    shared_from: usize,
    threads: NonZeroUsize,
) -> Vec<Result<(), LogError>> {
    let begun = in_parallel(logs, threads, |log| log.begin_close());
    let unsynced = begun.iter().filter(|begun| matches!(begun, Ok(Some(_)))).count();
    let synced = match file_system.filter(|_| unsynced >= shared_from.max(1)) {
        Some(file_system) => file_system.sync().map(|()| true),
        None => Ok(false),
    };
    let begun: Vec<_> = logs.iter().copied().zip(begun).collect();
    let ended = in_parallel(&begun, threads, |(log, begun)| match (begun, &synced) {
        (Ok(None) | Err(LogError::Io { .. } | LogError::Corrupt { .. } | LogError::Offline { .. }), _) => None,
        (Ok(Some(view)), Ok(true)) if log.end_close(view) => None,
        // The sync was not shared, or the log changed since: close it alone. A log that lacked a file descriptor may
        // find one after the others are closed.
        (Ok(Some(_)), Ok(_)) | (Err(LogError::Exhausted { .. }), _) => Some(log.close()),
        (Ok(Some(_)), Err(error)) => Some(Err(log.failed(LogError::Io {
            path: log.directory().to_path_buf(),
            source: error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error),
        }))),
    });
    let results = begun.into_iter().zip(ended);
    results.map(|((_, begun), ended)| ended.unwrap_or_else(|| begun.map(drop))).collect()
}

/// Applies `work` to every item on some threads, including this one. Returns the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], threads: NonZeroUsize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<R>)>> = Mutex::default();
    let run = || {
        loop {
            let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(rest) = items.get(from..).filter(|rest| !rest.is_empty()) else { return };
            let results = rest.iter().take(AT_ONCE).map(&work).collect();
            done.lock().push((from, results));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(items.len().div_ceil(AT_ONCE)) {
            // If no thread can be created, this one does all the work.
            let _ = std::thread::Builder::new().name("close".into()).spawn_scoped(scope, run);
        }
        run();
    });
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(from, _)| *from);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
