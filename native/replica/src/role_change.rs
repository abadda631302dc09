//! How a partition's role changes: fenced first, swapped then, and the requests that waited on the old one are woken last.
//!
//! A change that [`TRANSITIONS`](super::TRANSITIONS) does not list, or that meets an error, changes nothing.

use std::sync::Arc;

use super::ids::{LeaderEpoch, Offset};
use super::leader::{Leader, Leadership};
use super::partition::Partition;
use super::role::{Following, Role, RoleKind, RoleRefused};
use super::waiting::Waiter;
use pybroker_storage::{LogError, RepairedEpochs};

/// Why a role was not changed.
#[derive(Debug, thiserror::Error)]
pub enum NotBecome {
    /// The change is none.
    #[error(transparent)]
    Refused(RoleRefused),
    /// The log could not be made ready for it.
    #[error(transparent)]
    Log(LogError),
}

impl Partition {
    /// Leads at an epoch; within it, takes other in-sync replicas, or another `min.insync.replicas`. A leader alone commits
    /// everything in its log. Returns the repair of leader epochs that the partition cannot have had.
    ///
    /// # Errors
    /// When the role in force allows it not, or the log's leader epoch file cannot be written; the role is then as it was.
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
                // What a crash left in the page cache is shown only when it cannot be lost any more.
                self.log.flush().map_err(NotBecome::Log)?;
            }
            let leader = Leader::new(leadership, before.leader(), Offset(self.log.log_end_offset()), now_ms);
            self.role.store(Arc::new(Role::Leader(leader)));
        }
        self.maybe_advance_high_watermark(None, wake);
        self.unsynced.reached(self.log.recovery_point(), wake);
        Ok(repaired)
    }

    /// Follows a leader. Nothing of older epochs is appended when this returns; requests that waited get
    /// NOT_LEADER_OR_FOLLOWER. Returns the repair of leader epochs that the partition cannot have had.
    ///
    /// # Errors
    /// When the role in force allows it not, or the epoch is known to have another leader; when the log cannot be read, or
    /// its leader epoch file not be written, where leader epochs are repaired. The role is then as it was.
    pub fn become_follower(
        &self,
        following: Following,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Option<RepairedEpochs>, NotBecome> {
        let epoch = following.leader_epoch;
        self.become_no_leader(Role::Follower(following), epoch, || self.repair_later_epochs(epoch), wake)
    }

    /// Reads the leader epochs from the log again where the last of them is later than the partition's: the file is damaged.
    fn repair_later_epochs(&self, leader_epoch: LeaderEpoch) -> Result<Option<RepairedEpochs>, NotBecome> {
        if self.log.latest_epoch().is_none_or(|latest| latest <= leader_epoch.0) {
            return Ok(None);
        }
        self.log.verify_epochs(leader_epoch.0).map_err(NotBecome::Log)
    }

    /// Serves nobody: the partition has no leader at `leader_epoch`, or this broker is none of its replicas. Requests that
    /// waited get NOT_LEADER_OR_FOLLOWER.
    ///
    /// # Errors
    /// When the role in force is of a newer epoch.
    pub fn become_none(&self, leader_epoch: LeaderEpoch, wake: &mut dyn FnMut(Waiter)) -> Result<(), NotBecome> {
        // Also when it was the leader at this very epoch.
        let fenced_before = LeaderEpoch(leader_epoch.0.saturating_add(1));
        self.become_no_leader(Role::None { leader_epoch }, fenced_before, || Ok(None), wake).map(|_| ())
    }

    /// `prepare` makes the log ready for the role; the role stays as it was where that fails.
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
