//! Events for the control plane: one queue, which wakes the control plane's loop by an eventfd.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::SegQueue;

use crate::connection::identity::Identity;
use crate::data_plane::api_versions::Software;
use crate::delayed_operations::verification::TransactionQuery;
use crate::measures::times::ControlSteps;
use crate::scheduling::wake_up::WakeUp;
use pybroker_record::{BrokerId, LeaderEpoch, PartitionIndex};
use pybroker_replica::Partition;
use pybroker_storage::RepairedEpochs;
use pybroker_wire::{ApiKey, TopicRef};

/// Shortest time between two events about exhausted file descriptors or memory.
const EXHAUSTED_EVERY_MS: u64 = 100;
/// Shortest time between two log lines about unreadable records.
const UNREADABLE_EVERY_MS: u64 = 10_000;

/// The level of a line for the broker's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Information; the broker works as expected.
    Info,
    /// A client or a peer misbehaves, or an operation was abandoned.
    Warning,
    /// A failure of the broker.
    Error,
}

impl Level {
    /// Its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A request that Python responds to.
#[derive(Debug)]
pub struct ControlRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on this connection.
    pub request: u64,
    pub api_key: ApiKey,
    pub api_version: i16,
    /// The correlation id, which the response repeats.
    pub correlation_id: i32,
    /// The client id of the header.
    pub client_id: Option<String>,
    /// The listener of the connection.
    pub listener: Arc<str>,
    /// The client's principal; `None` before the client has authenticated.
    pub identity: Option<Arc<Identity>>,
    /// The local address of the connection.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// The client's software name and version.
    pub software: Option<Arc<Software>>,
    /// The bytes after the client id: for flexible versions the header's tagged fields, then the message.
    pub body: Vec<u8>,
    /// The recorder of the request's times: when Python begins it, and when it waits.
    pub steps: Arc<ControlSteps>,
}

/// A Produce or Fetch that names topics missing from the table, needs authorization, or begins a transaction in partitions.
/// Its connection is paused until the retry.
#[derive(Debug)]
pub struct UnresolvedRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on this connection.
    pub request: u64,
    /// The API key: 0 or 1.
    pub api_key: ApiKey,
    /// The client's principal.
    pub identity: Option<Arc<Identity>>,
    /// The client's address.
    pub peer: SocketAddr,
    /// Unknown topics named by name.
    pub topics: Vec<String>,
    /// Unknown topics named by id.
    pub topic_ids: Vec<[u8; 16]>,
    /// The operation that needs authorization, numbered as Kafka's `AclOperation`, and its topics; `None` if there is
    /// nothing to authorize.
    pub check: Option<(i8, Vec<TopicRef>)>,
    /// The transactional id that the client needs Write on; `None` if there is nothing to authorize.
    pub transactional_id: Option<String>,
    /// The query for the transaction coordinator. If set, there is nothing else to decide.
    pub transaction: Option<TransactionQuery>,
}

/// A follower that has caught up with the high watermark of a partition of which this broker is the leader, and is out of sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaughtUpReplica {
    pub topic_id: [u8; 16],
    pub index: PartitionIndex,
    /// The leader epoch in which the follower caught up.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch up to which the high watermark waits for the follower.
    pub partition_epoch: i32,
    /// The follower.
    pub replica: BrokerId,
    /// The epoch of the follower's registration; -1 if the request has none.
    pub broker_epoch: i64,
}

/// A client's TLS certificate, to be mapped to a principal.
#[derive(Debug)]
pub struct PeerCertificate {
    /// The connection's number.
    pub connection: u64,
    /// The listener of the connection.
    pub listener: Arc<str>,
    /// The client's address.
    pub peer: SocketAddr,
    /// The certificate, DER.
    pub certificate: Vec<u8>,
}

/// A client whose quotas the data plane does not know.
#[derive(Debug)]
pub struct QuotaQuery {
    /// The connection's number.
    pub connection: u64,
    /// The client's principal.
    pub identity: Arc<Identity>,
    /// The client id; empty if the request has none.
    pub client_id: String,
}

