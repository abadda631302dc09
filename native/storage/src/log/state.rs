//! The state of a log: the immutable view for readers, and the state that only appends use.
//!
//! Owns no file and no lock. Opening a log creates these values, and the [`Log`](crate::Log) owns them.

use std::sync::Arc;

use crate::AppendError;
use crate::directory::leader_epochs::LeaderEpochs;
use crate::producer::producer_state::{Origin, ProducerStates, Terms};
use crate::producer::verification::{TransactionCheck, Verifications};
use crate::segment::segment_list::SegmentList;
use pybroker_record::BatchHeader;

/// An immutable, consistent view of the log.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) segments: Arc<SegmentList>,
    pub(crate) log_start_offset: i64,
    /// Offset of the next record, and its position in the active segment.
    pub(crate) end_offset: i64,
    pub(crate) end_position: u64,
    /// The last batch of the active segment; the segment's end when it is empty.
    pub(crate) tail: Tail,
}

impl View {
    /// Returns the bytes of complete batches in a segment.
    pub(crate) fn limit_of(&self, segment: usize) -> u64 {
        if self.segments.is_active(segment) { self.end_position } else { self.segments.as_slice()[segment].size() }
    }

    /// Returns the offset after the last record. It is below the log end if a truncation has cut the log in a gap.
    pub(crate) fn records_end(&self) -> i64 {
        self.tail.next_offset
    }
}

/// The offsets and the position of the last batch. Readers at the end of the log need no search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) offset: i64,
    /// It is below the log end if a truncation has cut the log in a gap.
    pub(crate) next_offset: i64,
    pub(crate) position: u64,
}

impl Tail {
    /// Returns the tail of a segment without batches whose first record will have `offset`.
    pub(crate) fn empty(offset: i64) -> Self {
        Self { offset, next_offset: offset, position: 0 }
    }

    /// Returns the tail for a last batch at `position`.
    pub(crate) fn at(header: &BatchHeader, position: u64) -> Self {
        Self { offset: header.base_offset, next_offset: header.next_offset(), position }
    }
}

/// State that only appends use. All of it except the producers is about the active segment.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) producers: ProducerStates,
    /// Transactions that are being verified with their coordinator.
    pub(crate) verifications: Verifications,
    /// Offset of the newest producer snapshot on disk; -1 for none.
    pub(crate) snapshot_offset: i64,
    /// Offsets of snapshots that opening found on disk and that are not needed any more; see `Log::forget_old`.
    pub(crate) old_snapshots: Vec<i64>,
    /// Bytes since the last batch with an index entry, including that batch.
    pub(crate) bytes_since_index: u64,
    /// End of the preallocated blocks, in bytes.
    pub(crate) reserved: u64,
    /// When the segment was created or opened, ms.
    pub(crate) created_ms: i64,
    /// Largest timestamp of the first batch; `None` until it is known.
    pub(crate) first_timestamp: Option<i64>,
    /// Appends with an older leader epoch are rejected. Never decreases.
    pub(crate) oldest_epoch: i32,
}

impl Writer {
    /// Resets the state for a new, empty segment.
    pub(crate) fn begin_segment(&mut self, now_ms: i64) {
        self.bytes_since_index = 0;
        self.reserved = 0;
        self.created_ms = now_ms;
        self.first_timestamp = None;
    }

    /// Returns the terms that check an append of this origin.
    pub(crate) fn terms(&self, origin: Origin, check: TransactionCheck) -> Terms<'_> {
        Terms { origin, check, verifications: &self.verifications, markers_bump_epoch: false }
    }

    /// Rejects an append of a fenced leader epoch. Called under the writer lock, so that no old leader appends after
    /// its successor.
    pub(crate) fn ensure_leads(&self, leader_epoch: i32) -> Result<(), AppendError> {
        let oldest = self.oldest_epoch;
        if leader_epoch < oldest { Err(AppendError::LeaderFenced { epoch: leader_epoch, oldest }) } else { Ok(()) }
    }
}

/// The leader epochs, and whether the file on the device lacks some of them.
#[derive(Debug)]
pub(crate) struct EpochFile {
    pub(crate) epochs: LeaderEpochs,
    pub(crate) dirty: bool,
    /// Whether the epochs read from the file have been compared with the batches. Later epochs were assigned by this
    /// process.
    pub(crate) verified: bool,
}
