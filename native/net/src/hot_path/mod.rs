//! The hot path: Produce and Fetch from the frame to the response, without leaving the thread.
//!
//! Each API has its own file. This file has the parts that they share: the supported versions and the outcomes of a request.

pub mod errors;
mod fetch;
mod fetch_plan;
mod fetcher;
mod produce;
mod rights;
mod transactions;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};

pub use fetch::PendingFetch;
pub use produce::PendingProduce;
pub use rights::{Authorization, Right, Rights, Who};
use rights::{Checked, Refused};

use crate::connection::response::Response;
use crate::data_plane::events::EventQueue;
use crate::data_plane::settings::ReplicationSettings;
use crate::delayed_operations::verification::{TransactionQuery, Verification};
use crate::measures::counters::ThreadCounters;
use crate::quota::{Metered, Quotas, Throttle};
use crate::scheduling::clock::Clock;
use pybroker_replica::{
    FetchSessionCache, GroupFlush, Partition, ReadReplicas, ReplicationThrottle, TopicTable, Waiter,
};
use pybroker_wire::frame::RequestHead;
use pybroker_wire::{ApiKey, TopicRef};

/// Supported Produce versions.
pub const PRODUCE_VERSIONS: RangeInclusive<i16> = 0..=13;
/// Supported Fetch versions.
pub const FETCH_VERSIONS: RangeInclusive<i16> = 0..=18;

/// The state shared by the requests of all connections.
#[derive(Debug)]
pub struct HotPath {
    /// The topics, as last published.
    pub table: ArcSwap<TopicTable>,
    /// Fetch sessions of all connections.
    pub sessions: FetchSessionCache,
    /// The threads that sync the logs of `flush=group`.
    pub group_flush: GroupFlush,
    /// `fetch.max.bytes`: the most bytes in the response to one Fetch.
    pub fetch_max_bytes: usize,
    /// The replication settings; `None` before the control plane has set them.
    pub replication: ArcSwapOption<ReplicationSettings>,
    /// The leader's limit on bytes of throttled partitions for followers out of sync.
    pub leader_throttle: ReplicationThrottle,
    /// The racks by which consumers are sent to followers; `None` if consumers read from the leader only.
    pub read_replicas: ArcSwapOption<ReadReplicas>,
    /// The cached authorization decisions; unset without an authorizer, when every client may do everything.
    pub rights: OnceLock<Rights>,
    /// Whether the transaction coordinator is not queried about transactions that batches begin
    /// (`transaction.partition.verification.enable=false`).
    pub unverified_transactions: AtomicBool,
    /// The quotas of clients; unset before the control plane has set a quota.
    pub quotas: OnceLock<Quotas>,
    /// The time of appends and fetch sessions.
    pub clock: Arc<Clock>,
    /// The events to the control plane.
    pub events: Arc<EventQueue>,
}

impl HotPath {
    /// Whether followers get a new high watermark at once.
    fn is_high_watermark_eager(&self) -> bool {
        self.replication.load().as_ref().is_some_and(|settings| settings.eager_high_watermark)
    }

    /// Whether the transaction coordinator is queried before a partition joins a transaction.
    fn verifies_transactions(&self) -> bool {
        !self.unverified_transactions.load(Ordering::Acquire)
    }

    /// Authorizes a request that names topics; without an authorizer every topic is allowed.
    fn check<'a>(
        &self,
        who: Option<Who>,
        right: Right,
        table: &TopicTable,
        topics: impl Iterator<Item = &'a TopicRef>,
        decision: Option<&Authorization>,
    ) -> Checked {
        match (who, self.rights.get()) {
            (Some(who), Some(rights)) => rights::check(rights, who, right, table, topics, decision),
            _ => Checked::Known(Refused::Nothing),
        }
    }

    /// Milliseconds since 1970, for record timestamps and fetch sessions.
    pub fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// Reports that records at an offset cannot be read because their file is damaged.
    fn unreadable(&self, partition: &Partition, offset: i64, error: &str) {
        let (topic, index) = (partition.topic(), partition.index());
        let text = format!("partition {topic}-{index} cannot be read at offset {offset}: {error}");
        self.events.unreadable(self.clock.now(), text);
    }

    /// Reports that an operation failed for lack of file descriptors or memory.
    fn exhausted(&self, error: &str) {
        self.events.exhausted(self.clock.now(), error);
    }
}

