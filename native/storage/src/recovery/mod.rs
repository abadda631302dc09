//! Opening a log: what is trusted, what is scanned, what is cut.
//!
//! Owns Kafka's rules for a directory found on disk. After a clean shutdown nothing is read but the ends of the index files
//! and the last batches. After an unclean one every segment from the recovery point's on is read: checksums decide where
//! the log ends, what follows is cut, indexes and producers' state are made anew. Files that are none of ours are left
//! alone.
//!
//! What may hold acknowledged records is never removed: it is set aside ([`crate::recovery::set_aside`]), said and written down
//! ([`crate::recovery::loss`]). Only a write that did not end, with nothing valid behind it, is cut for good.

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

/// What opening a log had to repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes taken out of the log, whole segments included.
    pub truncated_bytes: u64,
    /// Segments whose batches were read and checked.
    pub segments_scanned: usize,
    /// Segments taken out of the log because they follow a damaged one.
    pub segments_removed: usize,
    /// Trusted segments whose indexes were built anew.
    pub indexes_rebuilt: usize,
    /// The records that are missing now, and why.
    pub losses: Vec<Loss>,
    /// What was damaged and could be made anew without losing a record.
    pub warnings: Vec<String>,
    /// The first offset that is missing within the log, which continues behind it. Each opening finds it again.
    pub hole: Option<i64>,
}

impl Recovered {
    /// Whether records that may have been acknowledged are missing: damage, and no write that did not end.
    pub fn is_missing_records(&self) -> bool {
        self.hole.is_some() || self.losses.iter().any(|loss| loss.cause != LossCause::TornWrite)
    }
}

/// Snapshots that nothing needs and that a start may leave in a log's directory, so that restarts in a row do not fill it.
const OLD_SNAPSHOTS_LEFT: usize = 7;

/// A log as it was found, ready to be shared.
pub(crate) struct Loaded {
    pub(crate) view: View,
    pub(crate) writer: Writer,
    pub(crate) epochs: LeaderEpochs,
    pub(crate) recovery_point: i64,
    pub(crate) directory_dirty: bool,
    /// The log's directory was made: its name is not on the device.
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
    /// The file was damaged: the epochs of every batch have to be read.
    epochs_lost: bool,
    producers: ProducerStates,
    snapshot_offset: i64,
    /// Offsets of the snapshots that are there, ascending.
    snapshots: Vec<i64>,
    /// Base offsets of the indexes of aborted transactions, and of those of offsets, that are there, ascending.
    txn_indexes: Vec<i64>,
    offset_indexes: Vec<i64>,
    segments: Vec<Arc<Segment>>,
    /// End of the last segment loaded; known for the active one.
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
            // A log that has had no leader yet has no records, and no file.
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
            // A segment that ends at the recovery point may have been sealed after the sync, its indexes cut but not synced.
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
                // The index of aborted transactions is damaged, which takes the producers' state to mend; or the last
                // segment does not end where it should, and this was no clean shutdown after all.
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

    /// Takes the last segment without reading its batches, and `aborted` transactions in its index; `false` when it does not
    /// end in a whole batch.
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

    /// What a trusted segment's index files hold, as far as a look at their ends can show that they are sound; `None`
    /// otherwise. The batches of a log that has no more bytes than the index's interval are all read: its offset index,
    /// which has no entry, is left as it is.
    fn index_entries(&self, base: i64, size: u64) -> Result<Option<IndexEntries>, LogError> {
        let is_small = size <= u64::from(self.config.index_interval_bytes).min(file::PAGE as u64);
        let unread = is_small && self.offset_indexes.binary_search(&base).is_ok();
        rebuild::check_index_files(self.home, base, size, unread)
    }

    fn take(&mut self, segment: Segment, end: SegmentEnd) -> bool {
        // Few of many logs are used soon: what was opened to look at them is closed.
        let resting = segment.at_rest(self.config.segment_index_bytes);
        self.segments.push(Arc::new(resting));
        self.end = Some(end);
        true
    }

    fn log_size(&self, base: i64) -> Result<u64, LogError> {
        let path = self.home.segment_file(base, LOG_SUFFIX);
        Ok(fs::metadata(&path).map_err(LogError::io(&path))?.len())
    }

