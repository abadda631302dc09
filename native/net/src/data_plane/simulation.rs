//! A broker's data plane without sockets, threads and a clock of its own, driven by the simulation of whole clusters.
//!
//! Owns the hot path and the fetchers of one broker, and the waiting requests. Frames are passed as bytes and time as an
//! argument. Nothing happens between two calls. Must not know the simulated network between brokers. Compiled only with the
//! feature `simulation` (docs/adr/0047).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::connection::response::Response;
use crate::data_plane::events::{Event, EventQueue};
use crate::delayed_operations::verification::{TransactionQuery, Verification, Verified};
use crate::hot_path::{self, Authorization, HotPath, HotPathRequest, Outcome, PendingFetch, PendingProduce};
use crate::measures::counters::Counters;
use crate::scheduling::clock::Clock;
use pybroker_replica::{
    BrokerId, FetchSessionCache, FetcherSettings, FlushListener, FollowerListener, FollowerNotice, Following,
    GroupFlush, Partition, PartitionKey, REPLICA_FETCH_VERSION, ReplicaFetcher, ReplicationThrottle, Role,
    ThrottleLimit, TopicTable, Waiter,
};
use pybroker_storage::LogError;
use pybroker_wire::ApiKey;
use pybroker_wire::frame::{NewRequest, RequestHead, finish_request};
use pybroker_wire::primitives::Malformed;

/// The listener of all requests.
const LISTENER: &str = "PLAINTEXT";

/// Bytes of the size in front of a frame, which simulated frames do not have.
const SIZE: usize = 4;

/// The outcome of a request.
#[derive(Debug)]
pub enum Served {
    /// The response's frame, from the correlation id on.
    Response(Vec<u8>),
    /// The request has no response.
    Silent,
    /// The request waits under this number.
    Waits(u64),
    /// The connection is closed, for this reason.
    Closed(String),
}

#[derive(Debug)]
enum Pending {
    Fetch(Box<PendingFetch>),
    Produce(Box<PendingProduce>),
}

/// The hot path and the fetchers of one simulated broker.
#[derive(Debug)]
pub struct SimulatedDataPlane {
    hot_path: HotPath,
    counters: Counters,
    fetchers: BTreeMap<BrokerId, ReplicaFetcher>,
    /// The fetch state of each partition that this broker follows.
    followed: BTreeMap<PartitionKey, Following>,
    settings: FetcherSettings,
    waiting: BTreeMap<u64, Pending>,
    /// Requests that can complete and have no response yet.
    woken: BTreeSet<u64>,
    requests: u64,
    /// Requests that wait for their transactions' coordinators, by number.
    unverified: BTreeMap<u64, (Vec<u8>, Verification)>,
    /// The queries for these coordinators.
    questions: Vec<(u64, TransactionQuery)>,
}