/// The events that the data plane sends to the control plane.
#[derive(Debug)]
pub enum Event {
    /// A request to respond to.
    Control(ControlRequest),
    /// A request to decide on by [`super::DataPlane::decide`]; its connection is paused until then.
    Intercepted(ControlRequest),
    /// A request that needs a decision before the hot path can continue.
    Unresolved(UnresolvedRequest),
    /// A certificate to map by [`super::DataPlane::name_peer`]; its connection is paused until then.
    PeerCertificate(PeerCertificate),
    /// A client whose quotas are to be set by [`super::DataPlane::set_client_quotas`]; its connection is paused until then.
    QuotaQuery(QuotaQuery),
    /// A connection that has sent control requests has closed.
    ConnectionClosed {
        /// Its number.
        connection: u64,
    },
    /// An operation in a log directory failed.
    LogDirectoryFailed {
        directory: String,
        /// The system's error message.
        error: String,
    },
    /// File descriptors, memory or mappings are exhausted: an operation failed and may be retried.
    Exhausted {
        /// The file concerned, and the system's error message.
        error: String,
    },
    /// A coordinator's append is committed and synced, or has failed.
    AppendCompleted {
        /// The coordinator's number for the append.
        ticket: u64,
    },
    /// A log began a new segment: the segments before should be flushed, so that a crash leaves little to recover.
    SegmentRolled {
        topic: Arc<str>,
        /// The partition's index.
        index: i32,
    },
    /// A follower has caught up: request the controller to add it to the in-sync replicas.
    ReplicaCaughtUp(CaughtUpReplica),
    /// A follower's log start offset has advanced while a DeleteRecords waits for it
    /// ([`pybroker_replica::Partition::await_deletion`]).
    ReplicaDeletedRecords {
        topic_id: [u8; 16],
        /// The partition's index.
        index: PartitionIndex,
    },
    /// A line for the broker's log.
    Line {
        /// The severity.
        level: Level,
        /// The message without its level.
        text: String,
    },
}

/// The event queue. Any thread pushes; the control plane's loop drains.
#[derive(Debug)]
pub struct EventQueue {
    queue: SegQueue<Event>,
    wake_up: WakeUp,
    /// When [`Event::Exhausted`] was last pushed, in milliseconds of the data plane's clock.
    exhausted_reported: AtomicU64,
    unreadable_logged: AtomicU64,
}

impl EventQueue {
    /// An empty queue. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let (queue, wake_up) = (SegQueue::new(), WakeUp::new()?);
        Ok(Self { queue, wake_up, exhausted_reported: AtomicU64::new(0), unreadable_logged: AtomicU64::new(0) })
    }

    /// The file descriptor that is readable while events wait.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_up.fd()
    }

    /// Adds an event and wakes the loop.
    pub fn push(&self, event: Event) {
        self.queue.push(event);
        self.wake_up.wake();
    }

    /// Adds a line for the broker's log.
    pub fn line(&self, level: Level, text: String) {
        self.push(Event::Line { level, text });
    }

    /// Logs that the leader epochs of a partition contradicted its log and were repaired.
    pub fn epochs_repaired(&self, partition: &Partition, repaired: &RepairedEpochs) {
        let (topic, index) = (partition.topic(), partition.index());
        self.line(Level::Warning, format!("partition {topic}-{index}: {repaired}"));
    }

    /// Reports that an operation failed for lack of file descriptors or memory, at most once in [`EXHAUSTED_EVERY_MS`], as
    /// every request may fail like this. `now` is the data plane's clock.
    pub fn exhausted(&self, now: u64, error: &str) {
        if is_due(&self.exhausted_reported, now, EXHAUSTED_EVERY_MS) {
            self.push(Event::Exhausted { error: error.to_owned() });
        }
    }

    /// Adds a line about unreadable records, at most one in [`UNREADABLE_EVERY_MS`]: consumers retry such a read.
    pub fn unreadable(&self, now: u64, text: String) {
        if is_due(&self.unreadable_logged, now, UNREADABLE_EVERY_MS) {
            self.line(Level::Error, text);
        }
    }

    /// Removes up to `limit` events, oldest first. The eventfd stays readable while more wait.
    pub fn drain(&self, limit: usize) -> Vec<Event> {
        self.wake_up.woken();
        let mut events = Vec::with_capacity(self.queue.len().min(limit));
        while events.len() < limit {
            let Some(event) = self.queue.pop() else { return events };
            events.push(event);
        }
        if !self.queue.is_empty() {
            self.wake_up.wake();
        }
        events
    }
}

/// Whether the last time was at least `every` ms ago; sets the last time to `now` if so.
fn is_due(last: &AtomicU64, now: u64, every: u64) -> bool {
    let (now, before) = (now + every, last.load(Ordering::Relaxed));
    now >= before + every && last.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
