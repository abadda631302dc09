//! The hot path: Produce and Fetch from the frame to the answer, without leaving the thread.
//!
//! Each API has its own file. What they share is here: which versions are served, and what can become of a request.

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
use rights::{Judged, Refused};
pub use rights::{Right, Rights, Verdict, Who};

use crate::connection::response::Response;
use crate::data_plane::events::EventQueue;
use crate::data_plane::settings::ReplicationSettings;
use crate::delayed_operations::verification::{TransactionAsked, Verification};
use crate::measures::counters::ThreadCounters;
use crate::quota::{Metered, Quotas, Throttle};
use crate::scheduling::clock::Clock;
use pybroker_replica::{
    FetchSessionCache, GroupFlush, Partition, ReadReplicas, ReplicationThrottle, TopicTable, Waiter,
};
use pybroker_wire::frame::RequestHead;
use pybroker_wire::{ApiKey, TopicRef};

/// Produce versions that the hot path answers.
pub const PRODUCE_VERSIONS: RangeInclusive<i16> = 0..=13;
/// Fetch versions that the hot path answers.
pub const FETCH_VERSIONS: RangeInclusive<i16> = 0..=18;

/// What the requests of all connections are worked on with.
#[derive(Debug)]
pub struct HotPath {
    /// The topics as last published.
    pub table: ArcSwap<TopicTable>,
    /// Fetch sessions of all connections.
    pub sessions: FetchSessionCache,
    /// Who syncs the logs whose appends are acknowledged together.
    pub group_flush: GroupFlush,
    /// `fetch.max.bytes`: the most that one Fetch is answered with.
    pub fetch_max_bytes: usize,
    /// How brokers replicate; none before the control plane has said it.
    pub replication: ArcSwapOption<ReplicationSettings>,
    /// What followers that are not in sync may be sent of throttled partitions.
    pub leader_throttle: ReplicationThrottle,
    /// Where consumers are sent that are of another rack; none where the leader alone is read from.
    pub read_replicas: ArcSwapOption<ReadReplicas>,
    /// What clients may do, as far as it is remembered; none without an authorizer, where everybody may do everything.
    pub rights: OnceLock<Rights>,
    /// Whether no producer is asked for the transactions that its batches begin
    /// (`transaction.partition.verification.enable=false`).
    pub unverified_transactions: AtomicBool,
    /// What clients may use; none before the control plane has named a quota.
    pub quotas: OnceLock<Quotas>,
    /// The time of appends and fetch sessions.
    pub clock: Arc<Clock>,
    /// The way up.
    pub events: Arc<EventQueue>,
}

impl HotPath {
    /// Whether followers learn at once what is committed.
    fn is_high_watermark_eager(&self) -> bool {
        self.replication.load().as_ref().is_some_and(|settings| settings.eager_high_watermark)
    }

    /// Whether the coordinator of a transaction is asked before a partition takes part in it.
    fn verifies_transactions(&self) -> bool {
        !self.unverified_transactions.load(Ordering::Acquire)
    }

    /// Judges a request that names topics; without an authorizer nothing is refused.
    fn judge<'a>(
        &self,
        who: Option<Who>,
        right: Right,
        table: &TopicTable,
        topics: impl Iterator<Item = &'a TopicRef>,
        verdict: Option<&Verdict>,
    ) -> Judged {
        match (who, self.rights.get()) {
            (Some(who), Some(rights)) => rights::judge(rights, who, right, table, topics, verdict),
            _ => Judged::Known(Refused::Nothing),
        }
    }

    /// Milliseconds since 1970, for record timestamps and fetch sessions.
    pub fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    /// Reports that records cannot be read at an offset, as their file is damaged.
    fn unreadable(&self, partition: &Partition, offset: i64, error: &str) {
        let (topic, index) = (partition.topic(), partition.index());
        let text = format!("partition {topic}-{index} cannot be read at offset {offset}: {error}");
        self.events.unreadable(self.clock.now(), text);
    }

    /// Says that an operation ended for want of a descriptor or of memory.
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

/// Whether an API key stays on the hot path.
pub fn of(api_key: ApiKey) -> Option<HotPathApi> {
    match api_key {
        ApiKey::PRODUCE => Some(HotPathApi::Produce),
        ApiKey::FETCH => Some(HotPathApi::Fetch),
        _ => None,
    }
}

/// Refuses a version that is not served; Kafka closes the connection then, as the answer's format is unknown.
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

/// What becomes of a request.
#[derive(Debug)]
pub enum Outcome {
    /// It is answered.
    Answer(Response),
    /// It is done and wants no answer (`acks=0`); its client is to wait all the same.
    Silent(Throttle),
    /// It waits for data.
    Wait(Box<PendingFetch>),
    /// It waits until what it appended may be acknowledged.
    WaitForAcknowledgement(Box<PendingProduce>),
    /// It names topics that the table lacks, or that nobody has said whether its client may use, or it begins transactions in
    /// partitions: Python looks at it once for each.
    Unresolved(Box<Unresolved>),
    /// The connection has to be closed, and why.
    Close(String),
}

/// What Python is to look at.
#[derive(Debug, Default)]
pub struct Unresolved {
    /// Topics that the table lacks.
    pub unknown: Vec<TopicRef>,
    /// The right that the client needs, and the topics on which; `None` where there is nothing to judge.
    pub judge: Option<(Right, Vec<TopicRef>)>,
    /// The transactional id that the client has to have the right to write as, where that is to be judged.
    pub transactional_id: Option<String>,
    /// What the coordinator of a transaction is to be asked, and what its answers are for. Then nothing else is looked at.
    pub verify: Option<(TransactionAsked, Verification)>,
}

/// A request of the hot path whose head has been read.
#[derive(Debug)]
pub struct HotPathRequest<'a> {
    pub api: HotPathApi,
    pub head: &'a RequestHead,
    pub waiter: Waiter,
    /// By which listener it came.
    pub listener: &'a str,
    /// Who asks; `None` where there is no authorizer that would be asked.
    pub who: Option<Who>,
    /// What the control plane has said where it has looked already: topics still unknown are answered as unknown.
    pub decided: Option<&'a Verdict>,
    /// What the coordinator of its transaction has said where it was asked already.
    pub verified: Option<&'a Verification>,
    /// What of it counts for its client's quotas; `None` where it has none.
    pub metered: Option<Metered>,
}

/// Works on a request and its `frame`. `wake` is called with what an append satisfies; errors of the
/// answer go to `counters`.
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
