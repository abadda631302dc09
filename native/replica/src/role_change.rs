//! Role changes of a partition: fence the old role, replace it, then wake the requests that waited for it.
//!
//! A change that [`TRANSITIONS`](super::TRANSITIONS) does not list, or that fails, has no effect.

use std::sync::Arc;

use super::ids::{LeaderEpoch, Offset};
use super::leader::{Leader, Leadership};
use super::partition::Partition;
use super::role::{Following, Role, RoleKind, RoleRefused};
use super::waiting::Waiter;
use pybroker_storage::{LogError, RepairedEpochs};

/// Why a role change failed.
#[derive(Debug, thiserror::Error)]
pub enum NotBecome {
    /// The change is not allowed.
    #[error(transparent)]
    Refused(RoleRefused),
    /// The log could not be prepared for the new role.
    #[error(transparent)]
    Log(LogError),
}

impl Partition {
    /// Makes this broker leader in an epoch. Within an epoch, updates the in-sync replicas or `min.insync.replicas`.
    /// The leader of a single replica commits its whole log. Returns the repair of impossible leader epochs, if there
    /// was one.
    ///
    /// # Errors
    /// When the current role does not allow the change, or the leader epoch file cannot be written. The role is then
    /// unchanged.
    pub fn become_leader(
        &self,
        leadership: Leadership,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Option<RepairedEpochs>, NotBecome> {
        let repaired;
        {
            let _changing = self.role_change.lock();
            let before = self.role.load();
            before.check(RoleKind::Leader, leadership.leader_epoch).map_err(NotBecome::Refused)?;
            repaired = self.repair_later_epochs(leadership.leader_epoch)?;
            self.log.begin_epoch(leadership.leader_epoch.0).map_err(NotBecome::Log)?;
            if self.log.is_synced_in_groups() {
                // Records that a crash left only in the page cache are not visible before they are durable.
                self.log.flush().map_err(NotBecome::Log)?;
            }
            let leader = Leader::new(leadership, before.leader(), Offset(self.log.log_end_offset()), now_ms);
            self.role.store(Arc::new(Role::Leader(leader)));
        }
        self.maybe_advance_high_watermark(None, wake);
        self.unsynced.reached(self.log.recovery_point(), wake);
        Ok(repaired)
    }

    /// Makes this broker follower of a leader. No append of an older epoch succeeds after this returns. Waiting
    /// requests fail with NOT_LEADER_OR_FOLLOWER. Returns the repair of impossible leader epochs, if there was one.
    ///
    /// # Errors
    /// When the current role does not allow the change, or the epoch has another leader. When leader epochs must be
    /// repaired, and the log cannot be read or the leader epoch file cannot be written. The role is then unchanged.
    pub fn become_follower(
        &self,
        following: Following,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Option<RepairedEpochs>, NotBecome> {
        let epoch = following.leader_epoch;
        self.become_no_leader(Role::Follower(following), epoch, || self.repair_later_epochs(epoch), wake)
    }

    /// Rebuilds the leader epochs from the log if the last one is later than the partition's epoch: the file is
    /// damaged.
    fn repair_later_epochs(&self, leader_epoch: LeaderEpoch) -> Result<Option<RepairedEpochs>, NotBecome> {
        if self.log.latest_epoch().is_none_or(|latest| latest <= leader_epoch.0) {
            return Ok(None);
        }
        self.log.verify_epochs(leader_epoch.0).map_err(NotBecome::Log)
    }

    /// Removes the role: the partition has no leader in `leader_epoch`, or this broker is no replica. Waiting
    /// requests fail with NOT_LEADER_OR_FOLLOWER.
    ///
    /// # Errors
    /// When the current role has a later epoch.
    pub fn become_none(&self, leader_epoch: LeaderEpoch, wake: &mut dyn FnMut(Waiter)) -> Result<(), NotBecome> {
        // This also fences the leader of this very epoch.
        let fenced_before = LeaderEpoch(leader_epoch.0.saturating_add(1));
        self.become_no_leader(Role::None { leader_epoch }, fenced_before, || Ok(None), wake).map(|_| ())
    }

    /// Changes to a role other than leader. `prepare` prepares the log; if it fails, the role is unchanged.
    fn become_no_leader(
        &self,
        role: Role,
        fenced_before: LeaderEpoch,
        prepare: impl FnOnce() -> Result<Option<RepairedEpochs>, NotBecome>,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Option<RepairedEpochs>, NotBecome> {
        let repaired;
        {
            let _changing = self.role_change.lock();
            let before = self.role.load();
            let checked = match &role {
                Role::Follower(following) => before.check_follower(*following),
                Role::None { .. } | Role::Leader(_) => before.check(role.kind(), role.leader_epoch()),
            };
            checked.map_err(NotBecome::Refused)?;
            repaired = prepare()?;
            self.log.fence_leaders_before(fenced_before.0);
            self.role.store(Arc::new(role));
        }
        self.wake_all(wake);
        Ok(repaired)
    }
}
