//! Maps typed errors to Kafka's error codes. No other module of the hot path does so.

use super::{HotPath, Outcome, Right, Unresolved};
use crate::data_plane::events::Event;
use pybroker_record::InvalidBatch;
use pybroker_replica::{Awaited, NotAppended, Partition, PartitionSlot, Standing, Topic, TopicTable};
use pybroker_storage::AppendError;
use pybroker_wire::produce::ProducedPartition;
use pybroker_wire::{BrokerEndpoint, ErrorCode, LeaderAndEpoch, TopicRef};

fn unknown<'a>(table: &TopicTable, topics: impl Iterator<Item = &'a TopicRef>) -> Vec<TopicRef> {
    topics.filter(|topic| table.find(topic).is_none()).cloned().collect()
}

/// The outcome for a request that names topics missing from the table; `None` if none is missing.
pub fn unresolved<'a>(table: &TopicTable, topics: impl Iterator<Item = &'a TopicRef>) -> Option<Outcome> {
    let unknown = unknown(table, topics);
    let any = !unknown.is_empty();
    any.then(|| Outcome::Unresolved(Box::new(Unresolved { unknown, ..Unresolved::default() })))
}

/// The outcome for a request whose authorization is unknown: `right` on each of its topics, and Write on its transactional
/// id.
pub fn to_be_checked<'a>(
    table: &TopicTable,
    topics: impl Iterator<Item = &'a TopicRef> + Clone,
    right: Right,
    transactional_id: Option<&str>,
) -> Outcome {
    let unknown = unknown(table, topics.clone());
    let mut named: Vec<TopicRef> = topics.cloned().collect();
    named.sort_unstable();
    named.dedup();
    let (check, transactional_id) = (Some((right, named)), transactional_id.map(str::to_owned));
    Outcome::Unresolved(Box::new(Unresolved { unknown, check, transactional_id, verify: None }))
}

/// The topic table, and the listener whose endpoints responses contain.
#[derive(Clone, Copy, Debug)]
pub struct ListenerView<'a> {
    pub table: &'a TopicTable,
    /// The listener's name.
    pub listener: &'a str,
}

impl<'a> ListenerView<'a> {
    /// The endpoints of these leaders for the response, each once.
    pub fn endpoints(self, leaders: impl Iterator<Item = LeaderAndEpoch>) -> Vec<&'a BrokerEndpoint> {
        let mut ids: Vec<i32> = leaders.map(|leader| leader.id.0).collect();
        if ids.is_empty() {
            return Vec::new();
        }
        ids.sort_unstable();
        ids.dedup();
        let brokers = self.table.brokers_of(self.listener);
        ids.iter().filter_map(|id| brokers.iter().find(|broker| broker.id == *id)).collect()
    }
}

/// Finds a partition of a topic.
///
/// # Errors
/// `UNKNOWN_TOPIC_ID` or `UNKNOWN_TOPIC_OR_PARTITION`.
pub fn slot_of<'a>(name: &TopicRef, topic: Option<&'a Topic>, index: i32) -> Result<&'a PartitionSlot, ErrorCode> {
    match (topic, name) {
        (None, TopicRef::Id(_)) => Err(ErrorCode::UNKNOWN_TOPIC_ID),
        (None, TopicRef::Name(_)) => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (Some(topic), _) => topic.slot(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    }
}

/// The error for a partition without a replica to serve it here: its log directory failed, or this broker has no replica.
pub fn not_here(slot: &PartitionSlot) -> (ErrorCode, Option<LeaderAndEpoch>) {
    if slot.offline {
        return (ErrorCode::KAFKA_STORAGE_ERROR, None);
    }
    (ErrorCode::NOT_LEADER_OR_FOLLOWER, Some(slot.current_leader()))
}

