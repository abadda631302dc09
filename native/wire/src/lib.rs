//! Kafka's wire format: the header of a frame, the primitive types, the messages that native code implements, and the
//! codec of the messages that Python declares.
//!
//! Each message has one file, with reading and writing of both its request and its response. A broker reads requests
//! and writes responses; a client or a follower writes requests and reads responses. If native code needs only one
//! direction, the other one is in the tests. Knows bytes and versions; must not know sockets or logs.

mod api_key;
pub mod api_versions;
pub mod codec;
mod error_code;
pub mod fetch;
pub mod frame;
pub mod init_producer_id;
mod leaders;
pub mod list_offsets;
pub mod metadata;
pub mod primitives;
pub mod produce;
pub mod sasl;
pub mod schema;
mod topics;
pub mod tree;

pub use api_key::ApiKey;
pub use error_code::ErrorCode;
pub use leaders::{BrokerEndpoint, LeaderAndEpoch};
pub use topics::{TopicId, TopicRef, ZERO_TOPIC_ID};

/// Most elements to reserve capacity for before they are read, so that an announced count alone allocates no memory.
const EXPECTED: usize = 64;
