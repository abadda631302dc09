//! The data plane's interface to the control plane: tables in, events out, responses in.

pub(crate) mod api_versions;
pub(crate) mod events;
pub(crate) mod settings;
#[cfg(feature = "simulation")]
pub(crate) mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;

use crate::accepting::acceptor::{Acceptor, Placing};
use crate::accepting::connection_limits::ConnectionLimits;
use crate::accepting::connection_slots::{ConnectionSlots, ListenerCounts};
use crate::accepting::listener::ListenError;
use crate::accepting::open_connections::OpenConnections;
use crate::accepting::refusals::Refusals;
use crate::connection::connection_number::CONTROL_PLANE;
use crate::connection::identity::{Authentication, Identity};
use crate::data_plane::api_versions::ApiVersionsTable;
use crate::data_plane::events::EventQueue;
use crate::data_plane::settings::{
    FetchSecurity, FetchSource, ListenerSettings, ListenerTls, ReplicationSettings, Settings,
};
use crate::delayed_operations::flush_outcomes::FlushOutcomes;
use crate::delayed_operations::interception::{Decision, InterceptedApis};
use crate::delayed_operations::markers::AppendedMarkers;
use crate::delayed_operations::verification::Verified;
use crate::follower::ReplicaFetchers;
use crate::hot_path::{Authorization, HotPath, Rights};
use crate::limits::control_budget::ControlBudget;
use crate::limits::request_memory::RequestMemory;
use crate::measures::counters::{Counters, CountersSnapshot, WorkCounters};
use crate::measures::partition_states::{self, PartitionState};
use crate::processor::threads::NetworkThreads;
use crate::quota::{ClientLimits, QuotaKind, QuotaSettings, QuotaUse, Quotas};
use crate::scheduling::clock::{Clock, NANOSECONDS_OF_MS};
use crate::scheduling::cross_thread;
use crate::scheduling::inbox::Message;
use crate::scheduling::inboxes::Inboxes;
use crate::scheduling::reactor::Reactor;
use pybroker_replica::{
    EndedTransaction, FetchSessionCache, FlushCounts, GroupFlush, Partition, ReadReplicas, ReplicationThrottle,
    ThrottleLimit, TopicCounts, TopicTable, Waiter, WaitingProduce,
};
use pybroker_storage::RepairedEpochs;

/// The sockets, the hot path and the waiting requests of one broker. Threads run from [`DataPlane::start`] to
/// [`DataPlane::shut_down`].
#[derive(Debug)]
pub struct DataPlane {
    reactor: Arc<Reactor>,
    acceptor: Mutex<Option<Acceptor>>,
    threads: Mutex<NetworkThreads>,
    fetchers: ReplicaFetchers,
}

