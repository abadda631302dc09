//! Fetching from leaders: `num.replica.fetchers` threads for each broker that is fetched from, each with one connection.
//!
//! What is fetched, and what becomes of an answer, is decided by [`pybroker_replica::ReplicaFetcher`]; here are the threads
//! that drive it and the sockets. A partition's role says whom it follows, the control plane's table of brokers where that
//! one is. No Python runs on the way of a record.

mod connection;
mod fetchers;
mod signing_in;
mod thread;

pub use fetchers::ReplicaFetchers;
