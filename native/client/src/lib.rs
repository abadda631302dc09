//! The native engine of `pybroker.client`: a producer and a fetcher that work against any Kafka.
//!
//! Owns the accumulator, the connections to brokers and the few requests that carry records (Produce, Fetch) or are
//! needed to get there (ApiVersions, Metadata, InitProducerId, ListOffsets). Must not know Python, groups, coordinators
//! or any default. It stands at the other end of the broker's way: a record enters [`Producer::send`], waits in the
//! [`producer::accumulator`], is put in a request by the [`producer::sender`] and leaves through the [`network`]; it comes
//! back through the network to the [`fetcher`], which hands out whole received buffers for iteration in place.
//!
//! [`columns`] is another face of both: Arrow arrays instead of records. [`text`] is the console's: lines.
//!
//! One producer or fetcher has one I/O thread, which alone touches its sockets. Callers and that thread meet in queues of
//! whole batches and whole responses, never in single records.

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
