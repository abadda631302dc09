//! The move of a log from start to end, and the switch to the future replica.
//!
//! Owns the order of steps. All data of the future replica is on the device before its directory gets the final name.
//! From the rename on it is the log, even if the old directory cannot be renamed. After a crash the old directory is
//! complete, or the new one, or both. The move count decides which of them is the log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::copier::Copier;
use super::{LogMove, MoveError, MovedLog};
use crate::LogError;
use crate::cleaner::Throttle;
use crate::directory::log_dir::deleted_directory_name;
use crate::log::Log;
use crate::log::state::{View, Writer};
use crate::segment::segment_list::SegmentList;
use crate::segment::{IndexEntries, Segment};
use pybroker_sys::file;

/// Most bytes to copy while appends wait, besides those appended while the move waits for the writer lock.
const SWITCH_BYTES: u64 = 1 << 20;

impl Log {
    /// Moves the log into the directory created by [`super::prepare`]. Appends, reads, flushes and retention continue
    /// meanwhile; compaction does not start. `moved` is called with the new directory before the first append to it.
    /// The old directory is renamed with `deleted_id` and waits for deletion.
    ///
    /// # Errors
    /// See [`MoveError`]. The log stays in the old directory, unless `moved` was called: then it is in the new one
    /// and offline.
    pub fn move_to(
        &self,
        future: &Path,
        state: &LogMove,
        throttle: &Throttle,
        deleted_id: &str,
        moved: impl FnOnce(&Path),
    ) -> Result<MovedLog, MoveError> {
        let _cleaning = self.wait_for_cleaning();
        let mut copier = Copier::new(self, future, state, throttle);
        copier.copy_set_aside()?;
        loop {
            copier.copy(&self.view.load_full())?;
            if copier.behind(&self.view.load()) <= SWITCH_BYTES {
                break;
            }
        }
        copier.complete_records()?;
        self.switch(copier, deleted_id, moved)
    }

    /// Aborts the current cleaner pass and prevents new ones. A thread that truncates the log ends the move.
    fn wait_for_cleaning(&self) -> MutexGuard<'_, ()> {
        self.cleaning_ends.fetch_add(1, Ordering::AcqRel);
        let cleaning = self.cleaning.lock();
        self.cleaning_ends.fetch_sub(1, Ordering::AcqRel);
        cleaning
    }

    pub(super) fn switch(
        &self,
        copier: Copier<'_>,
        deleted_id: &str,
        moved: impl FnOnce(&Path),
    ) -> Result<MovedLog, MoveError> {
        let (mut writer, _flushing) = self.lock_for_swap();
        let mut epochs = self.epochs.lock();
        self.ensure_online().map_err(|_| MoveError::Ended)?;
        let view = self.view.load_full();
        let (future, old) = (copier.future(), self.home.path());
        epochs.epochs.write(future, true)?;
        let records = copier.finish(&view)?;
        let new = future.with_file_name(old.file_name().unwrap_or_default());
        // Opened before the rename, which cannot be undone.
        let (to, from) = (parent_of(&new), parent_of(&old));
        let open = |path| file::Directory::open(path).map_err(LogError::io(path));
        let (names_there, names_here) = (open(to)?, open(from)?);
        file::rename(future, &new).map_err(LogError::io(future))?;
        // If the rename is not durable, the old directory still has all records acknowledged so far.
        let named = names_there.sync().map_err(LogError::io(to));
        self.home.moved_to(&new);
        moved(&new);
        self.publish_moved(&mut writer, &view, Arc::clone(&records));
        epochs.dirty = false;
        drop(epochs);
        named.map_err(|error| self.failed(error))?;
        drop(writer);
        let name = old.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let deleted = old.with_file_name(deleted_directory_name(name, deleted_id));
        let renamed = file::rename(&old, &deleted).map_err(LogError::io(&old));
        Ok(match renamed.and_then(|()| names_here.sync().map_err(LogError::io(from))) {
            Ok(()) => MovedLog { old: deleted, left: None },
            Err(error) => MovedLog { old: old.to_path_buf(), left: Some(error) },
        })
    }

    /// Publishes the log with the files of its new directory. Readers with an older view continue with their open
    /// files.
    fn publish_moved(&self, writer: &mut Writer, view: &View, records: Arc<std::fs::File>) {
        let mut records = Some(records);
        let max_index_bytes = self.config.load().segment_index_bytes;
        let moved = |(index, old): (usize, &Arc<Segment>)| {
            let entries = IndexEntries {
                offsets: old.offset_index.map.held(),
                times: old.time_index.map.held(),
                aborted: old.txn_index.len(),
            };
            let active = view.segments.is_active(index);
            let (size, index_bytes) = (view.limit_of(index), if active { max_index_bytes } else { 0 });
            let segment = Segment::existing(Arc::clone(&self.home), old.base_offset(), size, entries, index_bytes);
            segment.set_largest_timestamp(old.largest_timestamp());
            Arc::new(match records.take_if(|_| active) {
                Some(records) => segment.with_file(records),
                None => segment,
            })
        };
        let segments = view.segments.as_slice().iter().enumerate().map(moved).collect();
        view.segments.as_slice().iter().for_each(|segment| segment.retire());
        self.view.store(Arc::new(View { segments: Arc::new(SegmentList::new(segments)), ..*view }));
        writer.reserved = view.end_position;
        self.recovery_point.store(view.end_offset, Ordering::Release);
        self.directory_dirty.store(false, Ordering::Release);
        self.parent_dirty.store(false, Ordering::Release);
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
