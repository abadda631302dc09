//! The connections of one I/O thread: their state, the choice of a node, and current cluster metadata.
//!
//! Owns the sockets and the [`Cluster`]; handles ApiVersions and Metadata, and returns every other response with the token
//! of its request. The I/O thread calls [`Network::poll`], the only place where it sleeps.

pub mod apis;
pub mod cluster;
pub mod connection;
mod link;
mod metadata_refresh;
mod metadata_request;
mod mismatches;
pub mod pool;
pub mod request;
mod signing_in;
mod standing;
pub mod waker;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::apis::{API_VERSIONS, Api, FETCH};
use self::cluster::{Cluster, NodeId};
use self::connection::{Connection, Frame, Pending};
use self::link::{Link, Purpose};
use self::metadata_request::MetadataRequestState;
use self::pool::BufferPool;
use self::request::{Encoded, Segment};
use self::standing::{Suspicion, host, refused, resolve};
use self::waker::Waker;
use crate::config::{ConnectionConfig, doubled};
use crate::counters::{Counters, Total};
use crate::error::ClientError;
use pybroker_wire::ErrorCode;
use pybroker_wire::api_versions::{self, ApiVersionsResponse, ClientSoftware};
use pybroker_wire::frame::{NewRequest, RESPONSE_BODY};

/// The client software of ApiVersions (KIP-511).
const SOFTWARE: ClientSoftware<'static> = ClientSoftware { name: "pybroker", version: env!("CARGO_PKG_VERSION") };

/// A result of `poll` for the caller.
#[derive(Debug)]
pub enum Event<T> {
    /// A response; for requests without one, `frame` is `None` and the request is written.
    Responded { node: NodeId, token: T, version: i16, frame: Option<Frame> },
    /// The request failed.
    Failed { token: T, error: ClientError },
    /// The cluster's metadata was updated.
    Metadata,
}

/// A node, an API, and the version that both sides support.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub node: NodeId,
    pub api: Api,
    pub version: i16,
}

/// The timeouts of a response.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// The time that the broker may delay it; after that the broker counts as silent.
    pub held: Duration,
    /// The timeout.
    pub longest: Duration,
}

impl Wait {
    /// Of a request that the broker does not delay.
    pub fn of(longest: Duration) -> Self {
        Self { held: Duration::ZERO, longest }
    }
}

#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

/// All connections of one I/O thread.
#[derive(Debug)]
pub struct Network<T> {
    config: ConnectionConfig,
    pub cluster: Cluster,
    links: FxHashMap<NodeId, Link<T>>,
    backoffs: FxHashMap<NodeId, Backoff>,
    /// The suspicion that the next connection to a node has to probe.
    suspicions: FxHashMap<NodeId, Suspicion>,
    waker: Arc<Waker>,
    pool: Arc<BufferPool>,
    counters: Arc<Counters>,
    next_correlation_id: i32,
    metadata_request: MetadataRequestState,
    /// The last connection failure, for messages.
    pub last_failure: Option<ClientError>,
    /// The failure of the last connection if authentication failed: waiting longer is useless.
    pub refusal: Option<ClientError>,
}

impl<T> Network<T> {
    /// Without connections. `pool` has the buffers for responses.
    pub fn new(config: &ConnectionConfig, waker: &Arc<Waker>, pool: Arc<BufferPool>, counters: &Arc<Counters>) -> Self {
        Self {
            config: config.clone(),
            cluster: Cluster::default(),
            links: FxHashMap::default(),
            backoffs: FxHashMap::default(),
            suspicions: FxHashMap::default(),
            waker: Arc::clone(waker),
            pool,
            counters: Arc::clone(counters),
            next_correlation_id: 1,
            metadata_request: MetadataRequestState::default(),
            last_failure: None,
            refusal: None,
        }
    }

    /// `host:port` of a node.
    pub fn server(&self, node: NodeId) -> String {
        self.address(node).unwrap_or_else(|| format!("node {node}"))
    }

    fn address(&self, node: NodeId) -> Option<String> {
        if node >= 0 {
            return self.cluster.servers.get(&node).cloned();
        }
        self.config.bootstrap_servers.get((-1 - node) as usize).cloned()
    }

    /// Whether a node can get requests; starts a connection if there is none and the back-off is over.
    pub fn ready(&mut self, node: NodeId, now: Instant) -> bool {
        if let Some(link) = self.links.get(&node) {
            return link.is_ready();
        }
        if self.backoffs.get(&node).and_then(|b| b.until).is_none_or(|until| until <= now) {
            self.connect(node, now);
        }
        false
    }

