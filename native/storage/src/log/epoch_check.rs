//! Comparing `leader-epoch-checkpoint` with the batches of its log.
//!
//! The file has no checksum, and replicas are truncated by it: one flipped bit in it can cost whole replicas. Batches carry
//! their leader epochs too, so a list that contradicts them is read from them again.

use std::fmt;
use std::ops::Range;

use crate::LogError;
use crate::directory::leader_epochs::{EpochStart, LeaderEpochs};
use crate::directory::log_dir::LEADER_EPOCH_FILE;
use crate::log::Log;
use crate::log::state::View;
use crate::recovery::rebuild;
use pybroker_record::{BatchHeader, Offset};

/// The most epochs of a list that its text names.
const MOST_NAMED: usize = 5;

/// A list of leader epochs that contradicted its log, and the list that was read from the log instead.
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

/// The last epochs of a list in words.
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
    /// Compares the leader epochs with the batches where each of them begins and ends. Where they differ, the epochs are read
    /// from all batches again, and the file is replaced. Appends wait meanwhile.
    ///
    /// `newest` is the leader epoch of the partition in the metadata: no record has a later one. A list without a later epoch is
    /// compared once: replicas can cause a comparison by a Fetch, and each one reads two batches of every epoch.
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
            // The epochs of the batches themselves are no order that a list can have.
            return Ok(None);
        }
        epochs.write(&self.home.path(), false)?;
        file.epochs = epochs;
        file.dirty = true;
        Ok(Some(repaired))
    }
}

/// Whether the first and the last batch of each epoch have it.
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

/// Whether the first and the last batch of these offsets have an epoch, as far as batches have one. Compaction can leave none
/// of them.
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

/// The first batch that ends at an offset or later.
fn batch_at(view: &View, offset: i64) -> Result<Option<BatchHeader>, LogError> {
    for (at, segment) in view.segments.as_slice().iter().enumerate().skip(view.segments.floor(offset)) {
        if let Some(found) = segment.find_batch(offset, view.limit_of(at))? {
            return Ok(Some(found.header));
        }
    }
    Ok(None)
}

/// The epochs of all batches, none later than `newest`. Of the list `before` only the last entry is used: a leader that has
/// appended nothing yet.
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