impl SimulatedDataPlane {
    /// A data plane that follows no leader and has no topics.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new(settings: FetcherSettings, fetch_max_bytes: usize, session_slots: usize) -> io::Result<Self> {
        let hot_path = HotPath {
            table: ArcSwap::default(),
            sessions: FetchSessionCache::new(session_slots, i64::MAX),
            group_flush: GroupFlush::new(Arc::new(NoThreads)),
            fetch_max_bytes,
            replication: ArcSwapOption::empty(),
            leader_throttle: ReplicationThrottle::new(ThrottleLimit::NONE),
            read_replicas: ArcSwapOption::empty(),
            rights: OnceLock::new(),
            unverified_transactions: AtomicBool::new(false),
            quotas: OnceLock::new(),
            clock: Arc::new(Clock::standing_still()),
            events: Arc::new(EventQueue::new()?),
        };
        Ok(Self {
            hot_path,
            counters: Counters::new(1),
            fetchers: BTreeMap::new(),
            followed: BTreeMap::new(),
            settings,
            waiting: BTreeMap::new(),
            woken: BTreeSet::new(),
            requests: 0,
            unverified: BTreeMap::new(),
            questions: Vec::new(),
        })
    }

    /// Sets the time.
    pub fn set_time(&self, now_ms: i64) {
        self.hot_path.clock.set(now_ms);
    }

    /// The time.
    pub fn now_ms(&self) -> i64 {
        self.hot_path.wall_ms()
    }

    /// Sets the epoch of the broker's registration.
    pub fn set_broker_epoch(&mut self, broker_epoch: i64) {
        self.settings.broker_epoch = broker_epoch;
        self.fetchers.values_mut().for_each(|fetcher| fetcher.set_settings(self.settings));
    }

    /// Replaces the topics.
    pub fn publish(&self, table: Arc<TopicTable>) {
        self.hot_path.table.store(table);
    }

    /// The events since the last call, oldest first.
    pub fn drain(&self) -> Vec<Event> {
        self.hot_path.events.drain(usize::MAX)
    }

    /// Records that a request can complete.
    pub fn wake(&mut self, waiter: Waiter) {
        self.woken.insert(waiter.request);
    }

    /// Starts, changes or stops the fetching of a partition whose role may have changed.
    pub fn role_changed(&mut self, partition: &Arc<Partition>) {
        let key = (*partition.topic_id(), partition.index());
        let wanted = match &*partition.role() {
            Role::Follower(following) if !partition.is_closed() => Some(*following),
            Role::Follower(_) | Role::Leader(_) | Role::None { .. } => None,
        };
        let before = self.followed.remove(&key);
        if let Some(before) = before
            && wanted.is_none_or(|wanted| wanted.leader != before.leader)
            && let Some(fetcher) = self.fetchers.get_mut(&before.leader)
        {
            fetcher.unfollow(&key);
        }
        let Some(following) = wanted else { return };
        let settings = self.settings;
        let no_limit = Arc::new(ReplicationThrottle::new(ThrottleLimit::NONE));
        let fetcher = self.fetchers.entry(following.leader).or_insert_with(|| ReplicaFetcher::new(settings, no_limit));
        if before != Some(following) {
            fetcher.follow(Arc::clone(partition), following);
        }
        self.followed.insert(key, following);
    }

    /// The next request frame for a leader; `None` if there is nothing to fetch.
    pub fn next_request(&mut self, leader: BrokerId) -> Option<Vec<u8>> {
        let now_ms = self.now_ms();
        let request = self.fetchers.get_mut(&leader)?.next_request(now_ms)?;
        let (api_key, api_version) = (ApiKey::FETCH, REPLICA_FETCH_VERSION);
        let mut frame = Vec::new();
        NewRequest { api_key, api_version, correlation_id: 0, client_id: "replica-fetcher" }.begin(&mut frame);
        request.write(&mut frame, REPLICA_FETCH_VERSION);
        finish_request(&mut frame, 0);
        Some(frame.split_off(SIZE))
    }

    /// Handles a leader's response.
    ///
    /// # Errors
    /// When the frame is not a valid response: the connection has to be closed.
    pub fn take_response(&mut self, leader: BrokerId, frame: &[u8]) -> Result<(), Malformed> {
        let now_ms = self.now_ms();
        let Some(fetcher) = self.fetchers.get_mut(&leader) else { return Ok(()) };
        let mut listener = Listener { events: &self.hot_path.events, woken: &mut self.woken };
        fetcher.take_response(frame, now_ms, &mut listener)
    }

    /// Handles a lost connection to a leader.
    pub fn disconnected(&mut self, leader: BrokerId) {
        if let Some(fetcher) = self.fetchers.get_mut(&leader) {
            fetcher.disconnected();
        }
    }

    /// Evaluates a request of the hot path; its frame has no size prefix.
    pub fn serve(&mut self, frame: Vec<u8>) -> Served {
        self.requests += 1;
        self.evaluate(self.requests, frame, None)
    }

    /// The queries for transaction coordinators since the last call, by number of the request.
    pub fn questions(&mut self) -> Vec<(u64, TransactionQuery)> {
        std::mem::take(&mut self.questions)
    }

    /// Resumes a request whose transaction coordinator has responded, or has failed.
    pub fn verified(&mut self, number: u64, responses: Vec<Verified>) -> Served {
        let Some((frame, mut verification)) = self.unverified.remove(&number) else {
            return Served::Closed(format!("request {number} does not wait for a coordinator"));
        };
        verification.decide(responses);
        self.evaluate(number, frame, Some(&verification))
    }

    fn evaluate(&mut self, number: u64, mut frame: Vec<u8>, verified: Option<&Verification>) -> Served {
        let head = match RequestHead::parse(&frame) {
            Ok(head) => head,
            Err(error) => return Served::Closed(error.to_string()),
        };
        let Some(api) = hot_path::of(head.api_key) else {
            return Served::Closed(format!("API {} is none of the hot path", head.api_key.0));
        };
        let waiter = Waiter { connection: 0, request: number };
        let decided = Some(&Authorization::default());
        let request = HotPathRequest {
            api,
            head: &head,
            waiter,
            listener: LISTENER,
            who: None,
            decided,
            verified,
            metered: None,
        };
        let woken = &mut self.woken;
        let mut wake = |waiter: Waiter| {
            woken.insert(waiter.request);
        };
        match hot_path::handle(&self.hot_path, request, &mut frame, &mut wake, self.counters.of(0)) {
            Outcome::Response(response) => respond(&response),
            Outcome::Silent(_) => Served::Silent,
            Outcome::Close(why) => Served::Closed(why),
            Outcome::Unresolved(unresolved) if unresolved.verify.is_some() => {
                if let Some((requested, verification)) = unresolved.verify {
                    self.questions.push((number, requested));
                    self.unverified.insert(number, (frame, verification));
                }
                Served::Waits(number)
            }
            Outcome::Unresolved(_) => Served::Closed("a topic is not in the table".to_owned()),
            Outcome::Wait(pending) => self.wait(number, Pending::Fetch(pending)),
            Outcome::WaitForAcknowledgement(pending) => self.wait(number, Pending::Produce(pending)),
        }
    }

    /// The outcomes of requests that became able to complete since the last call, with their numbers.
    pub fn responses(&mut self) -> Vec<(u64, Served)> {
        std::mem::take(&mut self.woken)
            .into_iter()
            .filter_map(|number| Some((number, self.complete(number, true)?)))
            .collect()
    }

    /// The response of a request that has timed out; `None` if it has one already.
    pub fn expire(&mut self, number: u64) -> Option<Served> {
        self.complete(number, false)
    }

    fn wait(&mut self, number: u64, pending: Pending) -> Served {
        self.waiting.insert(number, pending);
        Served::Waits(number)
    }

    fn complete(&mut self, number: u64, is_woken: bool) -> Option<Served> {
        let counters = self.counters.of(0);
        let response = match self.waiting.remove(&number)? {
            // A woken request has been claimed by the waker.
            Pending::Fetch(pending) => {
                (is_woken || pending.claim()).then(|| pending.complete(&self.hot_path, LISTENER, counters))
            }
            Pending::Produce(pending) => {
                (is_woken || pending.claim()).then(|| pending.complete(&self.hot_path, LISTENER, counters))
            }
        };
        response.map(|response| respond(&response))
    }
}

