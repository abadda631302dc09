//! Looking a log over without changing it: every batch, every index entry, every small file, and what the checkpoints say.
//!
//! Owns the order of the walk and what counts as damage. Files are read in chunks: memory is bounded by the largest batch,
//! the producers' state and [`MOST_FINDINGS`]. Nothing is opened for writing, and no file is made. What a crash leaves and
//! the next start repairs without losing a record is a note, not damage. It must not decide what is done about it.

mod entries;
mod findings;
mod indexes;
mod listing;
mod segment;
mod transactions;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::LogError;
use crate::directory::leader_epochs::LeaderEpochs;
use crate::directory::log_dir::{
    LEADER_EPOCH_FILE, LOG_SUFFIX, PARTITION_METADATA_FILE, SNAPSHOT_SUFFIX, segment_file_name,
};
use crate::directory::partition_metadata;
use crate::producer::producer_snapshot;
use crate::producer::producer_state::ProducerStates;
use findings::Findings;
pub use findings::{Finding, FindingKind, Severity};
use listing::Listing;
use segment::SegmentWalk;

/// What is known of a log that is looked over.
#[derive(Clone, Copy, Debug)]
pub struct VerifyLog<'a> {
    /// The log's directory.
    pub directory: &'a Path,
    /// The last stop of its broker was clean: the next start reads no batches.
    pub clean_shutdown: bool,
    /// Everything below is on the device; negative when that is not known.
    pub recovery_point: i64,
    /// First readable offset; negative when that is not known.
    pub log_start_offset: i64,
    /// Everything below was committed.
    pub high_watermark: i64,
    /// Offsets may be missing below this one, as compaction has removed records.
    pub compacted_to: i64,
    /// A partition's log, which has a `partition.metadata`; the metadata log has none.
    pub is_partition: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// What is wrong or worth a word, in the order of the walk; a bounded number.
    pub findings: Vec<Finding>,
    /// Findings beyond that number.
    pub left_out: u64,
    pub segments: u64,
    /// Bytes of their records' files.
    pub bytes: u64,
    /// Valid batches.
    pub batches: u64,
    /// First offset of the first segment, or the log start where that is later.
    pub log_start_offset: i64,
    /// The offset behind the last valid batch.
    pub log_end_offset: i64,
    /// Files that recoveries have set aside, and their sizes.
    pub set_aside: Vec<(String, u64)>,
}

/// What one walk over all segments carries from one to the next.
struct Walk<'a> {
    log: VerifyLog<'a>,
    findings: Findings,
    epochs: Option<LeaderEpochs>,
    /// An epoch that does not fit was named already.
    epochs_wrong: bool,
    producers: ProducerStates,
    /// The first offset of the walk: of what began before it nothing is known.
    from: i64,
    /// The offset that the next batch should have.
    expected: i64,
    batches: u64,
}

/// Looks a log over.
///
/// # Errors
/// `Io` when the directory itself cannot be read; files that cannot be are findings.
pub fn verify_log(log: VerifyLog<'_>) -> Result<Verified, LogError> {
    let listing = Listing::read(log.directory)?;
    let mut walk = Walk {
        log,
        findings: Findings::default(),
        epochs: None,
        epochs_wrong: false,
        producers: ProducerStates::default(),
        from: listing.logs.first().copied().unwrap_or(0),
        expected: listing.logs.first().copied().unwrap_or(0),
        batches: 0,
    };
    walk.check_small_files();
    walk.begin_producers(&listing);
    let mut bytes = 0;
    for (index, &base) in listing.logs.iter().enumerate() {
        walk.check_snapshot(&listing, base);
        bytes += SegmentWalk::new(&mut walk, &listing, index).run();
    }
    let end = walk.expected;
    for &at in listing.snapshots.iter().filter(|at| listing.logs.binary_search(at).is_err()) {
        walk.check_snapshot_at(at, at == end);
    }
    walk.check_ends(&listing, end);
    for name in &listing.orphans {
        walk.findings.note(name, FindingKind::Index, "belongs to no segment; the next start removes it".to_owned());
    }
    let (findings, left_out) = walk.findings.into_parts();
    Ok(Verified {
        findings,
        left_out,
        segments: listing.logs.len() as u64,
        bytes,
        batches: walk.batches,
        log_start_offset: log.log_start_offset.max(walk.from),
        log_end_offset: end,
        set_aside: listing.set_aside,
    })
}

