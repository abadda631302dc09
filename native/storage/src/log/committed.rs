//! Reads with `read_committed`: the first unstable offset, and the aborted transactions to skip.
//!
//! Owns the log's first unstable offset; the caller bounds it by the high watermark. A reader must load the high
//! watermark first and [`Log::first_unstable_offset`] second. A transaction is published before its first batch, so
//! the lesser of both never lies inside a transaction.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::index::txn_index::AbortedTxn;
use crate::log::Log;
use crate::log::read::{FileSlice, Planned};
use crate::log::state::{View, Writer};
use crate::{LogError, ReadError};
use pybroker_record::Offset;

/// A slice of the log, and the aborted transactions with records in it. Transactions without records in it may be
/// included.
pub type CommittedSlice = (FileSlice, Vec<AbortedTxn>);

impl Log {
    /// Returns the first offset of the earliest transaction that is open, or whose marker is not below the high
    /// watermark (see [`Self::complete_transactions`]); `None` when all transactions are completed.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let offset = self.first_unstable.load(Ordering::SeqCst);
        (offset < i64::MAX).then(|| offset.max(self.log_start_offset()))
    }

    /// Completes the transactions whose markers are below the high watermark.
    pub fn complete_transactions(&self, high_watermark: i64) {
        if self.next_to_complete.load(Ordering::Acquire) < high_watermark {
            let mut writer = self.writer.lock();
            writer.producers.complete(high_watermark);
            self.publish_transactions(&writer);
        }
    }

    /// Publishes the producers' transaction state to readers.
    pub(crate) fn publish_transactions(&self, writer: &Writer) {
        let transactions = writer.producers.transactions();
        self.first_unstable.store(transactions.first_unstable().unwrap_or(i64::MAX), Ordering::SeqCst);
        self.next_to_complete.store(transactions.next_to_complete().unwrap_or(i64::MAX), Ordering::Release);
    }

    /// Returns the aborted transactions with records in a range of offsets, ordered by marker. Transactions without
    /// records in the range may be included. Only valid below the last stable offset: records beyond it may be
    /// aborted later.
    ///
    /// # Errors
    /// `Io` or `Corrupt` with the index file.
    pub fn aborted_transactions(&self, offsets: Range<Offset>) -> Result<Vec<AbortedTxn>, LogError> {
        let view = self.view.load_full();
        aborted(&view, view.segments.floor(offsets.start.0), &offsets)
    }

    /// [`Self::plan_read`] for a `read_committed` reader. The end of the range is the last stable offset.
    ///
    /// # Errors
    /// As [`Self::plan_read`].
    pub fn plan_read_committed(
        &self,
        offsets: Range<Offset>,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<CommittedSlice, ReadError> {
        self.plan_in_view(offsets.start.0, |view| {
            let Planned { slice, segment } = crate::log::read::plan(view, &offsets, max_bytes, min_one)?;
            if slice.len == 0 {
                return Ok((slice, Vec::new()));
            }
            let upper = upper_bound(view, segment, slice.position + slice.len as u64)?.min(offsets.end);
            let aborted = aborted(view, segment, &(offsets.start..upper))?;
            Ok((slice, aborted))
        })
    }
}

/// Returns an exclusive upper bound for the offsets of the batches before `position` of a segment.
fn upper_bound(view: &View, segment: usize, position: u64) -> Result<Offset, LogError> {
    let segments = view.segments.as_slice();
    let following = segments.get(segment + 1).map_or(view.end_offset, |next| next.base_offset());
    Ok(Offset(segments[segment].offset_index.ceiling_offset(position)?.unwrap_or(following)))
}

fn aborted(view: &View, segment: usize, offsets: &Range<Offset>) -> Result<Vec<AbortedTxn>, LogError> {
    let mut found = Vec::new();
    for segment in &view.segments.as_slice()[segment..] {
        if segment.txn_index.collect(offsets, &mut found)? {
            break;
        }
    }
    Ok(found)
}
