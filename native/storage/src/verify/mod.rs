//! Verifies a log without changing it: every batch, every index entry, every small file, and the checkpoints.
//!
//! Owns the order of the walk and the definition of damage. Files are read in chunks: memory is bounded by the
//! largest batch, the producer state and [`MOST_FINDINGS`]. No file is opened for writing or created. A leftover of a
//! crash that the next opening repairs without losing a record is a note, not damage. The caller decides what to do
//! about findings.

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

/// The known state of a log to verify.
#[derive(Clone, Copy, Debug)]
pub struct VerifyLog<'a> {
    /// The log's directory.
    pub directory: &'a Path,
    /// Whether the broker's last shutdown was clean. The next opening then reads no batches.
    pub clean_shutdown: bool,
    /// All records below this offset are on the device; negative when unknown.
    pub recovery_point: i64,
    /// First readable offset; negative when unknown.
    pub log_start_offset: i64,
    /// All records below this offset were committed.
    pub high_watermark: i64,
    /// Below this offset gaps are allowed, because compaction has removed records.
    pub compacted_to: i64,
    /// Whether it is a partition's log with a `partition.metadata`. The metadata log has none.
    pub is_partition: bool,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Problems and notes, in the order of the walk; a bounded number.
    pub findings: Vec<Finding>,
    /// Number of findings that were left out.
    pub left_out: u64,
    pub segments: u64,
    /// Bytes of their log files.
    pub bytes: u64,
    /// Number of valid batches.
    pub batches: u64,
    /// First offset of the first segment, or the log start if that is later.
    pub log_start_offset: i64,
    /// The offset after the last valid batch.
    pub log_end_offset: i64,
    /// Names and sizes of the files that recoveries have set aside.
    pub set_aside: Vec<(String, u64)>,
}

/// State of the walk that is carried from segment to segment.
struct Walk<'a> {
    log: VerifyLog<'a>,
    findings: Findings,
    epochs: Option<LeaderEpochs>,
    /// Whether a wrong epoch was reported already.
    epochs_wrong: bool,
    producers: ProducerStates,
    /// The first offset of the walk. The state of earlier records is unknown.
    from: i64,
    /// The expected offset of the next batch.
    expected: i64,
    batches: u64,
}

/// Verifies a log.
///
/// # Errors
/// `Io` when the directory itself cannot be read. Unreadable files are findings.
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

    /// Returns whether recovery reads this segment anyway and rebuilds its indexes.
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

    /// Compares a snapshot with the batches before it, if the walk `is_there`.
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

    /// Compares the checkpoints with the first and last offset of the log.
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
