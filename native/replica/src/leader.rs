//! The state of the other replicas on the leader: log end offset, time of the last catch-up, and ISR membership.
//!
//! A follower's fetch offset is its log end offset. Only the controller decides which replicas are in sync, through
//! the metadata. When a replica has caught up, the leader requests to add it to the ISR ([`CaughtUp::Joins`]). From
//! then on the high watermark waits for it, so that it has all committed records when the controller adds it (Kafka's
//! maximal ISR).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;

use super::high_watermark::high_watermark;
use super::ids::{BrokerId, LeaderEpoch, Offset};

/// The offset of a replica without a Fetch in this leader epoch.
const UNKNOWN: i64 = -1;

/// The leader's state in the metadata.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub leader_epoch: LeaderEpoch,
    /// Rises with each change of the partition. Requests to the controller for an older partition epoch are
    /// completed.
    pub partition_epoch: i32,
    /// The other replicas.
    pub followers: Vec<FollowerInSync>,
    /// `min.insync.replicas` of the topic.
    pub min_in_sync: usize,
}

/// Another replica, and whether it is in the ISR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerInSync {
    pub id: BrokerId,
    pub in_sync: bool,
}

impl Leadership {
    /// Returns the leadership of a single replica.
    pub fn alone(leader_epoch: i32) -> Self {
        Self { leader_epoch: LeaderEpoch(leader_epoch), partition_epoch: 0, followers: Vec::new(), min_in_sync: 1 }
    }
}

/// The state of a leader.
#[derive(Debug)]
pub struct Leader {
    leader_epoch: LeaderEpoch,
    partition_epoch: i32,
    /// The log end offset at the start of the leader epoch. A replica must have all records below it to join the ISR.
    epoch_start: i64,
    /// The first epoch of this broker's uninterrupted leadership: all its appends from then on are still in the log.
    leads_since: LeaderEpoch,
    followers: Vec<Follower>,
    /// Number of in-sync replicas, including this one.
    in_sync: usize,
    min_in_sync: usize,
}

/// Another replica. Its position is shared by the roles of one leader epoch.
#[derive(Debug)]
struct Follower {
    id: BrokerId,
    in_sync: bool,
    position: Arc<Position>,
}

#[derive(Debug)]
struct Position {
    /// The replica's log end offset from its last Fetch. Read without the lock.
    log_end_offset: AtomicI64,
    /// Its log start offset. Read without the lock.
    log_start_offset: AtomicI64,
    /// Whether its join of the ISR is requested. It counts as in sync until the request is completed.
    joining: AtomicBool,
    /// Whether it has caught up recently. The high watermark waits for it; otherwise it could stay behind the high
    /// watermark forever (Kafka's `shouldWaitForReplicaToJoinIsr`). Cleared when it falls behind or becomes
    /// ineligible for the ISR.
    keeps_up: AtomicBool,
    keeping_up: Mutex<KeepingUp>,
}

/// Kafka's rule for the time of a replica's last catch-up (`Replica.updateFetchStateOrThrow`).
#[derive(Clone, Copy, Debug)]
struct KeepingUp {
    caught_up_ms: Option<i64>,
    /// The time of the last Fetch, and the leader's log end offset at that time.
    fetched_ms: i64,
    leader_end_offset: i64,
}

/// The state of another replica, for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    pub id: BrokerId,
    /// Log end offset; -1 before its first Fetch in this leader epoch.
    pub log_end_offset: i64,
    /// Time of its last catch-up, ms since 1970; `None` if it has not caught up in this leader epoch.
    pub caught_up_ms: Option<i64>,
    pub in_sync: bool,
    /// Log start offset; -1 before its first Fetch.
    pub log_start_offset: i64,
}

/// A follower's position, from its Fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerPosition {
    pub replica: BrokerId,
    /// The broker epoch of the follower's registration (KIP-903); -1 if the Fetch has none.
    pub broker_epoch: i64,
    /// The follower's leader epoch. A position of an older epoch is invalid, since the follower may have truncated
    /// its log.
    pub leader_epoch: LeaderEpoch,
    pub log_end_offset: i64,
    pub log_start_offset: i64,
    pub eligible: Eligibility,
}

