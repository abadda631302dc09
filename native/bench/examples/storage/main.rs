//! The speed of logs, without a broker: `storage WHAT DIRECTORY NUMBERS...` prints one line of JSON.
//!
//! Each file beside this one is a `WHAT`. Everything is made below the directory and removed again. Only what a row of
//! `make bench` names is timed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pybroker_record::{BatchBuilder, Compression, TimestampType};
use pybroker_storage::{Log, LogConfig, OpenLog};

mod append;
mod compaction;
mod group_flush;
mod opening;
mod read_plan;
mod recovery;

/// What went wrong, for a person to read.
type Failure = Box<dyn Error>;

const USAGE: &str = "usage: storage WHAT DIRECTORY NUMBERS...
  append      RECORDS SIZE BATCH_BYTES   appends as a producer sends them
  write       RECORDS SIZE BATCH_BYTES   write() of the same bytes to a new file
  behind      RECORDS SIZE GIB           appends of 16 KiB with so much log behind them (sparse files)
  compact     RECORDS SIZE KEYS MAP_BYTES  one pass over all of a log
  plan        SEGMENTS BATCHES LOOKUPS   from an offset to a slice, in a log of so many segments; beside it a bare read
  recover     BYTES BATCH_BYTES          opens a log that was left without a close
  open        PARTITIONS THREADS         opens so many logs that were closed
  flush       APPENDS SIZE WRITERS MODE  appends acknowledged: 0 at once, 1 after a shared sync, 2 after one of their own";

/// What is measured: names and values of one line of JSON.
struct Measured(Vec<(&'static str, f64)>);

impl Measured {
    /// The figures that every load has.
    fn new(records: u64, bytes: u64, took: Duration) -> Self {
        Self(vec![("records", records as f64), ("bytes", bytes as f64), ("seconds", took.as_secs_f64())])
    }

    fn with(mut self, name: &'static str, value: f64) -> Self {
        self.0.push((name, value));
        self
    }

    fn print(&self, what: &str) {
        let figures: Vec<String> = self.0.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        println!("{{\"load\": \"{what}\", {}}}", figures.join(", "));
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

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
        flush_group: false,
        producer_id_expiration_ms: 86_400_000,
        max_decompressed_bytes: 64 << 20,
        file_delete_delay_ms: 0,
    }
}

fn open(directory: &Path, config: LogConfig, clean_shutdown: bool) -> Result<Log, Failure> {
    let how = OpenLog { clean_shutdown, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: now_ms() };
    Ok(Log::open(directory, config, how)?.0)
}

/// A batch of records of `size` letters, as large as fits in `batch_bytes`, and how many those are.
fn build_batch(size: usize, batch_bytes: usize) -> Result<(Vec<u8>, u64), Failure> {
    let mut builder = BatchBuilder::new(Compression::None, None, batch_bytes);
    let (value, now_ms) = (vec![b'x'; size], now_ms());
    while builder.try_append(now_ms, None, Some(&value), &[]).is_some() {}
    let (count, mut batch) = (builder.count() as u64, Vec::new());
    builder.finish(-1, -1, -1, &mut batch)?;
    Ok((batch, count))
}

fn run(what: &str, directory: &Path, numbers: &[u64]) -> Result<Measured, Failure> {
    match (what, numbers) {
        ("append", &[records, size, batch]) => append::append(directory, records, size as usize, batch as usize),
        ("write", &[records, size, batch]) => append::write(directory, records, size as usize, batch as usize),
        ("behind", &[records, size, gib]) => append::behind(directory, records, size as usize, gib),
        ("compact", &[records, size, keys, map]) => {
            compaction::compact(directory, records, size as usize, keys, map as usize)
        }
        ("plan", &[segments, batches, lookups]) => read_plan::plan(directory, segments, batches, lookups),
        ("recover", &[bytes, batch]) => recovery::recover(directory, bytes, batch as usize),
        ("open", &[partitions, threads]) => opening::open_many(directory, partitions, threads as usize),
        ("flush", &[appends, size, writers, mode]) => group_flush::flush(directory, (appends, size, writers), mode),
        _ => Err(USAGE.into()),
    }
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, directory, numbers @ ..] = words.as_slice() else { return Err(USAGE.into()) };
    let numbers = numbers.iter().map(|word| word.parse()).collect::<Result<Vec<u64>, _>>()?;
    let place = PathBuf::from(directory).join(format!("storage-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let measured = run(what, &place, &numbers);
    std::fs::remove_dir_all(&place)?;
    measured?.print(what);
    Ok(())
}
