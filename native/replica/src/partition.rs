//! One replica of a partition: its log, role, high watermark, and waiting requests.
//!
//! The type is the same for any number of replicas. A [`Leader`](super::Leader) has the positions of the followers.
//! With one replica every append is committed at once. Appends are in `append`, acknowledgements in `commit`, and
//! role changes in `role_change`.

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

/// The result of a check of a client's leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderCheck {
    /// This broker is the leader in that epoch, or the client named no epoch.
    Leads,
    /// This broker is not the leader (NOT_LEADER_OR_FOLLOWER).
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
    /// The log directory. Changes when the log is moved.
    directory: ArcSwap<PathBuf>,
    pub(crate) log: Log,
    /// Never decreases while this broker is the leader. Never above the log end offset.
    pub(crate) high_watermark: AtomicI64,
    pub(crate) role: ArcSwap<Role>,
    /// Locked by a role change, and by a commit that reads the positions of other replicas, so that an old role
    /// commits nothing. The leader of a single replica commits without the lock.
    pub(crate) role_change: Mutex<()>,
    /// Set when the log is closed or deleted. Appends and reads are then rejected.
    pub(crate) closed: AtomicBool,
    pub(crate) waiting: WaitingReaders,
    /// Appends that wait for the high watermark.
    pub(crate) uncommitted: AcknowledgementList,
    /// Appends that wait for the recovery point.
    pub(crate) unsynced: AcknowledgementList,
    /// Whether a sync is requested that has not begun.
    pub(crate) sync_wanted: AtomicBool,
    throttled: ThrottledSides,
    /// Whether a deletion of records waits for the other replicas.
    deletion_awaited: AtomicBool,
}

impl Partition {
    /// Wraps an open log. `directory` is the log directory (not the partition's own), which is reported when it
    /// fails. `high_watermark` is the checkpointed one, bounded to the log's range.
    pub fn new(
        topic: Arc<str>,
        index: i32,
        topic_id: TopicId,
        directory: PathBuf,
        log: Log,
        high_watermark: i64,
    ) -> Self {
        let bounded = high_watermark.clamp(log.log_start_offset(), log.log_end_offset());
        log.complete_transactions(bounded);
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

    /// Returns the topic's name.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Returns the partition's index.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// Returns the topic's id.
    pub fn topic_id(&self) -> &TopicId {
        &self.topic_id
    }

    /// Returns the log directory of this partition.
    pub fn directory(&self) -> Arc<PathBuf> {
        self.directory.load_full()
    }

    /// Returns the log, for operations other than Produce and Fetch.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the high watermark: the exclusive upper bound for consumers.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::Acquire)
    }

    /// Returns the last stable offset: the exclusive upper bound for `read_committed` consumers. All transactions
    /// below it are completed.
    pub fn last_stable_offset(&self) -> i64 {
        let high_watermark = self.high_watermark();
        // The first records of an open transaction may have been deleted. The rest then begins at the log start.
        let unstable = self.log.first_unstable_offset().map(|offset| offset.max(self.log.log_start_offset()));
        unstable.map_or(high_watermark, |unstable| unstable.min(high_watermark))
    }

    /// Returns the sides on which this replica is throttled.
    pub fn throttled(&self) -> &ThrottledSides {
        &self.throttled
    }

    /// Sets whether a DeleteRecords request waits for the other replicas.
    pub fn await_deletion(&self, awaited: bool) {
        self.deletion_awaited.store(awaited, Ordering::Release);
    }

    /// Returns whether a DeleteRecords request waits for the other replicas. Then log start offsets in their Fetches
    /// matter.
    pub fn is_deletion_awaited(&self) -> bool {
        self.deletion_awaited.load(Ordering::Acquire)
    }

    /// Completes the waiting Fetches of followers, since the response contains the new log start offset.
    pub fn wake_followers(&self, wake: &mut dyn FnMut(Waiter)) {
        self.waiting.wake_replicas(wake);
    }

    /// Returns whether the high watermark is below the start of the leader's epoch (KIP-207). Consumers of an older
    /// leader may have seen offsets above it.
    pub fn lags_its_epoch(&self) -> bool {
        self.role.load().leader().is_some_and(|leader| leader.epoch_start() > self.high_watermark())
    }

    /// Returns the current role.
    pub fn role(&self) -> Arc<Role> {
        self.role.load_full()
    }

    /// Returns the leader epoch of the current role; -1 before the first.
    pub fn leader_epoch(&self) -> i32 {
        self.role.load().leader_epoch().0
    }

    /// Returns the other replicas that the leader knows. Empty if this broker is not the leader.
    pub fn replicas(&self) -> Vec<ReplicaState> {
        self.role.load().leader().map_or_else(Vec::new, |leader| leader.replicas().collect())
    }

    /// Compares a client's leader epoch (-1: none) with the current one (KIP-320).
    pub fn check_leader(&self, named_epoch: LeaderEpoch) -> LeaderCheck {
        self.check(named_epoch, |role| matches!(role, Role::Leader(_)))
    }

    /// Like [`Partition::check_leader`], for requests that a follower may serve too (KIP-392).
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

    /// Returns the file slice for a read of a range of offsets.
    pub fn plan_read(&self, offsets: Range<Offset>, max_bytes: usize, min_one: bool) -> Result<FileSlice, ReadError> {
        self.log.plan_read(offsets, max_bytes, min_one)
    }

    /// [`Partition::plan_read`] for a `read_committed` consumer. Also returns the aborted transactions to skip.
    pub fn plan_read_committed(
        &self,
        offsets: Range<Offset>,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<CommittedSlice, ReadError> {
        self.log.plan_read_committed(offsets, max_bytes, min_one)
    }

    /// Removes committed segments that exceed the retention limits, and other expired state ([`Log::forget_old`]).
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

    /// Moves the log to the log directory of `future`, which [`pybroker_storage::prepare_move`] has created.
    ///
    /// # Errors
    /// See [`Log::move_to`]. [`Partition::directory`] is then the log's directory.
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

    /// Registers a fetch whose read was planned up to the offset `seen`. The caller must plan the read again
    /// afterwards, so that no append in between is missed.
    pub fn wait(&self, fetch: &Arc<WaitingFetch>, isolation: Isolation, seen: i64) {
        self.waiting.register(fetch, isolation, seen);
    }

    /// Removes a fetch that [`Partition::wait`] has registered.
    pub fn stop_waiting(&self, fetch: &Arc<WaitingFetch>) {
        self.waiting.deregister(fetch);
    }

    /// Returns the number of waiting fetches.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether the log is closed or deleted.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Rejects appends from this call on, and wakes all waiting requests, which fail with NOT_LEADER_OR_FOLLOWER.
    pub fn retire(&self, wake: &mut dyn FnMut(Waiter)) {
        self.closed.store(true, Ordering::Release);
        self.wake_all(wake);
    }

    /// Takes the log offline because its directory failed, and wakes all waiting requests, which fail with an error.
    pub fn fail(&self, wake: &mut dyn FnMut(Waiter)) {
        self.log.take_offline();
        self.wake_all(wake);
    }

    /// Wakes all waiting requests. They check the reason themselves.
    pub(crate) fn wake_all(&self, wake: &mut dyn FnMut(Waiter)) {
        self.waiting.wake_all(wake);
        self.uncommitted.wake_all(wake);
        self.unsynced.wake_all(wake);
    }
}
