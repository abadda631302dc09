//! Fills the future replica: copies the files of a log while the log is in use.
//!
//! Owns the copy progress. A file from an earlier run is compared and written only where it differs, so a resumed
//! move reads existing bytes and writes the rest. Each sealed segment is on the device before the next one begins.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{LogMove, MoveError};
use crate::cleaner::Throttle;
use crate::directory::log_dir::remove_if_present;
use crate::directory::log_dir::{
    LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, parse_segment_file_name,
    segment_file_name,
};
use crate::index::offset_index::OffsetIndex;
use crate::index::time_index::TimeIndex;
use crate::index::txn_index;
use crate::log::Log;
use crate::log::state::View;
use crate::producer::producer_snapshot;
use crate::segment::Segment;
use crate::{LogError, REPORT_FILE, set_aside_files};
use pybroker_sys::file;

/// Bytes to read and write at once.
const CHUNK: usize = 1 << 20;

/// A file of the future replica, and its copy progress.
struct FileCopy {
    path: PathBuf,
    target: Arc<File>,
    /// Bytes in the file, from this or an earlier run.
    present: u64,
    /// Bytes that are verified to equal the source.
    done: u64,
    /// Whether the file may have bytes that are not on the device.
    dirty: bool,
}

impl FileCopy {
    fn begin(path: PathBuf) -> Result<Self, LogError> {
        let opened = file::open_or_create(&path).and_then(|target| Ok((target.metadata()?.len(), target)));
        let (present, target) = opened.map_err(LogError::io(&path))?;
        Ok(Self { path, target: Arc::new(target), present, done: 0, dirty: true })
    }

    /// Copies the next bytes. Identical bytes that are there already are not written again.
    fn take(&mut self, bytes: &[u8], compared: &mut Vec<u8>) -> Result<(), LogError> {
        let end = self.done + bytes.len() as u64;
        if !(end <= self.present && self.holds(bytes, compared)?) {
            self.dirty = true;
            file::write_all_at(&self.target, bytes, self.done).map_err(LogError::io(&self.path))?;
        }
        self.done = end;
        self.present = self.present.max(end);
        Ok(())
    }

    fn holds(&self, bytes: &[u8], compared: &mut Vec<u8>) -> Result<bool, LogError> {
        compared.resize(bytes.len(), 0);
        let read = file::read_full_at(&self.target, compared, self.done).map_err(LogError::io(&self.path))?;
        Ok(compared[..read] == *bytes)
    }

    /// Truncates bytes that an earlier run has left beyond the end, and syncs the file.
    fn complete(&mut self) -> Result<(), LogError> {
        if self.present > self.done {
            file::set_len(&self.target, self.done).map_err(LogError::io(&self.path))?;
            (self.present, self.dirty) = (self.done, true);
        }
        if std::mem::take(&mut self.dirty) {
            file::sync_data(&self.target).map_err(LogError::io(&self.path))?;
        }
        Ok(())
    }
}