/// The error that prevents acknowledging an append; `None` if there is none.
pub fn not_acknowledged(replica: &Partition, awaited: &Awaited) -> Option<ErrorCode> {
    match replica.standing(awaited) {
        Standing::Reached => None,
        Standing::TooFewInSync => Some(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        Standing::NotLeader => Some(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        Standing::Offline => Some(ErrorCode::KAFKA_STORAGE_ERROR),
        Standing::Waiting => Some(ErrorCode::REQUEST_TIMED_OUT),
    }
}

/// Whether clients cause this error in normal operation, or another metric counts it. Such an error is no sign of a broker
/// problem (Kafka's `ReplicaManager` leaves it out of `FailedProduceRequestsPerSec` and `FailedFetchRequestsPerSec`).
pub fn is_usual(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::NONE
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::OFFSET_OUT_OF_RANGE
            | ErrorCode::MESSAGE_TOO_LARGE
            | ErrorCode::RECORD_LIST_TOO_LARGE
            | ErrorCode::CORRUPT_MESSAGE
            | ErrorCode::KAFKA_STORAGE_ERROR
    )
}

/// Whether batches were rejected for their size (`BytesRejectedPerSec`).
pub fn is_too_large(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE)
}

/// The leader to return with an error that this broker does not lead the partition, after the request has waited (KIP-951).
pub fn leader_after(table: &TopicTable, topic: &TopicRef, response: &ProducedPartition) -> Option<LeaderAndEpoch> {
    let slot = table.find(topic)?.slot(response.index)?;
    (response.error == ErrorCode::NOT_LEADER_OR_FOLLOWER).then(|| slot.current_leader())
}

/// Sets the error of a Produce response whose append was rejected.
pub fn not_appended(hot_path: &HotPath, partition: &Partition, refused: NotAppended, response: &mut ProducedPartition) {
    let name = format!("{}-{}", partition.topic(), partition.index());
    match refused {
        NotAppended::NotLeader => response.error = ErrorCode::NOT_LEADER_OR_FOLLOWER,
        NotAppended::NotEnoughReplicas { in_sync, wanted } => {
            response.error = ErrorCode::NOT_ENOUGH_REPLICAS;
            response.error_message =
                Some(format!("{name} has {in_sync} replicas in sync; min.insync.replicas is {wanted}"));
        }
        NotAppended::Log(error) => log_refused(hot_path, partition, error, response),
    }
    if !is_usual(response.error) {
        response.log_start_offset = partition.log().log_start_offset();
    }
}

fn log_refused(hot_path: &HotPath, partition: &Partition, error: AppendError, response: &mut ProducedPartition) {
    response.error = code_of(hot_path, partition, &error);
    response.error_message = Some(format!("{}-{}: {error}", partition.topic(), partition.index()));
    if let AppendError::Invalid(invalid) = error {
        response.record_errors = invalid.record_errors();
    }
}

/// The error code of a rejected append. Reports storage failures to the control plane.
pub fn code_of(hot_path: &HotPath, partition: &Partition, error: &AppendError) -> ErrorCode {
    match error {
        AppendError::Invalid(invalid) => invalid_batch(invalid),
        AppendError::TooLarge { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
        AppendError::OutOfOrderSequence { .. } | AppendError::UnexpectedOffset { .. } => {
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
        }
        AppendError::LeaderFenced { .. } => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        AppendError::CoordinatorFenced { .. } => ErrorCode::TRANSACTION_COORDINATOR_FENCED,
        AppendError::InvalidTxnState { .. } | AppendError::NotVerified { .. } => ErrorCode::INVALID_TXN_STATE,
        AppendError::Io { .. } => {
            let (directory, error) = (partition.directory().display().to_string(), error.to_string());
            hot_path.events.push(Event::LogDirectoryFailed { directory, error });
            ErrorCode::KAFKA_STORAGE_ERROR
        }
        // Retriable: nothing was appended. Clients refresh their metadata meanwhile.
        AppendError::Exhausted { .. } => {
            hot_path.exhausted(&error.to_string());
            ErrorCode::KAFKA_STORAGE_ERROR
        }
        AppendError::Offline { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}

/// The error code of an invalid batch.
pub fn invalid_batch(invalid: &InvalidBatch) -> ErrorCode {
    match invalid {
        InvalidBatch::Corrupt(_) => ErrorCode::CORRUPT_MESSAGE,
        InvalidBatch::TooLarge { .. } | InvalidBatch::DecompressedTooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
        InvalidBatch::UnsupportedCompression(_) => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
        InvalidBatch::InvalidTimestamp { .. } => ErrorCode::INVALID_TIMESTAMP,
        InvalidBatch::UnsupportedFormat(_) | InvalidBatch::InvalidRecord { .. } => ErrorCode::INVALID_RECORD,
    }
}