/// Whether a broker's replicas may be in the ISR: the broker is neither fenced nor shutting down. The high watermark
/// does not wait for ineligible replicas outside of the ISR (Kafka's `isReplicaIsrEligible`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// There is no metadata yet. The replicas are eligible.
    Unknown,
    /// The replicas are not eligible.
    None,
    /// The replicas are eligible, and the broker is registered with this epoch.
    At(i64),
}

impl Eligibility {
    /// Returns whether its replicas may be in the ISR.
    pub fn allows(self) -> bool {
        self != Self::None
    }

    /// Returns whether a Fetch with this broker epoch is from an earlier process of the broker. Only the registered
    /// epoch is trusted: any client can send an epoch in a Fetch.
    fn is_past(self, broker_epoch: i64) -> bool {
        matches!(self, Self::At(registered) if (0..registered).contains(&broker_epoch))
    }
}

/// The effect of a follower's Fetch on the ISR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// None: the replica is in sync, its join is requested already, or it is behind.
    NoNews,
    /// It has all committed records: request the controller to add it to the ISR.
    Joins {
        /// The partition epoch of the request. A newer one completes the request.
        partition_epoch: i32,
    },
}

/// Why a follower's position was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionRefused {
    /// This broker is not the leader, or has another leader epoch than the follower.
    NotLeader,
    /// The follower is no replica of the partition.
    NotAReplica,
    /// A later process of the follower's broker is registered.
    StaleBroker,
}

impl Position {
    fn unknown(caught_up_ms: Option<i64>) -> Self {
        let keeping_up = KeepingUp { caught_up_ms, fetched_ms: 0, leader_end_offset: i64::MAX };
        Self {
            log_end_offset: AtomicI64::new(UNKNOWN),
            log_start_offset: AtomicI64::new(UNKNOWN),
            joining: AtomicBool::new(false),
            keeps_up: AtomicBool::new(false),
            keeping_up: Mutex::new(keeping_up),
        }
    }

    fn update(
        &self,
        position: &FollowerPosition,
        Offset(leader_end_offset): Offset,
        now_ms: i64,
    ) -> Result<(), PositionRefused> {
        if position.eligible.is_past(position.broker_epoch) {
            return Err(PositionRefused::StaleBroker);
        }
        let log_end_offset = position.log_end_offset;
        let mut state = self.keeping_up.lock();
        let caught_up = if log_end_offset >= leader_end_offset {
            Some(now_ms)
        } else if log_end_offset >= state.leader_end_offset {
            // It has all records that the leader had at the follower's previous Fetch.
            Some(state.fetched_ms)
        } else {
            None
        };
        state.caught_up_ms = state.caught_up_ms.max(caught_up);
        (state.fetched_ms, state.leader_end_offset) = (now_ms, leader_end_offset);
        let eligible = position.eligible.allows();
        if caught_up.is_some() || !eligible {
            self.keeps_up.store(eligible, Ordering::Release);
        }
        self.log_start_offset.store(position.log_start_offset, Ordering::Release);
        self.log_end_offset.store(log_end_offset, Ordering::Release);
        Ok(())
    }

    /// Stops counting the replica for the high watermark until it catches up again, unless it is in the ISR. Its
    /// earlier position does not count as caught up, because its log may have failed since then.
    fn stop_counting(&self) {
        let mut state = self.keeping_up.lock();
        state.leader_end_offset = i64::MAX;
        self.joining.store(false, Ordering::Release);
        self.keeps_up.store(false, Ordering::Release);
    }

    fn end_offset(&self) -> i64 {
        self.log_end_offset.load(Ordering::Acquire)
    }
}

impl Follower {
    /// Returns whether the replica may join the ISR, by Kafka's rule: it has all records below `required`, the larger
    /// of the high watermark and the start of the leader epoch.
    fn may_join(&self, required: i64) -> bool {
        !self.in_sync && self.position.end_offset() >= required
    }

