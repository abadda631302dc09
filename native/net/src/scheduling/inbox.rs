//! The messages of other threads to a processor: a queue and the eventfd that wakes its epoll set.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crossbeam_queue::SegQueue;

use crate::accepting::accepted::Accepted;
use crate::connection::identity::Identity;
use crate::delayed_operations::interception::Decision;
use crate::delayed_operations::verification::Verified;
use crate::hot_path::Authorization;
use crate::quota::ClientLimits;
use crate::scheduling::wake_up::WakeUp;
use pybroker_replica::Waiter;

/// A message to a processor.
#[derive(Debug)]
pub enum Message {
    /// A new connection, with the slot in `max.connections` that it counts against.
    Accept(Accepted),
    /// The control plane's response to a control request.
    Response {
        /// The connection and the request.
        to: Waiter,
        /// The bytes after the correlation id.
        payload: Vec<u8>,
    },
    /// The same. The connection closes after this response.
    LastResponse {
        /// The connection and the request.
        to: Waiter,
        /// The bytes after the correlation id.
        payload: Vec<u8>,
    },
    /// The response to a control request waits for other clients; the request frees its slot of `queued.max.requests`.
    Hold(Waiter),
    /// A waiting request can complete.
    Wake(Waiter),
    /// An unresolved request is to be evaluated again.
    Retry {
        /// The connection and the request.
        waiter: Waiter,
        /// The topics that its client may use.
        decision: Authorization,
    },
    /// The transaction coordinator's response for an unresolved request.
    Verified {
        /// The connection and the request.
        waiter: Waiter,
        /// The result of each partition in the query.
        responses: Vec<Verified>,
    },
    /// Close a connection.
    Close {
        /// Its number.
        connection: u64,
    },
    /// Another thread has written to a connection. The owner has to write the rest or to handle the error.
    Complete {
        /// Its number.
        connection: u64,
    },
    /// A slot for control requests has become free for a connection that waited for one.
    Resume {
        /// Its number.
        connection: u64,
    },
    /// A connection that waited for memory to receive a request tries again.
    Memory {
        /// Its number.
        connection: u64,
    },
    /// Unread responses exceed their memory limit: close the connections that use most.
    Shed,
    /// The control plane has mapped the certificate of a connection to a principal.
    Named {
        /// The connection's number.
        connection: u64,
        /// The principal.
        identity: Arc<Identity>,
    },
    /// The control plane has returned the quotas of a connection's client.
    Quotas {
        /// The connection's number.
        connection: u64,
        /// The version of the quotas that these limits are from.
        version: u64,
        /// The client's limits.
        limits: ClientLimits,
    },
    /// The control plane has decided on an intercepted request.
    Decide {
        /// Its connection's number.
        connection: u64,
        /// Whether and how to execute the request.
        decision: Decision,
    },
    /// A listener was closed: each of its connections ends when its requests in work are complete.
    CloseListener(Arc<str>),
    /// Orders for the thread of this processor have arrived (`processor::threads`).
    Orders,
    /// Close every connection at once.
    CloseAll,
    /// Complete the requests in work, then close every connection. After the grace period the rest is dropped.
    Stop {
        /// The grace period, ms.
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

    /// Adds a message without waking the processor.
    pub fn push(&self, message: Message) {
        self.queue.push(message);
    }

    /// Wakes the processor.
    pub fn wake(&self) {
        self.wake_up.wake();
    }

    /// Records that the processor is awake: the next post wakes it again.
    pub fn woken(&self) {
        self.wake_up.woken();
    }

    /// The next message.
    pub fn take(&self) -> Option<Message> {
        self.queue.pop()
    }
}
