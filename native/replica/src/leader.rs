//! What a leader knows of the other replicas: how far each has the log, since when it keeps up, whether it is in sync.
//!
//! A follower's Fetch says how far it has the log (its fetch offset is its log end offset). Which replicas are in sync is the
//! controller's word, and changes with the metadata alone. A replica that has caught up is asked for to be in sync
//! ([`CaughtUp::Joins`]); from then on the high watermark waits for it as if it were, so that it lacks nothing of what is
//! committed when the controller lets it in (Kafka's maximal ISR).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;

use super::high_watermark::high_watermark;
use super::ids::{BrokerId, LeaderEpoch, Offset};

/// A replica of which nothing is known at this leader epoch.
const UNKNOWN: i64 = -1;

/// What the metadata says to a leader.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub leader_epoch: LeaderEpoch,
    /// Grows with each change of the partition: what was asked of the controller at an older one is decided.
    pub partition_epoch: i32,
    /// The other replicas.
    pub followers: Vec<FollowerInSync>,
    /// `min.insync.replicas` of the topic.
    pub min_in_sync: usize,
}

/// Another replica, and whether the in-sync replicas (ISR) have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerInSync {
    pub id: BrokerId,
    pub in_sync: bool,
}

impl Leadership {
    /// Leadership of the only replica.
    pub fn alone(leader_epoch: i32) -> Self {
        Self { leader_epoch: LeaderEpoch(leader_epoch), partition_epoch: 0, followers: Vec::new(), min_in_sync: 1 }
    }
}

/// A leader's role.
#[derive(Debug)]
pub struct Leader {
    leader_epoch: LeaderEpoch,
    partition_epoch: i32,
    /// Where the log ended when this broker began to lead at the epoch: a replica joins that has all before it.
    epoch_start: i64,
    /// The first epoch since which this broker is the leader without a break: what it appended from then on is still there.
    leads_since: LeaderEpoch,
    followers: Vec<Follower>,
    /// Replicas in sync, this one included.
    in_sync: usize,
    min_in_sync: usize,
}

/// One of the other replicas. Its position is shared by the roles of one leader epoch.
#[derive(Debug)]
struct Follower {
    id: BrokerId,
    in_sync: bool,
    position: Arc<Position>,
}

#[derive(Debug)]
struct Position {
    /// The replica's log end offset as its last Fetch said; read without the lock.
    log_end_offset: AtomicI64,
    /// Where its log starts; read without the lock.
    log_start_offset: AtomicI64,
    /// It is asked for to be in sync, and counts as if it were until that is decided.
    joining: AtomicBool,
    /// It caught up lately: the high watermark waits for it, which could else stay ahead of it for ever
    /// (Kafka's `shouldWaitForReplicaToJoinIsr`). Cleared when it falls behind, or may not be in sync any more.
    keeps_up: AtomicBool,
    keeping_up: Mutex<KeepingUp>,
}

/// Kafka's rule for when a replica had all that the leader had (`Replica.updateFetchStateOrThrow`).
#[derive(Clone, Copy, Debug)]
struct KeepingUp {
    caught_up_ms: Option<i64>,
    /// The last Fetch: when it came, and the leader's log end offset then.
    fetched_ms: i64,
    leader_end_offset: i64,
}

/// Another replica as the leader knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    pub id: BrokerId,
    /// -1 before its first Fetch at this leader epoch.
    pub log_end_offset: i64,
    /// When it last had all that the leader had, ms since 1970; `None` for never at this leader epoch.
    pub caught_up_ms: Option<i64>,
    pub in_sync: bool,
    /// Where its log starts; -1 before its first Fetch.
    pub log_start_offset: i64,
}

/// How far a follower has the log: its Fetch asks for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerPosition {
    pub replica: BrokerId,
    /// The epoch of the broker's registration (KIP-903); -1 where the Fetch does not say.
    pub broker_epoch: i64,
    /// The leader epoch that the follower follows at. What it had at an older one says nothing: it may have cut it off.
    pub leader_epoch: LeaderEpoch,
    pub log_end_offset: i64,
    pub log_start_offset: i64,
    pub eligible: Eligibility,
}

/// Whether the metadata lets a broker's replicas be in sync: those of one that is neither fenced nor stopping. The high
/// watermark waits for no other that is not in sync (Kafka's `isReplicaIsrEligible`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// There is no metadata yet: it does.
    Unknown,
    /// It does not.
    None,
    /// It does, and the broker is registered with this epoch.
    At(i64),
}

impl Eligibility {
    /// Whether its replicas may be in sync.
    pub fn allows(self) -> bool {
        self != Self::None
    }

    /// Whether a Fetch of this broker epoch is of a process that is gone. Only what is registered says so: a number that a
    /// Fetch names may be anybody's.
    fn is_past(self, broker_epoch: i64) -> bool {
        matches!(self, Self::At(registered) if (0..registered).contains(&broker_epoch))
    }
}

/// What a follower's Fetch means for the in-sync replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// Nothing: it is in sync, or asked for, or behind.
    NoNews,
    /// It has all that is committed: the controller is to be asked to let it in.
    Joins {
        /// As of which the high watermark waits for it; a newer one ends that.
        partition_epoch: i32,
    },
}

