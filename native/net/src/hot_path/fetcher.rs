//! The kinds of fetchers: a consumer reads committed records from any replica, a follower reads all records from its leader.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::HotPath;
use super::errors;
use super::fetch_plan::Throttled;
use crate::data_plane::events::{CaughtUpReplica, Event};
use pybroker_record::Offset;
use pybroker_replica::{
    BrokerId, CaughtUp, Isolation, LeaderCheck, LeaderEpoch, Partition, SessionOwner, Topic, TopicTable, Waiter,
};
use pybroker_wire::fetch::{FetchPartition, FetchRequest, FetchedPartition, ReplicaState};
use pybroker_wire::{ErrorCode, LeaderAndEpoch, TopicRef};

/// First Fetch version by which consumers may read from a follower (KIP-392).
const FIRST_VERSION_WITH_RACK: i16 = 11;

/// A request with more partitions than this is deduplicated: 20 bytes of request cost some microseconds for each repeated
/// partition.
const MANY: usize = 1_000;

/// `preferred_read_replica` for: keep reading from this replica.
const NO_REPLICA: BrokerId = BrokerId(-1);

/// The client that fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchedBy {
    Consumer(Isolation),
    Replica(ReplicaState),
}

impl FetchedBy {
    /// The kind of fetcher that the request names.
    pub fn of(request: &FetchRequest<'_>) -> Self {
        if request.replica.id >= 0 {
            Self::Replica(request.replica)
        } else if request.read_committed {
            Self::Consumer(Isolation::LastStable)
        } else {
            Self::Consumer(Isolation::HighWatermark)
        }
    }

    /// The isolation level.
    pub fn isolation(self) -> Isolation {
        match self {
            Self::Consumer(isolation) => isolation,
            Self::Replica(_) => Isolation::LogEnd,
        }
    }

    /// Whether the client is another broker.
    pub fn is_replica(self) -> bool {
        matches!(self, Self::Replica(_))
    }

    /// The owner of the fetch session.
    pub fn session_owner(self) -> SessionOwner {
        if self.is_replica() { SessionOwner::Follower } else { SessionOwner::Consumer }
    }
}

/// The response for a partition that has not been read.
pub fn nothing_fetched(partition: &FetchPartition) -> FetchedPartition {
    FetchedPartition {
        topic: partition.topic.clone(),
        index: partition.index.0,
        error: ErrorCode::NONE,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        aborted: Vec::new(),
        preferred_read_replica: NO_REPLICA,
        records: 0,
        diverging: None,
        current_leader: None,
    }
}

/// An error code, and the leader to return with the error.
pub type NotServed = (ErrorCode, Option<LeaderAndEpoch>);

/// The topic of a partition.
pub fn topic_of<'a>(table: &'a TopicTable, partition: &FetchPartition) -> Result<&'a Topic, NotServed> {
    table.find(&partition.topic).ok_or(match partition.topic {
        TopicRef::Id(_) => (ErrorCode::UNKNOWN_TOPIC_ID, None),
        TopicRef::Name(_) => (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, None),
    })
}

/// The replica to read a partition from, or the error if there is none.
pub fn locate<'a>(
    topic: &'a Topic,
    partition: &FetchPartition,
    fetched_by: FetchedBy,
    version: i16,
) -> Result<&'a Partition, NotServed> {
    let slot = topic.slot(partition.index.0).ok_or((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, None))?;
    let replica = slot.partition.as_deref().ok_or_else(|| errors::not_here(slot))?;
    let checked = if fetched_by.is_replica() || version < FIRST_VERSION_WITH_RACK {
        replica.check_leader(partition.leader_epoch)
    } else {
        replica.check_replica(partition.leader_epoch)
    };
    match checked {
        LeaderCheck::Leads => {}
        LeaderCheck::NotLeader => return Err((ErrorCode::NOT_LEADER_OR_FOLLOWER, Some(slot.current_leader()))),
        LeaderCheck::Fenced => return Err((ErrorCode::FENCED_LEADER_EPOCH, Some(slot.current_leader()))),
        LeaderCheck::Unknown => return Err((ErrorCode::UNKNOWN_LEADER_EPOCH, None)),
    }
    if let FetchedBy::Replica(ReplicaState { id, .. }) = fetched_by
        && !replica.role().leader().is_some_and(|leader| leader.has_replica(BrokerId(id)))
    {
        // An epoch in the request is the current one: the follower may know of a reassignment before this broker.
        let named = partition.leader_epoch.0 >= 0;
        let error = if named { ErrorCode::UNKNOWN_LEADER_EPOCH } else { ErrorCode::NOT_LEADER_OR_FOLLOWER };
        return Err((error, None));
    }
    Ok(replica)
}

