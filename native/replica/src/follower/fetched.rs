//! Applies a leader's response to a follower's partition: appends, truncates, or restarts the log.
//!
//! Each change checks the role under its lock: a response of an old leader has no effect. Batches are written
//! unchanged, with the leader's offsets and epochs. Their checksums are verified once, before the append.

use std::fmt;
use std::sync::atomic::Ordering;

use super::truncation::{EpochEnd, LogSpan, Restart, agreed_end, plan_restart};
use crate::ids::{LeaderEpoch, Offset};
use crate::partition::Partition;
use crate::role::{Following, Role};
use crate::waiting::Waiter;
use pybroker_record::{Batches, RecordError};
use pybroker_storage::{AppendError, LogError, RepairedEpochs};
use pybroker_wire::fetch::DivergingEpoch;

/// The position in a follower's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPosition {
    /// The log end offset.
    pub offset: i64,
    /// The latest epoch of the log; -1 for none.
    pub last_epoch: LeaderEpoch,
    pub log_start_offset: i64,
}

/// A leader's records for a partition, and the offsets of its log.
#[derive(Clone, Copy, Debug)]
pub struct FetchedRecords<'a> {
    /// The requested offset: the follower's log end.
    pub fetch_offset: i64,
    pub high_watermark: i64,
    pub log_start_offset: i64,
    /// Batches. The last one may be incomplete.
    pub batches: &'a [u8],
}

/// Why a response was rejected.
#[derive(Debug)]
pub enum NotTaken {
    /// The partition does not follow that leader any more.
    NotFollowing,
    /// The log end differs from the requested offset: the thread that fetched the partition before was not finished.
    Outdated,
    /// The batches do not continue the log, or are damaged.
    Append(AppendError),
    /// The log returned an error.
    Log(LogError),
    /// The response would leave the log unchanged and repeat the same request.
    NoProgress,
}

/// A change of a follower's log that the operator must know about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowerNotice {
    /// The leader epochs contradicted the log and were repaired. Nothing was truncated.
    EpochsRepaired(RepairedEpochs),
    /// Committed records below the high watermark were removed, because the leader does not have them.
    TruncatedCommitted { from: i64, to: i64, high_watermark: i64 },
    /// Records are missing within the log. It was truncated to the first of them, and fetches them from the leader.
    TruncatedToHole { from: i64, to: i64 },
}

impl fmt::Display for FollowerNotice {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EpochsRepaired(repaired) => repaired.fmt(to),
            Self::TruncatedCommitted { from, to: end, high_watermark } => write!(
                to,
                "truncated from offset {from} to {end}, below its high watermark {high_watermark}: the leader's log has \
                 other records there, or none"
            ),
            Self::TruncatedToHole { from, to: end } => write!(
                to,
                "truncated from offset {from} to {end}, where records are missing: the records from there on are fetched from \
                 the leader"
            ),
        }
    }
}

impl Partition {
    /// Returns the position for the next request.
    pub fn fetch_position(&self) -> FetchPosition {
        let log = self.log();
        let last_epoch = LeaderEpoch(log.latest_epoch().unwrap_or(-1));
        FetchPosition { offset: log.log_end_offset(), last_epoch, log_start_offset: log.log_start_offset() }
    }

    /// Appends the leader's records, and sets high watermark and log start. Returns whether the next request has news
    /// for the leader: a new log end or log start.
    ///
    /// # Errors
    /// See [`NotTaken`]. The log is then unchanged, or has the first of several appends.
    pub fn append_fetched(
        &self,
        following: Following,
        fetched: FetchedRecords<'_>,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<bool, NotTaken> {
        {
            let _unchanged = self.role_change.lock();
            self.ensure_follows(following)?;
            if fetched.fetch_offset != self.log.log_end_offset() {
                return Err(NotTaken::Outdated);
            }
            self.append_whole(fetched.batches, now_ms)?;
        }
        self.follow_high_watermark(fetched.high_watermark, wake);
        let start = fetched.log_start_offset.min(self.high_watermark());
        let is_start_moved = start > self.log.log_start_offset();
        if is_start_moved {
            self.log.follow_log_start(start).map_err(NotTaken::Log)?;
        }
        Ok(is_start_moved || !fetched.batches.is_empty())
    }

    /// Truncates a log to the start of its hole. A leader with records up to this log's end has the missing records
    /// too, or no replica has them.
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub fn truncate_to_hole(&self, following: Following, now_ms: i64) -> Result<Option<FollowerNotice>, NotTaken> {
        let _unchanged = self.role_change.lock();
        self.ensure_follows(following)?;
        let from = self.log.log_end_offset();
        let Some(hole) = self.log.hole() else { return Ok(None) };
        self.cut(hole, now_ms)?;
        Ok(Some(FollowerNotice::TruncatedToHole { from, to: self.log.log_end_offset() }))
    }

