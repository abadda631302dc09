//! One replica of one partition: its log, its role, its high watermark, and the requests that wait for it.
//!
//! The same type with one replica or five: what followers add is their positions, which a [`Leader`](super::Leader) keeps.
//! With one replica an append commits itself. Appends are in `append`, what they wait for is in `commit`, and how the role
//! changes is in `role_change`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::acknowledgement::AcknowledgementList;
use super::ids::{LeaderEpoch, Offset};
use super::leader::ReplicaState;
use super::role::Role;
use super::throttle::ThrottledSides;
use super::waiting::{Waiter, WaitingFetch};
use super::waiting_readers::{Isolation, WaitingReaders};
use pybroker_storage::{
    CommittedSlice, Expired, FileSlice, Log, LogError, LogMove, MoveError, MovedLog, ReadError, Removed,
    RetentionLimits, Throttle,
};
use pybroker_wire::TopicId;

/// Why a leader epoch named by a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderCheck {
    /// This broker leads at the epoch named, or none was named.
    Leads,
    /// It does not lead (NOT_LEADER_OR_FOLLOWER).
    NotLeader,
    /// The client's epoch is older (FENCED_LEADER_EPOCH).
    Fenced,
    /// The client's epoch is newer (UNKNOWN_LEADER_EPOCH).
    Unknown,
}

/// A partition's replica on this broker.
#[derive(Debug)]
pub struct Partition {
    topic: Arc<str>,
    index: i32,
    topic_id: TopicId,
    /// Changes when the log is moved.
    directory: ArcSwap<PathBuf>,
    pub(crate) log: Log,
    /// Only rises while this broker leads; never above the log end offset.
    pub(crate) high_watermark: AtomicI64,
    pub(crate) role: ArcSwap<Role>,
    /// Held by a change of role, and by what reads other replicas' positions to commit: nothing is committed by a role
    /// that is not in force any more. A leader alone commits without it.
    pub(crate) role_change: Mutex<()>,
    /// Set when the log is closed or deleted; nothing is appended or read any more.
    pub(crate) closed: AtomicBool,
    pub(crate) waiting: WaitingReaders,
    /// Appends that are to be committed, by the high watermark.
    pub(crate) uncommitted: AcknowledgementList,
    /// Appends that are to be durable, by the recovery point.
    pub(crate) unsynced: AcknowledgementList,
    /// Set while a sync is asked for that has not begun.
    pub(crate) sync_wanted: AtomicBool,
    throttled: ThrottledSides,
    /// Whether a deletion of records waits for the other replicas.
    deletion_awaited: AtomicBool,
}

impl Partition {
    /// Wraps an open log. `directory` is the log directory (not the partition's own), named when it fails;
    /// `high_watermark` is the checkpointed one and is bounded to what the log has.
    pub fn new(
        topic: Arc<str>,
        index: i32,
        topic_id: TopicId,
        directory: PathBuf,
        log: Log,
        high_watermark: i64,
    ) -> Self {
        let bounded = high_watermark.clamp(log.log_start_offset(), log.log_end_offset());
        log.settle_transactions(bounded);
        let stable = log.first_unstable_offset().map_or(bounded, |unstable| unstable.min(bounded));
        Self {
            topic,
            index,
            topic_id,
            directory: ArcSwap::from_pointee(directory),
            log,
            high_watermark: AtomicI64::new(bounded),
            role: ArcSwap::from_pointee(Role::None { leader_epoch: LeaderEpoch(-1) }),
            role_change: Mutex::new(()),
            closed: AtomicBool::new(false),
            waiting: WaitingReaders::new(stable),
            uncommitted: AcknowledgementList::default(),
            unsynced: AcknowledgementList::default(),
            sync_wanted: AtomicBool::new(false),
            throttled: ThrottledSides::default(),
            deletion_awaited: AtomicBool::new(false),
        }
    }

    /// The topic's name.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The partition's index.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// The topic's id.
    pub fn topic_id(&self) -> &TopicId {
        &self.topic_id
    }

    /// The log directory that holds this partition.
    pub fn directory(&self) -> Arc<PathBuf> {
        self.directory.load_full()
    }

    /// The log itself, for what is neither Produce nor Fetch.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The offset up to which (exclusive) consumers may read.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// The offset up to which (exclusive) `read_committed` consumers may read: every transaction below it is decided.
    pub fn last_stable_offset(&self) -> i64 {
        let high_watermark = self.high_watermark();
        // Records of an open transaction may have been deleted; what is left of it begins with the log.
        let unstable = self.log.first_unstable_offset().map(|offset| offset.max(self.log.log_start_offset()));
        unstable.map_or(high_watermark, |unstable| unstable.min(high_watermark))
    }

    /// On which sides this replica is throttled.
    pub fn throttled(&self) -> &ThrottledSides {
        &self.throttled
    }

    /// Says whether somebody waits for the other replicas to delete records.
    pub fn await_deletion(&self, awaited: bool) {
        self.deletion_awaited.store(awaited, Ordering::Release);
    }

    /// Whether somebody waits for the other replicas to delete records: what their Fetches say of their logs' starts is news.
    pub fn is_deletion_awaited(&self) -> bool {
        self.deletion_awaited.load(Ordering::Acquire)
    }