    /// Requests to a node without a response so far.
    pub fn in_flight(&self, node: NodeId) -> usize {
        self.links.get(&node).map_or(0, |l| l.connection.in_flight())
    }

    /// The version of an API for a ready node.
    pub fn target(&self, node: NodeId, api: Api) -> Result<Target, ClientError> {
        let chosen = self.links.get(&node).and_then(|l| l.versions.as_ref()).map_or(Err((-1, -1)), |v| api.choose(v));
        let chosen = chosen.map(|version| Target { node, api, version });
        chosen.map_err(|(theirs_min, theirs_max)| ClientError::UnsupportedVersion {
            server: self.server(node),
            api: api.name,
            theirs_min,
            theirs_max,
            ours_min: api.min,
            ours_max: api.max,
        })
    }

    /// A correlation id for a request that the caller encodes itself.
    pub fn next_correlation_id(&mut self) -> i32 {
        self.next_correlation_id = self.next_correlation_id.wrapping_add(1);
        self.next_correlation_id
    }

    /// The client id that request headers carry.
    pub fn client_id(&self) -> &str {
        &self.config.client_id
    }

    /// Send a request whose body `write` appends; the node must be ready. The broker may delay the response for `wait.held`.
    pub fn query(&mut self, target: Target, token: T, wait: Wait, now: Instant, write: impl FnOnce(&mut Vec<u8>)) {
        self.request(target, Purpose::Caller(token), wait, now, write);
    }

    /// Send an encoded request.
    pub fn send(&mut self, target: Target, request: Encoded, token: T, responded: bool, deadline: Instant) {
        let Encoded { correlation_id, segments } = request;
        let mut pending = Pending::new(Purpose::Caller(token), target.version, correlation_id, deadline, responded);
        let now = Instant::now();
        pending.requested_at = Some(now);
        pending.silent_at = now + self.config.retry_backoff_max;
        self.enqueue(target.node, segments, pending);
    }

    fn enqueue(&mut self, node: NodeId, segments: Vec<Segment>, pending: Pending<Purpose<T>>) {
        if let Some(link) = self.links.get_mut(&node) {
            let bytes = link.connection.enqueue(segments, pending);
            self.counters.add(Total::Requests, 1);
            self.counters.add(Total::BytesOut, bytes);
        }
    }

    fn request(
        &mut self,
        target: Target,
        purpose: Purpose<T>,
        wait: Wait,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let correlation_id = self.next_correlation_id();
        let client_id = &self.config.client_id;
        let head = NewRequest { api_key: target.api.key, api_version: target.version, correlation_id, client_id };
        let Encoded { segments, .. } = request::encode(head, write);
        let mut pending = Pending::new(purpose, target.version, correlation_id, now + wait.longest, true);
        pending.requested_at = (target.api.key == FETCH.key).then_some(now);
        pending.silent_at = now + wait.held + self.config.retry_backoff_max;
        self.enqueue(target.node, segments, pending);
    }

    fn connect(&mut self, node: NodeId, now: Instant) {
        let Some(server) = self.address(node) else {
            self.cluster.stale = true;
            return;
        };
        let attempt = self.backoffs.get(&node).map_or(0, |b| b.failures);
        let probes = self.suspicions.remove(&node);
        let opened = resolve(&server, attempt).and_then(|address| {
            let tls = self.config.tls.as_ref().filter(|_| probes != Some(Suspicion::Plaintext));
            let session = tls.map(|tls| tls.session(host(&server))).transpose();
            let session = session.map_err(|e| refused(server.clone(), &e))?;
            Connection::open(address, &self.config, session, Arc::clone(&self.pool))
                .map_err(|e| ClientError::Disconnected { server, detail: e.to_string() })
        });
        match opened {
            Ok(connection) => {
                self.counters.add(Total::ConnectionsMade, 1);
                let (first, longest) = (self.config.connection_setup_timeout, self.config.connection_setup_timeout_max);
                let deadline = Some(now + doubled(first, attempt, longest));
                self.links.insert(node, Link::new(connection, now, deadline, probes));
                match probes {
                    Some(_) => self.probe(node, now),
                    None => self.shake_hands(node, API_VERSIONS.max, now),
                }
            }
            Err(error) => self.count_failure(node, error, now),
        }
    }

    fn shake_hands(&mut self, node: NodeId, version: i16, now: Instant) {
        let wait = Wait::of(self.config.request_timeout);
        let write = |out: &mut Vec<u8>| api_versions::write_request(out, version, SOFTWARE);
        let target = Target { node, api: API_VERSIONS, version };
        self.request(target, Purpose::Handshake, wait, now, write);
    }

