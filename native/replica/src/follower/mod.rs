//! A follower: fetches from its leader, and applies the responses.
//!
//! [`ReplicaFetcher`] is a state machine: it builds requests and processes responses, with time as an argument, and
//! opens no socket. Threads drive it in a broker, and a simulated network in tests. Log changes go through
//! [`Partition`](super::Partition), which checks under the lock of its role that the response is from the current
//! leader.
//!
//! A log is truncated by leader epochs only, never by the high watermark (KIP-101, KIP-279): see [`agreed_end`].

mod fetched;
mod fetcher;
mod session;
mod state;
mod truncation;

#[cfg(test)]
mod anomaly_tests;
#[cfg(test)]
mod damaged_epochs_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod hole_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transaction_tests;

pub use fetched::{FetchPosition, FetchedRecords, FollowerNotice, NotTaken};
pub use fetcher::{FetcherSettings, FollowerListener, PartitionKey, REPLICA_FETCH_VERSION, ReplicaFetcher};
pub use state::{FetchEvent, FetchState, FetchStateKind, TRANSITIONS as FETCH_TRANSITIONS};
pub use truncation::{EpochEnd, LogSpan, Restart, agreed_end, plan_restart};
