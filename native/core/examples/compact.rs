//! How fast a log is compacted, without a broker: `compact DIRECTORY RECORDS SIZE KEYS MAP_BYTES` prints one line of JSON.
//!
//! Appends records of SIZE bytes, key and value together, whose keys are drawn from KEYS, in batches of 16 KiB as producers
//! send them by default; then one pass cleans all of it. Only the pass is timed, `peak_rss_bytes` is the process's largest
//! memory during it. The log is made below the directory and removed.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use pybroker_core::record::{BatchBuilder, Compression, TimestampType};
use pybroker_core::storage::{CleanLimits, CleanRange, Cleaned, Log, LogConfig, OpenLog, Throttle};

const BATCH_BYTES: usize = 16 << 10;
const KEY_BYTES: usize = 16;
const NOW_MS: i64 = 1_700_000_000_000;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 30,
        segment_ms: i64::MAX,
        segment_jitter_ms: 0,
        segment_index_bytes: 10 << 20,
        index_interval_bytes: 4096,
        max_message_bytes: 2 << 20,
        compression: None,
        compression_level: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        require_keys: true,
        preallocate: false,
        delete_retention_ms: 86_400_000,
        flush_messages: i64::MAX,
        flush_ms: i64::MAX,
        flush_group: false,
        producer_id_expiration_ms: 86_400_000,
        max_decompressed_bytes: 64 << 20,
        file_delete_delay_ms: 0,
    }
}

/// Numbers that look drawn and are the same in every run (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn fill(log: &Log, records: u64, size: usize, keys: u64) -> Result<(), Box<dyn Error>> {
    let mut value = vec![b'x'; size.saturating_sub(KEY_BYTES)];
    let (mut builder, mut bytes) = (BatchBuilder::new(Compression::None, None, BATCH_BYTES), Vec::new());
    let mut finish = |builder: &mut BatchBuilder| -> Result<(), Box<dyn Error>> {
        bytes.clear();
        builder.finish(-1, -1, -1, &mut bytes)?;
        log.append(&mut bytes, 0, NOW_MS)?;
        Ok(())
    };
    for number in 0..records {
        let key = format!("{:0KEY_BYTES$}", mixed(number) % keys);
        let front = value.len().min(8);
        value[..front].copy_from_slice(&number.to_be_bytes()[..front]);
        while builder.try_append(NOW_MS, Some(key.as_bytes()), Some(&value), &[]).is_none() {
            finish(&mut builder)?;
        }
    }
    finish(&mut builder)
}

/// A line of `/proc/self/status`, in bytes; 0 where the system has no such file.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap_or_default() * 1024
}

fn run(
    directory: &Path,
    records: u64,
    size: usize,
    keys: u64,
    map_bytes: usize,
) -> Result<(Cleaned, f64, u64), Box<dyn Error>> {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, now_ms: NOW_MS };
    let (log, _) = Log::open(directory, config(), how)?;
    fill(&log, records, size, keys)?;
    log.roll(NOW_MS)?;
    log.flush()?;
    // Forgets what filling has needed at most.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let range = CleanRange { first_dirty: 0, first_uncleanable: log.log_end_offset() };
    let limits = CleanLimits { map_bytes, load_factor: 0.9, buffer_bytes: 256 << 10 };
    let begun = Instant::now();
    let cleaned = log.clean(range, &limits, &Throttle::new(f64::MAX), NOW_MS)?;
    Ok((cleaned, begun.elapsed().as_secs_f64(), memory("VmHWM:")))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, directory, records, size, keys, map_bytes] = words.as_slice() else {
        return Err("usage: compact DIRECTORY RECORDS SIZE KEYS MAP_BYTES".into());
    };
    let directory = Path::new(directory).join(format!("compact-{}-0", std::process::id()));
    let result = run(&directory, records.parse()?, size.parse()?, keys.parse()?, map_bytes.parse()?);
    std::fs::remove_dir_all(&directory)?;
    let (cleaned, seconds, peak) = result?;
    println!(
        "{{\"load\": \"compact\", \"records\": {}, \"bytes\": {}, \"seconds\": {seconds:.6}, \"index_seconds\": {:.3}, \
         \"records_kept\": {}, \"bytes_kept\": {}, \"peak_rss_bytes\": {peak}}}",
        cleaned.records_read,
        cleaned.bytes_read,
        cleaned.index_ms as f64 / 1000.0,
        cleaned.records_written,
        cleaned.bytes_written
    );
    Ok(())
}