impl DataPlane {
    /// Starts the processors and the acceptor, without a listener.
    ///
    /// # Errors
    /// If threads or file descriptors run out, or if `network_threads` is not in 1..=64.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let reactor = Arc::new(reactor(Arc::new(settings))?);
        let threads = NetworkThreads::start(Arc::clone(&reactor), reactor.settings.network_threads)?;
        let acceptor = Acceptor::start(placing(&reactor))?;
        let (inboxes, events) = (Arc::clone(&reactor.inboxes), Arc::clone(&reactor.events));
        let fetchers = ReplicaFetchers::new(inboxes, events, Arc::clone(&reactor.clock), reactor.settings.thread_slice);
        Ok(Self { reactor, acceptor: Mutex::new(Some(acceptor)), threads: Mutex::new(threads), fetchers })
    }

    /// The event queue.
    pub fn events(&self) -> &EventQueue {
        &self.reactor.events
    }

    /// Binds a listener; returns the bound port.
    pub fn listen(&self, listener: &ListenerSettings) -> Result<u16, ListenError> {
        match &*self.acceptor.lock() {
            Some(acceptor) => acceptor.listen(listener),
            None => Err(ListenError::Stopped),
        }
    }

    /// Closes a listener; its connections close when their requests in progress are complete. Returns whether the
    /// listener existed.
    pub fn unlisten(&self, listener: &str) -> bool {
        let closed = self.acceptor.lock().as_ref().and_then(|acceptor| acceptor.unlisten(listener));
        if let Some(name) = &closed {
            self.reactor.inboxes.post_to_all(|| Message::CloseListener(Arc::clone(name)));
        }
        closed.is_some()
    }

    /// The number of network threads.
    pub fn network_threads(&self) -> usize {
        self.threads.lock().count()
    }

    /// Changes the number of network threads; connections and their requests continue.
    ///
    /// # Errors
    /// As [`NetworkThreads::resize`].
    pub fn set_network_threads(&self, count: usize) -> io::Result<()> {
        self.threads.lock().resize(count)
    }

    /// Responds to a control request: `payload` is everything after the correlation id. A small response is written on this
    /// thread.
    pub fn respond(&self, to: Waiter, payload: Vec<u8>) {
        if !cross_thread::try_respond(&self.reactor, to, &payload) {
            self.reactor.inboxes.post(to.connection, Message::Response { to, payload });
        }
    }

    /// Responds to a control request and closes its connection: later requests of the connection are dropped.
    pub fn respond_last(&self, to: Waiter, payload: Vec<u8>) {
        self.reactor.inboxes.post(to.connection, Message::LastResponse { to, payload });
    }

    /// Responds to several control requests.
    pub fn respond_many(&self, responses: impl IntoIterator<Item = (Waiter, Vec<u8>)>) {
        let response = |(to, payload): (Waiter, _)| (to.connection, Message::Response { to, payload });
        self.reactor.inboxes.post_many(responses.into_iter().map(response));
    }

    /// Frees the slot of a control request in `queued.max.requests`, because its response waits for other clients.
    pub fn hold(&self, waiter: Waiter) {
        self.reactor.inboxes.post(waiter.connection, Message::Hold(waiter));
    }

    /// Evaluates an unresolved request again, with the control plane's decision.
    pub fn retry(&self, waiter: Waiter, decision: Authorization) {
        self.reactor.inboxes.post(waiter.connection, Message::Retry { waiter, decision });
    }

    /// Evaluates an unresolved transactional request again, with the coordinator's result for each partition in the query.
    pub fn verified(&self, waiter: Waiter, responses: Vec<Verified>) {
        self.reactor.inboxes.post(waiter.connection, Message::Verified { waiter, responses });
    }

    /// Enables or disables the verification of transactions with their coordinator (enabled at the start). The
    /// verification does not apply to clients whose batches add partitions implicitly.
    pub fn verify_transactions(&self, verify: bool) {
        self.reactor.hot_path.unverified_transactions.store(!verify, Ordering::Release);
    }

    /// Authorizes every Produce and Fetch from now on, by rules of `version`; about `decisions` decisions are cached. A
    /// second call changes only the version.
    pub fn set_rights(&self, decisions: usize, version: u64) {
        self.reactor.hot_path.rights.get_or_init(|| Rights::new(decisions, version)).set_version(version);
    }

    /// Enforces client quotas from now on. An [`super::Event::QuotaQuery`] requests the quotas of each client. Another
    /// `version` invalidates all known quotas; 0 means that no client has quotas.
    pub fn set_quotas(&self, settings: QuotaSettings, version: u64) {
        self.reactor.hot_path.quotas.get_or_init(|| Quotas::new(settings)).set_version(version);
    }

    /// Sets the quotas of a connection's client, from quotas of `version`, and resumes the connection.
    pub fn set_client_quotas(&self, connection: u64, version: u64, limits: ClientLimits) {
        self.reactor.inboxes.post(connection, Message::Quotas { connection, version, limits });
    }

    /// Records the time that a control request took against its client's quota. Returns the `throttle_time_ms` of the
    /// response, which must be sent after this call. The connection is muted for this time.
    pub fn spend(&self, connection: u64, spent: Duration) -> i32 {
        let Some(open) = self.reactor.open.get(connection) else { return 0 };
        let mut connection = open.lock();
        let throttle = connection.metering.spend(spent, self.reactor.clock.now());
        if let Some(steps) = connection.steps() {
            steps.throttle(u64::try_from(throttle.time_ms).unwrap_or(0) * NANOSECONDS_OF_MS);
        }
        throttle.time_ms
    }

    /// Mutes a connection for `time_ms`, the `throttle_time_ms` of the response that is sent after this call.
    pub fn mute(&self, connection: u64, time_ms: u64) {
        if let Some(open) = self.reactor.open.get(connection) {
            open.lock().metering.mute(self.reactor.clock.now().saturating_add(time_ms));
        }
    }

    /// Closes a connection after its queued responses are written.
    pub fn close_connection(&self, connection: u64) {
        self.reactor.inboxes.post(connection, Message::Close { connection });
    }

    /// Sets a connection's principal from its next request on. The client has to reauthenticate within `lifetime_ms`. The
    /// connection is paused until the response to the authentication request, which must be sent after this call.
    pub fn authenticate(&self, connection: u64, identity: Identity, lifetime_ms: Option<u64>) {
        if let Some(open) = self.reactor.open.get(connection) {
            let until = lifetime_ms.map(|lifetime| self.reactor.clock.now().saturating_add(lifetime));
            open.lock().become_proved(Authentication::Proved { identity: Arc::new(identity), until });
        }
    }

    /// Sets the principal of a connection with a client certificate, and resumes the connection.
    pub fn name_peer(&self, connection: u64, identity: Identity) {
        let identity = Arc::new(identity);
        self.reactor.inboxes.post(connection, Message::Named { connection, identity });
    }

    /// Changes the TLS settings for new connections of an encrypted listener. Returns whether the listener exists and is
    /// encrypted.
    pub fn set_listener_tls(&self, listener: &str, tls: &ListenerTls) -> bool {
        self.acceptor.lock().as_ref().is_some_and(|acceptor| acceptor.set_tls(listener, tls))
    }

    /// Changes the limits on the number and the rate of connections; open connections stay.
    pub fn set_connection_limits(&self, limits: ConnectionLimits) {
        self.reactor.capacity.set_limits(limits);
    }

    /// Intercepts the requests of these APIs, and of no others. The control plane gets each request as an
    /// [`Event::Intercepted`] and decides on it first.
    pub fn intercept(&self, api_keys: &[i16]) {
        self.reactor.intercepted.set(api_keys);
    }

    /// Applies the control plane's decision to the intercepted request of a connection.
    pub fn decide(&self, connection: u64, decision: Decision) {
        self.reactor.inboxes.post(connection, Message::Decide { connection, decision });
    }

    /// Closes every connection at once; drops queued responses.
    pub fn close_connections(&self) {
        self.reactor.inboxes.post_to_all(|| Message::CloseAll);
    }

    /// Sets the time of appends and fetch sessions ahead of the system's clock.
    pub fn set_clock_ahead(&self, by_ms: i64) {
        self.reactor.clock.set_ahead(by_ms);
    }

    /// Logs that the leader epochs of a partition contradicted its log and were repaired.
    pub fn epochs_repaired(&self, partition: &Partition, repaired: &RepairedEpochs) {
        self.reactor.hot_path.events.epochs_repaired(partition, repaired);
    }

    /// Milliseconds since 1970, by the clock of appends and fetch sessions.
    pub fn wall_ms(&self) -> i64 {
        self.reactor.hot_path.wall_ms()
    }

    /// The topics as last published.
    pub fn table(&self) -> Arc<TopicTable> {
        self.reactor.hot_path.table.load_full()
    }

    /// Replaces the topics.
    pub fn publish(&self, table: Arc<TopicTable>) {
        self.reactor.hot_path.table.store(table);
    }

    /// Replaces the responses to ApiVersions, by version: everything after the correlation id.
    pub fn publish_api_versions(&self, responses: HashMap<i16, Vec<u8>>) {
        self.reactor.api_versions.store(Arc::new(ApiVersionsTable::new(responses)));
    }

    /// Sets how this broker replicates. It fetches from no leader before the first call.
    pub fn set_replication(&self, settings: ReplicationSettings) {
        self.reactor.hot_path.leader_throttle.set_limit(settings.leader_throttle);
        self.reactor.hot_path.replication.store(Some(Arc::new(settings)));
        self.fetchers.set_settings(settings);
    }

    /// Replaces the racks by which consumers are sent to followers; `None` keeps consumers at the leader.
    pub fn set_read_replicas(&self, racks: Option<ReadReplicas>) {
        self.reactor.hot_path.read_replicas.store(racks.map(Arc::new));
    }

    /// Replaces the security settings for connections to leaders; open connections keep their settings.
    pub fn set_fetch_security(&self, security: FetchSecurity) {
        self.fetchers.set_security(security);
    }

    /// Replaces the brokers from which partitions may be fetched.
    pub fn set_fetch_sources(&self, sources: Vec<FetchSource>) {
        self.fetchers.set_sources(sources);
    }

    /// Starts, changes or stops the fetching of partitions that changed their roles or were closed.
    pub fn roles_changed(&self, partitions: impl IntoIterator<Item = Arc<Partition>>) {
        self.fetchers.roles_changed(partitions);
    }

    /// The number of threads that fetch from leaders.
    pub fn fetcher_threads(&self) -> usize {
        self.fetchers.threads()
    }

    /// Waits until everything below `end_offset` of a partition is committed, and synced by its directory's thread if
    /// needed. An [`Event::AppendCompleted`] with the ticket reports completion or failure.
    pub fn complete(&self, partition: &Arc<Partition>, end_offset: i64, ticket: u64) {
        let waiter = Waiter { connection: CONTROL_PLANE, request: ticket };
        let awaited = partition.awaited_to_complete(end_offset);
        let waiting = WaitingProduce::new(waiter, awaited.waits());
        partition.await_acknowledgement(&awaited, &waiting, &mut |waiter| self.reactor.inboxes.wake(waiter));
        if awaited.durable {
            self.reactor.hot_path.group_flush.request(partition);
        }
    }

    /// Appends markers to partitions that this broker leads, and waits for them as [`DataPlane::complete`] does. If the result
    /// has true, an [`Event::AppendCompleted`] with the ticket follows when all have completed or failed; otherwise they are
    /// complete.
    pub fn append_markers(
        &self,
        ended: Vec<(Arc<Partition>, EndedTransaction)>,
        ticket: u64,
    ) -> (AppendedMarkers, bool) {
        let mut wake = |waiter| self.reactor.inboxes.wake(waiter);
        let markers = AppendedMarkers::append(&self.reactor.hot_path, ended, &mut wake);
        let unsettled = markers.unsettled();
        let waits: usize = unsettled.iter().map(|(_, awaited)| awaited.waits()).sum();
        let waiting = WaitingProduce::new(Waiter { connection: CONTROL_PLANE, request: ticket }, waits);
        for (partition, awaited) in &unsettled {
            partition.await_acknowledgement(awaited, &waiting, &mut wake);
            if awaited.durable {
                self.reactor.hot_path.group_flush.request(partition);
            }
        }
        let is_awaited = !unsettled.is_empty();
        (markers, is_awaited)
    }

    /// The number of syncs by `flush=group`, and of the appends that they covered.
    pub fn flush_counts(&self) -> FlushCounts {
        self.reactor.hot_path.group_flush.counts()
    }

    /// The counters since the start.
    pub fn counters(&self) -> CountersSnapshot {
        self.reactor.counters.snapshot()
    }

    /// Further counts since the start, for metrics.
    pub fn work(&self) -> WorkCounters {
        self.reactor.counters.work()
    }

    /// Connections since the start, by listener; without listeners that had no connection.
    pub fn listeners(&self) -> Vec<ListenerCounts> {
        self.reactor.capacity.of_listeners()
    }

    /// Connections accepted from addresses with a rate limit, for at most `most` addresses, and the number of omitted
    /// addresses.
    pub fn addresses(&self, most: usize) -> (Vec<(IpAddr, u64)>, usize) {
        self.reactor.capacity.of_addresses(most)
    }

    /// The usage of a quota, for at most `most` of its entities, and the number of omitted entities.
    pub fn quota_uses(&self, kind: QuotaKind, most: usize) -> (Vec<QuotaUse>, usize) {
        let Some(quotas) = self.reactor.hot_path.quotas.get() else { return (Vec::new(), 0) };
        quotas.uses(kind, most, self.reactor.clock.now())
    }

    /// Bytes of records that were fetched from leaders and appended.
    pub fn replication_bytes_in(&self) -> u64 {
        self.fetchers.bytes_in()
    }

    /// The states of this broker's partitions, by topic and index.
    pub fn partition_states(&self) -> Vec<PartitionState> {
        partition_states::of_partitions(&self.table())
    }

    /// Counts by topic name; without topics whose counts are zero.
    pub fn topic_counts(&self) -> Vec<(Arc<str>, TopicCounts)> {
        partition_states::of_topics(&self.table())
    }

    /// Wakes the owner of a request that waits for a partition that is being removed.
    pub fn wake(&self, waiter: Waiter) {
        self.reactor.inboxes.wake(waiter);
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.reactor.capacity.taken()
    }

    /// Accepts listeners again after [`DataPlane::stop_accepting`].
    ///
    /// # Errors
    /// When threads or file descriptors run out.
    pub fn resume_accepting(&self) -> io::Result<()> {
        let mut acceptor = self.acceptor.lock();
        if acceptor.is_none() {
            *acceptor = Some(Acceptor::start(placing(&self.reactor))?);
        }
        Ok(())
    }

    /// Closes the listeners; open connections continue.
    pub fn stop_accepting(&self) {
        if let Some(acceptor) = self.acceptor.lock().take() {
            acceptor.stop();
        }
    }

    /// Completes the requests in progress, for at most `grace_ms`, closes every connection and joins every thread.
    pub fn shut_down(&self, grace_ms: u64) {
        self.stop_accepting();
        self.fetchers.stop();
        self.threads.lock().stop(grace_ms);
        self.reactor.hot_path.group_flush.stop();
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.shut_down(0);
    }
}