/// Copies the files of one log; see the module.
pub(super) struct Copier<'a> {
    log: &'a Log,
    future: &'a Path,
    state: &'a LogMove,
    throttle: &'a Throttle,
    /// Whether the throttle applies. It does not while appends wait.
    paced: bool,
    /// Base offsets of segments that are completely copied and on the device.
    finished: BTreeSet<i64>,
    snapshots: BTreeSet<i64>,
    /// The copy of the active segment's log file, and its base offset.
    growing: Option<(i64, FileCopy)>,
    chunk: Vec<u8>,
    compared: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(log: &'a Log, future: &'a Path, state: &'a LogMove, throttle: &'a Throttle) -> Self {
        let (finished, snapshots) = (BTreeSet::new(), BTreeSet::new());
        let (chunk, compared) = (vec![0; CHUNK], Vec::new());
        Self { log, future, state, throttle, paced: true, finished, snapshots, growing: None, chunk, compared }
    }

    pub(super) fn future(&self) -> &'a Path {
        self.future
    }

    /// Returns `Ended` if the move must end.
    fn check(&self) -> Result<(), MoveError> {
        let ended = self.state.cancelled.load(Ordering::Acquire)
            || self.throttle.is_stopped()
            || self.log.cleaning_ends.load(Ordering::Acquire) > 0
            || self.log.is_offline();
        if ended { Err(MoveError::Ended) } else { Ok(()) }
    }

    /// Copies the data of the view that the future replica lacks.
    pub(super) fn copy(&mut self, view: &View) -> Result<(), MoveError> {
        for (index, segment) in view.segments.as_slice().iter().enumerate() {
            if self.finished.contains(&segment.base_offset()) {
                continue;
            }
            match self.copy_segment(view, index, segment) {
                // Retention removed the segment meanwhile.
                Err(MoveError::Log(_)) if segment.is_retired() => self.growing = None,
                copied => copied?,
            }
        }
        self.copy_snapshots()
    }

    /// Returns the bytes of records in the view that the future replica lacks.
    pub(super) fn behind(&self, view: &View) -> u64 {
        let missing = |(index, segment): (usize, &Arc<Segment>)| match &self.growing {
            _ if self.finished.contains(&segment.base_offset()) => 0,
            Some((base, records)) if *base == segment.base_offset() => {
                view.limit_of(index).saturating_sub(records.done)
            }
            _ => view.limit_of(index),
        };
        view.segments.as_slice().iter().enumerate().map(missing).sum()
    }

    /// Copies the files that recoveries have set aside, and their report.
    pub(super) fn copy_set_aside(&mut self) -> Result<(), MoveError> {
        let home = self.log.home.path();
        let report = home.join(REPORT_FILE);
        let mut files = set_aside_files(&home)?;
        if let Ok(metadata) = fs::metadata(&report) {
            files.push((REPORT_FILE.to_owned(), metadata.len()));
        }
        for (name, bytes) in files {
            let source = home.join(&name);
            let opened = File::open(&source).map_err(LogError::io(&source))?;
            let mut copy = FileCopy::begin(self.future.join(&name))?;
            while copy.done < bytes {
                self.check()?;
                let len = self.copy_chunk(&mut copy, &opened, bytes, || source.clone())?;
                self.throttle.count(len, || self.check().is_err());
            }
            copy.complete()?;
        }
        Ok(())
    }

    /// Syncs the copied records of the active segment.
    pub(super) fn complete_records(&mut self) -> Result<(), MoveError> {
        match &mut self.growing {
            Some((_, records)) => Ok(records.complete()?),
            None => Ok(()),
        }
    }

    /// Copies the rest, syncs it, and returns the log file of the active segment. The caller ensures that the log
    /// does not change.
    pub(super) fn finish(mut self, view: &View) -> Result<Arc<File>, MoveError> {
        self.paced = false;
        self.copy(view)?;
        self.complete_records()?;
        let active = view.segments.active();
        self.copy_indexes(active, false)?;
        self.remove_others(view)?;
        file::sync_directory(self.future).map_err(LogError::io(self.future))?;
        let records = self.growing.map(|(_, records)| records.target);
        records.ok_or(MoveError::Ended)
    }

    fn target(&self, base_offset: i64, suffix: &str) -> PathBuf {
        self.future.join(segment_file_name(base_offset, suffix))
    }

    fn copy_segment(&mut self, view: &View, index: usize, segment: &Segment) -> Result<(), MoveError> {
        let base = segment.base_offset();
        let mut records = match self.growing.take_if(|(growing, _)| *growing == base) {
            Some((_, records)) => records,
            None => FileCopy::begin(self.target(base, LOG_SUFFIX))?,
        };
        let limit = view.limit_of(index);
        let source = open(view, index)?;
        while records.done < limit {
            self.check()?;
            let len = self.copy_chunk(&mut records, &source, limit, || segment.path())?;
            self.state.bytes.fetch_add(len as u64, Ordering::AcqRel);
            if records.done < limit {
                self.state.end_offset.store(segment.offset_index.covered(records.done)?, Ordering::Release);
            }
            if self.paced {
                self.throttle.count(len, || self.check().is_err());
            }
        }
        if view.segments.is_active(index) {
            self.growing = Some((base, records));
            self.state.end_offset.store(view.end_offset, Ordering::Release);
            return Ok(());
        }
        self.copy_indexes(segment, true)?;
        records.complete()?;
        self.finished.insert(base);
        self.state.end_offset.store(view.segments.as_slice()[index + 1].base_offset(), Ordering::Release);
        Ok(())
    }

    fn copy_chunk(
        &mut self,
        copy: &mut FileCopy,
        source: &File,
        limit: u64,
        path: impl Fn() -> PathBuf,
    ) -> Result<usize, LogError> {
        let len = (limit - copy.done).min(CHUNK as u64) as usize;
        let chunk = &mut self.chunk[..len];
        let read = file::read_full_at(source, chunk, copy.done).map_err(LogError::io(path()))?;
        if read < len {
            return Err(LogError::io(path())(io::ErrorKind::UnexpectedEof.into()));
        }
        copy.take(chunk, &mut self.compared)?;
        Ok(len)
    }

    /// Copies the entries of a segment's indexes, without the preallocated space after them.
    fn copy_indexes(&mut self, segment: &Segment, sealed: bool) -> Result<(), MoveError> {
        let base = segment.base_offset();
        let (offsets, times) = (&segment.offset_index.map, &segment.time_index.map);
        let offset_bytes = u64::from(offsets.len()) * OffsetIndex::ENTRY_BYTES;
        let time_bytes = u64::from(times.len()) * TimeIndex::ENTRY_BYTES;
        self.copy_small(&offsets.path(), base, OFFSET_INDEX_SUFFIX, offset_bytes, sealed)?;
        self.copy_small(&times.path(), base, TIME_INDEX_SUFFIX, time_bytes, sealed)?;
        let aborted_bytes = segment.txn_index.len() * txn_index::ENTRY_BYTES as u64;
        self.copy_small(&segment.txn_index.path(), base, TXN_INDEX_SUFFIX, aborted_bytes, false)
    }

    /// Copies the file of a base offset. An empty file is only created if `even_empty`.
    fn copy_small(
        &mut self,
        source: &Path,
        base_offset: i64,
        suffix: &str,
        bytes: u64,
        even_empty: bool,
    ) -> Result<(), MoveError> {
        let target = self.target(base_offset, suffix);
        if bytes == 0 && !even_empty {
            return Ok(remove_if_present(&target)?);
        }
        let mut copy = FileCopy::begin(target)?;
        if bytes > 0 {
            let opened = file::open(source).map_err(LogError::io(source))?;
            while copy.done < bytes {
                self.copy_chunk(&mut copy, &opened, bytes, || source.to_path_buf())?;
            }
        }
        Ok(copy.complete()?)
    }

    fn copy_snapshots(&mut self) -> Result<(), MoveError> {
        let home = self.log.home.path();
        for at in producer_snapshot::offsets(&home)? {
            if self.snapshots.contains(&at) {
                continue;
            }
            let source = home.join(segment_file_name(at, SNAPSHOT_SUFFIX));
            let bytes = match fs::metadata(&source) {
                Ok(metadata) => metadata.len(),
                // Retention removed the file after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LogError::io(&source)(error).into()),
            };
            self.copy_small(&source, at, SNAPSHOT_SUFFIX, bytes, true)?;
            self.snapshots.insert(at);
        }
        Ok(())
    }

    /// Removes files that the log does not have: they were deleted meanwhile, or an earlier run has left them.
    fn remove_others(&self, view: &View) -> Result<(), LogError> {
        let bases: BTreeSet<i64> = view.segments.as_slice().iter().map(|segment| segment.base_offset()).collect();
        let snapshots: BTreeSet<i64> = producer_snapshot::offsets(&self.log.home.path())?.into_iter().collect();
        for entry in file::list(self.future).map_err(LogError::io(self.future))? {
            let name = entry.map_err(LogError::io(self.future))?.file_name();
            let Some(name) = name.to_str() else { continue };
            let at = |suffix| parse_segment_file_name(name, suffix);
            let of_segment = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX];
            let removed = match (of_segment.into_iter().find_map(at), at(SNAPSHOT_SUFFIX)) {
                (Some(base), _) => !bases.contains(&base),
                (None, Some(offset)) => !snapshots.contains(&offset),
                (None, None) => false,
            };
            if removed {
                remove_if_present(&self.future.join(name))?;
            }
        }
        Ok(())
    }
}

/// Opens the log file of a segment. Files of sealed segments are opened only for the copy, because a log may have
/// more segments than the process has file descriptors.
fn open(view: &View, index: usize) -> Result<Arc<File>, LogError> {
    let segment = &view.segments.as_slice()[index];
    if view.segments.is_active(index) {
        return segment.file();
    }
    let path = segment.path();
    file::open(&path).map(Arc::new).map_err(LogError::io(&path))
}