    /// Returns whether the high watermark waits for the replica.
    fn counts(&self) -> bool {
        self.in_sync || self.position.joining.load(Ordering::Acquire) || self.position.keeps_up.load(Ordering::Acquire)
    }
}

impl Leader {
    /// Creates the leader's state from the metadata; `before` is the previous leader state. Within an epoch,
    /// positions are kept. In a new epoch, positions are unknown, and the in-sync replicas count as caught up at
    /// `now_ms`. `end_offset` is the log end.
    pub(crate) fn new(leadership: Leadership, before: Option<&Leader>, end_offset: Offset, now_ms: i64) -> Self {
        let Leadership { leader_epoch, partition_epoch, followers, min_in_sync } = leadership;
        let leads_since = before.map_or(leader_epoch, |before| before.leads_since);
        let same = before.filter(|before| before.leader_epoch == leader_epoch);
        let epoch_start = same.map_or(end_offset.0, |before| before.epoch_start);
        let is_decided = same.is_some_and(|before| before.partition_epoch < partition_epoch);
        let follower = |FollowerInSync { id, in_sync }| {
            let known = same.and_then(|before| before.followers.iter().find(|follower| follower.id == id));
            let position = known.map(|follower| Arc::clone(&follower.position));
            let position = position.unwrap_or_else(|| Arc::new(Position::unknown(in_sync.then_some(now_ms))));
            if is_decided {
                position.joining.store(false, Ordering::Release);
            }
            if !in_sync && known.is_some_and(|before| before.in_sync) {
                position.stop_counting();
            }
            Follower { id, in_sync, position }
        };
        let followers: Vec<_> = followers.into_iter().map(follower).collect();
        let in_sync = 1 + followers.iter().filter(|follower| follower.in_sync).count();
        Self { leader_epoch, partition_epoch, epoch_start, leads_since, followers, in_sync, min_in_sync }
    }

    /// Returns the leader epoch.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// Returns whether this broker has been the leader without interruption since `leader_epoch`.
    pub fn has_led_since(&self, leader_epoch: LeaderEpoch) -> bool {
        self.leads_since <= leader_epoch
    }

    /// Returns the log end at the start of this leader epoch. Older leaders may have committed records up to it.
    pub fn epoch_start(&self) -> i64 {
        self.epoch_start
    }

    /// Returns whether there are no other replicas.
    pub fn is_alone(&self) -> bool {
        self.followers.is_empty()
    }

    /// Returns the number of in-sync replicas, including this one.
    pub fn in_sync(&self) -> usize {
        self.in_sync
    }

    /// Returns the number of in-sync replicas that `acks=all` requires: `min.insync.replicas`, at most the number of
    /// replicas (Kafka's `effectiveMinIsr`).
    pub fn min_in_sync(&self) -> usize {
        self.min_in_sync.min(self.followers.len() + 1)
    }

    /// Returns whether enough replicas are in sync for `acks=all`. With fewer, no record is committed, since an
    /// eligible leader without the record may be elected (KIP-966).
    pub fn has_enough_in_sync(&self) -> bool {
        self.in_sync >= self.min_in_sync()
    }

