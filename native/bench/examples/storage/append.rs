//! Appends: validated, given their offsets, written and indexed; and `write()` of the same bytes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use pybroker_record::crc32c;
use pybroker_storage::Log;

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// Batches of about this size are what a producer with default settings sends under load.
const SMALL_BATCH: usize = 16 << 10;

/// `seconds` counts the appends alone; `bytes` are those of the batches.
pub fn append(directory: &Path, records: u64, size: usize, batch_bytes: usize) -> Result<Measured, Failure> {
    let log = open(&directory.join("t-0"), config(), true)?;
    append_all(&log, records, size, batch_bytes)
}

fn append_all(log: &Log, records: u64, size: usize, batch_bytes: usize) -> Result<Measured, Failure> {
    let now_ms = now_ms();
    let (batch, count) = build_batch(size, batch_bytes)?;
    let mut received = batch.clone();
    let (mut appended, mut bytes, mut took) = (0, 0, Duration::ZERO);
    while appended < records {
        // A broker finds each batch fresh in its receive buffer.
        received.copy_from_slice(&batch);
        let begun = Instant::now();
        log.append(&mut received, 0, now_ms)?;
        took += begun.elapsed();
        appended += count;
        bytes += batch.len() as u64;
    }
    Ok(Measured::new(appended, bytes, took))
}

/// The batches that `append` would write, each by one `write()`, equally fresh.
pub fn write(directory: &Path, records: u64, size: usize, batch_bytes: usize) -> Result<Measured, Failure> {
    let mut file = File::create(directory.join("plain"))?;
    let (batch, count) = build_batch(size, batch_bytes)?;
    let mut received = batch.clone();
    let (mut written, mut bytes, mut took) = (0, 0, Duration::ZERO);
    while written < records {
        received.copy_from_slice(&batch);
        let begun = Instant::now();
        file.write_all(&received)?;
        took += begun.elapsed();
        written += count;
        bytes += batch.len() as u64;
    }
    Ok(Measured::new(written, bytes, took))
}

/// Appends to a log with `gib` sealed segments of a GiB each, which are holes.
pub fn behind(directory: &Path, records: u64, size: usize, gib: u64) -> Result<Measured, Failure> {
    const OFFSETS_EACH: u64 = 1 << 20;
    let place = directory.join("t-0");
    std::fs::create_dir(&place)?;
    for segment in 0..gib {
        let path = place.join(format!("{:020}.log", segment * OFFSETS_EACH));
        File::create(path)?.set_len(1 << 30)?;
    }
    let base = gib * OFFSETS_EACH;
    File::create(place.join(format!("{base:020}.log")))?;
    // The state of no producer at the last segment's base: without it opening would look for producers in the holes.
    let mut snapshot = 1_i16.to_be_bytes().to_vec();
    snapshot.extend(crc32c(&0_i32.to_be_bytes()).to_be_bytes());
    snapshot.extend(0_i32.to_be_bytes());
    std::fs::write(place.join(format!("{base:020}.snapshot")), snapshot)?;
    let log = open(&place, config(), true)?;
    append_all(&log, records, size, SMALL_BATCH)
}
