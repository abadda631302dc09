//! Incremental fetch sessions (KIP-227): the broker stores the partitions that a client reads and the offsets it last
//! sent, so that requests and responses contain only changes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::ids::PartitionIndex;
use super::waiting::WaitingFetch;
use pybroker_wire::TopicRef;
use pybroker_wire::fetch::FetchPartition;

/// The owner of a session. Followers are privileged (KIP-227): no consumer takes their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOwner {
    Consumer,
    Follower,
}

/// One partition of a session: the client's request, and the offsets last sent to the client.
#[derive(Clone, Debug)]
pub struct SessionPartition {
    /// The client's request for the partition.
    pub requested: FetchPartition,
    /// The high watermark last sent; -1 before the first response.
    pub sent_high_watermark: i64,
    /// The log start offset last sent; -1 before the first response.
    pub sent_log_start: i64,
}

impl SessionPartition {
    fn unsent(requested: FetchPartition) -> Self {
        Self { requested, sent_high_watermark: -1, sent_log_start: -1 }
    }
}

/// Why a session cannot be used. Each variant is one error code of the Fetch response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionRefused {
    /// FETCH_SESSION_ID_NOT_FOUND: unknown, or evicted.
    NotFound,
    /// INVALID_FETCH_SESSION_EPOCH: the request is not the next one of its session.
    InvalidEpoch,
    /// FETCH_SESSION_TOPIC_ID_ERROR: the request names topics by id and the session by name, or the other way.
    TopicIdError,
}

/// The id of a session in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchSessionId(pub i32);

/// One fetch session.
#[derive(Debug)]
pub struct FetchSession {
    id: i32,
    owner: SessionOwner,
    by_id: bool,
    /// The epoch that the next request must have.
    next_epoch: i32,
    last_used_ms: i64,
    partitions: Vec<SessionPartition>,
    /// Index in `partitions` of every (topic, index).
    positions: FxHashMap<(TopicRef, PartitionIndex), usize>,
    /// Index of the partition to read first in the next response, so that no partition starves behind a busy one.
    first: usize,
    /// The waiting request of a follower's session.
    waiting: Option<Arc<WaitingFetch>>,
}

impl FetchSession {
    /// Returns the session's id.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Returns the partitions, in the order of their first mention.
    pub fn partitions(&self) -> &[SessionPartition] {
        &self.partitions
    }

    /// Returns the partitions mutably, to update the offsets sent to the client.
    pub fn partitions_mut(&mut self) -> &mut [SessionPartition] {
        &mut self.partitions
    }

    /// Sets the waiting request, and returns the previous one.
    pub fn set_waiting(&mut self, waiting: Option<Arc<WaitingFetch>>) -> Option<Arc<WaitingFetch>> {
        std::mem::replace(&mut self.waiting, waiting)
    }

    /// Returns the index in [`FetchSession::partitions`] of the partition to read first.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Sets the partition to read first to the one after `place`, which has just returned bytes.
    pub fn begin_after(&mut self, place: usize) {
        self.first = if place + 1 < self.partitions.len() { place + 1 } else { 0 };
    }

    /// Applies a request's partitions: adds new ones, updates known ones, removes `forgotten`. A partition that is
    /// named without a change did not receive the last response, so all of its state is sent again.
    pub fn update(&mut self, named: Vec<FetchPartition>, forgotten: &[(TopicRef, PartitionIndex)]) {
        for requested in named {
            let key = (requested.topic.clone(), requested.index);
            match self.positions.get(&key) {
                Some(&place) if self.partitions[place].requested != requested => {
                    self.partitions[place].requested = requested
                }
                Some(&place) => self.partitions[place] = SessionPartition::unsent(requested),
                None => {
                    self.positions.insert(key, self.partitions.len());
                    self.partitions.push(SessionPartition::unsent(requested));
                }
            }
        }
        if !forgotten.is_empty() {
            self.forget(forgotten);
        }
    }

    fn forget(&mut self, forgotten: &[(TopicRef, PartitionIndex)]) {
        for key in forgotten {
            self.positions.remove(key);
        }
        let positions = &mut self.positions;
        self.partitions.retain(|p| positions.contains_key(&(p.requested.topic.clone(), p.requested.index)));
        for (place, partition) in self.partitions.iter().enumerate() {
            positions.insert((partition.requested.topic.clone(), partition.requested.index), place);
        }
        self.first = 0;
    }
}

