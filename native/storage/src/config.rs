//! The settings of one log, complete: every value arrives from `pybroker.config`, none is defaulted here.
//!
//! Names, units and meaning are Kafka's topic settings; the key is given beside each field.

use pybroker_record::{Compression, TimestampType};

/// Settings of a log. Changed live by [`crate::Log::set_config`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it would pass this size.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is rolled when its first record is older than this.
    pub segment_ms: i64,
    /// How much earlier than `segment_ms` this log rolls; the owner draws it from `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: preallocated size of each index file.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`: bytes of log between two index entries.
    pub index_interval_bytes: u32,
    /// `max.message.bytes`: largest record batch a client may append.
    pub max_message_bytes: usize,
    /// `compression.type`: the codec that batches are stored in; `None` leaves each in its producer's.
    pub compression: Option<Compression>,
    /// `compression.<codec>.level` of that codec; `None` is the codec's own default.
    pub compression_level: Option<i32>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// Whether a record without key is refused (`cleanup.policy` contains `compact`).
    pub require_keys: bool,
    /// `preallocate`: reserve the blocks of a whole segment when it is created, instead of step by step.
    pub preallocate: bool,
    /// `delete.retention.ms`: how long compaction keeps tombstones after it has first met them.
    pub delete_retention_ms: i64,
    /// `flush.messages`: records appended between two forced flushes.
    pub flush_messages: i64,
    /// `flush.ms`: driven from outside by [`crate::Log::flush`]; kept here for the owner.
    pub flush_ms: i64,
    /// `flush` is `group`: an append is acknowledged when a sync shared with others has covered it.
    pub flush_group: bool,
    /// `producer.id.expiration.ms`: idle time after which a producer's sequence numbers are forgotten.
    pub producer_id_expiration_ms: i64,
    /// Bound on what one compressed batch may decompress to while it is validated.
    pub max_decompressed_bytes: usize,
    /// `file.delete.delay.ms`: kept for the owner, who decides when a renamed directory is removed.
    pub file_delete_delay_ms: i64,
}

/// What the owner knows about a log before it opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLog {
    /// The log directory was left with its clean-shutdown file: nothing is scanned.
    pub clean_shutdown: bool,
    /// Everything below this offset is known to be on disk (`recovery-point-offset-checkpoint`); negative when the checkpoint
    /// was lost, and nothing is known.
    pub recovery_point: i64,
    /// First readable offset (`log-start-offset-checkpoint`); negative when the checkpoint was lost.
    pub log_start_offset: i64,
    /// Everything below this offset was committed (`replication-offset-checkpoint`), 0 where that is not known. A log that
    /// ends before it has lost acknowledged records.
    pub high_watermark: i64,
    /// Wall clock, ms since the epoch.
    pub now_ms: i64,
}
