//! The control plane's settings for the data plane. Complete structs: no value has a default here.

use std::sync::Arc;
use std::time::Duration;

use crate::connection::identity::Identity;
use pybroker_replica::{BrokerId, FetcherSettings, ThrottleLimit};
use pybroker_secure::sasl::Credentials;
use pybroker_tls::{ServerTls, Tls};

/// Limits and sizes of the data plane, by Kafka's configuration keys.
#[derive(Clone, Debug)]
pub struct Settings {
    pub node_id: i32,
    /// `num.network.threads`: processors.
    pub network_threads: usize,
    /// Scheduler slice of the threads for sockets, fetchers and syncs; zero keeps the system's default.
    pub thread_slice: Duration,
    /// `socket.request.max.bytes`: the largest frame, size prefix not counted.
    pub socket_request_max_bytes: usize,
    /// `socket.send.buffer.bytes`; -1 keeps the system's default.
    pub socket_send_buffer_bytes: i64,
    /// `socket.receive.buffer.bytes`; -1 keeps the system's default.
    pub socket_receive_buffer_bytes: i64,
    /// `queued.max.requests`: control requests that wait for Python, over all connections.
    pub queued_max_requests: usize,
    /// Requests of one connection in work at once; a connection with more is not read from.
    pub requests_in_work_per_connection: usize,
    /// `queued.max.request.bytes`: bytes of requests being received or worked on, over all connections, without requests
    /// that arrive in one small read; negative for no limit.
    pub queued_request_bytes: i64,
    /// `queued.max.response.bytes.per.connection`: bytes of responses queued for one connection; a connection with more is
    /// not read from.
    pub queued_response_bytes_per_connection: u64,
    /// `queued.max.response.bytes`: memory of unread responses over all connections; above it, the connections that use most
    /// are closed.
    pub queued_response_bytes: u64,
    /// `connections.max.idle.ms`; negative: never closed for idling.
    pub connections_max_idle_ms: i64,
    /// Limit on open connections: `max.connections`, or less if the limit of file descriptors requires it.
    pub max_connections: usize,
    /// The origin of that number, for the log.
    pub max_connections_reason: String,
    /// `fetch.max.bytes`: the most bytes in the response to one Fetch.
    pub fetch_max_bytes: usize,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_session_slots: usize,
    /// Idle time after which a new fetch session may evict a session, in milliseconds.
    pub fetch_session_eviction_ms: i64,
}

/// How the connections of a listener are encrypted.
#[derive(Clone, Debug)]
pub struct ListenerTls {
    pub tls: ServerTls,
    /// How long a handshake may take.
    pub handshake_timeout_ms: u64,
}

/// One listener.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// The listener's name (`PLAINTEXT`).
    pub name: String,
    /// The address to bind.
    pub host: String,
    /// The port to bind; 0 lets the system choose.
    pub port: u16,
    /// `socket.listen.backlog.size`.
    pub backlog: i32,
    /// The TCP congestion control of accepted connections; `None` keeps the system's default.
    pub congestion_control: Option<String>,
    /// Send every request of this listener to the control plane: Produce, Fetch and ApiVersions too.
    pub control_only: bool,
    /// The principal of its connections; `None`: each has to authenticate by SASL first.
    pub identity: Option<Arc<Identity>>,
    /// `sasl.server.max.receive.size`: the largest frame of an unauthenticated connection.
    pub unauthenticated_max_bytes: usize,
    /// How long a connection may take to authenticate after it is accepted.
    pub authentication_timeout_ms: u64,
    /// The TLS settings; `None`: connections are not encrypted.
    pub tls: Option<ListenerTls>,
}

/// How this broker replicates, by Kafka's configuration keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationSettings {
    /// How each fetcher fetches; `replica.fetch.*`.
    pub fetcher: FetcherSettings,
    /// `num.replica.fetchers`: threads for each broker that is fetched from.
    pub fetchers: usize,
    /// `replica.socket.timeout.ms`.
    pub socket_timeout_ms: u64,
    /// How long the leader's system may acknowledge no data before the connection is closed. A cut network loses packets
    /// without an error, and TCP retransmits at growing intervals.
    pub path_timeout_ms: u64,
    /// `replica.socket.receive.buffer.bytes`; -1 keeps the system's default.
    pub socket_receive_buffer_bytes: i64,
    /// The limit on bytes of throttled partitions for followers: `leader.replication.throttled.rate`.
    pub leader_throttle: ThrottleLimit,
    /// The limit on bytes fetched of throttled partitions: `follower.replication.throttled.rate`.
    pub follower_throttle: ThrottleLimit,
    /// Send followers a new high watermark at once, as consumers read from them (`replica.selector.class`).
    pub eager_high_watermark: bool,
}

/// The security of connections to other brokers, in the same terms as a client's.
#[derive(Clone, Debug)]
pub struct FetchSecurity {
    /// `None`: not encrypted.
    pub tls: Option<Tls>,
    /// `None`: without authentication.
    pub credentials: Option<Credentials>,
}

impl FetchSecurity {
    /// For a listener without encryption and authentication.
    pub const PLAINTEXT: Self = Self { tls: None, credentials: None };
}

/// A broker that partitions may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSource {
    pub id: BrokerId,
    /// Its endpoint on the inter-broker listener.
    pub host: String,
    pub port: u16,
    /// The epoch of its registration: a later epoch is another process.
    pub broker_epoch: i64,
}
