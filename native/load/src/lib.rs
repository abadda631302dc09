//! Load generation on top of the client's engine: generated, stamped and timed records, and latencies that can be merged.
//!
//! Owns the parts that only measuring tools need: the stamp's layout, generated values and keys, schedules, histograms. Must
//! not know sockets, brokers or Python. The engine does not know this crate: it calls a
//! [`DeliveryObserver`](pybroker_client::DeliveryObserver) once for each batch, and [`Measurement`] is one.

mod generate;
mod histogram;
mod keyed;
mod latency;
mod payload;
mod schedule;
mod stamp;

pub use generate::{send_keyed, send_made};
pub use histogram::LatencyHistogram;
pub use keyed::KeyedStamps;
pub use latency::{Latency, Measurement, PHASES, Tally};
pub use payload::{MadeRecords, Payload};
pub use schedule::Due;
pub use stamp::{Arrivals, STAMP_BYTES, Stamp};
