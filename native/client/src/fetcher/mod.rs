//! The fetcher's interface: assigned partitions in, whole received responses out. Its I/O thread is the [`reader`].

pub mod chunk;
pub mod chunk_walk;
pub mod cursor;
pub mod inbox;
mod part;
pub mod reader;
pub mod received;
mod responses;
pub mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use self::chunk::Chunk;
use self::inbox::{Assignment, Inbox, Start};
use self::reader::Reader;
use self::state::FetcherState;
use crate::config::FetcherConfig;
use crate::counters::{Counters, Total};
use crate::error::ClientError;
use crate::network::pool::BufferPool;
use crate::network::waker::{Signal, Waker};
use crate::wait::wait_until;

/// A reader of assigned partitions: one I/O thread, closed by `close` or when dropped.
#[derive(Debug)]
pub struct Fetcher {
    pub(crate) shared: Arc<FetcherState>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Fetcher {
    /// Start the I/O thread; it reads nothing before `assign`.
    pub fn new(config: FetcherConfig) -> Result<Self, ClientError> {
        config.connection.check()?;
        let failed =
            |e: std::io::Error| ClientError::Disconnected { server: "local".to_owned(), detail: e.to_string() };
        let waker = Arc::new(Waker::new().map_err(failed)?);
        // One response is being received, one is being read by the caller, the others wait.
        let pool = Arc::new(BufferPool::new(config.queued_responses + 2));
        let (window, samples) = (config.connection.metrics_sample_window, config.connection.metrics_num_samples);
        let counters = Arc::new(Counters::new(window, samples));
        let closed = AtomicBool::new(false);
        let shared = Arc::new(FetcherState {
            config,
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            signal: Signal::default(),
            waker,
            pool,
            counters,
            closed,
            refusal: Mutex::new(None),
        });
        let reader = Reader::new(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("pybroker-fetcher".to_owned()).spawn(move || reader.run());
        Ok(Self { shared, thread: Mutex::new(Some(thread.map_err(failed)?)) })
    }

    /// Read these partitions, and no others.
    pub fn assign(&self, assignment: Vec<Assignment>) {
        self.change(|inbox| {
            inbox.clear();
            inbox.add(assignment);
        });
    }

    /// Add partitions.
    pub fn add(&self, assignment: Vec<Assignment>) {
        self.change(|inbox| inbox.add(assignment));
    }

    /// Stop reading these partitions.
    pub fn remove(&self, partitions: &[(Arc<str>, i32)]) {
        self.change(|inbox| inbox.remove(partitions));
    }

    /// Move one assigned partition to another position; false if it is not assigned.
    pub fn seek(&self, topic: &str, index: i32, start: Start) -> bool {
        self.change(|inbox| inbox.seek(&(topic.into(), index), start))
    }

    /// Move back to the invalid batch of a chunk, so that the records behind the batch are not skipped. Does nothing if the
    /// caller has moved the partition meanwhile.
    pub fn seek_to_corrupt_batch(&self, chunk: &Chunk, damage: &ClientError) {
        if let ClientError::CorruptBatch { offset, .. } = damage {
            self.change(|inbox| inbox.seek_within(chunk, chunk.position.max(*offset)));
        }
    }

    /// Pause or resume one assigned partition; false if it is not assigned.
    pub fn pause(&self, topic: &str, index: i32, paused: bool) -> bool {
        self.change(|inbox| inbox.pause(&(topic.into(), index), paused))
    }

    /// The caller's position in one partition; `None` if it is not assigned.
    pub fn position(&self, topic: &str, index: i32) -> Option<Start> {
        self.shared.inbox.lock().position(&(topic.into(), index))
    }

    /// Leader epoch of the last batch before the caller's position; -1 if nothing was read, or the epoch is unknown.
    pub fn epoch(&self, topic: &str, index: i32) -> i32 {
        self.shared.inbox.lock().epoch(&(topic.into(), index))
    }

    /// The caller's positions, by partition.
    pub fn positions(&self) -> Vec<Assignment> {
        self.shared.inbox.lock().positions()
    }

    /// By partition, the number of records between the last batch returned and the end that its response contained.
    pub fn lags(&self) -> Vec<((Arc<str>, i32), u64)> {
        self.shared.inbox.lock().behind()
    }

    fn change<T>(&self, how: impl FnOnce(&mut Inbox) -> T) -> T {
        let outcome = how(&mut self.shared.inbox.lock());
        self.shared.waker.wake();
        outcome
    }

    /// The next received batches of one partition; `None` if none arrived within the timeout.
    pub fn next(&self, timeout: Duration) -> Result<Option<Chunk>, ClientError> {
        let deadline = Instant::now() + timeout;
        let mut inbox = self.shared.inbox.lock();
        loop {
            if let Some(outcome) = inbox.next() {
                drop(inbox);
                self.shared.waker.wake();
                if let Ok(chunk) = &outcome {
                    self.shared.counters.add(Total::RecordBytes, chunk.range.len() as u64);
                }
                return outcome.map(Some);
            }
            if self.shared.closed.load(Ordering::Acquire) {
                return Err(ClientError::Closed { what: "fetcher" });
            }
            if let Some(refusal) = self.shared.refusal.lock().clone() {
                return Err(refusal);
            }
            if wait_until(&self.shared.arrived, &mut inbox, deadline)? && inbox.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Count records of a chunk that the caller has consumed.
    pub fn consumed(&self, records: usize) {
        self.shared.counters.add(Total::Records, records as u64);
    }

    /// A descriptor that is readable when `next` may have batches; call `clear_signal` before `next`.
    pub fn arrived_descriptor(&self) -> std::io::Result<std::os::fd::RawFd> {
        self.shared.signal.descriptor()
    }

    /// Clear the signal, before the caller reads what has arrived.
    pub fn clear_signal(&self) {
        self.shared.signal.clear();
    }

    /// End the I/O thread.
    pub fn close(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.shared.closed.store(true, Ordering::Release);
        self.shared.arrived.notify_all();
        self.shared.waker.wake();
        // The panic hook has reported a panic in the thread.
        let _ = thread.join();
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.close();
    }
}