    fn count_failure(&mut self, node: NodeId, error: ClientError, now: Instant) {
        log::debug!("{error}");
        if matches!(error, ClientError::AuthenticationFailed { .. }) {
            self.refusal = Some(error.clone());
        }
        self.last_failure = Some(error);
        let backoff = self.backoffs.entry(node).or_default();
        let wait = doubled(self.config.reconnect_backoff, backoff.failures, self.config.reconnect_backoff_max);
        backoff.failures += 1;
        backoff.until = Some(now + wait);
        self.cluster.stale = true;
    }

    /// Send queued requests, sleep until an event, `wake_at` or a caller's wake-up, and report the results. Calls
    /// `work_waits` once after announcing the sleep: true prevents the sleep.
    pub fn poll(&mut self, wake_at: Instant, events: &mut Vec<Event<T>>, work_waits: impl FnOnce() -> bool) {
        let now = Instant::now();
        let wake_at = wake_at.min(self.refresh_metadata(now, events));
        let renewal = self.renew_sessions(now, events);
        self.flush_all(now, events);
        let in_flight = self.links.values().map(|link| link.connection.in_flight()).sum();
        self.counters.look(self.links.len(), in_flight, now);
        let deadline =
            self.links.values().filter_map(|l| [l.deadline, l.connection.deadline()].into_iter().flatten().min()).min();
        let silent = self.links.values().filter_map(|l| l.connection.silent_at()).filter(|at| *at > now).min();
        let rest = self.backoffs.values().filter_map(|b| b.until).filter(|until| *until > now).min();
        let wake_at = [deadline, silent, rest, renewal].into_iter().flatten().fold(wake_at, Instant::min);
        self.waker.will_sleep();
        let wait =
            if work_waits() || !events.is_empty() { Duration::ZERO } else { wake_at.saturating_duration_since(now) };
        let (signalled, ready) = self.wait(wait);
        self.waker.woke(signalled);
        let now = Instant::now();
        for (node, flags) in ready {
            self.serve(node, flags, now, events);
        }
        self.expire(now, events);
    }

    fn flush_all(&mut self, now: Instant, events: &mut Vec<Event<T>>) {
        let mut broken = Vec::new();
        for (node, link) in &mut self.links {
            if link.connection.connected
                && link.connection.wants_write()
                && let Err(error) = link.connection.flush()
            {
                broken.push((*node, error));
            }
            pop_written(*node, link, events);
        }
        for (node, failure) in broken {
            let error = self.broken(node, &failure);
            self.drop_link(node, error, now, events);
        }
    }

