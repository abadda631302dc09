//! Verification of `leader-epoch-checkpoint` against the batches of its log.
//!
//! The file has no checksum, and replicas truncate by it: one flipped bit in it can delete whole replicas. Batches
//! contain their leader epochs too. If the file contradicts them, the epochs are rebuilt from the batches.

use std::fmt;
use std::ops::Range;

use crate::LogError;
use crate::directory::leader_epochs::{EpochStart, LeaderEpochs};
use crate::directory::log_dir::LEADER_EPOCH_FILE;
use crate::log::Log;
use crate::log::state::View;
use crate::recovery::rebuild;
use pybroker_record::{BatchHeader, Offset};

/// Most epochs of a list to include in a message.
const MOST_NAMED: usize = 5;

/// Leader epochs that contradicted the log, and the epochs rebuilt from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedEpochs {
    pub before: Vec<EpochStart>,
    pub after: Vec<EpochStart>,
}

impl fmt::Display for RepairedEpochs {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (named(&self.before), named(&self.after));
        write!(to, "{LEADER_EPOCH_FILE} had {before}, which contradicts the log; read from its batches: {after}")
    }
}

/// Returns a text with the last epochs of a list.
fn named(starts: &[EpochStart]) -> String {
    let left_out = starts.len().saturating_sub(MOST_NAMED);
    let last = starts[left_out..].iter().map(|start| format!("epoch {} at {}", start.epoch, start.start_offset));
    let last: Vec<_> = last.collect();
    match (last.is_empty(), left_out) {
        (true, _) => "no epoch".to_owned(),
        (false, 0) => last.join(", "),
        (false, more) => format!("{more} epochs and {}", last.join(", ")),
    }
}

impl Log {
    /// Compares the leader epochs with the first and the last batch of each epoch. If they differ, rebuilds the
    /// epochs from all batches and replaces the file. Appends wait meanwhile.
    ///
    /// `newest` is the partition's leader epoch in the metadata: no record has a later one. A list without a later
    /// epoch is compared only once, because replicas can trigger a comparison with a Fetch, and each comparison reads
    /// two batches of every epoch.
    ///
    /// # Errors
    /// `Io` or `Corrupt` when the log cannot be read, `Io` when the file cannot be replaced.
    pub fn verify_epochs(&self, newest: i32) -> Result<Option<RepairedEpochs>, LogError> {
        let _no_append = self.writer.lock();
        let view = self.view.load_full();
        let mut file = self.epochs.lock();
        let is_later = file.epochs.latest().is_some_and(|latest| latest > newest);
        if !is_later && (file.verified || is_consistent(&view, &file.epochs)?) {
            file.verified = true;
            return Ok(None);
        }
        let epochs = read_epochs(&view, &file.epochs, newest)?;
        file.verified = true;
        let repaired = RepairedEpochs { before: file.epochs.starts().to_vec(), after: epochs.starts().to_vec() };
        if epochs == file.epochs {
            // The batches' own epochs are not in ascending order, so no list can be built from them.
            return Ok(None);
        }
        epochs.write(&self.home.path(), false)?;
        file.epochs = epochs;
        file.dirty = true;
        Ok(Some(repaired))
    }
}

/// Returns whether the first and the last batch of each epoch have that epoch.
fn is_consistent(view: &View, epochs: &LeaderEpochs) -> Result<bool, LogError> {
    let starts = epochs.starts();
    let (log_start, end) = (view.log_start_offset, view.end_offset);
    let first = starts.first().map_or(end, |first| first.start_offset);
    if !has_epoch(view, None, Offset(log_start)..Offset(first.min(end)))? {
        return Ok(false);
    }
    for (at, start) in starts.iter().enumerate() {
        let from = start.start_offset.max(log_start);
        let to = starts.get(at + 1).map_or(end, |next| next.start_offset).min(end);
        if !has_epoch(view, Some(start.epoch), Offset(from)..Offset(to))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the first and the last batch of a range of offsets have an epoch. Batches without an epoch match,
/// and so does a range without batches (after compaction).
fn has_epoch(view: &View, epoch: Option<i32>, offsets: Range<Offset>) -> Result<bool, LogError> {
    let (Offset(from), Offset(to)) = (offsets.start, offsets.end);
    if from >= to {
        return Ok(true);
    }
    for offset in [from, to - 1] {
        let Some(header) = batch_at(view, offset)?.filter(|header| header.base_offset < to) else { continue };
        let found = (header.partition_leader_epoch >= 0).then_some(header.partition_leader_epoch);
        if found.is_some() && found != epoch {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the first batch whose last offset is at least `offset`.
fn batch_at(view: &View, offset: i64) -> Result<Option<BatchHeader>, LogError> {
    for (at, segment) in view.segments.as_slice().iter().enumerate().skip(view.segments.floor(offset)) {
        if let Some(found) = segment.find_batch(offset, view.limit_of(at))? {
            return Ok(Some(found.header));
        }
    }
    Ok(None)
}

/// Rebuilds the epochs from all batches, up to `newest`. Keeps the last entry of `before` if it begins at the log
/// end: that leader has appended no record yet.
fn read_epochs(view: &View, before: &LeaderEpochs, newest: i32) -> Result<LeaderEpochs, LogError> {
    let (start, end) = (view.log_start_offset, view.end_offset);
    let mut epochs = LeaderEpochs::default();
    rebuild::walk_batches(view.segments.as_slice(), Offset(start)..Offset(end), |_, header, _| {
        let epoch = header.partition_leader_epoch;
        if epoch <= newest && epochs.latest().is_none_or(|latest| epoch > latest) {
            epochs.assign(epoch, header.base_offset.max(start));
        }
        Ok(())
    })?;
    let last = before.starts().last().filter(|last| last.epoch <= newest && last.start_offset == end);
    if let Some(last) = last.filter(|last| epochs.latest().is_none_or(|latest| last.epoch > latest)) {
        epochs.assign(last.epoch, last.start_offset);
    }
    Ok(epochs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(starts: &[(i32, i64)]) -> Vec<EpochStart> {
        starts.iter().map(|&(epoch, start_offset)| EpochStart { epoch, start_offset }).collect()
    }

    #[test]
    fn a_repair_names_the_last_epochs_of_both_lists() {
        let many: Vec<_> = (0..7).map(|epoch| (epoch, i64::from(epoch) * 10)).collect();
        let repaired = RepairedEpochs { before: starts(&[]), after: starts(&many) };
        assert_eq!(
            repaired.to_string(),
            "leader-epoch-checkpoint had no epoch, which contradicts the log; read from its batches: 2 epochs and \
             epoch 2 at 20, epoch 3 at 30, epoch 4 at 40, epoch 5 at 50, epoch 6 at 60"
        );
    }
}
