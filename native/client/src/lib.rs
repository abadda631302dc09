//! The native engine of `pybroker.client`: a producer and a fetcher that work with any Kafka broker.
//!
//! Owns the accumulator, the connections to brokers and the requests that carry records (Produce, Fetch) or prepare for them
//! (ApiVersions, Metadata, InitProducerId, ListOffsets). Must not know Python, groups, coordinators or defaults. A record is
//! added by [`Producer::send`], waits in the [`producer::accumulator`], is put in a request by the [`producer::sender`] and
//! is sent by the [`network`]. Fetched records arrive through the network at the [`fetcher`], which returns whole receive
//! buffers for iteration in place.
//!
//! [`columns`] is a second interface to both, with Arrow arrays instead of records. [`text`] is the console's, with lines.
//!
//! A producer or fetcher has one I/O thread, which alone uses its sockets. Callers and that thread exchange whole batches
//! and whole responses, never single records.

mod clock;
pub mod columns;
mod config;
mod counters;
mod error;
mod fetcher;
mod metrics;
mod network;
mod producer;
mod random;
#[cfg(test)]
mod tests;
pub mod text;
pub use pybroker_secure::{Secret, sasl};
pub use pybroker_tls as tls;
mod wait;

pub use clock::{now_ms, now_us};
pub use config::{ConnectionConfig, Continuation, FetcherConfig, OffsetReset, ProducerConfig};
pub use error::ClientError;
pub use fetcher::Fetcher;
pub use fetcher::chunk::{Chunk, Count, FetchedRecord};
pub use fetcher::inbox::{Assignment, Start};
pub use fetcher::received::Received;
pub use metrics::Metrics;
pub use producer::accumulator::Ticket;
pub use producer::delivery::{Delivery, Written};
pub use producer::destination::{Destination, Partitions};
pub use producer::failures::Undelivered;
pub use producer::new_record::NewRecord;
pub use producer::observer::{DeliveryObserver, Stride};
pub use producer::partitioner::Partitioner;
pub use producer::since::Since;
pub use producer::transaction::{Failure, code_of};
pub use producer::{Outcome, Producer};
pub use random::split_mix;
pub use wait::interrupt_waits_when;
