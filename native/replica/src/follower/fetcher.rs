//! A fetcher: the partitions that are fetched from one broker on one connection, as a machine without sockets.
//!
//! Its driver asks for [`ReplicaFetcher::next_request`], sends it, and gives the answer to [`ReplicaFetcher::take_response`];
//! it says when the connection is lost. One request is under way at a time, and a second one where a partition came
//! meanwhile or is to be asked for again: the leader then answers the first at once, which may have waited for records.
//!
//! Invariant: what the session knows of a partition is what `asked` says. Partitions that may have something new to ask are
//! in `changed`, so that a request costs what it names and not what the session has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fetched::FollowerNotice;
use super::session::FetcherSession;
use super::state::{FetchEvent, FetchState, FetchStateKind};
use crate::fetch_session::FetchSessionId;
use crate::ids::{BrokerId, PartitionIndex};
use crate::partition::Partition;
use crate::role::Following;
use crate::throttle::ReplicationThrottle;
use crate::waiting::Waiter;
use pybroker_wire::fetch::{FetchPartition, FetchRequest, ReplicaState};
use pybroker_wire::{TopicId, TopicRef};

mod answers;

/// The version that is spoken among brokers: topics by id, the replica's state, diverging epochs.
pub const REPLICA_FETCH_VERSION: i16 = 17;

/// Names a partition.
pub type PartitionKey = (TopicId, i32);

/// How a follower fetches; `replica.fetch.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetcherSettings {
    /// This broker, and the epoch of its registration.
    pub replica: BrokerId,
    pub broker_epoch: i64,
    pub min_bytes: i32,
    pub max_wait_ms: i32,
    /// For each partition.
    pub max_bytes: i32,
    pub response_max_bytes: i32,
    /// The first wait after a refusal; each further one is twice as long, up to `backoff_ms`.
    pub first_backoff_ms: i64,
    pub backoff_ms: i64,
}

/// Is called with what an answer brings about.
pub trait FollowerListener {
    /// A request that waited is satisfied.
    fn wake(&mut self, waiter: Waiter);

    /// A log cannot be written.
    fn log_failed(&mut self, partition: &Partition, error: &str);

    /// Descriptors or memory have run out.
    fn exhausted(&mut self, error: &str);

    /// The leader sent what cannot be taken; it is asked again later.
    fn not_taken(&mut self, partition: &Partition, why: &str);

    /// The log was truncated below its high watermark, or its leader epochs were repaired.
    fn notice(&mut self, partition: &Partition, notice: &FollowerNotice);

    /// Records of so many bytes were appended; who counts none leaves it.
    fn appended(&mut self, _bytes: usize) {}
}

#[derive(Debug)]
struct Followed {
    partition: Arc<Partition>,
    following: Following,
    state: FetchState,
    /// What the session knows; `None` while it does not have the partition.
    asked: Option<FetchPartition>,
    /// The request that named it last: an answer to an earlier one is about another epoch or offset.
    named_in: u64,
    /// An answer was not taken that the leader holds for taken: it says all again when it is asked for what it knows.
    has_missed: bool,
    /// Waits in a row without an answer that was taken.
    tries: u32,
    /// Whether it had all that the leader had committed, when the leader last said; only others are throttled.
    has_all: bool,
}

/// See the module.
#[derive(Debug)]
pub struct ReplicaFetcher {
    settings: FetcherSettings,
    /// What all fetchers of the broker may take of throttled partitions.
    throttle: Arc<ReplicationThrottle>,
    session: FetcherSession,
    followed: BTreeMap<PartitionKey, Followed>,
    changed: BTreeSet<PartitionKey>,
    backing_off: BTreeSet<PartitionKey>,
    /// Partitions that the session has and that are not fetched any more.
    forgotten: BTreeSet<PartitionKey>,
    in_flight: usize,
    /// How many requests were made: the number of the last one. Answers come in the order of their requests.
    requests: u64,
    /// A partition came, went or got another leader epoch since the last request.
    is_assigned_anew: bool,
}

impl ReplicaFetcher {
    /// Fetches nothing yet.
    pub fn new(settings: FetcherSettings, throttle: Arc<ReplicationThrottle>) -> Self {
        Self {
            settings,
            throttle,
            session: FetcherSession::default(),
            followed: BTreeMap::new(),
            changed: BTreeSet::new(),
            backing_off: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            in_flight: 0,
            requests: 0,
            is_assigned_anew: false,
        }
    }

