//! Appends that are acknowledged after a sync, by writers that wait for each; and the same without.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};
use pybroker_replica::{FlushListener, GroupFlush, Leadership, Partition, Waiter, WaitingProduce};
use pybroker_storage::LogError;

use super::{Failure, Measured, build_batch, config, now_ms, open};

/// A batch that carries about this much is one append.
const BATCH_BYTES: usize = 16 << 10;

/// Writers by number, and who of them may go on.
struct Writers(Vec<(Mutex<bool>, Condvar)>);

impl Writers {
    fn wait(&self, writer: usize) {
        let (acknowledged, changed) = &self.0[writer];
        let mut acknowledged = acknowledged.lock();
        while !std::mem::take(&mut *acknowledged) {
            changed.wait(&mut acknowledged);
        }
    }
}

impl FlushListener for Writers {
    fn wake(&self, waiter: Waiter) {
        let (acknowledged, changed) = &self.0[waiter.connection as usize];
        *acknowledged.lock() = true;
        changed.notify_one();
    }

    fn failed(&self, directory: &Path, error: &LogError) {
        eprintln!("{}: {error}", directory.display());
        std::process::abort();
    }
}

/// `appends` in all, by `writers` threads; `mode` 0 acknowledges at once, 1 after a shared sync, 2 after each one's own.
pub fn flush(directory: &Path, (appends, size, writers): (u64, u64, u64), mode: u64) -> Result<Measured, Failure> {
    let mut config = config();
    config.flush_group = mode == 1;
    config.flush_messages = if mode == 2 { 1 } else { i64::MAX };
    let log = open(&directory.join("t-0"), config, true)?;
    let partition = Arc::new(Partition::new("t".into(), 0, [1; 16], directory.to_path_buf(), log, 0));
    partition.become_leader(Leadership::alone(0), now_ms(), &mut |_| ())?;
    let waiting = Arc::new(Writers((0..writers).map(|_| Default::default()).collect()));
    let group = GroupFlush::new(Arc::clone(&waiting) as Arc<dyn FlushListener>);
    let (batch, _) = build_batch(size as usize, BATCH_BYTES)?;
    let left = AtomicU64::new(appends);
    let latencies = Mutex::new(Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..writers as usize {
            let (left, latencies, waiting) = (&left, &latencies, &waiting);
            let (partition, group, mut batch) = (&partition, &group, batch.clone());
            scope.spawn(move || {
                let mut own = Vec::new();
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let begun = Instant::now();
                    append(partition, group, waiting, (writer, &mut batch));
                    own.push(begun.elapsed());
                }
                let mut latencies = latencies.lock();
                own.into_iter().for_each(|took| latencies.saturating_record(took.as_nanos() as u64));
            });
        }
    });
    let took = begun.elapsed();
    Ok(measured((appends, batch.len()), took, &latencies.into_inner(), &group))
}

fn append(partition: &Arc<Partition>, group: &GroupFlush, writers: &Writers, (writer, batch): (usize, &mut [u8])) {
    pybroker_record::set_base_offset(batch, 0);
    let produced = partition.append(batch, true, now_ms(), &mut |_| ()).expect("a disk with room");
    let Some(awaited) = produced.awaited else { return };
    group.request(partition);
    let produce = WaitingProduce::new(Waiter { connection: writer as u64, request: 0 }, awaited.waits());
    partition.await_acknowledgement(&awaited, &produce, &mut |waiter| writers.wake(waiter));
    writers.wait(writer);
}

fn measured(
    (appends, bytes): (u64, usize),
    took: Duration,
    latencies: &Histogram<u64>,
    group: &GroupFlush,
) -> Measured {
    let counts = group.counts();
    let milliseconds = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e6;
    Measured::new(appends, appends * bytes as u64, took)
        .with("acknowledged_p50_ms", milliseconds(0.5))
        .with("acknowledged_p99_ms", milliseconds(0.99))
        .with("batches_per_sync", counts.requests as f64 / counts.syncs.max(1) as f64)
}
