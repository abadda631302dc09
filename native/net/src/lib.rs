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

mod accepted;
mod acceptor;
mod api_versions;
mod bare_tokens;
mod clock;
mod connection;
mod connection_limits;
mod connection_number;
mod connection_rate;
mod control_room;
mod counters;
mod cross_thread;
mod data_plane;
mod events;
mod flush_outcomes;
mod follower;
mod hot_path;
mod identity;
mod inbox;
mod inboxes;
mod interception;
mod listener;
mod markers;
mod open_connections;
mod partition_states;
mod processor;
mod quota;
mod reactor;
mod request_memory;
mod response;
mod room;
mod settings;
#[cfg(feature = "simulation")]
mod simulation;
mod slot;
mod timer_wheel;
mod times;
mod transport;
mod verification;
mod wake_up;

pub use api_versions::Software;
pub use connection_limits::{ConnectionLimits, ListenerLimits, Windows};
pub use counters::{ApiCounters, CountersSnapshot, ProcessorCounters, WorkCounters};
pub use data_plane::DataPlane;
pub use events::{
    CaughtUpReplica, ControlRequest, Event, EventQueue, Level, PeerCertificate, QuotaAsked, UnresolvedRequest,
};
pub use hot_path::{FETCH_VERSIONS, PRODUCE_VERSIONS, Right, Rights, Verdict, Who};
pub use identity::Identity;
pub use interception::Decision;
pub use listener::ListenError;
pub use markers::AppendedMarkers;
pub use partition_states::PartitionState;
pub use quota::{ClientLimits, Metering, QuotaKind, QuotaLimit, QuotaSettings, QuotaUse, Quotas, Window};
pub use room::ListenerCounts;
pub use settings::{FetchSecurity, FetchSource, ListenerSettings, ListenerTls, ReplicationSettings, Settings};
#[cfg(feature = "simulation")]
pub use simulation::{Served, SimulatedDataPlane};
pub use times::{PhaseTimes, TimesOfKind, bounds_us};
pub use verification::{TransactionAsked, Verified};