fn respond(response: &Response) -> Served {
    response.to_frame().map_or_else(|error| Served::Closed(error.to_string()), Served::Response)
}

/// Receives the effects of a fetcher's responses in a simulated broker.
struct Listener<'a> {
    events: &'a EventQueue,
    woken: &'a mut BTreeSet<u64>,
}

impl FollowerListener for Listener<'_> {
    fn wake(&mut self, waiter: Waiter) {
        self.woken.insert(waiter.request);
    }

    fn log_failed(&mut self, partition: &Partition, error: &str) {
        let (directory, error) = (partition.directory().display().to_string(), error.to_owned());
        self.events.push(Event::LogDirectoryFailed { directory, error });
    }

    fn exhausted(&mut self, error: &str) {
        self.events.push(Event::Exhausted { error: error.to_owned() });
    }

    fn not_taken(&mut self, partition: &Partition, why: &str) {
        let text = format!("{}-{}: {why}", partition.topic(), partition.index());
        self.events.line(crate::data_plane::events::Level::Warning, text);
    }

    fn notice(&mut self, partition: &Partition, notice: &FollowerNotice) {
        let text = format!("{}-{}: {notice}", partition.topic(), partition.index());
        self.events.line(crate::data_plane::events::Level::Warning, text);
    }
}

/// `flush=group` needs threads, which a simulation has not: its logs are not synced in groups.
struct NoThreads;

impl FlushListener for NoThreads {
    fn wake(&self, _waiter: Waiter) {}

    fn failed(&self, _directory: &Path, _error: &LogError) {}
}
