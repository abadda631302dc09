//! Read plans: from an offset to a slice of a file.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use pybroker_core::record::set_base_offset;

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// Looks up offsets all over a log of `segments` segments with `batches` batches each.
pub fn plan(directory: &Path, segments: u64, batches: u64, lookups: u64) -> Result<Measured, Failure> {
    let log = open(&directory.join("t-0"), config(), true)?;
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
        offset = (offset + 7_919_317) % end;
        black_box(log.plan_read(black_box(offset), 1 << 20, end, true)?);
    }
    let took = begun.elapsed();
    Ok(Measured::new(lookups, 0, took).with("lookup_us", took.as_secs_f64() * 1e6 / lookups as f64))
}

/// Room for a few records of 1 KiB.
const SMALL: usize = 4 << 10;
