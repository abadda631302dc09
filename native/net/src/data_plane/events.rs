//! Events upward: one queue to the control plane, woken by an eventfd on its loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::SegQueue;

use crate::connection::identity::Identity;
use crate::data_plane::api_versions::Software;
use crate::delayed_operations::verification::TransactionAsked;
use crate::measures::times::ControlSteps;
use crate::scheduling::wake_up::WakeUp;
use pybroker_record::{BrokerId, LeaderEpoch, PartitionIndex};
use pybroker_replica::Partition;
use pybroker_storage::RepairedEpochs;
use pybroker_wire::{ApiKey, TopicRef};

/// How often it is said that descriptors or memory have run out.
const EXHAUSTED_EVERY_MS: u64 = 100;
/// How often a line is logged about records that cannot be read.
const UNREADABLE_EVERY_MS: u64 = 10_000;

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

/// A request that Python answers.
#[derive(Debug)]
pub struct ControlRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on it.
    pub request: u64,
    pub api_key: ApiKey,
    pub api_version: i16,
    /// The correlation id, which the answer carries again.
    pub correlation_id: i32,
    /// The client id of the header.
    pub client_id: Option<String>,
    /// The listener it came in by.
    pub listener: Arc<str>,
    /// Who the client is; `None` while it has not said, on a listener that asks for it.
    pub identity: Option<Arc<Identity>>,
    /// The address that the client dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// What the client says that it is.
    pub software: Option<Arc<Software>>,
    /// What follows the client id: for flexible versions the header's tagged fields, then the message.
    pub body: Vec<u8>,
    /// Where it is noted when its turn comes, and when it waits.
    pub steps: Arc<ControlSteps>,
}

/// A Produce or Fetch that names topics which the table lacks, whose client is to be judged, or that begins a transaction in
/// partitions. Its connection stands still until it is retried.
#[derive(Debug)]
pub struct UnresolvedRequest {
    /// The connection's number.
    pub connection: u64,
    /// The request's number on it.
    pub request: u64,
    /// The API key: 0 or 1.
    pub api_key: ApiKey,
    /// Who the client is.
    pub identity: Option<Arc<Identity>>,
    /// The client's address.
    pub peer: SocketAddr,
    /// Unknown topics named by name.
    pub topics: Vec<String>,
    /// Unknown topics named by id.
    pub topic_ids: Vec<[u8; 16]>,
    /// The operation that the client has to have the right to, numbered as Kafka's `AclOperation`, and the topics on which;
    /// `None` where there is nothing to judge.
    pub judge: Option<(i8, Vec<TopicRef>)>,
    /// The transactional id that the client has to have the right to write as, where that is to be judged.
    pub transactional_id: Option<String>,
    /// What the coordinator of its transaction is to be asked; nothing else is to be looked at then.
    pub transaction: Option<TransactionAsked>,
}

/// A follower that has all that is committed of a partition whose leader this broker is, and is not in sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaughtUpReplica {
    pub topic_id: [u8; 16],
    pub index: PartitionIndex,
    /// The leader epoch that this is true of.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch up to which the high watermark waits for it.
    pub partition_epoch: i32,
    /// The follower.
    pub replica: BrokerId,
    /// The epoch of its registration; -1 where it does not say.
    pub broker_epoch: i64,
}

/// A certificate that a client has shown, by which it is to be named.
#[derive(Debug)]
pub struct PeerCertificate {
    /// The connection's number.
    pub connection: u64,
    /// The listener it came in by.
    pub listener: Arc<str>,
    /// The client's address.
    pub peer: SocketAddr,
    /// The certificate, DER.
    pub certificate: Vec<u8>,
}

/// A client of which the data plane does not know the quotas.
#[derive(Debug)]
pub struct QuotaAsked {
    /// The connection's number.
    pub connection: u64,
    /// Who the client is.
    pub identity: Arc<Identity>,
    /// What it calls itself; empty where it says nothing.
    pub client_id: String,
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
    /// A certificate whose owner is to be named by [`super::DataPlane::name_peer`]; its connection stands still until then.
    PeerCertificate(PeerCertificate),
    /// A client whose quotas are to be said by [`super::DataPlane::set_client_quotas`]; its connection stands still until then.
    QuotaAsked(QuotaAsked),
    /// A connection that had sent control requests is gone.
    ConnectionClosed {
        /// Its number.
        connection: u64,
    },
    /// A log directory failed: what, and the system's words.
    LogDirectoryFailed {
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
        topic: Arc<str>,
        /// The partition's index.
        index: i32,
    },
    /// The controller is to be asked to let a follower into the in-sync replicas.
    ReplicaCaughtUp(CaughtUpReplica),
    /// A follower's log starts later than before, where a deletion of records waits for that
    /// ([`pybroker_replica::Partition::await_deletion`]).
    ReplicaDeletedRecords {
        topic_id: [u8; 16],
        /// The partition's index.
        index: PartitionIndex,
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
    wake_up: WakeUp,
    /// When it was last said that descriptors or memory have run out, in milliseconds of the data plane's clock.
    exhausted_said: AtomicU64,
    unreadable_logged: AtomicU64,
}

impl EventQueue {
    /// An empty queue. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let (queue, wake_up) = (SegQueue::new(), WakeUp::new()?);
        Ok(Self { queue, wake_up, exhausted_said: AtomicU64::new(0), unreadable_logged: AtomicU64::new(0) })
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

    /// Adds a line about leader epochs that contradicted the log of a partition.
    pub fn epochs_repaired(&self, partition: &Partition, repaired: &RepairedEpochs) {
        let (topic, index) = (partition.topic(), partition.index());
        self.line(Level::Warning, format!("partition {topic}-{index}: {repaired}"));
    }

    /// Says that an operation ended for want of a descriptor or of memory; not every time, as every request may meet it.
    /// `now` is the data plane's clock.
    pub fn exhausted(&self, now: u64, error: &str) {
        if is_due(&self.exhausted_said, now, EXHAUSTED_EVERY_MS) {
            self.push(Event::Exhausted { error: error.to_owned() });
        }
    }

    /// Adds a line about records that cannot be read, at most one in [`UNREADABLE_EVERY_MS`]: consumers retry such a read.
    pub fn unreadable(&self, now: u64, text: String) {
        if is_due(&self.unreadable_logged, now, UNREADABLE_EVERY_MS) {
            self.line(Level::Error, text);
        }
    }

    /// Takes up to `limit` events, oldest first. The eventfd stays readable while more wait.
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

/// Whether the last time was at least `every` ms ago; `now` is the last time then.
fn is_due(last: &AtomicU64, now: u64, every: u64) -> bool {
    let (now, before) = (now + every, last.load(Ordering::Relaxed));
    now >= before + every && last.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
