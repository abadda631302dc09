//! Read plans: from an offset to a slice of a file.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pybroker_record::{HEADER_LEN, Offset, set_base_offset};
use pybroker_storage::Log;

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// Looks up offsets all over a log of `segments` segments with `batches` batches each, in three ways: `first_us` is a look-up
/// of a batch that nobody has asked for yet, `lookup_us` one of any offset once each has been asked for, and `pread_us` the
/// limit beside them: what one bare read of one header of one of the same files costs, all of them open and their pages in
/// memory.
pub fn plan(directory: &Path, segments: u64, batches: u64, lookups: u64) -> Result<Measured, Failure> {
    let home = directory.join("t-0");
    let log = open(&home, config(), true)?;
    let (mut batch, count) = build_batch(1024, SMALL)?;
    for _ in 0..segments {
        for _ in 0..batches {
            set_base_offset(&mut batch, 0);
            log.append(&mut batch, 0, now_ms())?;
        }
        log.roll(now_ms())?;
    }
    let (end, all) = (log.log_end_offset(), segments * batches);
    // Every segment's file is opened, and its index mapped, with the first look into it: at its last batch.
    for segment in 1..=segments {
        log.plan_read(Offset((segment * batches * count) as i64 - 1)..Offset(end), 1 << 20, true)?;
    }
    // In an order that no cache foresees, each batch once.
    let others = (0..all).map(|number| number * STRIDE % all).filter(|number| (number + 1) % batches > 0);
    let first = time_plans(&log, others.map(|number| number * count + number % count))?;
    let again = time_plans(&log, (0..lookups).map(|number| scatter(number) % end as u64))?;
    drop(log);
    let pread_us = read_headers(&home, batch.len() as u64, lookups)?;
    Ok(Measured::new(lookups, 0, again.0)
        .with("lookup_us", again.1)
        .with("first_us", first.1)
        .with("pread_us", pread_us))
}

/// How long it takes to plan a read at each of these offsets, and µs for one.
fn time_plans(log: &Log, offsets: impl Iterator<Item = u64>) -> Result<(Duration, f64), Failure> {
    let end = log.log_end_offset();
    let (begun, mut plans) = (Instant::now(), 0);
    for offset in offsets {
        black_box(log.plan_read(Offset(black_box(offset as i64))..Offset(end), 1 << 20, true)?);
        plans += 1;
    }
    let took = begun.elapsed();
    Ok((took, took.as_secs_f64() * 1e6 / f64::from(plans.max(1))))
}

/// Reads a header from one file after the other, in the same order as the look-ups; µs each.
fn read_headers(home: &Path, batch_bytes: u64, reads: u64) -> Result<f64, Failure> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(home)?.map(|entry| Ok(entry?.path())).collect::<Result<_, Failure>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let file = File::open(path)?;
        let batches = file.metadata()?.len() / batch_bytes;
        if batches > 0 {
            files.push((file, batches));
        }
    }
    let mut header = [0; HEADER_LEN];
    let mut at = 0;
    let begun = Instant::now();
    for _ in 0..reads {
        at = (at + STRIDE) % (files.len() as u64 * STRIDE_BATCHES);
        let (file, batches) = &files[(at / STRIDE_BATCHES) as usize];
        file.read_exact_at(&mut header, at % batches * batch_bytes)?;
        black_box(&header);
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / reads as f64)
}

/// A number that looks like chance: neither a segment nor a batch of it comes in turns.
const fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 20
}

/// Room for a few records of 1 KiB.
const SMALL: usize = 4 << 10;
/// From one look-up to the next: a prime, so that they come everywhere.
const STRIDE: u64 = 7_919_317;
/// How finely a file is divided when one of its batches is chosen.
const STRIDE_BATCHES: u64 = 12;
