//! Replaces source segments by the cleaned segment.
//!
//! Owns the order of renames, which is Kafka's. After a crash at any point, opening the log restores either the old
//! segments or the new one ([`super::half_done`]). Readers with an older view continue with the old files, which are
//! open.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::OUTPUT_SUFFIXES;
use super::SWAP_SUFFIX;
use super::output::{Finished, cleaned_file};
use super::pass::CleanError;
use crate::LogError;
use crate::directory::log_dir::{DELETED_SUFFIX, SNAPSHOT_SUFFIX, TXN_INDEX_SUFFIX};
use crate::log::Log;
use crate::log::state::{View, Writer};
use crate::segment::Segment;
use crate::segment::segment_list::SegmentList;
use pybroker_sys::file;

impl Log {
    /// Replaces `old`, adjacent segments of the log, by the segment whose `.cleaned` files are complete. Returns the
    /// paths of the renamed old files.
    ///
    /// # Errors
    /// `Aborted` when retention or truncation has changed the segments during the pass. After a failed rename the log
    /// is offline.
    pub(crate) fn swap_in(&self, old: &[Arc<Segment>], finished: &Finished) -> Result<Vec<PathBuf>, CleanError> {
        for segment in old {
            segment.open_all()?;
        }
        let home = self.home.path();
        let directory = file::Directory::open(&home).map_err(LogError::io(&home))?;
        let deleted = {
            let (_writer, _flushing) = self.lock_for_swap();
            let view = self.view.load_full();
            let found = place_of(&view, old).filter(|_| !self.is_offline());
            let Some(at) = found else {
                let _ = super::output::remove_leftovers(&self.home, finished.base_offset);
                return Err(CleanError::Aborted);
            };
            let deleted = self.rename_all(old, finished).map_err(|error| self.failed(error))?;
            self.publish_swap(&view, at, old.len(), finished);
            deleted
        };
        directory.sync().map_err(LogError::io(&home)).map_err(|error| self.failed(error))?;
        Ok(deleted)
    }

    /// Locks writer and flush together. Appends do not wait for a sync in progress.
    pub(crate) fn lock_for_swap(&self) -> (MutexGuard<'_, Writer>, MutexGuard<'_, ()>) {
        loop {
            let writer = self.writer.lock();
            if let Some(flushing) = self.flushing.try_lock() {
                return (writer, flushing);
            }
            drop(writer);
            drop(self.flushing.lock());
        }
    }

    fn rename_all(&self, old: &[Arc<Segment>], finished: &Finished) -> Result<Vec<PathBuf>, LogError> {
        let made = OUTPUT_SUFFIXES.iter().filter(|suffix| **suffix != TXN_INDEX_SUFFIX || finished.entries.aborted > 0);
        let swap = |suffix: &str| self.home.segment_file(finished.base_offset, &format!("{suffix}{SWAP_SUFFIX}"));
        for suffix in made.clone() {
            let from = cleaned_file(&self.home, finished.base_offset, suffix);
            file::rename(&from, &swap(suffix)).map_err(LogError::io(&from))?;
        }
        let mut deleted = Vec::new();
        for segment in old {
            // The producer snapshot at the first segment's base offset stays valid.
            let snapshot = (segment.base_offset() != finished.base_offset).then_some(SNAPSHOT_SUFFIX);
            for suffix in OUTPUT_SUFFIXES.iter().copied().chain(snapshot) {
                let from = self.home.segment_file(segment.base_offset(), suffix);
                let to = self.home.segment_file(segment.base_offset(), &format!("{suffix}{DELETED_SUFFIX}"));
                match file::rename(&from, &to) {
                    Ok(()) => deleted.push(to),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(LogError::io(&from)(error)),
                }
            }
        }
        for suffix in made {
            let from = swap(suffix);
            file::rename(&from, &self.home.segment_file(finished.base_offset, suffix)).map_err(LogError::io(&from))?;
        }
        Ok(deleted)
    }

    fn publish_swap(&self, view: &View, at: usize, count: usize, finished: &Finished) {
        let Finished { base_offset, size, entries, largest, .. } = *finished;
        let segment = Segment::existing(Arc::clone(&self.home), base_offset, size, entries, 0);
        segment.set_largest_timestamp(largest);
        let mut segments = view.segments.as_slice().to_vec();
        segments.splice(at..at + count, [Arc::new(segment)]);
        self.view.store(Arc::new(View { segments: Arc::new(SegmentList::new(segments)), ..*view }));
    }
}

/// Returns the index of exactly these segments in the view.
fn place_of(view: &View, segments: &[Arc<Segment>]) -> Option<usize> {
    let same = |window: &[Arc<Segment>]| window.iter().zip(segments).all(|(a, b)| Arc::ptr_eq(a, b));
    view.segments.as_slice().windows(segments.len()).position(same)
}
