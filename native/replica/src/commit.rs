//! The progress of appended records: committed by the high watermark, durable by a sync, and the requests that wait
//! for either.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::acknowledgement::{Awaited, Standing, WaitingProduce};
use super::ids::{BrokerId, LeaderEpoch, Offset};
use super::leader::{CaughtUp, FollowerPosition, Leader, PositionRefused};
use super::partition::Partition;
use super::waiting::Waiter;
use pybroker_storage::{Appended, LogError};

/// The high watermark before and after an attempt to advance it. Both are equal if this thread did not move it.
struct Advance {
    before: i64,
    reached: i64,
}

impl Partition {
    /// Returns whether all records below `end_offset` are committed: below the high watermark.
    pub fn has_committed(&self, end_offset: i64) -> bool {
        self.high_watermark() >= end_offset
    }

    /// Returns whether all records below `end_offset` are synced to the device.
    pub fn is_durable(&self, end_offset: i64) -> bool {
        self.log.recovery_point() >= end_offset
    }

    /// Returns whether all records below `end_offset` are committed, and durable if the log's flush settings require
    /// it.
    pub fn has_completed(&self, end_offset: i64) -> bool {
        self.has_committed(end_offset) && (self.is_durable(end_offset) || !self.log.is_sync_due())
    }

    /// [`Partition::has_completed`] for an append of this broker in `leader_epoch`. After a leader change, other
    /// records may be committed at these offsets.
    pub fn has_completed_since(&self, leader_epoch: LeaderEpoch, end_offset: i64) -> bool {
        // The order matters: a broker that is still the leader has not lost its earlier appends.
        let completed = self.has_completed(end_offset);
        completed && self.role.load().leader().is_some_and(|leader| leader.has_led_since(leader_epoch))
    }

    /// Updates a follower's position from its Fetch. Advances the high watermark, and wakes the requests that this
    /// satisfies. Returns whether to request the controller to add the follower to the ISR. The request is returned
    /// once, until [`Partition::stop_joining`] or a newer partition epoch completes it.
    ///
    /// # Errors
    /// See [`PositionRefused`]. Nothing has changed then.
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

    /// Ends the join of replicas that the controller did not add to the ISR. The high watermark does not wait for
    /// them any more.
    pub fn stop_joining(&self, replicas: &[BrokerId], wake: &mut dyn FnMut(Waiter)) {
        if let Some(leader) = self.role.load().leader() {
            leader.stop_joining(replicas);
        }
        self.maybe_advance_high_watermark(None, wake);
    }

    /// Returns the leader epoch and the in-sync replicas that have lagged for longer than `max_lag_ms`; `None` if
    /// this broker is not the leader. The high watermark stops waiting for other replicas that lag or are not
    /// `alive`.
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

    /// Returns the smallest log start offset of this replica and the `alive` others: the low watermark.
    pub fn low_watermark(&self, alive: &[BrokerId]) -> i64 {
        let own = self.log.log_start_offset();
        self.role.load().leader().map_or(own, |leader| leader.low_watermark(own, alive))
    }

    /// Sets a follower's high watermark to its leader's, bounded by the log end. It only decreases when the log is
    /// truncated.
    pub(crate) fn follow_high_watermark(&self, leaders: i64, wake: &mut dyn FnMut(Waiter)) {
        let reached = leaders.min(self.log.log_end_offset());
        let before = self.high_watermark.fetch_max(reached, Ordering::AcqRel);
        self.show(&Advance { before, reached: before.max(reached) }, None, wake);
    }

    /// Advances the high watermark to the position of the in-sync replicas, if this broker is the leader. Never
    /// lowers it. Wakes the requests that this satisfies. `appended` is the caller's own append.
    pub(crate) fn maybe_advance_high_watermark(&self, appended: Option<&Appended>, wake: &mut dyn FnMut(Waiter)) {
        if let Some(advance) = self.advance() {
            self.show(&advance, appended, wake);
        }
    }