    /// Answers the followers that wait for records: the start of the log has moved, which they learn from an answer.
    pub fn wake_followers(&self, wake: &mut dyn FnMut(Waiter)) {
        self.waiting.wake_replicas(wake);
    }

    /// Whether this leader does not know yet that what older leaders committed is committed (KIP-207): consumers may have
    /// seen offsets beyond the high watermark.
    pub fn lags_its_epoch(&self) -> bool {
        self.role.load().leader().is_some_and(|leader| leader.epoch_start() > self.high_watermark())
    }

    /// The role in force.
    pub fn role(&self) -> Arc<Role> {
        self.role.load_full()
    }

    /// The leader epoch of the role in force, -1 before the first.
    pub fn leader_epoch(&self) -> i32 {
        self.role.load().leader_epoch().0
    }

    /// The other replicas, as far as this broker leads and knows them.
    pub fn replicas(&self) -> Vec<ReplicaState> {
        self.role.load().leader().map_or_else(Vec::new, |leader| leader.replicas().collect())
    }

    /// Compares a leader epoch that a client named (-1: none) with the one in force (KIP-320).
    pub fn check_leader(&self, named_epoch: LeaderEpoch) -> LeaderCheck {
        self.check(named_epoch, |role| matches!(role, Role::Leader(_)))
    }

    /// As [`Partition::check_leader`] for what a follower may answer too (KIP-392).
    pub fn check_replica(&self, named_epoch: LeaderEpoch) -> LeaderCheck {
        self.check(named_epoch, |role| matches!(role, Role::Leader(_) | Role::Follower(_)))
    }

    fn check(&self, named_epoch: LeaderEpoch, serves: impl Fn(&Role) -> bool) -> LeaderCheck {
        let role = self.role.load();
        if !serves(&role) || self.closed.load(Ordering::Acquire) {
            return LeaderCheck::NotLeader;
        }
        let in_force = role.leader_epoch();
        if named_epoch.0 < 0 || named_epoch == in_force {
            LeaderCheck::Leads
        } else if named_epoch < in_force {
            LeaderCheck::Fenced
        } else {
            LeaderCheck::Unknown
        }
    }

    /// Where the bytes lie that answer a read of these offsets.
    pub fn plan_read(&self, offsets: Range<Offset>, max_bytes: usize, min_one: bool) -> Result<FileSlice, ReadError> {
        self.log.plan_read(offsets, max_bytes, min_one)
    }

    /// [`Partition::plan_read`] for a `read_committed` reader, with the aborted transactions to leave out.
    pub fn plan_read_committed(
        &self,
        offsets: Range<Offset>,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<CommittedSlice, ReadError> {
        self.log.plan_read_committed(offsets, max_bytes, min_one)
    }

    /// Takes the segments out of use that are older or more than they may be, as far as they are committed, and forgets what
    /// else has grown old ([`Log::forget_old`]).
    ///
    /// # Errors
    /// See [`Log::delete_old_segments`].
    pub fn delete_old_segments(
        &self,
        retention_ms: Option<i64>,
        retention_bytes: Option<u64>,
        now_ms: i64,
    ) -> Result<(Expired, Removed), LogError> {
        let high_watermark = self.high_watermark();
        self.log.forget_old(now_ms);
        self.log.delete_old_segments(&RetentionLimits { high_watermark, now_ms, retention_ms, retention_bytes })
    }

    /// Moves the log to the log directory that `future`, made by [`pybroker_storage::prepare_move`], lies in.
    ///
    /// # Errors
    /// See [`Log::move_to`]; [`Partition::directory`] says where the log is then.
    pub fn move_to(
        &self,
        future: &Path,
        state: &LogMove,
        throttle: &Throttle,
        deleted_id: &str,
    ) -> Result<MovedLog, MoveError> {
        self.log.move_to(future, state, throttle, deleted_id, |home| {
            let directory = home.parent().unwrap_or(home);
            self.directory.store(Arc::new(directory.to_path_buf()));
        })
    }

    /// Lets a fetch wait here whose read was planned up to the offset `seen`. The caller plans it again afterwards, so that
    /// an append in between is not missed.
    pub fn wait(&self, fetch: &Arc<WaitingFetch>, isolation: Isolation, seen: i64) {
        self.waiting.register(fetch, isolation, seen);
    }

    /// Ends what [`Partition::wait`] began.
    pub fn stop_waiting(&self, fetch: &Arc<WaitingFetch>) {
        self.waiting.deregister(fetch);
    }

    /// How many fetches wait here.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the log is closed or deleted.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Refuses appends from now on and wakes all that wait: they get NOT_LEADER_OR_FOLLOWER.
    pub fn retire(&self, wake: &mut dyn FnMut(Waiter)) {
        self.closed.store(true, Ordering::Release);
        self.wake_all(wake);
    }

    /// The log directory failed: takes the log offline and wakes all that wait: they get an error.
    pub fn fail(&self, wake: &mut dyn FnMut(Waiter)) {
        self.log.take_offline();
        self.wake_all(wake);
    }

    /// Wakes all that wait, who will then see why.
    pub(crate) fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        self.waiting.wake_all(wake);
        self.uncommitted.wake_all(wake);
        self.unsynced.wake_all(wake);
    }
}
