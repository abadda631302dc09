//! What can go wrong in the client, by meaning. Every message names the server, topic or value it is about.

use pybroker_wire::ErrorCode;

/// A failure of the client; cloned, because one batch's failure is reported for every record in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No server of the bootstrap list or of the known cluster could be reached in time.
    #[error("no broker answered at {servers} within {waited_ms} ms; last failure: {detail}")]
    Unreachable {
        /// The servers tried, comma-separated.
        servers: String,
        /// How long was waited.
        waited_ms: u64,
        /// What the last try met.
        detail: String,
    },
    /// A `host:port` that cannot be read or resolved.
    #[error("bootstrap server {server:?}: {detail}")]
    BadAddress {
        /// As it was given.
        server: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A connection ended while an answer was awaited.
    #[error("{server}: {detail}")]
    Disconnected {
        /// `host:port` of the broker.
        server: String,
        /// How it ended.
        detail: String,
    },
    /// The broker and this client do not agree on who they are; another try with the same settings ends alike.
    #[error("{server}: {detail}")]
    AuthenticationFailed {
        /// `host:port` of the broker.
        server: String,
        /// What was refused, and by whom.
        detail: String,
    },
    /// The broker serves no version of an API that this client speaks.
    #[error("{server} serves {api} in versions {theirs_min}-{theirs_max}; this client speaks {ours_min}-{ours_max}")]
    UnsupportedVersion {
        /// `host:port` of the broker.
        server: String,
        /// The API's name.
        api: &'static str,
        /// Lowest version served (-1: not served at all).
        theirs_min: i16,
        /// Highest version served.
        theirs_max: i16,
        /// Lowest version spoken.
        ours_min: i16,
        /// Highest version spoken.
        ours_max: i16,
    },
    /// An answer that cannot be read.
    #[error("{server}: unreadable {api} response: {detail}")]
    Malformed {
        /// `host:port` of the broker.
        server: String,
        /// The API's name.
        api: &'static str,
        /// Where reading stopped.
        detail: String,
    },
    /// The broker answered with an error code.
    #[error("topic {topic:?} partition {partition}: {code}{}", suffix(message))]
    Broker {
        /// Topic that the code is about (empty: about the whole request).
        topic: String,
        /// Partition, or -1.
        partition: i32,
        /// Kafka's error code.
        code: ErrorCode,
        /// The broker's own words, where it sent some.
        message: Option<String>,
    },
    /// Another leader, or the same one anew, leads a partition since it was read last.
    #[error("topic {topic:?} partition {partition} has a new leader, in epoch {epoch}")]
    NewLeader {
        topic: String,
        partition: i32,
        /// The leader's epoch.
        epoch: i32,
    },
    /// What was read of a partition is in the log no longer, and no reset says where to go on.
    #[error(
        "topic {topic:?} partition {partition}: the log differs from offset {end_offset} (leader epoch {end_epoch}) on from what was read up to {position} (leader epoch {epoch})"
    )]
    LogTruncated {
        topic: String,
        partition: i32,
        /// Where the reader stood, and the epoch of the record before it.
        position: i64,
        epoch: i32,
        /// Where the logs part.
        end_offset: i64,
        end_epoch: i32,
    },
    /// The metadata of a topic did not become known in time.
    #[error("topic {topic:?} is not known at {servers} after {waited_ms} ms: {code}")]
    UnknownTopic {
        topic: String,
        /// Where it was asked for.
        servers: String,
        /// How long was waited.
        waited_ms: u64,
        /// The last error code that the metadata held for it.
        code: ErrorCode,
    },
    /// A partition index that the topic does not have.
    #[error("topic {topic:?} has {partitions} partitions; there is no partition {partition}")]
    UnknownPartition {
        topic: String,
        /// What was asked for.
        partition: i32,
        /// How many there are.
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
        /// What the last attempt met.
        detail: String,
    },
    /// `buffer.memory` stayed full for `max.block.ms`.
    #[error("buffer.memory={limit} stayed full for max.block.ms={waited_ms}; {needed} bytes were asked for")]
    BufferFull {
        /// The bytes of one batch.
        needed: usize,
        /// The whole buffer.
        limit: usize,
        /// How long was waited.
        waited_ms: u64,
    },
    /// One record is larger than a request may be.
    #[error("topic {topic:?}: a record of {size} bytes is larger than {setting}={limit}")]
    RecordTooLarge {
        topic: String,
        /// Serialized size with overhead.
        size: usize,
        limit: usize,
        /// The setting that holds it.
        setting: &'static str,
    },
    /// A column of records to send that cannot be what it is.
    #[error("column {column:?} {found}: must be {wanted}")]
    BadColumn {
        column: String,
        /// What it is.
        found: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// A row of records to send that cannot be sent.
    #[error("row {row}: {detail}; no row of the batch was sent")]
    BadRow {
        /// Its number, from 0.
        row: usize,
        /// What is wrong with it.
        detail: String,
    },
    /// Sending the rows of a batch came to an end before the last one.
    #[error("{source}; {sent} of {rows} rows were sent")]
    PartlySent {
        /// Rows that were given to their partitions' batches.
        sent: usize,
        /// Rows in all.
        rows: usize,
        /// Why no more.
        source: Box<ClientError>,
    },
    /// A received batch that cannot be read.
    #[error("topic {topic:?} partition {partition} offset {offset}: {detail}")]
    CorruptBatch {
        topic: String,
        partition: i32,
        /// Base offset of the batch, or the offset it was fetched from.
        offset: i64,
        /// What is wrong with it.
        detail: String,
    },
    /// A batch that could not be built (a codec failed).
    #[error("topic {topic:?} partition {partition}: the batch could not be built: {detail}")]
    Unbuildable {
        topic: String,
        partition: i32,
        /// What the codec said.
        detail: String,
    },
    /// A setting's value that cannot work.
    #[error("{setting}={value}: {detail}")]
    BadSetting {
        /// Kafka's key name.
        setting: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        detail: &'static str,
    },
    /// `flush` or `close` ran out of time.
    #[error("{batches} batches still unacknowledged after {waited_ms} ms")]
    FlushTimeout {
        /// Batches not yet acknowledged or failed.
        batches: usize,
        /// How long was waited.
        waited_ms: u64,
    },
    /// A record outside of a transaction, of a producer with a transactional id.
    #[error("transactional.id={transactional_id}: {detail}")]
    NoTransaction {
        transactional_id: String,
        /// What has to come first.
        detail: &'static str,
    },
    /// The transaction was aborted before the record was sent.
    #[error("the transaction was aborted before the record was sent")]
    TransactionAborted,
    /// The transaction cannot be committed any more.
    #[error("{detail}; {}", remedy(*fatal))]
    TransactionFailed {
        /// Nor can any other transaction of this producer.
        fatal: bool,
        /// The broker's error code, or NONE.
        code: ErrorCode,
        /// What went wrong first.
        detail: String,
    },
    /// The program that embeds the client ended the wait; nothing else is wrong.
    #[error("the wait was interrupted")]
    Interrupted,
    /// The producer or fetcher was closed.
    #[error("the {what} is closed")]
    Closed {
        /// `producer` or `fetcher`.
        what: &'static str,
    },
}

/// What a program does about a transaction that has failed.
fn remedy(fatal: bool) -> &'static str {
    if fatal {
        "this producer can send nothing any more: close it"
    } else {
        "the transaction cannot be committed: abort it, then begin another"
    }
}

/// A broker's own words, as the end of a sentence.
fn suffix(message: &Option<String>) -> String {
    message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
}
