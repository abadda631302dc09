//! Removal of a log's first segments, or of the whole log.
//!
//! Owns the order of steps. Segments are renamed at once, in offset order, so that a crash leaves no hole and the
//! next opening finds the renamed files. The caller deletes those files later (`file.delete.delay.ms`).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::LogError;
use crate::log::Log;
use crate::log::state::View;
use crate::segment::segment_list::SegmentList;

/// Number of segments whose files are open at a time while they are renamed. A log may have more segments than the
/// process has file descriptors.
const OPEN_TOGETHER: usize = 64;

/// Segments that were removed from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The log start offset after the removal.
    pub log_start_offset: i64,
    /// Number of removed segments.
    pub segments: usize,
    /// Bytes of their records.
    pub bytes: u64,
    /// Paths of their renamed files, which wait for deletion.
    pub files: Vec<PathBuf>,
}

impl Removed {
    pub(crate) fn nothing(view: &View) -> Self {
        Self { log_start_offset: view.log_start_offset, segments: 0, bytes: 0, files: Vec::new() }
    }
}

impl Log {
    /// Moves the log start offset forward to `offset` (at most the log end) and removes the segments that lie wholly
    /// below it. Readers that have a slice of a removed segment can continue to read it.
    ///
    /// # Errors
    /// `Io` with the path that failed. After a failed rename the log is offline.
    pub fn advance_log_start(&self, offset: i64) -> Result<Removed, LogError> {
        let _writer = self.writer.lock();
        self.ensure_online()?;
        let view = self.view.load_full();
        let offset = offset.min(view.end_offset);
        if offset <= view.log_start_offset {
            return Ok(Removed::nothing(&view));
        }
        self.take_out(&view, view.segments.floor(offset), offset)
    }

    /// Moves the log start offset of a follower forward to its leader's (at most the log end). Segments below it stay
    /// until retention removes them.
    ///
    /// # Errors
    /// `Io` when the leader epoch file cannot be written.
    pub fn follow_log_start(&self, offset: i64) -> Result<(), LogError> {
        let _writer = self.writer.lock();
        self.ensure_online()?;
        let view = self.view.load_full();
        let offset = offset.min(view.end_offset);
        if offset <= view.log_start_offset {
            return Ok(());
        }
        self.show_from(&view, 0, offset);
        self.change_epochs(|epochs| epochs.truncate_from_start(offset))
    }

    /// Removes the first `count` segments, at least one of which must stay, and sets the log start offset. The caller
    /// holds the writer lock.
    ///
    /// Files are renamed before readers see the new log start offset: an offset that a reader has seen survives a
    /// crash.
    pub(crate) fn take_out(&self, view: &View, count: usize, log_start_offset: i64) -> Result<Removed, LogError> {
        let mut removed = Removed { log_start_offset, segments: count, ..Removed::nothing(view) };
        let mut taken = 0;
        for some in view.segments.as_slice()[..count].chunks(OPEN_TOGETHER) {
            for segment in some {
                // Threads that use the segment continue with its open files.
                segment.open_all()?;
                segment.retire();
                removed.bytes += segment.size();
                removed.files.append(&mut segment.mark_deleted().map_err(|error| self.failed(error))?);
            }
            taken += some.len();
            let start = view.segments.as_slice()[taken].base_offset().max(view.log_start_offset);
            self.show_from(view, taken, start);
        }
        self.show_from(view, count, log_start_offset);
        self.change_epochs(|epochs| epochs.truncate_from_start(log_start_offset))?;
        if count > 0 {
            self.directory_dirty.store(true, Ordering::Release);
        }
        Ok(removed)
    }

    fn show_from(&self, view: &View, first: usize, log_start_offset: i64) {
        let segments = match first {
            0 => Arc::clone(&view.segments),
            _ => Arc::new(SegmentList::new(view.segments.as_slice()[first..].to_vec())),
        };
        self.view.store(Arc::new(View { segments, log_start_offset, ..*view }));
    }

    /// Deletes the directory with all its files. Later appends are rejected.
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