impl Walk<'_> {
    fn check_small_files(&mut self) {
        match LeaderEpochs::read(self.log.directory) {
            Ok(epochs) => self.epochs = epochs,
            Err(error) => {
                self.epochs_wrong = true;
                self.findings.add_error(LEADER_EPOCH_FILE, FindingKind::LeaderEpochs, &error);
            }
        }
        if !self.log.is_partition {
            return;
        }
        match partition_metadata::read(self.log.directory) {
            Ok(Some(_)) => {}
            Ok(None) => {
                self.findings.damage(PARTITION_METADATA_FILE, FindingKind::PartitionMetadata, "is missing".to_owned());
            }
            Err(error) => self.findings.add_error(PARTITION_METADATA_FILE, FindingKind::PartitionMetadata, &error),
        }
    }

    /// Whether recovery reads the segment of this number anyway, and makes its indexes anew.
    fn is_rescanned(&self, listing: &Listing, index: usize) -> bool {
        let trusted = listing.logs.partition_point(|&base| base < self.log.recovery_point).saturating_sub(1);
        !self.log.clean_shutdown && index >= trusted
    }

    fn begin_producers(&mut self, listing: &Listing) {
        if listing.snapshots.binary_search(&self.from).is_ok()
            && let Ok(states) = producer_snapshot::read(self.log.directory, self.from)
        {
            self.producers = states;
        }
        self.producers.advance_to(self.from);
    }

    fn check_snapshot(&mut self, listing: &Listing, base: i64) {
        if listing.snapshots.binary_search(&base).is_ok() {
            self.check_snapshot_at(base, self.expected == base);
        }
    }

    /// Holds a snapshot against the batches before it, where the walk `is_there`.
    fn check_snapshot_at(&mut self, at: i64, is_there: bool) {
        let name = segment_file_name(at, SNAPSHOT_SUFFIX);
        let states = match producer_snapshot::read(self.log.directory, at) {
            Ok(states) => states,
            Err(error) => return self.findings.add_error(&name, FindingKind::Snapshot, &error),
        };
        let wrong = states.iter().find(|(id, entry)| {
            let Some(last) = entry.batches().last() else { return false };
            let known = self.producers.get(*id).and_then(|known| known.batches().last().copied());
            let differs =
                is_there && last.last_offset >= self.from && known.map(|k| k.last_offset) != Some(last.last_offset);
            last.last_offset >= at || differs
        });
        if let Some((id, _)) = wrong {
            let text = format!("producer {id} stands where the batches before offset {at} do not have it");
            self.findings.damage(&name, FindingKind::Snapshot, text);
        }
    }

    /// Holds what the checkpoints say against where the log begins and ends.
    fn check_ends(&mut self, listing: &Listing, end: i64) {
        let log = self.log;
        if self.findings.is_incomplete() {
            return;
        }
        let name = listing.logs.last().map_or_else(String::new, |&base| segment_file_name(base, LOG_SUFFIX));
        for (known, checkpoint) in [
            (log.recovery_point, "recovery-point-offset-checkpoint"),
            (log.high_watermark, "replication-offset-checkpoint"),
        ] {
            if known > end {
                let text = format!("the log ends at offset {end}, and {checkpoint} says {known}: records are missing");
                self.findings.damage(&name, FindingKind::Records, text);
            }
        }
        if log.log_start_offset > end {
            let start = log.log_start_offset;
            let text = format!("the log ends at offset {end}, and log-start-offset-checkpoint says {start}");
            self.findings.damage(&name, FindingKind::Records, text);
        }
        if log.clean_shutdown && (0..self.from).contains(&log.log_start_offset) {
            let (known, found) = (log.log_start_offset, self.from);
            let text = format!("the log begins at offset {found}, and its start is {known}: segments are missing");
            self.findings.damage(&name, FindingKind::Records, text);
        }
        if self.epochs.is_none() && !self.epochs_wrong && self.batches > 0 && log.is_partition {
            let text = "is missing; the next start makes it anew from the batches".to_owned();
            self.findings.damage(LEADER_EPOCH_FILE, FindingKind::LeaderEpochs, text);
        }
    }
}
