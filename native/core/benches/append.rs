//! Appending against plain `write()` of the same bytes to the same file system, in turns in one run; and planning reads.
//!
//! `cargo bench -p pybroker-core --bench append`. Writes about 1 GiB into a temporary directory (`TMPDIR`). The first
//! turn touches memory and is not counted. Times are the thread's CPU time, as both only copy into the page cache: what
//! else runs on the machine then counts less.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use criterion::Criterion;
use pybroker_core::record::{BatchBuilder, Compression, TimestampType, set_base_offset};
use pybroker_core::storage::{Log, LogConfig, OpenLog};

const NOW: i64 = 1_700_000_000_000;
const TURNS: usize = 5;

fn config(segment_bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes,
        segment_ms: i64::MAX,
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

fn open(directory: &Path, segment_bytes: u64) -> Log {
    let how = OpenLog { clean_shutdown: true, recovery_point: 0, log_start_offset: 0, now_ms: NOW };
    Log::open(directory, config(segment_bytes), how).expect("the temporary directory takes a log").0
}

fn batch(batch_bytes: usize, record_bytes: usize) -> Vec<u8> {
    let value = vec![b'x'; record_bytes];
    let mut builder = BatchBuilder::new(Compression::None, None, batch_bytes);
    while builder.try_append(NOW, None, Some(&value), &[]).is_some() {}
    let mut bytes = Vec::new();
    builder.finish(-1, -1, -1, &mut bytes).expect("no codec");
    bytes
}

fn write_plainly(path: &Path, batch: &[u8], count: usize) -> Duration {
    let mut file: File = OpenOptions::new().create_new(true).write(true).open(path).expect("a new file");
    let begin = cpu_time();
    for _ in 0..count {
        file.write_all(black_box(batch)).expect("room for the benchmark");
    }
    cpu_time() - begin
}

fn append(directory: &Path, batch: &mut [u8], count: usize) -> Duration {
    let log = open(directory, 1 << 30);
    let begin = cpu_time();
    for _ in 0..count {
        // As a producer sends it: the log has put its own offset there.
        set_base_offset(batch, 0);
        log.append(black_box(batch), 0, NOW).expect("room for the benchmark");
    }
    cpu_time() - begin
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints gigabytes per second of both, and their ratio.
fn compare(batch_bytes: usize, record_bytes: usize, total: usize) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut batch = batch(batch_bytes, record_bytes);
    let count = total / TURNS / 2 / batch.len();
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let path = root.path().join("plain");
        plain.push(write_plainly(&path, &batch, count));
        std::fs::remove_file(&path).expect("the file just written");
        let directory = root.path().join(format!("t-{turn}"));
        ours.push(append(&directory, &mut batch, count));
        std::fs::remove_dir_all(&directory).expect("the log just written");
    }
    let speed = |time: Duration| (count * batch.len()) as f64 / time.as_secs_f64() / 1e9;
    let (plain, ours) = (speed(median(plain.split_off(1))), speed(median(ours.split_off(1))));
    println!(
        "append {:>4} KiB batches of {record_bytes:>4} B records: {ours:.2} GB/s; write() {plain:.2} GB/s; ratio {:.0} %",
        batch_bytes >> 10,
        ours / plain * 100.0,
    );
}

fn plan_read(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let log = open(root.path(), 1 << 30);
    let mut batch = batch(16 << 10, 100);
    for _ in 0..2000 {
        set_base_offset(&mut batch, 0);
        log.append(&mut batch, 0, NOW).expect("room for the benchmark");
    }
    let end = log.log_end_offset();
    let mut offset = 0;
    criterion.bench_function("plan_read: anywhere", |bencher| {
        bencher.iter(|| {
            offset = (offset + 7_919_317) % end;
            log.plan_read(black_box(offset), 1 << 20, end, true)
        });
    });
    criterion.bench_function("plan_read: at the last batch", |bencher| {
        bencher.iter(|| log.plan_read(black_box(end - 1), 1 << 20, end, true));
    });
    criterion.bench_function("plan_read: at the end", |bencher| {
        bencher.iter(|| log.plan_read(black_box(end), 1 << 20, end, true));
    });
    let mut small = self::batch(0, 10);
    criterion.bench_function("append: one record of 10 B", |bencher| {
        bencher.iter(|| {
            set_base_offset(&mut small, 0);
            log.append(black_box(&mut small), 0, NOW)
        });
    });
    let many = open(&root.path().join("many"), 1);
    for _ in 0..10_000 {
        many.append_as_follower(&numbered(&small, many.log_end_offset()), NOW).expect("room for the benchmark");
    }
    let end = many.log_end_offset();
    criterion.bench_function("plan_read: anywhere in 10,000 segments", |bencher| {
        bencher.iter(|| {
            offset = (offset + 7_919) % end;
            many.plan_read(black_box(offset), 1 << 20, end, true)
        });
    });
}

fn numbered(batch: &[u8], offset: i64) -> Vec<u8> {
    let mut bytes = batch.to_vec();
    set_base_offset(&mut bytes, offset);
    bytes
}

fn main() {
    // `cargo test --benches` runs this with another flag; only a benchmark run is meant.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    compare(1 << 20, 1024, 900 << 20);
    compare(64 << 10, 1024, 400 << 20);
    compare(1 << 20, 100, 150 << 20);
    let mut criterion =
        Criterion::default().sample_size(10).measurement_time(Duration::from_secs(1)).configure_from_args();
    plan_read(&mut criterion);
    criterion.final_summary();
}
