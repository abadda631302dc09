//! From meaning to Kafka's error codes: the one place of the hot path where a refusal becomes a number.

use super::super::events::Event;
use super::{HotPath, Outcome};
use pybroker_record::InvalidBatch;
use pybroker_replica::{LeaderCheck, NotAppended, Partition, PartitionSlot, TopicTable};
use pybroker_storage::AppendError;
use pybroker_wire::produce::ProducedPartition;
use pybroker_wire::{BrokerEndpoint, TopicRef};

/// Kafka's error codes, as far as the hot path gives them.
#[allow(missing_docs, reason = "the names are Kafka's own")]
pub mod code {
    pub const NONE: i16 = 0;
    pub const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    pub const REQUEST_TIMED_OUT: i16 = 7;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const RECORD_LIST_TOO_LARGE: i16 = 18;
    pub const NOT_ENOUGH_REPLICAS: i16 = 19;
    pub const INVALID_REQUIRED_ACKS: i16 = 21;
    pub const INVALID_TIMESTAMP: i16 = 32;
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub const INVALID_TXN_STATE: i16 = 48;
    pub const TRANSACTION_COORDINATOR_FENCED: i16 = 52;
    pub const KAFKA_STORAGE_ERROR: i16 = 56;
    pub const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
    pub const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
    pub const FENCED_LEADER_EPOCH: i16 = 74;
    pub const UNKNOWN_LEADER_EPOCH: i16 = 75;
    pub const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
    pub const INVALID_RECORD: i16 = 87;
    pub const UNKNOWN_TOPIC_ID: i16 = 100;
    pub const FETCH_SESSION_TOPIC_ID_ERROR: i16 = 106;
}

/// The outcome for topics that the table lacks, or `None` when there is none.
pub fn unresolved<'a>(api_key: i16, unknown: impl Iterator<Item = &'a TopicRef>) -> Option<Outcome> {
    let (mut topics, mut topic_ids) = (Vec::new(), Vec::new());
    for topic in unknown {
        match topic {
            TopicRef::Name(name) => topics.push(name.to_string()),
            TopicRef::Id(id) => topic_ids.push(*id),
        }
    }
    let any = !topics.is_empty() || !topic_ids.is_empty();
    any.then_some(Outcome::Unresolved { api_key, topics, topic_ids })
}

/// Where the leaders are that an answer names, each once.
pub fn endpoints(table: &TopicTable, leaders: impl Iterator<Item = (i32, i32)>) -> Vec<&BrokerEndpoint> {
    let mut ids: Vec<i32> = leaders.map(|(leader, _)| leader).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter().filter_map(|id| table.brokers.iter().find(|broker| broker.id == *id)).collect()
}

/// The answer for a partition without a replica to serve it here: its directory failed, or it lives elsewhere.
pub fn not_here(slot: &PartitionSlot) -> (i16, Option<(i32, i32)>) {
    if slot.offline {
        return (code::KAFKA_STORAGE_ERROR, None);
    }
    (code::NOT_LEADER_OR_FOLLOWER, Some((slot.leader, slot.leader_epoch)))
}

/// Why what was appended below `end_offset` cannot be acknowledged; `None` when it is committed.
pub fn not_committed(replica: &Partition, end_offset: i64) -> Option<i16> {
    if replica.has_committed(end_offset) {
        None
    } else if replica.check_leader(-1) == LeaderCheck::NotLeader {
        Some(code::NOT_LEADER_OR_FOLLOWER)
    } else if replica.log().is_offline() {
        Some(code::KAFKA_STORAGE_ERROR)
    } else {
        Some(code::REQUEST_TIMED_OUT)
    }
}

/// Says in a Produce answer why nothing was appended.
pub fn not_appended(hot_path: &HotPath, partition: &Partition, refused: NotAppended, answer: &mut ProducedPartition) {
    let name = format!("{}-{}", partition.topic(), partition.index());
    match refused {
        NotAppended::NotLeader => answer.error = code::NOT_LEADER_OR_FOLLOWER,
        NotAppended::NotEnoughReplicas { in_sync, wanted } => {
            answer.error = code::NOT_ENOUGH_REPLICAS;
            answer.error_message =
                Some(format!("{name} has {in_sync} replicas in sync; min.insync.replicas is {wanted}"));
        }
        NotAppended::NoTransaction => {
            answer.error = code::INVALID_TXN_STATE;
            answer.error_message =
                Some(format!("{name}: the batch is transactional, and this broker has no transactions"));
        }
        NotAppended::Log(error) => log_refused(hot_path, partition, error, answer),
    }
}

fn log_refused(hot_path: &HotPath, partition: &Partition, error: AppendError, answer: &mut ProducedPartition) {
    let text = error.to_string();
    answer.error = match error {
        AppendError::Invalid(invalid) => {
            let error = invalid_batch(&invalid);
            answer.record_errors = invalid.record_errors();
            error
        }
        AppendError::TooLarge { .. } => code::RECORD_LIST_TOO_LARGE,
        AppendError::OutOfOrderSequence { .. } | AppendError::UnexpectedOffset { .. } => {
            code::OUT_OF_ORDER_SEQUENCE_NUMBER
        }
        AppendError::InvalidProducerEpoch { .. } => code::INVALID_PRODUCER_EPOCH,
        AppendError::CoordinatorFenced { .. } => code::TRANSACTION_COORDINATOR_FENCED,
        AppendError::InvalidTxnState { .. } => code::INVALID_TXN_STATE,
        AppendError::Io { .. } => {
            let directory = partition.directory().display().to_string();
            hot_path.events.push(Event::LogDirectoryFailed { directory, error: text.clone() });
            code::KAFKA_STORAGE_ERROR
        }
        // Clients retry it, as nothing was appended, and look for another leader meanwhile.
        AppendError::Exhausted { .. } => {
            hot_path.exhausted(&text);
            code::KAFKA_STORAGE_ERROR
        }
        AppendError::Offline { .. } => code::KAFKA_STORAGE_ERROR,
    };
    answer.error_message = Some(format!("{}-{}: {text}", partition.topic(), partition.index()));
}

/// The code of what is wrong with a batch.
pub fn invalid_batch(invalid: &InvalidBatch) -> i16 {
    match invalid {
        InvalidBatch::Corrupt(_) => code::CORRUPT_MESSAGE,
        InvalidBatch::TooLarge { .. } | InvalidBatch::DecompressedTooLarge { .. } => code::MESSAGE_TOO_LARGE,
        InvalidBatch::UnsupportedCompression(_) => code::UNSUPPORTED_COMPRESSION_TYPE,
        InvalidBatch::InvalidTimestamp { .. } => code::INVALID_TIMESTAMP,
        InvalidBatch::UnsupportedFormat(_) | InvalidBatch::InvalidRecord { .. } => code::INVALID_RECORD,
    }
}
