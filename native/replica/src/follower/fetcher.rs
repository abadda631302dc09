//! A fetcher: fetches partitions from one broker over one connection, as a state machine without sockets.
//!
//! Its driver calls [`ReplicaFetcher::next_request`], sends the request, passes the response to
//! [`ReplicaFetcher::take_response`], and reports a lost connection. Normally one request is in flight. A second one
//! is sent when a partition was added or its backoff is over. The leader then completes the first request at once,
//! which may have waited for records.
//!
//! Invariant: `requested` is the state of a partition in the fetch session. Partitions that may differ from it are in
//! `changed`, so that the cost of a request depends on the partitions it names, not on the size of the session.

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

mod responses;

/// The version used between brokers: topic ids, the replica's state, diverging epochs.
pub const REPLICA_FETCH_VERSION: i16 = 17;

/// Identifies a partition.
pub type PartitionKey = (TopicId, i32);

/// The settings of a follower's fetches; `replica.fetch.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetcherSettings {
    /// The id of this broker, and its broker epoch.
    pub replica: BrokerId,
    pub broker_epoch: i64,
    pub min_bytes: i32,
    pub max_wait_ms: i32,
    /// Bytes per partition.
    pub max_bytes: i32,
    pub response_max_bytes: i32,
    /// The first backoff after an error, ms. Each further one is twice as long, up to `backoff_ms`.
    pub first_backoff_ms: i64,
    pub backoff_ms: i64,
}

/// Receives the effects of a response.
pub trait FollowerListener {
    /// A waiting request is satisfied.
    fn wake(&mut self, waiter: Waiter);

    /// A log cannot be written.
    fn log_failed(&mut self, partition: &Partition, error: &str);

    /// File descriptors or memory are exhausted.
    fn exhausted(&mut self, error: &str);

    /// The leader's response is invalid. The fetch is retried later.
    fn not_taken(&mut self, partition: &Partition, why: &str);

    /// The log was truncated below its high watermark, or its leader epochs were repaired.
    fn notice(&mut self, partition: &Partition, notice: &FollowerNotice);

    /// This number of bytes was appended. The default ignores it.
    fn appended(&mut self, _bytes: usize) {}
}

#[derive(Debug)]
struct Followed {
    partition: Arc<Partition>,
    following: Following,
    state: FetchState,
    /// The partition's state in the fetch session; `None` while it is not in the session.
    requested: Option<FetchPartition>,
    /// The number of the last request that named the partition. A response to an earlier one is for another epoch or
    /// offset.
    named_in: u64,
    /// Whether a response was ignored that the leader assumes to be applied. Naming the partition again makes the
    /// leader send everything again.
    has_missed: bool,
    /// Number of backoffs since the last applied response.
    tries: u32,
    /// Whether it had all records below the leader's high watermark at the last response. Only other partitions are
    /// throttled.
    has_all: bool,
}

/// The fetcher; see the module.
#[derive(Debug)]
pub struct ReplicaFetcher {
    settings: FetcherSettings,
    /// The limit for throttled partitions, shared by all fetchers of the broker.
    throttle: Arc<ReplicationThrottle>,
    session: FetcherSession,
    followed: BTreeMap<PartitionKey, Followed>,
    changed: BTreeSet<PartitionKey>,
    backing_off: BTreeSet<PartitionKey>,
    /// Partitions in the session that are not fetched any more.
    forgotten: BTreeSet<PartitionKey>,
    in_flight: usize,
    /// Number of requests so far, which is the number of the last one. Responses arrive in request order.
    requests: u64,
    /// Whether a partition was added, removed or got another leader epoch since the last request.
    is_assigned_anew: bool,
}

impl ReplicaFetcher {
    /// Creates a fetcher without partitions.
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

    /// Changes the settings, from the next request on.
    pub fn set_settings(&mut self, settings: FetcherSettings) {
        self.settings = settings;
    }

    /// Starts to fetch a partition, as a follower in this leader epoch.
    pub fn follow(&mut self, partition: Arc<Partition>, following: Following) {
        let key = (*partition.topic_id(), partition.index());
        let before = self.followed.remove(&key);
        let named_in = before.as_ref().map_or(0, |before| before.named_in);
        let requested = before.and_then(|before| before.requested);
        self.forgotten.remove(&key);
        self.backing_off.remove(&key);
        let state = FetchState::Fetching;
        let (has_missed, has_all) = (false, false);
        let followed = Followed { partition, following, state, requested, named_in, has_missed, tries: 0, has_all };
        self.followed.insert(key, followed);
        self.changed.insert(key);
        self.is_assigned_anew = true;
    }

