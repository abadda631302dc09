//! One replica of one partition: its log, its role, its high watermark, and the requests that wait for it.
//!
//! The same type with one replica or five: what followers add is their fetch positions (the `others` of
//! [`high_watermark`]), which arrive by Fetch and are kept here. With one replica an append commits itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;

use super::{AcknowledgementList, Waiter, WaitingFetch, WaitingProduce, WaitingReaders, high_watermark};
use pybroker_record::SentRecords;
use pybroker_storage::{
    AppendError, Appended, CommittedSlice, Expired, FileSlice, Log, LogError, LogMove, MoveError, MovedLog, ReadError,
    Removed, RetentionLimits, Throttle,
};
use pybroker_wire::TopicId;

/// What a partition is to this broker, as the control plane last said. Swapped whole.
#[derive(Clone, Copy, Debug)]
pub struct Leadership {
    /// The leader epoch; -1 before the first.
    pub leader_epoch: i32,
    /// Whether this broker leads.
    pub is_leader: bool,
    /// How many replicas are in sync, this one included.
    pub in_sync: usize,
    /// `min.insync.replicas` of the topic.
    pub min_in_sync: usize,
}

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

/// Why nothing was appended.
#[derive(Debug)]
pub enum NotAppended {
    /// This broker does not lead the partition, or its log is closed.
    NotLeader,
    /// `acks=all` with fewer replicas in sync than `min.insync.replicas`.
    NotEnoughReplicas {
        /// Replicas in sync.
        in_sync: usize,
        /// Replicas asked for.
        wanted: usize,
    },
    /// A transactional batch without a transaction: no transaction is open here.
    NoTransaction,
    /// The log refused the batches.
    Log(AppendError),
}

