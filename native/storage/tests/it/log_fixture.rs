//! What the tests of the log share: settings with small segments, and batches made by the book.

use pybroker_record::{BatchBuilder, Compression, TimestampType};
use pybroker_storage::LogConfig;

/// The clock of the tests, ms.
pub const NOW: i64 = 1_700_000_000_000;

/// Small segments, few index entries: every boundary is met often.
pub fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 4000,
        segment_ms: 2500,
        segment_jitter_ms: 0,
        segment_index_bytes: 8 * 40,
        index_interval_bytes: 250,
        max_message_bytes: 4000,
        compression: None,
        compression_level: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        require_keys: false,
        preallocate: false,
        delete_retention_ms: 1000,
        flush_messages: i64::MAX,
        flush_ms: i64::MAX,
        flush_group: false,
        producer_id_expiration_ms: i64::MAX,
        max_decompressed_bytes: 1 << 20,
        file_delete_delay_ms: 0,
    }
}

/// A batch of values of these sizes by `(producer id, epoch, first sequence)`, and its records' timestamps.
pub fn build(sizes: &[usize], time: i64, producer: (i64, i16, i32), compression: Compression) -> (Vec<u8>, Vec<i64>) {
    let mut builder = BatchBuilder::new(compression, None, 1 << 20);
    let times: Vec<i64> = (0..sizes.len() as i64).map(|n| NOW + time + (n * 7919) % 13 - 5).collect();
    for (size, &time) in sizes.iter().zip(&times) {
        let value: Vec<u8> = (0..*size).map(|n| (n * 31 + size) as u8).collect();
        builder.try_append(time, Some(b"k"), Some(&value), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(producer.0, producer.1, producer.2, &mut bytes).unwrap();
    (bytes, times)
}

/// A directory in memory, where the system has one: syncs are free of a disk.
pub fn quick_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
