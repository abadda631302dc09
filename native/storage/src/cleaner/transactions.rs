//! The transactions that a cleaner pass has met: which records were aborted, and which markers can be removed
//! (Kafka's `CleanedTransactionMetadata`).
//!
//! A marker can be removed if no batch of its transaction precedes it: no reader needs the transaction's result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::txn_index::AbortedTxn;
use pybroker_record::{BatchHeader, EndMarker, RecordError};

/// The state of transactions during a pass; see the module.
#[derive(Default)]
pub(crate) struct CleanedTransactions {
    /// Producers with a batch of a transaction that was not aborted.
    committed: FxHashSet<i64>,
    /// Aborted transactions whose first offset the pass has passed, by producer, and whether it met one of their
    /// batches.
    aborted: FxHashMap<i64, (AbortedTxn, bool)>,
    /// Aborted transactions whose first offset the pass has not reached; the smallest first offset is at the top.
    ahead: BinaryHeap<Reverse<ByFirstOffset>>,
}

#[derive(PartialEq, Eq)]
struct ByFirstOffset(AbortedTxn);

impl Ord for ByFirstOffset {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.first_offset.cmp(&other.0.first_offset)
    }
}

impl PartialOrd for ByFirstOffset {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The decision about a control batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// Its transaction has batches in the log, or the control record is no transaction marker.
    Needed,
    /// It ends an aborted transaction with batches in the log. The value is the entry of the transaction index.
    Aborted(AbortedTxn),
    /// Its transaction has no batches in the log.
    Unneeded,
}

impl CleanedTransactions {
    /// Adds aborted transactions. Duplicates are allowed.
    pub(crate) fn add_aborted(&mut self, aborted: Vec<AbortedTxn>) {
        self.ahead.extend(aborted.into_iter().map(|aborted| Reverse(ByFirstOffset(aborted))));
    }

    fn pass(&mut self, offset: i64) {
        while let Some(Reverse(ByFirstOffset(next))) = self.ahead.peek() {
            if next.first_offset > offset {
                break;
            }
            self.aborted.entry(next.producer_id).or_insert((*next, false));
            self.ahead.pop();
        }
    }

    /// Processes a batch of records. Returns whether its transaction was aborted.
    pub(crate) fn on_batch(&mut self, header: &BatchHeader) -> bool {
        self.pass(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some((_, met)) => {
                *met = true;
                true
            }
            None => {
                self.committed.insert(header.producer_id);
                false
            }
        }
    }

    /// Processes a control batch. Returns whether it is needed.
    ///
    /// # Errors
    /// When its record is malformed.
    pub(crate) fn on_control_batch(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<Marker, RecordError> {
        self.pass(header.last_offset());
        if header.record_count == 0 {
            // An earlier pass has removed its record.
            return Ok(Marker::Unneeded);
        }
        let Some(marker) = EndMarker::parse(header, batch)? else { return Ok(Marker::Needed) };
        if marker.commit {
            let met = self.committed.remove(&header.producer_id);
            return Ok(if met { Marker::Needed } else { Marker::Unneeded });
        }
        Ok(match self.aborted.remove(&header.producer_id) {
            Some((aborted, true)) => Marker::Aborted(aborted),
            Some((_, false)) | None => Marker::Unneeded,
        })
    }
}
