//! The settings of one log. `pybroker.config` provides every value; there are no defaults here.
//!
//! Names, units and meaning are those of Kafka's topic settings; each field names its key.

use pybroker_record::{Compression, TimestampType};

/// Settings of a log, which [`crate::Log::set_config`] can change at runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it would pass this size.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is rolled when its first record is older than this.
    pub segment_ms: i64,
    /// How much earlier than `segment_ms` this log rolls. The caller draws it from `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: preallocated size of each index file.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: bytes of log between two index entries.
    pub index_interval_bytes: u32,
    /// `max.message.bytes`: largest record batch a client may append.
    pub max_message_bytes: usize,
    /// `compression.type`: the codec of stored batches; `None` keeps each producer's codec.
    pub compression: Option<Compression>,
    /// `compression.<codec>.level` of that codec; `None` for the codec's own default.
    pub compression_level: Option<i32>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// Whether a record without a key is rejected (`cleanup.policy` contains `compact`).
    pub require_keys: bool,
    /// `preallocate`: reserve the blocks of a whole segment when it is created, instead of step by step.
    pub preallocate: bool,
    /// `delete.retention.ms`: how long a tombstone stays after compaction has first read it.
    pub delete_retention_ms: i64,
    /// `flush.messages`: records appended between two forced flushes.
    pub flush_messages: i64,
    /// `flush.ms`: stored for the caller, which calls [`crate::Log::flush`].
    pub flush_ms: i64,
    /// `flush` is `group`: an append is acknowledged after a sync that it shares with other appends.
    pub flush_group: bool,
    /// `producer.id.expiration.ms`: idle time after which a producer's sequence numbers are forgotten.
    pub producer_id_expiration_ms: i64,
    /// The most bytes that one compressed batch may decompress to during validation.
    pub max_decompressed_bytes: usize,
    /// `file.delete.delay.ms`: stored for the caller, which deletes renamed directories.
    pub file_delete_delay_ms: i64,
}

/// The state of a log that the caller knows before it opens the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLog {
    /// Whether the log directory has a clean-shutdown file. Then nothing is scanned.
    pub clean_shutdown: bool,
    /// All records below this offset are on the device (`recovery-point-offset-checkpoint`). Negative when the
    /// checkpoint is missing.
    pub recovery_point: i64,
    /// First readable offset (`log-start-offset-checkpoint`); negative when the checkpoint is missing.
    pub log_start_offset: i64,
    /// All records below this offset were committed (`replication-offset-checkpoint`); 0 when unknown. A log that
    /// ends below it has lost acknowledged records.
    pub high_watermark: i64,
    /// Wall clock, ms since the epoch.
    pub now_ms: i64,
}