/// The state that the processors share.
fn reactor(settings: Arc<Settings>) -> io::Result<Reactor> {
    let clock = Arc::new(Clock::start());
    let events = Arc::new(EventQueue::new()?);
    let inboxes = Arc::new(Inboxes::new(Arc::clone(&events)));
    let outcomes = FlushOutcomes {
        inboxes: Arc::clone(&inboxes),
        events: Arc::clone(&events),
        clock: Arc::clone(&clock),
        thread_slice: settings.thread_slice,
    };
    let hot_path = HotPath {
        table: ArcSwap::from_pointee(TopicTable::default()),
        sessions: FetchSessionCache::new(settings.fetch_session_slots, settings.fetch_session_eviction_ms),
        group_flush: GroupFlush::new(Arc::new(outcomes)),
        fetch_max_bytes: settings.fetch_max_bytes,
        replication: ArcSwapOption::empty(),
        leader_throttle: ReplicationThrottle::new(ThrottleLimit::NONE),
        read_replicas: ArcSwapOption::empty(),
        rights: OnceLock::new(),
        unverified_transactions: AtomicBool::new(false),
        quotas: OnceLock::new(),
        clock: Arc::clone(&clock),
        events: Arc::clone(&events),
    };
    Ok(Reactor {
        api_versions: ArcSwap::from_pointee(ApiVersionsTable::default()),
        intercepted: InterceptedApis::default(),
        counters: Counters::new(settings.network_threads),
        open: OpenConnections::new(),
        control: ControlBudget::new(settings.queued_max_requests),
        refusals: Refusals::default(),
        request_memory: RequestMemory::new(settings.queued_request_bytes),
        response_memory: AtomicU64::new(0),
        capacity: Arc::new(ConnectionSlots::new(ConnectionLimits::only(
            settings.max_connections,
            settings.max_connections_reason.clone(),
        ))?),
        hot_path,
        inboxes,
        events,
        clock,
        settings,
    })
}

/// The part of the processors' state that the acceptor uses.
fn placing(reactor: &Reactor) -> Placing {
    Placing {
        settings: Arc::clone(&reactor.settings),
        clock: Arc::clone(&reactor.clock),
        events: Arc::clone(&reactor.events),
        inboxes: Arc::clone(&reactor.inboxes),
        capacity: Arc::clone(&reactor.capacity),
    }
}