/// A partition's replica on this broker.
#[derive(Debug)]
pub struct Partition {
    topic: Arc<str>,
    index: i32,
    topic_id: TopicId,
    /// Changes when the log is moved.
    directory: ArcSwap<PathBuf>,
    log: Log,
    /// Only rises while this broker leads; never above the log end offset.
    high_watermark: AtomicI64,
    leadership: ArcSwap<Leadership>,
    /// Set when the log is closed or deleted; nothing is appended or read any more.
    closed: AtomicBool,
    waiting: WaitingReaders,
    acknowledgements: AcknowledgementList,
    /// Set while a sync is asked for that has not begun.
    sync_wanted: AtomicBool,
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
        let nobody = Leadership { leader_epoch: -1, is_leader: false, in_sync: 0, min_in_sync: 1 };
        Self {
            topic,
            index,
            topic_id,
            directory: ArcSwap::from_pointee(directory),
            log,
            high_watermark: AtomicI64::new(bounded),
            leadership: ArcSwap::from_pointee(nobody),
            closed: AtomicBool::new(false),
            waiting: WaitingReaders::new(stable),
            acknowledgements: AcknowledgementList::default(),
            sync_wanted: AtomicBool::new(false),
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

    /// The role in force.
    pub fn leadership(&self) -> Leadership {
        **self.leadership.load()
    }

    /// Begins to lead at `leader_epoch`. With one replica in sync everything in the log is committed.
    ///
    /// # Errors
    /// When the log's leader epoch file cannot be written; the role is then as it was.
    pub fn become_leader(&self, leader_epoch: i32, in_sync: usize, min_in_sync: usize) -> Result<(), LogError> {
        self.log.begin_epoch(leader_epoch)?;
        if self.log.is_synced_in_groups() {
            // What a crash left in the page cache is shown only when it cannot be lost any more.
            self.log.flush()?;
        }
        self.leadership.store(Arc::new(Leadership { leader_epoch, is_leader: true, in_sync, min_in_sync }));
        self.maybe_advance_high_watermark();
        // Nobody waits at a replica that did not lead.
        self.waiting.stable_at(self.last_stable_offset(), |_, _| 0, &mut |_| {});
        Ok(())
    }

    /// Compares a leader epoch that a client named (-1: none) with the one in force (KIP-320).
    pub fn check_leader(&self, named_epoch: i32) -> LeaderCheck {
        let now = self.leadership.load();
        if self.closed.load(Ordering::Acquire) || !now.is_leader {
            LeaderCheck::NotLeader
        } else if named_epoch < 0 || named_epoch == now.leader_epoch {
            LeaderCheck::Leads
        } else if named_epoch < now.leader_epoch {
            LeaderCheck::Fenced
        } else {
            LeaderCheck::Unknown
        }
    }

    /// Appends a producer's batches, which are still to be found in the bytes; see [`Partition::append_sent`].
    pub fn append(
        &self,
        batches: &mut [u8],
        all: bool,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let sent = SentRecords::find(batches).map_err(|error| NotAppended::Log(AppendError::Invalid(error)))?;
        self.append_sent(sent, all, now_ms, wake)
    }

    /// Appends a producer's records, advances the high watermark, and wakes by `wake` the requests that this satisfies.
    ///
    /// Batches that need not be converted are patched in place (offsets, leader epoch, append time). `all` asks for
    /// `min.insync.replicas`.
    pub fn append_sent(
        &self,
        sent: SentRecords<'_>,
        all: bool,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        self.append_by(sent, all, wake, |log, sent, leader_epoch| log.append_sent(sent, leader_epoch, now_ms))
    }

    /// Appends what a coordinator has decided, for all replicas in sync, as [`Partition::append`] does but for one thing:
    /// it waits for no disk. What is not settled then has to be synced.
    pub fn append_deferred(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let sent = SentRecords::find(batches).map_err(|error| NotAppended::Log(AppendError::Invalid(error)))?;
        self.append_by(sent, true, wake, |log, sent, leader_epoch| log.append_deferred(sent, leader_epoch, now_ms))
    }

    fn append_by<'a>(
        &self,
        sent: SentRecords<'a>,
        all: bool,
        wake: &mut dyn FnMut(Waiter),
        append: impl FnOnce(&Log, SentRecords<'a>, i32) -> Result<Appended, AppendError>,
    ) -> Result<Appended, NotAppended> {
        let role = self.leadership();
        if !role.is_leader || self.closed.load(Ordering::Acquire) {
            return Err(NotAppended::NotLeader);
        }
        if all && role.in_sync < role.min_in_sync {
            return Err(NotAppended::NotEnoughReplicas { in_sync: role.in_sync, wanted: role.min_in_sync });
        }
        if sent.is_transactional() {
            return Err(NotAppended::NoTransaction);
        }
        let appended = append(&self.log, sent, role.leader_epoch).map_err(NotAppended::Log)?;
        self.appended(&appended, wake);
        Ok(appended)
    }

    /// Appends a coordinator's batches as they are: markers, and what else belongs to transactions. Wakes as
    /// [`Partition::append_sent`] does.
    pub fn append_as_coordinator(
        &self,
        batches: &mut [u8],
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Appended, NotAppended> {
        let role = self.leadership();
        if !role.is_leader || self.closed.load(Ordering::Acquire) {
            return Err(NotAppended::NotLeader);
        }
        let appended = self.log.append_internal(batches, role.leader_epoch, now_ms).map_err(NotAppended::Log)?;
        self.appended(&appended, wake);
        Ok(appended)
    }

    /// Commits what was appended, as far as it can be, and wakes those whom that satisfies.
    fn appended(&self, appended: &Appended, wake: &mut dyn FnMut(Waiter)) {
        self.maybe_advance_high_watermark();
        if !appended.duplicate && self.has_committed(appended.last_offset + 1) {
            self.waiting.arrived(appended.last_offset + 1, appended.bytes, wake);
        }
        self.notify_stable(wake);
    }

    /// Wakes the `read_committed` fetches that the last stable offset satisfies.
    fn notify_stable(&self, wake: &mut dyn FnMut(Waiter)) {
        let between = |from, to| self.log.bytes_between(from, to);
        self.waiting.stable_at(self.last_stable_offset(), between, wake);
    }

    /// Whether everything below `end_offset` is committed: a Produce that ends there may be acknowledged.
    pub fn has_committed(&self, end_offset: i64) -> bool {
        self.high_watermark() >= end_offset
    }

    /// Whether everything below `end_offset` is committed, and synced where the log's settings want it to be by now.
    pub fn has_settled(&self, end_offset: i64) -> bool {
        self.has_committed(end_offset) && (self.log.recovery_point() >= end_offset || !self.log.is_sync_due())
    }

    /// Raises the high watermark to what the in-sync replicas have; never lowers it. Returns where it stood.
    ///
    /// Under `flush=group` this replica has what is on its device: nobody reads what a crash could take back
    /// (docs/adr/0012).
    fn maybe_advance_high_watermark(&self) -> i64 {
        let end_offset = self.log.log_end_offset();
        let local = if self.log.is_synced_in_groups() { self.log.recovery_point().min(end_offset) } else { end_offset };
        let reached = high_watermark(local, []);
        let before = self.high_watermark.fetch_max(reached, Ordering::AcqRel);
        self.log.settle_transactions(before.max(reached));
        before
    }

    /// Notes that a sync is wanted; false when one is asked for already that will cover what is in the log now.
    pub(super) fn want_sync(&self) -> bool {
        !self.sync_wanted.swap(true, Ordering::AcqRel)
    }

    /// Syncs the log and commits what that covers; requests that waited for it are woken, also when it fails for good.
    ///
    /// # Errors
    /// As [`Log::flush`]; the log is then offline, unless the error is [`LogError::Exhausted`]: then those who wait go on
    /// waiting for another try.
    pub fn sync(&self, wake: &mut dyn FnMut(Waiter)) -> Result<(), LogError> {
        // Before the sync: what is appended from here on asks for another. A swap, so that it sees what those appended who
        // found the wish standing.
        self.sync_wanted.swap(false, Ordering::AcqRel);
        if let Err(error) = self.log.flush() {
            if !error.is_exhausted() {
                self.acknowledgements.wake_all(wake);
            }
            return Err(error);
        }
        let before = self.maybe_advance_high_watermark();
        let reached = self.high_watermark();
        if reached > before {
            self.waiting.arrived(reached, self.log.bytes_between(before, reached) as usize, wake);
            self.notify_stable(wake);
        }
        self.acknowledgements.reached(reached.min(self.log.recovery_point()), wake);
        if self.closed.load(Ordering::Acquire) {
            // A closed log is not synced any more: a request that came after the others were woken is woken here.
            self.acknowledgements.wake_all(wake);
        }
        Ok(())
    }

    /// Wakes those who wait for a sync that will not be tried again.
    pub(super) fn give_up_sync(&self, wake: &mut dyn FnMut(Waiter)) {
        self.acknowledgements.wake_all(wake);
    }

    /// Has somebody woken when a sync has covered everything below `end_offset`, or never will; the caller asks for one.
    pub fn await_sync(&self, end_offset: i64, waiting: &Arc<WaitingProduce>) {
        self.acknowledgements.register(end_offset, waiting);
    }

    /// Lets a Produce wait until everything below `end_offset` is committed.
    pub fn await_commit(&self, end_offset: i64, produce: &Arc<WaitingProduce>, wake: &mut dyn FnMut(Waiter)) {
        self.acknowledgements.register(end_offset, produce);
        // A sync that was faster has woken nobody.
        if self.has_committed(end_offset) {
            self.acknowledgements.reached(self.high_watermark(), wake);
        } else if self.log.is_offline() {
            self.acknowledgements.wake_all(wake);
        }
    }

    /// How many Produces wait for the high watermark.
    pub fn unacknowledged(&self) -> usize {
        self.acknowledgements.len()
    }

    /// Where the bytes lie that answer a read from `offset`, below the exclusive bound `end`.
    pub fn plan_read(&self, offset: i64, max_bytes: usize, end: i64, min_one: bool) -> Result<FileSlice, ReadError> {
        self.log.plan_read(offset, max_bytes, end, min_one)
    }

    /// [`Partition::plan_read`] for a `read_committed` reader, with the aborted transactions to leave out.
    pub fn plan_read_committed(
        &self,
        offset: i64,
        max_bytes: usize,
        end: i64,
        min_one: bool,
    ) -> Result<CommittedSlice, ReadError> {
        self.log.plan_read_committed(offset, max_bytes, end, min_one)
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
    pub fn wait(&self, fetch: &Arc<WaitingFetch>, read_committed: bool, seen: i64) {
        self.waiting.register(fetch, read_committed, seen);
    }

    /// Ends what [`Partition::wait`] began.
    pub fn stop_waiting(&self, fetch: &Arc<WaitingFetch>) {
        self.waiting.deregister(fetch);
    }

    /// How many fetches wait here.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Refuses appends from now on and wakes all that wait: they get NOT_LEADER_OR_FOLLOWER.
    pub fn retire(&self, wake: &mut dyn FnMut(Waiter)) {
        self.closed.store(true, Ordering::Release);
        self.waiting.wake_all(wake);
        self.acknowledgements.wake_all(wake);
    }

    /// The log directory failed: takes the log offline and wakes all that wait: they get an error.
    pub fn fail(&self, wake: &mut dyn FnMut(Waiter)) {
        self.log.take_offline();
        self.waiting.wake_all(wake);
        self.acknowledgements.wake_all(wake);
    }
}
