//! The states of this broker's partitions and topics, for metrics: one pass over the table, without a lock of the hot path.
//!
//! Must not know the use of these states.

use std::sync::Arc;

use pybroker_replica::{Partition, TopicCounts, TopicTable};

/// One replica of this broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    pub topic: Arc<str>,
    pub index: i32,
    /// Whether this broker is the leader. Only the leader knows the replicas.
    pub leads: bool,
    /// Bytes of all segments.
    pub size_bytes: u64,
    pub segments: usize,
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    pub high_watermark: i64,
    pub replicas: usize,
    pub in_sync: usize,
    /// The number of in-sync replicas that `acks=all` requires.
    pub min_in_sync: usize,
}

impl PartitionState {
    fn of(partition: &Partition) -> Self {
        let (log, role) = (partition.log(), partition.role());
        let leader = role.leader();
        Self {
            topic: Arc::clone(partition.topic()),
            index: partition.index(),
            leads: leader.is_some(),
            size_bytes: log.size_bytes(),
            segments: log.segment_count(),
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            high_watermark: partition.high_watermark(),
            replicas: leader.map_or(0, |leader| leader.replicas().count() + 1),
            in_sync: leader.map_or(0, |leader| leader.in_sync()),
            min_in_sync: leader.map_or(0, |leader| leader.min_in_sync()),
        }
    }
}

/// The state of every open replica of this broker, by topic and index.
pub fn of_partitions(table: &TopicTable) -> Vec<PartitionState> {
    let slots = table.topics().flat_map(|topic| topic.partitions.iter().flatten());
    let mut states: Vec<_> = slots.filter_map(|slot| slot.partition.as_deref()).map(PartitionState::of).collect();
    states.sort_unstable_by(|one, other| (&one.topic, one.index).cmp(&(&other.topic, other.index)));
    states
}

/// The counts of each topic that has any, by name.
pub fn of_topics(table: &TopicTable) -> Vec<(Arc<str>, TopicCounts)> {
    let counted = |topic: &Arc<_>| {
        let topic: &pybroker_replica::Topic = topic;
        Some((Arc::clone(&topic.name), topic.counters.counts()?))
    };
    let mut found: Vec<_> = table.topics().filter_map(counted).collect();
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    found
}
