//! Removing: the beginning of a log, or all of it.
//!
//! Owns the order of steps. Segments that go are renamed at once, in the order of their offsets, so that a crash leaves no
//! hole and the next opening finds what was begun; when the files themselves are removed is the owner's affair
//! (`file.delete.delay.ms`).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::LogError;
use crate::log::Log;
use crate::log::state::View;
use crate::segment::segment_list::SegmentList;

/// Segments whose files are open at a time while they are renamed: a log may have more than there are descriptors.
const OPEN_TOGETHER: usize = 64;

/// Segments that are out of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Where the log starts now.
    pub log_start_offset: i64,
    /// How many segments.
    pub segments: usize,
    /// Bytes of their records.
    pub bytes: u64,
    /// Their files, as they are called now; they wait to be removed.
    pub files: Vec<PathBuf>,
}

impl Removed {
    pub(crate) fn nothing(view: &View) -> Self {
        Self { log_start_offset: view.log_start_offset, segments: 0, bytes: 0, files: Vec::new() }
    }
}

impl Log {
    /// Moves the log start forward to `offset` (at most the log end); segments wholly below it are taken out of use.
    /// Readers that hold a slice of one go on reading.
    ///
    /// # Errors
    /// `Io` with the path that failed; after a rename that failed the log is offline.
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

    /// Moves the log start forward to `offset` (at most the log end), as a follower whose leader's log starts there. Segments
    /// below it stay in use until retention takes them.
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

    /// Takes the first `count` segments out of use, at least one staying; the log starts at `log_start_offset` from now on.
    /// The caller holds the writer.
    ///
    /// Files are renamed before readers see a later start: a start that somebody has seen survives a crash.
    pub(crate) fn take_out(&self, view: &View, count: usize, log_start_offset: i64) -> Result<Removed, LogError> {
        let mut removed = Removed { log_start_offset, segments: count, ..Removed::nothing(view) };
        let mut taken = 0;
        for some in view.segments.as_slice()[..count].chunks(OPEN_TOGETHER) {
            for segment in some {
                // A thread that holds the segment goes on with its open files.
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
