//! Read plans: from an offset to a slice of a file.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pybroker_core::record::{HEADER_LEN, set_base_offset};

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// Looks up offsets all over a log of `segments` segments with `batches` batches each; `pread_us` is the limit beside it:
/// what one bare read of one header of one of the same files costs, all of them open and their pages in memory.
pub fn plan(directory: &Path, segments: u64, batches: u64, lookups: u64) -> Result<Measured, Failure> {
    let home = directory.join("t-0");
    let log = open(&home, config(), true)?;
    let (mut batch, _) = build_batch(1024, SMALL)?;
    for _ in 0..segments {
        for _ in 0..batches {
            set_base_offset(&mut batch, 0);
            log.append(&mut batch, 0, now_ms())?;
        }
        log.roll(now_ms())?;
    }
    let end = log.log_end_offset();
    let mut offset = 0;
    // Every segment's file is opened with the first look into it.
    for at in (0..end).step_by(usize::try_from(end as u64 / segments / 2)?.max(1)) {
        log.plan_read(at, 1 << 20, end, true)?;
    }
    let begun = Instant::now();
    for _ in 0..lookups {
        offset = (offset + STRIDE as i64) % end;
        black_box(log.plan_read(black_box(offset), 1 << 20, end, true)?);
    }
    let took = begun.elapsed();
    drop(log);
    let pread_us = read_headers(&home, batch.len() as u64, lookups)?;
    Ok(Measured::new(lookups, 0, took)
        .with("lookup_us", took.as_secs_f64() * 1e6 / lookups as f64)
        .with("pread_us", pread_us))
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

/// Room for a few records of 1 KiB.
const SMALL: usize = 4 << 10;
/// From one look-up to the next: a prime, so that they come everywhere.
const STRIDE: u64 = 7_919_317;
/// How finely a file is divided when one of its batches is chosen.
const STRIDE_BATCHES: u64 = 12;
