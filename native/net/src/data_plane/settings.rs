//! What the control plane decides for the sockets. Complete structs: no value has a default here.

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
    /// How long a thread of sockets, fetchers or syncs runs before others have their turn; zero
    /// leaves the system's.
    pub thread_slice: Duration,
    /// `socket.request.max.bytes`: the largest frame, size prefix not counted.
    pub socket_request_max_bytes: usize,
    /// `socket.send.buffer.bytes`; -1 leaves the system's.
    pub socket_send_buffer_bytes: i64,
    /// `socket.receive.buffer.bytes`; -1 leaves the system's.
    pub socket_receive_buffer_bytes: i64,
    /// `queued.max.requests`: control requests that wait for Python, over all connections.
    pub queued_max_requests: usize,
    /// Requests of one connection in work at once; a connection with more is not read from.
    pub requests_in_work_per_connection: usize,
    /// `queued.max.request.bytes`: bytes of requests that are being received or worked on, over all connections, those
    /// that arrive in one small read left out; negative: no bound.
    pub queued_request_bytes: i64,
    /// `queued.max.response.bytes.per.connection`: bytes of answers queued for one connection; a connection with more is
    /// not read from.
    pub queued_response_bytes_per_connection: u64,
    /// `queued.max.response.bytes`: memory of unread answers over all connections; beyond it, connections that hold most
    /// of it are closed.
    pub queued_response_bytes: u64,
    /// `connections.max.idle.ms`; negative: never closed for idling.
    pub connections_max_idle_ms: i64,
    /// Connections open at a time: `max.connections`, or what the limit of descriptors leaves for them.
    pub max_connections: usize,
    /// Where that number comes from, for the log.
    pub max_connections_reason: String,
    /// `fetch.max.bytes`: the most that one Fetch is answered with.
    pub fetch_max_bytes: usize,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_session_slots: usize,
    /// Idle time after which a fetch session gives way to a new one, in milliseconds.
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
    /// The TCP congestion control of accepted connections; `None` leaves the system's.
    pub congestion_control: Option<String>,
    /// Every request that comes in here goes to the control plane: Produce, Fetch and ApiVersions too.
    pub control_only: bool,
    /// Whom its connections are taken for; `None`: each has to authenticate by SASL before anything else.
    pub identity: Option<Arc<Identity>>,
    /// `sasl.server.max.receive.size`: the largest frame of a connection that has not authenticated.
    pub unauthenticated_max_bytes: usize,
    /// How long a connection may take, from when it is accepted, to authenticate.
    pub authentication_timeout_ms: u64,
    /// How its connections are encrypted; `None`: not at all.
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
    /// How long the leader's system may acknowledge nothing before the connection is closed: a network that is cut loses packets
    /// and reports nothing, and TCP retries ever more seldom.
    pub path_timeout_ms: u64,
    /// `replica.socket.receive.buffer.bytes`; -1 leaves the system's.
    pub socket_receive_buffer_bytes: i64,
    /// What followers are sent of throttled partitions: `leader.replication.throttled.rate`.
    pub leader_throttle: ThrottleLimit,
    /// What is fetched of throttled partitions: `follower.replication.throttled.rate`.
    pub follower_throttle: ThrottleLimit,
    /// Followers learn at once what is committed, as consumers read from them (`replica.selector.class`).
    pub eager_high_watermark: bool,
}

/// How the connections to those brokers are secured, which are like a client's.
#[derive(Clone, Debug)]
pub struct FetchSecurity {
    /// `None`: nothing is encrypted.
    pub tls: Option<Tls>,
    /// `None`: nobody asks who this broker is.
    pub credentials: Option<Credentials>,
}

impl FetchSecurity {
    /// Of a listener that encrypts nothing and asks nobody.
    pub const PLAINTEXT: Self = Self { tls: None, credentials: None };
}

/// A broker that partitions may be fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSource {
    pub id: BrokerId,
    /// Its endpoint on the inter-broker listener.
    pub host: String,
    pub port: u16,
    /// The epoch of its registration: a later one is another process.
    pub broker_epoch: i64,
}
