//! Fetching from leaders: `num.replica.fetchers` threads for each leader, each with one connection.
//!
//! [`pybroker_replica::ReplicaFetcher`] decides which requests to send and how to handle responses; this module has its
//! threads and sockets. The leader of a partition is in its role, the leader's address in the control plane's table of
//! brokers. No Python runs between a fetch and its append.

mod connection;
mod fetchers;
mod signing_in;
mod thread;

pub use fetchers::ReplicaFetchers;
