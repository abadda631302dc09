//! The errors of the client, by meaning. Every message contains the server, topic or value of the error.

use pybroker_wire::ErrorCode;

/// A failure of the client; cloned, because the failure of one batch is reported for each of its records.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No bootstrap server and no known broker could be reached in time.
    #[error("no broker answered at {servers} within {waited_ms} ms; last failure: {detail}")]
    Unreachable {
        /// The servers tried, comma-separated.
        servers: String,
        /// The time waited.
        waited_ms: u64,
        /// The last failure.
        detail: String,
    },
    /// A `host:port` that cannot be parsed or resolved.
    #[error("bootstrap server {server:?}: {detail}")]
    BadAddress {
        /// The value in the list of servers.
        server: String,
        /// The reason.
        detail: String,
    },
    /// A connection ended before the response to a request.
    #[error("{server}: {detail}")]
    Disconnected {
        /// `host:port` of the broker.
        server: String,
        /// The reason.
        detail: String,
    },
    /// Authentication of the broker or of the client failed; another attempt with the same settings fails too.
    #[error("{server}: {detail}")]
    AuthenticationFailed {
        /// `host:port` of the broker.
        server: String,
        /// The rejected credential, and the rejecting side.
        detail: String,
    },
    /// The broker supports no version of an API that this client supports.
    #[error("{server} serves {api} in versions {theirs_min}-{theirs_max}; this client speaks {ours_min}-{ours_max}")]
    UnsupportedVersion {
        /// `host:port` of the broker.
        server: String,
        /// The API's name.
        api: &'static str,
        /// The broker's lowest version (-1: the broker does not support the API).
        theirs_min: i16,
        /// The broker's highest version.
        theirs_max: i16,
        /// The client's lowest version.
        ours_min: i16,
        /// The client's highest version.
        ours_max: i16,
    },
    /// A response that cannot be parsed.
    #[error("{server}: unreadable {api} response: {detail}")]
    Malformed {
        /// `host:port` of the broker.
        server: String,
        /// The API's name.
        api: &'static str,
        /// Where parsing failed.
        detail: String,
    },
    /// The broker returned an error code.
    #[error("topic {topic:?} partition {partition}: {code}{}", suffix(message))]
    Broker {
        /// The topic of the error (empty: the whole request).
        topic: String,
        /// Partition, or -1.
        partition: i32,
        /// Kafka's error code.
        code: ErrorCode,
        /// The broker's error message, if there is one.
        message: Option<String>,
    },
    /// A partition has a new leader epoch since it was last read.
    #[error("topic {topic:?} partition {partition} has a new leader, in epoch {epoch}")]
    NewLeader {
        topic: String,
        partition: i32,
        /// The leader epoch.
        epoch: i32,
    },
    /// The records read from a partition were truncated from the log, and no reset policy applies.
    #[error(
        "topic {topic:?} partition {partition}: the log differs from offset {end_offset} (leader epoch {end_epoch}) on from what was read up to {position} (leader epoch {epoch})"
    )]
    LogTruncated {
        topic: String,
        partition: i32,
        /// The position of the reader, and the epoch of the record before it.
        position: i64,
        epoch: i32,
        /// The offset and epoch at which the logs diverge.
        end_offset: i64,
        end_epoch: i32,
    },
    /// The metadata of a topic did not become known in time.
    #[error("topic {topic:?} is not known at {servers} after {waited_ms} ms: {code}")]
    UnknownTopic {
        topic: String,
        /// The servers that were queried.
        servers: String,
        /// The time waited.
        waited_ms: u64,
        /// The last error code of the topic in the metadata.
        code: ErrorCode,
    },
    /// A partition index that the topic does not have.
    #[error("topic {topic:?} has {partitions} partitions; there is no partition {partition}")]
    UnknownPartition {
        topic: String,
        /// The requested partition.
        partition: i32,
        /// The number of partitions.
        partitions: usize,
    },
    /// A batch was not acknowledged within `delivery.timeout.ms`.
    #[error(
        "topic {topic:?} partition {partition}: {records} records not acknowledged within delivery.timeout.ms={timeout_ms}; last failure: {detail}"
    )]
    DeliveryTimeout {
        topic: String,
        partition: i32,
        /// Records in the batch that expired.
        records: u32,
        /// The limit.
        timeout_ms: u64,
        /// The last failure.
        detail: String,
    },
    /// `buffer.memory` stayed full for `max.block.ms`.
    #[error("buffer.memory={limit} stayed full for max.block.ms={waited_ms}; {needed} bytes were asked for")]
    BufferFull {
        /// The bytes of one batch.
        needed: usize,
        /// The whole buffer.
        limit: usize,
        /// The time waited.
        waited_ms: u64,
    },
    /// One record exceeds the size limit of a request.
    #[error("topic {topic:?}: a record of {size} bytes is larger than {setting}={limit}")]
    RecordTooLarge {
        topic: String,
        /// Serialized size with overhead.
        size: usize,
        limit: usize,
        /// The setting with the limit.
        setting: &'static str,
    },
    /// A column of records to send that has a wrong type or value.
    #[error("column {column:?} {found}: must be {wanted}")]
    BadColumn {
        column: String,
        /// The type or value that was found.
        found: String,
        /// The expected type or value.
        wanted: &'static str,
    },
    /// A row of records to send that is invalid.
    #[error("row {row}: {detail}; no row of the batch was sent")]
    BadRow {
        /// The row's number, from 0.
        row: usize,
        /// The reason.
        detail: String,
    },
    /// Sending the rows of a batch failed before the last one.
    #[error("{source}; {sent} of {rows} rows were sent")]
    PartlySent {
        /// Rows that were added to their partitions' batches.
        sent: usize,
        /// All rows.
        rows: usize,
        /// The reason.
        source: Box<ClientError>,
    },
    /// A received batch that cannot be parsed.
    #[error("topic {topic:?} partition {partition} offset {offset}: {detail}")]
    CorruptBatch {
        topic: String,
        partition: i32,
        /// Base offset of the batch, or the offset it was fetched from.
        offset: i64,
        /// The reason.
        detail: String,
    },
    /// A batch that could not be built: its codec failed.
    #[error("topic {topic:?} partition {partition}: the batch could not be built: {detail}")]
    Unbuildable {
        topic: String,
        partition: i32,
        /// The codec's error.
        detail: String,
    },
    /// An invalid value of a setting.
    #[error("{setting}={value}: {detail}")]
    BadSetting {
        /// Kafka's key name.
        setting: &'static str,
        /// The rejected value.
        value: String,
        /// The expected value.
        detail: &'static str,
    },
    /// `flush` or `close` timed out.
    #[error("{batches} batches still unacknowledged after {waited_ms} ms")]
    FlushTimeout {
        /// Batches not yet acknowledged or failed.
        batches: usize,
        /// The time waited.
        waited_ms: u64,
    },
    /// A record outside of a transaction, sent by a producer with a transactional id.
    #[error("transactional.id={transactional_id}: {detail}")]
    NoTransaction {
        transactional_id: String,
        /// The step that the caller must do first.
        detail: &'static str,
    },
    /// The transaction was aborted before the record was sent.
    #[error("the transaction was aborted before the record was sent")]
    TransactionAborted,
    /// The transaction cannot be committed any more.
    #[error("{detail}; {}", remedy(*fatal))]
    TransactionFailed {
        /// Every later transaction of this producer fails too.
        fatal: bool,
        /// The broker's error code, or NONE.
        code: ErrorCode,
        /// The first failure.
        detail: String,
    },
    /// The embedding program interrupted the wait; there is no other error.
    #[error("the wait was interrupted")]
    Interrupted,
    /// The producer or fetcher was closed.
    #[error("the {what} is closed")]
    Closed {
        /// `producer` or `fetcher`.
        what: &'static str,
    },
}

/// The step that a program must do after a failed transaction.
fn remedy(fatal: bool) -> &'static str {
    if fatal {
        "this producer can send nothing any more: close it"
    } else {
        "the transaction cannot be committed: abort it, then begin another"
    }
}

/// A broker's error message, as the end of a sentence.
fn suffix(message: &Option<String>) -> String {
    message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
}
