//! Opening a log: which files are trusted, which are scanned, and what is truncated.
//!
//! Owns Kafka's rules for a log directory found on disk. After a clean shutdown only the ends of the index files and
//! the last batches are read. After an unclean shutdown every segment from the recovery point on is read. Checksums
//! decide where the log ends, the bytes after the end are truncated, and indexes and producer state are rebuilt.
//! Unknown files are left alone.
//!
//! Bytes that may contain acknowledged records are never removed. They are set aside
//! ([`crate::recovery::set_aside`]), logged and reported ([`crate::recovery::loss`]). Only a torn write without a
//! valid batch after it is truncated for good.

mod closed;
mod found_files;
mod losses;

pub(crate) mod loss;
pub(crate) mod rebuild;
pub(crate) mod recovery_progress;
pub(crate) mod resync;
pub(crate) mod set_aside;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::directory::leader_epochs::LeaderEpochs;
use crate::directory::log_dir::{LOG_SUFFIX, LogHome, TXN_INDEX_SUFFIX, remove_if_present};
use crate::index::txn_index;
use crate::log::state::{View, Writer};
use crate::producer::producer_snapshot;
use crate::producer::producer_state::ProducerStates;
use crate::producer::verification::Verifications;
use crate::recovery::found_files::Files;
use crate::recovery::loss::{EndBeforeStart, Loss, LossCause};
use crate::recovery::rebuild::{FoundEnd, SegmentEnd};
use crate::segment::batch_scan::ScannedBatch;
use crate::segment::segment_list::SegmentList;
use crate::segment::{IndexEntries, Segment};
use crate::{LogConfig, LogError, OpenLog, RecoveryProgress};
use pybroker_record::{BatchHeader, Offset};
use pybroker_sys::file;

/// The repairs made while a log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes removed from the log, including complete segments.
    pub truncated_bytes: u64,
    /// Number of segments whose batches were read and checked.
    pub segments_scanned: usize,
    /// Number of segments removed because they follow a damaged one.
    pub segments_removed: usize,
    /// Number of segments below the recovery point whose indexes were rebuilt.
    pub indexes_rebuilt: usize,
    /// The missing records, and the cause of each loss.
    pub losses: Vec<Loss>,
    /// Damage that was repaired without losing a record.
    pub warnings: Vec<String>,
    /// The first missing offset of a hole in the log. Each opening finds it again.
    pub hole: Option<i64>,
}

impl Recovered {
    /// Returns whether records may be missing that were acknowledged: there is damage, not only a torn write.
    pub fn is_missing_records(&self) -> bool {
        self.hole.is_some() || self.losses.iter().any(|loss| loss.cause != LossCause::TornWrite)
    }
}

/// Number of unneeded snapshots that an opening may leave in a log's directory, so that repeated restarts do not fill
/// it.
const OLD_SNAPSHOTS_LEFT: usize = 7;

/// A loaded log, ready to be shared.
pub(crate) struct Loaded {
    pub(crate) view: View,
    pub(crate) writer: Writer,
    pub(crate) epochs: LeaderEpochs,
    pub(crate) recovery_point: i64,
    pub(crate) directory_dirty: bool,
    /// Whether the log's directory was created and its name is not on the device.
    pub(crate) parent_dirty: bool,
}

/// Loads the log in `home`.
pub(crate) fn load(
    home: &Arc<LogHome>,
    config: &LogConfig,
    how: OpenLog,
    progress: &RecoveryProgress,
) -> Result<(Loaded, Recovered), LogError> {
    let directory = home.path();
    let (made, mut files) = match Files::list(&directory) {
        Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            (file::make_directory(&directory).map_err(LogError::io(&directory))?, Files::list(&directory)?)
        }
        listed => (false, listed?),
    };
    let mut loader = Loader {
        home,
        config,
        how,
        progress,
        epochs: LeaderEpochs::default(),
        epochs_changed: false,
        epochs_lost: false,
        producers: ProducerStates::default(),
        snapshot_offset: -1,
        snapshots: std::mem::take(&mut files.snapshots),
        txn_indexes: std::mem::take(&mut files.txn_indexes),
        offset_indexes: std::mem::take(&mut files.offset_indexes),
        segments: Vec::with_capacity(files.logs.len().max(1)),
        end: None,
        recovered: Recovered::default(),
        directory_dirty: false,
        parent_dirty: made,
    };
    if !files.orphans.is_empty() {
        loader.warn(&format!("removed indexes whose segments are missing: {}", files.orphans.join(", ")));
    }
    loader.read_epochs(&directory, &files)?;
    loader.load_segments(&files)?;
    loader.finish()
}