/// All fetch sessions of the broker, bounded by `max.incremental.fetch.session.cache.slots`.
#[derive(Debug)]
pub struct FetchSessionCache {
    slots: usize,
    eviction_ms: i64,
    hasher: RandomState,
    inner: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_id: FxHashMap<i32, Arc<Mutex<FetchSession>>>,
    made: u64,
}

impl FetchSessionCache {
    /// Creates a cache of at most `slots` sessions. A session that is unused for `eviction_ms` can be evicted for a
    /// new one.
    pub fn new(slots: usize, eviction_ms: i64) -> Self {
        Self { slots, eviction_ms, hasher: RandomState::new(), inner: Mutex::default() }
    }

    /// Creates a session; `None` when all slots have sessions in use. A follower evicts the consumer session that is
    /// unused for longest.
    pub fn begin(
        &self,
        owner: SessionOwner,
        by_id: bool,
        partitions: Vec<FetchPartition>,
        now_ms: i64,
    ) -> Option<Arc<Mutex<FetchSession>>> {
        let mut inner = self.inner.lock();
        if inner.by_id.len() >= self.slots && !self.evict_one(&mut inner, owner, now_ms) {
            return None;
        }
        let id = loop {
            inner.made += 1;
            let id = (self.hasher.hash_one(inner.made) & 0x7fff_ffff) as i32;
            if id != 0 && !inner.by_id.contains_key(&id) {
                break id;
            }
        };
        let mut session = FetchSession {
            id,
            owner,
            by_id,
            next_epoch: 1,
            last_used_ms: now_ms,
            partitions: Vec::with_capacity(partitions.len()),
            positions: FxHashMap::default(),
            first: 0,
            waiting: None,
        };
        session.update(partitions, &[]);
        let session = Arc::new(Mutex::new(session));
        inner.by_id.insert(id, Arc::clone(&session));
        Some(session)
    }

    fn evict_one(&self, inner: &mut Sessions, newcomer: SessionOwner, now_ms: i64) -> bool {
        let facts = |(id, session): (&i32, &Arc<Mutex<FetchSession>>)| {
            // A locked session is in use.
            let (owner, used) = session.try_lock().map(|session| (session.owner, session.last_used_ms))?;
            let is_stale = used.saturating_add(self.eviction_ms) <= now_ms;
            let gives_way = match (newcomer, owner) {
                (SessionOwner::Follower, SessionOwner::Consumer) => true,
                (SessionOwner::Consumer, SessionOwner::Follower) => false,
                (SessionOwner::Follower, SessionOwner::Follower) | (SessionOwner::Consumer, SessionOwner::Consumer) => {
                    is_stale
                }
            };
            gives_way.then_some((!is_stale, used, *id))
        };
        let oldest = inner.by_id.iter().filter_map(facts).min();
        oldest.is_some_and(|(_, _, id)| inner.by_id.remove(&id).is_some())
    }

    /// Returns the session of an incremental request, and advances its epoch.
    pub fn resume(
        &self,
        owner: SessionOwner,
        id: FetchSessionId,
        epoch: i32,
        by_id: bool,
        now_ms: i64,
    ) -> Result<Arc<Mutex<FetchSession>>, SessionRefused> {
        let session = self.inner.lock().by_id.get(&id.0).cloned().ok_or(SessionRefused::NotFound)?;
        let mut locked = session.lock();
        if locked.owner != owner {
            return Err(SessionRefused::NotFound);
        }
        if locked.by_id != by_id {
            return Err(SessionRefused::TopicIdError);
        }
        if locked.next_epoch != epoch {
            return Err(SessionRefused::InvalidEpoch);
        }
        locked.next_epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
        locked.last_used_ms = now_ms;
        drop(locked);
        Ok(session)
    }

    /// Returns the session of an owner without advancing its epoch.
    pub fn peek(&self, owner: SessionOwner, id: FetchSessionId) -> Option<Arc<Mutex<FetchSession>>> {
        let session = self.inner.lock().by_id.get(&id.0).cloned()?;
        let is_owned = session.lock().owner == owner;
        is_owned.then_some(session)
    }

