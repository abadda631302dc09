//! Group commit (`flush=group`): one thread per log directory syncs appended records and completes the requests that
//! wait for them.
//!
//! An append requests a sync and continues; only the directory's own thread waits for the disk. While a sync runs,
//! more appends collect, and the next sync covers them all. A failed sync is not retried: the log goes offline, the
//! directory failure is reported, and waiting requests are woken. A sync that lacked a file descriptor is retried
//! until it finds one. A thread starts with the first request for its directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::{Partition, Waiter};
use pybroker_storage::LogError;

/// Delay before a sync that found no file descriptor is retried.
const PAUSE: Duration = Duration::from_millis(20);

/// Receives the results of syncs.
pub trait FlushListener: Send + Sync {
    /// A sync thread has started. Called on that thread.
    fn begun(&self) {}

    /// A waiting request is satisfied, or can never be.
    fn wake(&self, waiter: Waiter);

    /// A sync failed.
    fn failed(&self, directory: &Path, error: &LogError);
}

/// The ratio of sync requests to syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Number of syncs.
    pub syncs: u64,
    /// Number of sync requests, one per append.
    pub requests: u64,
}

/// The sync threads, by log directory.
pub struct GroupFlush {
    listener: Arc<dyn FlushListener>,
    queues: RwLock<FxHashMap<PathBuf, Arc<Queue>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    requests: AtomicU64,
    syncs: Arc<AtomicU64>,
}

/// The partitions of a directory that wait for a sync, each at most once.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    partitions: Vec<Arc<Partition>>,
    stopped: bool,
}

impl GroupFlush {
    /// Creates an instance without threads.
    pub fn new(listener: Arc<dyn FlushListener>) -> Self {
        Self {
            listener,
            queues: RwLock::default(),
            threads: Mutex::default(),
            requests: AtomicU64::new(0),
            syncs: Arc::default(),
        }
    }

    /// Requests a sync of the partition. It covers all records that are in the log at this call.
    pub fn request(&self, partition: &Arc<Partition>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if !partition.want_sync() {
            return;
        }
        let directory = partition.directory();
        let queue = self.queues.read().get(&*directory).map(Arc::clone);
        match queue.or_else(|| self.begin(&directory)) {
            Some(queue) => queue.push(Arc::clone(partition)),
            // Without a sync thread, the caller must sync itself.
            None => {
                if self.sync(partition).is_err() {
                    partition.wake_unacknowledged(&mut |waiter| self.listener.wake(waiter));
                }
            }
        }
    }

    /// Starts the directory's thread, unless it runs already; `None` when the system cannot create one.
    fn begin(&self, directory: &Path) -> Option<Arc<Queue>> {
        let mut queues = self.queues.write();
        if let Some(queue) = queues.get(directory) {
            return Some(Arc::clone(queue));
        }
        let queue = Arc::new(Queue::default());
        let (own, syncs, listener) = (Arc::clone(&queue), Arc::clone(&self.syncs), Arc::clone(&self.listener));
        let run = move || {
            listener.begun();
            while let Some(partitions) = own.take() {
                for partition in partitions {
                    let exhausted = sync(&partition, &syncs, &*listener).is_err_and(|error| error.is_exhausted());
                    if exhausted && !own.put_off(&partition) {
                        partition.wake_unacknowledged(&mut |waiter| listener.wake(waiter));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("flush-{}", queues.len())).spawn(run).ok()?;
        self.threads.lock().push(thread);
        queues.insert(directory.to_path_buf(), Arc::clone(&queue));
        Some(queue)
    }

    /// Syncs the partition on the caller's thread, and advances the high watermark.
    ///
    /// # Errors
    /// As [`Partition::sync`]. The listener has received the error.
    pub fn sync(&self, partition: &Partition) -> Result<(), LogError> {
        sync(partition, &self.syncs, &*self.listener)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> FlushCounts {
        let (syncs, requests) = (self.syncs.load(Ordering::Relaxed), self.requests.load(Ordering::Relaxed));
        FlushCounts { syncs, requests }
    }

    /// Completes pending syncs and stops the threads. A later request starts its directory's thread again.
    pub fn stop(&self) {
        for (_, queue) in self.queues.write().drain() {
            queue.waiting.lock().stopped = true;
            queue.changed.notify_all();
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panicked thread has printed its panic on stderr. The others must still be joined.
            let _ = thread.join();
        }
    }
}

impl Drop for GroupFlush {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for GroupFlush {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("GroupFlush").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Queue {
    fn push(&self, partition: Arc<Partition>) {
        self.waiting.lock().partitions.push(partition);
        self.changed.notify_one();
    }

    /// Requests another sync of a partition after a delay. Returns false if the queue is stopped.
    fn put_off(&self, partition: &Arc<Partition>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.stopped {
            return false;
        }
        if partition.want_sync() {
            waiting.partitions.push(Arc::clone(partition));
        }
        self.changed.wait_for(&mut waiting, PAUSE);
        true
    }

    /// Returns all waiting partitions, and waits for the first one; `None` when the queue is empty and stopped.
    fn take(&self) -> Option<Vec<Arc<Partition>>> {
        let mut waiting = self.waiting.lock();
        while waiting.partitions.is_empty() {
            if waiting.stopped {
                return None;
            }
            self.changed.wait(&mut waiting);
        }
        Some(std::mem::take(&mut waiting.partitions))
    }
}

fn sync(partition: &Partition, syncs: &AtomicU64, listener: &dyn FlushListener) -> Result<(), LogError> {
    syncs.fetch_add(1, Ordering::Relaxed);
    let synced = partition.sync(&mut |waiter| listener.wake(waiter));
    synced.inspect_err(|error| listener.failed(&partition.directory(), error))
}

#[cfg(test)]
#[path = "group_flush_tests.rs"]
mod tests;