    fn wait(&self, wait: Duration) -> (bool, Vec<(NodeId, PollFlags)>) {
        let mut fds = vec![PollFd::new(&*self.waker, PollFlags::IN)];
        let mut nodes = Vec::with_capacity(self.links.len());
        for (node, link) in &self.links {
            let write = if link.connection.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(link.connection.as_fd(), PollFlags::IN | write));
            nodes.push(*node);
        }
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        // An interrupted or failed poll reports nothing; the loop polls again.
        if poll(&mut fds, Some(&timeout)).is_err() {
            return (false, Vec::new());
        }
        let signalled = !fds[0].revents().is_empty();
        let ready = nodes.into_iter().zip(&fds[1..]).map(|(node, fd)| (node, fd.revents()));
        (signalled, ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn serve(&mut self, node: NodeId, flags: PollFlags, now: Instant, events: &mut Vec<Event<T>>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        let connection = &mut link.connection;
        let mut received = Vec::new();
        let mut result = Ok(());
        if !connection.connected && flags.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
            result = connection.finish_connecting();
        }
        if result.is_ok() && connection.connected {
            result = connection.flush();
            if result.is_ok() && flags.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP) {
                result = connection.receive(&mut received);
            }
        }
        pop_written(node, link, events);
        for (pending, frame) in received {
            let bytes = frame.bytes().len() as u64;
            self.counters.add(Total::Responses, 1);
            self.counters.add(Total::BytesIn, bytes);
            if let Some(requested_at) = pending.requested_at {
                self.counters.responded(now.saturating_duration_since(requested_at), bytes);
            }
            self.take_response(node, pending, frame, now, events);
        }
        if let Err(failure) = result {
            let error = self.broken(node, &failure);
            self.drop_link(node, error, now, events);
        }
    }

    fn take_response(
        &mut self,
        node: NodeId,
        pending: Pending<Purpose<T>>,
        frame: Frame,
        now: Instant,
        events: &mut Vec<Event<T>>,
    ) {
        let version = pending.version;
        if matches!(pending.token, Purpose::Caller(_) | Purpose::Metadata)
            && let Some(link) = self.links.get_mut(&node)
        {
            link.is_proven = true;
        }
        match pending.token {
            Purpose::Caller(token) => {
                events.push(Event::Responded { node, token, version, frame: Some(frame) });
            }
            Purpose::Metadata => self.take_metadata(node, version, &frame, now, events),
            Purpose::Probe => self.take_probe(node, &frame, now, events),
            Purpose::Mechanism => self.take_mechanism(node, &frame, now, events),
            Purpose::Token => self.take_token(node, version, &frame, now, events),
            Purpose::Handshake => match ApiVersionsResponse::parse(frame.bytes(), RESPONSE_BODY, version) {
                Ok(ApiVersionsResponse { error: ErrorCode::UNSUPPORTED_VERSION, .. }) if version > 0 => {
                    self.shake_hands(node, 0, now);
                }
                Ok(ApiVersionsResponse { served, .. }) => {
                    if let Some(link) = self.links.get_mut(&node) {
                        link.versions = Some(served);
                    }
                    if !self.maybe_sign_in(node, now, events) {
                        self.become_ready(node);
                    }
                }
                Err(error) => {
                    let (server, api) = (self.server(node), API_VERSIONS.name);
                    let error = ClientError::Malformed { server, api, detail: error.to_string() };
                    self.drop_link(node, error, now, events);
                }
            },
        }
    }

    fn expire(&mut self, now: Instant, events: &mut Vec<Event<T>>) {
        let overdue = |l: &Link<T>| [l.deadline, l.connection.deadline()].into_iter().flatten().any(|d| d <= now);
        let late: Vec<NodeId> = self.links.iter().filter(|(_, l)| overdue(l)).map(|(n, _)| *n).collect();
        for node in late {
            let connecting = self.links.get(&node).is_some_and(|l| l.connection.is_new);
            let (what, limit) = if connecting {
                ("no connection within socket.connection.setup.timeout.ms", self.config.connection_setup_timeout)
            } else {
                ("no answer within request.timeout.ms", self.config.request_timeout)
            };
            let detail = format!("{what}={}", limit.as_millis());
            let error = ClientError::Disconnected { server: self.server(node), detail };
            self.drop_link(node, error, now, events);
        }
    }

    /// Close every connection.
    pub fn drop_all(&mut self, error: &ClientError, events: &mut Vec<Event<T>>) {
        let nodes: Vec<NodeId> = self.links.keys().copied().collect();
        nodes.into_iter().for_each(|node| self.drop_link(node, error.clone(), Instant::now(), events));
    }

    /// Close a connection; its requests without a response fail with `error`.
    pub fn drop_link(&mut self, node: NodeId, error: ClientError, now: Instant, events: &mut Vec<Event<T>>) {
        if let Some(mut link) = self.links.remove(&node) {
            self.count_ended(1);
            for pending in link.connection.abandon() {
                if let Purpose::Caller(token) = pending.token {
                    events.push(Event::Failed { token, error: error.clone() });
                }
            }
        }
        self.forget_requested(node);
        self.count_failure(node, error, now);
    }

    fn count_ended(&self, connections: usize) {
        self.counters.add(Total::ConnectionsEnded, connections as u64);
    }

    /// The silent nodes, with the tokens of their requests.
    pub fn silent(&self, now: Instant) -> impl Iterator<Item = (NodeId, impl Iterator<Item = &T>)> {
        let silent = self.links.iter().filter(move |(_, link)| link.connection.is_silent(now));
        silent.map(|(node, link)| {
            let tokens = link.connection.awaited().filter_map(|purpose| match purpose {
                Purpose::Caller(token) => Some(token),
                _ => None,
            });
            (*node, tokens)
        })
    }

    /// Close the connection to a silent node whose requests are for partitions with another leader.
    pub fn give_up_silent(&mut self, node: NodeId, now: Instant, events: &mut Vec<Event<T>>) {
        let detail = "no answer, and another broker leads what it was asked".to_owned();
        let error = ClientError::Disconnected { server: self.server(node), detail };
        self.drop_link(node, error, now, events);
    }
}

/// Complete the requests without a response that were written (acks=0).
fn pop_written<T>(node: NodeId, link: &mut Link<T>, events: &mut Vec<Event<T>>) {
    while let Some(pending) = link.connection.pop_unanswered() {
        if let Purpose::Caller(token) = pending.token {
            events.push(Event::Responded { node, token, version: pending.version, frame: None });
        }
    }
}
