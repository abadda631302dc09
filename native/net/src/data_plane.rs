//! The data plane as the control plane holds it: tables in, events out, answers in.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::acceptor::{Acceptor, ListenError};
use super::api_versions::ApiVersionsTable;
use super::control_room::ControlRoom;
use super::cross_thread;
use super::events::{Event, EventQueue};
use super::inbox::{Inbox, Message};
use super::interception::{Decision, InterceptedApis};
use super::open_connections::OpenConnections;
use super::processor::Processor;
use super::request_memory::RequestMemory;
use super::room::Room;
use super::settings::{ListenerSettings, Settings};
use pybroker_replica::{
    FetchSessionCache, FlushCounts, FlushListener, GroupFlush, Partition, TopicTable, Waiter, WaitingProduce,
};
use pybroker_storage::LogError;

/// Bits of a connection number that name its processor; the rest count connections.
const PROCESSOR_BITS: u32 = 8;

/// How often it is said that descriptors or memory have run out.
const EXHAUSTED_EVERY_MS: u64 = 100;

/// Stands for a connection where the control plane itself waits.
const CONTROL_PLANE: u64 = u64::MAX;

/// What every processor shares.
#[derive(Debug)]
pub struct Shared {
    /// The limits in force.
    pub settings: Settings,
    /// The topics as last published.
    pub table: ArcSwap<TopicTable>,
    /// The answers to ApiVersions as last published.
    pub api_versions: ArcSwap<ApiVersionsTable>,
    /// The way up.
    pub events: EventQueue,
    /// Fetch sessions of all connections.
    pub sessions: FetchSessionCache,
    /// The connections of all processors.
    pub open: OpenConnections,
    /// Who syncs the logs whose appends are acknowledged together.
    pub group_flush: GroupFlush,
    /// One inbox a processor.
    pub inboxes: Vec<Inbox>,
    /// Control requests that Python has not answered yet, and the connections that wait for room.
    pub control: ControlRoom,
    /// Memory of requests that are being received.
    pub request_memory: RequestMemory,
    /// Memory of answers that are not written yet, over all connections.
    pub response_memory: AtomicU64,
    /// Room for connections.
    pub room: Room,
    /// When it was last said that descriptors or memory have run out, in milliseconds of [`Shared::now`].
    exhausted_said: AtomicU64,
    /// The APIs whose requests the control plane decides about first.
    pub intercepted: InterceptedApis,
    /// How far the time of appends and fetch sessions is ahead of the system's clock, ms.
    clock_offset_ms: AtomicI64,
    started: Instant,
}

impl Shared {
    /// Milliseconds of a clock that never goes back, for deadlines.
    pub fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Milliseconds since 1970, for record timestamps: the system's clock and what it was set ahead.
    pub fn wall_ms(&self) -> i64 {
        wall_ms().saturating_add(self.clock_offset_ms.load(Ordering::Relaxed))
    }

    /// Wakes the owner of a request that waits, or reports to the control plane that its own append is settled.
    pub fn wake(&self, waiter: Waiter) {
        if waiter.connection == CONTROL_PLANE {
            self.events.push(Event::AppendSettled { ticket: waiter.request });
        } else {
            self.post(waiter.connection, Message::Wake(waiter));
        }
    }

    /// Posts a message to the processor that owns a connection.
    pub fn post(&self, connection: u64, message: Message) {
        if let Some(inbox) = self.inboxes.get(processor_of(connection)) {
            inbox.post(message);
        }
    }

    /// Says that an operation ended for want of a descriptor or of memory; not every time, as every request may meet it.
    pub fn exhausted(&self, error: &str) {
        let (now, said) = (self.now() + EXHAUSTED_EVERY_MS, self.exhausted_said.load(Ordering::Relaxed));
        if now >= said + EXHAUSTED_EVERY_MS
            && self.exhausted_said.compare_exchange(said, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.events.push(Event::Exhausted { error: error.to_owned() });
        }
    }

    /// A control request has been answered or dropped: whose turn it is gets its room.
    pub fn control_done(&self) {
        if let Some(connection) = self.control.leave() {
            self.post(connection, Message::Resume { connection });
        }
    }

    /// Lets the connection that has waited longest for memory try again, if there is some.
    pub fn offer_request_memory(&self) {
        if let Some(connection) = self.request_memory.next() {
            self.post(connection, Message::Memory { connection });
        }
    }

    /// Notes that a connection's unread answers take `now` bytes of memory, and took `before`; has its owner make room
    /// where all of them take more than they may.
    pub fn account_answers(&self, connection: u64, before: u64, now: u64) {
        let total = if now >= before {
            self.response_memory.fetch_add(now - before, Ordering::Relaxed) + (now - before)
        } else {
            self.response_memory.fetch_sub(before - now, Ordering::Relaxed) - (before - now)
        };
        if now > before && total > self.settings.queued_response_bytes {
            self.post(connection, Message::Shed);
        }
    }
}