    /// Publishes an advance of the high watermark to readers and waiting requests.
    fn show(&self, advance: &Advance, appended: Option<&Appended>, wake: &mut dyn FnMut(Waiter)) {
        let &Advance { before, reached } = advance;
        self.log.complete_transactions(reached);
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

    /// Under `flush=group` only synced records of this replica count: no consumer may read records that a crash can
    /// remove (docs/adr/0012).
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

    /// Returns the missing conditions for the acknowledgement of an append in `leader_epoch` that ends at
    /// `end_offset`. With `acks=all` it must be committed, under `flush=group` it must be durable.
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
            // The thread that synced it may not have advanced the high watermark yet. A read after the
            // acknowledgement must find the records.
            self.maybe_advance_high_watermark(None, wake);
        }
        let committed = all && !self.has_committed(end_offset);
        (committed || durable).then_some(Awaited { leader_epoch, end_offset, committed, durable })
    }

    /// Returns the conditions for a coordinator's append that ends at `end_offset`: committed, and durable if a sync
    /// is due.
    pub fn awaited_to_complete(&self, end_offset: i64) -> Awaited {
        self.awaited_to_complete_since(self.role.load().leader_epoch(), end_offset)
    }

    /// [`Partition::awaited_to_complete`] for an append in `leader_epoch`.
    pub(crate) fn awaited_to_complete_since(&self, leader_epoch: LeaderEpoch, end_offset: i64) -> Awaited {
        let durable = !self.is_durable(end_offset) && (self.log.is_synced_in_groups() || self.log.is_sync_due());
        Awaited { leader_epoch, end_offset, committed: true, durable }
    }

    /// Registers a request until the conditions of an append are fulfilled or can no longer be. The request may be
    /// woken at once. The caller requests the sync.
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
        // An event before the registration has not woken the request.
        match self.standing(awaited) {
            Standing::NotLeader | Standing::Offline => self.wake_unacknowledged(wake),
            Standing::Reached | Standing::TooFewInSync | Standing::Waiting => {
                self.uncommitted.reached(self.high_watermark(), wake);
                self.unsynced.reached(self.log.recovery_point(), wake);
            }
        }
    }

    /// Returns the progress of an append that waits for its acknowledgement.
    pub fn standing(&self, awaited: &Awaited) -> Standing {
        let role = self.role.load();
        let Some(leader) = role.leader().filter(|leader| leader.has_led_since(awaited.leader_epoch)) else {
            return Standing::NotLeader;
        };
        let committed = !awaited.committed || self.has_committed(awaited.end_offset);
        if committed && (!awaited.durable || self.is_durable(awaited.end_offset)) {
            // If too few replicas are in sync, the committed append may be on fewer than the required number (Kafka's
            // `Partition`).
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

    /// Returns the numbers of requests that wait for the high watermark and for a sync.
    pub fn unacknowledged(&self) -> (usize, usize) {
        (self.uncommitted.len(), self.unsynced.len())
    }

    /// Requests a sync. Returns false if one is requested already that will cover the current end of the log.
    pub(crate) fn want_sync(&self) -> bool {
        !self.sync_wanted.swap(true, Ordering::AcqRel)
    }

    /// Syncs the log and advances the high watermark. Wakes the requests that wait for the sync, also when it fails
    /// permanently.
    ///
    /// # Errors
    /// As [`pybroker_storage::Log::flush`]. The log is then offline, except after [`LogError::Exhausted`]: waiting
    /// requests then wait for the next attempt.
    pub fn sync(&self, wake: &mut dyn FnMut(Waiter)) -> Result<(), LogError> {
        // Cleared before the sync, so that later appends request another one. As a swap it also synchronizes with the
        // appends that found the flag set.
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

    /// Wakes the requests whose appends will not be acknowledged, or whose sync will not be retried.
    pub(crate) fn wake_unacknowledged(&self, wake: &mut dyn FnMut(Waiter)) {
        self.uncommitted.wake_all(wake);
        self.unsynced.wake_all(wake);
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
