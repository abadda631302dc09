//! Group commit (`flush=group`): one thread a log directory syncs what was appended, and acknowledges what it covers.
//!
//! A thread that appends asks for a sync and goes on; nobody but the directory's own thread waits for the disk. While
//! one sync runs, appends gather; the next one covers them all. A sync that failed is not tried again: its log is
//! offline, its directory is reported, and the requests that waited are woken. One that only lacked a descriptor is
//! tried again until it finds one. Threads begin with the first request for their directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::{Partition, Waiter};
use pybroker_storage::LogError;

/// How long a sync waits that has found no descriptor.
const PAUSE: Duration = Duration::from_millis(20);

/// Is called with what became of a sync.
pub trait FlushListener: Send + Sync {
    /// A thread that syncs begins; called on it.
    fn begun(&self) {}

    /// A request that waited is satisfied, or will never be.
    fn wake(&self, waiter: Waiter);

    /// A sync failed.
    fn failed(&self, directory: &Path, error: &LogError);
}

/// How much the syncs were shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Syncs of a log.
    pub syncs: u64,
    /// Requests for one: an append each.
    pub requests: u64,
}

/// The threads that sync, by log directory.
pub struct GroupFlush {
    listener: Arc<dyn FlushListener>,
    queues: RwLock<FxHashMap<PathBuf, Arc<Queue>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    requests: AtomicU64,
    syncs: Arc<AtomicU64>,
}

/// The partitions of a directory that wait to be synced, each at most once.
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
    /// Without a thread yet.
    pub fn new(listener: Arc<dyn FlushListener>) -> Self {
        Self {
            listener,
            queues: RwLock::default(),
            threads: Mutex::default(),
            requests: AtomicU64::new(0),
            syncs: Arc::default(),
        }
    }

    /// Has the partition synced soon: everything that is in its log now will be covered.
    pub fn request(&self, partition: &Arc<Partition>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if !partition.want_sync() {
            return;
        }
        let directory = partition.directory();
        let queue = self.queues.read().get(&*directory).map(Arc::clone);
        match queue.or_else(|| self.begin(&directory)) {
            Some(queue) => queue.push(Arc::clone(partition)),
            // Without a thread to do it, the caller has to wait itself.
            None => {
                if self.sync(partition).is_err() {
                    partition.wake_unacknowledged(&mut |waiter| self.listener.wake(waiter));
                }
            }
        }
    }

    /// Begins the directory's thread, unless another caller has; `None` when the system has none to give.
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

    /// Syncs on the caller's thread, and commits what that covers.
    ///
    /// # Errors
    /// As [`Partition::sync`]; the listener has been called with the error.
    pub fn sync(&self, partition: &Partition) -> Result<(), LogError> {
        sync(partition, &self.syncs, &*self.listener)
    }

    /// How much the syncs were shared so far.
    pub fn counts(&self) -> FlushCounts {
        let (syncs, requests) = (self.syncs.load(Ordering::Relaxed), self.requests.load(Ordering::Relaxed));
        FlushCounts { syncs, requests }
    }

    /// Does what is asked for and ends the threads; a later request begins its directory's thread again.
    pub fn stop(&self) {
        for (_, queue) in self.queues.write().drain() {
            queue.waiting.lock().stopped = true;
            queue.changed.notify_all();
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A thread that panicked has said so on stderr; the others are still to be joined.
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

    /// Has a partition synced again a little later; false when nobody will.
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

    /// Everything that waits, as soon as something does; `None` when there is nothing and will be nothing.
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
