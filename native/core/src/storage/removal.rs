//! Removing: the beginning of a log, or all of it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::LogError;
use super::log::{Log, View};
use super::log_dir::deleted_directory_name;
use super::segment_list::SegmentList;
use crate::sys::file;

impl Log {
    /// Moves the log start forward to `offset` (at most the log end); segments wholly below it are removed. Readers that
    /// hold a slice of one go on reading.
    ///
    /// # Errors
    /// `Io` with the path that failed.
    pub fn advance_log_start(&self, offset: i64) -> Result<(), LogError> {
        let _writer = self.writer.lock();
        self.ensure_online()?;
        let view = self.view.load_full();
        let offset = offset.min(view.end_offset);
        if offset <= view.log_start_offset {
            return Ok(());
        }
        let first_kept = view.segments.floor(offset);
        let segments = if first_kept == 0 {
            Arc::clone(&view.segments)
        } else {
            Arc::new(SegmentList::new(view.segments.as_slice()[first_kept..].to_vec()))
        };
        self.view.store(Arc::new(View { segments, log_start_offset: offset, ..*view }));
        self.change_epochs(|epochs| epochs.truncate_from_start(offset))?;
        for removed in &view.segments.as_slice()[..first_kept] {
            removed.remove()?;
        }
        Ok(())
    }

    /// Renames the directory to `<topic>-<partition>.<unique id>-delete`, so that its name is free and a restart knows what
    /// it is; appends are refused from now on, reads go on.
    ///
    /// # Errors
    /// `Io` when the rename fails; the log then stays what it was.
    pub fn rename_for_delete(&self, unique_id: &str) -> Result<(), LogError> {
        let _no_cleaning = self.end_cleaning();
        let _writer = self.writer.lock();
        let _flushing = self.flushing.lock();
        let old = self.home.path();
        let name = old.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let new = old.with_file_name(deleted_directory_name(name, unique_id));
        // Files of sealed segments are opened by path on first use; the path follows the directory.
        fs::rename(&old, &new).map_err(LogError::io(&old))?;
        self.home.moved_to(&new);
        self.closed.store(true, Ordering::Release);
        match new.parent() {
            Some(parent) => file::sync_directory(parent).map_err(LogError::io(parent)),
            None => Ok(()),
        }
    }

    /// Removes the directory and everything in it; appends are refused from now on.
    ///
    /// # Errors
    /// `Io` with the directory.
    pub fn delete(&self) -> Result<(), LogError> {
        let _no_cleaning = self.end_cleaning();
        let _writer = self.writer.lock();
        let _flushing = self.flushing.lock();
        self.closed.store(true, Ordering::Release);
        let path = self.home.path();
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LogError::io(&path)(error)),
            _ => Ok(()),
        }
    }
}