    /// Stops fetching a partition.
    pub fn unfollow(&mut self, key: &PartitionKey) {
        self.changed.remove(key);
        self.backing_off.remove(key);
        if self.followed.remove(key).is_some_and(|followed| followed.requested.is_some()) {
            self.forgotten.insert(*key);
            self.is_assigned_anew = true;
        }
    }

    /// Returns the number of partitions.
    pub fn len(&self) -> usize {
        self.followed.len()
    }

    /// Returns whether there are no partitions.
    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the state of a partition.
    pub fn state(&self, key: &PartitionKey) -> Option<FetchState> {
        self.followed.get(key).map(|followed| followed.state)
    }

    /// Returns the time at which the next backoff is over; `None` for none, and while no request may be sent.
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

    /// Returns the request to send; `None` if there is nothing to fetch, or a response must arrive first.
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
            // There was no change for a while, but other fields of the requests may have changed.
            self.changed.extend(self.followed.keys());
        }
        self.hold_throttled(now_ms);
        let partitions = self.name_changed();
        let forgotten: Vec<_> = std::mem::take(&mut self.forgotten)
            .into_iter()
            .map(|(id, index)| (TopicRef::Id(id), PartitionIndex(index)))
            .collect();
        self.is_assigned_anew = false;
        if !self.followed.values().any(|followed| followed.requested.is_some()) {
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

    /// Resets the session after the connection was lost. Requests in flight get no response.
    pub fn disconnected(&mut self) {
        self.in_flight = 0;
        self.session = FetcherSession::default();
        self.forget_session();
    }

    fn may_send_another(&self) -> bool {
        // A session that has not begun cannot have a second request.
        self.in_flight == 0 || (self.in_flight == 1 && !self.session.is_full())
    }

    fn forget_session(&mut self) {
        self.forgotten.clear();
        for (key, followed) in &mut self.followed {
            followed.requested = None;
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

    /// Delays throttled partitions that are not in sync, if the throttle is exceeded. Others continue (KIP-73).
    fn hold_throttled(&mut self, now_ms: i64) {
        let wait_ms = self.throttle.wait_ms(now_ms).min(self.settings.backoff_ms.max(1));
        if wait_ms == 0 {
            return;
        }
        let is_held = |followed: &Followed| {
            followed.state == FetchState::Fetching && !followed.has_all && followed.partition.throttled().follower()
        };
        // Includes partitions in the session that the request does not name: the leader may send more of their
        // records.
        let held: Vec<_> = self.followed.iter().filter(|(_, it)| is_held(it)).map(|(key, _)| *key).collect();
        for key in held {
            self.wait(&key, FetchEvent::Throttled, now_ms.saturating_add(wait_ms));
        }
    }

    /// Returns the partitions whose state differs from the session's. Removes waiting partitions from the session.
    fn name_changed(&mut self) -> Vec<FetchPartition> {
        let mut named = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let Some(followed) = self.followed.get_mut(&key) else { continue };
            if followed.partition.is_closed() && followed.state != FetchState::Failed {
                followed.state = FetchState::Failed;
            }
            if followed.state != FetchState::Fetching {
                if followed.requested.take().is_some() {
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
            if std::mem::take(&mut followed.has_missed) || followed.requested.as_ref() != Some(&wanted) {
                followed.requested = Some(wanted.clone());
                followed.named_in = self.requests + 1;
                named.push(wanted);
            }
        }
        named
    }

    fn back_off(&mut self, key: &PartitionKey, now_ms: i64) {
        self.set(key, FetchEvent::Refused, now_ms);
    }

    /// Changes the state of a partition by the table. An event that the table does not list has no effect.
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

    /// Delays a partition until `until_ms`, if the table allows a backoff after `event`.
    fn wait(&mut self, key: &PartitionKey, event: FetchEvent, until_ms: i64) {
        let Some(followed) = self.followed.get_mut(key) else { return };
        if followed.state.after(event) == Some(FetchStateKind::BackingOff) {
            followed.state = FetchState::BackingOff { until_ms, tries: followed.tries };
            self.backing_off.insert(*key);
            self.changed.insert(*key);
        }
    }
}