/// The replica that a consumer in another rack should read from, in place of the leader (KIP-392).
pub fn preferred_replica(
    hot_path: &HotPath,
    rack: &str,
    replica: &Partition,
    requested: &FetchPartition,
) -> Option<BrokerId> {
    let table = hot_path.read_replicas.load();
    let role = replica.role();
    table.as_ref()?.preferred(role.leader()?, rack, Offset(requested.fetch_offset))
}

/// How the leader's throttle treats a read. A follower out of sync gets nothing while the throttle's limit is used up
/// (KIP-73).
pub fn throttled(hot_path: &HotPath, fetched_by: FetchedBy, replica: &Partition) -> Throttled {
    let FetchedBy::Replica(ReplicaState { id, .. }) = fetched_by else { return Throttled::No };
    if !replica.throttled().leader() {
        return Throttled::No;
    }
    let is_in_sync = replica.role().leader().is_some_and(|leader| leader.has_in_sync(BrokerId(id)));
    if !is_in_sync && hot_path.leader_throttle.is_exceeded(hot_path.wall_ms()) {
        Throttled::HeldBack
    } else {
        Throttled::Counted
    }
}

/// The partitions of a large request, each once: at its first position, with its last values (Kafka's `fetchData`).
pub fn deduplicated(named: Vec<FetchPartition>) -> Vec<FetchPartition> {
    if named.len() <= MANY {
        return named;
    }
    let mut once: Vec<FetchPartition> = Vec::new();
    let mut positions = HashMap::new();
    for requested in named {
        match positions.entry((requested.topic.clone(), requested.index)) {
            Entry::Occupied(position) => once[*position.get()] = requested,
            Entry::Vacant(position) => {
                position.insert(once.len());
                once.push(requested);
            }
        }
    }
    once
}

/// Records a follower's log end offset. Requests from the control plane that a caught-up follower join the in-sync replicas.
pub fn note_positions(
    hot_path: &HotPath,
    table: &TopicTable,
    replica: ReplicaState,
    requested: &FetchPartition,
    now_ms: i64,
    wake: &mut dyn FnMut(Waiter),
) {
    let Some(topic) = table.find(&requested.topic) else { return };
    let Some(partition) = topic.slot(requested.index.0).and_then(|slot| slot.partition.as_deref()) else { return };
    let id = BrokerId(replica.id);
    let log_start = || partition.role().leader().map(|leader| leader.log_start_of(id));
    let before = partition.is_deletion_awaited().then(log_start);
    if let Some(repaired) = partition.verify_epochs_for(requested) {
        hot_path.events.epochs_repaired(partition, &repaired);
    }
    let noted = partition.note_fetch(replica, table.eligibility(id), requested, now_ms, wake);
    if before.is_some_and(|before| before != log_start()) {
        hot_path.events.push(Event::ReplicaDeletedRecords { topic_id: topic.id, index: requested.index });
    }
    if let CaughtUp::Joins { partition_epoch } = noted {
        hot_path.events.push(Event::ReplicaCaughtUp(CaughtUpReplica {
            topic_id: topic.id,
            index: requested.index,
            leader_epoch: LeaderEpoch(partition.leader_epoch()),
            partition_epoch,
            replica: id,
            broker_epoch: replica.epoch,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pybroker_replica::PartitionIndex;

    fn requested(topic: &str, index: i32, fetch_offset: i64) -> FetchPartition {
        FetchPartition {
            topic: TopicRef::Name(topic.into()),
            index: PartitionIndex(index),
            fetch_offset,
            max_bytes: 1,
            leader_epoch: LeaderEpoch(-1),
            last_fetched_epoch: LeaderEpoch(-1),
            log_start_offset: -1,
        }
    }

    #[test]
    fn a_large_request_has_each_partition_once() {
        let mut named: Vec<FetchPartition> = (0..3_000).map(|at| requested("a", at % 700, i64::from(at))).collect();
        named.push(requested("b", 3, 5));
        let once = deduplicated(named);
        assert_eq!(once.len(), 701);
        assert_eq!(
            (&once[0], &once[699], &once[700]),
            (&requested("a", 0, 2_800), &requested("a", 699, 2_799), &requested("b", 3, 5))
        );
    }

    #[test]
    fn a_small_one_is_left_as_it_is() {
        let named = vec![requested("a", 0, 1), requested("a", 0, 2)];
        assert_eq!(deduplicated(named.clone()), named);
    }
}
