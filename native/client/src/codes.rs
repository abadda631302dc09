//! The error codes that a producer or fetcher meets: their names, and what to do about them.
//!
//! The whole list lives in `pybroker.protocol.errors`; here are those that decide something on the native side.

use std::fmt::Write as _;

pub const NONE: i16 = 0;
pub const OFFSET_OUT_OF_RANGE: i16 = 1;
pub const CORRUPT_MESSAGE: i16 = 2;
pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub const LEADER_NOT_AVAILABLE: i16 = 5;
pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
pub const UNSUPPORTED_VERSION: i16 = 35;
pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
pub const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
pub const INVALID_PRODUCER_EPOCH: i16 = 47;
pub const UNKNOWN_PRODUCER_ID: i16 = 59;

const NAMES: &[(i16, &str)] = &[
    (-1, "UNKNOWN_SERVER_ERROR"),
    (NONE, "NONE"),
    (OFFSET_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE"),
    (CORRUPT_MESSAGE, "CORRUPT_MESSAGE"),
    (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    (LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE"),
    (NOT_LEADER_OR_FOLLOWER, "NOT_LEADER_OR_FOLLOWER"),
    (7, "REQUEST_TIMED_OUT"),
    (8, "BROKER_NOT_AVAILABLE"),
    (9, "REPLICA_NOT_AVAILABLE"),
    (10, "MESSAGE_TOO_LARGE"),
    (13, "NETWORK_EXCEPTION"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS"),
    (15, "COORDINATOR_NOT_AVAILABLE"),
    (16, "NOT_COORDINATOR"),
    (17, "INVALID_TOPIC_EXCEPTION"),
    (18, "RECORD_LIST_TOO_LARGE"),
    (19, "NOT_ENOUGH_REPLICAS"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    (21, "INVALID_REQUIRED_ACKS"),
    (29, "TOPIC_AUTHORIZATION_FAILED"),
    (31, "CLUSTER_AUTHORIZATION_FAILED"),
    (32, "INVALID_TIMESTAMP"),
    (UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION"),
    (41, "NOT_CONTROLLER"),
    (42, "INVALID_REQUEST"),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
    (OUT_OF_ORDER_SEQUENCE_NUMBER, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (DUPLICATE_SEQUENCE_NUMBER, "DUPLICATE_SEQUENCE_NUMBER"),
    (INVALID_PRODUCER_EPOCH, "INVALID_PRODUCER_EPOCH"),
    (56, "KAFKA_STORAGE_ERROR"),
    (UNKNOWN_PRODUCER_ID, "UNKNOWN_PRODUCER_ID"),
    (70, "FETCH_SESSION_ID_NOT_FOUND"),
    (71, "INVALID_FETCH_SESSION_EPOCH"),
    (74, "FENCED_LEADER_EPOCH"),
    (75, "UNKNOWN_LEADER_EPOCH"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE"),
    (78, "OFFSET_NOT_AVAILABLE"),
    (87, "INVALID_RECORD"),
    (89, "THROTTLING_QUOTA_EXCEEDED"),
    (100, "UNKNOWN_TOPIC_ID"),
    (103, "INCONSISTENT_TOPIC_ID"),
];

/// Kafka's name of an error code.
pub fn name(code: i16) -> &'static str {
    NAMES.iter().find(|(c, _)| *c == code).map_or("error code not known to this client", |(_, n)| n)
}

/// Whether the same request may succeed later (Kafka's `RetriableException`).
pub fn is_retriable(code: i16) -> bool {
    matches!(
        code,
        2 | 3 | 5 | 6 | 7 | 8 | 9 | 13 | 14 | 15 | 16 | 19 | 20 | 41 | 56 | 70 | 71 | 74 | 75 | 78 | 89 | 100 | 103
    )
}

/// Whether the leader may be another broker by now (Kafka's `InvalidMetadataException`).
pub fn asks_for_metadata(code: i16) -> bool {
    matches!(code, 3 | 5 | 6 | 8 | 9 | 13 | 56 | 74 | 75 | 100 | 103)
}

/// A broker's own words, as the end of a sentence.
pub fn suffix(message: &Option<String>) -> String {
    let mut text = String::new();
    if let Some(message) = message {
        let _ = write!(text, ": {message}");
    }
    text
}