/// The APIs of the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotPathApi {
    Produce,
    Fetch,
}

impl HotPathApi {
    /// The API's key.
    pub fn key(self) -> ApiKey {
        match self {
            Self::Produce => ApiKey::PRODUCE,
            Self::Fetch => ApiKey::FETCH,
        }
    }
}

/// The hot path's API for an API key; `None` for an API of the control plane.
pub fn of(api_key: ApiKey) -> Option<HotPathApi> {
    match api_key {
        ApiKey::PRODUCE => Some(HotPathApi::Produce),
        ApiKey::FETCH => Some(HotPathApi::Fetch),
        _ => None,
    }
}

/// Rejects an unsupported version. The caller closes the connection, as Kafka does: the response's format is unknown.
pub fn check_version(api: HotPathApi, version: i16) -> Result<(), String> {
    let served = match api {
        HotPathApi::Produce => PRODUCE_VERSIONS,
        HotPathApi::Fetch => FETCH_VERSIONS,
    };
    if served.contains(&version) {
        return Ok(());
    }
    Err(format!("{api:?} version {version} is not served; {} to {} are", served.start(), served.end()))
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// Send the response.
    Response(Response),
    /// Complete without a response (`acks=0`); the client may be throttled all the same.
    Silent(Throttle),
    /// The fetch waits for data.
    Wait(Box<PendingFetch>),
    /// The produce waits until its appends may be acknowledged.
    WaitForAcknowledgement(Box<PendingProduce>),
    /// The control plane has to decide first: the request names topics missing from the table, needs authorization, or
    /// begins transactions in partitions. The request is sent to Python once for each.
    Unresolved(Box<Unresolved>),
    /// Close the connection, for this reason.
    Close(String),
}

/// The open questions of a request for Python.
#[derive(Debug, Default)]
pub struct Unresolved {
    /// Topics missing from the table.
    pub unknown: Vec<TopicRef>,
    /// The right that the client needs, and on which topics; `None` if there is nothing to authorize.
    pub check: Option<(Right, Vec<TopicRef>)>,
    /// The transactional id that the client needs Write on; `None` if there is nothing to authorize.
    pub transactional_id: Option<String>,
    /// The query for the transaction coordinator, and the state for its response. The other fields are empty then.
    pub verify: Option<(TransactionQuery, Verification)>,
}

/// A request of the hot path whose header has been read.
#[derive(Debug)]
pub struct HotPathRequest<'a> {
    pub api: HotPathApi,
    pub head: &'a RequestHead,
    pub waiter: Waiter,
    /// The listener of its connection.
    pub listener: &'a str,
    /// The client, as the authorizer knows it; `None` without an authorizer.
    pub who: Option<Who>,
    /// The control plane's decision on a retried request: topics still missing from the table are unknown.
    pub decided: Option<&'a Authorization>,
    /// The transaction coordinator's response, if the coordinator has been queried.
    pub verified: Option<&'a Verification>,
    /// The usage to record against the client's quotas; `None` without quotas.
    pub metered: Option<Metered>,
}

/// Evaluates a request and its `frame`. Calls `wake` for each request that an append completes. Counts the errors of the
/// response in `counters`.
pub fn handle(
    hot_path: &HotPath,
    request: HotPathRequest<'_>,
    frame: &mut [u8],
    wake: &mut dyn FnMut(Waiter),
    counters: &ThreadCounters,
) -> Outcome {
    match request.api {
        HotPathApi::Produce => produce::handle(hot_path, request, frame, wake, counters),
        HotPathApi::Fetch => fetch::handle(hot_path, request, frame, wake, counters),
    }
}