    /// Removes a session of this owner. Does nothing if there is none.
    pub fn end(&self, owner: SessionOwner, id: i32) {
        let mut inner = self.inner.lock();
        if inner.by_id.get(&id).is_some_and(|session| session.lock().owner == owner) {
            inner.by_id.remove(&id);
        }
    }

    /// Returns the number of sessions.
    pub fn len(&self) -> usize {
        self.inner.lock().by_id.len()
    }

    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::LeaderEpoch;
    use super::*;

    fn partition(name: &str, index: i32, fetch_offset: i64) -> FetchPartition {
        FetchPartition {
            topic: TopicRef::Name(name.into()),
            index: PartitionIndex(index),
            fetch_offset,
            max_bytes: 1,
            leader_epoch: LeaderEpoch(-1),
            last_fetched_epoch: LeaderEpoch(-1),
            log_start_offset: -1,
        }
    }

    #[test]
    fn requests_of_a_session_come_in_their_order() {
        let cache = FetchSessionCache::new(1, 1000);
        let id = cache.begin(SessionOwner::Consumer, false, vec![partition("a", 0, 0)], 0).unwrap().lock().id();
        assert!(cache.resume(SessionOwner::Consumer, FetchSessionId(id), 1, false, 1).is_ok());
        assert_eq!(
            cache.resume(SessionOwner::Consumer, FetchSessionId(id), 1, false, 1).unwrap_err(),
            SessionRefused::InvalidEpoch
        );
        assert_eq!(
            cache.resume(SessionOwner::Consumer, FetchSessionId(id), 2, true, 1).unwrap_err(),
            SessionRefused::TopicIdError
        );
        cache.end(SessionOwner::Consumer, id);
        assert_eq!(
            cache.resume(SessionOwner::Consumer, FetchSessionId(id), 2, false, 1).unwrap_err(),
            SessionRefused::NotFound
        );
    }

    #[test]
    fn a_full_cache_gives_way_only_when_a_session_has_idled() {
        let cache = FetchSessionCache::new(1, 1000);
        assert!(cache.begin(SessionOwner::Consumer, false, Vec::new(), 0).is_some());
        assert!(cache.begin(SessionOwner::Consumer, false, Vec::new(), 999).is_none());
        assert!(cache.begin(SessionOwner::Consumer, false, Vec::new(), 1000).is_some());
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_follower_takes_a_consumers_slot_and_no_consumer_a_followers() {
        let cache = FetchSessionCache::new(1, 1000);
        assert!(cache.begin(SessionOwner::Consumer, false, Vec::new(), 0).is_some());
        let id = cache.begin(SessionOwner::Follower, false, Vec::new(), 1).unwrap().lock().id();
        assert!(cache.begin(SessionOwner::Consumer, false, Vec::new(), 9000).is_none());
        assert_eq!(
            cache.resume(SessionOwner::Consumer, FetchSessionId(id), 1, false, 1).unwrap_err(),
            SessionRefused::NotFound
        );
        cache.end(SessionOwner::Consumer, id);
        assert!(cache.resume(SessionOwner::Follower, FetchSessionId(id), 1, false, 1).is_ok());
        assert!(cache.begin(SessionOwner::Follower, false, Vec::new(), 9000).is_some(), "its own broker came again");
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_session_keeps_what_it_sent_when_a_partition_moves_and_drops_the_forgotten() {
        let cache = FetchSessionCache::new(1, 1000);
        let session =
            cache.begin(SessionOwner::Consumer, false, vec![partition("a", 0, 0), partition("a", 1, 0)], 0).unwrap();
        let mut session = session.lock();
        session.partitions_mut()[0].sent_high_watermark = 9;
        session.update(vec![partition("a", 0, 5)], &[(TopicRef::Name("a".into()), PartitionIndex(1))]);
        let left = session.partitions_mut();
        assert_eq!((left.len(), left[0].requested.fetch_offset, left[0].sent_high_watermark), (1, 5, 9));
        session.update(vec![partition("a", 0, 5)], &[]);
        assert_eq!(session.partitions()[0].sent_high_watermark, -1, "it was not taken as it was sent");
    }
}
