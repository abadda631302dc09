//! What a pass knows of transactions while it walks the log: which records were aborted, and which markers are needed no more
//! (Kafka's `CleanedTransactionMetadata`).
//!
//! A marker may go when no batch of its transaction was met before it: nobody will ask how that transaction ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::txn_index::AbortedTxn;
use pybroker_record::{BatchHeader, EndMarker, RecordError};

/// See the module.
#[derive(Default)]
pub(crate) struct CleanedTransactions {
    /// Producers of whom a batch of a transaction was met that was not aborted.
    committed: FxHashSet<i64>,
    /// Transactions whose first offset was passed, by producer, and whether a batch of them was met.
    aborted: FxHashMap<i64, (AbortedTxn, bool)>,
    /// Transactions whose first offset was not passed yet, the first one on top.
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

/// What becomes of a control batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// Batches of its transaction are in the log, or it marks no transaction.
    Needed,
    /// It ends an aborted transaction of which batches are in the log: the entry of the transaction index.
    Aborted(AbortedTxn),
    /// Nothing is left of its transaction.
    Unneeded,
}

impl CleanedTransactions {
    /// Adds transactions that were aborted; the same one may come twice.
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

    /// Follows a batch of records; whether its transaction was aborted.
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

    /// Follows a control batch.
    ///
    /// # Errors
    /// When its record is malformed.
    pub(crate) fn on_control_batch(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<Marker, RecordError> {
        self.pass(header.last_offset());
        if header.record_count == 0 {
            // Emptied by an earlier pass.
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
