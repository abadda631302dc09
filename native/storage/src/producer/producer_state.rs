//! The state of a log's producers: epoch, last batches and open transaction of each.
//!
//! Owns the broker's part of KIP-98 without the coordination of transactions. Sequence numbers continue per producer
//! and epoch, and wrap from `i32::MAX` to 0. The last five batches are kept, so that a retry gets the offsets of the
//! first append. A transaction begins with a transactional batch and ends with a marker. Knows no files (see
//! [`crate::producer::producer_snapshot`]) and no requests.
//!
//! An append is first checked against a [`Staged`] copy, which is committed when the bytes are in the log. A failed
//! write does not change the state.

use rustc_hash::FxHashMap;

use crate::AppendError;
use crate::index::txn_index::AbortedTxn;
use crate::producer::transactions::{Transactions, TxnEvent};
use crate::producer::verification::{ConfirmedTransaction, TransactionCheck, Verifications};
use pybroker_record::{BatchHeader, EndMarker, Offset};

/// Batches remembered per producer: the in-flight limit of an idempotent client.
pub const BATCHES_KEPT: usize = 5;

/// The origin of an append, which determines the checks (Kafka's `AppendOrigin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A producer: sequence numbers must continue, and epochs must not decrease.
    Client,
    /// This node's own coordinators, including markers: epochs must not decrease.
    Coordinator,
    /// The leader's log, which the leader has checked.
    Replication,
}

/// The conditions of an append besides the producer state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) origin: Origin,
    /// The requirement for a batch that begins a transaction.
    pub(crate) check: TransactionCheck,
    /// The current verifications of the log.
    pub(crate) verifications: &'a Verifications,
    /// Whether markers have a higher epoch than their transaction's batches (`transaction.version` 2, KIP-890).
    pub(crate) markers_bump_epoch: bool,
}

/// One batch in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMetadata {
    /// Sequence number of the batch's last record.
    pub last_sequence: i32,
    /// Offset of the batch's last record.
    pub last_offset: i64,
    /// Last offset minus first offset.
    pub offset_delta: i32,
    /// Largest timestamp of the batch, ms.
    pub timestamp: i64,
}

impl BatchMetadata {
    pub(crate) const NONE: Self = Self { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };

    /// Returns the sequence number of the batch's first record.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        let sequence = self.last_sequence.wrapping_sub(self.offset_delta);
        // Sequence numbers have 31 bits: below 0 they continue at i32::MAX.
        sequence & i32::MAX
    }

    /// Returns the offset of the batch's first record.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }
}

/// The state of one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Latest epoch of the producer.
    pub epoch: i16,
    /// Epoch of the transaction coordinator that wrote the last marker; -1 for none.
    pub coordinator_epoch: i32,
    /// Largest timestamp of the last batch, ms. Expiry uses it.
    pub last_timestamp: i64,
    /// First offset of the open transaction; -1 for none.
    pub current_txn_first_offset: i64,
    /// The last batches of this epoch, oldest first; the first `kept` are set.
    batches: [BatchMetadata; BATCHES_KEPT],
    kept: u8,
}

impl ProducerEntry {
    /// Returns a producer with an epoch and no batches.
    #[must_use]
    pub fn new(epoch: i16) -> Self {
        Self {
            epoch,
            coordinator_epoch: -1,
            last_timestamp: -1,
            current_txn_first_offset: -1,
            batches: [BatchMetadata::NONE; BATCHES_KEPT],
            kept: 0,
        }
    }