struct Loader<'a> {
    home: &'a Arc<LogHome>,
    config: &'a LogConfig,
    how: OpenLog,
    progress: &'a RecoveryProgress,
    epochs: LeaderEpochs,
    epochs_changed: bool,
    /// Whether the file was damaged. Then the epochs of every batch must be read.
    epochs_lost: bool,
    producers: ProducerStates,
    snapshot_offset: i64,
    /// Offsets of the existing snapshots, ascending.
    snapshots: Vec<i64>,
    /// Base offsets of the existing transaction indexes and offset indexes, ascending.
    txn_indexes: Vec<i64>,
    offset_indexes: Vec<i64>,
    segments: Vec<Arc<Segment>>,
    /// End of the last loaded segment; set for the active one.
    end: Option<SegmentEnd>,
    recovered: Recovered,
    directory_dirty: bool,
    parent_dirty: bool,
}

impl Loader<'_> {
    fn read_epochs(&mut self, directory: &Path, files: &Files) -> Result<(), LogError> {
        let read = if files.has_epochs { LeaderEpochs::read(directory) } else { Ok(None) };
        let reason = match read {
            Ok(Some(epochs)) => {
                self.epochs = epochs;
                return Ok(());
            }
            // A log that has had no leader has no records and no file.
            Ok(None) if files.logs.iter().all(|&base| self.log_size(base).is_ok_and(|size| size == 0)) => return Ok(()),
            Ok(None) => "leader-epoch-checkpoint is missing".to_owned(),
            Err(LogError::Corrupt { path, reason }) => format!("{}: {reason}", path.display()),
            Err(error) => return Err(error),
        };
        self.warn(&format!("{reason}; leader epochs are read from the log instead"));
        self.epochs_lost = true;
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        self.recovered.warnings.push(text.to_owned());
    }

    fn load_segments(&mut self, files: &Files) -> Result<(), LogError> {
        let trusted = if self.how.clean_shutdown {
            files.logs.len()
        } else {
            // A segment that ends at the recovery point may have been sealed after the sync, with trimmed indexes
            // that were not synced.
            files.logs.partition_point(|&base| base < self.how.recovery_point).saturating_sub(1)
        };
        for (index, &base) in files.logs[..trusted].iter().enumerate() {
            let is_last = index + 1 == files.logs.len();
            let aborted = match self.txn_indexes.binary_search(&base) {
                Ok(_) => txn_index::check_file(&self.home.path(), base)?,
                Err(_) => Some(0),
            };
            let taken = match aborted {
                Some(aborted) if is_last => self.load_last(base, aborted)?,
                Some(aborted) => {
                    self.load_closed(Offset(base)..Offset(files.logs[index + 1]), aborted)?;
                    true
                }
                None => false,
            };
            if !taken {
                // The transaction index is damaged, and its rebuild needs the producer state. Or the last segment
                // does not end with a complete batch, so the shutdown was not clean after all.
                self.begin_scan(base)?;
                return self.scan_segments(&files.logs[index..]);
            }
        }
        if trusted < files.logs.len() {
            self.begin_scan(files.logs[trusted])?;
            return self.scan_segments(&files.logs[trusted..]);
        }
        Ok(())
    }

    /// Loads the last segment without reading all batches. `aborted` is the number of entries in its transaction
    /// index. Returns false if the segment does not end with a complete batch.
    fn load_last(&mut self, base: i64, aborted: u64) -> Result<bool, LogError> {
        let size = self.log_size(base)?;
        if let Some(entries) = self.index_entries(base, size)? {
            let (home, entries) = (Arc::clone(self.home), IndexEntries { aborted, ..entries });
            let segment = Segment::existing(home, base, size, entries, self.config.segment_index_bytes);
            match rebuild::find_end(&segment)? {
                Some(FoundEnd { is_time_sound: false, .. }) => {}
                found => return Ok(found.and_then(FoundEnd::whole).is_some_and(|end| self.take(segment, end))),
            }
        }
        let segment = self.new_segment(base, size, aborted)?;
        let end = self.rebuild_indexes(&segment)?;
        Ok(end.end_position == size && self.take(segment, end))
    }

    /// Returns the content of a trusted segment's index files if their ends are sound; `None` otherwise. The batches
    /// of a log smaller than the index interval are all read, so its empty offset index is not opened.
    fn index_entries(&self, base: i64, size: u64) -> Result<Option<IndexEntries>, LogError> {
        let is_small = size <= u64::from(self.config.index_interval_bytes).min(file::PAGE as u64);
        let unread = is_small && self.offset_indexes.binary_search(&base).is_ok();
        rebuild::check_index_files(self.home, base, size, unread)
    }

    fn take(&mut self, segment: Segment, end: SegmentEnd) -> bool {
        // Only a few of many logs are used soon, so the files opened for the checks are closed.
        let resting = segment.at_rest(self.config.segment_index_bytes);
        self.segments.push(Arc::new(resting));
        self.end = Some(end);
        true
    }

    fn log_size(&self, base: i64) -> Result<u64, LogError> {
        let path = self.home.segment_file(base, LOG_SUFFIX);
        Ok(fs::metadata(&path).map_err(LogError::io(&path))?.len())
    }

    /// Returns a segment whose offset index and time index must be rebuilt.
    fn new_segment(&self, base: i64, size: u64, aborted: u64) -> Result<Segment, LogError> {
        let entries = IndexEntries { aborted, ..IndexEntries::NOTHING };
        Ok(Segment::existing(Arc::clone(self.home), base, size, entries, self.config.segment_index_bytes))
    }

    /// Restores the producer state at the start of the first segment to scan.
    fn begin_scan(&mut self, base: i64) -> Result<(), LogError> {
        let warnings = &mut self.recovered.warnings;
        (self.producers, self.snapshot_offset) =
            rebuild::latest_snapshot(&self.home.path(), &self.snapshots, base, warnings)?;
        rebuild::replay(&mut self.producers, &self.segments, base)
    }

    fn scan_segments(&mut self, bases: &[i64]) -> Result<(), LogError> {
        for (index, &base) in bases.iter().enumerate() {
            let is_last = index + 1 == bases.len();
            if index > 0 && (self.is_hole_before(base) || self.end.is_some_and(|end| end.end_offset > base)) {
                return self.end_at_hole(bases[index - 1], &bases[index..]);
            }
            if !self.scan_segment(base, is_last, &bases[index + 1..])? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether the segment before this one ends too early. A file can lose its end without a trace, since its
    /// name is on the device before its data. Compaction leaves such gaps too, so a log that may have been compacted
    /// has no holes. A gap below the recovery point is no hole either: its records would be on the device.
    fn is_hole_before(&self, base: i64) -> bool {
        let never_compacted = !self.config.require_keys && self.how.recovery_point >= 0;
        never_compacted && base > self.how.recovery_point && self.end.is_some_and(|end| end.end_offset < base)
    }

    /// Checks a segment and truncates it after its last valid batch. Returns whether the log continues with the next
    /// segment. If not, the following segments are removed.
    fn scan_segment(&mut self, base: i64, is_last: bool, following: &[i64]) -> Result<bool, LogError> {
        let size = self.log_size(base)?;
        let segment = self.new_segment(base, size, 0)?;
        // Opened first: if there is no file descriptor, the opening fails before it changes anything.
        segment.file()?;
        if self.txn_indexes.binary_search(&base).is_ok() {
            remove_if_present(&self.home.segment_file(base, TXN_INDEX_SUFFIX))?;
        }
        let (epochs, producers) = (&mut self.epochs, &mut self.producers);
        let mut epochs_changed = false;
        let mut progress = self.progress.segment(size);
        let end =
            rebuild::scan(&segment, self.config.index_interval_bytes, |ScannedBatch { header, bytes, .. }| {
                epochs_changed |= note_epoch(epochs, header);
                progress.add(bytes.len());
                let aborted = producers.replay(header, rebuild::marker_of(&segment, header, bytes));
                segment.txn_index.append(aborted.as_slice())
            })?;
        drop(progress);
        self.epochs_changed |= epochs_changed;
        self.recovered.segments_scanned += 1;
        let cut = size - end.end_position;
        let goes_on = cut > 0 && self.is_noise(&segment, &end, following)?;
        if goes_on {
            self.lose_noise(&segment, &end);
        } else if cut > 0 {
            // Done first: a crash after the truncation would leave a log that seems complete but has a hole.
            self.give_up_behind(&segment, &end, following)?;
        }
        let path = segment.path();
        // Also frees preallocated blocks beyond the end.
        file::set_len(&*segment.file()?, end.end_position).map_err(LogError::io(&path))?;
        segment.set_size(end.end_position);
        let whole = cut == 0 || goes_on;
        if !is_last && whole {
            segment.seal()?;
        }
        self.take(segment, end);
        Ok(whole)
    }

    fn finish(mut self) -> Result<(Loaded, Recovered), LogError> {
        let scanned = self.recovered.segments_scanned > 0;
        let log_start_offset = self.complete_start()?;
        let active = Arc::clone(&self.segments[self.segments.len() - 1]);
        let end = match self.end {
            Some(end) => end,
            None => rebuild::find_end(&active)?.and_then(FoundEnd::whole).ok_or_else(|| LogError::Corrupt {
                path: active.path(),
                reason: "the segment does not end with a whole batch".to_owned(),
            })?,
        };
        let directory = self.home.path();
        let offsets = Offset(log_start_offset)..Offset(end.end_offset);
        self.check_ends(&offsets);
        for &stray in self.snapshots.iter().filter(|&&at| at > end.end_offset) {
            producer_snapshot::remove(&directory, stray);
        }
        if !scanned {
            (self.producers, self.snapshot_offset) = rebuild::restore_producers(
                &directory,
                &self.snapshots,
                &self.segments,
                end.end_offset,
                &mut self.recovered.warnings,
            )?;
        }
        self.producers.advance_to(end.end_offset);
        self.producers.expire(self.how.now_ms, self.config.producer_id_expiration_ms);
        let old_snapshots = self.leave_old_snapshots(&directory, scanned);
        self.complete_epochs(offsets)?;
        let recovery_point = if self.how.clean_shutdown && !scanned {
            end.end_offset
        } else {
            self.how.recovery_point.clamp(0, end.end_offset)
        };
        let writer = Writer {
            verifications: Verifications::default(),
            producers: self.producers,
            snapshot_offset: self.snapshot_offset,
            old_snapshots,
            bytes_since_index: end.bytes_since_index,
            reserved: end.end_position,
            created_ms: self.how.now_ms,
            first_timestamp: None,
            oldest_epoch: i32::MIN,
        };
        let view = View {
            segments: Arc::new(SegmentList::new(self.segments)),
            log_start_offset,
            end_offset: end.end_offset,
            end_position: end.end_position,
            tail: end.tail,
        };
        let (directory_dirty, parent_dirty) = (self.directory_dirty, self.parent_dirty);
        let loaded = Loaded { view, writer, epochs: self.epochs, recovery_point, directory_dirty, parent_dirty };
        Ok((loaded, self.recovered))
    }

    /// Ensures that there is an active segment, and that the log start is inside the log.
    fn complete_start(&mut self) -> Result<i64, LogError> {
        let wanted = self.how.log_start_offset.max(0);
        let end_offset = match self.end {
            Some(end) => end.end_offset,
            None => wanted,
        };
        if self.segments.is_empty() {
            return self.begin_at(wanted);
        }
        if end_offset < wanted {
            // A clean shutdown has left the log at this length, so the checkpoint is wrong.
            let ignored = self.how.clean_shutdown && (0..=end_offset).contains(&self.how.recovery_point);
            self.end_before_start(EndBeforeStart { log_start_offset: wanted, end_offset }, ignored)?;
            return if ignored { Ok(self.segments[0].base_offset()) } else { self.begin_at(wanted) };
        }
        let below = self.segments.partition_point(|segment| segment.base_offset() <= wanted).saturating_sub(1);
        self.remove_first(below)?;
        Ok(wanted.max(self.segments[0].base_offset()))
    }

    /// Restarts the log at an offset, without records and producers. A marker may be lost with the records: a transaction that
    /// a snapshot or a scan shows as open would stay open.
    fn begin_at(&mut self, offset: i64) -> Result<i64, LogError> {
        let directory = self.home.path();
        self.snapshots.drain(..).for_each(|at| producer_snapshot::remove(&directory, at));
        (self.producers, self.snapshot_offset) = (ProducerStates::default(), -1);
        let segment = Segment::create(Arc::clone(self.home), offset, self.config.segment_index_bytes)?;
        segment.close_file();
        self.directory_dirty = true;
        self.segments.push(Arc::new(segment));
        self.end = None;
        Ok(offset)
    }

    /// Removes the first segments and the snapshots at their base offsets.
    fn remove_first(&mut self, count: usize) -> Result<(), LogError> {
        for segment in self.segments.drain(..count) {
            segment.remove()?;
            self.snapshots.retain(|&at| at != segment.base_offset());
        }
        Ok(())
    }

    /// Removes unneeded snapshots, and returns those left for [`Log::forget_old`]. The newest snapshot and those at a
    /// segment's base offset are needed. Deletion is deferred because it costs as much as opening a file. After an
    /// unclean shutdown none is deferred.
    fn leave_old_snapshots(&self, directory: &Path, scanned: bool) -> Vec<i64> {
        let kept =
            |at: i64| at == self.snapshot_offset || self.segments.iter().any(|segment| segment.base_offset() == at);
        let unneeded = self.snapshots.iter().copied().filter(|&at| !kept(at));
        let (mut old, mut removed): (Vec<i64>, Vec<i64>) =
            unneeded.partition(|&at| !scanned && at < self.snapshot_offset);
        removed.extend(old.drain(..old.len().saturating_sub(OLD_SNAPSHOTS_LEFT)));
        removed.into_iter().for_each(|at| producer_snapshot::remove(directory, at));
        old
    }

    fn complete_epochs(&mut self, offsets: Range<Offset>) -> Result<(), LogError> {
        let (log_start_offset, end_offset) = (offsets.start.0, offsets.end.0);
        if self.epochs_lost {
            self.epochs_changed = true;
            self.epochs = LeaderEpochs::default();
            let epochs = &mut self.epochs;
            rebuild::walk_batches(&self.segments, offsets, |_, header, _| {
                note_epoch(epochs, header);
                Ok(())
            })?;
        }
        // The leader of an empty log, or of one truncated to the start of its epoch, is often the next leader too.
        // Removing its epoch here would rewrite the file at the start, and again when it becomes leader.
        self.epochs_changed |= self.epochs.truncate_beyond(end_offset);
        self.epochs_changed |= self.epochs.truncate_from_start(log_start_offset);
        if self.epochs_changed { self.epochs.write(&self.home.path(), true) } else { Ok(()) }
    }
}

/// Adds the epoch of a batch if it is later than all before. Returns whether the list changed.
fn note_epoch(epochs: &mut LeaderEpochs, header: &BatchHeader) -> bool {
    epochs.latest().is_none_or(|latest| header.partition_leader_epoch > latest)
        && epochs.assign(header.partition_leader_epoch, header.base_offset)
}
