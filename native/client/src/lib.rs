//! The native engine of `pybroker.client`: a producer and a fetcher that work against any Kafka.
//!
//! Owns the accumulator, the connections to brokers and the few requests that carry records (Produce, Fetch) or are
//! needed to get there (ApiVersions, Metadata, InitProducerId, ListOffsets). Must not know Python, groups, transactions
//! or any default. It stands at the other end of the broker's way: a record enters [`Producer::send`], waits in the
//! [`accumulator`], is put in a request by the [`sender`] and leaves through the [`network`]; it comes back through the
//! network to the [`fetcher`], which hands out whole received buffers for iteration in place.
//!
//! [`columns`] is the other face of both: Arrow arrays instead of records.
//!
//! One producer or fetcher has one I/O thread, which alone touches its sockets. Callers and that thread meet in queues of
//! whole batches and whole responses, never in single records.

mod accumulator;
mod apis;
mod batch;
mod chunk;
mod chunk_walk;
mod clock;
mod cluster;
pub mod columns;
mod config;
mod connection;
mod counters;
mod cursor;
mod delivery;
mod destination;
mod error;
mod fetcher;
mod fetcher_state;
mod inbox;
mod metrics;
mod network;
mod new_record;
mod observer;
mod partition_queue;
mod partitioner;
mod pool;
mod producer;
mod producer_state;
mod random;
mod reader;
mod received;
mod request;
mod sender;
mod since;
#[cfg(test)]
mod tests;
mod wait;
mod waker;

pub use accumulator::Ticket;
pub use chunk::{Chunk, Count, FetchedRecord};
pub use clock::{now_ms, now_us};
pub use config::{ConnectionConfig, Continuation, FetcherConfig, OffsetReset, ProducerConfig};
pub use delivery::{Delivery, Written};
pub use destination::{Destination, Partitions};
pub use error::ClientError;
pub use fetcher::Fetcher;
pub use inbox::{Assignment, Start};
pub use metrics::Metrics;
pub use new_record::NewRecord;
pub use observer::{DeliveryObserver, Stride};
pub use partitioner::Partitioner;
pub use producer::{Outcome, Producer};
pub use random::split_mix;
pub use received::Received;
pub use since::Since;
pub use wait::interrupt_waits_when;
