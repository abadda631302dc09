//! What this broker is to a partition, and which role may follow which.
//!
//! A leader epoch has one leader or none (KIP-101), so a broker that leads at an epoch never follows at it, and one that
//! follows never leads at it. [`TRANSITIONS`] lists what may happen; all else is refused and changes nothing.

use super::ids::{BrokerId, LeaderEpoch};
use super::leader::Leader;

/// What this broker is to a partition, as the control plane last said. Swapped whole.
#[derive(Debug)]
pub enum Role {
    /// It serves nobody: the partition has no leader, or this broker is none of its replicas.
    None { leader_epoch: LeaderEpoch },
    /// It fetches from the leader.
    Follower(Following),
    /// It takes appends and decides what is committed.
    Leader(Leader),
}

/// Whom a follower follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    pub leader: BrokerId,
    pub leader_epoch: LeaderEpoch,
}

/// A role without what belongs to it.
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

/// How the epoch of a change of role stands to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochStep {
    Same,
    Newer,
}

/// The changes that exist: the role before, the epoch that comes, the role after. A broker may lose its role within an
/// epoch, when it is no replica any more, and follow again within it, when it becomes one anew.
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

/// Why a role was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleRefused {
    /// The change belongs to an epoch that is over.
    #[error("leader epoch {} is over: {} is in force", asked.0, in_force.0)]
    Stale { asked: LeaderEpoch, in_force: LeaderEpoch },
    /// [`TRANSITIONS`] has no such change.
    #[error("the role at leader epoch {} is {from}: within the epoch it cannot become {to}", epoch.0)]
    Unlisted { from: RoleKind, to: RoleKind, epoch: LeaderEpoch },
    /// An epoch has one leader.
    #[error("leader epoch {} has leader {}, not {}", epoch.0, known.0, named.0)]
    OtherLeader { epoch: LeaderEpoch, known: BrokerId, named: BrokerId },
}

impl Role {
    /// The role's name.
    pub fn kind(&self) -> RoleKind {
        match self {
            Self::None { .. } => RoleKind::None,
            Self::Follower(_) => RoleKind::Follower,
            Self::Leader(_) => RoleKind::Leader,
        }
    }

    /// The epoch that the role belongs to.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        match self {
            Self::None { leader_epoch } => *leader_epoch,
            Self::Follower(following) => following.leader_epoch,
            Self::Leader(leader) => leader.leader_epoch(),
        }
    }

    /// The leader's part, if this broker leads.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            Self::Leader(leader) => Some(leader),
            Self::None { .. } | Self::Follower(_) => None,
        }
    }

    /// Checks a change of role by [`TRANSITIONS`].
    pub(crate) fn check(&self, to: RoleKind, asked: LeaderEpoch) -> Result<(), RoleRefused> {
        let (from, in_force) = (self.kind(), self.leader_epoch());
        if asked < in_force {
            return Err(RoleRefused::Stale { asked, in_force });
        }
        let step = if asked == in_force { EpochStep::Same } else { EpochStep::Newer };
        let listed = TRANSITIONS.contains(&(from, step, to));
        if listed { Ok(()) } else { Err(RoleRefused::Unlisted { from, to, epoch: asked }) }
    }

    /// Checks a change to a follower, whose leader has to be the one that the epoch is known to have.
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
                let stale = Err(RoleRefused::Stale { asked: LeaderEpoch(6), in_force: LeaderEpoch(7) });
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