    /// A segment whose indexes of offsets and times are to be made anew.
    fn new_segment(&self, base: i64, size: u64, aborted: u64) -> Result<Segment, LogError> {
        let entries = IndexEntries { aborted, ..IndexEntries::NOTHING };
        Ok(Segment::existing(Arc::clone(self.home), base, size, entries, self.config.segment_index_bytes))
    }

    /// Brings the producers' state to the first segment that will be scanned.
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

    /// Whether the segment before this one ends too early. A file can lose its end without a trace, and its name is on the
    /// device before its data is. Compaction leaves such gaps too; where it may have, none is taken for a hole. Nor is one
    /// below the recovery point: what was there is on the device, so nothing was.
    fn is_hole_before(&self, base: i64) -> bool {
        let never_compacted = !self.config.require_keys && self.how.recovery_point >= 0;
        never_compacted && base > self.how.recovery_point && self.end.is_some_and(|end| end.end_offset < base)
    }

    /// Checks a segment and cuts it behind its last valid batch; says whether there was nothing to cut. Otherwise those
    /// that follow are taken out of the log.
    fn scan_segment(&mut self, base: i64, is_last: bool, following: &[i64]) -> Result<bool, LogError> {
        let size = self.log_size(base)?;
        let segment = self.new_segment(base, size, 0)?;
        // First: without a descriptor for it the opening ends here, and another one finds what this one has found.
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
            // First: a crash after the cut would leave a log that looks whole, with a hole in it.
            self.give_up_behind(&segment, &end, following)?;
        }
        let path = segment.path();
        // Also gives back blocks that were reserved beyond the end.
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
        let log_start_offset = self.settle_start()?;
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
        self.settle_epochs(offsets)?;
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

    /// Makes sure that there is an active segment and that the log starts inside the log.
    fn settle_start(&mut self) -> Result<i64, LogError> {
        let wanted = self.how.log_start_offset.max(0);
        let end_offset = match self.end {
            Some(end) => end.end_offset,
            None => wanted,
        };
        if self.segments.is_empty() {
            return self.begin_at(wanted);
        }
        if end_offset < wanted {
            // The last stop has left the log as long as it is: it is the checkpoint that is wrong.
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

    /// Removes the first segments; the snapshots at their beginnings go with them.
    fn remove_first(&mut self, count: usize) -> Result<(), LogError> {
        for segment in self.segments.drain(..count) {
            segment.remove()?;
            self.snapshots.retain(|&at| at != segment.base_offset());
        }
        Ok(())
    }

    /// Keeps the snapshots that a segment starts with, and the newest; returns the others that are left to
    /// [`Log::forget_old`], for removing a file costs as much as opening one: none after an unclean stop.
    fn leave_old_snapshots(&self, directory: &Path, scanned: bool) -> Vec<i64> {
        let kept =
            |at: i64| at == self.snapshot_offset || self.segments.iter().any(|segment| segment.base_offset() == at);
        let unneeded = self.snapshots.iter().copied().filter(|&at| !kept(at));
        let (mut old, mut gone): (Vec<i64>, Vec<i64>) = unneeded.partition(|&at| !scanned && at < self.snapshot_offset);
        gone.extend(old.drain(..old.len().saturating_sub(OLD_SNAPSHOTS_LEFT)));
        gone.into_iter().for_each(|at| producer_snapshot::remove(directory, at));
        old
    }

    fn settle_epochs(&mut self, offsets: Range<Offset>) -> Result<(), LogError> {
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
        // A leader of an empty log, or of one that was cut to where its epoch begins, is most often the next one too: a
        // start that forgot it would write each such file anew, and again when it leads.
        self.epochs_changed |= self.epochs.truncate_beyond(end_offset);
        self.epochs_changed |= self.epochs.truncate_from_start(log_start_offset);
        if self.epochs_changed { self.epochs.write(&self.home.path(), true) } else { Ok(()) }
    }
}

/// Notes the epoch of a batch that is newer than all before.
fn note_epoch(epochs: &mut LeaderEpochs, header: &BatchHeader) -> bool {
    epochs.latest().is_none_or(|latest| header.partition_leader_epoch > latest)
        && epochs.assign(header.partition_leader_epoch, header.base_offset)
}
