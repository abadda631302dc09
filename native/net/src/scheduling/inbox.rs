//! The messages of other threads to a processor: a queue and the eventfd that wakes its epoll set.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crossbeam_queue::SegQueue;

use crate::accepting::accepted::Accepted;
use crate::connection::identity::Identity;
use crate::delayed_operations::interception::Decision;
use crate::delayed_operations::verification::Verified;
use crate::hot_path::Verdict;
use crate::quota::ClientLimits;
use crate::scheduling::wake_up::WakeUp;
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
    /// The same, after which the connection ends.
    LastAnswer {
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
    Retry {
        /// Which request of which connection.
        waiter: Waiter,
        /// Which of its topics its client may use.
        verdict: Verdict,
    },
    /// The coordinator of an unresolved request's transaction has answered.
    Verified {
        /// Which request of which connection.
        waiter: Waiter,
        /// Of each partition that was asked for.
        answers: Vec<Verified>,
    },
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
    /// It is known whose the certificate of a connection is.
    Named {
        /// The connection's number.
        connection: u64,
        /// Whose.
        identity: Arc<Identity>,
    },
    /// It is known what quotas the client of a connection has.
    Quotas {
        /// The connection's number.
        connection: u64,
        /// Of the quotas by which that was decided.
        version: u64,
        /// The client's.
        limits: ClientLimits,
    },
    /// The control plane has decided about an intercepted request.
    Decide {
        /// Its connection's number.
        connection: u64,
        /// What becomes of it.
        decision: Decision,
    },
    /// A listener was closed: its connections end, each when what it has in work is answered.
    CloseListener(Arc<str>),
    /// The thread of this processor has orders (`processor::threads`).
    Orders,
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
    wake_up: WakeUp,
}

impl Inbox {
    /// An empty inbox.
    pub fn new() -> io::Result<Self> {
        Ok(Self { queue: SegQueue::new(), wake_up: WakeUp::new()? })
    }

    /// The file descriptor for the processor's epoll set.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_up.fd()
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
        self.wake_up.wake();
    }

    /// The processor has been woken: from here on a post wakes it again.
    pub fn woken(&self) {
        self.wake_up.woken();
    }

    /// The next message.
    pub fn take(&self) -> Option<Message> {
        self.queue.pop()
    }
}
