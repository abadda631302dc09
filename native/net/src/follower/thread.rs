//! One fetcher thread: it sends requests to its leader and passes the responses to its `ReplicaFetcher`.
//!
//! It waits for its socket and its mailbox together, so that a new partition is fetched without delay.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{Timespec, epoll};

use super::connection::{Arrived, Connection};
use super::signing_in::{Responded, SigningIn};
use crate::data_plane::events::{Event, EventQueue, Level};
use crate::data_plane::settings::{FetchSecurity, FetchSource, ReplicationSettings};
use crate::scheduling::clock::Clock;
use crate::scheduling::inboxes::Inboxes;
use crate::scheduling::wake_up::WakeUp;
use pybroker_replica::{
    BrokerId, FollowerListener, FollowerNotice, Following, Partition, PartitionKey, REPLICA_FETCH_VERSION,
    ReplicaFetcher, ReplicationThrottle, Waiter,
};
use pybroker_sys::scheduling;
use pybroker_wire::ApiKey;
use pybroker_wire::frame::{NewRequest, finish_request};

const MAILBOX: u64 = 0;
const SOCKET: u64 = 1;
/// Events read from epoll at once: one for each descriptor.
const EVENTS: usize = 2;
/// The largest buffer kept after a response with a token.
const LARGEST_SIGN_IN: usize = 64 << 10;

/// A command to a thread.
#[derive(Debug)]
pub enum Command {
    Follow(Arc<Partition>, Following),
    Unfollow(PartitionKey),
    /// The leader's address; `None` while it is unknown.
    Source(Option<FetchSource>),
    Settings(Arc<ReplicationSettings>),
    Stop,
}

/// The queue of a thread's commands.
#[derive(Debug)]
pub struct Mailbox {
    commands: Mutex<Vec<Command>>,
    wake_up: WakeUp,
}

impl Mailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { commands: Mutex::default(), wake_up: WakeUp::new()? })
    }

    /// Adds commands and wakes the thread.
    pub fn post(&self, commands: impl IntoIterator<Item = Command>) {
        self.commands.lock().extend(commands);
        self.wake_up.wake();
    }
}

/// The state that all fetcher threads share.
#[derive(Debug)]
pub struct Surroundings {
    pub inboxes: Arc<Inboxes>,
    pub events: Arc<EventQueue>,
    pub clock: Arc<Clock>,
    /// The limit on bytes of throttled partitions.
    pub throttle: Arc<ReplicationThrottle>,
    /// The security of new connections.
    pub security: Mutex<FetchSecurity>,
    /// The scheduler slice of each thread.
    pub thread_slice: Duration,
    /// Bytes of records appended by all threads since the start.
    pub bytes_in: AtomicU64,
}

/// The state of one fetcher thread.
#[derive(Debug)]
pub struct FetcherThread {
    source: BrokerId,
    settings: Arc<ReplicationSettings>,
    surroundings: Arc<Surroundings>,
    mailbox: Arc<Mailbox>,
    epoll: OwnedFd,
    endpoint: Option<FetchSource>,
    machine: ReplicaFetcher,
    connection: Option<Connection>,
    /// The authentication in progress; nothing is fetched meanwhile.
    signing_in: Option<SigningIn>,
    /// When to reauthenticate, on the data plane's clock.
    renews_at: Option<u64>,
    /// The timeout of each request in flight, on the data plane's clock. At a timeout the connection is closed.
    deadlines: VecDeque<u64>,
    correlation_id: i32,
    /// Connection attempts since the last response.
    attempts: u32,
    /// The earliest time of the next connection attempt.
    retry_at: u64,
    is_stopped: bool,
}

