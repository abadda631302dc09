//! The fetcher's face: assigned partitions in, whole received responses out. Its I/O thread is the
//! [`reader`].

mod answers;
pub mod chunk;
pub mod chunk_walk;
pub mod cursor;
pub mod inbox;
mod part;
pub mod reader;
pub mod received;
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
    /// Start the I/O thread; nothing is read before `assign`.
    pub fn new(config: FetcherConfig) -> Result<Self, ClientError> {
        config.connection.check()?;
        let failed =
            |e: std::io::Error| ClientError::Disconnected { server: "local".to_owned(), detail: e.to_string() };
        let waker = Arc::new(Waker::new().map_err(failed)?);
        // One response is being received, one is being read, the others wait.
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

    /// Read these partitions from now on, and no others.
    pub fn assign(&self, assignment: Vec<Assignment>) {
        self.change(|inbox| {
            inbox.clear();
            inbox.add(assignment);
        });
    }

    /// Read these partitions too.
    pub fn add(&self, assignment: Vec<Assignment>) {
        self.change(|inbox| inbox.add(assignment));
    }

    /// Read these partitions no longer.
    pub fn remove(&self, partitions: &[(Arc<str>, i32)]) {
        self.change(|inbox| inbox.remove(partitions));
    }

    /// Read one assigned partition from another position; false when it is not assigned.
    pub fn seek(&self, topic: &str, index: i32, start: Start) -> bool {
        self.change(|inbox| inbox.seek(&(topic.into(), index), start))
    }

    /// Go back to the batch of a chunk that cannot be read, so that what lies behind it is not passed over. Nothing happens
    /// where the caller has sought another position meanwhile.
    pub fn seek_to_corrupt_batch(&self, chunk: &Chunk, damage: &ClientError) {
        if let ClientError::CorruptBatch { offset, .. } = damage {
            self.change(|inbox| inbox.seek_within(chunk, chunk.position.max(*offset)));
        }
    }

    /// Hand out one assigned partition no longer, or again; false when it is not assigned.
    pub fn pause(&self, topic: &str, index: i32, paused: bool) -> bool {
        self.change(|inbox| inbox.pause(&(topic.into(), index), paused))
    }

    /// Where the caller has read one partition to; `None` when it is not assigned.
    pub fn position(&self, topic: &str, index: i32) -> Option<Start> {
        self.shared.inbox.lock().position(&(topic.into(), index))
    }

    /// Leader epoch of the last batch before the caller's position; -1 where nothing was read up to it, or not known.
    pub fn epoch(&self, topic: &str, index: i32) -> i32 {
        self.shared.inbox.lock().epoch(&(topic.into(), index))
    }

    /// Where the caller has read to, by partition.
    pub fn positions(&self) -> Vec<Assignment> {
        self.shared.inbox.lock().positions()
    }

    /// By partition, how many records lie between what was handed out and the end that its last response named.
    pub fn lags(&self) -> Vec<((Arc<str>, i32), u64)> {
        self.shared.inbox.lock().behind()
    }

    fn change<T>(&self, how: impl FnOnce(&mut Inbox) -> T) -> T {
        let outcome = how(&mut self.shared.inbox.lock());
        self.shared.waker.wake();
        outcome
    }

    /// The next received batches of one partition; `None` when nothing came in time.
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

    /// So many records of a chunk were handed out.
    pub fn consumed(&self, records: usize) {
        self.shared.counters.add(Total::Records, records as u64);
    }

    /// A descriptor that is readable when `next` may have something; `clear_signal` before asking.
    pub fn arrived_descriptor(&self) -> std::io::Result<std::os::fd::RawFd> {
        self.shared.signal.descriptor()
    }

    /// What arrived is about to be taken.
    pub fn clear_signal(&self) {
        self.shared.signal.clear();
    }

    /// End the I/O thread.
    pub fn close(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.shared.closed.store(true, Ordering::Release);
        self.shared.arrived.notify_all();
        self.shared.waker.wake();
        // A panic in the thread was already reported by the panic hook.
        let _ = thread.join();
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.close();
    }
}
