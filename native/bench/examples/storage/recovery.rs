//! Recovery: opening a log that was left without a close, its pages still in memory.

use std::path::Path;
use std::time::Instant;

use pybroker_record::set_base_offset;

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// Scans `bytes` of batches of about `batch_bytes`, in one thread.
pub fn recover(directory: &Path, bytes: u64, batch_bytes: usize) -> Result<Measured, Failure> {
    let place = directory.join("t-0");
    let log = open(&place, config(), true)?;
    let (mut batch, count) = build_batch(1024, batch_bytes)?;
    let (mut written, mut records) = (0, 0);
    while written < bytes {
        set_base_offset(&mut batch, 0);
        log.append(&mut batch, 0, now_ms())?;
        written += batch.len() as u64;
        records += count;
    }
    let end = log.log_end_offset();
    drop(log);
    let begun = Instant::now();
    let log = open(&place, config(), false)?;
    let took = begun.elapsed();
    if log.log_end_offset() != end {
        return Err(format!("the log ended at {end}, and ends at {} now", log.log_end_offset()).into());
    }
    Ok(Measured::new(records, written, took))
}
