//! The partitions of one broker: log, high watermark, and waiting requests.
//!
//! Owns [`Partition`], the [`TopicTable`] snapshot for the partition lookups of the hot path, incremental fetch
//! sessions and the waiting lists. Knows no sockets: a waiting request is identified by two numbers ([`Waiter`]) and
//! woken through a callback.

#[cfg(test)]
#[path = "../../storage/tests/it/log_fixture.rs"]
mod log_fixture;

mod acknowledgement;
mod append;
mod commit;
mod fetch_session;
mod follower;
mod group_flush;
mod high_watermark;
mod ids;
mod leader;
mod partition;
mod read_replicas;
mod replica_fetch;
mod role;
mod role_change;
mod throttle;
mod topic_counters;
mod topic_table;
mod waiting;
mod waiting_readers;

pub use acknowledgement::{AcknowledgementList, Awaited, Standing, WaitingProduce};
pub use append::{EndedTransaction, NotAppended, Produced};
pub use fetch_session::{
    FetchSession, FetchSessionCache, FetchSessionId, SessionOwner, SessionPartition, SessionRefused,
};
pub use follower::{
    EpochEnd, FETCH_TRANSITIONS, FetchEvent, FetchPosition, FetchState, FetchStateKind, FetchedRecords,
    FetcherSettings, FollowerListener, FollowerNotice, LogSpan, NotTaken, PartitionKey, REPLICA_FETCH_VERSION,
    ReplicaFetcher, Restart, agreed_end, plan_restart,
};
pub use group_flush::{FlushCounts, FlushListener, GroupFlush};
pub use high_watermark::high_watermark;
pub use ids::{BrokerId, LeaderEpoch, Offset, PartitionIndex};
pub use leader::{
    CaughtUp, Eligibility, FollowerInSync, FollowerPosition, Leader, Leadership, PositionRefused, ReplicaState,
};
pub use partition::{LeaderCheck, Partition};
pub use read_replicas::ReadReplicas;
pub use replica_fetch::Agreement;
pub use role::{EpochStep, Following, Role, RoleKind, RoleRefused, TRANSITIONS};
pub use role_change::NotBecome;
pub use throttle::{ReplicationThrottle, ThrottleLimit, ThrottledSides};
pub use topic_counters::{TopicCounters, TopicCounts, TopicLine};
pub use topic_table::{PartitionSlot, Topic, TopicTable};
pub use waiting::{Waiter, WaitingFetch, WaitingList};
pub use waiting_readers::{Isolation, WaitingReaders};
