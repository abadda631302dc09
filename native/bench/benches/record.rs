//! What a record costs on its way: varints, the checksum, building and validating batches, the codecs.
//!
//! Run: `cargo bench -p pybroker-bench`; one group: append its name.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pybroker_record::{
    BatchBuilder, Compression, HEADER_LEN, Records, TimestampType, ValidateRules, compress, crc32c, decompress,
    validate_batch, varint,
};

const RULES: ValidateRules = ValidateRules {
    max_message_bytes: 1 << 24,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: 3_600_000,
    now_ms: 1_700_000_000_000,
    require_keys: false,
    max_decompressed_bytes: 1 << 26,
};

type Bench = Criterion<CpuTime>;

/// The time that this thread has had on a processor: what others do on the machine does not count.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn end(&self, begin: Duration) -> Duration {
        self.start() - begin
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Text-like bytes that compress about as well as records do.
fn payload(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let line =
        |number: u32| format!("{{\"user\":{},\"page\":\"/item/{}\",\"ms\":{}}}", number % 977, number % 53, number);
    let mut text = String::new();
    while text.len() < size {
        text.push_str(&line(next()));
    }
    text.into_bytes()[..size].to_vec()
}

fn batch(codec: Compression, size: usize, value: &[u8]) -> (Vec<u8>, u64) {
    let mut builder = BatchBuilder::new(codec, None, size);
    while builder.try_append(RULES.now_ms, None, Some(value), &[]).is_some() {}
    let (count, mut out) = (builder.count() as u64, Vec::new());
    builder.finish(-1, -1, -1, &mut out).expect("the codec takes any bytes");
    (out, count)
}

fn varints(c: &mut Bench) {
    let mut group = c.benchmark_group("varint");
    for (name, step) in [("1 byte", 0_i64), ("2 bytes", 8), ("mixed", 1 << 21)] {
        let values: Vec<i64> = (0..1000).map(|n| 1 + n * step % (1 << 28)).collect();
        let mut bytes = Vec::new();
        values.iter().for_each(|value| varint::put_varlong(&mut bytes, *value));
        group.throughput(Throughput::Elements(values.len() as u64));
        group.bench_function(BenchmarkId::new("encode", name), |b| {
            let mut out = Vec::with_capacity(bytes.len());
            b.iter(|| {
                out.clear();
                values.iter().for_each(|value| varint::put_varlong(&mut out, *value));
                black_box(&out);
            });
        });
        group.bench_function(BenchmarkId::new("decode", name), |b| {
            b.iter(|| {
                let (mut at, mut sum) = (0, 0_i64);
                while at < bytes.len() {
                    let Ok((value, end)) = varint::varlong(black_box(&bytes), at) else { break };
                    (at, sum) = (end, sum.wrapping_add(value));
                }
                sum
            });
        });
    }
    group.finish();
}

fn checksums(c: &mut Bench) {
    let mut group = c.benchmark_group("crc32c");
    for size in [64, 1 << 10, 16 << 10, 1 << 20] {
        let bytes = payload(size);
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| b.iter(|| crc32c(black_box(&bytes))));
    }
    group.finish();
}

/// Sizes of batch and record, in bytes.
const SHAPES: [(usize, usize); 4] = [(16 << 10, 100), (1 << 20, 100), (1 << 20, 1 << 10), (1 << 20, 10)];

fn builds(c: &mut Bench) {
    let mut group = c.benchmark_group("build");
    for (size, record) in SHAPES {
        let value = payload(record);
        group.throughput(Throughput::Elements(batch(Compression::None, size, &value).1));
        group.bench_function(BenchmarkId::new(format!("{} KiB", size >> 10), format!("{record} B")), |b| {
            let mut builder = BatchBuilder::new(Compression::None, None, size);
            let mut out = Vec::new();
            b.iter(|| {
                out.clear();
                while builder.try_append(RULES.now_ms, None, Some(black_box(&value)), &[]).is_some() {}
                builder.finish(-1, -1, -1, &mut out)
            });
        });
    }
    group.finish();
}

fn validates(c: &mut Bench) {
    let mut group = c.benchmark_group("validate");
    for (size, record) in SHAPES {
        let (batch, count) = batch(Compression::None, size, &payload(record));
        group.throughput(Throughput::ElementsAndBytes { elements: count, bytes: batch.len() as u64 });
        group.bench_function(BenchmarkId::new(format!("{} KiB", size >> 10), format!("{record} B")), |b| {
            let mut scratch = Vec::new();
            b.iter(|| validate_batch(black_box(&batch), &RULES, &mut scratch));
        });
    }
    group.finish();
}

fn iterates(c: &mut Bench) {
    let mut group = c.benchmark_group("iterate");
    for (size, record) in SHAPES {
        let (batch, count) = batch(Compression::None, size, &payload(record));
        group.throughput(Throughput::Elements(count));
        group.bench_function(BenchmarkId::new(format!("{} KiB", size >> 10), format!("{record} B")), |b| {
            let section = &batch[HEADER_LEN..];
            b.iter(|| {
                let records = Records::new(black_box(section), count as i32);
                records.flatten().map(|record| record.value.map_or(0, <[u8]>::len)).sum::<usize>()
            });
        });
    }
    group.finish();
}

fn codecs(c: &mut Bench) {
    let mut group = c.benchmark_group("codec");
    let source = payload(256 << 10);
    group.throughput(Throughput::Bytes(source.len() as u64));
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let (mut packed, mut out) = (Vec::new(), Vec::new());
        compress(codec, None, &source, &mut packed).expect("the codec takes any bytes");
        group.bench_function(BenchmarkId::new("compress", format!("{codec:?}")), |b| {
            b.iter(|| {
                out.clear();
                compress(codec, None, black_box(&source), &mut out)
            });
        });
        group.bench_function(BenchmarkId::new("decompress", format!("{codec:?}")), |b| {
            b.iter(|| {
                out.clear();
                decompress(codec, black_box(&packed), source.len(), &mut out)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = record;
    config = Criterion::default().with_measurement(CpuTime).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = varints, checksums, builds, validates, iterates, codecs
}
criterion_main!(record);