/// Hands what a sync satisfied to its processors, and what it could not do to the control plane.
struct SyncedOrNot(Weak<Shared>);

impl FlushListener for SyncedOrNot {
    fn wake(&self, waiter: Waiter) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake(waiter);
        }
    }

    fn failed(&self, directory: &Path, error: &LogError) {
        let Some(shared) = self.0.upgrade() else { return };
        if error.is_exhausted() {
            shared.exhausted(&error.to_string());
        } else {
            let directory = directory.display().to_string();
            shared.events.push(Event::LogDirectoryFailed { directory, error: error.to_string() });
        }
    }
}

/// Milliseconds since 1970 by the system's clock.
fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// The processor that owns a connection.
pub fn processor_of(connection: u64) -> usize {
    (connection & ((1 << PROCESSOR_BITS) - 1)) as usize
}

/// The number of the `count`th connection, owned by `processor`.
pub fn connection_number(count: u64, processor: usize) -> u64 {
    count << PROCESSOR_BITS | processor as u64
}

/// Sockets, the hot path and waiting requests of one broker. Threads run from [`DataPlane::start`] to [`DataPlane::shut_down`].
#[derive(Debug)]
pub struct DataPlane {
    shared: Arc<Shared>,
    acceptor: Mutex<Option<Acceptor>>,
    processors: Mutex<Vec<JoinHandle<()>>>,
}

