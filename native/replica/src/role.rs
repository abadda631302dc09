//! The role of this broker for a partition, and the allowed role changes.
//!
//! A leader epoch has at most one leader (KIP-101). So a broker that is leader in an epoch is never follower in the
//! same epoch, and vice versa. [`TRANSITIONS`] lists the allowed changes. Any other change is rejected and has no
//! effect.

use super::ids::{BrokerId, LeaderEpoch};
use super::leader::Leader;

/// The role of this broker for a partition, as last set by the control plane. Replaced as a whole.
#[derive(Debug)]
pub enum Role {
    /// Neither leader nor follower: the partition has no leader, or this broker is no replica.
    None { leader_epoch: LeaderEpoch },
    /// It fetches from the leader.
    Follower(Following),
    /// It accepts appends and advances the high watermark.
    Leader(Leader),
}

/// The leader of a follower, and the leader epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
}

/// The kind of a role, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleKind {
    None,
    Follower,
    Leader,
}

impl std::fmt::Display for RoleKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::None => "none",
            Self::Follower => "follower",
            Self::Leader => "leader",
        })
    }
}

/// The epoch of a role change, compared to the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochStep {
    Same,
    Newer,
}

/// The allowed changes: current role, new epoch, new role. Within an epoch a broker may lose its role when it is
/// removed from the replicas, and become follower when it is added again.
pub const TRANSITIONS: [(RoleKind, EpochStep, RoleKind); 15] = [
    (RoleKind::None, EpochStep::Same, RoleKind::None),
    (RoleKind::None, EpochStep::Same, RoleKind::Follower),
    (RoleKind::Follower, EpochStep::Same, RoleKind::None),
    (RoleKind::Follower, EpochStep::Same, RoleKind::Follower),
    (RoleKind::Leader, EpochStep::Same, RoleKind::None),
    (RoleKind::Leader, EpochStep::Same, RoleKind::Leader),
    (RoleKind::None, EpochStep::Newer, RoleKind::None),
    (RoleKind::None, EpochStep::Newer, RoleKind::Follower),
    (RoleKind::None, EpochStep::Newer, RoleKind::Leader),
    (RoleKind::Follower, EpochStep::Newer, RoleKind::None),
    (RoleKind::Follower, EpochStep::Newer, RoleKind::Follower),
    (RoleKind::Follower, EpochStep::Newer, RoleKind::Leader),
    (RoleKind::Leader, EpochStep::Newer, RoleKind::None),
    (RoleKind::Leader, EpochStep::Newer, RoleKind::Follower),
    (RoleKind::Leader, EpochStep::Newer, RoleKind::Leader),
];

/// Why a role change was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleRefused {
    /// The change is for an older epoch.
    #[error("leader epoch {} is over: {} is in force", requested.0, in_force.0)]
    Stale { requested: LeaderEpoch, in_force: LeaderEpoch },
    /// [`TRANSITIONS`] does not contain the change.
    #[error("the role at leader epoch {} is {from}: within the epoch it cannot become {to}", epoch.0)]
    Unlisted { from: RoleKind, to: RoleKind, epoch: LeaderEpoch },
    /// The epoch has another leader already.
    #[error("leader epoch {} has leader {}, not {}", epoch.0, known.0, named.0)]
    OtherLeader { epoch: LeaderEpoch, known: BrokerId, named: BrokerId },
}

impl Role {
    /// Returns the role's kind.
    pub fn kind(&self) -> RoleKind {
        match self {
            Self::None { .. } => RoleKind::None,
            Self::Follower(_) => RoleKind::Follower,
            Self::Leader(_) => RoleKind::Leader,
        }
    }

    /// Returns the leader epoch of the role.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        match self {
            Self::None { leader_epoch } => *leader_epoch,
            Self::Follower(following) => following.leader_epoch,
            Self::Leader(leader) => leader.leader_epoch(),
        }
    }

    /// Returns the leader's state, if this broker is the leader.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Self::Leader(leader) => Some(leader),
            Self::None { .. } | Self::Follower(_) => None,
        }
    }

    /// Checks a role change by [`TRANSITIONS`].
    pub(crate) fn check(&self, to: RoleKind, requested: LeaderEpoch) -> Result<(), RoleRefused> {
        let (from, in_force) = (self.kind(), self.leader_epoch());
        if requested < in_force {
            return Err(RoleRefused::Stale { requested, in_force });
        }
        let step = if requested == in_force { EpochStep::Same } else { EpochStep::Newer };
        let listed = TRANSITIONS.contains(&(from, step, to));
        if listed { Ok(()) } else { Err(RoleRefused::Unlisted { from, to, epoch: requested }) }
    }

    /// Checks a change to follower. Within an epoch, the leader must stay the same.
    pub(crate) fn check_follower(&self, named: Following) -> Result<(), RoleRefused> {
        self.check(RoleKind::Follower, named.leader_epoch)?;
        match self {
            Self::Follower(known) if known.leader_epoch == named.leader_epoch && known.leader != named.leader => {
                let (known, named, epoch) = (known.leader, named.leader, named.leader_epoch);
                Err(RoleRefused::OtherLeader { epoch, known, named })
            }
            Self::None { .. } | Self::Follower(_) | Self::Leader(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::Offset;
    use super::super::leader::Leadership;
    use super::*;

    const KINDS: [RoleKind; 3] = [RoleKind::None, RoleKind::Follower, RoleKind::Leader];

    fn role(kind: RoleKind, epoch: i32) -> Role {
        let leader_epoch = LeaderEpoch(epoch);
        match kind {
            RoleKind::None => Role::None { leader_epoch },
            RoleKind::Follower => Role::Follower(Following { leader: BrokerId(2), leader_epoch }),
            RoleKind::Leader => Role::Leader(Leader::new(Leadership::alone(epoch), None, Offset(0), 0)),
        }
    }

    #[test]
    fn what_the_table_lists_is_allowed_and_all_else_is_refused() {
        let mut allowed = Vec::new();
        for from in KINDS {
            for to in KINDS {
                let before = role(from, 7);
                let stale = Err(RoleRefused::Stale { requested: LeaderEpoch(6), in_force: LeaderEpoch(7) });
                assert_eq!(before.check(to, LeaderEpoch(6)), stale);
                for (step, epoch) in [(EpochStep::Same, LeaderEpoch(7)), (EpochStep::Newer, LeaderEpoch(8))] {
                    match before.check(to, epoch) {
                        Ok(()) => allowed.push((from, step, to)),
                        Err(refused) => assert_eq!(refused, RoleRefused::Unlisted { from, to, epoch }),
                    }
                }
            }
        }
        assert_eq!(allowed.len(), TRANSITIONS.len());
        assert!(allowed.iter().all(|change| TRANSITIONS.contains(change)));
    }

    #[test]
    fn an_epoch_has_one_leader() {
        for (from, to) in [(RoleKind::Leader, RoleKind::Follower), (RoleKind::Follower, RoleKind::Leader)] {
            assert!(role(from, 7).check(to, LeaderEpoch(7)).is_err());
            assert!(role(from, 7).check(to, LeaderEpoch(8)).is_ok());
        }
        let named = |leader, epoch| Following { leader: BrokerId(leader), leader_epoch: LeaderEpoch(epoch) };
        let follower = role(RoleKind::Follower, 7);
        assert_eq!(follower.check_follower(named(2, 7)), Ok(()));
        assert_eq!(follower.check_follower(named(3, 8)), Ok(()));
        let refused = follower.check_follower(named(3, 7)).unwrap_err();
        assert_eq!(refused.to_string(), "leader epoch 7 has leader 2, not 3");
    }
}