    /// Takes other settings, from the next request on.
    pub fn set_settings(&mut self, settings: FetcherSettings) {
        self.settings = settings;
    }

    /// Fetches a partition from now on, as a follower at this epoch.
    pub fn follow(&mut self, partition: Arc<Partition>, following: Following) {
        let key = (*partition.topic_id(), partition.index());
        let before = self.followed.remove(&key);
        let named_in = before.as_ref().map_or(0, |before| before.named_in);
        let asked = before.and_then(|before| before.asked);
        self.forgotten.remove(&key);
        self.backing_off.remove(&key);
        let state = FetchState::Fetching;
        let (has_missed, has_all) = (false, false);
        let followed = Followed { partition, following, state, asked, named_in, has_missed, tries: 0, has_all };
        self.followed.insert(key, followed);
        self.changed.insert(key);
        self.is_assigned_anew = true;
    }

    /// Fetches a partition no more.
    pub fn unfollow(&mut self, key: &PartitionKey) {
        self.changed.remove(key);
        self.backing_off.remove(key);
        if self.followed.remove(key).is_some_and(|followed| followed.asked.is_some()) {
            self.forgotten.insert(*key);
            self.is_assigned_anew = true;
        }
    }

    /// How many partitions it has.
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Requests that are not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The state of a partition.
    pub fn state(&self, key: &PartitionKey) -> Option<FetchState> {
        self.followed.get(key).map(|followed| followed.state)
    }

    /// When the next partition is to be asked for again; `None` for never, and while no request may be sent.
    pub fn due_ms(&self) -> Option<i64> {
        if !self.may_send_another() {
            return None;
        }
        let until = |key| match self.followed.get(key)?.state {
            FetchState::BackingOff { until_ms, .. } => Some(until_ms),
            FetchState::Fetching | FetchState::AwaitingMetadata | FetchState::Failed => None,
        };
        self.backing_off.iter().filter_map(until).min()
    }

