//! Events upward: one queue to the control plane, woken by an eventfd on its loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::SegQueue;

use pybroker_wire::ApiKey;

/// How loud a line for the broker's log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Worth knowing, nothing is wrong with the broker.
    Info,
    /// A peer misbehaves, or something was given up.
    Warning,
    /// Something of the broker failed.
    Error,
}

/// A request that Python answers.
#[derive(Debug)]
pub struct ControlRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on it.
    pub request: u64,
    /// The API key.
    pub api_key: ApiKey,
    /// The version.
    pub api_version: i16,
    /// The correlation id, which the answer carries again.
    pub correlation_id: i32,
    /// The client id of the header.
    pub client_id: Option<String>,
    /// The listener it came in by.
    pub listener: Arc<str>,
    /// The address that the client dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// What follows the client id: for flexible versions the header's tagged fields, then the message.
    pub body: Vec<u8>,
}

/// A Produce or Fetch that names topics which the table lacks. Its connection stands still until it is retried.
#[derive(Debug)]
pub struct UnresolvedRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on it.
    pub request: u64,
    /// The API key: 0 or 1.
    pub api_key: ApiKey,
    /// Unknown topics named by name.
    pub topics: Vec<String>,
    /// Unknown topics named by id.
    pub topic_ids: Vec<[u8; 16]>,
}

/// The events that the data plane sends to the control plane.
#[derive(Debug)]
pub enum Event {
    /// A request to answer.
    Control(ControlRequest),
    /// A request to decide about by [`super::DataPlane::decide`]; its connection stands still until then.
    Intercepted(ControlRequest),
    /// A request to look at once.
    Unresolved(UnresolvedRequest),
    /// A connection that had sent control requests is gone.
    ConnectionClosed {
        /// Its number.
        connection: u64,
    },
    /// A log directory failed: what, and the system's words.
    LogDirectoryFailed {
        /// The directory.
        directory: String,
        /// Why.
        error: String,
    },
    /// Descriptors, memory or mappings have run out: an operation was refused and may be tried again.
    Exhausted {
        /// The file concerned, and the system's words.
        error: String,
    },
    /// What a coordinator appended is committed and synced, or never will be.
    AppendSettled {
        /// The number that the coordinator gave it.
        ticket: u64,
    },
    /// A log began a new segment: the ones before are due to be flushed, so that a crash finds little to recover.
    SegmentRolled {
        /// The topic.
        topic: Arc<str>,
        /// The partition's index.
        index: i32,
    },
    /// A line for the broker's log.
    Line {
        /// How loud.
        level: Level,
        /// The words.
        text: String,
    },
}

/// The queue. Any thread pushes; the control plane's loop drains.
#[derive(Debug)]
pub struct EventQueue {
    queue: SegQueue<Event>,
    /// Whether the eventfd has been written since the last drain; saves a system call for each event of a burst.
    armed: AtomicBool,
    eventfd: OwnedFd,
}

impl EventQueue {
    /// An empty queue. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let eventfd = crate::inbox::new_eventfd()?;
        Ok(Self { queue: SegQueue::new(), armed: AtomicBool::new(false), eventfd })
    }

    /// The file descriptor that is readable while events wait.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Adds an event and wakes the loop.
    pub fn push(&self, event: Event) {
        self.queue.push(event);
        self.wake();
    }

    /// Adds a line for the broker's log.
    pub fn line(&self, level: Level, text: String) {
        self.push(Event::Line { level, text });
    }

    fn wake(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            crate::inbox::signal(&self.eventfd);
        }
    }

    /// Takes up to `limit` events, oldest first. The eventfd stays readable while more wait.
    pub fn drain(&self, limit: usize) -> Vec<Event> {
        crate::inbox::clear(&self.eventfd);
        self.armed.store(false, Ordering::Release);
        let mut events = Vec::with_capacity(self.queue.len().min(limit));
        while events.len() < limit {
            let Some(event) = self.queue.pop() else { return events };
            events.push(event);
        }
        if !self.queue.is_empty() {
            self.wake();
        }
        events
    }
}
