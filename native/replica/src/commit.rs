//! What becomes of what was appended: committed by the high watermark, durable by a sync, and who waits for either.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::acknowledgement::{Awaited, Standing, WaitingProduce};
use super::ids::{BrokerId, LeaderEpoch, Offset};
use super::leader::{CaughtUp, FollowerPosition, Leader, PositionRefused};
use super::partition::Partition;
use super::waiting::Waiter;
use pybroker_storage::{Appended, LogError};

/// How far the high watermark went; the same twice when somebody else has moved it, or nobody.
struct Advance {
    before: i64,
    reached: i64,
}

impl Partition {
    /// Whether everything below `end_offset` is committed: below the high watermark.
    pub fn has_committed(&self, end_offset: i64) -> bool {
        self.high_watermark() >= end_offset
    }

    /// Whether everything below `end_offset` is synced to the device.
    pub fn is_durable(&self, end_offset: i64) -> bool {
        self.log.recovery_point() >= end_offset
    }

    /// Whether everything below `end_offset` is committed, and durable where the log's settings want it to be by now.
    pub fn has_settled(&self, end_offset: i64) -> bool {
        self.has_committed(end_offset) && (self.is_durable(end_offset) || !self.log.is_sync_due())
    }

    /// [`Partition::has_settled`] of what this broker appended from `leader_epoch` on. After another leader something else
    /// may stand there, and be committed.
    pub fn has_settled_since(&self, leader_epoch: LeaderEpoch, end_offset: i64) -> bool {
        // In this order: a leader that was it throughout has not lost what it appended before.
        let settled = self.has_settled(end_offset);
        settled && self.role.load().leader().is_some_and(|leader| leader.has_led_since(leader_epoch))
    }

