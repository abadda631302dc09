//! How fast a log takes batches, without a broker: `append DIRECTORY RECORDS SIZE` prints one line of JSON.
//!
//! Appends batches of about 1 MiB as a producer sends them: each is validated, gets its offsets, is written and indexed. Only
//! the appends are timed. The log is made below the directory and removed.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pybroker_core::record::{BatchBuilder, Compression, TimestampType};
use pybroker_core::storage::{Log, LogConfig, OpenLog};

const BATCH_BYTES: usize = 1 << 20;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 30,
        segment_ms: 604_800_000,
        segment_jitter_ms: 0,
        segment_index_bytes: 10 << 20,
        index_interval_bytes: 4096,
        max_message_bytes: 2 << 20,
        compression: None,
        compression_level: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        require_keys: false,
        preallocate: false,
        delete_retention_ms: 86_400_000,
        flush_messages: i64::MAX,
        flush_ms: i64::MAX,
        producer_id_expiration_ms: 86_400_000,
        max_decompressed_bytes: 64 << 20,
        file_delete_delay_ms: 0,
    }
}

/// A batch of records of `size` letters, as large as fits in `BATCH_BYTES`.
fn build_batch(size: usize, now_ms: i64) -> Result<(Vec<u8>, i32), Box<dyn Error>> {
    let mut builder = BatchBuilder::new(Compression::None, None, BATCH_BYTES);
    let value = vec![b'x'; size];
    while builder.try_append(now_ms, None, Some(&value), &[]).is_some() {}
    let (count, mut batch) = (builder.count(), Vec::new());
    builder.finish(-1, -1, -1, &mut batch)?;
    Ok((batch, count))
}

fn append_all(directory: &Path, records: u64, size: usize) -> Result<(u64, Duration), Box<dyn Error>> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, now_ms };
    let (log, _) = Log::open(directory, config(), how)?;
    let (batch, count) = build_batch(size, now_ms)?;
    let mut received = batch.clone();
    let (mut appended, mut took) = (0, Duration::ZERO);
    while appended < records {
        // A broker finds each batch fresh in its receive buffer.
        received.copy_from_slice(&batch);
        let begun = Instant::now();
        log.append(&mut received, 0, now_ms)?;
        took += begun.elapsed();
        appended += count as u64;
    }
    Ok((appended, took))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, directory, records, size] = words.as_slice() else {
        return Err("usage: append DIRECTORY RECORDS SIZE".into());
    };
    let (records, size): (u64, usize) = (records.parse()?, size.parse()?);
    let directory = Path::new(directory).join(format!("append-{}-0", std::process::id()));
    let result = append_all(&directory, records, size);
    std::fs::remove_dir_all(&directory)?;
    let (appended, took) = result?;
    let bytes = appended * size as u64;
    println!(
        "{{\"load\": \"append\", \"records\": {appended}, \"bytes\": {bytes}, \"seconds\": {:.6}}}",
        took.as_secs_f64()
    );
    Ok(())
}