impl DataPlane {
    /// Starts the processors and the acceptor, which listens nowhere yet.
    ///
    /// # Errors
    /// When threads or file descriptors run out, or `network_threads` is not in 1..=64.
    pub fn start(settings: Settings) -> io::Result<Self> {
        if !(1..=64).contains(&settings.network_threads) {
            let text = format!("num.network.threads is {}; it has to be 1 to 64", settings.network_threads);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let inboxes = (0..settings.network_threads).map(|_| Inbox::new()).collect::<io::Result<Vec<_>>>()?;
        let events = EventQueue::new()?;
        let room = Room::new()?;
        let shared = Arc::new_cyclic(|shared| Shared {
            table: ArcSwap::from_pointee(TopicTable::default()),
            api_versions: ArcSwap::from_pointee(ApiVersionsTable::default()),
            events,
            group_flush: GroupFlush::new(Arc::new(SyncedOrNot(Weak::clone(shared)))),
            sessions: FetchSessionCache::new(settings.fetch_session_slots, settings.fetch_session_eviction_ms),
            open: OpenConnections::new(settings.network_threads),
            inboxes,
            control: ControlRoom::new(settings.queued_max_requests),
            request_memory: RequestMemory::new(settings.queued_request_bytes),
            response_memory: AtomicU64::new(0),
            room,
            exhausted_said: AtomicU64::new(0),
            intercepted: InterceptedApis::default(),
            clock_offset_ms: AtomicI64::new(0),
            started: Instant::now(),
            settings,
        });
        let mut processors = Vec::new();
        for index in 0..shared.settings.network_threads {
            let processor = Processor::new(index, Arc::clone(&shared))?;
            let name = format!("network-{index}");
            processors.push(std::thread::Builder::new().name(name).spawn(move || processor.run())?);
        }
        let acceptor = Acceptor::start(Arc::clone(&shared))?;
        Ok(Self { shared, acceptor: Mutex::new(Some(acceptor)), processors: Mutex::new(processors) })
    }

    /// The event queue.
    pub fn events(&self) -> &EventQueue {
        &self.shared.events
    }

    /// Binds a listener; the port that it got.
    pub fn listen(&self, listener: &ListenerSettings) -> Result<u16, ListenError> {
        match &*self.acceptor.lock() {
            Some(acceptor) => acceptor.listen(listener),
            None => Err(ListenError::Stopped),
        }
    }

    /// Answers a control request: `payload` is everything after the correlation id. On this thread, where that is cheap.
    pub fn respond(&self, to: Waiter, payload: Vec<u8>) {
        if !cross_thread::try_answer(&self.shared, to, &payload) {
            self.shared.post(to.connection, Message::Answer { to, payload });
        }
    }

    /// Answers several control requests. Processors are woken when all answers lie ready: one that wakes earlier would
    /// take them one by one, and this thread's time with them.
    pub fn respond_many(&self, answers: impl IntoIterator<Item = (Waiter, Vec<u8>)>) {
        let mut waiting = 0_u64;
        for (to, payload) in answers {
            let processor = processor_of(to.connection);
            if let Some(inbox) = self.shared.inboxes.get(processor) {
                inbox.push(Message::Answer { to, payload });
                waiting |= 1 << processor;
            }
        }
        while waiting != 0 {
            self.shared.inboxes[waiting.trailing_zeros() as usize].wake();
            waiting &= waiting - 1;
        }
    }

    /// Says that the answer to a control request waits for what others do: until then it takes no room.
    pub fn hold(&self, waiter: Waiter) {
        self.shared.post(waiter.connection, Message::Hold(waiter));
    }

    /// Lets an unresolved request be evaluated again.
    pub fn retry(&self, waiter: Waiter) {
        self.shared.post(waiter.connection, Message::Retry(waiter));
    }

    /// Closes a connection, when its queued answers are written.
    pub fn close_connection(&self, connection: u64) {
        self.shared.post(connection, Message::Close { connection });
    }

    /// Has the control plane decide about the requests of these APIs, and of no others, before they are worked on: each
    /// comes up as an [`Event::Intercepted`].
    pub fn intercept(&self, api_keys: &[i16]) {
        self.shared.intercepted.set(api_keys);
    }

    /// Says what becomes of the intercepted request of a connection.
    pub fn decide(&self, connection: u64, decision: Decision) {
        self.shared.post(connection, Message::Decide { connection, decision });
    }

    /// Ends every connection at once, without the answers that are queued.
    pub fn close_connections(&self) {
        for inbox in &self.shared.inboxes {
            inbox.post(Message::CloseAll);
        }
    }

    /// Sets the time of appends and fetch sessions ahead of the system's clock.
    pub fn set_clock_ahead(&self, by_ms: i64) {
        self.shared.clock_offset_ms.store(by_ms, Ordering::Relaxed);
    }

    /// Milliseconds since 1970, by the clock of appends and fetch sessions.
    pub fn wall_ms(&self) -> i64 {
        self.shared.wall_ms()
    }

    /// The topics as last published.
    pub fn table(&self) -> Arc<TopicTable> {
        self.shared.table.load_full()
    }

    /// Swaps the topics.
    pub fn publish(&self, table: Arc<TopicTable>) {
        self.shared.table.store(table);
    }

    /// Swaps the answers to ApiVersions, by version: everything after the correlation id.
    pub fn publish_api_versions(&self, answers: HashMap<i16, Vec<u8>>) {
        self.shared.api_versions.store(Arc::new(ApiVersionsTable::new(answers)));
    }

    /// Has everything below `end_offset` of a partition settled: committed, and synced by its directory's thread where that
    /// is due. An [`Event::AppendSettled`] with the ticket follows when that is done, or failed.
    pub fn settle(&self, partition: &Arc<Partition>, end_offset: i64, ticket: u64) {
        let waiter = Waiter { connection: CONTROL_PLANE, request: ticket };
        let awaited = partition.awaited_to_settle(end_offset);
        let waiting = WaitingProduce::new(waiter, awaited.waits());
        partition.await_acknowledgement(&awaited, &waiting, &mut |waiter| self.shared.wake(waiter));
        if awaited.durable {
            self.shared.group_flush.request(partition);
        }
    }

    /// How many syncs `flush=group` took, and how many appends they covered.
    pub fn flush_counts(&self) -> FlushCounts {
        self.shared.group_flush.counts()
    }

    /// Wakes the owner of a request that waits for a partition that goes away.
    pub fn wake(&self, waiter: Waiter) {
        self.shared.wake(waiter);
    }

    /// Open connections.
    pub fn connections(&self) -> usize {
        self.shared.room.taken()
    }

    /// Lets listeners be bound again after [`DataPlane::stop_accepting`].
    ///
    /// # Errors
    /// When threads or file descriptors run out.
    pub fn resume_accepting(&self) -> io::Result<()> {
        let mut acceptor = self.acceptor.lock();
        if acceptor.is_none() {
            *acceptor = Some(Acceptor::start(Arc::clone(&self.shared))?);
        }
        Ok(())
    }

    /// Closes the listeners; open connections go on.
    pub fn stop_accepting(&self) {
        if let Some(acceptor) = self.acceptor.lock().take() {
            acceptor.stop();
        }
    }

    /// Answers what is in work, for at most `grace_ms`, closes every connection and joins every thread.
    pub fn shut_down(&self, grace_ms: u64) {
        self.stop_accepting();
        let processors = std::mem::take(&mut *self.processors.lock());
        for inbox in &self.shared.inboxes {
            inbox.post(Message::Stop { grace_ms });
        }
        for processor in processors {
            // A processor that panicked has said so on stderr; the others are still to be joined.
            let _ = processor.join();
        }
        self.shared.group_flush.stop();
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.shut_down(0);
    }
}