    /// Truncates the log to where it diverges from the leader's, as far as one response shows. Leader epochs that
    /// contradict the log are repaired first; then nothing is truncated.
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub fn cut_diverging(
        &self,
        following: Following,
        leader: DivergingEpoch,
        now_ms: i64,
    ) -> Result<Option<FollowerNotice>, NotTaken> {
        let _unchanged = self.role_change.lock();
        self.ensure_follows(following)?;
        if let Some(repaired) = self.log.verify_epochs(following.leader_epoch.0).map_err(NotTaken::Log)? {
            return Ok(Some(FollowerNotice::EpochsRepaired(repaired)));
        }
        let before = self.fetch_position();
        let (epoch, end_offset) = self.log.end_offset_for_epoch(leader.epoch);
        let leader = EpochEnd { epoch: leader.epoch, end_offset: leader.end_offset };
        let agreed = agreed_end(leader, EpochEnd { epoch, end_offset }, Offset(before.offset));
        let notice = self.cut(agreed, now_ms)?;
        if self.fetch_position() == before { Err(NotTaken::NoProgress) } else { Ok(notice) }
    }

    /// Truncates or restarts the log so that the next fetch offset is in the range `leader` of the leader's log.
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub fn restart_in_range(
        &self,
        following: Following,
        leader: LogSpan,
        now_ms: i64,
    ) -> Result<Option<FollowerNotice>, NotTaken> {
        let _unchanged = self.role_change.lock();
        self.ensure_follows(following)?;
        match plan_restart(Offset(self.log.log_end_offset()), leader) {
            Restart::CutTo(end) => self.cut(end, now_ms),
            Restart::BeginAt(start) => self.begin_at(start, now_ms).map(|()| None),
            Restart::Retry => Err(NotTaken::NoProgress),
        }
    }

    fn ensure_follows(&self, following: Following) -> Result<(), NotTaken> {
        let role = self.role.load();
        let follows = matches!(&**role, Role::Follower(current) if *current == following);
        if follows && !self.closed.load(Ordering::Acquire) { Ok(()) } else { Err(NotTaken::NotFollowing) }
    }

    fn cut(&self, end: Offset, now_ms: i64) -> Result<Option<FollowerNotice>, NotTaken> {
        let from = self.log.log_end_offset();
        self.log.truncate_to(end, now_ms).map_err(NotTaken::Log)?;
        let to = self.log.log_end_offset();
        let high_watermark = self.high_watermark.fetch_min(to, Ordering::AcqRel);
        let is_committed = to < high_watermark && to < from;
        Ok(is_committed.then_some(FollowerNotice::TruncatedCommitted { from, to, high_watermark }))
    }

    fn begin_at(&self, start: Offset, now_ms: i64) -> Result<(), NotTaken> {
        self.log.truncate_fully_and_start_at(start, now_ms).map_err(NotTaken::Log)?;
        self.high_watermark.store(start.0, Ordering::Release);
        Ok(())
    }

    /// Appends the complete batches in `batches`, at most a segment's size at a time.
    fn append_whole(&self, batches: &[u8], now_ms: i64) -> Result<(), NotTaken> {
        let limit = self.log.segment_bytes();
        let (mut from, mut to) = (0, 0);
        for batch in Batches::new(batches) {
            let size = match batch {
                Ok((_, bytes)) => bytes.len(),
                // The size limit of the response has cut it. The next response has the complete batch.
                Err(RecordError::Truncated { .. }) => break,
                // The batches before it are appended. The next response starts with it.
                Err(_) if to > 0 => break,
                Err(error) => return Err(NotTaken::Append(AppendError::malformed(error))),
            };
            if to > from && (to - from + size) as u64 > limit {
                self.append_run(&batches[from..to], now_ms)?;
                from = to;
            }
            to += size;
        }
        if to > from { self.append_run(&batches[from..to], now_ms) } else { Ok(()) }
    }

    fn is_empty_at(&self, offset: i64) -> bool {
        (self.log.log_start_offset(), self.log.log_end_offset()) == (offset, offset)
    }

    fn append_run(&self, batches: &[u8], now_ms: i64) -> Result<(), NotTaken> {
        match self.log.append_as_follower(batches, now_ms) {
            // The leader's log starts inside its first batch, and this log is empty: it starts with the complete
            // batch.
            Err(AppendError::UnexpectedOffset { expected, found })
                if found < expected && self.is_empty_at(expected) =>
            {
                self.log.truncate_fully_and_start_at(Offset(found), now_ms).map_err(NotTaken::Log)?;
                self.log.append_as_follower(batches, now_ms).map_err(NotTaken::Append)?;
                self.log.follow_log_start(expected).map_err(NotTaken::Log)
            }
            Err(error) => Err(NotTaken::Append(error)),
            Ok(_) => Ok(()),
        }
    }
}
