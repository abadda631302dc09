//! The messages of other threads to a processor: a queue and the eventfd that wakes its epoll set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::SegQueue;
use rustix::event::EventfdFlags;

use super::connection::Accepted;
use super::interception::Decision;
use pybroker_replica::Waiter;

/// A message to a processor.
#[derive(Debug)]
pub enum Message {
    /// A new connection, with the slot in `max.connections` that it counts against.
    Accept(Accepted),
    /// The control plane's answer to a request: everything after the correlation id.
    Answer {
        /// Which request of which connection.
        to: Waiter,
        /// The bytes after the correlation id.
        payload: Vec<u8>,
    },
    /// The control plane keeps a request waiting for what others do.
    Hold(Waiter),
    /// A waiting fetch was satisfied.
    Wake(Waiter),
    /// An unresolved request is to be evaluated again.
    Retry(Waiter),
    /// The control plane wants a connection closed.
    Close {
        /// Its number.
        connection: u64,
    },
    /// Another processor has written to a connection and could not write all, or failed.
    Settle {
        /// Its number.
        connection: u64,
    },
    /// A connection that waited for room for its control request has it now.
    Resume {
        /// Its number.
        connection: u64,
    },
    /// A connection that waited for memory to receive a request is to try again.
    Memory {
        /// Its number.
        connection: u64,
    },
    /// Unread answers take more memory than they may: connections that hold most of it are to be closed.
    Shed,
    /// The control plane has decided about an intercepted request.
    Decide {
        /// Its connection's number.
        connection: u64,
        /// What becomes of it.
        decision: Decision,
    },
    /// Every connection is to end at once.
    CloseAll,
    /// Answer what is in work, then close everything; what is not done by then (milliseconds) is dropped.
    Stop {
        /// How long to wait for answers to be written.
        grace_ms: u64,
    },
}

/// A processor's queue of messages.
#[derive(Debug)]
pub struct Inbox {
    queue: SegQueue<Message>,
    /// Whether the eventfd has been written since the processor last looked.
    armed: AtomicBool,
    eventfd: OwnedFd,
}

impl Inbox {
    /// An empty inbox.
    pub fn new() -> io::Result<Self> {
        Ok(Self { queue: SegQueue::new(), armed: AtomicBool::new(false), eventfd: new_eventfd()? })
    }

    /// The file descriptor for the processor's epoll set.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Adds a message and wakes the processor.
    pub fn post(&self, message: Message) {
        self.push(message);
        self.wake();
    }

    /// Adds a message; the processor sees it when it is woken.
    pub fn push(&self, message: Message) {
        self.queue.push(message);
    }

    /// Wakes the processor.
    pub fn wake(&self) {
        if !self.armed.swap(true, Ordering::AcqRel) {
            signal(&self.eventfd);
        }
    }

    /// The processor has been woken: from here on a post wakes it again.
    pub fn woken(&self) {
        clear(&self.eventfd);
        self.armed.store(false, Ordering::Release);
    }

    /// The next message.
    pub fn take(&self) -> Option<Message> {
        self.queue.pop()
    }
}

/// A non-blocking eventfd.
pub fn new_eventfd() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an eventfd readable. Its counter cannot overflow with writers that arm it once a drain.
pub fn signal(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1_u64.to_ne_bytes());
}

/// Makes an eventfd unreadable.
pub fn clear(eventfd: &OwnedFd) {
    let mut counter = [0; 8];
    let _ = rustix::io::read(eventfd, &mut counter);
}
