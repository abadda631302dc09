//! The incomplete transactions of a log, and the first unstable offset that follows from them.
//!
//! A transaction begins with a producer's first transactional batch and ends with its marker. Until the high
//! watermark has passed the marker, a truncation may remove the marker, so the transaction still bounds the last
//! stable offset. Knows neither files nor sequence numbers.

use std::collections::BTreeMap;

use crate::index::txn_index::AbortedTxn;
use pybroker_record::Offset;

/// The effect of a batch on its producer's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxnEvent {
    /// The batch is the first of a transaction.
    Began {
        /// The producer that wrote the records.
        producer_id: i64,
        /// Offset of its first record.
        first_offset: i64,
    },
    /// The batch is the marker of a transaction with records.
    Ended {
        /// The producer that wrote the records.
        producer_id: i64,
        /// Offset of its first record.
        first_offset: i64,
        /// Offset of the marker.
        marker: i64,
        /// Whether the transaction was aborted.
        aborted: bool,
    },
}

/// The incomplete transactions of a log; see the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transactions {
    /// Producer ids of open transactions, by first offset.
    open: BTreeMap<i64, i64>,
    /// Offsets of markers that the high watermark has not passed, by the first offset of their transactions.
    unsettled: BTreeMap<i64, i64>,
}

impl Transactions {
    pub(crate) fn begin(&mut self, producer_id: i64, first_offset: Offset) {
        self.open.insert(first_offset.0, producer_id);
    }

    /// Applies an event. Returns the entry for the transaction index if a transaction was aborted.
    pub(crate) fn apply(&mut self, event: TxnEvent) -> Option<AbortedTxn> {
        match event {
            TxnEvent::Began { producer_id, first_offset } => {
                self.begin(producer_id, Offset(first_offset));
                None
            }
            TxnEvent::Ended { producer_id, first_offset, marker, aborted } => {
                self.open.remove(&first_offset);
                self.unsettled.insert(first_offset, marker);
                let last_stable_offset = self.open.keys().next().copied().unwrap_or(marker + 1);
                aborted.then_some(AbortedTxn { producer_id, first_offset, last_offset: marker, last_stable_offset })
            }
        }
    }

    /// Completes transactions whose markers are below the high watermark: these markers can no longer be truncated.
    pub(crate) fn complete(&mut self, high_watermark: i64) {
        self.unsettled.retain(|_, marker| *marker >= high_watermark);
    }

    /// Returns the smallest marker offset that waits for the high watermark.
    pub(crate) fn next_to_complete(&self) -> Option<i64> {
        self.unsettled.values().min().copied()
    }

    /// Returns the first offset of the earliest transaction that is open, or whose marker the high watermark has not
    /// passed.
    pub(crate) fn first_unstable(&self) -> Option<i64> {
        let first = |offsets: &BTreeMap<i64, i64>| offsets.keys().next().copied();
        match (first(&self.open), first(&self.unsettled)) {
            (Some(open), Some(unsettled)) => Some(open.min(unsettled)),
            (open, unsettled) => open.or(unsettled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(producer_id: i64, first_offset: i64, marker: i64, aborted: bool) -> TxnEvent {
        TxnEvent::Ended { producer_id, first_offset, marker, aborted }
    }

    #[test]
    fn an_ended_transaction_is_unstable_until_its_marker_is_replicated() {
        let mut transactions = Transactions::default();
        assert_eq!((transactions.first_unstable(), transactions.next_to_complete()), (None, None));
        transactions.begin(1, Offset(10));
        transactions.begin(2, Offset(12));
        assert_eq!(transactions.apply(end(1, 10, 15, false)), None);
        assert_eq!(transactions.first_unstable(), Some(10));
        transactions.complete(15);
        assert_eq!(transactions.first_unstable(), Some(10), "the marker at 15 is not below 15");
        transactions.complete(16);
        assert_eq!((transactions.first_unstable(), transactions.next_to_complete()), (Some(12), None));
    }

    #[test]
    fn an_aborted_one_is_noted_with_the_first_offset_that_stays_unstable() {
        let mut transactions = Transactions::default();
        transactions.begin(1, Offset(10));
        transactions.begin(2, Offset(12));
        let entry = AbortedTxn { producer_id: 2, first_offset: 12, last_offset: 20, last_stable_offset: 10 };
        assert_eq!(transactions.apply(end(2, 12, 20, true)), Some(entry));
        let entry = AbortedTxn { producer_id: 1, first_offset: 10, last_offset: 21, last_stable_offset: 22 };
        assert_eq!(transactions.apply(end(1, 10, 21, true)), Some(entry));
        assert_eq!(transactions.next_to_complete(), Some(20));
    }
}