    /// Notes how far a follower has the log, as its Fetch says. Commits what that commits, and wakes the requests that this
    /// satisfies. Answers whether the controller is to be asked to let the follower into the in-sync replicas; it is
    /// answered once, until [`Partition::stop_joining`] or a newer partition epoch says what became of it.
    ///
    /// # Errors
    /// See [`PositionRefused`]; nothing is changed then.
    pub fn update_replica_position(
        &self,
        position: FollowerPosition,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<CaughtUp, PositionRefused> {
        let role = self.role.load();
        let leader = role.leader().ok_or(PositionRefused::NotLeader)?;
        leader.update_position(position, Offset(self.log.log_end_offset()), now_ms)?;
        self.maybe_advance_high_watermark(None, wake);
        if !position.eligible.allows() || !leader.might_join(position.replica, self.high_watermark()) {
            return Ok(CaughtUp::NoNews);
        }
        let _unchanged = self.role_change.lock();
        let role = self.role.load();
        let leader = role.leader().filter(|leader| leader.leader_epoch() == position.leader_epoch);
        Ok(leader.map_or(CaughtUp::NoNews, |leader| leader.maybe_join(position.replica, self.high_watermark())))
    }

    /// Replicas that were asked for to be in sync are not let in: what they lack is committed without them again.
    pub fn stop_joining(&self, replicas: &[BrokerId], wake: &mut dyn FnMut(Waiter)) {
        if let Some(leader) = self.role.load().leader() {
            leader.stop_joining(replicas);
        }
        self.maybe_advance_high_watermark(None, wake);
    }

    /// The in-sync replicas that have fallen behind for longer than `max_lag_ms`, with the leader epoch; none where this
    /// broker does not lead. What waited for others that are behind, or not `alive`, goes on without them.
    pub fn lagging(
        &self,
        now_ms: i64,
        max_lag_ms: i64,
        alive: &[BrokerId],
        wake: &mut dyn FnMut(Waiter),
    ) -> Option<(LeaderEpoch, Vec<BrokerId>)> {
        let role = self.role.load();
        let leader = role.leader().filter(|leader| !leader.is_alone())?;
        let lagging = leader.lagging(Offset(self.log.log_end_offset()), now_ms, max_lag_ms, alive);
        self.maybe_advance_high_watermark(None, wake);
        Some((leader.leader_epoch(), lagging))
    }

    /// Where the earliest log of this replica and the `alive` others starts: what is below is gone from all of them.
    pub fn low_watermark(&self, alive: &[BrokerId]) -> i64 {
        let own = self.log.log_start_offset();
        self.role.load().leader().map_or(own, |leader| leader.low_watermark(own, alive))
    }

    /// A follower takes its leader's high watermark, as far as it has the log; it never goes back but with the log.
    pub(crate) fn follow_high_watermark(&self, leaders: i64, wake: &mut dyn FnMut(Waiter)) {
        let reached = leaders.min(self.log.log_end_offset());
        let before = self.high_watermark.fetch_max(reached, Ordering::AcqRel);
        self.show(&Advance { before, reached: before.max(reached) }, None, wake);
    }

    /// Raises the high watermark to what the in-sync replicas have, if this broker leads; never lowers it. The thread that
    /// raises it wakes the requests that this satisfies. `appended` is what the caller has appended.
    pub(crate) fn maybe_advance_high_watermark(&self, appended: Option<&Appended>, wake: &mut dyn FnMut(Waiter)) {
        if let Some(advance) = self.advance() {
            self.show(&advance, appended, wake);
        }
    }

    /// Lets readers and those who wait see how far the high watermark went.
    fn show(&self, advance: &Advance, appended: Option<&Appended>, wake: &mut dyn FnMut(Waiter)) {
        let &Advance { before, reached } = advance;
        self.log.settle_transactions(reached);
        if before < reached {
            let passed = (before, reached);
            let own = appended.filter(|own| !own.duplicate && (own.first_offset, own.last_offset + 1) == passed);
            let bytes = || {
                own.map_or_else(|| self.log.bytes_between(Offset(before)..Offset(reached)) as usize, |own| own.bytes)
            };
            self.waiting.arrived(reached, bytes, wake);
            self.uncommitted.reached(reached, wake);
        }
        let between = |offsets| self.log.bytes_between(offsets);
        self.waiting.stable_at(self.last_stable_offset(), between, wake);
    }

    fn advance(&self) -> Option<Advance> {
        let role = self.role.load();
        let leader = role.leader()?;
        if leader.is_alone() {
            return Some(self.raise(leader));
        }
        let _unchanged = self.role_change.lock();
        self.role.load().leader().map(|leader| self.raise(leader))
    }

    /// Under `flush=group` this replica has what is on its device: nobody reads what a crash could take back
    /// (docs/adr/0012).
    fn raise(&self, leader: &Leader) -> Advance {
        let end_offset = self.log.log_end_offset();
        let own = if self.log.is_synced_in_groups() { self.log.recovery_point().min(end_offset) } else { end_offset };
        if !leader.has_enough_in_sync() {
            let before = self.high_watermark();
            return Advance { before, reached: before };
        }
        let reached = leader.high_watermark(own);
        let before = self.high_watermark.fetch_max(reached, Ordering::AcqRel);
        Advance { before, reached: before.max(reached) }
    }

    /// What an append of `leader_epoch` that ends at `end_offset` still lacks before it may be acknowledged: with `acks=all`
    /// it has to be committed, under `flush=group` it has to be durable.
    pub(crate) fn awaited(
        &self,
        leader_epoch: LeaderEpoch,
        end_offset: i64,
        all: bool,
        wake: &mut dyn FnMut(Waiter),
    ) -> Option<Awaited> {
        let in_groups = self.log.is_synced_in_groups();
        let durable = in_groups && !self.is_durable(end_offset);
        if in_groups && !durable {
            // The sync that covered it may not have come to commit it; who reads after an acknowledgement finds it.
            self.maybe_advance_high_watermark(None, wake);
        }
        let committed = all && !self.has_committed(end_offset);
        (committed || durable).then_some(Awaited { leader_epoch, end_offset, committed, durable })
    }

    /// What a coordinator's append that ends at `end_offset` waits for: to be committed, and durable where that is due.
    pub fn awaited_to_settle(&self, end_offset: i64) -> Awaited {
        self.awaited_to_settle_since(self.role.load().leader_epoch(), end_offset)
    }

    /// [`Partition::awaited_to_settle`] of an append of `leader_epoch`.
    pub(crate) fn awaited_to_settle_since(&self, leader_epoch: LeaderEpoch, end_offset: i64) -> Awaited {
        let durable = !self.is_durable(end_offset) && (self.log.is_synced_in_groups() || self.log.is_sync_due());
        Awaited { leader_epoch, end_offset, committed: true, durable }
    }

    /// Lets a request wait for what an append lacks. It is woken when that has come, or never will; also at once. The caller
    /// asks for the sync.
    pub fn await_acknowledgement(
        &self,
        awaited: &Awaited,
        waiting: &Arc<WaitingProduce>,
        wake: &mut dyn FnMut(Waiter),
    ) {
        if awaited.committed {
            self.uncommitted.register(awaited.end_offset, waiting);
        }
        if awaited.durable {
            self.unsynced.register(awaited.end_offset, waiting);
        }
        // What came before the request was registered has woken nobody.
        match self.standing(awaited) {
            Standing::NotLeader | Standing::Offline => self.wake_unacknowledged(wake),
            Standing::Reached | Standing::TooFewInSync | Standing::Waiting => {
                self.uncommitted.reached(self.high_watermark(), wake);
                self.unsynced.reached(self.log.recovery_point(), wake);
            }
        }
    }

    /// Where an append stands that is to be acknowledged.
    pub fn standing(&self, awaited: &Awaited) -> Standing {
        let role = self.role.load();
        let Some(leader) = role.leader().filter(|leader| leader.has_led_since(awaited.leader_epoch)) else {
            return Standing::NotLeader;
        };
        let committed = !awaited.committed || self.has_committed(awaited.end_offset);
        if committed && (!awaited.durable || self.is_durable(awaited.end_offset)) {
            // Other replicas than those that were asked for have it when they are too few (Kafka's `Partition`).
            let enough = !awaited.committed || leader.has_enough_in_sync();
            if enough { Standing::Reached } else { Standing::TooFewInSync }
        } else if self.closed.load(Ordering::Acquire) {
            Standing::NotLeader
        } else if self.log.is_offline() {
            Standing::Offline
        } else {
            Standing::Waiting
        }
    }

    /// How many requests wait for an append to be committed, and how many for it to be durable.
    pub fn unacknowledged(&self) -> (usize, usize) {
        (self.uncommitted.len(), self.unsynced.len())
    }

    /// Notes that a sync is wanted; false when one is asked for already that will cover what is in the log now.
    pub(crate) fn want_sync(&self) -> bool {
        !self.sync_wanted.swap(true, Ordering::AcqRel)
    }

    /// Syncs the log and commits what that commits; requests that waited for it are woken, also when it fails for good.
    ///
    /// # Errors
    /// As [`pybroker_storage::Log::flush`]; the log is then offline, unless the error is [`LogError::Exhausted`]: then those
    /// who wait go on waiting for another try.
    pub fn sync(&self, wake: &mut dyn FnMut(Waiter)) -> Result<(), LogError> {
        // Before the sync: what is appended from here on asks for another. A swap, so that it sees what those appended who
        // found the wish standing.
        self.sync_wanted.swap(false, Ordering::AcqRel);
        if let Err(error) = self.log.flush() {
            if !error.is_exhausted() {
                self.wake_unacknowledged(wake);
            }
            return Err(error);
        }
        self.maybe_advance_high_watermark(None, wake);
        self.unsynced.reached(self.log.recovery_point(), wake);
        Ok(())
    }

    /// Wakes those whose appends will not be acknowledged, or whose sync will not be tried again.
    pub(crate) fn wake_unacknowledged(&self, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.wake_all(wake);
        self.unsynced.wake_all(wake);
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
