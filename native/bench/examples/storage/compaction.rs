//! Compaction: one pass over a log whose records have keys drawn from so many, in batches of 16 KiB as producers send them by
//! default.

use std::path::Path;
use std::time::Instant;

use pybroker_record::{BatchBuilder, Compression};
use pybroker_storage::{CleanLimits, CleanRange, Log, Throttle};

use super::{Failure, Measured, config, now_ms, open};

const BATCH_BYTES: usize = 16 << 10;
const KEY_BYTES: usize = 16;
/// What `log.cleaner.io.buffer.size` gives one thread for reading, and for writing.
const BUFFER_BYTES: usize = 256 << 10;

/// Compacts `records` of `size` bytes, key and value together, with `map_bytes` for keys.
pub fn compact(directory: &Path, records: u64, size: usize, keys: u64, map_bytes: usize) -> Result<Measured, Failure> {
    let log = open(&directory.join("t-0"), config(), true)?;
    fill(&log, records, size, keys)?;
    log.roll(now_ms())?;
    log.flush()?;
    // Forgets what filling has needed at most.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let range = CleanRange { first_dirty: 0, first_uncleanable: log.log_end_offset() };
    let limits = CleanLimits { map_bytes, load_factor: 0.9, buffer_bytes: BUFFER_BYTES };
    let begun = Instant::now();
    let cleaned = log.clean(range, &limits, &Throttle::new(f64::MAX), now_ms())?;
    let measured = Measured::new(cleaned.records_read, cleaned.bytes_read, begun.elapsed());
    Ok(measured
        .with("index_seconds", cleaned.index_ms as f64 / 1000.0)
        .with("records_kept", cleaned.records_written as f64)
        .with("bytes_kept", cleaned.bytes_written as f64)
        .with("peak_rss_bytes", memory("VmHWM:") as f64))
}

fn fill(log: &Log, records: u64, size: usize, keys: u64) -> Result<(), Failure> {
    let mut value = vec![b'x'; size.saturating_sub(KEY_BYTES)];
    let (mut builder, mut bytes) = (BatchBuilder::new(Compression::None, None, BATCH_BYTES), Vec::new());
    let mut send = |builder: &mut BatchBuilder| -> Result<(), Failure> {
        bytes.clear();
        builder.finish(-1, -1, -1, &mut bytes)?;
        log.append(&mut bytes, 0, now_ms())?;
        Ok(())
    };
    for number in 0..records {
        let key = format!("{:0KEY_BYTES$}", mixed(number) % keys);
        let front = value.len().min(8);
        value[..front].copy_from_slice(&number.to_be_bytes()[..front]);
        while builder.try_append(now_ms(), Some(key.as_bytes()), Some(&value), &[]).is_none() {
            send(&mut builder)?;
        }
    }
    send(&mut builder)
}

/// Numbers that look drawn and are the same in every run (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A line of `/proc/self/status`, in bytes; 0 where the system has no such file.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap_or_default() * 1024
}