    /// Returns the states of the other replicas.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaState> {
        self.followers.iter().map(|follower| ReplicaState {
            id: follower.id,
            log_end_offset: follower.position.end_offset(),
            caught_up_ms: follower.position.keeping_up.lock().caught_up_ms,
            in_sync: follower.in_sync,
            log_start_offset: follower.position.log_start_offset.load(Ordering::Acquire),
        })
    }

    /// Returns whether a broker has one of the other replicas.
    pub fn has_replica(&self, id: BrokerId) -> bool {
        self.followers.iter().any(|follower| follower.id == id)
    }

    /// Returns whether one of the other replicas is in sync.
    pub fn has_in_sync(&self, id: BrokerId) -> bool {
        self.followers.iter().any(|follower| follower.id == id && follower.in_sync)
    }

    /// Returns the log start offset of another replica; -1 before its first Fetch.
    pub fn log_start_of(&self, id: BrokerId) -> i64 {
        let requested = self.followers.iter().find(|follower| follower.id == id);
        requested.map_or(UNKNOWN, |follower| follower.position.log_start_offset.load(Ordering::Acquire))
    }

    /// Returns the in-sync replicas that have not caught up with the log end `own` for longer than `max_lag_ms`. The
    /// high watermark stops waiting for other replicas that lag or are not in `alive`.
    pub fn lagging(&self, own: Offset, now_ms: i64, max_lag_ms: i64, alive: &[BrokerId]) -> Vec<BrokerId> {
        let lags = |follower: &&Follower| {
            let position = &*follower.position;
            let caught_up_ms = position.keeping_up.lock().caught_up_ms;
            let is_late = caught_up_ms.is_none_or(|at| now_ms.saturating_sub(at) > max_lag_ms);
            let lags = is_late && position.end_offset() != own.0;
            if lags || !alive.contains(&follower.id) {
                position.keeps_up.store(false, Ordering::Release);
            }
            lags && follower.in_sync
        };
        self.followers.iter().filter(lags).map(|follower| follower.id).collect()
    }

    /// Returns Kafka's low watermark: the smallest log start offset of this replica (`own`) and the others in
    /// `alive`.
    pub fn low_watermark(&self, own: i64, alive: &[BrokerId]) -> i64 {
        let living = self.followers.iter().filter(|follower| alive.contains(&follower.id));
        living.map(|follower| follower.position.log_start_offset.load(Ordering::Acquire)).fold(own, i64::min)
    }

    /// Ends the join of replicas that the controller did not add to the ISR.
    pub(crate) fn stop_joining(&self, replicas: &[BrokerId]) {
        for follower in self.followers.iter().filter(|follower| replicas.contains(&follower.id)) {
            follower.position.stop_counting();
        }
    }

    /// Returns whether to request that a replica joins the ISR. If so, the high watermark waits for it from this call
    /// on. The caller must prevent the high watermark from rising meanwhile.
    pub(crate) fn maybe_join(&self, replica: BrokerId, high_watermark: i64) -> CaughtUp {
        let Some(follower) = self.followers.iter().find(|follower| follower.id == replica) else {
            return CaughtUp::NoNews;
        };
        let joins = follower.may_join(high_watermark.max(self.epoch_start));
        if joins && !follower.position.joining.swap(true, Ordering::AcqRel) {
            CaughtUp::Joins { partition_epoch: self.partition_epoch }
        } else {
            CaughtUp::NoNews
        }
    }

    /// Returns whether a call of [`Leader::maybe_join`], which needs a lock, may have an effect.
    pub(crate) fn might_join(&self, replica: BrokerId, high_watermark: i64) -> bool {
        let requested = self.followers.iter().find(|follower| follower.id == replica);
        requested.is_some_and(|follower| {
            !follower.position.joining.load(Ordering::Acquire)
                && follower.may_join(high_watermark.max(self.epoch_start))
        })
    }

    /// Returns the high watermark for a leader with the log end `own`.
    pub(crate) fn high_watermark(&self, own: i64) -> i64 {
        let counting = self.followers.iter().filter(|follower| follower.counts());
        high_watermark(own, counting.map(|follower| follower.position.end_offset()))
    }

    /// Updates a replica's position; `own_end_offset` is the leader's log end.
    pub(crate) fn update_position(
        &self,
        position: FollowerPosition,
        own_end_offset: Offset,
        now_ms: i64,
    ) -> Result<(), PositionRefused> {
        if position.leader_epoch != self.leader_epoch {
            return Err(PositionRefused::NotLeader);
        }
        let follower = self.followers.iter().find(|follower| follower.id == position.replica);
        follower.ok_or(PositionRefused::NotAReplica)?.position.update(&position, own_end_offset, now_ms)
    }
}

#[cfg(test)]
#[path = "leader_tests.rs"]
mod tests;
