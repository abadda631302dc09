//! Opening many logs after a clean stop.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pybroker_record::set_base_offset;
use pybroker_storage::Log;

use super::{Failure, Measured, build_batch, config, open};

/// Opens `partitions` logs of one batch each; also prints what one of them holds of memory.
pub fn open_many(directory: &Path, partitions: u64, threads: usize) -> Result<Measured, Failure> {
    let (mut batch, _) = build_batch(100, 1024)?;
    for index in 0..partitions {
        set_base_offset(&mut batch, 0);
        let log = open(&directory.join(format!("t-{index}")), config(), true)?;
        log.append(&mut batch, 0, super::now_ms())?;
        log.close()?;
    }
    let before = resident_bytes()?;
    let next = AtomicU64::new(0);
    let work = || -> Vec<Log> {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < partitions));
        mine.filter_map(|index| open(&directory.join(format!("t-{index}")), config(), true).ok()).collect()
    };
    let begun = Instant::now();
    let logs: Vec<Log> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let took = begun.elapsed();
    if logs.len() as u64 != partitions {
        return Err(format!("{} of {partitions} logs could be opened", logs.len()).into());
    }
    let each = (resident_bytes()?.saturating_sub(before)) as f64 / 1024.0 / partitions as f64;
    Ok(Measured::new(partitions, 0, took).with("resident_kib_each", each))
}

fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}