/// Why a follower's position was not noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionRefused {
    /// This broker does not lead, or not at the follower's leader epoch.
    NotLeader,
    /// The follower is none of the partition's replicas.
    NotAReplica,
    /// A later process of this broker is registered.
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
            // It has what the leader had at its last Fetch.
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

    /// The high watermark waits for the replica no more unless it is in sync, until it catches up again: what it had before
    /// says nothing of that, for its log may have failed since.
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
    /// Kafka's rule for a replica to join: it has what is committed, and all that was there when the epoch began.
    /// `required` is the larger of both ends.
    fn may_join(&self, required: i64) -> bool {
        !self.in_sync && self.position.end_offset() >= required
    }

    /// Whether the high watermark waits for it.
    fn counts(&self) -> bool {
        self.in_sync || self.position.joining.load(Ordering::Acquire) || self.position.keeps_up.load(Ordering::Acquire)
    }
}

impl Leader {
    /// A leader as the metadata says, after the role of `before`. Within an epoch positions are kept; at a new one nothing is
    /// known of a replica, and the in-sync ones have until `now_ms` kept up.
    /// `end_offset` is where the log ends.
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

    /// The epoch at which it leads.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// Whether this broker is the leader without a break since `leader_epoch`.
    pub fn has_led_since(&self, leader_epoch: LeaderEpoch) -> bool {
        self.leads_since <= leader_epoch
    }

    /// The log's end when it began to lead at this epoch: older leaders may have committed up to here.
    pub fn epoch_start(&self) -> i64 {
        self.epoch_start
    }

    /// Whether there is no other replica.
    pub fn is_alone(&self) -> bool {
        self.followers.is_empty()
    }

    /// Replicas in sync, this one included.
    pub fn in_sync(&self) -> usize {
        self.in_sync
    }

    /// How many replicas `acks=all` asks for: `min.insync.replicas` of the topic, and no more than there are replicas (Kafka's
    /// `effectiveMinIsr`).
    pub fn min_in_sync(&self) -> usize {
        self.min_in_sync.min(self.followers.len() + 1)
    }

    /// Whether `acks=all` finds as many replicas in sync as it asks for. With fewer of them nothing more is committed, as an
    /// eligible leader may be elected that lacks it (KIP-966).
    pub fn has_enough_in_sync(&self) -> bool {
        self.in_sync >= self.min_in_sync()
    }

    /// The other replicas.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaState> {
        self.followers.iter().map(|follower| ReplicaState {
            id: follower.id,
            log_end_offset: follower.position.end_offset(),
            caught_up_ms: follower.position.keeping_up.lock().caught_up_ms,
            in_sync: follower.in_sync,
            log_start_offset: follower.position.log_start_offset.load(Ordering::Acquire),
        })
    }

    /// Whether a broker has one of the other replicas.
    pub fn has_replica(&self, id: BrokerId) -> bool {
        self.followers.iter().any(|follower| follower.id == id)
    }

    /// Whether one of the other replicas is in sync.
    pub fn has_in_sync(&self, id: BrokerId) -> bool {
        self.followers.iter().any(|follower| follower.id == id && follower.in_sync)
    }

    /// Where the log of another replica starts, as it last said; -1 before that.
    pub fn log_start_of(&self, id: BrokerId) -> i64 {
        let asked = self.followers.iter().find(|follower| follower.id == id);
        asked.map_or(UNKNOWN, |follower| follower.position.log_start_offset.load(Ordering::Acquire))
    }

    /// The in-sync replicas that have not had all of a log that ends at `own` for more than `max_lag_ms`. Ends what the
    /// high watermark waits for of others that have fallen behind, or are not in `alive`.
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

    /// Where the earliest log of the replicas starts that are in sync or caught up lately, when this one starts at `own`
    /// (Kafka's low watermark).
    pub fn low_watermark(&self, own: i64, alive: &[BrokerId]) -> i64 {
        let living = self.followers.iter().filter(|follower| alive.contains(&follower.id));
        living.map(|follower| follower.position.log_start_offset.load(Ordering::Acquire)).fold(own, i64::min)
    }

    /// Ends the wait for replicas that were asked for to be in sync, and are not let in.
    pub(crate) fn stop_joining(&self, replicas: &[BrokerId]) {
        for follower in self.followers.iter().filter(|follower| replicas.contains(&follower.id)) {
            follower.position.stop_counting();
        }
    }

    /// Whether a replica is to be asked for to be in sync, where the high watermark stands at `high_watermark`; it counts from
    /// now on if so. The caller keeps the high watermark from rising meanwhile.
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

    /// Whether [`Leader::maybe_join`] is worth its lock.
    pub(crate) fn might_join(&self, replica: BrokerId, high_watermark: i64) -> bool {
        let asked = self.followers.iter().find(|follower| follower.id == replica);
        asked.is_some_and(|follower| {
            !follower.position.joining.load(Ordering::Acquire)
                && follower.may_join(high_watermark.max(self.epoch_start))
        })
    }

    /// Where the in-sync replicas put the high watermark, when this one has the log up to `own`.
    pub(crate) fn high_watermark(&self, own: i64) -> i64 {
        let counting = self.followers.iter().filter(|follower| follower.counts());
        high_watermark(own, counting.map(|follower| follower.position.end_offset()))
    }

    /// Notes how far a replica has the log, where this broker's ends at `own_end_offset`.
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