impl FetcherThread {
    /// The state of a thread before it runs.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new(
        source: BrokerId,
        settings: Arc<ReplicationSettings>,
        surroundings: Arc<Surroundings>,
        mailbox: Arc<Mailbox>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, mailbox.wake_up.fd(), epoll::EventData::new_u64(MAILBOX), epoll::EventFlags::IN)?;
        let machine = ReplicaFetcher::new(settings.fetcher, Arc::clone(&surroundings.throttle));
        Ok(Self {
            source,
            settings,
            surroundings,
            mailbox,
            epoll,
            endpoint: None,
            machine,
            connection: None,
            signing_in: None,
            renews_at: None,
            deadlines: VecDeque::new(),
            correlation_id: 0,
            attempts: 0,
            retry_at: 0,
            is_stopped: false,
        })
    }

    /// Runs until it is stopped.
    pub fn run(mut self) {
        // If the system does not permit it, the processors have reported that.
        let _ = scheduling::set_slice(self.surroundings.thread_slice);
        loop {
            self.obey();
            if self.is_stopped {
                return;
            }
            if let Err(error) = self.go_on() {
                self.lose(&error);
            }
            let (socket, is_writable) = self.wait();
            if socket && let Err(error) = self.step_socket(is_writable) {
                self.lose(&error);
            }
        }
    }

    fn obey(&mut self) {
        let commands = std::mem::take(&mut *self.mailbox.commands.lock());
        for command in commands {
            match command {
                Command::Follow(partition, following) => self.machine.follow(partition, following),
                Command::Unfollow(key) => self.machine.unfollow(&key),
                Command::Source(endpoint) => {
                    if self.endpoint != endpoint {
                        self.disconnect();
                        (self.attempts, self.retry_at) = (0, 0);
                    }
                    self.endpoint = endpoint;
                }
                Command::Settings(settings) => {
                    self.machine.set_settings(settings.fetcher);
                    self.settings = settings;
                }
                Command::Stop => self.is_stopped = true,
            }
        }
    }

    /// Connects, and sends the requests that are due.
    fn go_on(&mut self) -> io::Result<()> {
        let now = self.surroundings.clock.now();
        if self.machine.is_empty() {
            self.disconnect();
            return Ok(());
        }
        if self.deadlines.front().is_some_and(|deadline| *deadline <= now) {
            let text = format!("no answer within replica.socket.timeout.ms = {}", self.settings.socket_timeout_ms);
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        if self.connection.is_none() {
            let Some(source) = &self.endpoint else { return Ok(()) };
            if now < self.retry_at {
                return Ok(());
            }
            let attempt = self.attempts as usize;
            let tls = self.surroundings.security.lock().tls.clone();
            let session = tls.map(|tls| tls.session(&source.host)).transpose().map_err(io::Error::other)?;
            let opened = Connection::open(source, attempt, &self.settings, session, &self.epoll, SOCKET)?;
            self.connection = Some(opened);
            self.deadlines.push_back(now + self.settings.socket_timeout_ms);
        }
        if self.renews_at.is_some_and(|at| at <= now) && self.signing_in.is_none() {
            // Requests in flight complete first: the leader responds in order, and the fetcher expects no other response
            // then.
            return if self.deadlines.is_empty() { self.sign_in() } else { Ok(()) };
        }
        let is_ready = self.signing_in.is_none();
        let Some(connection) = self.connection.as_mut().filter(|it| it.is_connected() && is_ready) else {
            return Ok(());
        };
        if let Some(request) = self.machine.next_request(self.surroundings.clock.wall_ms()) {
            self.correlation_id = self.correlation_id.wrapping_add(1);
            let head = NewRequest {
                api_key: ApiKey::FETCH,
                api_version: REPLICA_FETCH_VERSION,
                correlation_id: self.correlation_id,
                client_id: "replica-fetcher",
            };
            let mut frame = Vec::with_capacity(128 + 64 * request.partitions.len());
            head.begin(&mut frame);
            request.write(&mut frame, REPLICA_FETCH_VERSION);
            finish_request(&mut frame, 0);
            connection.out().extend_from_slice(&frame);
            connection.send(&self.epoll, SOCKET)?;
            self.deadlines.push_back(now + self.settings.socket_timeout_ms);
        }
        Ok(())
    }

    /// Waits for the socket, the mailbox or a timeout; returns whether the socket has an event, and whether it is writable.
    fn wait(&mut self) -> (bool, bool) {
        let timeout = self.timeout_ms().map(|ms| {
            let timeout = Duration::from_millis(ms);
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) }
        });
        let mut events = Vec::with_capacity(EVENTS);
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref());
        if waited.is_err() {
            return (false, false);
        }
        let (mut socket, mut is_writable) = (false, false);
        for event in &events {
            if event.data.u64() == MAILBOX {
                self.mailbox.wake_up.woken();
            } else {
                socket = true;
                let flags = event.flags;
                let writable = epoll::EventFlags::OUT | epoll::EventFlags::ERR | epoll::EventFlags::HUP;
                is_writable |= flags.intersects(writable);
            }
        }
        (socket, is_writable)
    }

    fn timeout_ms(&self) -> Option<u64> {
        let clock = &self.surroundings.clock;
        let now = clock.now();
        let of_response = self.deadlines.front().map(|deadline| deadline.saturating_sub(now));
        let retries = self.connection.is_none() && self.endpoint.is_some() && !self.machine.is_empty();
        let of_retry = retries.then(|| self.retry_at.saturating_sub(now));
        let of_renewal = self.renews_at.filter(|_| self.deadlines.is_empty()).map(|at| at.saturating_sub(now));
        let of_machine = self.machine.due_ms().map(|at| u64::try_from(at - clock.wall_ms()).unwrap_or(0));
        [of_response, of_retry, of_renewal, of_machine].into_iter().flatten().min()
    }

    fn step_socket(&mut self, is_writable: bool) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if !connection.is_connected() {
            if !is_writable {
                return Ok(());
            }
            connection.finish_connecting()?;
            self.deadlines.clear();
            self.sign_in()?;
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        connection.send(&self.epoll, SOCKET)?;
        while let Some(connection) = &mut self.connection
            && connection.receive()? == Arrived::Bytes
        {
            // Further responses are handled when the next request is sent.
            let any = if self.signing_in.is_some() { self.take_sign_in()? } else { self.take_responses()? };
            if any && !self.connection.as_ref().is_some_and(Connection::may_hold_more) {
                break;
            }
        }
        match &mut self.connection {
            // The end of a handshake permits sending requests.
            Some(connection) if connection.may_hold_more() => connection.send(&self.epoll, SOCKET),
            _ => Ok(()),
        }
    }

    /// Starts authentication, if the leader requires it.
    fn sign_in(&mut self) -> io::Result<()> {
        self.renews_at = None;
        let Some(credentials) = self.surroundings.security.lock().credentials.clone() else { return Ok(()) };
        let host = self.endpoint.as_ref().map_or("", |source| source.host.as_str());
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let (signing_in, frame) = SigningIn::begin(credentials, host, self.correlation_id);
        self.signing_in = Some(signing_in);
        self.query(&frame)
    }

    fn query(&mut self, frame: &[u8]) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        connection.out().extend_from_slice(frame);
        self.deadlines.push_back(self.surroundings.clock.now() + self.settings.socket_timeout_ms);
        connection.send(&self.epoll, SOCKET)
    }

    /// Handles a response of the authentication; returns whether there was one.
    fn take_sign_in(&mut self) -> io::Result<bool> {
        let (Some(connection), Some(signing_in)) = (&mut self.connection, &mut self.signing_in) else {
            return Ok(false);
        };
        let Some(frame) = connection.respond()? else { return Ok(false) };
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let responded = signing_in.step(frame, self.correlation_id, self.surroundings.clock.wall_ms())?;
        connection.responded(LARGEST_SIGN_IN);
        self.deadlines.pop_front();
        match responded {
            Responded::Send(frame) => self.query(&frame)?,
            Responded::Done { renews_in_ms } => {
                self.signing_in = None;
                self.renews_at = renews_in_ms.map(|ms| self.surroundings.clock.now() + ms);
            }
        }
        Ok(true)
    }

    /// Passes every complete response to the fetcher; returns whether there was one.
    fn take_responses(&mut self) -> io::Result<bool> {
        let mut any = false;
        let Some(connection) = &mut self.connection else { return Ok(false) };
        let mut listener = Listener { surroundings: &self.surroundings, source: self.source };
        while let Some(frame) = connection.respond()? {
            let now_ms = self.surroundings.clock.wall_ms();
            let taken = self.machine.take_response(frame, now_ms, &mut listener);
            taken
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("a malformed answer: {error}")))?;
            // The buffer keeps the size of the largest usual response.
            connection.responded(2 * usize::try_from(self.settings.fetcher.response_max_bytes).unwrap_or(0));
            self.deadlines.pop_front();
            any = true;
        }
        if any && self.attempts > 0 {
            self.attempts = 0;
            let text = format!("replica fetcher of broker {}: it is reached again", self.source.0);
            self.surroundings.events.line(Level::Info, text);
        }
        Ok(any)
    }

    fn disconnect(&mut self) {
        if self.connection.take().is_some() {
            self.machine.disconnected();
        }
        self.deadlines.clear();
        (self.signing_in, self.renews_at) = (None, None);
    }

    /// Handles a lost connection or a failed attempt: the next attempt waits, longer after each failure.
    fn lose(&mut self, error: &io::Error) {
        self.disconnect();
        let fetcher = &self.settings.fetcher;
        let wait = fetcher.first_backoff_ms.saturating_mul(1 << self.attempts.min(20)).min(fetcher.backoff_ms);
        self.retry_at = self.surroundings.clock.now() + u64::try_from(wait).unwrap_or(0);
        if self.attempts == 0
            && let Some(FetchSource { id, host, port, .. }) = &self.endpoint
        {
            let text = format!("replica fetcher of broker {} at {host}:{port}: {error}; it is tried again", id.0);
            self.surroundings.events.line(Level::Warning, text);
        }
        self.attempts = self.attempts.saturating_add(1);
    }
}