    /// Returns the last batches, oldest first.
    #[must_use]
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches[..usize::from(self.kept)]
    }

    /// Adds a batch. Removes the oldest one if there are more than five.
    pub(crate) fn remember(&mut self, batch: BatchMetadata) {
        if usize::from(self.kept) == BATCHES_KEPT {
            self.batches.rotate_left(1);
            self.kept -= 1;
        }
        self.batches[usize::from(self.kept)] = batch;
        self.kept += 1;
    }

    /// Merges this entry with `later`: takes the fields of `later`, and the batches of both if their epochs are
    /// equal.
    pub(crate) fn followed_by(&self, later: &Self) -> Self {
        if later.epoch != self.epoch || later.batches().is_empty() {
            return *later;
        }
        let mut both = Self { batches: self.batches, kept: self.kept, ..*later };
        later.batches().iter().for_each(|batch| both.remember(*batch));
        both
    }

    /// Returns whether a transaction of this epoch is open.
    fn is_open(&self, epoch: i16) -> bool {
        self.current_txn_first_offset >= 0 && self.epoch == epoch
    }

    fn check(&self, header: &BatchHeader, marker: Option<EndMarker>, terms: &Terms<'_>) -> Result<(), AppendError> {
        let producer_id = header.producer_id;
        self.check_epoch(header, marker.is_some() && terms.markers_bump_epoch)?;
        match marker {
            Some(marker) if marker.coordinator_epoch < self.coordinator_epoch => {
                let (current, found) = (self.coordinator_epoch, marker.coordinator_epoch);
                Err(AppendError::CoordinatorFenced { producer_id, current, found })
            }
            Some(_) => Ok(()),
            None if self.current_txn_first_offset >= 0 && !header.is_transactional() => {
                Err(AppendError::InvalidTxnState { producer_id, first_offset: self.current_txn_first_offset })
            }
            None if terms.origin == Origin::Client => self.check_sequence(header),
            None => Ok(()),
        }
    }

    /// Rejects an old epoch. Rejects a marker that `bumps` the epoch if a transaction with the same epoch is open:
    /// the marker belongs to an earlier transaction. Without an open transaction, such a marker is a retry and is
    /// accepted.
    fn check_epoch(&self, header: &BatchHeader, bumps: bool) -> Result<(), AppendError> {
        let (producer_id, current, found) = (header.producer_id, self.epoch, header.producer_epoch);
        if found < current || (bumps && self.is_open(found)) {
            return Err(AppendError::InvalidProducerEpoch { producer_id, current, found });
        }
        Ok(())
    }

    fn check_sequence(&self, header: &BatchHeader) -> Result<(), AppendError> {
        let last = match self.batches().last() {
            Some(batch) if header.producer_epoch == self.epoch => batch.last_sequence,
            _ => -1,
        };
        let expected = if last == i32::MAX { 0 } else { last + 1 };
        if header.base_sequence == expected {
            return Ok(());
        }
        Err(AppendError::OutOfOrderSequence { producer_id: header.producer_id, last, found: header.base_sequence })
    }

    fn apply(&mut self, header: &BatchHeader, marker: Option<EndMarker>) -> Option<TxnEvent> {
        // Compaction may have removed the record of a marker whose transaction has no records left.
        if header.is_control() && marker.is_none() {
            return None;
        }
        if header.producer_epoch != self.epoch {
            self.epoch = header.producer_epoch;
            self.kept = 0;
        }
        self.last_timestamp = header.max_timestamp;
        let (producer_id, open) = (header.producer_id, self.current_txn_first_offset);
        if let Some(marker) = marker {
            self.coordinator_epoch = marker.coordinator_epoch;
            self.current_txn_first_offset = -1;
            let ended = TxnEvent::Ended {
                producer_id,
                first_offset: open,
                marker: header.base_offset,
                aborted: !marker.commit,
            };
            return (open >= 0).then_some(ended);
        }
        self.remember(BatchMetadata {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        if !header.is_transactional() || open >= 0 {
            return None;
        }
        self.current_txn_first_offset = header.base_offset;
        Some(TxnEvent::Began { producer_id, first_offset: header.base_offset })
    }
}

/// The state of a log's producers up to one offset.
#[derive(Clone, Debug, Default)]
pub struct ProducerStates {
    entries: FxHashMap<i64, ProducerEntry>,
    transactions: Transactions,
    /// Batches below this offset are included.
    end_offset: i64,
}

/// The changes of an append, until its bytes are in the log.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    producers: Vec<(i64, ProducerEntry)>,
    events: Vec<TxnEvent>,
}

impl Staged {
    /// Returns whether the append may abort a transaction, which then needs an entry in the transaction index.
    pub(crate) fn has_aborted(&self) -> bool {
        self.events.iter().any(|event| matches!(event, TxnEvent::Ended { aborted: true, .. }))
    }
}

impl ProducerStates {
    /// Restores the state at `end_offset` from the entries of a snapshot.
    #[must_use]
    pub fn restored(entries: impl IntoIterator<Item = (i64, ProducerEntry)>, end_offset: i64) -> Self {
        let entries: FxHashMap<i64, ProducerEntry> = entries.into_iter().collect();
        let mut transactions = Transactions::default();
        for (&id, entry) in entries.iter().filter(|(_, entry)| entry.current_txn_first_offset >= 0) {
            transactions.begin(id, Offset(entry.current_txn_first_offset));
        }
        Self { entries, transactions, end_offset }
    }

