//! Sockets: accepting connections, framing, the hot path of Produce and Fetch, responses in order, `sendfile`.
//!
//! One acceptor thread and `num.network.threads` processors (the Reactor pattern), each with its own epoll set and
//! connections. The work that Kafka hands to I/O threads through a queue is done on the processor. Every request but Produce
//! and Fetch is sent to the control plane as an [`Event`]; the response returns through [`DataPlane::respond`].
//!
//! Knows partitions and wire messages. Must not know Python, configuration files, or authorization rules.

// Unit tests share the integration tests' support, which refers to this crate by its name.
#[cfg(test)]
extern crate self as pybroker_net;

mod accepting;
mod connection;
mod data_plane;
mod delayed_operations;
mod follower;
mod hot_path;
mod limits;
mod measures;
mod processor;
mod quota;
mod scheduling;
mod transport;

pub use accepting::connection_limits::{ConnectionLimits, ListenerLimits, Windows};
pub use accepting::connection_slots::ListenerCounts;
pub use accepting::listener::ListenError;
pub use connection::identity::Identity;
pub use data_plane::DataPlane;
pub use data_plane::api_versions::Software;
pub use data_plane::events::{
    CaughtUpReplica, ControlRequest, Event, EventQueue, Level, PeerCertificate, QuotaQuery, UnresolvedRequest,
};
pub use data_plane::settings::{
    FetchSecurity, FetchSource, ListenerSettings, ListenerTls, ReplicationSettings, Settings,
};
#[cfg(feature = "simulation")]
pub use data_plane::simulation::{Served, SimulatedDataPlane};
pub use delayed_operations::interception::Decision;
pub use delayed_operations::markers::AppendedMarkers;
pub use delayed_operations::verification::{TransactionQuery, Verified};
pub use hot_path::{Authorization, FETCH_VERSIONS, PRODUCE_VERSIONS, Right, Rights, Who};
pub use measures::counters::{ApiCounters, CountersSnapshot, ProcessorCounters, WorkCounters};
pub use measures::partition_states::PartitionState;
pub use measures::times::{PhaseTimes, TimesOfKind, bounds_us};
pub use quota::{ClientLimits, Metering, QuotaKind, QuotaLimit, QuotaSettings, QuotaUse, Quotas, Window};
