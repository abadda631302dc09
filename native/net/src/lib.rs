//! Sockets: accepting, framing, the hot path of Produce and Fetch, answers in order, `sendfile`.
//!
//! One acceptor thread, `num.network.threads` processors (the seeds' Reactor pattern), each with its own epoll set and
//! its own connections. What Kafka hands to I/O threads through a queue is done in place on the processor. Everything
//! but Produce and Fetch goes up to the control plane as an [`Event`] and comes back as [`DataPlane::respond`].
//!
//! Knows partitions and wire messages. Must not know Python, configuration files, or who may do what.

// The integration tests' support, which unit tests use too, names the crate as others do.
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
pub use accepting::listener::ListenError;
pub use accepting::room::ListenerCounts;
pub use connection::identity::Identity;
pub use data_plane::DataPlane;
pub use data_plane::api_versions::Software;
pub use data_plane::events::{
    CaughtUpReplica, ControlRequest, Event, EventQueue, Level, PeerCertificate, QuotaAsked, UnresolvedRequest,
};
pub use data_plane::settings::{
    FetchSecurity, FetchSource, ListenerSettings, ListenerTls, ReplicationSettings, Settings,
};
#[cfg(feature = "simulation")]
pub use data_plane::simulation::{Served, SimulatedDataPlane};
pub use delayed_operations::interception::Decision;
pub use delayed_operations::markers::AppendedMarkers;
pub use delayed_operations::verification::{TransactionAsked, Verified};
pub use hot_path::{FETCH_VERSIONS, PRODUCE_VERSIONS, Right, Rights, Verdict, Who};
pub use measures::counters::{ApiCounters, CountersSnapshot, ProcessorCounters, WorkCounters};
pub use measures::partition_states::PartitionState;
pub use measures::times::{PhaseTimes, TimesOfKind, bounds_us};
pub use quota::{ClientLimits, Metering, QuotaKind, QuotaLimit, QuotaSettings, QuotaUse, Quotas, Window};
