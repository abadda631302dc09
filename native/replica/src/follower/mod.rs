//! A follower: what it fetches from its leader, and what it does with what it gets.
//!
//! [`ReplicaFetcher`] is a machine: it builds requests and takes answers, with time as an argument, and opens no socket.
//! Threads drive it in a broker, a simulated network in tests. Changes of logs go through [`Partition`](super::Partition),
//! which checks under its role that the answer is of the leader that it follows still.
//!
//! A log is cut by leader epochs alone, never by the high watermark (KIP-101, KIP-279): [`agreed_end`] has the rule.

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