/// Applies the effects of a fetcher's responses to the broker.
struct Listener<'a> {
    surroundings: &'a Surroundings,
    source: BrokerId,
}

impl FollowerListener for Listener<'_> {
    fn wake(&mut self, waiter: Waiter) {
        self.surroundings.inboxes.wake(waiter);
    }

    fn log_failed(&mut self, partition: &Partition, error: &str) {
        let (directory, error) = (partition.directory().display().to_string(), error.to_owned());
        self.surroundings.events.push(Event::LogDirectoryFailed { directory, error });
    }

    fn exhausted(&mut self, error: &str) {
        self.surroundings.events.exhausted(self.surroundings.clock.now(), error);
    }

    fn not_taken(&mut self, partition: &Partition, why: &str) {
        let (topic, index, source) = (partition.topic(), partition.index(), self.source.0);
        let text = format!("partition {topic}-{index}: what leader {source} sent cannot be appended: {why}");
        self.surroundings.events.line(Level::Warning, text);
    }

    fn notice(&mut self, partition: &Partition, notice: &FollowerNotice) {
        let (topic, index, source) = (partition.topic(), partition.index(), self.source.0);
        let epoch = partition.leader_epoch();
        let text = format!("partition {topic}-{index}, which follows leader {source} of epoch {epoch}: {notice}");
        self.surroundings.events.line(Level::Warning, text);
    }

    fn appended(&mut self, bytes: usize) {
        self.surroundings.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