    /// The request to send now; `None` where there is nothing to ask, or an answer is to come first.
    pub fn next_request(&mut self, now_ms: i64) -> Option<FetchRequest<'static>> {
        let is_due = || self.is_assigned_anew || self.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        if !self.may_send_another() || (self.in_flight > 0 && !is_due()) {
            return None;
        }
        self.end_waits(now_ms);
        let is_full = self.session.is_full();
        if is_full {
            self.forget_session();
        } else if self.in_flight == 0 && self.changed.is_empty() {
            // Nothing came for a while: what else the leader learns from requests may have changed.
            self.changed.extend(self.followed.keys());
        }
        self.hold_throttled(now_ms);
        let partitions = self.name_changed();
        let forgotten: Vec<_> = std::mem::take(&mut self.forgotten)
            .into_iter()
            .map(|(id, index)| (TopicRef::Id(id), PartitionIndex(index)))
            .collect();
        self.is_assigned_anew = false;
        if !self.followed.values().any(|followed| followed.asked.is_some()) {
            self.session.refused(false);
            return None;
        }
        let (FetchSessionId(session_id), session_epoch) = self.session.next();
        self.session.sent();
        self.in_flight += 1;
        self.requests += 1;
        let FetcherSettings { replica, broker_epoch, max_wait_ms, min_bytes, response_max_bytes, .. } = self.settings;
        Some(FetchRequest {
            replica: ReplicaState { id: replica.0, epoch: broker_epoch },
            max_wait_ms,
            min_bytes,
            max_bytes: response_max_bytes,
            read_committed: false,
            session_id,
            session_epoch,
            partitions,
            forgotten,
            rack: "",
        })
    }

    /// The connection is lost, and the session with it. Requests that were sent are not answered.
    pub fn disconnected(&mut self) {
        self.in_flight = 0;
        self.session = FetcherSession::default();
        self.forget_session();
    }

    fn may_send_another(&self) -> bool {
        // A session that has not begun cannot take a second request.
        self.in_flight == 0 || (self.in_flight == 1 && !self.session.is_full())
    }

    fn forget_session(&mut self) {
        self.forgotten.clear();
        for (key, followed) in &mut self.followed {
            followed.asked = None;
            self.changed.insert(*key);
        }
    }

    fn end_waits(&mut self, now_ms: i64) {
        let is_due =
            |state: &FetchState| matches!(state, FetchState::BackingOff { until_ms, .. } if *until_ms <= now_ms);
        let due: Vec<_> = self
            .backing_off
            .iter()
            .filter(|key| self.followed.get(key).is_some_and(|it| is_due(&it.state)))
            .copied()
            .collect();
        for key in due {
            self.set(&key, FetchEvent::Due, now_ms);
        }
    }

    /// Has those wait that are throttled, not in sync, and have taken what they may: others go on (KIP-73).
    fn hold_throttled(&mut self, now_ms: i64) {
        let wait_ms = self.throttle.wait_ms(now_ms).min(self.settings.backoff_ms.max(1));
        if wait_ms == 0 {
            return;
        }
        let is_held = |followed: &Followed| {
            followed.state == FetchState::Fetching && !followed.has_all && followed.partition.throttled().follower()
        };
        // Also those that the session has and that are not named again: the leader may send more of them.
        let held: Vec<_> = self.followed.iter().filter(|(_, it)| is_held(it)).map(|(key, _)| *key).collect();
        for key in held {
            self.wait(&key, FetchEvent::Throttled, now_ms.saturating_add(wait_ms));
        }
    }

    /// The partitions of which the session knows something else, or nothing; those that wait leave it.
    fn name_changed(&mut self) -> Vec<FetchPartition> {
        let mut named = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let Some(followed) = self.followed.get_mut(&key) else { continue };
            if followed.partition.is_closed() && followed.state != FetchState::Failed {
                followed.state = FetchState::Failed;
            }
            if followed.state != FetchState::Fetching {
                if followed.asked.take().is_some() {
                    self.forgotten.insert(key);
                }
                continue;
            }
            let position = followed.partition.fetch_position();
            let wanted = FetchPartition {
                topic: TopicRef::Id(key.0),
                index: PartitionIndex(key.1),
                fetch_offset: position.offset,
                max_bytes: self.settings.max_bytes,
                leader_epoch: followed.following.leader_epoch,
                last_fetched_epoch: position.last_epoch,
                log_start_offset: position.log_start_offset,
            };
            if std::mem::take(&mut followed.has_missed) || followed.asked.as_ref() != Some(&wanted) {
                followed.asked = Some(wanted.clone());
                followed.named_in = self.requests + 1;
                named.push(wanted);
            }
        }
        named
    }

    fn back_off(&mut self, key: &PartitionKey, now_ms: i64) {
        self.set(key, FetchEvent::Refused, now_ms);
    }

    /// Changes the state of a partition as the table says; what the table does not list changes nothing.
    fn set(&mut self, key: &PartitionKey, event: FetchEvent, now_ms: i64) {
        let Some(followed) = self.followed.get_mut(key) else { return };
        let Some(kind) = followed.state.after(event) else { return };
        if event == FetchEvent::Taken {
            followed.tries = 0;
            return;
        }
        followed.state = match kind {
            FetchStateKind::Fetching => FetchState::Fetching,
            FetchStateKind::AwaitingMetadata => FetchState::AwaitingMetadata,
            FetchStateKind::Failed => FetchState::Failed,
            FetchStateKind::BackingOff => {
                let FetcherSettings { first_backoff_ms, backoff_ms, .. } = self.settings;
                let wait = first_backoff_ms.saturating_mul(1 << followed.tries.min(20)).min(backoff_ms);
                followed.tries = followed.tries.saturating_add(1);
                return self.wait(key, event, now_ms.saturating_add(wait));
            }
        };
        self.backing_off.remove(key);
        self.changed.insert(*key);
    }

    /// Has a partition wait until `until_ms`, where the table says that it waits after `event`.
    fn wait(&mut self, key: &PartitionKey, event: FetchEvent, until_ms: i64) {
        let Some(followed) = self.followed.get_mut(key) else { return };
        if followed.state.after(event) == Some(FetchStateKind::BackingOff) {
            followed.state = FetchState::BackingOff { until_ms, tries: followed.tries };
            self.backing_off.insert(*key);
            self.changed.insert(*key);
        }
    }
}
