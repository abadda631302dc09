//! What a log consists of at one moment: the picture that readers take, and what only the writer needs.
//!
//! Owns no file and no lock. An opening makes these values, and the log holds them.

use std::sync::Arc;

use crate::AppendError;
use crate::directory::leader_epochs::LeaderEpochs;
use crate::producer::producer_state::{Origin, ProducerStates, Terms};
use crate::producer::verification::{TransactionCheck, Verifications};
use crate::segment::segment_list::SegmentList;
use pybroker_record::BatchHeader;

/// One consistent picture of the log.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) segments: Arc<SegmentList>,
    pub(crate) log_start_offset: i64,
    /// Offset of the next record, and where in the active segment it will lie.
    pub(crate) end_offset: i64,
    pub(crate) end_position: u64,
    /// The last batch of the active segment (its end, when the segment is empty).
    pub(crate) tail: Tail,
}

impl View {
    /// Bytes of whole batches in a segment.
    pub(crate) fn limit_of(&self, segment: usize) -> u64 {
        if self.segments.is_active(segment) { self.end_position } else { self.segments.as_slice()[segment].size() }
    }

    /// Where the records end: below the log end where a truncation has cut in a gap.
    pub(crate) fn records_end(&self) -> i64 {
        self.tail.next_offset
    }
}

/// The offsets and the position of the last batch: readers at the end of the log need no search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) offset: i64,
    /// Below the log end where a truncation has cut in a gap.
    pub(crate) next_offset: i64,
    pub(crate) position: u64,
}

impl Tail {
    /// Of a segment without batches, where `offset` will be the first.
    pub(crate) fn empty(offset: i64) -> Self {
        Self { offset, next_offset: offset, position: 0 }
    }

    /// A batch at `position`.
    pub(crate) fn at(header: &BatchHeader, position: u64) -> Self {
        Self { offset: header.base_offset, next_offset: header.next_offset(), position }
    }
}

/// What only the appending side needs; all of it is about the active segment but the producers.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) producers: ProducerStates,
    /// Producers that are being verified.
    pub(crate) verifications: Verifications,
    /// Offset of the newest producer snapshot on disk; -1 for none.
    pub(crate) snapshot_offset: i64,
    /// Offsets of snapshots that a start has found and that nothing needs any more; see `Log::forget_old`.
    pub(crate) old_snapshots: Vec<i64>,
    /// Bytes since the last batch that has an index entry, that batch included.
    pub(crate) bytes_since_index: u64,
    /// End of the blocks asked for ahead.
    pub(crate) reserved: u64,
    /// When the segment was made or opened, ms.
    pub(crate) created_ms: i64,
    /// Largest timestamp of the first batch; `None` until it is known.
    pub(crate) first_timestamp: Option<i64>,
    /// Leaders of older epochs append nothing any more. Only rises.
    pub(crate) oldest_epoch: i32,
}

impl Writer {
    /// Starts over with an empty segment.
    pub(crate) fn begin_segment(&mut self, now_ms: i64) {
        self.bytes_since_index = 0;
        self.reserved = 0;
        self.created_ms = now_ms;
        self.first_timestamp = None;
    }

    /// What an append of this origin is checked by.
    pub(crate) fn terms(&self, origin: Origin, check: TransactionCheck) -> Terms<'_> {
        Terms { origin, check, verifications: &self.verifications, markers_bump_epoch: false }
    }

    /// Refuses a leader whose epoch is over. Asked under the writer's lock, so that none appends after its successor.
    pub(crate) fn ensure_leads(&self, leader_epoch: i32) -> Result<(), AppendError> {
        let oldest = self.oldest_epoch;
        if leader_epoch < oldest { Err(AppendError::LeaderFenced { epoch: leader_epoch, oldest }) } else { Ok(()) }
    }
}

/// The leader epochs, and whether the file on the device has them all.
#[derive(Debug)]
pub(crate) struct EpochFile {
    pub(crate) epochs: LeaderEpochs,
    pub(crate) dirty: bool,
    /// The epochs that were read from the file have been compared with the batches. Later ones are this process's own.
    pub(crate) verified: bool,
}