    /// Returns the offset below which batches are included.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Returns the state of a producer, if the log has it.
    #[must_use]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id)
    }

    /// Returns all producers, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &ProducerEntry)> {
        self.entries.iter().map(|(&id, entry)| (id, entry))
    }

    /// Returns the batch in the log if the header is a duplicate of one of the last five batches of its producer and
    /// epoch.
    pub(crate) fn find_duplicate(&self, header: &BatchHeader) -> Option<BatchMetadata> {
        let entry = self.entries.get(&header.producer_id).filter(|entry| entry.epoch == header.producer_epoch)?;
        let same = |batch: &&BatchMetadata| {
            batch.first_sequence() == header.base_sequence && batch.last_sequence == header.last_sequence()
        };
        entry.batches().iter().find(same).copied()
    }

    /// Stages a batch with its offsets, after the checks for its origin. `marker` is the content of a control batch.
    ///
    /// An unknown producer may start with any sequence number: its state may have expired (KIP-360).
    pub(crate) fn stage(
        &self,
        staged: &mut Staged,
        header: &BatchHeader,
        marker: Option<EndMarker>,
        terms: &Terms<'_>,
    ) -> Result<(), AppendError> {
        if header.producer_id < 0 {
            return Ok(());
        }
        let (position, unknown) = match staged.producers.iter().position(|(id, _)| *id == header.producer_id) {
            Some(position) => (position, false),
            None => {
                let known = self.entries.get(&header.producer_id).copied();
                let entry = known.unwrap_or_else(|| ProducerEntry::new(header.producer_epoch));
                staged.producers.push((header.producer_id, entry));
                (staged.producers.len() - 1, known.is_none())
            }
        };
        let entry = &mut staged.producers[position].1;
        if terms.origin != Origin::Replication {
            check_transaction(entry, unknown, header, terms)?;
            if !unknown {
                entry.check(header, marker, terms)?;
            }
        }
        staged.events.extend(entry.apply(header, marker));
        Ok(())
    }

    /// Commits the staged changes; the log then ends at `end_offset`. Returns the aborted transactions for the
    /// transaction index.
    pub(crate) fn commit(&mut self, staged: Staged, end_offset: i64) -> Vec<AbortedTxn> {
        self.entries.extend(staged.producers);
        self.end_offset = end_offset;
        staged.events.into_iter().filter_map(|event| self.transactions.apply(event)).collect()
    }

    /// Applies a batch read from the log. Returns the entry for the transaction index if it aborts a transaction.
    pub(crate) fn replay(&mut self, header: &BatchHeader, marker: Option<EndMarker>) -> Option<AbortedTxn> {
        self.end_offset = header.next_offset();
        if header.producer_id < 0 {
            return None;
        }
        let entry = self.entries.entry(header.producer_id).or_insert_with(|| ProducerEntry::new(header.producer_epoch));
        entry.apply(header, marker).and_then(|event| self.transactions.apply(event))
    }

    /// Returns whether a batch would continue an open transaction of its producer; false if it would begin one.
    ///
    /// # Errors
    /// `InvalidProducerEpoch` for an old epoch.
    pub(crate) fn has_open_transaction(&self, producer_id: i64, producer_epoch: i16) -> Result<bool, AppendError> {
        let Some(entry) = self.entries.get(&producer_id) else { return Ok(false) };
        if producer_epoch < entry.epoch {
            let (current, found) = (entry.epoch, producer_epoch);
            return Err(AppendError::InvalidProducerEpoch { producer_id, current, found });
        }
        Ok(entry.is_open(producer_epoch))
    }

    /// Returns whether a coordinator of this epoch may confirm a transaction that has no batch in this log. False if a
    /// later coordinator has ended a transaction of the producer, or if the producer has a later epoch.
    pub(crate) fn may_confirm(&self, confirmed: ConfirmedTransaction) -> bool {
        let ConfirmedTransaction { producer_id, producer_epoch, coordinator_epoch, .. } = confirmed;
        self.entries.get(&producer_id).is_none_or(|entry| {
            producer_epoch >= entry.epoch
                && coordinator_epoch >= entry.coordinator_epoch
                && !entry.is_open(producer_epoch)
        })
    }

    /// Returns the incomplete transactions.
    pub(crate) fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Applies a new high watermark; see [`Transactions::complete`].
    pub(crate) fn complete(&mut self, high_watermark: i64) {
        self.transactions.complete(high_watermark);
    }

    /// Advances the end offset without a batch: the log was read up to this offset.
    pub(crate) fn advance_to(&mut self, end_offset: i64) {
        self.end_offset = self.end_offset.max(end_offset);
    }

    /// Removes producers without an open transaction whose last batch is older than `expiration_ms`.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, entry| {
            entry.current_txn_first_offset >= 0 || now_ms.saturating_sub(entry.last_timestamp) < expiration_ms
        });
    }
}

/// Rejects a batch of a transaction that is not open in this log, unless the producer's verification is valid.
fn check_transaction(
    entry: &ProducerEntry,
    unknown: bool,
    header: &BatchHeader,
    terms: &Terms<'_>,
) -> Result<(), AppendError> {
    if header.is_control() || !header.is_transactional() {
        return Ok(());
    }
    if !entry.is_open(header.producer_epoch) {
        // An old epoch is a more precise error than a missing verification.
        entry.check_epoch(header, false)?;
        let holds = |guard| terms.verifications.holds(header.producer_id, header.producer_epoch, guard);
        if let TransactionCheck::Guarded(guard) = terms.check
            && !holds(guard)
        {
            return Err(AppendError::NotVerified { producer_id: header.producer_id });
        }
    }
    if terms.origin == Origin::Client {
        terms.verifications.check_sequence(header, !unknown && !entry.batches().is_empty())?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "producer_state_tests.rs"]
mod tests;
