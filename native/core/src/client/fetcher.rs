//! The fetcher's face: assigned partitions in, whole received responses out. Its I/O thread is the
//! [`reader`](super::reader).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use super::config::FetcherConfig;
use super::error::ClientError;
use super::pool::BufferPool;
use super::reader::Reader;
use super::waker::{Signal, Waker};

/// Where reading of a partition starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At this offset.
    Offset(i64),
    /// At the first record of this time or later (ms), at the first offset (-2), or after the last (-1).
    Time(i64),
}

/// A partition and where to read it from.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// Where to begin.
    pub start: Start,
}

/// What the I/O thread hands over.
#[derive(Debug)]
pub struct Inbox {
    items: VecDeque<Result<Chunk, ClientError>>,
    /// Responses of which at least one chunk waits.
    responses: usize,
    /// Rises with each assignment; what was asked for under an older one is thrown away.
    pub generation: u64,
    /// An assignment that the I/O thread has not taken yet.
    pub assignment: Option<Vec<Assignment>>,
    /// Where the caller has read to.
    positions: FxHashMap<(Arc<str>, i32), Start>,
}

/// What the caller and the I/O thread share.
#[derive(Debug)]
pub struct Shared {
    pub config: FetcherConfig,
    pub inbox: Mutex<Inbox>,
    arrived: Condvar,
    /// Raised when something arrived, for an event loop.
    signal: Signal,
    pub waker: Arc<Waker>,
    pub pool: Arc<BufferPool>,
    pub closed: AtomicBool,
}

/// A reader of assigned partitions: one I/O thread, closed by `close` or when dropped.
#[derive(Debug)]
pub struct Fetcher {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Fetcher {
    /// Start the I/O thread; nothing is read before `assign`.
    pub fn new(config: FetcherConfig) -> Result<Self, ClientError> {
        config.connection.check()?;
        let failed =
            |e: std::io::Error| ClientError::Disconnected { server: "local".to_owned(), detail: e.to_string() };
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let inbox = Inbox {
            items: VecDeque::new(),
            responses: 0,
            generation: 0,
            assignment: None,
            positions: FxHashMap::default(),
        };
        // One response is being received, one is being read, the others wait.
        let pool = Arc::new(BufferPool::new(config.queued_responses + 2));
        let closed = AtomicBool::new(false);
        let shared = Arc::new(Shared {
            config,
            inbox: Mutex::new(inbox),
            arrived: Condvar::new(),
            signal: Signal::default(),
            waker,
            pool,
            closed,
        });
        let reader = Reader::new(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("pybroker-fetcher".to_owned()).spawn(move || reader.run());
        Ok(Self { shared, thread: Mutex::new(Some(thread.map_err(failed)?)) })
    }

    /// Read these partitions from now on, and no others.
    pub fn assign(&self, assignment: Vec<Assignment>) {
        let mut inbox = self.shared.inbox.lock();
        inbox.positions = assignment.iter().map(|a| ((Arc::clone(&a.topic), a.index), a.start)).collect();
        inbox.restart();
        drop(inbox);
        self.shared.waker.wake();
    }

    /// Read one assigned partition from elsewhere. Responses that wait are read again where they are still wanted.
    pub fn seek(&self, topic: &str, index: i32, start: Start) -> bool {
        let mut inbox = self.shared.inbox.lock();
        let Some(position) = inbox.positions.iter_mut().find(|((t, i), _)| **t == *topic && *i == index) else {
            return false;
        };
        *position.1 = start;
        inbox.restart();
        drop(inbox);
        self.shared.waker.wake();
        true
    }

    /// Where the caller has read to, by partition.
    pub fn positions(&self) -> Vec<Assignment> {
        let inbox = self.shared.inbox.lock();
        inbox
            .positions
            .iter()
            .map(|((topic, index), start)| Assignment { topic: Arc::clone(topic), index: *index, start: *start })
            .collect()
    }

    /// The next received batches of one partition; `None` when nothing came in time.
    pub fn next(&self, timeout: Duration) -> Result<Option<Chunk>, ClientError> {
        let deadline = Instant::now() + timeout;
        let mut inbox = self.shared.inbox.lock();
        loop {
            if let Some(item) = inbox.items.pop_front() {
                let chunk = item?;
                if chunk.last_of_response {
                    inbox.responses -= 1;
                }
                let position = inbox.positions.iter_mut().find(|((t, i), _)| *i == chunk.index && *t == chunk.topic);
                if let Some((_, start)) = position {
                    *start = Start::Offset(chunk.next_offset);
                }
                drop(inbox);
                self.shared.waker.wake();
                return Ok(Some(chunk));
            }
            if self.shared.closed.load(Ordering::Acquire) {
                return Err(ClientError::Closed { what: "fetcher" });
            }
            if self.shared.arrived.wait_until(&mut inbox, deadline).timed_out() && inbox.items.is_empty() {
                return Ok(None);
            }
        }
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

impl Inbox {
    fn restart(&mut self) {
        self.items.clear();
        self.responses = 0;
        self.generation += 1;
        let assigned = self.positions.iter();
        let mut assignment: Vec<Assignment> = assigned
            .map(|((topic, index), start)| Assignment { topic: Arc::clone(topic), index: *index, start: *start })
            .collect();
        assignment.sort_by(|a, b| (&a.topic, a.index).cmp(&(&b.topic, b.index)));
        self.assignment = Some(assignment);
    }
}

impl Shared {
    /// Whether another response may be asked for.
    pub fn has_room(&self) -> bool {
        self.inbox.lock().responses < self.config.queued_responses
    }

    fn announce(&self) {
        self.arrived.notify_one();
        self.signal.raise();
    }

    /// Hand a response's chunks over, unless they were asked for under an older assignment.
    pub fn deliver(&self, generation: u64, mut chunks: Vec<Chunk>) {
        let mut inbox = self.inbox.lock();
        let Some(last) = chunks.last_mut() else { return };
        if inbox.generation != generation {
            return;
        }
        last.last_of_response = true;
        inbox.responses += 1;
        inbox.items.extend(chunks.into_iter().map(Ok));
        drop(inbox);
        self.announce();
    }

    /// Tell the caller of a failure.
    pub fn deliver_error(&self, generation: u64, error: ClientError) {
        let mut inbox = self.inbox.lock();
        if inbox.generation == generation {
            inbox.items.push_back(Err(error));
            drop(inbox);
            self.announce();
        }
    }
}
